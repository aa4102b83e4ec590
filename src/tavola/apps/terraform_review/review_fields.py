"""ReviewFields: the attributes that the current review and its versions share, and the documents in them."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from pydantic import BaseModel, ConfigDict, JsonValue

from tavola import Attr, attr
from tavola.apps.terraform_review.domain import Category, FindingSeverity, ReviewStatus, RiskBand, risk_band
from tavola.apps.terraform_review.results import AppliedFix, CostAnalysis, ErrorDetails, SpaceliftContext
from tavola.patterns import Blob, Versioned


class _StoredDocument(BaseModel):
    model_config = ConfigDict(frozen=True)


class CategoryCounts(_StoredDocument):
    """The findings of one category, by severity."""

    total: int = 0
    high: int = 0
    medium: int = 0
    low: int = 0


class FindingRef(_StoredDocument):
    """A finding in the list of a version; the complete finding is a `ReviewFinding` item."""

    issue_hash: str
    category: Category
    severity: FindingSeverity
    title: str
    digest: str  # of the `ReviewFinding`, covered by the version's own, so that alterations are detected


class FixDetails(_StoredDocument):
    """A fix, and its effect."""

    fix_version: int
    previous_version: int
    fixes_applied: list[AppliedFix]
    applied_at: datetime
    risk_reduction: Decimal | None
    findings_resolved: int
    findings_remaining: int
    resolved: dict[str, FindingRef]  # the resolved findings, by id


class ReviewFields(Versioned):
    """The attributes of a review and of each of its versions."""

    version: Attr[int] = attr(name="Version", default=0)
    changed_at: Attr[datetime] = attr(name="UpdatedAt", default=Versioned.model_fields["changed_at"].default)
    changed_by: Attr[str] = attr(name="ChangedBy", default="")
    chain_digest: Attr[str | None] = attr(name="ChainDigest", default=None)
    review_id: Attr[str] = attr(name="ReviewId")
    run_id: Attr[str] = attr(name="SpaceliftRunId")
    stack_id: Attr[str] = attr(name="StackId")
    code: Attr[Blob] = attr(name="TerraformCode")
    status: Attr[ReviewStatus] = attr(name="Status")
    status_since: Attr[datetime] = attr(name="StatusSince")
    overall_risk_score: Attr[Decimal | None] = attr(name="OverallRiskScore", default=None)
    # The first known score, before fixes
    found_risk_score: Attr[Decimal | None] = attr(name="FoundRiskScore", default=None)
    findings: Attr[dict[str, FindingRef]] = attr(name="Findings", default_factory=dict)
    findings_total: Attr[int] = attr(name="FindingsTotal", default=0)
    high_findings: Attr[int] = attr(name="HighFindings", default=0)
    security_findings: Attr[CategoryCounts] = attr(name="SecurityFindings", default=CategoryCounts())
    cost_findings: Attr[CategoryCounts] = attr(name="CostFindings", default=CategoryCounts())
    reliability_findings: Attr[CategoryCounts] = attr(name="ReliabilityFindings", default=CategoryCounts())
    # Findings that did not fit into the version's transaction
    more_findings: Attr[Blob | None] = attr(name="MoreFindings", default=None)
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
    recorded: Attr[str | None] = attr(name="Recorded", default=None)  # the digest of the recorded result
    expires_at: Attr[datetime | None] = attr(name="TTL", default=None)

    @property
    def previous_version(self) -> int | None:
        """The number of the previous version; None for the first."""
        return self.version - 1 if self.version > 1 else None

    @property
    def band(self) -> RiskBand | None:
        """The band of the risk; None if it is unknown."""
        return risk_band(self.overall_risk_score)
