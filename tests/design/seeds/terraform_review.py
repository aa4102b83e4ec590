"""The review history as its document has it: every key of its example items, its questions, its policy.

Reviews, findings, statistics and issues stand in the indexes with the keys that the examples show: findings beside the reviews in the history of
a stack and in the risks of a day, statistics and issues in that history too. All of them are said never to be modified ("no UpdateItem
operations"), and statistics and issues are counted all the same.
"""

from __future__ import annotations

from tavola.model.document import Given, Need, Policy, Route
from tests.design.builders import (
    access,
    bare_number,
    choice,
    design,
    entity,
    gsi,
    key,
    listed,
    moment,
    number,
    put,
    query,
    table,
    text,
    update,
)
from tests.design.seeds.defects import Defect

STACK = gsi("GSI1", "GSI1PK", "GSI1SK")
RISK = gsi("GSI2", "GSI2PK", "GSI2SK")
ISSUES = gsi("GSI3", "GSI3PK", "GSI3SK")
STATUS = gsi("GSI4", "GSI4PK", "GSI4SK")

REVIEW = entity(
    "Review",
    text("review_id"),
    bare_number("version", numbered="last"),
    text("previous_version_id", nullable=True),
    text("run_id"),
    text("stack_id", distinct=500),
    text("day"),
    choice("category", "security", "cost", "reliability", "error"),
    choice("status", "pending", "completed", "failed"),
    bare_number("risk_score", type="float", nullable=True),
    text("terraform_code", typical_bytes=20_000),
    text("ai_review_result", typical_bytes=3_000),
    moment("created_at"),
    moment("updated_at"),
    text("created_by"),
    pk="REVIEW#{review_id}",
    sk="VERSION#{version}",
    keys=[
        key(STACK, "STACK#{stack_id}", "CREATED#{created_at}"),
        key(RISK, "RISK#{day}", "{risk_score}"),
        key(ISSUES, "ISSUE#CATEGORY#{category}", "CREATED#{created_at}"),
        key(STATUS, "STATUS#{status}", "CREATED#{updated_at}"),
    ],
    patterns=[
        query("Versions", None, "review_id", "version", per_second=5, items=3, item_bytes=25_000, descending=True),
        query(
            "OfStack", STACK, "stack_id", "created_at", per_second=5, items=50, item_bytes=25_000, descending=True,
        ),
        query("OfDay", RISK, "day", "risk_score", per_second=1, items=100, item_bytes=25_000),
        query("ByStatus", STATUS, "status", "updated_at", per_second=1, items=20, item_bytes=25_000, descending=True),
    ],
    writes=[put("store a version", per_second=5, item_bytes=25_000, conditional=True)],
    items=500_000,
    immutable=True,
)  # fmt: skip
FINDING = entity(
    "Finding",
    text("finding_id"),
    text("review_id"),
    text("stack_id", distinct=500),
    text("day"),
    choice("category", "security", "cost", "reliability"),
    text("severity"),
    text("title"),
    text("issue_hash"),
    bare_number("confidence", type="float"),
    moment("created_at"),
    pk="FINDING#{finding_id}",
    sk="REVIEW#{review_id}",
    keys=[
        key(STACK, "STACK#{stack_id}", "CREATED#{created_at}"),
        key(RISK, "RISK#{day}", "{confidence}"),
        key(ISSUES, "ISSUE#CATEGORY#{category}#HASH#{issue_hash}", "CREATED#{created_at}"),
    ],
    patterns=[
        query(
            "Occurrences",
            ISSUES,
            ("category", "issue_hash"),
            "created_at",
            per_second=1,
            items=20,
            item_bytes=500,
        )
    ],
    writes=[put("store a finding", per_second=15, item_bytes=500)],
    immutable=True,
)
FREQUENCY = entity(
    "IssueFrequency",
    text("issue_hash"),
    text("stack_id", distinct=500),
    choice("category", "security", "cost", "reliability"),
    text("title"),
    bare_number("occurrences"),
    moment("first_seen"),
    moment("last_seen"),
    listed("affected_runs"),
    pk="ISSUE#{issue_hash}",
    sk="STACK#{stack_id}",
    keys=[
        key(STACK, "STACK#{stack_id}", "ISSUE#{issue_hash}"),
        key(ISSUES, "ISSUE#CATEGORY#{category}#HASH#{issue_hash}", "FREQ#{occurrences}"),
    ],
    patterns=[query("MostFrequent", ISSUES, ("category", "issue_hash"), "occurrences", per_second=1, items=20, item_bytes=500)],
    writes=[
        update(
            "occurrences", "affected_runs", "last_seen", title="count an occurrence", adds=("occurrences", "affected_runs"),
            per_second=15, item_bytes=2_000, rewrites=("GSI3SK",),
        )
    ],
    immutable=True,
)  # fmt: skip
STATISTICS = entity(
    "StackStatistics",
    text("stack_id", distinct=500),
    number("total_reviews"),
    number("average_risk_score", type="float"),
    number("total_findings"),
    moment("last_review_date"),
    pk="STACK#{stack_id}",
    sk="STATS",
    keys=[key(STACK, "STACK#{stack_id}", "STATS")],
    writes=[
        update(
            "average_risk_score",
            "last_review_date",
            title="count a review",
            adds=("total_reviews", "total_findings"),
            per_second=5,
            item_bytes=400,
        )
    ],
    immutable=True,
    primary={"per_second": 1, "items": 1, "item_bytes": 400},
)
NEEDS = [
    Need(
        "latest review of a run",
        "Review",
        ("run_id",),
        ("created_at",),
        access("latest review of a run", per_second=5, items=1, descending=True),
        route=Route("query", STACK.name, (Given("GSI1PK", "=", {"S": "RUN#"}),), (Given("run_id"),)),
    ),
    Need(
        "most frequent issues of a category",
        "IssueFrequency",
        ("category",),
        ("occurrences",),
        access("most frequent issues of a category", per_second=1, items=20, descending=True),
        route=Route("query", ISSUES.name, (Given("GSI3PK", "=", {"S": "ISSUE#CATEGORY#security"}),)),
    ),
    Need(
        "repeated issues of a stack",
        "IssueFrequency",
        ("stack_id", Given("occurrences", ">=")),
        (),
        access("repeated issues of a stack", per_second=1, items=50, returned=5),
        route=Route(
            "query", ISSUES.name, (Given("GSI3PK", "=", {"S": "ISSUE#STACK#"}),), (Given("occurrences", ">="),)
        ),
    ),
    Need(
        "high-risk reviews of ten years",
        "Review",
        (Given("day", "between"), Given("risk_score", ">=")),
        (),
        access("high-risk reviews of ten years", per_second=0.1, items=10_000, item_bytes=25_000),
        route=Route("query", RISK.name, (Given("GSI2PK"), Given("GSI2SK", ">=")), queries=3_650),
    ),
    Need(
        "pending reviews of more than an hour",
        "Review",
        (Given("status", "=", {"S": "pending"}), Given("updated_at", "<")),
        (),
        access("pending reviews of more than an hour", per_second=0.1, items=20, item_bytes=25_000),
        route=Route("query", STATUS.name, (Given("GSI4PK", "=", {"S": "STATUS#pending"}), Given("GSI4SK", "<"))),
    ),
]  # fmt: skip
POLICIES = [
    Policy(
        "least privilege",
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Action": ["dynamodb:Query", "dynamodb:GetItem"],
                    "Resource": "arn:aws:dynamodb:*:*:table/terraform-*",
                    "Condition": {"StringEquals": {"dynamodb:LeadingKeys": "${aws:userid}"}},
                }
            ],
        },
    )
]
DESIGN = design(
    table(
        REVIEW, FINDING, FREQUENCY, STATISTICS,
        label="Reviews", name="terraform-spacelift-ai-reviewer-reviews-prod", pk="PK", sk="SK", indexes=[STACK, RISK, ISSUES, STATUS],
        tag="EntityType", ttl="TTL", encryption="arn:aws:kms:us-east-1:123456789012:key/abc-123", foreign=True,
    ),
    needs=NEEDS,
    policies=POLICIES,
)  # fmt: skip

DEFECTS = (
    Defect("unpadded-number", "Review.Key", 20),
    Defect("unpadded-number", "IssueFrequency.MostFrequent", 20),
    Defect("unpadded-number", "Review.OfDay", 20),
    Defect("old-versions-in-index", "Review.ByStatus", 21),
    Defect("key-never-written", "latest review of a run", 22),
    Defect("key-never-written", "most frequent issues of a category", 22),
    Defect("key-never-written", "repeated issues of a stack", 22),
    Defect("immutable-entity-updated", "StackStatistics: count a review", 23),
    Defect("immutable-entity-updated", "IssueFrequency: count an occurrence", 23),
    Defect("query-fan-out", "high-risk reviews of ten years", 25),
    Defect("null-in-index-key", "Review.OfDay", 26),
    Defect("overlapping-keys", "Review.OfStack"),
    Defect("overlapping-keys", "Review.OfDay"),
    Defect("unbounded-list", "IssueFrequency.affected_runs"),
    Defect("leading-keys-mismatch", "least privilege"),
    Defect("wildcard-policy", "least privilege"),
    Defect("float-numbers", "Review.risk_score", 13),
    Defect("ttl-unused", "Reviews"),
)
