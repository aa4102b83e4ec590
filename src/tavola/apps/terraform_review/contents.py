"""What a review says: the fields that the current one and its versions share, and the documents in them."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from pydantic import BaseModel, ConfigDict, JsonValue

from tavola import Attr, attr
from tavola.apps.terraform_review.domain import Band, Category, Severity, Status, band_of
from tavola.apps.terraform_review.results import AppliedFix, CostAnalysis, ErrorDetails, SpaceliftContext
from tavola.patterns import Blob, Versioned


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class FindingCounts(_Part):
    """The findings of one category, by severity."""

    total: int = 0
    high: int = 0
    medium: int = 0
    low: int = 0


class FindingRef(_Part):
    """A finding as a version names it; the whole of it is a `Finding`."""

    issue_hash: str
    category: Category
    severity: Severity
    title: str
    seal: str  # the digest of the `Finding`: sealed with the version, so that what is altered there shows


class FixDetails(_Part):
    """What a fix was, and what it came to."""

    fix_version: int
    previous_version: int
    fixes_applied: list[AppliedFix]
    applied_at: datetime
    risk_reduction: Decimal | None
    findings_resolved: int
    findings_remaining: int
    resolved: dict[str, FindingRef]  # the findings that are no more, by their ids


class ReviewFields(Versioned):
    """What the current review and its versions both say."""

    version: Attr[int] = attr(name="Version", default=0)
    changed_at: Attr[datetime] = attr(name="UpdatedAt", default=Versioned.model_fields["changed_at"].default)
    changed_by: Attr[str] = attr(name="ChangedBy", default="")
    seal: Attr[str | None] = attr(name="Seal", default=None)
    review_id: Attr[str] = attr(name="ReviewId")
    run_id: Attr[str] = attr(name="SpaceliftRunId")
    stack_id: Attr[str] = attr(name="StackId")
    code: Attr[Blob] = attr(name="TerraformCode")
    status: Attr[Status] = attr(name="Status")
    status_since: Attr[datetime] = attr(name="StatusSince")
    overall_risk_score: Attr[Decimal | None] = attr(name="OverallRiskScore", default=None)
    found_risk_score: Attr[Decimal | None] = attr(
        name="FoundRiskScore", default=None
    )  # the first that was known
    findings: Attr[dict[str, FindingRef]] = attr(name="Findings", default_factory=dict)
    findings_total: Attr[int] = attr(name="FindingsTotal", default=0)
    high_findings: Attr[int] = attr(name="HighFindings", default=0)
    security_findings: Attr[FindingCounts] = attr(name="SecurityFindings", default=FindingCounts())
    cost_findings: Attr[FindingCounts] = attr(name="CostFindings", default=FindingCounts())
    reliability_findings: Attr[FindingCounts] = attr(name="ReliabilityFindings", default=FindingCounts())
    more_findings: Attr[Blob | None] = attr(
        name="MoreFindings", default=None
    )  # what one transaction did not hold
    cost_analysis: Attr[CostAnalysis | None] = attr(name="CostAnalysis", default=None)
    reliability_score: Attr[Decimal | None] = attr(name="ReliabilityScore", default=None)
    ai_review_result: Attr[dict[str, JsonValue]] = attr(name="AIReviewResult", default_factory=dict)
    context: Attr[SpaceliftContext] = attr(name="SpaceliftContext", default=SpaceliftContext())
    fix_applied: Attr[bool] = attr(name="FixApplied", default=False)
    fix_details: Attr[FixDetails | None] = attr(name="FixDetails", default=None)
    error_details: Attr[ErrorDetails | None] = attr(name="ErrorDetails", default=None)
    metadata: Attr[dict[str, JsonValue]] = attr(name="Metadata", default_factory=dict)
    created_at: Attr[datetime] = attr(name="CreatedAt")
    created_on: Attr[date] = attr(name="CreatedOn")
    created_by: Attr[str] = attr(name="CreatedBy")
    recorded: Attr[str | None] = attr(
        name="Recorded", default=None
    )  # the digest of the result it was made of
    expires_at: Attr[datetime | None] = attr(name="TTL", default=None)

    @property
    def previous_version(self) -> int | None:
        """The number of the version before this one, None of the first."""
        return self.version - 1 if self.version > 1 else None

    @property
    def band(self) -> Band | None:
        """The band of its risk, None where that is unknown."""
        return band_of(self.overall_risk_score)
