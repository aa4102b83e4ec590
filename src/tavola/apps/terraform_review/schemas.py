"""The JSON of the review history's REST interface: request bodies other than results, and responses.

Scores are JSON numbers with at most four places. Money is text with all its digits. Times are ISO 8601 in UTC. Requests with an
unknown field are refused, so that a misspelt field is not silently ignored.
"""

from __future__ import annotations

import operator
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

from tavola.apps.terraform_review.domain import Category, FindingSeverity, ReviewStatus, RiskBand
from tavola.apps.terraform_review.results import Assessment, ErrorDetails, FixRequest, Id, SpaceliftContext

Score = Annotated[
    Decimal,
    PlainSerializer(float, return_type=float, when_used="json"),
    Field(json_schema_extra={"minimum": 0, "maximum": 1}),
]
Change = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]


def _check_date_format(value: Any) -> Any:
    """Refuse a bare number as a date or time, which pydantic would take for a Unix timestamp."""
    if isinstance(value, str) and not _DATE_PREFIX.match(value):
        raise ValueError("use a date such as 2026-11-16, or a time such as 2026-11-16T07:30:00Z")
    return value


_DATE_PREFIX = re.compile(r"\d{4}-\d{2}-\d{2}")


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
        return {str(name): to_json_value(member) for name, member in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((to_json_value(element) for element in value), key=str)
    if isinstance(value, list | tuple):
        return [to_json_value(element) for element in value]
    return str(value)


Day = Annotated[date, BeforeValidator(_check_date_format)]
Moment = Annotated[AwareDatetime | date, BeforeValidator(_check_date_format)]  # a time, or a whole day
StoredValue = Annotated[JsonValue, BeforeValidator(to_json_value)]


class ReviewResponseModel(BaseModel):
    """The base of the responses: `model_validate` reads one from the entity that it shows."""

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


class ChangeRequest(BaseModel):
    """What every change of a review states."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    changed_by: Actor
    why: Reason = ""


class AddVersionRequest(ChangeRequest, Assessment):
    """A new assessment, which becomes the review's next version."""

    spacelift_run_id: Annotated[Id | None, Field(description="The run, if it is another one.")] = None

    def assessment(self) -> Assessment:
        """Return the assessment without its author and reason."""
        return Assessment.model_construct(
            self.model_fields_set & Assessment.model_fields.keys(),
            **{name: getattr(self, name) for name in Assessment.model_fields},
        )


class ApplyFixRequest(ChangeRequest, FixRequest):
    """Fixes of current findings, which become the review's next version."""

    def fix(self) -> FixRequest:
        """Return the fixes without their author and reason."""
        return FixRequest.model_construct(
            self.model_fields_set & FixRequest.model_fields.keys(),
            **{name: getattr(self, name) for name in FixRequest.model_fields},
        )


class ChangeStatusRequest(ChangeRequest):
    """Another status of a review, pending or failed, which becomes its next version."""

    status: Literal[ReviewStatus.PENDING, ReviewStatus.FAILED]
    error_details: Annotated[
        ErrorDetails | None, Field(description="For a failed review.", examples=[None])
    ] = None

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.error_details is not None and self.status is not ReviewStatus.FAILED:
            raise ValueError("error_details require the status failed")
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
    stored: Annotated[
        Literal["item", "blob"],
        Field(validation_alias="place"),
        BeforeValidator(lambda place: "item" if place is None else "blob"),
    ]


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
    spacelift_run_id: Annotated[str, Field(validation_alias="run_id")]
    status: ReviewStatus
    status_since: datetime
    overall_risk_score: Annotated[Score | None, Field(description="null: unknown.")]
    risk_band: Annotated[RiskBand | None, Field(validation_alias="band")]
    found_risk_score: Annotated[Score | None, Field(description="The first known score, before fixes.")]
    findings_total: int
    high_findings: int
    fix_applied: bool
    created_at: datetime
    created_by: str
    updated_at: Annotated[datetime, Field(validation_alias="changed_at")]


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
    spacelift_context: Annotated[SpaceliftContext, Field(validation_alias="context")]
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
    spacelift_run_id: Annotated[str, Field(validation_alias="run_id")]
    version: Annotated[int, Field(description="The version that introduced it.")]
    category: Category
    severity: FindingSeverity
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
    before: StoredValue = None
    after: StoredValue = None
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
    digest: Annotated[str | None, Field(validation_alias="chain_digest")]


class TamperingResponse(ReviewResponseModel):
    """Something that is not as it was written."""

    version: int
    what: str


class VerificationResponse(ReviewResponseModel):
    """Whether a review and its history are as they were written."""

    intact: Annotated[bool, Field(validation_alias="problems"), BeforeValidator(operator.not_)]
    versions: int
    digests_from: Annotated[
        int | None, Field(validation_alias="chained_from", description="The first version with a digest.")
    ]
    digest: Annotated[
        str | None,
        Field(
            validation_alias="chain_digest",
            description="Digest of the last change; store it elsewhere to compare later.",
        ),
    ]
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
    affected_runs: Annotated[
        list[str],
        Field(validation_alias="latest_runs", description="The latest runs it was found in, newest first."),
    ]


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
