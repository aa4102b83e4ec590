"""The table of the review history: its items, indexes and access patterns.

There are two kinds of items, with different partition keys. **Immutable items** are created once: versions and audit entries
(`HISTORY#`), findings (`FINDING#`), links from runs (`RUN#`). **Derived items** are replaced: the current review (`REVIEW#`), statistics of a
stack (`STACK#`), frequencies of an issue (`ISSUE#`), days (`DAYS`), marks of the projector (`MARK#`). The policy that protects
the immutable items names the same prefixes, see `policies`.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from tavola import (
    AccessPattern,
    Attr,
    Consumer,
    Entity,
    Gsi,
    PrimaryKey,
    Query,
    Sort,
    Table,
    WritePattern,
    attr,
    sort,
)
from tavola.apps.terraform_review.domain import Category, FindingSeverity, ReviewStatus, RiskBand, risk_band
from tavola.apps.terraform_review.review_fields import ReviewFields
from tavola.patterns import AuditEntry, Outcome, ProjectionMark, stored_digest

IMMUTABLE_PREFIXES = ("HISTORY#", "FINDING#", "RUN#")
STATUS_SHARDS = 4
DIGEST_CHARACTERS = 32  # of a finding's digest, in the versions that list it
RUNS_MAX = 20  # latest runs that an issue keeps

_SUMMARY = (
    "ReviewId", "StackId", "SpaceliftRunId", "Status", "OverallRiskScore", "FoundRiskScore", "FindingsTotal",
    "HighFindings", "FixApplied", "StatusSince", "CreatedAt", "CreatedBy", "Version", "UpdatedAt", "EntityType", "TTL",
)  # fmt: skip


def table_name(environment: str = "dev") -> str:
    """Return the table's name in an environment, for `table_names=` of a connection."""
    return f"terraform-spacelift-ai-reviewer-reviews-{environment}"


_COUNT_FIELDS = ("occurrence_count", "open_count", "last_seen", "updated_at", "revision")
_COUNTED = {"EntityType": {"S": ["REVIEW", "REVIEW_VERSION", "FINDING"]}}
# tavola: ignore[recursive-consumer] a finding is written once, if it is missing, and only changes counts
STATISTICS = Consumer(  # for a Lambda function; of its own writes, only findings pass the filters
    "statistics",
    handler="review_statistics.handler",
    batch_size=100,
    window_s=5,
    bisect=True,
    retries=3,
    report_batch_item_failures=True,
    returns_batch_item_failures=True,
    filters=(
        {"dynamodb": {"NewImage": _COUNTED}},
        {"eventName": ["REMOVE"], "dynamodb": {"OldImage": _COUNTED}},
    ),
    failures="sqs",
    needs_old=True,
    writes=("StackStats", "IssueFrequency", "IssueTotal", "DayRisk", "StatisticsMark", "ReviewFinding"),
    idempotent=True,  # the transaction that counts a record also writes its mark
)


class Reviews(
    Table,
    name=table_name(),
    pk="PK",
    sk="SK",
    tag="EntityType",
    ttl="TTL",
    stream="NEW_AND_OLD_IMAGES",
    recovery=True,
    recovery_days=35,
    consumers=(STATISTICS,),
):
    """Everything in one table, which is backed up, restored and expires together."""

    stack_history = Gsi(name="GSI1", pk="GSI1PK", sk="GSI1SK", projection=_SUMMARY)
    risk = Gsi(name="GSI2", pk="GSI2PK", sk="GSI2SK", projection=_SUMMARY)
    issues = Gsi(name="GSI3", pk="GSI3PK", sk="GSI3SK")
    status = Gsi(name="GSI4", pk="GSI4PK", sk="GSI4SK", projection=_SUMMARY)


class ReviewSummary(Entity):
    """A review in a list: the attributes that the indexes project."""

    review_id: Attr[str] = attr(name="ReviewId")
    stack_id: Attr[str] = attr(name="StackId")
    run_id: Attr[str] = attr(name="SpaceliftRunId")
    status: Attr[ReviewStatus] = attr(name="Status")
    status_since: Attr[datetime] = attr(name="StatusSince")
    overall_risk_score: Attr[Decimal | None] = attr(name="OverallRiskScore", default=None)
    found_risk_score: Attr[Decimal | None] = attr(name="FoundRiskScore", default=None)
    findings_total: Attr[int] = attr(name="FindingsTotal", default=0)
    high_findings: Attr[int] = attr(name="HighFindings", default=0)
    fix_applied: Attr[bool] = attr(name="FixApplied", default=False)
    created_at: Attr[datetime] = attr(name="CreatedAt")
    created_by: Attr[str] = attr(name="CreatedBy")
    version: Attr[int] = attr(name="Version")
    changed_at: Attr[datetime] = attr(name="UpdatedAt")

    @property
    def band(self) -> RiskBand | None:
        """The band of the risk; None if it is unknown."""
        return risk_band(self.overall_risk_score)


class Review(
    ReviewFields,
    table=Reviews,
    tag="REVIEW",
    writes=(
        WritePattern("record a review", "put", per_second=2, item_bytes=4000, transactional=True),
        WritePattern(
            "add a version to a review",
            "put",
            changes=("status", "status_since", "overall_risk_score", "version", "changed_at"),
            per_second=2,
            item_bytes=4000,
            transactional=True,
        ),
    ),
    items=100_000,
):
    """The current version of each review, and the only one in indexes."""

    class Key(
        PrimaryKey["Review"],
        pk="REVIEW#{review_id}",
        sk="CURRENT",
        access=AccessPattern("a review's latest version", per_second=20, item_bytes=4000, consistent=True),
    ):
        review_id: str

    class ByStack(
        Query["ReviewSummary"],
        on=Reviews.stack_history,
        pk="STACK#{stack_id}",
        sk="CREATED#{created_at}#{review_id}",
        access=AccessPattern(
            "a stack's reviews by time, newest first", per_second=10, items=20, item_bytes=500
        ),
    ):
        stack_id: str
        created_at: Sort[datetime] = sort()

    class ByRisk(
        Query["ReviewSummary"],
        on=Reviews.risk,
        pk="RISK#{created_on}",
        sk="{overall_risk_score:1.4}#{review_id}",
        sparse=True,  # reviews of unknown risk are not in this index
        access=AccessPattern("a day's reviews from some risk on", per_second=2, items=20, item_bytes=500),
    ):
        created_on: date
        overall_risk_score: Sort[Decimal] = sort()

    class ByStatus(
        Query["ReviewSummary"],
        on=Reviews.status,
        pk="STATUS#{status}",
        sk="SINCE#{status_since}#{review_id}",
        shards=STATUS_SHARDS,
        access=AccessPattern("reviews of a status, by when it began", per_second=5, items=20, item_bytes=500),
    ):
        status: ReviewStatus
        status_since: Sort[datetime] = sort()


class ReviewVersion(
    ReviewFields,
    table=Reviews,
    tag="REVIEW_VERSION",
    immutable=True,
    writes=(WritePattern("store a version", "put", per_second=4, item_bytes=4000, transactional=True),),
    items=250_000,
):
    """One version of a review; it never changes."""

    class Key(
        PrimaryKey["ReviewVersion"],
        pk="HISTORY#{review_id}",
        sk="VERSION#{version}",
        access=AccessPattern("one version of a review", per_second=2, item_bytes=4000, consistent=True),
    ):
        review_id: str
        version: int

    class ByVersion(
        Query["ReviewVersion"],
        on=Key,
        access=AccessPattern(
            "all versions of a review", per_second=2, items=3, item_bytes=4000, consistent=True
        ),
    ):
        review_id: str
        version: Sort[int] = sort()


class ReviewAudit(
    AuditEntry,
    table=Reviews,
    tag="REVIEW_AUDIT",
    writes=(WritePattern("write an audit entry", "put", per_second=4, item_bytes=900, transactional=True),),
    items=250_000,
):
    """Who wrote a version, when and why, and the differences from the version before."""

    review_id: Attr[str] = attr(name="ReviewId")
    stack_id: Attr[str] = attr(name="StackId")
    expires_at: Attr[datetime | None] = attr(name="TTL", default=None)

    class Key(PrimaryKey["ReviewAudit"], pk="HISTORY#{review_id}", sk="AUDIT#{version}"):
        review_id: str
        version: int

    class ByVersion(
        Query["ReviewAudit"],
        on=Key,
        access=AccessPattern(
            "a review's audit trail", per_second=1, items=3, item_bytes=900, consistent=True
        ),
    ):
        review_id: str
        version: Sort[int] = sort()

    class ByActor(
        Query["ReviewAudit"],
        on=Reviews.status,
        pk="ACTOR#{actor}",
        sk="AT#{at}#{review_id}",
        hydrate=True,
        access=AccessPattern("the changes of a person", per_second=0.2, items=20, item_bytes=900),
    ):
        actor: str
        at: Sort[datetime] = sort()


class ReviewFinding(
    Entity,
    table=Reviews,
    tag="FINDING",
    immutable=True,
    writes=(WritePattern("store a finding", "put", per_second=12, item_bytes=700, transactional=True),),
    items=600_000,
):
    """A finding of a review; it never changes."""

    finding_id: Attr[str] = attr(name="FindingId")
    review_id: Attr[str] = attr(name="ReviewId")
    stack_id: Attr[str] = attr(name="StackId")
    run_id: Attr[str] = attr(name="SpaceliftRunId")
    version: Attr[int] = attr(name="Version")  # that introduced it
    category: Attr[Category] = attr(name="Category")
    severity: Attr[FindingSeverity] = attr(name="Severity")
    title: Attr[str] = attr(name="Title")
    description: Attr[str] = attr(name="Description", default="")
    line_number: Attr[int | None] = attr(name="LineNumber", default=None)
    file_path: Attr[str] = attr(name="FilePath", default="")
    recommendation: Attr[str] = attr(name="Recommendation", default="")
    issue_hash: Attr[str] = attr(name="IssueHash")
    confidence_score: Attr[Decimal | None] = attr(name="ConfidenceScore", default=None)
    estimated_cost_impact: Attr[Decimal | None] = attr(name="EstimatedCostImpact", default=None)
    rule_id: Attr[str | None] = attr(name="RuleId", default=None)
    created_at: Attr[datetime] = attr(name="CreatedAt")
    expires_at: Attr[datetime | None] = attr(name="TTL", default=None)

    class Key(
        PrimaryKey["ReviewFinding"],
        pk="FINDING#{finding_id}",
        sk="REVIEW#{review_id}",
        access=AccessPattern("a review's findings, by their ids", per_second=10, items=6, item_bytes=700),
    ):
        finding_id: str
        review_id: str

    def digest(self) -> str:
        """Return a digest of the attributes as stored, to detect alterations."""
        return stored_digest(self)[:DIGEST_CHARACTERS]

    class Occurrences(
        Query["ReviewFinding"],
        on=Reviews.issues,
        pk="ISSUE#{issue_hash}",
        sk="CREATED#{created_at}#{review_id}",
        access=AccessPattern("all occurrences of an issue", per_second=1, items=50, item_bytes=700),
    ):
        issue_hash: str
        created_at: Sort[datetime] = sort()


class RunReview(
    Entity,
    table=Reviews,
    tag="RUN_REVIEW",
    immutable=True,
    writes=(
        WritePattern("link a run to its review", "put", per_second=4, item_bytes=250, transactional=True),
    ),
    items=250_000,
):
    """A link from a run to a version that names it; the review of a run is found with it."""

    run_id: Attr[str] = attr(name="SpaceliftRunId")
    review_id: Attr[str] = attr(name="ReviewId")
    version: Attr[int] = attr(name="Version")
    created_at: Attr[datetime] = attr(name="CreatedAt")
    expires_at: Attr[datetime | None] = attr(name="TTL", default=None)

    class Key(PrimaryKey["RunReview"], pk="RUN#{run_id}", sk="CREATED#{created_at}#{review_id}#{version}"):
        run_id: str
        created_at: datetime
        review_id: str
        version: int

    class OfRun(
        Query["RunReview"],
        on=Key,
        access=AccessPattern(
            "the latest review of a run", per_second=5, items=1, item_bytes=250, consistent=True
        ),
    ):
        run_id: str
        created_at: Sort[datetime] = sort()


# Statistics, maintained by the projector.


class StackStats(
    Entity,
    table=Reviews,
    tag="STACK_STATS",
    writes=(
        WritePattern(
            "update a stack's statistics",
            "put",
            changes=("total_reviews", "risk_sum", "last_review_at", "updated_at", "revision"),
            per_second=4,
            item_bytes=450,
            transactional=True,
        ),
    ),
    items=500,
):
    """The statistics of a stack's current reviews."""

    stack_id: Attr[str] = attr(name="StackId")
    total_reviews: Attr[int] = attr(name="TotalReviews", default=0)
    assessed_reviews: Attr[int] = attr(name="AssessedReviews", default=0)  # with a known risk
    risk_sum: Attr[Decimal] = attr(name="RiskSum", default=Decimal(0))
    high_risk_count: Attr[int] = attr(name="HighRiskCount", default=0)
    medium_risk_count: Attr[int] = attr(name="MediumRiskCount", default=0)
    low_risk_count: Attr[int] = attr(name="LowRiskCount", default=0)
    pending_reviews: Attr[int] = attr(name="PendingReviews", default=0)
    failed_reviews: Attr[int] = attr(name="FailedReviews", default=0)
    fixed_reviews: Attr[int] = attr(name="FixedReviews", default=0)
    total_findings: Attr[int] = attr(name="TotalFindings", default=0)
    security_findings: Attr[int] = attr(name="SecurityFindings", default=0)
    cost_findings: Attr[int] = attr(name="CostFindings", default=0)
    reliability_findings: Attr[int] = attr(name="ReliabilityFindings", default=0)
    last_review_at: Attr[datetime | None] = attr(name="LastReviewDate", default=None)
    updated_at: Attr[datetime | None] = attr(name="UpdatedAt", default=None)
    revision: Attr[int] = attr(name="Revision", default=0)  # counts the writes

    @property
    def average_risk_score(self) -> Decimal | None:
        """The mean of the known risks, with four places; None if none is known."""
        return _mean(self.risk_sum, self.assessed_reviews)

    class Key(
        PrimaryKey["StackStats"],
        pk="STACK#{stack_id}",
        sk="STATS",
        access=AccessPattern("a stack's statistics", per_second=5, item_bytes=450),
    ):
        stack_id: str

    class ByName(
        Query["StackStats"],
        on=Reviews.issues,
        pk="STACKS",
        sk="{stack_id}",
        access=AccessPattern("all stacks by name", per_second=2, items=40, item_bytes=450),
    ):
        stack_id: Sort[str] = sort()


class IssueCounts(Entity):
    """How often an issue occurred, and since when."""

    issue_hash: Attr[str] = attr(name="IssueHash")
    category: Attr[Category] = attr(name="Category")
    title: Attr[str] = attr(name="Title")
    file_path: Attr[str] = attr(name="FilePath", default="")
    occurrence_count: Attr[int] = attr(name="OccurrenceCount", default=0)
    open_count: Attr[int] = attr(name="OpenCount", default=0)  # occurrences that current reviews list
    first_seen: Attr[datetime] = attr(name="FirstSeen")
    last_seen: Attr[datetime] = attr(name="LastSeen")
    updated_at: Attr[datetime | None] = attr(name="UpdatedAt", default=None)
    revision: Attr[int] = attr(name="Revision", default=0)  # counts the writes


class IssueFrequency(
    IssueCounts,
    table=Reviews,
    tag="ISSUE_FREQUENCY",
    writes=(
        WritePattern(
            "update an issue's statistics in a stack",
            "put",
            changes=(*_COUNT_FIELDS, "affected_runs"),
            per_second=12,
            item_bytes=700,
            transactional=True,
        ),
    ),
    items=20_000,
):
    """How often an issue occurred in one stack."""

    stack_id: Attr[str] = attr(name="StackId")
    affected_runs: Attr[dict[str, datetime]] = attr(name="AffectedRuns", default_factory=dict)  # the latest
    fixed_at: Attr[datetime | None] = attr(name="FixedAt", default=None)  # when it was last fixed

    @property
    def fix_applied(self) -> bool:
        """Whether it was fixed here and no current review of the stack lists it."""
        return self.fixed_at is not None and self.open_count == 0

    @property
    def latest_runs(self) -> list[str]:
        """The latest runs it was found in, newest first."""
        return sorted(self.affected_runs, key=lambda run: (self.affected_runs[run], run), reverse=True)

    class Key(PrimaryKey["IssueFrequency"], pk="ISSUE#{issue_hash}", sk="STACK#{stack_id}"):
        issue_hash: str
        stack_id: str

    class OfIssue(
        Query["IssueFrequency"],
        on=Key,
        access=AccessPattern("an issue, stack by stack", per_second=1, items=10, item_bytes=700),
    ):
        issue_hash: str
        stack_id: Sort[str] = sort()

    class ByStack(
        Query["IssueFrequency"],
        on=Reviews.issues,
        pk="STACK#{stack_id}",
        sk="FREQ#{occurrence_count:09}#{issue_hash}",
        access=AccessPattern("a stack's issues from some count on", per_second=2, items=20, item_bytes=700),
    ):
        stack_id: str
        occurrence_count: Sort[int] = sort()


class IssueTotal(
    IssueCounts,
    table=Reviews,
    tag="ISSUE_TOTAL",
    writes=(
        WritePattern(
            "update an issue's statistics",
            "put",
            changes=_COUNT_FIELDS,
            per_second=12,
            item_bytes=500,
            transactional=True,
        ),
    ),
    items=2_000,
):
    """How often an issue occurred in all stacks."""

    class Key(
        PrimaryKey["IssueTotal"],
        pk="ISSUE#{issue_hash}",
        sk="TOTAL",
        access=AccessPattern("an issue", per_second=1, item_bytes=500),
    ):
        issue_hash: str

    class MostFrequent(
        Query["IssueTotal"],
        on=Reviews.issues,
        pk="CATEGORY#{category}",
        sk="FREQ#{occurrence_count:09}#{issue_hash}",
        access=AccessPattern("a category's most frequent issues", per_second=2, items=20, item_bytes=500),
    ):
        category: Category
        occurrence_count: Sort[int] = sort()


class DayRisk(
    Entity,
    table=Reviews,
    tag="DAY_RISK",
    writes=(
        WritePattern(
            "update a day's statistics",
            "put",
            changes=("reviews", "assessed", "risk_sum", "findings", "revision"),
            per_second=4,
            item_bytes=250,
            transactional=True,
        ),
    ),
    items=3_650,
):
    """The risk of the reviews created on a day: current, and as first found."""

    day: Attr[date] = attr(name="Day")
    reviews: Attr[int] = attr(name="Reviews", default=0)
    assessed: Attr[int] = attr(name="Assessed", default=0)  # with a known risk
    risk_sum: Attr[Decimal] = attr(name="RiskSum", default=Decimal(0))
    # Of the same reviews, as first found
    found_sum: Attr[Decimal] = attr(name="FoundSum", default=Decimal(0))
    high: Attr[int] = attr(name="High", default=0)
    medium: Attr[int] = attr(name="Medium", default=0)
    low: Attr[int] = attr(name="Low", default=0)
    pending: Attr[int] = attr(name="Pending", default=0)
    failed: Attr[int] = attr(name="Failed", default=0)
    fixed: Attr[int] = attr(name="Fixed", default=0)
    findings: Attr[int] = attr(name="Findings", default=0)
    revision: Attr[int] = attr(name="Revision", default=0)  # counts the writes

    @property
    def average_risk(self) -> Decimal | None:
        """The mean of the known risks after fixes; None if none is known."""
        return _mean(self.risk_sum, self.assessed)

    @property
    def average_found(self) -> Decimal | None:
        """The mean of the known risks as first found; None if none is known."""
        return _mean(self.found_sum, self.assessed)

    class Key(
        PrimaryKey["DayRisk"],
        pk="DAYS",
        sk="{day}",
        access=AccessPattern("the risk distribution of a day", per_second=2, item_bytes=250),
    ):
        day: date

    class ByDay(
        Query["DayRisk"],
        on=Key,
        access=AccessPattern("the risk trend over days", per_second=2, items=90, item_bytes=250),
    ):
        day: Sort[date] = sort()


class StatisticsMark(
    ProjectionMark,
    table=Reviews,
    tag="MARK",
    items=700_000,
    writes=(WritePattern("write a mark", "put", per_second=16, item_bytes=250, transactional=True),),
):
    """What an item has contributed to statistics."""

    expires: Attr[datetime | None] = attr(name="TTL", default=None)

    class Key(PrimaryKey["StatisticsMark"], pk="MARK#{source}", sk="{projector}"):
        source: str
        projector: str


class RecordOutcome(
    Outcome,
    table=Reviews,
    tag="REQUEST",
    items=50_000,
    writes=(
        WritePattern(
            "store the outcome of a request", "put", per_second=2, item_bytes=600, transactional=True
        ),
    ),
):
    """The stored outcome of an idempotent request."""

    expires_at: Attr[datetime] = attr(name="TTL")

    class Key(PrimaryKey["RecordOutcome"], pk="REQUEST#{scope}#{request}", sk="OUTCOME"):
        scope: str
        request: str


def _mean(total: Decimal, count: int) -> Decimal | None:
    return (total / count).quantize(Decimal("0.0001")) if count else None
