"""The JSON of the review history's REST interface: request bodies other than results, and responses.

Scores are JSON numbers with at most four places. Money is text with all its digits. Times are ISO 8601 in UTC. Requests with an
unknown field are refused, so that a misspelt field is not silently ignored.
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

from tavola.apps.terraform_review.domain import Category, RiskBand, Severity, Status, risk_band
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


def _check_date_format(value: Any) -> Any:
    """Refuse a bare number as a date or time, which pydantic would take for a Unix timestamp."""
    if isinstance(value, str) and not _DATE_PREFIX.match(value):
        raise ValueError("give a day such as 2026-11-16, or a moment such as 2026-11-16T07:30:00Z")
    return value


_DATE_PREFIX = re.compile(r"\d{4}-\d{2}-\d{2}")

Day = Annotated[date, BeforeValidator(_check_date_format)]
Moment = Annotated[AwareDatetime | date, BeforeValidator(_check_date_format)]  # a time, or a whole day


class ReviewResponseModel(BaseModel):
    """The base of the responses."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


# Requests.

Actor = Annotated[
    Id,
    Field(
        description="Who makes the change, for the audit trail. If a proxy authenticates callers, it must be the caller.",
        examples=["eng-03"],
    ),
]
Reason = Annotated[str, Field(max_length=1000, description="The reason, for the audit trail.")]


class AddVersionRequest(Assessment):
    """A new assessment, which becomes the review's next version."""

    changed_by: Actor
    why: Reason = ""
    spacelift_run_id: Annotated[Id | None, Field(description="The run, if it is another one.")] = None

    def assessment(self) -> Assessment:
        """Return the assessment without its author and reason."""
        return Assessment.model_construct(
            self.model_fields_set & Assessment.model_fields.keys(),
            **{name: getattr(self, name) for name in Assessment.model_fields},
        )


class ApplyFixRequest(FixRequest):
    """Fixes of current findings, which become the review's next version."""

    changed_by: Actor
    why: Reason = ""

    def fix(self) -> FixRequest:
        """Return the fixes without their author and reason."""
        return FixRequest.model_construct(
            self.model_fields_set & FixRequest.model_fields.keys(),
            **{name: getattr(self, name) for name in FixRequest.model_fields},
        )


class ChangeStatusRequest(BaseModel):
    """Another status of a review, pending or failed, which becomes its next version."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    status: Literal[Status.PENDING, Status.FAILED]
    changed_by: Actor
    why: Reason = ""
    error_details: Annotated[ErrorDetails | None, Field(description="Of a failed one.", examples=[None])] = (
        None
    )

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.error_details is not None and self.status is not Status.FAILED:
            raise ValueError("error_details are of a failed review; its status says otherwise")
        return self


# Responses.


class FindingCountsResponse(ReviewResponseModel):
    """The findings of one category, by severity."""

    total: int
    high: int
    medium: int
    low: int


class CodeResponse(ReviewResponseModel):
    """Facts about the code of a version; its text is at `code` below the review."""

    size: Annotated[int, Field(description="In bytes.")]
    sha256: str
    stored: Literal["item", "blob"]


class AppliedFixResponse(ReviewResponseModel):
    """One fix in the code."""

    finding_id: str
    fix_id: str | None
    original_code: str | None
    applied_code: str | None
    effectiveness_score: Score | None


class FixDetailsResponse(ReviewResponseModel):
    """A fix, and its effect."""

    fix_version: int
    previous_version: int
    fixes_applied: list[AppliedFixResponse]
    applied_at: datetime
    risk_reduction: Change | None
    findings_resolved: int
    findings_remaining: int


class CostResponse(ReviewResponseModel):
    """The estimated cost of the plan."""

    estimated_monthly_cost: Decimal
    estimated_annual_cost: Decimal | None
    resource_count: int


class ReviewSummaryResponse(ReviewResponseModel):
    """A review in a list."""

    review_id: str
    version: int
    stack_id: str
    spacelift_run_id: str
    status: Status
    status_since: datetime
    overall_risk_score: Annotated[Score | None, Field(description="null: unknown.")]
    risk_band: RiskBand | None
    found_risk_score: Annotated[Score | None, Field(description="The first known score, before fixes.")]
    findings_total: int
    high_findings: int
    fix_applied: bool
    created_at: datetime
    created_by: str
    updated_at: datetime


class ReviewResponse(ReviewSummaryResponse):
    """A version of a review, without its code and the texts of its findings."""

    previous_version: int | None
    changed_by: str
    reliability_score: Score | None
    security_findings: FindingCountsResponse
    cost_findings: FindingCountsResponse
    reliability_findings: FindingCountsResponse
    cost_analysis: CostResponse | None
    ai_review_result: dict[str, JsonValue]
    spacelift_context: SpaceliftContext
    fix_details: FixDetailsResponse | None
    error_details: ErrorDetails | None
    metadata: dict[str, JsonValue]
    code: CodeResponse
    expires_at: datetime | None


class FindingResponse(ReviewResponseModel):
    """A finding."""

    finding_id: str
    review_id: str
    stack_id: str
    spacelift_run_id: str
    version: Annotated[int, Field(description="The version that introduced it.")]
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


class DifferenceResponse(ReviewResponseModel):
    """A difference in one field; values are as stored, numbers as text."""

    path: str
    kind: Literal["added", "removed", "changed"]
    before: JsonValue = None
    after: JsonValue = None
    omitted: Annotated[
        bool, Field(description="The values are too long to be included; the versions hold them.")
    ]


class ComparisonResponse(ReviewResponseModel):
    """The differences between two versions."""

    review_id: str
    from_version: int
    to_version: int
    differences: list[DifferenceResponse]
    code: Annotated[
        str | None, Field(description="A unified diff of the code; null: too large to compare here.")
    ]


class AuditEntryResponse(ReviewResponseModel):
    """One entry of the audit trail."""

    review_id: str
    stack_id: str
    version: int
    kind: Literal["created", "changed", "restored"]
    actor: str
    at: datetime
    why: str
    differences: list[DifferenceResponse]
    seal: str | None


class TamperingResponse(ReviewResponseModel):
    """Something that is not as it was written."""

    version: int
    what: str


class VerificationResponse(ReviewResponseModel):
    """Whether a review and its history are as they were written."""

    intact: bool
    versions: int
    sealed_from: Annotated[int | None, Field(description="The first version with a seal.")]
    seal: Annotated[str | None, Field(description="Of the last change; store it elsewhere to compare later.")]
    problems: list[TamperingResponse]


class StackResponse(ReviewResponseModel):
    """The statistics of a stack's current reviews."""

    stack_id: str
    total_reviews: int
    assessed_reviews: Annotated[int, Field(description="Reviews with a known risk.")]
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


class IssueCountsResponse(ReviewResponseModel):
    """How often an issue occurred, and since when."""

    issue_hash: str
    category: Category
    title: str
    file_path: str
    occurrence_count: int
    open_count: Annotated[int, Field(description="Occurrences that current reviews still list.")]
    first_seen: datetime
    last_seen: datetime


class StackIssueResponse(IssueCountsResponse):
    """How often an issue occurred in one stack."""

    fix_applied: Annotated[
        bool, Field(description="Whether it was fixed and no current review of the stack lists it.")
    ]
    stack_id: str
    affected_runs: Annotated[list[str], Field(description="The latest runs it was found in, newest first.")]


class IssueResponse(IssueCountsResponse):
    """An issue over all stacks, and per stack."""

    stacks: list[StackIssueResponse]


class DayRiskResponse(ReviewResponseModel):
    """The risk of the reviews created on a day."""

    day: Day
    reviews: int
    assessed: Annotated[int, Field(description="Reviews with a known risk; the others are in no band.")]
    average_risk: Annotated[Score | None, Field(description="After fixes.")]
    average_found: Annotated[Score | None, Field(description="As first found, before fixes.")]
    high: int
    medium: int
    low: int
    pending: int
    failed: int
    fixed: int
    findings: int


class RiskTrendResponse(ReviewResponseModel):
    """The days of a range that have reviews, earliest first."""

    from_day: Day
    to_day: Day
    days: list[DayRiskResponse]


# Responses from entities.


def review_summary_response(summary: ReviewSummary) -> ReviewSummaryResponse:
    """Return the list entry of a review."""
    return ReviewSummaryResponse.model_construct(**_summary_fields(summary))


def review_response(review: Review | ReviewVersion) -> ReviewResponse:
    """Return the JSON of a version."""
    fix = review.fix_details
    cost = review.cost_analysis
    return ReviewResponse(
        **_summary_fields(review),
        previous_version=review.previous_version,
        changed_by=review.changed_by,
        reliability_score=review.reliability_score,
        security_findings=FindingCountsResponse.model_validate(review.security_findings),
        cost_findings=FindingCountsResponse.model_validate(review.cost_findings),
        reliability_findings=FindingCountsResponse.model_validate(review.reliability_findings),
        cost_analysis=None if cost is None else CostResponse.model_validate(cost),
        ai_review_result=review.ai_review_result,
        spacelift_context=review.context,
        fix_details=None if fix is None else FixDetailsResponse.model_validate(fix),
        error_details=review.error_details,
        metadata=review.metadata,
        code=CodeResponse(
            size=review.code.size,
            sha256=review.code.sha256,
            stored="item" if review.code.place is None else "blob",
        ),
        expires_at=review.expires_at,
    )


def finding_response(finding: Finding) -> FindingResponse:
    """Return the JSON of a finding."""
    names = FindingResponse.model_fields.keys() - {"spacelift_run_id"}
    return FindingResponse.model_construct(
        spacelift_run_id=finding.run_id, **{name: getattr(finding, name) for name in names}
    )


def difference_response(difference: Difference) -> DifferenceResponse:
    """Return the JSON of a difference."""
    return DifferenceResponse(
        path=difference.path,
        kind=difference.kind,
        before=to_json_value(difference.before),
        after=to_json_value(difference.after),
        omitted=difference.omitted,
    )


def audit_entry_response(entry: ReviewAudit) -> AuditEntryResponse:
    """Return the JSON of an audit entry."""
    return AuditEntryResponse(
        review_id=entry.review_id,
        stack_id=entry.stack_id,
        version=entry.version,
        kind=entry.kind,
        actor=entry.actor,
        at=entry.at,
        why=entry.why,
        differences=[difference_response(each) for each in entry.differences],
        seal=entry.chain_digest,
    )


def verification_response(verification: Verification) -> VerificationResponse:
    """Return the JSON of a verification."""
    return VerificationResponse(
        intact=bool(verification),
        versions=verification.versions,
        sealed_from=verification.chained_from,
        seal=verification.chain_digest,
        problems=[TamperingResponse.model_validate(each) for each in verification.problems],
    )


def stack_response(stats: StackStats) -> StackResponse:
    """Return the JSON of a stack's statistics."""
    return StackResponse.model_validate(stats)


def issue_counts_response(total: IssueTotal) -> IssueCountsResponse:
    """Return the JSON of an issue's counts."""
    return IssueCountsResponse.model_validate(total)


def stack_issue_response(frequency: IssueFrequency) -> StackIssueResponse:
    """Return the JSON of an issue's counts in one stack."""
    counts = {name: getattr(frequency, name) for name in IssueCountsResponse.model_fields}
    runs = sorted(frequency.affected_runs, key=lambda run: (frequency.affected_runs[run], run), reverse=True)
    return StackIssueResponse(
        **counts, stack_id=frequency.stack_id, affected_runs=runs, fix_applied=frequency.fix_applied
    )


def issue_response(issue: Issue) -> IssueResponse:
    """Return the JSON of an issue over all stacks."""
    counts = {name: getattr(issue.total, name) for name in IssueCountsResponse.model_fields}
    return IssueResponse(**counts, stacks=[stack_issue_response(each) for each in issue.stacks])


def day_risk_response(day: DayRisk) -> DayRiskResponse:
    """Return the JSON of a day's risk."""
    return DayRiskResponse.model_validate(day)


def to_datetime(value: AwareDatetime | date | None, *, ends: bool = False) -> datetime | None:
    """Return the time that a parameter means; a day starts at midnight UTC and ends with its last microsecond."""
    if value is None or isinstance(value, datetime):
        return value
    return datetime.combine(value, time.max if ends else time.min, UTC)


def to_json_value(value: Any) -> JsonValue:
    """Return a stored value as JSON: numbers as text with all their digits, bytes as their length."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, bytes | bytearray):
        return f"{len(value)} bytes"
    if isinstance(value, dict):
        return {str(name): to_json_value(each) for name, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((to_json_value(each) for each in value), key=str)
    if isinstance(value, list | tuple):
        return [to_json_value(each) for each in value]
    return str(value)


def _summary_fields(review: Review | ReviewVersion | ReviewSummary) -> dict[str, Any]:
    return {
        "review_id": review.review_id,
        "version": review.version,
        "stack_id": review.stack_id,
        "spacelift_run_id": review.run_id,
        "status": review.status,
        "status_since": review.status_since,
        "overall_risk_score": review.overall_risk_score,
        "risk_band": risk_band(review.overall_risk_score),
        "found_risk_score": review.found_risk_score,
        "findings_total": review.findings_total,
        "high_findings": review.high_findings,
        "fix_applied": review.fix_applied,
        "created_at": review.created_at,
        "created_by": review.created_by,
        "updated_at": review.changed_at,
    }
