"""The two tables of the support desk, their items and access patterns.

`prod-tickets-unified` holds each ticket with its feedback, events and attachments in one item collection, as well as sessions,
request outcomes, cached answers and embeddings. The sort keys of a ticket's collection are chosen so that a page needs one short query:
read backwards, it returns the ticket itself, its feedback, its files, and then its events, newest first. `prod-metrics` holds the
dashboard's metrics; it is a separate table so that the projector does not read its own writes from the stream.

Lists return a `TicketSummary`: the attributes that the indexes project, so that reading twenty of them is cheap. Six indexes serve seven
access patterns: `operator_index` holds feedback by operator and escalations by engineer, under different keys.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from tavola import (
    AccessPattern,
    Attr,
    Collection,
    Consumer,
    Entity,
    Exact,
    Gsi,
    PrimaryKey,
    Query,
    Sort,
    Table,
    WritePattern,
    attr,
    member,
    sort,
)
from tavola.apps.support_desk.domain import (
    NOTE_CHARACTERS_MAX,
    RATING_MAX,
    RATING_MIN,
    SUBJECT_CHARACTERS_MAX,
    SYMPTOM_CHARACTERS_INLINE,
    EventKind,
    Priority,
    TicketStatus,
    UserRole,
    next_statuses,
)
from tavola.patterns import Blob, CacheEntry, Metric, Outcome, ProjectionMark, Session

SHARDS = 4  # of the partition of all tickets, or of one status: allows 4,000 writes per second
SUMMARY = (
    "entity_type", "ticket_id", "customer_id", "status", "priority", "subject", "created_at", "updated_at", "ttl",
)  # fmt: skip
ESCALATION = (*SUMMARY, "assigned_to", "escalated_at", "escalation_reason")
IDENTIFIER_CHARACTERS_MAX = 128

Identifier = Annotated[str, Field(min_length=1, max_length=IDENTIFIER_CHARACTERS_MAX)]
Line = Annotated[str, Field(min_length=1, max_length=SUBJECT_CHARACTERS_MAX)]
Note = Annotated[str, Field(min_length=1, max_length=NOTE_CHARACTERS_MAX)]

_COUNTED = {"entity_type": {"S": ["ticket", "feedback"]}}
NUMBERS = Consumer(  # for a Lambda function; `metrics.MAPPING` is its event source mapping
    "numbers",
    handler="desk_numbers.handler",
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
    writes=("DeskMetric", "MetricMark"),
    idempotent=True,  # a record and its mark are written in one transaction
)


# tavola: ignore[no-customer-managed-key] an AWS-owned key encrypts it at rest; each deployment decides whether to use another
class Tickets(
    Table,
    name="prod-tickets-unified",
    pk="PK",
    sk="SK",
    ttl="ttl",
    tag="entity_type",
    stream="NEW_AND_OLD_IMAGES",
    recovery=True,
    deletion_protection=True,
    tags={"Environment": "production", "Application": "ai-technical-support"},
    consumers=(NUMBERS,),
):
    """All data of the desk except its metrics."""

    customer_index = Gsi(pk="GSI1PK", sk="GSI1SK", projection=SUMMARY, name="GSI1-customer-index")
    status_index = Gsi(pk="GSI2PK", sk="GSI2SK", projection=SUMMARY, name="GSI2-status-index")
    operator_index = Gsi(
        pk="GSI3PK",
        sk="GSI3SK",
        projection=(*ESCALATION, "feedback_id", "operator_id", "submitted_at", "rating", "was_helpful"),
        name="GSI3-operator-index",
    )
    customer_status_index = Gsi(
        pk="GSI1PK", sk="GSI4SK", projection=SUMMARY, name="GSI4-customer-status-index"
    )
    recent_index = Gsi(pk="GSI5PK", sk="GSI5SK", projection=SUMMARY, name="GSI5-recent-index")
    escalated_index = Gsi(pk="GSI6PK", sk="GSI6SK", projection=ESCALATION, name="escalated-tickets-index")


class Ticket(
    Entity,
    table=Tickets,
    tag="ticket",
    items=1_000_000,
    writes=(
        WritePattern(
            "open a ticket", "put", per_second=5, peak_per_second=400, item_bytes=900, transactional=True
        ),
        WritePattern(
            "change a ticket's status",
            "update",
            changes=("status", "updated_at", "completed_at"),
            per_second=9,
            item_bytes=900,
            transactional=True,
        ),
        WritePattern(
            "escalate a ticket",
            "update",
            changes=("status", "updated_at", "assigned_to", "escalated_at", "escalation_reason"),
            per_second=1,
            item_bytes=900,
            transactional=True,
        ),
    ),
):
    """A customer's request for help. `version` counts its writes and numbers its events."""

    ticket_id: Attr[Identifier]
    customer_id: Attr[Identifier] = attr(distinct=20_000, tenant=True)
    status: Attr[TicketStatus] = attr(default=TicketStatus.NEW)
    priority: Attr[Priority] = attr(default=Priority.MEDIUM)
    subject: Attr[Line]
    symptom_text: Attr[Annotated[str, Field(min_length=1, max_length=SYMPTOM_CHARACTERS_INLINE)]]
    full_text: Attr[Blob | None] = attr(default=None)  # set if symptom_text is only the beginning
    product: Attr[Line | None] = attr(default=None)
    created_at: Attr[datetime]
    updated_at: Attr[datetime]
    completed_at: Attr[datetime | None] = attr(default=None)  # set if READY
    assigned_to: Attr[Identifier | None] = attr(default=None, distinct=50)  # the engineer, set if escalated
    escalated_at: Attr[datetime | None] = attr(default=None)
    escalation_reason: Attr[Note | None] = attr(default=None)
    files: Attr[int] = attr(default=0)  # the number of attachments
    version: Attr[int] = attr(default=0, lock=True)
    ttl: Attr[datetime | None] = attr(default=None)  # set if closed tickets expire

    @property
    def text_continues(self) -> bool:
        """Whether `symptom_text` is only the beginning of the text."""
        return self.full_text is not None

    @property
    def next_statuses(self) -> list[TicketStatus]:
        """The statuses that may follow."""
        return next_statuses(self.status)

    class Key(
        PrimaryKey["Ticket"],
        pk="TICKET#{ticket_id}",
        sk="METADATA",
        access=AccessPattern(
            "a ticket by its ID", per_second=100, peak_per_second=1_500, items=1, item_bytes=900
        ),
    ):
        ticket_id: str

    class ByCustomer(
        Query["TicketSummary"],
        on=Tickets.customer_index,
        pk="CUSTOMER#{customer_id}",
        sk="{created_at}#{ticket_id}",
        access=AccessPattern(
            "a customer's tickets, newest first",
            per_second=50,
            peak_per_second=1_500,
            items=20,
            item_bytes=450,
        ),
    ):
        customer_id: str
        created_at: Sort[datetime] = sort()

    # tavola: ignore[mutable-index-key] a status changes ten times a second and is queried as often; 2 units per move
    class ByCustomerAndStatus(
        Query["TicketSummary"],
        on=Tickets.customer_status_index,
        pk="CUSTOMER#{customer_id}",
        sk="STATUS#{status}#{created_at}#{ticket_id}",
        access=AccessPattern(
            "a customer's tickets of one status, newest first", per_second=10, items=20, item_bytes=450
        ),
    ):
        customer_id: str
        status: Sort[TicketStatus] = sort()
        created_at: Sort[datetime] = sort()

    # tavola: ignore[mutable-index-key] operators work from this list; an entry is a summary of 450 B, so a move costs 2 units
    class ByStatus(
        Query["TicketSummary"],
        on=Tickets.status_index,
        pk="STATUS#{status}",
        sk="{created_at}#{ticket_id}",
        shards=SHARDS,
        access=AccessPattern("tickets with a given status, by date", per_second=10, items=20, item_bytes=450),
    ):
        status: TicketStatus
        created_at: Sort[datetime] = sort()

    class Recent(
        Query["TicketSummary"],
        on=Tickets.recent_index,
        pk="TICKETS",
        sk="{created_at}#{ticket_id}",
        shards=SHARDS,
        access=AccessPattern("tickets by date, newest first", per_second=10, items=20, item_bytes=450),
    ):
        created_at: Sort[datetime] = sort()

    class Escalated(
        Query["Escalation"],
        on=Tickets.escalated_index,
        pk="ESCALATED",
        sk="{escalated_at}#{ticket_id}",
        sparse=True,
        access=AccessPattern("all escalated tickets, newest first", per_second=2, items=20, item_bytes=500),
    ):
        escalated_at: Sort[datetime] = sort()

    class ByEngineer(
        Query["Escalation"],
        on=Tickets.operator_index,
        pk="ENGINEER#{assigned_to}",
        sk="{escalated_at}#{ticket_id}",
        sparse=True,
        access=AccessPattern(
            "an engineer's escalations, newest first", per_second=2, items=20, item_bytes=500
        ),
    ):
        assigned_to: str
        escalated_at: Sort[datetime] = sort()


class TicketSummary(Entity):
    """A ticket in a list."""

    ticket_id: Attr[str]
    customer_id: Attr[str]
    status: Attr[TicketStatus]
    priority: Attr[Priority]
    subject: Attr[str]
    created_at: Attr[datetime]
    updated_at: Attr[datetime]


class Escalation(TicketSummary):
    """A ticket in the list of escalations."""

    assigned_to: Attr[str | None]
    escalated_at: Attr[datetime | None]
    escalation_reason: Attr[str | None]


class Feedback(
    Entity,
    table=Tickets,
    tag="feedback",
    items=300_000,
    writes=(WritePattern("give feedback", "put", per_second=2, item_bytes=400, transactional=True),),
):
    """An operator's feedback on the answer to a ticket."""

    ticket_id: Attr[Identifier]
    feedback_id: Attr[Identifier]
    operator_id: Attr[Identifier] = attr(distinct=200)
    submitted_at: Attr[datetime]
    rating: Attr[Annotated[int, Field(ge=RATING_MIN, le=RATING_MAX)]]
    was_helpful: Attr[bool | None] = attr(default=None)
    comment: Attr[Note | None] = attr(default=None)

    class Key(PrimaryKey["Feedback"], pk="TICKET#{ticket_id}", sk="FEEDBACK#{submitted_at}#{feedback_id}"):
        ticket_id: str
        submitted_at: datetime
        feedback_id: str

    class ByTicket(
        Query["Feedback"],
        on=Key,
        access=AccessPattern("all feedback of a ticket", per_second=5, items=2, item_bytes=400),
    ):
        ticket_id: str
        submitted_at: Sort[datetime] = sort()

    class ByOperator(
        Query["FeedbackSummary"],
        on=Tickets.operator_index,
        pk="OPERATOR#{operator_id}",
        sk="{submitted_at}#{feedback_id}",
        access=AccessPattern("an operator's feedback, newest first", per_second=2, items=50, item_bytes=300),
    ):
        operator_id: str
        submitted_at: Sort[datetime] = sort()


class FeedbackSummary(Entity):
    """Feedback in an operator's list; the comment is with the ticket."""

    ticket_id: Attr[str]
    feedback_id: Attr[str]
    operator_id: Attr[str]
    submitted_at: Attr[datetime]
    rating: Attr[int]
    was_helpful: Attr[bool | None]


class Event(
    Entity,
    table=Tickets,
    tag="event",
    immutable=True,
    items=5_000_000,
    writes=(
        WritePattern(
            "write an event", "put", per_second=15, peak_per_second=400, item_bytes=300, transactional=True
        ),
    ),
):
    """An event in a ticket's timeline. `sequence` is the ticket's version after it, so it is unique per ticket."""

    ticket_id: Attr[Identifier]
    at: Attr[datetime]
    sequence: Attr[int]
    kind: Attr[EventKind]
    actor: Attr[Identifier | None] = attr(default=None)  # None: the desk itself
    old_status: Attr[TicketStatus | None] = attr(default=None)
    new_status: Attr[TicketStatus | None] = attr(default=None)
    note: Attr[Note | None] = attr(default=None)
    details: Attr[dict[str, str]] = attr(default_factory=dict)
    ttl: Attr[datetime | None] = attr(default=None)  # set if events expire

    class Key(PrimaryKey["Event"], pk="TICKET#{ticket_id}", sk="EVENT#{at}#{sequence:06}"):
        ticket_id: str
        at: datetime
        sequence: int

    class ByTicket(
        Query["Event"],
        on=Key,
        access=AccessPattern("a ticket's timeline, by date", per_second=10, items=10, item_bytes=300),
    ):
        ticket_id: str
        at: Sort[datetime] = sort()
        sequence: Sort[int] = sort()


class Attachment(
    Entity,
    table=Tickets,
    tag="attachment",
    items=200_000,
    writes=(WritePattern("attach a file", "put", per_second=1, item_bytes=700, transactional=True),),
):
    """A file attached to a ticket; large files are in the blob store."""

    ticket_id: Attr[Identifier]
    name: Attr[Annotated[str, Field(min_length=1, max_length=255)]]
    content_type: Attr[Annotated[str, Field(min_length=1, max_length=255)]]
    body: Attr[Blob]
    added_at: Attr[datetime]
    added_by: Attr[Identifier | None] = attr(default=None)
    ttl: Attr[datetime | None] = attr(default=None)  # same as the ticket's

    @property
    def size_bytes(self) -> int:
        """The size of the file."""
        return self.body.size

    class Key(
        PrimaryKey["Attachment"],
        pk="TICKET#{ticket_id}",
        sk="EVIDENCE#{name}",  # sorts after EVENT and before FEEDBACK: see the module's docstring
        access=AccessPattern("a ticket's attachment", per_second=1, items=1, item_bytes=700),
    ):
        ticket_id: str
        name: str

    class ByTicket(
        Query["Attachment"],
        on=Key,
        access=AccessPattern(
            "attachments of a closed ticket",
            per_second=1,
            items=1,
            item_bytes=700,
            consistent=True,
        ),
    ):
        ticket_id: str
        name: Sort[str] = sort()


class TicketVector(
    Entity,
    table=Tickets,
    tag="embedding",
    items=1_000_000,
    writes=(WritePattern("store an embedding", "put", per_second=5, item_bytes=900, transactional=True),),
):
    """The embedding of a ticket's text; a separate item, so that it is not read with the ticket."""

    ticket_id: Attr[Identifier]
    customer_id: Attr[Identifier]
    embedding: Attr[list[Annotated[float, Exact]]]
    ttl: Attr[datetime | None] = attr(default=None)  # same as the ticket's

    class Key(
        PrimaryKey["TicketVector"],
        pk="EMBEDDING#{ticket_id}",
        sk="METADATA",
        access=AccessPattern("a ticket's embedding", per_second=2, items=1, item_bytes=900),
    ):
        ticket_id: str


class Login(
    Session,
    table=Tickets,
    tag="session",
    items=5_000,
    writes=(WritePattern("start or renew a session", "put", per_second=1, item_bytes=300),),
):
    """A user's session."""

    role: Attr[UserRole]
    expires_at: Attr[datetime] = attr(name="ttl")

    class Key(
        PrimaryKey["Login"],
        pk="SESSION#{session_id}",
        sk="METADATA",
        access=AccessPattern(
            "whether a session is valid", per_second=100, items=1, item_bytes=300, consistent=True
        ),
    ):
        session_id: str


class RequestOutcome(
    Outcome,
    table=Tickets,
    tag="idempotency",
    items=500_000,
    writes=(
        WritePattern(
            "store the outcome of a request",
            "put",
            per_second=5,
            peak_per_second=400,
            item_bytes=600,
            transactional=True,
        ),
    ),
):
    """The stored outcome of an idempotent request, kept for a day."""

    expires_at: Attr[datetime] = attr(name="ttl")

    class Key(
        PrimaryKey["RequestOutcome"],
        pk="IDEMPOTENCY#{scope}#{request}",
        sk="METADATA",
        access=AccessPattern(
            "the outcome of a request", per_second=5, items=1, item_bytes=600, consistent=True
        ),
    ):
        scope: str
        request: str


class CachedAnswer(
    CacheEntry,
    table=Tickets,
    tag="cache",
    items=5_000,
    writes=(WritePattern("cache an answer", "put", per_second=0.5, item_bytes=1_000),),
):
    """A cached answer, kept for a quarter of an hour."""

    expires_at: Attr[datetime] = attr(name="ttl")

    class Key(
        PrimaryKey["CachedAnswer"],
        pk="CACHE#{cache_key}",
        sk="DATA",
        access=AccessPattern("a cached answer", per_second=5, items=1, item_bytes=1_000),
    ):
        cache_key: str


class TicketFeedback(
    Collection,
    pk="TICKET#{ticket_id}",
    access=AccessPattern("a ticket with its feedback", per_second=5, items=3, item_bytes=500),
):
    """A ticket and its feedback, in one query: their sort keys are adjacent, so nothing else is read."""

    ticket_id: str
    ticket: Ticket | None = member()
    feedback: list[Feedback] = member()


class FullTicket(
    Collection,
    pk="TICKET#{ticket_id}",
    access=AccessPattern(
        "a ticket with its feedback, attachments and events", per_second=20, items=6, item_bytes=400
    ),
):
    """A ticket with its feedback, attachments and last events, in one query."""

    ticket_id: str
    ticket: Ticket | None = member()
    feedback: list[Feedback] = member()
    events: list[Event] = member()
    attachments: list[Attachment] = member()


class Metrics(
    Table,
    name="prod-metrics",
    pk="PK",
    sk="SK",
    ttl="ttl",
    tag="entity_type",
    recovery=True,
    deletion_protection=True,
    tags={"Environment": "production", "Application": "ai-technical-support"},
):
    """The desk's metrics."""


class DeskMetric(
    Metric,
    table=Metrics,
    tag="metric",
    items=2_000,
    writes=(
        WritePattern(
            "count a change", "update", per_second=30, item_bytes=120, transactional=True, adds=("total",)
        ),
    ),
):
    """One metric of the desk; the `metrics` module lists them."""

    class Key(PrimaryKey["DeskMetric"], pk="METRIC#{name}", sk="{part}"):
        name: str
        part: str

    class ByName(
        Query["DeskMetric"],
        on=Key,
        access=AccessPattern(
            "the dashboard's numbers", per_second=5, peak_per_second=1_500, items=150, item_bytes=120
        ),
    ):
        name: str
        part: Sort[str] = sort()


class MetricMark(
    ProjectionMark,
    table=Metrics,
    tag="mark",
    items=1_300_000,
    writes=(WritePattern("write a mark", "put", per_second=17, item_bytes=250, transactional=True),),
):
    """What an item has contributed to the metrics."""

    expires: Attr[datetime | None] = attr(default=None, name="ttl")

    class Key(PrimaryKey["MetricMark"], pk="MARK#{source}", sk="{projector}"):
        source: str
        projector: str


TABLES: tuple[type[Table], ...] = (Tickets, Metrics)
