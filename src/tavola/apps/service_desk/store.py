"""ServiceDeskStore: the service desk's table on a connection."""

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
from tavola.apps.service_desk.errors import ServiceTicketChanged, ServiceTicketMissing, TicketTooLarge
from tavola.apps.service_desk.model import Comment, ServiceTicket, ServiceTickets

_log = logging.getLogger(__name__)

# Attributes of every ticket. An item without them is not a ticket, and a comment must not be added to it.
_IS_TICKET = (
    ServiceTicket.caller_id.exists()
    & ServiceTicket.issue_description.exists()
    & ServiceTicket.created_at.exists()
)


class ServiceDeskStore:
    """Tickets in a table that may be shared with other programs."""

    def __init__(self, db: AsyncConnection, secret: bytes) -> None:
        self.db = db
        self.callers = Callers(secret)

    def now(self) -> datetime:
        """Return the current time of the connection's clock."""
        return datetime.fromtimestamp(self.db.context.clock.now(), UTC)

    def new_id(self) -> str:
        """Return a new ticket ID."""
        return self.db.context.entropy.uuid()

    async def create(self, ticket: ServiceTicket) -> None:
        """Create a ticket; raise `ItemExists` if its ID is taken."""
        try:
            await self.db.create(ticket)
        except ItemSizeExceeded as error:
            raise TicketTooLarge(comment=False) from error

    async def ticket(self, ticket_id: str) -> ServiceTicket:
        """Return a ticket; raise `ServiceTicketMissing` if there is none.

        Incomplete items, which an unconditional update of comments leaves behind, are not tickets.
        """
        try:
            ticket = await self.db.get(ServiceTicket.Key(ticket_id=ticket_id))
        except ItemUnreadable as error:
            _log.warning("%s", _skipped_item(error))
            raise ServiceTicketMissing from error
        if ticket is None:
            raise ServiceTicketMissing
        return ticket

    async def append(
        self, ticket_id: str, comment: Comment, seen: ServiceTicket | None = None
    ) -> ServiceTicket:
        """Append a comment and return the ticket; with `seen`, only if the ticket has not changed since.

        The table appends to the list, so concurrent comments are all kept. The item is read first, because an incomplete one that
        another program wrote must not get a comment.
        """
        when = _IS_TICKET
        if seen is None:
            await self.ticket(ticket_id)
        else:
            when &= _unchanged_condition(seen)
        try:
            return await self.db.update(
                ServiceTicket.Key(ticket_id=ticket_id),
                ServiceTicket.comments.append(comment),
                ServiceTicket.updated_at.set(comment.added_at),
                when=when,
            )
        except ConditionFailed as error:
            if error.found is None:  # no item, or an incomplete one
                raise ServiceTicketMissing from error
            raise ServiceTicketChanged from error
        except ItemSizeExceeded as error:
            raise TicketTooLarge(comment=True) from error
        except (ItemUnreadable, ValidationFault) as error:  # it was overwritten since it was read
            raise ServiceTicketMissing from error

    async def recent(self, caller_id: str, cursor: str | None) -> tuple[list[ServiceTicket], str | None]:
        """Return a page of a caller's tickets, newest first, and the cursor of the next page or None.

        Incomplete items that other programs wrote are left out.
        """
        page = await self.db.query(
            ServiceTicket.ByCaller(caller_id=caller_id),
            newest_first=True,
            limit=RECENT_MAX,
            cursor=cursor,
            unreadable=lambda error: _log.warning("%s", _skipped_item(error)),
        )
        return page.items, page.cursor


def _unchanged_condition(seen: ServiceTicket) -> Condition[ServiceTicket]:
    """Return the condition that a ticket's comments and status have not changed since it was read.

    Times are not compared, because other programs may write them with or without fractions of a second.
    """
    comments = ServiceTicket.comments.size() == len(seen.comments)
    if not seen.comments:
        comments |= ServiceTicket.comments.not_exists()
    status = ServiceTicket.status == seen.status
    if seen.status == OPEN:
        status |= ServiceTicket.status.not_exists()
    return comments & status


def _skipped_item(error: ItemUnreadable) -> str:
    return f"Skipped an item in {ServiceTickets.settings.name} that is not a complete ticket: {error}"
