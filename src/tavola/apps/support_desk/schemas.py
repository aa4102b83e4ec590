"""The JSON of the support desk's REST interface: request bodies and responses.

Responses are built from entities with `model_validate`; times are ISO 8601 in UTC. Requests declare their limits, which the OpenAPI
document shows, and refuse unknown fields, so that a misspelt field is not silently ignored.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from tavola.apps.support_desk.domain import (
    NOTE_CHARACTERS_MAX,
    RATING_MAX,
    RATING_MIN,
    SUBJECT_CHARACTERS_MAX,
    SYMPTOM_CHARACTERS_MAX,
    Amendment,
    EventKind,
    NewFeedback,
    NewTicket,
    Priority,
    TicketStatus,
    UserRole,
)
from tavola.apps.support_desk.store import NoteAdded

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


NextStatus = Literal[TicketStatus.PROCESSING, TicketStatus.READY, TicketStatus.FAILED]


class DeskRequestModel(BaseModel):
    """The base of the requests."""

    model_config = ConfigDict(extra="forbid")


class DeskResponseModel(BaseModel):
    """The base of the responses; `model_validate` builds one from an entity or a dataclass with the same fields."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


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
            description="Embedding of the text with 64 numbers, for finding similar tickets. Without it, the words of the text are compared.",
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
            raise ValueError("nothing to change; set status, priority, subject or product")
        if self.note is not None and self.status is None:
            raise ValueError(
                "a note requires a change of status; to add a note alone, POST it to the ticket's events"
            )
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
    role: UserRole


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
            raise ValueError("set either text or embedding")
        return self


def refuse_null(body: Any, allowed: tuple[str, ...] = ()) -> Any:
    """Return a request body; refuse a null where it would only mean that the field is absent."""
    if isinstance(body, dict):
        for name, value in body.items():
            if value is None and name not in allowed:
                raise ValueError(f"{name} is null; leave it out or set a value")
    return body


# Responses


class TicketResponse(DeskResponseModel):
    """A ticket."""

    ticket_id: str
    customer_id: str
    status: TicketStatus
    priority: Priority
    subject: str
    symptom_text: str
    text_continues: Annotated[
        bool,
        Field(description="Whether the text is longer; GET /tickets/{ticket_id}/text returns all of it."),
    ]
    product: str | None
    created_at: Moment
    updated_at: Moment
    completed_at: Moment | None
    assigned_to: str | None
    escalated_at: Moment | None
    escalation_reason: str | None
    version: int
    next_statuses: Annotated[list[TicketStatus], Field(description="The statuses that may follow.")]


class TicketSummaryResponse(DeskResponseModel):
    """A ticket in a list."""

    ticket_id: str
    customer_id: str
    status: TicketStatus
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
    old_status: TicketStatus | None
    new_status: TicketStatus | None
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
            description="Oldest first. A long history is cut to its latest events; GET /tickets/{ticket_id}/events returns all."
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
    distance: Annotated[float, Field(description="Cosine distance: 0 is identical, 2 is opposite.")]


class SimilarTicketsResponse(DeskResponseModel):
    """The most similar tickets, nearest first."""

    items: list[SimilarTicketResponse]


class SessionResponse(DeskResponseModel):
    """A valid session."""

    session_id: str
    user_id: str
    role: UserRole
    created_at: Moment
    expires_at: Moment


class AverageResponse(DeskResponseModel):
    """A count and an average; null for a count of 0."""

    count: int
    mean: Annotated[
        float | None, BeforeValidator(lambda mean: None if mean is None else float(round(mean, 3)))
    ]


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
    by_status: dict[TicketStatus, int]
    by_priority: dict[Priority, int]
    resolution_s: AverageResponse
    satisfaction: AverageResponse
    ratings: Annotated[
        dict[str, int], BeforeValidator(lambda ratings: {str(rating): n for rating, n in ratings.items()})
    ]
    days: Annotated[list[DayNumbersResponse], Field(description="Oldest first.")]


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
