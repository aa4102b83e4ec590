"""The errors that the support desk raises.

Messages name the ticket; the public messages that go into HTTP responses do not, because responses end up in logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tavola.apps.errors import ApplicationError, RecordMissing
from tavola.apps.support_desk.domain import TRANSITIONS, TicketStatus
from tavola.errors import ErrorKind


class SupportDeskError(ApplicationError):
    """The base of the support desk's own errors."""

    code = "refused"
    kind = ErrorKind.CONFLICT
    title = "Refused"


@dataclass(eq=False)
class TicketError(SupportDeskError):
    """An error about one ticket."""

    ticket_id: str


@dataclass(eq=False)
class TicketMissing(RecordMissing, TicketError):
    """No ticket has this ID."""

    message = "Ticket {ticket_id!r} does not exist; check its ID"
    public_message = "This ticket does not exist. Check its ID, or list the existing ones."


@dataclass(eq=False)
class AttachmentMissing(RecordMissing, TicketError):
    """The ticket has no attachment of this name."""

    message = "Ticket {ticket_id!r} has no attachment {name!r}; check its name"
    public_message = "This attachment does not exist. Check its name, or list the existing ones."

    name: str


@dataclass(eq=False)
class AttachmentExists(TicketError):
    """Another file of the ticket has this name."""

    message = "Ticket {ticket_id!r} already has a file {name!r}; remove it first, or use another name"

    name: str


@dataclass(eq=False)
class AttachmentLimitReached(TicketError):
    """The ticket has the maximum number of attachments."""

    message = "Ticket {ticket_id!r} already has {limit} files, the maximum; remove one first"

    limit: int


@dataclass(eq=False)
class EventLimitReached(TicketError):
    """The ticket has the maximum number of events."""

    message = "Ticket {ticket_id!r} already has {limit:,} events, the maximum; open another ticket"

    limit: int


@dataclass(eq=False)
class NotEscalated(TicketError):
    """An escalation cannot end because the ticket is not escalated."""

    code = "not-escalated"
    title = "Not escalated"
    message = "Ticket {ticket_id!r} is {status}, not escalated"
    public_message = "The ticket is {status}, not escalated."

    status: TicketStatus


@dataclass(eq=False)
class TicketTransitionRefused(TicketError):
    """The ticket cannot change from its current status to this one."""

    code = "transition-refused"
    title = "Status change not allowed"
    message = "Ticket {ticket_id!r} is {before} and cannot become {after}; allowed: {allowed_text}"
    public_message = "The ticket is {before} and cannot become {after}. Allowed: {allowed_text}."

    before: TicketStatus
    after: TicketStatus

    def __post_init__(self) -> None:
        self.allowed = tuple(status for status in TicketStatus if status in TRANSITIONS[self.before])
        self.allowed_text = ", ".join(self.allowed)
        if TicketStatus.ESCALATED in self.allowed:
            self.allowed_text = self.allowed_text.replace("ESCALATED", "ESCALATED (by an escalation)")
        super().__post_init__()

    @property
    def extensions(self) -> Mapping[str, Any]:
        """The current status and the allowed ones."""
        return {"present": self.before, "allowed": list(self.allowed)}


@dataclass(eq=False)
class TicketChanged(TicketError):
    """The ticket has changed since the caller read it; nothing was written."""

    code = "precondition-failed"
    title = "Ticket changed"
    message = (
        "Ticket {ticket_id!r} was changed by someone else: it is at version {current}, and version {expected} was expected; "
        "read it again and repeat the change"
    )
    public_message = "The ticket is at version {current}, and the change was made for version {expected}. Read it again and repeat the change."

    expected: int
    current: int

    @property
    def headers(self) -> Mapping[str, str]:
        """The ETag of the current version."""
        return {"ETag": f'"{self.current}"'}


@dataclass(eq=False)
class TicketBusy(TicketError):
    """Every attempt at a change lost the race against other writers; nothing was written."""

    code = "contended"
    title = "Too many concurrent changes"
    message = (
        "Ticket {ticket_id!r} was changed by others during all {attempts} attempts; send the request again"
    )
    public_message = "Other requests kept changing the ticket, and nothing was saved. Send the request again."

    attempts: int

    @property
    def headers(self) -> Mapping[str, str]:
        """When to retry."""
        return {"Retry-After": "1"}


@dataclass(eq=False)
class TextTooLong(SupportDeskError):
    """A text exceeds its limit."""

    code = "too-large"
    kind = ErrorKind.TOO_LARGE
    title = "Too large"
    message = (
        "The {field} has {characters:,} characters, more than the limit of {limit:,}; attach it as a file"
    )

    field: str
    characters: int
    limit: int


@dataclass(eq=False)
class EmbeddingRefused(SupportDeskError):
    """The vector index cannot hold this embedding."""

    code = "invalid"
    kind = ErrorKind.INVALID
    title = "Invalid request"
    message = "The embedding cannot be used: {problem}"

    problem: str

    @property
    def extensions(self) -> Mapping[str, Any]:
        """The error of the field."""
        return {"errors": [{"in": "body", "pointer": "#/embedding", "detail": self.problem}]}


@dataclass(eq=False)
class SimilarUnavailable(SupportDeskError):
    """The target has no vector indexes, so similar tickets cannot be searched."""

    code = "no-vectors"
    kind = ErrorKind.NOT_INSTALLED
    title = "No vector search"
    message = "Similar tickets cannot be searched: {reason}; everything else works"

    reason: str
