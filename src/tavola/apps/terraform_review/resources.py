"""Resources: the JSON of the review history, what comes in beside results and what goes out.

Scores have four places at most and are JSON numbers. Money is text with all its digits. Times are ISO 8601 in UTC. What comes in
takes no field that it does not know, so a misspelt one is an error and never ignored.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    model_validator,
)

from tavola.apps.terraform_review.domain import Band, Category, Severity, Status, band_of
from tavola.apps.terraform_review.model import (
    DayRisk,
    Finding,
    IssueFrequency,
    IssueTotal,
    Review,
    ReviewAudit,
    ReviewSummary,
    ReviewVersion,
    StackStats,
)
from tavola.apps.terraform_review.results import Assessment, ErrorDetails, FixRequest, Id, SpaceliftContext
from tavola.apps.terraform_review.service import Issue
from tavola.patterns import Difference, Verification

Score = Annotated[
    Decimal,
    PlainSerializer(float, return_type=float, when_used="json"),
    Field(json_schema_extra={"minimum": 0, "maximum": 1}),
]
Change = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]


def _written_out(told: Any) -> Any:
    """Return a day or a moment of a question as it came; a bare number is none, though pydantic takes one for seconds."""
    if isinstance(told, str) and not _DATED.match(told):
        raise ValueError("give a day such as 2026-11-16, or a moment such as 2026-11-16T07:30:00Z")
    return told


_DATED = re.compile(r"\d{4}-\d{2}-\d{2}")

Day = Annotated[date, BeforeValidator(_written_out)]
Moment = Annotated[AwareDatetime | date, BeforeValidator(_written_out)]  # a moment, or a whole day


class Told(BaseModel):
    """What goes out."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


# What comes in.

Who = Annotated[
    Id,
    Field(
        description="Who does it, as the audit trail tells. It is taken at its word, unless a proxy says who calls: then it is the caller.",
        examples=["eng-03"],
    ),
]
Why = Annotated[str, Field(max_length=1000, description="Why; the audit trail tells.")]


class NewVersion(Assessment):
    """What a reviewer says now, by whom and why: a review's next version."""

    changed_by: Who
    why: Why = ""
    spacelift_run_id: Annotated[Id | None, Field(description="Of the run, where it is another one.")] = None

    def assessment(self) -> Assessment:
        """Return what is said, without by whom."""
        return Assessment.model_construct(
            self.model_fields_set & Assessment.model_fields.keys(),
            **{name: getattr(self, name) for name in Assessment.model_fields},
        )


class NewFix(FixRequest):
    """Fixes of findings that stand, by whom and why: a review's next version."""

    changed_by: Who
    why: Why = ""

    def fix(self) -> FixRequest:
        """Return the fixes, without by whom."""
        return FixRequest.model_construct(
            self.model_fields_set & FixRequest.model_fields.keys(),
            **{name: getattr(self, name) for name in FixRequest.model_fields},
        )


class StatusPatch(BaseModel):
    """Another status of a review, by whom and why: pending again, or failed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    status: Literal[Status.PENDING, Status.FAILED]
    changed_by: Who
    why: Why = ""
    error_details: Annotated[ErrorDetails | None, Field(description="Of a failed one.", examples=[None])] = (
        None
    )

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.error_details is not None and self.status is not Status.FAILED:
            raise ValueError("error_details are of a failed review; its status says otherwise")
        return self


# What goes out.


class CountsTold(Told):
    """The findings of one category, by severity."""

    total: int
    high: int
    medium: int
    low: int


class CodeTold(Told):
    """The code of a version; its text is at `code` below the review."""

    size: Annotated[int, Field(description="In bytes.")]
    sha256: str
    stored: Literal["item", "blob"]


class FixTold(Told):
    """One fix that was made in the code."""

    finding_id: str
    fix_id: str | None
    original_code: str | None
    applied_code: str | None
    effectiveness_score: Score | None


class FixesTold(Told):
    """What a fix was, and what it came to."""

    fix_version: int
    previous_version: int
    fixes_applied: list[FixTold]
    applied_at: datetime
    risk_reduction: Change | None
    findings_resolved: int
    findings_remaining: int


class CostTold(Told):
    """What the plan would cost."""

    estimated_monthly_cost: Decimal
    estimated_annual_cost: Decimal | None
    resource_count: int


class SummaryTold(Told):
    """What lists tell of a review."""

    review_id: str
    version: int
    stack_id: str
    spacelift_run_id: str
    status: Status
    status_since: datetime
    overall_risk_score: Annotated[Score | None, Field(description="null: nobody knows.")]
    risk_band: Band | None
    found_risk_score: Annotated[Score | None, Field(description="The first that was known, before fixes.")]
    findings_total: int
    high_findings: int
    fix_applied: bool
    created_at: datetime
    created_by: str
    updated_at: datetime


class ReviewTold(SummaryTold):
    """A version of a review, whole but for its code and its findings' texts."""

    previous_version: int | None
    changed_by: str
    reliability_score: Score | None
    security_findings: CountsTold
    cost_findings: CountsTold
    reliability_findings: CountsTold
    cost_analysis: CostTold | None
    ai_review_result: dict[str, JsonValue]
    spacelift_context: SpaceliftContext
    fix_details: FixesTold | None
    error_details: ErrorDetails | None
    metadata: dict[str, JsonValue]
    code: CodeTold
    expires_at: datetime | None


class FindingTold(Told):
    """One thing that was found, as it was found."""

    finding_id: str
    review_id: str
    stack_id: str
    spacelift_run_id: str
    version: Annotated[int, Field(description="That it was first in.")]
    category: Category
    severity: Severity
    title: str
    description: str
    file_path: str
    line_number: int | None
    recommendation: str
    rule_id: str | None
    issue_hash: str
    confidence_score: Score | None
    estimated_cost_impact: Decimal | None
    created_at: datetime


class DifferenceTold(Told):
    """What differs at one place; values are as they are stored, numbers as text."""

    path: str
    kind: Literal["added", "removed", "changed"]
    before: JsonValue = None
    after: JsonValue = None
    omitted: Annotated[
        bool, Field(description="The values are too long to be repeated; the versions hold them.")
    ]


class ComparisonTold(Told):
    """Two versions, side by side."""

    review_id: str
    from_version: int
    to_version: int
    differences: list[DifferenceTold]
    code: Annotated[
        str | None, Field(description="A unified diff of the code; null: too large to compare here.")
    ]


class AuditTold(Told):
    """One change: who, when, why and what."""

    review_id: str
    stack_id: str
    version: int
    kind: Literal["created", "changed", "restored"]
    actor: str
    at: datetime
    why: str
    differences: list[DifferenceTold]
    seal: str | None


class TamperingTold(Told):
    """Something that is not as it was written."""

    version: int
    what: str


class VerificationTold(Told):
    """Whether a review and its history are as they were written."""

    intact: bool
    versions: int
    sealed_from: Annotated[int | None, Field(description="The first version that is sealed.")]
    seal: Annotated[str | None, Field(description="Of the last change; keep it elsewhere to compare later.")]
    problems: list[TamperingTold]


class StackTold(Told):
    """A stack's numbers, of its reviews as they are now."""

    stack_id: str
    total_reviews: int
    assessed_reviews: Annotated[int, Field(description="Whose risk is known.")]
    average_risk_score: Score | None
    high_risk_count: int
    medium_risk_count: int
    low_risk_count: int
    pending_reviews: int
    failed_reviews: int
    fixed_reviews: int
    total_findings: int
    security_findings: int
    cost_findings: int
    reliability_findings: int
    last_review_at: datetime | None


class FrequencyTold(Told):
    """How often an issue was found, and since when."""

    issue_hash: str
    category: Category
    title: str
    file_path: str
    occurrence_count: int
    open_count: Annotated[int, Field(description="Of these, those that reviews name as they are now.")]
    first_seen: datetime
    last_seen: datetime


class StackIssueTold(FrequencyTold):
    """How often an issue was found in one stack."""

    fix_applied: Annotated[
        bool, Field(description="Whether it was fixed, and no review of the stack names it now.")
    ]
    stack_id: str
    affected_runs: Annotated[list[str], Field(description="The latest runs it was found in, newest first.")]


class IssueTold(FrequencyTold):
    """An issue over all stacks, and stack by stack."""

    stacks: list[StackIssueTold]


class DayTold(Told):
    """The risk of the reviews that were made on a day."""

    day: Day
    reviews: int
    assessed: Annotated[int, Field(description="Whose risk is known; the others are in no band.")]
    average_risk: Annotated[Score | None, Field(description="After fixes.")]
    average_found: Annotated[Score | None, Field(description="As it was found, before fixes.")]
    high: int
    medium: int
    low: int
    pending: int
    failed: int
    fixed: int
    findings: int


class TrendTold(Told):
    """The days of a range that have reviews, the earliest first."""

    from_day: Day
    to_day: Day
    days: list[DayTold]


# Made of entities.


def summary_told(found: ReviewSummary) -> SummaryTold:
    """Return what lists tell of a review."""
    return SummaryTold.model_construct(**_summary(found))


def review_told(found: Review | ReviewVersion) -> ReviewTold:
    """Return a version of a review."""
    fix = found.fix_details
    cost = found.cost_analysis
    return ReviewTold(
        **_summary(found),
        previous_version=found.previous_version,
        changed_by=found.changed_by,
        reliability_score=found.reliability_score,
        security_findings=CountsTold.model_validate(found.security_findings),
        cost_findings=CountsTold.model_validate(found.cost_findings),
        reliability_findings=CountsTold.model_validate(found.reliability_findings),
        cost_analysis=None if cost is None else CostTold.model_validate(cost),
        ai_review_result=found.ai_review_result,
        spacelift_context=found.context,
        fix_details=None if fix is None else FixesTold.model_validate(fix),
        error_details=found.error_details,
        metadata=found.metadata,
        code=CodeTold(
            size=found.code.size,
            sha256=found.code.sha256,
            stored="item" if found.code.place is None else "blob",
        ),
        expires_at=found.expires_at,
    )


def finding_told(found: Finding) -> FindingTold:
    """Return a finding."""
    names = FindingTold.model_fields.keys() - {"spacelift_run_id"}
    return FindingTold.model_construct(
        spacelift_run_id=found.run_id, **{name: getattr(found, name) for name in names}
    )


def difference_told(found: Difference) -> DifferenceTold:
    """Return a difference as JSON can tell it."""
    return DifferenceTold(
        path=found.path,
        kind=found.kind,
        before=plain(found.before),
        after=plain(found.after),
        omitted=found.omitted,
    )


def audit_told(found: ReviewAudit) -> AuditTold:
    """Return one change of the audit trail."""
    return AuditTold(
        review_id=found.review_id,
        stack_id=found.stack_id,
        version=found.version,
        kind=found.kind,
        actor=found.actor,
        at=found.at,
        why=found.why,
        differences=[difference_told(each) for each in found.differences],
        seal=found.seal,
    )


def verification_told(found: Verification) -> VerificationTold:
    """Return what a look at the seals found."""
    return VerificationTold(
        intact=bool(found),
        versions=found.versions,
        sealed_from=found.chained_from,
        seal=found.seal,
        problems=[TamperingTold.model_validate(each) for each in found.problems],
    )


def stack_told(found: StackStats) -> StackTold:
    """Return a stack's numbers."""
    return StackTold.model_validate(found)


def frequency_told(found: IssueTotal) -> FrequencyTold:
    """Return an issue's numbers."""
    return FrequencyTold.model_validate(found)


def stack_issue_told(found: IssueFrequency) -> StackIssueTold:
    """Return an issue's numbers in one stack."""
    told = {name: getattr(found, name) for name in FrequencyTold.model_fields}
    runs = sorted(found.affected_runs, key=lambda run: (found.affected_runs[run], run), reverse=True)
    return StackIssueTold(**told, stack_id=found.stack_id, affected_runs=runs, fix_applied=found.fix_applied)


def issue_told(found: Issue) -> IssueTold:
    """Return an issue over all stacks."""
    told = {name: getattr(found.total, name) for name in FrequencyTold.model_fields}
    return IssueTold(**told, stacks=[stack_issue_told(each) for each in found.stacks])


def day_told(found: DayRisk) -> DayTold:
    """Return a day's numbers."""
    return DayTold.model_validate(found)


def moment_of(told: AwareDatetime | date | None, *, ends: bool = False) -> datetime | None:
    """Return the moment that a question means; a day begins at midnight in UTC and ends with its last microsecond."""
    if told is None or isinstance(told, datetime):
        return told
    return datetime.combine(told, time.max if ends else time.min, UTC)


def plain(value: Any) -> JsonValue:
    """Return a stored value as JSON can tell it: numbers as text with all their digits, bytes as their count."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, bytes | bytearray):
        return f"{len(value)} bytes"
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(each) for each in value), key=str)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return str(value)


def _summary(found: Review | ReviewVersion | ReviewSummary) -> dict[str, Any]:
    return {
        "review_id": found.review_id,
        "version": found.version,
        "stack_id": found.stack_id,
        "spacelift_run_id": found.run_id,
        "status": found.status,
        "status_since": found.status_since,
        "overall_risk_score": found.overall_risk_score,
        "risk_band": band_of(found.overall_risk_score),
        "found_risk_score": found.found_risk_score,
        "findings_total": found.findings_total,
        "high_findings": found.high_findings,
        "fix_applied": found.fix_applied,
        "created_at": found.created_at,
        "created_by": found.created_by,
        "updated_at": found.changed_at,
    }
