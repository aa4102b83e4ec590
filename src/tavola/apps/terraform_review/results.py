"""Review results: the JSON that a reviewer submits: a run, its code, findings and cost.

The same models are posted, ingested from files and built by analysers. Numbers are decimals from the start, so that no digit is
lost before they are stored.
"""

from __future__ import annotations

from decimal import Decimal
from math import isfinite
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

from tavola.apps.terraform_review.domain import FINDINGS_MAX, Category, FindingSeverity, ReviewStatus

CODE_CHARACTERS_MAX = 20_000_000
FINDING_NAMES_BYTES_MAX = (
    100_000  # of a version's finding titles and ids, which are in its item; an item holds 400 KB
)
FIXES_BYTES_MAX = 100_000  # of the code in a version's fixes
LEVELS_MAX = 28  # an item may have 32, of which a review uses some

# Ids are parts of URL paths, so they contain no slashes or control characters and do not begin with a dot.
Id = Annotated[
    str, Field(min_length=1, max_length=200, pattern=r"^[^/\\\x00-\x1f\x7f.][^/\\\x00-\x1f\x7f]*$")
]
Score = Annotated[Decimal, Field(ge=0, le=1, max_digits=30)]
Money = Annotated[Decimal, Field(ge=0, max_digits=30)]
Words = Annotated[str, Field(max_length=4000)]


def _check_document(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a document if a table can store it: numbers of 38 digits, no empty names, limited nesting."""
    _check_storable(value, 1)
    return value


def _check_storable(value: JsonValue, depth: int) -> None:
    if depth > LEVELS_MAX:
        raise ValueError(f"nested deeper than {LEVELS_MAX} levels")
    if isinstance(value, float) and value and not (isfinite(value) and 1e-120 < abs(value) < 1e120):
        raise ValueError("a number is not finite or out of range; send it as a string")
    if isinstance(value, int) and abs(value) >= 10**38:
        raise ValueError("a number has more than 38 digits; send it as a string")
    if isinstance(value, dict):
        if "" in value:
            raise ValueError("a name is empty")
        for member in value.values():
            _check_storable(member, depth + 1)
    elif isinstance(value, list):
        for member in value:
            _check_storable(member, depth + 1)


Document = Annotated[dict[str, JsonValue], AfterValidator(_check_document)]


class _Submission(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FindingResult(_Submission):
    """A submitted finding."""

    finding_id: Id | None = None  # default: derived from the review and the finding's position
    category: Category
    severity: FindingSeverity
    title: Annotated[str, Field(min_length=1, max_length=300)]
    description: Words = ""
    line_number: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    file_path: Annotated[str, Field(max_length=1000)] = ""
    recommendation: Words = ""
    confidence_score: Score | None = None
    estimated_cost_impact: Annotated[Decimal, Field(max_digits=30)] | None = None
    rule_id: Annotated[str, Field(max_length=200)] | None = None  # of the analyser, such as CKV_AWS_20


class CostAnalysis(_Submission):
    """The estimated cost of the plan."""

    estimated_monthly_cost: Money
    estimated_annual_cost: Money | None = None
    resource_count: Annotated[int, Field(ge=0, le=10**9)] = 0


class SpaceliftContext(_Submission):
    """Where the code came from."""

    status: Annotated[str, Field(max_length=200)] | None = None
    previous_status: Annotated[str, Field(max_length=200)] | None = None
    changed_files: Annotated[tuple[Annotated[str, Field(max_length=1000)], ...], Field(max_length=500)] = ()
    commit_sha: Annotated[str, Field(max_length=200)] | None = None
    branch: Annotated[str, Field(max_length=500)] | None = None


class ErrorDetails(_Submission):
    """Why a review failed."""

    error_type: Annotated[str, Field(min_length=1, max_length=200)]
    error_message: Words = ""
    error_code: Annotated[str, Field(max_length=200)] | None = None
    retry_after: Annotated[int, Field(ge=0, le=10**9)] | None = None  # seconds
    stack_trace: Annotated[str, Field(max_length=20_000)] | None = None


class Assessment(_Submission):
    """A reviewer's assessment of some code; each becomes a version of a review."""

    status: ReviewStatus = ReviewStatus.COMPLETED
    terraform_code: Annotated[str, Field(max_length=CODE_CHARACTERS_MAX)] | None = None  # None: unchanged
    overall_risk_score: Score | None = None
    reliability_score: Score | None = None
    findings: Annotated[tuple[FindingResult, ...], Field(max_length=FINDINGS_MAX)] = ()
    cost_analysis: CostAnalysis | None = None
    ai_review_result: Document = Field(default_factory=dict)
    error_details: Annotated[
        ErrorDetails | None, Field(description="For a failed review.", examples=[None])
    ] = None
    metadata: Document = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.status is ReviewStatus.FAILED and self.overall_risk_score is not None:
            raise ValueError("a failed review must not have an overall_risk_score")
        if self.error_details is not None and self.status is not ReviewStatus.FAILED:
            raise ValueError("error_details require the status failed")
        names_bytes = sum(
            len(f"{finding.finding_id or ''}{finding.title}".encode()) for finding in self.findings
        )
        if names_bytes > FINDING_NAMES_BYTES_MAX:
            raise ValueError(
                f"the titles and IDs of the findings have {names_bytes:,} bytes, more than the limit of {FINDING_NAMES_BYTES_MAX:,}; shorten the titles"
            )
        ids = [finding.finding_id for finding in self.findings if finding.finding_id is not None]
        if len(ids) != len(set(ids)):
            raise ValueError("two findings have the same finding_id")
        return self


class ReviewResult(Assessment):
    """A review of a run, as `service.record_review` takes it."""

    spacelift_run_id: Id
    stack_id: Id
    created_by: Id
    spacelift_context: SpaceliftContext = SpaceliftContext()


class AppliedFix(_Submission):
    """One fix in the code."""

    finding_id: Id
    fix_id: Id | None = None
    original_code: Annotated[str, Field(max_length=50_000)] | None = None
    applied_code: Annotated[str, Field(max_length=50_000)] | None = None
    effectiveness_score: Score | None = None


class FixRequest(_Submission):
    """Fixes of findings in a review's current version, and the assessment of the fixed code."""

    fixes_applied: Annotated[tuple[AppliedFix, ...], Field(min_length=1, max_length=500)]
    terraform_code: Annotated[str, Field(max_length=CODE_CHARACTERS_MAX)] | None = None
    overall_risk_score: Score | None = None  # None: unknown
    reliability_score: Score | None = None
    spacelift_run_id: Id | None = None  # the run that applied the fix, if it is another one
    metadata: Document = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        code_bytes = sum(
            len(f"{fix.original_code or ''}{fix.applied_code or ''}".encode()) for fix in self.fixes_applied
        )
        if code_bytes > FIXES_BYTES_MAX:
            raise ValueError(
                f"the code in the fixes has {code_bytes:,} bytes, more than the limit of {FIXES_BYTES_MAX:,}; include only the changed lines, "
                "and the full code as terraform_code"
            )
        return self
