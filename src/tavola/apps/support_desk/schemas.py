"""The JSON of the support desk's REST interface: request bodies and responses.

Responses are built from entities by the `…_response` functions; times are ISO 8601 in UTC. Requests declare their limits, which the OpenAPI
document shows, and refuse unknown fields, so that a misspelt field is not silently ignored.
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
    RunningAverage,
    Status,
)
from tavola.apps.support_desk.model import (
    Attachment,
    Escalation,
    Event,
    Feedback,
    FeedbackSummary,
    FullTicket,
    Login,
    Ticket,
    TicketSummary,
)
from tavola.apps.support_desk.service import SimilarTicket
from tavola.apps.support_desk.store import FeedbackGiven, NoteAdded

IDENTIFIER = r"^[A-Za-z0-9][A-Za-z0-9._:@+\-]{0,127}$"
_INVISIBLE = (
    r"\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
)
_FILE_NAME_CHARACTER = rf'[^/\\"{_INVISIBLE}]'
FILE_NAME = rf'^(?:\.{{0,2}}[^./\\"{_INVISIBLE}]{_FILE_NAME_CHARACTER}*|\.{{3}}{_FILE_NAME_CHARACTER}*)$'  # not "." or "..", which have a meaning in paths
NOT_BLANK = r"[^\s\x1c-\x1f]"  # for Python and Rust, which disagree on four blanks
TICKETS_MAX = 100  # per request
SIMILAR_MAX = 50

Moment = AwareDatetime
Identifier = Annotated[str, Field(pattern=IDENTIFIER, max_length=128, examples=["cust-017"])]
Line = Annotated[str, Field(min_length=1, max_length=SUBJECT_CHARACTERS_MAX, pattern=NOT_BLANK)]
Note = Annotated[str, Field(min_length=1, max_length=NOTE_CHARACTERS_MAX, pattern=NOT_BLANK)]
Rating = Annotated[int, Field(ge=RATING_MIN, le=RATING_MAX, strict=True, examples=[5])]
Number = Annotated[float, Field(ge=-3e38, le=3e38, allow_inf_nan=False)]
Embedding = Annotated[list[Number], Field(min_length=1, max_length=4_096)]


NextStatus = Literal[Status.PROCESSING, Status.READY, Status.FAILED]


class DeskRequestModel(BaseModel):
    """The base of the requests."""

    model_config = ConfigDict(extra="forbid")


class DeskResponseModel(BaseModel):
    """The base of the responses."""

    model_config = ConfigDict(frozen=True)


# Requests


class OpenTicketRequest(DeskRequestModel):
    """A ticket to open."""

    customer_id: Identifier
    symptom_text: Annotated[str, Field(min_length=1, max_length=SYMPTOM_CHARACTERS_MAX, pattern=NOT_BLANK)]
    priority: Priority = Priority.MEDIUM
    subject: Annotated[Line | None, Field(description="Default: the first line of the text.")] = None
    product: Line | None = None
    embedding: Annotated[
        Embedding | None,
        Field(
            description="Of the text, 64 numbers; lets searches find the ticket as a similar one. Without it, tickets like it are found by its words.",
            examples=[None],
        ),
    ] = None

    def new(self) -> NewTicket:
        """Return the ticket for the service."""
        return NewTicket(
            customer_id=self.customer_id,
            symptom_text=self.symptom_text,
            priority=self.priority,
            subject=self.subject,
            product=self.product,
            embedding=None if self.embedding is None else tuple(self.embedding),
        )


class ChangeTicketRequest(DeskRequestModel):
    """Changes of a ticket; absent fields stay unchanged. ESCALATED is reached by an escalation only."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": [name]} for name in ("status", "priority", "subject", "product")],
            "dependentRequired": {"note": ["status"]},
        }
    )

    status: NextStatus | SkipJsonSchema[None] = None
    priority: Priority | SkipJsonSchema[None] = None
    subject: Line | SkipJsonSchema[None] = None
    product: Annotated[Line | None, Field(description="null removes it.")] = None
    note: Annotated[Note | SkipJsonSchema[None], Field(description="Recorded with the change of status.")] = (
        None
    )
    actor: Annotated[
        Identifier | SkipJsonSchema[None], Field(description="Who makes the change.", examples=["op-12"])
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _refuse_null(cls, body: Any) -> Any:
        return refuse_null(body, allowed=("product",))

    @model_validator(mode="after")
    def _require_change(self) -> ChangeTicketRequest:
        if self.status is None and self.amendment() == Amendment():
            raise ValueError("nothing is to change; give status, priority, subject or product")
        if self.note is not None and self.status is None:
            raise ValueError("a note goes with a change of status; POST it to the ticket's events")
        return self

    def amendment(self) -> Amendment:
        """Return the changes other than the status."""
        product = "" if self.product is None and "product" in self.model_fields_set else self.product
        return Amendment(subject=self.subject, priority=self.priority, product=product)


class EscalationRequest(DeskRequestModel):
    """An engineer to assign a ticket to."""

    engineer: Annotated[Identifier, Field(examples=["eng-03"])]
    reason: Note
    actor: Annotated[Identifier | None, Field(description="Who makes the change.", examples=["op-12"])] = None


class NoteRequest(DeskRequestModel):
    """A note for a ticket's timeline."""

    note: Note
    actor: Annotated[Identifier | None, Field(description="Who makes the change.", examples=["op-12"])] = None


class FeedbackRequest(DeskRequestModel):
    """An operator's feedback on an answer."""

    operator_id: Annotated[Identifier, Field(examples=["op-12"])]
    rating: Rating
    was_helpful: bool | None = None
    comment: Note | None = None

    def new(self) -> NewFeedback:
        """Return the feedback for the service."""
        return NewFeedback(self.operator_id, self.rating, self.was_helpful, self.comment)


class AttachmentName(DeskRequestModel):
    """The name of a file."""

    name: Annotated[str, Field(pattern=FILE_NAME, max_length=200)]


class StartSessionRequest(DeskRequestModel):
    """The user of a new session."""

    user_id: Annotated[Identifier, Field(examples=["op-12"])]
    role: Role


class GetTicketsRequest(DeskRequestModel):
    """The ids of tickets."""

    ticket_ids: Annotated[
        list[Identifier], Field(min_length=1, max_length=TICKETS_MAX, examples=[["tkt_fad2a1897a4b73e9f649"]])
    ]


class SimilarTicketsRequest(DeskRequestModel):
    """A text, or its embedding, to find similar tickets for."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["text"]}, {"required": ["embedding"]}]}
    )

    text: Annotated[str | SkipJsonSchema[None], Field(min_length=1, max_length=NOTE_CHARACTERS_MAX)] = None
    embedding: Embedding | SkipJsonSchema[None] = None
    limit: Annotated[int, Field(ge=1, le=SIMILAR_MAX)] = 5

    @model_validator(mode="before")
    @classmethod
    def _refuse_null(cls, body: Any) -> Any:
        return refuse_null(body)

    @model_validator(mode="after")
    def _require_one(self) -> SimilarTicketsRequest:
        if (self.text is None) == (self.embedding is None):
            raise ValueError("give a text or an embedding, and not both")
        return self


def refuse_null(body: Any, allowed: tuple[str, ...] = ()) -> Any:
    """Return a request body; refuse a null where it would only mean that the field is absent."""
    if isinstance(body, dict):
        for name, value in body.items():
            if value is None and name not in allowed:
                raise ValueError(f"{name} is null; leave it out, or give a value")
    return body


# Responses


class TicketResponse(DeskResponseModel):
    """A ticket."""

    ticket_id: str
    customer_id: str
    status: Status
    priority: Priority
    subject: str
    symptom_text: str
    text_continues: Annotated[
        bool, Field(description="The text is longer: all of it is at /tickets/{ticket_id}/text.")
    ]
    product: str | None
    created_at: Moment
    updated_at: Moment
    completed_at: Moment | None
    assigned_to: str | None
    escalated_at: Moment | None
    escalation_reason: str | None
    version: int
    next_statuses: Annotated[list[Status], Field(description="The statuses that may follow.")]


class TicketSummaryResponse(DeskResponseModel):
    """A ticket in a list."""

    ticket_id: str
    customer_id: str
    status: Status
    priority: Priority
    subject: str
    created_at: Moment
    updated_at: Moment


class EscalationResponse(TicketSummaryResponse):
    """A ticket in a list of escalations."""

    assigned_to: str | None
    escalated_at: Moment | None
    escalation_reason: str | None


class EventResponse(DeskResponseModel):
    """An event of a ticket."""

    at: Moment
    sequence: int
    kind: EventKind
    actor: str | None
    old_status: Status | None
    new_status: Status | None
    note: str | None
    details: dict[str, str]


class FeedbackResponse(DeskResponseModel):
    """Feedback; lists of an operator leave the comment out."""

    ticket_id: str
    feedback_id: str
    operator_id: str
    submitted_at: Moment
    rating: int
    was_helpful: bool | None = None
    comment: str | None = None


class AttachmentResponse(DeskResponseModel):
    """Facts about a file."""

    name: str
    content_type: str
    size_bytes: int
    added_at: Moment
    added_by: str | None


class FullTicketResponse(DeskResponseModel):
    """A ticket with its events, feedback and attachments."""

    ticket: TicketResponse
    events: Annotated[
        list[EventResponse],
        Field(
            description="In order; of a long history the last ones, all are at /tickets/{ticket_id}/events."
        ),
    ]
    feedback: list[FeedbackResponse]
    attachments: list[AttachmentResponse]


class TicketsResponse(DeskResponseModel):
    """Tickets in the order of the requested ids; null for those that do not exist."""

    items: list[TicketResponse | None]


class SimilarTicketResponse(DeskResponseModel):
    """A similar ticket."""

    ticket: TicketSummaryResponse
    distance: Annotated[float, Field(description="0 is the same direction, 2 the opposite.")]


class SimilarTicketsResponse(DeskResponseModel):
    """The most similar tickets, nearest first."""

    items: list[SimilarTicketResponse]


class SessionResponse(DeskResponseModel):
    """A valid session."""

    session_id: str
    user_id: str
    role: Role
    created_at: Moment
    expires_at: Moment


class AverageResponse(DeskResponseModel):
    """A count and an average; null for a count of 0."""

    count: int
    mean: float | None


class DayNumbersResponse(DeskResponseModel):
    """The numbers of a UTC day."""

    day: date
    opened: int
    resolved: int
    resolution_s: AverageResponse
    satisfaction: AverageResponse


class DashboardResponse(DeskResponseModel):
    """The numbers of the desk."""

    tickets: int
    by_status: dict[Status, int]
    by_priority: dict[Priority, int]
    resolution_s: AverageResponse
    satisfaction: AverageResponse
    ratings: dict[str, int]
    days: Annotated[list[DayNumbersResponse], Field(description="Oldest first.")]


# Responses from entities


def ticket_response(ticket: Ticket) -> TicketResponse:
    """Return the JSON of a ticket."""
    return TicketResponse(
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
    """Return the statuses that may follow, in the order of their declaration."""
    return [each for each in Status if each in TRANSITIONS[status]]


def summary_response(ticket: TicketSummary | Ticket) -> TicketSummaryResponse:
    """Return the list entry of a ticket."""
    return TicketSummaryResponse(
        ticket_id=ticket.ticket_id,
        customer_id=ticket.customer_id,
        status=ticket.status,
        priority=ticket.priority,
        subject=ticket.subject,
        created_at=ticket.created_at,
        updated_at=ticket.updated_at,
    )


def escalation_response(ticket: Escalation) -> EscalationResponse:
    """Return the list entry of an escalated ticket."""
    return EscalationResponse(
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


def note_response(note: NoteAdded) -> EventResponse:
    """Return a note as an event."""
    return EventResponse(
        at=note.at,
        sequence=note.sequence,
        kind=EventKind.NOTE_ADDED,
        actor=note.actor,
        old_status=None,
        new_status=None,
        note=note.note,
        details={},
    )


def event_response(event: Event) -> EventResponse:
    """Return the JSON of an event."""
    return EventResponse(
        at=event.at,
        sequence=event.sequence,
        kind=event.kind,
        actor=event.actor,
        old_status=event.old_status,
        new_status=event.new_status,
        note=event.note,
        details=event.details,
    )


def feedback_response(feedback: Feedback | FeedbackSummary | FeedbackGiven) -> FeedbackResponse:
    """Return the JSON of feedback."""
    return FeedbackResponse(
        ticket_id=feedback.ticket_id,
        feedback_id=feedback.feedback_id,
        operator_id=feedback.operator_id,
        submitted_at=feedback.submitted_at,
        rating=feedback.rating,
        was_helpful=None if isinstance(feedback, FeedbackGiven) else feedback.was_helpful,
        comment=feedback.comment if isinstance(feedback, Feedback) else None,
    )


def attachment_response(attachment: Attachment) -> AttachmentResponse:
    """Return the JSON of an attachment."""
    return AttachmentResponse(
        name=attachment.name,
        content_type=attachment.content_type,
        size_bytes=attachment.body.size,
        added_at=attachment.added_at,
        added_by=attachment.added_by,
    )


def full_ticket_response(full: FullTicket, ticket: Ticket) -> FullTicketResponse:
    """Return the JSON of a ticket with everything that belongs to it."""
    return FullTicketResponse(
        ticket=ticket_response(ticket),
        events=[event_response(event) for event in full.events],
        feedback=[feedback_response(feedback) for feedback in full.feedback],
        attachments=[attachment_response(attachment) for attachment in full.attachments],
    )


def similar_ticket_response(similar: SimilarTicket) -> SimilarTicketResponse:
    """Return the JSON of a similar ticket."""
    return SimilarTicketResponse(ticket=summary_response(similar.ticket), distance=similar.distance)


def session_response(login: Login) -> SessionResponse:
    """Return the JSON of a session."""
    return SessionResponse(
        session_id=login.session_id,
        user_id=login.user_id,
        role=login.role,
        created_at=login.created_at,
        expires_at=login.expires_at,
    )


def dashboard_response(numbers: Dashboard) -> DashboardResponse:
    """Return the JSON of the dashboard."""
    return DashboardResponse(
        tickets=numbers.tickets,
        by_status=dict(numbers.by_status),
        by_priority=dict(numbers.by_priority),
        resolution_s=_average_response(numbers.resolution_s),
        satisfaction=_average_response(numbers.satisfaction),
        ratings={str(rating): count for rating, count in numbers.ratings.items()},
        days=[
            DayNumbersResponse(
                day=day.day,
                opened=day.opened,
                resolved=day.resolved,
                resolution_s=_average_response(day.resolution_s),
                satisfaction=_average_response(day.satisfaction),
            )
            for day in numbers.days
        ],
    )


def _average_response(average: RunningAverage) -> AverageResponse:
    mean = average.mean
    return AverageResponse(count=average.count, mean=None if mean is None else float(round(mean, 3)))
