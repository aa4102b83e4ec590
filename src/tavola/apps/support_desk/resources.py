"""Resources: the JSON of the support desk, what comes in and what goes out.

What goes out is made of entities by `…_of` and has small, stable names; times are ISO 8601 in UTC. What comes in says its
limits, so that the document of the API does, and takes no field that it does not know: a misspelt one is an error and never ignored.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from tavola.apps.support_desk.domain import (
    NOTE_CHARACTERS_MAX,
    RATING_MAX,
    RATING_MIN,
    SUBJECT_CHARACTERS_MAX,
    SYMPTOM_CHARACTERS_MAX,
    TRANSITIONS,
    Amendment,
    Dashboard,
    EventKind,
    NewFeedback,
    NewTicket,
    Priority,
    Role,
    Status,
    Tally,
)
from tavola.apps.support_desk.model import (
    Attachment,
    Escalation,
    Event,
    Feedback,
    FeedbackSummary,
    Login,
    Ticket,
    TicketFile,
    TicketSummary,
)
from tavola.apps.support_desk.service import Similar
from tavola.apps.support_desk.store import FeedbackGiven, NoteAdded

IDENTIFIER = r"^[A-Za-z0-9][A-Za-z0-9._:@+\-]{0,127}$"
_UNSEEN = (
    r"\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
)
_NAMED = rf'[^/\\"{_UNSEEN}]'
FILE_NAME = rf'^(?:\.{{0,2}}[^./\\"{_UNSEEN}]{_NAMED}*|\.{{3}}{_NAMED}*)$'  # "." and ".." are no address
TEXT = r"[^\s\x1c-\x1f]"  # not of blanks alone; Python and Rust differ about four of these
TICKETS_MAX = 100  # that one request may name
SIMILAR_MAX = 50

Moment = AwareDatetime
Identifier = Annotated[str, Field(pattern=IDENTIFIER, max_length=128, examples=["cust-017"])]
Line = Annotated[str, Field(min_length=1, max_length=SUBJECT_CHARACTERS_MAX, pattern=TEXT)]
Note = Annotated[str, Field(min_length=1, max_length=NOTE_CHARACTERS_MAX, pattern=TEXT)]
Rating = Annotated[int, Field(ge=RATING_MIN, le=RATING_MAX, strict=True, examples=[5])]
Number = Annotated[float, Field(ge=-3e38, le=3e38, allow_inf_nan=False)]
Embedding = Annotated[list[Number], Field(min_length=1, max_length=4_096)]


NextStatus = Literal[Status.PROCESSING, Status.READY, Status.FAILED]


class Asked(BaseModel):
    """What comes in."""

    model_config = ConfigDict(extra="forbid")


class Told(BaseModel):
    """What goes out."""

    model_config = ConfigDict(frozen=True)


# What comes in


class TicketAsked(Asked):
    """A ticket to be opened."""

    customer_id: Identifier
    symptom_text: Annotated[str, Field(min_length=1, max_length=SYMPTOM_CHARACTERS_MAX, pattern=TEXT)]
    priority: Priority = Priority.MEDIUM
    subject: Annotated[Line | None, Field(description="Without one, the first line of the text.")] = None
    product: Line | None = None
    embedding: Annotated[
        Embedding | None,
        Field(
            description="Of the text, 64 numbers; then the ticket is found as a similar one. Without it, those like it are found by its words.",
            examples=[None],
        ),
    ] = None

    def new(self) -> NewTicket:
        """Return it for the service."""
        return NewTicket(
            customer_id=self.customer_id,
            symptom_text=self.symptom_text,
            priority=self.priority,
            subject=self.subject,
            product=self.product,
            embedding=None if self.embedding is None else tuple(self.embedding),
        )


class TicketPatch(Asked):
    """What is to change of a ticket; what is left out stays. ESCALATED is reached by an escalation alone."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": [name]} for name in ("status", "priority", "subject", "product")],
            "dependentRequired": {"note": ["status"]},
        }
    )

    status: NextStatus | SkipJsonSchema[None] = None
    priority: Priority | SkipJsonSchema[None] = None
    subject: Line | SkipJsonSchema[None] = None
    product: Annotated[Line | None, Field(description="null takes it away.")] = None
    note: Annotated[
        Note | SkipJsonSchema[None], Field(description="Told with the event of a change of status.")
    ] = None
    actor: Annotated[
        Identifier | SkipJsonSchema[None], Field(description="Who does it.", examples=["op-12"])
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _says_no_null(cls, told: Any) -> Any:
        return without_null(told, but=("product",))

    @model_validator(mode="after")
    def _says_something(self) -> TicketPatch:
        if self.status is None and self.amendment() == Amendment():
            raise ValueError("nothing is to change; give status, priority, subject or product")
        if self.note is not None and self.status is None:
            raise ValueError("a note goes with a change of status; POST it to the ticket's events")
        return self

    def amendment(self) -> Amendment:
        """Return what changes besides the status."""
        product = "" if self.product is None and "product" in self.model_fields_set else self.product
        return Amendment(subject=self.subject, priority=self.priority, product=product)


class EscalationAsked(Asked):
    """A ticket to be handed to an engineer."""

    engineer: Annotated[Identifier, Field(examples=["eng-03"])]
    reason: Note
    actor: Annotated[Identifier | None, Field(description="Who does it.", examples=["op-12"])] = None


class NoteAsked(Asked):
    """A note for a ticket's timeline."""

    note: Note
    actor: Annotated[Identifier | None, Field(description="Who does it.", examples=["op-12"])] = None


class FeedbackAsked(Asked):
    """What an operator thinks of an answer."""

    operator_id: Annotated[Identifier, Field(examples=["op-12"])]
    rating: Rating
    was_helpful: bool | None = None
    comment: Note | None = None

    def new(self) -> NewFeedback:
        """Return it for the service."""
        return NewFeedback(self.operator_id, self.rating, self.was_helpful, self.comment)


class FileNamed(Asked):
    """The name of a file."""

    name: Annotated[str, Field(pattern=FILE_NAME, max_length=200)]


class SessionAsked(Asked):
    """Who begins a session."""

    user_id: Annotated[Identifier, Field(examples=["op-12"])]
    role: Role


class BatchAsked(Asked):
    """The ids of tickets that are wanted."""

    ticket_ids: Annotated[
        list[Identifier], Field(min_length=1, max_length=TICKETS_MAX, examples=[["tkt_fad2a1897a4b73e9f649"]])
    ]


class SimilarAsked(Asked):
    """A text, or its embedding, that similar tickets are wanted for."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["text"]}, {"required": ["embedding"]}]}
    )

    text: Annotated[str | SkipJsonSchema[None], Field(min_length=1, max_length=NOTE_CHARACTERS_MAX)] = None
    embedding: Embedding | SkipJsonSchema[None] = None
    limit: Annotated[int, Field(ge=1, le=SIMILAR_MAX)] = 5

    @model_validator(mode="before")
    @classmethod
    def _says_no_null(cls, told: Any) -> Any:
        return without_null(told)

    @model_validator(mode="after")
    def _says_one(self) -> SimilarAsked:
        if (self.text is None) == (self.embedding is None):
            raise ValueError("give a text or an embedding, and not both")
        return self


def without_null(told: Any, but: tuple[str, ...] = ()) -> Any:
    """Return what came in; refuse a null, which would be taken for something that was left out, where it means nothing else."""
    if isinstance(told, dict):
        for name, value in told.items():
            if value is None and name not in but:
                raise ValueError(f"{name} is null; leave it out, or give a value")
    return told


# What goes out


class TicketTold(Told):
    """A ticket."""

    ticket_id: str
    customer_id: str
    status: Status
    priority: Priority
    subject: str
    symptom_text: str
    text_continues: Annotated[
        bool, Field(description="The text is longer: the whole is at /tickets/{ticket_id}/text.")
    ]
    product: str | None
    created_at: Moment
    updated_at: Moment
    completed_at: Moment | None
    assigned_to: str | None
    escalated_at: Moment | None
    escalation_reason: str | None
    version: int
    next_statuses: Annotated[list[Status], Field(description="What the status may become.")]


class SummaryTold(Told):
    """What a list tells of a ticket."""

    ticket_id: str
    customer_id: str
    status: Status
    priority: Priority
    subject: str
    created_at: Moment
    updated_at: Moment


class EscalationTold(SummaryTold):
    """What the escalations tell of a ticket."""

    assigned_to: str | None
    escalated_at: Moment | None
    escalation_reason: str | None


class EventTold(Told):
    """Something that happened to a ticket."""

    at: Moment
    sequence: int
    kind: EventKind
    actor: str | None
    old_status: Status | None
    new_status: Status | None
    note: str | None
    details: dict[str, str]


class FeedbackTold(Told):
    """What an operator said; lists of an operator leave the comment out."""

    ticket_id: str
    feedback_id: str
    operator_id: str
    submitted_at: Moment
    rating: int
    was_helpful: bool | None = None
    comment: str | None = None


class AttachmentTold(Told):
    """What is known of a file."""

    name: str
    content_type: str
    size_bytes: int
    added_at: Moment
    added_by: str | None


class TicketWhole(Told):
    """A ticket and what hangs on it."""

    ticket: TicketTold
    events: Annotated[
        list[EventTold],
        Field(
            description="In order; of a long history the last ones, all are at /tickets/{ticket_id}/events."
        ),
    ]
    feedback: list[FeedbackTold]
    attachments: list[AttachmentTold]


class TicketsTold(Told):
    """Tickets in the order in which they were asked for; null where there is none."""

    items: list[TicketTold | None]


class SimilarTold(Told):
    """A ticket that is like another."""

    ticket: SummaryTold
    distance: Annotated[float, Field(description="0 is the same direction, 2 the opposite.")]


class SimilarsTold(Told):
    """The tickets most alike, nearest first."""

    items: list[SimilarTold]


class SessionTold(Told):
    """A session that is valid."""

    session_id: str
    user_id: str
    role: Role
    created_at: Moment
    expires_at: Moment


class TallyTold(Told):
    """How many there are, and their average; null of none."""

    count: int
    mean: float | None


class DayTold(Told):
    """The numbers of a day, in UTC."""

    day: date
    opened: int
    resolved: int
    resolution_s: TallyTold
    satisfaction: TallyTold


class DashboardTold(Told):
    """The numbers of the desk, kept by its stream."""

    tickets: int
    by_status: dict[Status, int]
    by_priority: dict[Priority, int]
    resolution_s: TallyTold
    satisfaction: TallyTold
    ratings: dict[str, int]
    days: Annotated[list[DayTold], Field(description="Oldest first.")]


# From the one to the other


def ticket_of(ticket: Ticket) -> TicketTold:
    """Return a ticket as it is told."""
    return TicketTold(
        ticket_id=ticket.ticket_id,
        customer_id=ticket.customer_id,
        status=ticket.status,
        priority=ticket.priority,
        subject=ticket.subject,
        symptom_text=ticket.symptom_text,
        text_continues=ticket.full_text is not None,
        product=ticket.product,
        created_at=ticket.created_at,
        updated_at=ticket.updated_at,
        completed_at=ticket.completed_at,
        assigned_to=ticket.assigned_to,
        escalated_at=ticket.escalated_at,
        escalation_reason=ticket.escalation_reason,
        version=ticket.version,
        next_statuses=next_statuses(ticket.status),
    )


def next_statuses(status: Status) -> list[Status]:
    """Return what a status may become, in the order of declaration."""
    return [each for each in Status if each in TRANSITIONS[status]]


def summary_of(ticket: TicketSummary | Ticket) -> SummaryTold:
    """Return what a list tells of a ticket."""
    return SummaryTold(
        ticket_id=ticket.ticket_id,
        customer_id=ticket.customer_id,
        status=ticket.status,
        priority=ticket.priority,
        subject=ticket.subject,
        created_at=ticket.created_at,
        updated_at=ticket.updated_at,
    )


def escalation_of(ticket: Escalation) -> EscalationTold:
    """Return what the escalations tell of a ticket."""
    return EscalationTold(
        ticket_id=ticket.ticket_id,
        customer_id=ticket.customer_id,
        status=ticket.status,
        priority=ticket.priority,
        subject=ticket.subject,
        created_at=ticket.created_at,
        updated_at=ticket.updated_at,
        assigned_to=ticket.assigned_to,
        escalated_at=ticket.escalated_at,
        escalation_reason=ticket.escalation_reason,
    )


def note_of(note: NoteAdded) -> EventTold:
    """Return a note as the event that it is."""
    return EventTold(
        at=note.at,
        sequence=note.sequence,
        kind=EventKind.NOTE_ADDED,
        actor=note.actor,
        old_status=None,
        new_status=None,
        note=note.note,
        details={},
    )


def event_of(event: Event) -> EventTold:
    """Return an event as it is told."""
    return EventTold(
        at=event.at,
        sequence=event.sequence,
        kind=event.kind,
        actor=event.actor,
        old_status=event.old_status,
        new_status=event.new_status,
        note=event.note,
        details=event.details,
    )


def feedback_of(feedback: Feedback | FeedbackSummary | FeedbackGiven) -> FeedbackTold:
    """Return feedback as it is told."""
    return FeedbackTold(
        ticket_id=feedback.ticket_id,
        feedback_id=feedback.feedback_id,
        operator_id=feedback.operator_id,
        submitted_at=feedback.submitted_at,
        rating=feedback.rating,
        was_helpful=None if isinstance(feedback, FeedbackGiven) else feedback.was_helpful,
        comment=feedback.comment if isinstance(feedback, Feedback) else None,
    )


def attachment_of(attachment: Attachment) -> AttachmentTold:
    """Return what is known of a file."""
    return AttachmentTold(
        name=attachment.name,
        content_type=attachment.content_type,
        size_bytes=attachment.body.size,
        added_at=attachment.added_at,
        added_by=attachment.added_by,
    )


def whole_of(file: TicketFile, ticket: Ticket) -> TicketWhole:
    """Return a ticket and all that hangs on it."""
    return TicketWhole(
        ticket=ticket_of(ticket),
        events=[event_of(event) for event in file.events],
        feedback=[feedback_of(feedback) for feedback in file.feedback],
        attachments=[attachment_of(attachment) for attachment in file.attachments],
    )


def similar_of(similar: Similar) -> SimilarTold:
    """Return a ticket that is like another."""
    return SimilarTold(ticket=summary_of(similar.ticket), distance=similar.distance)


def session_of(login: Login) -> SessionTold:
    """Return a session as it is told."""
    return SessionTold(
        session_id=login.session_id,
        user_id=login.user_id,
        role=login.role,
        created_at=login.created_at,
        expires_at=login.expires_at,
    )


def dashboard_of(numbers: Dashboard) -> DashboardTold:
    """Return the numbers as they are told."""
    return DashboardTold(
        tickets=numbers.tickets,
        by_status=dict(numbers.by_status),
        by_priority=dict(numbers.by_priority),
        resolution_s=_tally_of(numbers.resolution_s),
        satisfaction=_tally_of(numbers.satisfaction),
        ratings={str(rating): count for rating, count in numbers.ratings.items()},
        days=[
            DayTold(
                day=day.day,
                opened=day.opened,
                resolved=day.resolved,
                resolution_s=_tally_of(day.resolution_s),
                satisfaction=_tally_of(day.satisfaction),
            )
            for day in numbers.days
        ],
    )


def _tally_of(tally: Tally) -> TallyTold:
    mean = tally.mean
    return TallyTold(count=tally.count, mean=None if mean is None else float(round(mean, 3)))
