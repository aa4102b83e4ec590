"""The support desk as its document has it: keys, indexes, writes, stream and policies as its code writes them.

Rates are those of the document's own capacity example (100 reads and 20 writes a second) where it gives them, and the burst of a campaign, past
1,000 writes a second, that its chapter on sharding speaks of.

A ticket is created in three ways: by itself with the keys of both indexes, in a transaction with an idempotency key and a first event, and by the
idempotent interface, the last two without any index key. (The idempotent one says `prod-tickets`, a table that nothing defines, while it looks its
key up in `prod-tickets-unified`; here both are the one table.) The stream's function does one thing for a MODIFY and another for the INSERT of feedback:
here they are two consumers with the one mapping. The policies are written for `tickets` and `customer-index`; beside them stand the same with
the table called as it is.
"""

from __future__ import annotations

from typing import Any

from tavola.model.document import Consumer, Given, Need, Policy, Route
from tests.design.builders import (
    access,
    choice,
    collection,
    design,
    entity,
    gsi,
    key,
    moment,
    number,
    put,
    query,
    table,
    text,
    update,
)
from tests.design.seeds.defects import Defect

BURST = 1_500

CUSTOMER = gsi("GSI1-customer-index", "GSI1PK", "GSI1SK")
STATUS = gsi("GSI2-status-index", "GSI2PK", "GSI2SK")
OPERATOR = gsi("GSI3-operator-index", "GSI3PK", "GSI3SK", projection=("ticket_id", "rating", "was_helpful"))
ESCALATED = gsi(
    "escalated-tickets-index",
    "escalated_at",
    "assigned_to",
    projection=("ticket_id", "priority", "customer_id", "escalation_reason"),
)
TICKET_KEYS = ("GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK")

TICKET = entity(
    "Ticket",
    text("ticket_id"),
    text("customer_id", tenant=True, distinct=5_000),
    choice("status", "NEW", "PROCESSING", "READY", "FAILED", "ESCALATED"),
    moment("created_at", type="naive datetime"),
    moment("updated_at", type="naive datetime", nullable=True),
    text("symptom_text"),
    text("priority"),
    moment("escalated_at", nullable=True),
    text("assigned_to", nullable=True),
    text("escalation_reason", nullable=True),
    text("data", typical_bytes=2_000),
    pk="TICKET#{ticket_id}",
    sk="METADATA",
    keys=[
        key(CUSTOMER, "CUSTOMER#{customer_id}", "STATUS#{status}#{created_at}"),
        key(STATUS, "STATUS#{status}", "{created_at}"),
        key(ESCALATED, "escalated_at", "assigned_to", sparse=True),
    ],
    patterns=[
        query("ByCustomer", CUSTOMER, "customer_id", ("status", "created_at"), per_second=50, items=20, item_bytes=3_072),
        query("ByStatus", STATUS, "status", "created_at", per_second=20, items=100, item_bytes=3_072),
    ],
    writes=[
        put("put_ticket", per_second=20, peak_per_second=BURST, item_bytes=3_072, rewrites=TICKET_KEYS),
        put("create_ticket_transactional", per_second=5, item_bytes=3_072, transactional=True, together="create"),
        put("create_ticket_idempotent", per_second=5, item_bytes=3_072, transactional=True, together="idempotent create"),
        update("status", "updated_at", title="update_ticket_status_with_event", per_second=20, item_bytes=3_072, transactional=True, together="status"),
        update(
            "status", "escalated_at", "escalation_reason", "assigned_to", title="escalate_ticket", per_second=1, item_bytes=3_072
        ),
    ],
    items=1_000_000,
    primary={"per_second": 100, "items": 1, "item_bytes": 3_072},
)  # fmt: skip
FEEDBACK = entity(
    "Feedback",
    text("ticket_id"),
    text("operator_id", distinct=200),
    moment("submitted_at"),
    number("rating"),
    text("was_helpful", nullable=True),
    text("data"),
    pk="TICKET#{ticket_id}",
    sk="FEEDBACK#{submitted_at}",
    keys=[key(OPERATOR, "OPERATOR#{operator_id}", "{submitted_at}")],
    patterns=[
        query(
            "ByOperator",
            OPERATOR,
            "operator_id",
            "submitted_at",
            per_second=5,
            items=50,
            item_bytes=500,
            descending=True,
            reads=("data",),
        ),
    ],
    writes=[put("put_feedback", per_second=5, item_bytes=500, rewrites=("GSI3PK", "GSI3SK"))],
)
EVENT = entity(
    "Event",
    text("ticket_id"),
    text("day"),
    number("sequence", numbered="count"),
    moment("timestamp", type="naive datetime"),
    text("event_type"),
    text("details"),
    pk="TICKET#{ticket_id}",
    sk="EVENT#{day}#{sequence:03}",
    patterns=[
        query("OfTicket", None, "ticket_id", ("day", "sequence"), per_second=10, items=10, item_bytes=300)
    ],
    writes=[put("add_event", per_second=20, item_bytes=300)],
)
FIRST_EVENT = entity(
    "FirstEvent",
    text("ticket_id"),
    moment("timestamp", type="naive datetime"),
    text("event_type"),
    pk="TICKET#{ticket_id}",
    sk="EVENT#{timestamp}#001",
    writes=[put("log a new ticket", per_second=5, item_bytes=300, transactional=True, together="create")],
)
STATUS_EVENT = entity(
    "StatusEvent",
    text("ticket_id"),
    moment("timestamp", type="naive datetime"),
    text("event_type"),
    text("old_status"),
    text("new_status"),
    pk="TICKET#{ticket_id}",
    sk="EVENT#{timestamp}#status_change",
    writes=[
        put("log a change of status", per_second=20, item_bytes=300, transactional=True, together="status")
    ],
)
SESSION = entity(
    "Session",
    text("session_id"),
    text("user_id"),
    moment("created_at", type="naive datetime"),
    moment("expires_at", type="naive datetime"),
    number("ttl"),
    text("data"),
    pk="SESSION#{session_id}",
    sk="METADATA",
    writes=[put("create_session", per_second=1, item_bytes=300)],
    primary={"per_second": 100, "items": 1, "item_bytes": 300},
)
IDEMPOTENCY = entity(
    "IdempotencyKey",
    text("key"),
    text("ticket_id", nullable=True),
    text("response", nullable=True),
    moment("created_at", type="naive datetime", nullable=True),
    number("ttl"),
    pk="IDEMPOTENCY#{key}",
    sk="METADATA",
    writes=[
        put("keep a request's key", per_second=5, item_bytes=200, transactional=True, together="create"),
        put("keep a request's answer", per_second=5, item_bytes=400, transactional=True, together="idempotent create"),
    ],
    primary={"per_second": 10, "items": 1, "item_bytes": 400},
)  # fmt: skip
CACHE = entity(
    "CacheEntry",
    text("cache_key"),
    text("data"),
    number("ttl"),
    pk="CACHE#{cache_key}",
    sk="DATA",
    writes=[put("create_temporary_cache", per_second=1, item_bytes=2_000)],
)


def _branch(name: str, *events: Any, needs_old: bool) -> Consumer:
    """One branch of the stream's function, with the mapping of all of it."""
    return Consumer(
        name,
        handler="index.lambda_handler",
        batch_size=100,
        window_s=5,
        bisect=True,
        retries=3,
        starting="LATEST",
        events=events,
        needs_old=needs_old,
        writes=("Metric",),
    )


TICKETS = table(
    TICKET,
    FEEDBACK,
    EVENT,
    FIRST_EVENT,
    STATUS_EVENT,
    SESSION,
    IDEMPOTENCY,
    CACHE,
    label="Tickets",
    name="prod-tickets-unified",
    pk="PK",
    sk="SK",
    indexes=[CUSTOMER, STATUS, OPERATOR, ESCALATED],
    collections=[
        collection("TicketWithFeedback", "TICKET#{ticket_id}", "Ticket", "Feedback", per_second=20, items=4)
    ],
    consumers=[
        _branch("ticket-stream-processor", "MODIFY", needs_old=True),
        _branch("ticket-stream-processor of feedback", "INSERT", needs_old=False),
    ],
    stream="NEW_AND_OLD_IMAGES",
    ttl="ttl",
    tag="entity_type",
    foreign=True,
    tags={"Environment": "production", "Application": "ai-technical-support"},
    deletion_protection=False,
)
METRIC = entity(
    "Metric",
    text("metric_name"),
    number("count_value"),
    number("total_time", nullable=True),
    number("total_ratings", nullable=True),
    pk="metric_name",
    sk=None,
    writes=[
        update(
            "count_value",
            title="count a ticket",
            adds=("count_value",),
            per_second=20,
            peak_per_second=BURST,
            item_bytes=60,
            skew=2.0,
            creates=True,
        ),
        update(
            title="add a rating", adds=("total_ratings", "count_value"), per_second=5, item_bytes=60, creates=True
        ),
        update(
            title="add a time of resolution", adds=("total_time", "count_value"), per_second=5, item_bytes=60, creates=True
        ),
    ],
    items=7,
    primary={"per_second": 1, "items": 1, "item_bytes": 60},
)  # fmt: skip
METRICS = table(
    METRIC, label="Metrics", name="prod-metrics", pk="metric_name", sk=None, tag=None, foreign=True
)

NEEDS = [
    Need(
        "tickets of a customer, newest first",
        "Ticket",
        ("customer_id",),
        ("created_at",),
        access("tickets of a customer, newest first", per_second=50, items=20, item_bytes=3_072, descending=True),
        route=Route("query", CUSTOMER.name, (Given("GSI1PK"),)),
    ),
    Need(
        "all escalated tickets, newest first",
        "Ticket",
        (Given("escalated_at", "exists"),),
        ("escalated_at",),
        access("all escalated tickets, newest first", per_second=1, items=20, item_bytes=300, descending=True),
        route=Route("query", ESCALATED.name, (Given("escalated_at", ">="),)),
    ),
    Need(
        "an engineer's escalations",
        "Ticket",
        ("assigned_to",),
        ("escalated_at",),
        access("an engineer's escalations", per_second=1, items=20, item_bytes=300),
        route=Route("query", ESCALATED.name, (Given("escalated_at", ">="), Given("assigned_to"))),
    ),
    Need(
        "recent tickets",
        "Ticket",
        (Given("created_at", "between"),),
        ("created_at",),
        access("recent tickets", per_second=5, items=20, item_bytes=3_072),
    ),
    Need(
        "many tickets at once",
        "Ticket",
        ("ticket_id",),
        (),
        access("many tickets at once", per_second=2, items=250, item_bytes=3_072),
        route=Route("batch_get", None, (Given("PK"),)),
    ),
    Need(
        "tickets of a tier",
        "Ticket",
        (Given("data", "contains"),),
        (),
        access("tickets of a tier of customers", per_second=0.1, items=1_000_000, returned=100, item_bytes=3_072),
        route=Route("scan", None, (), (Given("data", "contains"),)),
    ),
    Need(
        "tickets by status, counted",
        "Metric",
        ("metric_name",),
        (),
        access("tickets by status, counted", per_second=1, items=5, item_bytes=60),
        route=Route("batch_get", None, (Given("metric_name"),)),
    ),
]  # fmt: skip


def _policy(name: str, action: Any, resource: str, value: str) -> Policy:
    bound = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [value]}}
    statement = {"Effect": "Allow", "Action": action, "Resource": resource, "Condition": bound}
    return Policy(name, {"Version": "2012-10-17", "Statement": [statement]})


_READS = ["dynamodb:GetItem", "dynamodb:Query"]
_BY_TICKET = "TICKET#${cognito-identity.amazonaws.com:sub}"
_BY_CUSTOMER = "CUSTOMER#${cognito-identity.amazonaws.com:sub}"
_QUERY = "dynamodb:Query"
POLICIES = [
    _policy("least privilege", _READS, "arn:aws:dynamodb:region:account:table/tickets", _BY_TICKET),
    _policy("isolation", _QUERY, "arn:aws:dynamodb:*:*:table/tickets/index/customer-index", _BY_CUSTOMER),
    _policy("least privilege, table named", _READS, "arn:aws:dynamodb:*:*:table/prod-tickets-unified", _BY_TICKET),
    _policy(
        "isolation, table named",
        _QUERY,
        "arn:aws:dynamodb:*:*:table/prod-tickets-unified/index/customer-index",
        _BY_CUSTOMER,
    ),
]  # fmt: skip

DESIGN = design(TICKETS, METRICS, needs=NEEDS, policies=POLICIES)

DEFECTS = (
    Defect("stale-index-key", "Ticket: update_ticket_status_with_event", 1),
    Defect("stale-index-key", "Ticket: escalate_ticket", 1),
    Defect("wrong-sort-order", "tickets of a customer, newest first", 2),
    Defect("hot-partition", "Ticket.ByStatus", 3),
    Defect("range-on-partition-key", "all escalated tickets, newest first", 4),
    Defect("range-on-partition-key", "an engineer's escalations", 4),
    Defect("attribute-not-projected", "Feedback.ByOperator", 5),
    Defect("sequence-from-count", "Event.sequence", 6),
    Defect("mixed-sort-keys", "Event", 7),
    Defect("overlapping-keys", "Event.Key", 7),
    Defect("overlapping-keys", "FirstEvent", 7),
    Defect("consumer-misses-events", "ticket-stream-processor", 8),
    Defect("non-idempotent-consumer", "ticket-stream-processor", 8),
    Defect("non-idempotent-consumer", "ticket-stream-processor of feedback", 8),
    Defect("naive-datetime", "Ticket.created_at", 10),
    Defect("naive-datetime", "Session.expires_at", 10),
    Defect("invalid-batch-get", "many tickets at once", 12),
    Defect("unserved-pattern", "recent tickets"),
    Defect("frequent-scan", "tickets of a tier"),
    Defect("hot-counter", "Metric: count a ticket"),
    Defect("mutable-index-key", "Ticket.ByStatus"),
    Defect("missing-index-key", "Ticket: create_ticket_transactional"),
    Defect("missing-index-key", "Ticket: create_ticket_idempotent"),
    Defect("no-deletion-protection", "Tickets"),
    Defect("unknown-policy-resource", "least privilege"),
    Defect("unknown-policy-resource", "isolation"),
    Defect("leading-keys-mismatch", "least privilege, table named"),
    Defect("unknown-policy-resource", "isolation, table named"),
    Defect("no-failure-destination", "ticket-stream-processor"),
)
