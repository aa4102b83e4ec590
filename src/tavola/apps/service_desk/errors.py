"""Errors: what the desk refuses, in sentences for the person who asked.

A sentence never repeats what a person wrote or where they called from: sentences go into logs.
"""

from __future__ import annotations

from tavola import TavolaError
from tavola.apps.service_desk.domain import TICKET_KB_MAX

_COMMENTS_APART = (
    "Open another ticket that names this one. A desk whose tickets are talked about at length keeps each comment "
    "as an item of its own, under the ticket's partition key."
)


class DeskError(TavolaError):
    """A request that the desk refuses; the sentence says what to do."""


class CallerRefused(DeskError):
    """A caller that is neither a session id nor a telephone number with its country."""


class TextRefused(DeskError):
    """A description or comment that says nothing, or that cannot be stored as text."""


class TicketMissing(DeskError):
    """A ticket that does not exist."""

    def __init__(self) -> None:
        super().__init__("There is no ticket with this id. Ids are those that creating a ticket gave.")


class TicketTooLarge(DeskError):
    """A ticket that would pass 400 KB; nothing was written."""

    def __init__(self, *, comment: bool) -> None:
        remedy = _COMMENTS_APART if comment else "Shorten the description, or keep long texts elsewhere."
        what = "With this comment the ticket" if comment else "The ticket"
        super().__init__(
            f"{what} would be larger than {TICKET_KB_MAX} KB, which is the most that a ticket holds. {remedy}"
        )


class KeyReused(DeskError):
    """An idempotency key that a different ticket of the same caller was made with."""

    def __init__(self) -> None:
        super().__init__(
            "This Idempotency-Key was used for a ticket with another description. Use a new key for a new ticket."
        )


class TicketChanged(DeskError):
    """A ticket that is no longer as the client last saw it."""

    def __init__(self) -> None:
        super().__init__(
            "The ticket was changed since it was read. Read it again: perhaps the comment is there already."
        )
