"""The service desk's table as the use cases want it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from tavola import (
    AsyncConnection,
    Condition,
    ConditionFailed,
    ItemSizeExceeded,
    ItemUnreadable,
    ValidationFault,
)
from tavola.apps.service_desk.callers import Callers
from tavola.apps.service_desk.domain import OPEN, RECENT_MAX
from tavola.apps.service_desk.errors import TicketChanged, TicketMissing, TicketTooLarge
from tavola.apps.service_desk.model import Comment, Ticket, Tickets

_log = logging.getLogger(__name__)

# What every ticket has. An item without it is no ticket, and a comment does not make it one.
_WHOLE = Ticket.caller_id.exists() & Ticket.issue_description.exists() & Ticket.created_at.exists()


class ServiceDeskStore:
    """Tickets in a table that may be shared with programs that know nothing of Tavola."""

    def __init__(self, db: AsyncConnection, secret: bytes) -> None:
        self.db = db
        self.callers = Callers(secret)

    def now(self) -> datetime:
        """Return the present moment, in UTC."""
        return datetime.fromtimestamp(self.db.context.clock.now(), UTC)

    def new_id(self) -> str:
        """Return the id of a ticket that nobody has."""
        return self.db.context.entropy.uuid()

    async def create(self, ticket: Ticket) -> None:
        """Store a ticket that is not there yet; `ItemExists` if one is."""
        try:
            await self.db.create(ticket)
        except ItemSizeExceeded as error:
            raise TicketTooLarge(comment=False) from error

    async def ticket(self, ticket_id: str) -> Ticket:
        """Return a ticket as it is now.

        An item that lacks what every ticket has is none: the ghosts that an unconditional update of comments leaves.
        """
        try:
            found = await self.db.get(Ticket.Key(ticket_id=ticket_id))
        except ItemUnreadable as error:
            _log.warning("%s", _no_ticket(error))
            raise TicketMissing from error
        if found is None:
            raise TicketMissing
        return found

    async def append(self, ticket_id: str, comment: Comment, seen: Ticket | None = None) -> Ticket:
        """Add a comment at the end of a ticket's, and return the ticket; only of the ticket as it was `seen`, if given.

        The list is appended to where it is stored, so comments that come together are all kept. What others wrote and
        is no ticket takes no comment: it is read before it is written to.
        """
        when = _WHOLE
        if seen is None:
            await self.ticket(ticket_id)
        else:
            when &= _unchanged(seen)
        try:
            return await self.db.update(
                Ticket.Key(ticket_id=ticket_id),
                Ticket.comments.append(comment),
                Ticket.updated_at.set(comment.added_at),
                when=when,
            )
        except ConditionFailed as error:
            if error.found is None:  # no item, or one that is no ticket
                raise TicketMissing from error
            raise TicketChanged from error
        except ItemSizeExceeded as error:
            raise TicketTooLarge(comment=True) from error
        except (ItemUnreadable, ValidationFault) as error:  # it has become one since it was read
            raise TicketMissing from error

    async def recent(self, caller_id: str, cursor: str | None) -> tuple[list[Ticket], str | None]:
        """Return a page of a caller's tickets, newest first, and the cursor of the next; None where none follows.

        What others wrote and is no ticket is left out.
        """
        page = await self.db.query(
            Ticket.ByCaller(caller_id=caller_id),
            newest_first=True,
            limit=RECENT_MAX,
            cursor=cursor,
            unreadable=lambda error: _log.warning("%s", _no_ticket(error)),
        )
        return page.items, page.cursor


def _unchanged(seen: Ticket) -> Condition[Ticket]:
    """Return the condition that nobody has commented on a ticket or changed its state since it was seen.

    Times are not compared: others may write them with or without a fraction, and what is seen does not tell.
    """
    comments = Ticket.comments.size() == len(seen.comments)
    if not seen.comments:
        comments |= Ticket.comments.not_exists()
    status = Ticket.status == seen.status
    if seen.status == OPEN:
        status |= Ticket.status.not_exists()
    return comments & status


def _no_ticket(error: ItemUnreadable) -> str:
    return f"An item in {Tickets.settings.name} is no ticket, and is passed over: {error}"
