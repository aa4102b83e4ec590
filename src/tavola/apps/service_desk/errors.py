"""The errors that the service desk raises.

A message must not repeat what a person wrote, or the number they called from: messages end up in logs.
"""

from __future__ import annotations

from dataclasses import dataclass

from tavola.apps.errors import ApplicationError, RecordMissing
from tavola.apps.service_desk.domain import TICKET_KB_MAX
from tavola.errors import ErrorKind


class ServiceDeskError(ApplicationError):
    """The base of the service desk's own errors."""


class CallerRefused(ServiceDeskError):
    """The caller is neither a session ID nor a phone number with a country code."""

    title = "Invalid caller"


class TextRefused(ServiceDeskError):
    """A description or comment is blank, or is not valid text."""

    code = "invalid"


class ServiceTicketMissing(RecordMissing, ServiceDeskError):
    """No ticket has this ID."""

    message = "No ticket has this ID. Use the ID that was returned when the ticket was created."


@dataclass(eq=False)
class TicketTooLarge(ServiceDeskError):
    """The ticket would exceed 400 KB; nothing was written."""

    code = "item-too-large"
    kind = ErrorKind.TOO_LARGE
    title = "Ticket too large"
    message = f"The ticket would be larger than {TICKET_KB_MAX} KB, the limit of an item. {{remedy}}"

    comment: bool  # whether a comment made it too large

    def __post_init__(self) -> None:
        self.remedy = (
            "Open another ticket that refers to this one. For long conversations, store each comment as its own item."
            if self.comment
            else "Shorten the description."
        )
        super().__post_init__()


class KeyReused(ServiceDeskError):
    """The idempotency key belongs to a different ticket of the same caller."""

    code = "idempotency-mismatch"
    title = "Idempotency-Key used before"
    message = (
        "This Idempotency-Key was used for a ticket with another description. Use a new key for a new ticket."
    )


class ServiceTicketChanged(ServiceDeskError):
    """The ticket has changed since the client read it."""

    code = "precondition-failed"
    kind = ErrorKind.CONFLICT
    title = "Ticket changed"
    message = (
        "The ticket has changed since it was read. Read it again to check whether the comment was added."
    )
