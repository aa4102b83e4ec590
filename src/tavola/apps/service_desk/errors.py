"""The errors that the service desk raises.

A message must not repeat what a person wrote, or the number they called from: messages end up in logs.
"""

from __future__ import annotations

from tavola.apps.errors import ApplicationError
from tavola.apps.service_desk.domain import TICKET_KB_MAX
from tavola.errors import ErrorKind

_COMMENTS_APART = (
    "Open another ticket that names this one. A desk whose tickets are talked about at length keeps each comment "
    "as an item of its own, under the ticket's partition key."
)


class DeskError(ApplicationError):
    """The base of the service desk's own errors."""


class CallerRefused(DeskError):
    """The caller is neither a session id nor a telephone number with its country code."""

    title = "Caller refused"


class TextRefused(DeskError):
    """A description or comment is blank, or is not valid text."""

    code = "invalid"


class TicketMissing(DeskError):
    """No ticket has this id."""

    code = "not-found"
    kind = ErrorKind.NOT_FOUND
    title = "No such ticket"

    def __init__(self) -> None:
        super().__init__("There is no ticket with this id. Ids are those that creating a ticket gave.")


class TicketTooLarge(DeskError):
    """The ticket would exceed 400 KB; nothing was written."""

    code = "item-too-large"
    kind = ErrorKind.TOO_LARGE
    title = "Ticket too large"

    def __init__(self, *, comment: bool) -> None:
        remedy = _COMMENTS_APART if comment else "Shorten the description, or keep long texts elsewhere."
        what = "With this comment the ticket" if comment else "The ticket"
        super().__init__(
            f"{what} would be larger than {TICKET_KB_MAX} KB, which is the most that a ticket holds. {remedy}"
        )


class KeyReused(DeskError):
    """The idempotency key belongs to a different ticket of the same caller."""

    code = "idempotency-mismatch"
    title = "Idempotency-Key used before"

    def __init__(self) -> None:
        super().__init__(
            "This Idempotency-Key was used for a ticket with another description. Use a new key for a new ticket."
        )


class TicketChanged(DeskError):
    """The ticket has changed since the client read it."""

    code = "precondition-failed"
    kind = ErrorKind.CONFLICT
    title = "Changed meanwhile"

    def __init__(self) -> None:
        super().__init__(
            "The ticket was changed since it was read. Read it again: perhaps the comment is there already."
        )
