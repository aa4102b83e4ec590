"""The four operations of the service desk: report an issue, get a ticket, add a comment, list recent tickets."""

from __future__ import annotations

from dataclasses import dataclass

from tavola import ItemExists
from tavola.apps.service_desk.domain import OPEN, TICKET_ID_BYTES_MAX
from tavola.apps.service_desk.errors import KeyReused, ServiceTicketChanged, ServiceTicketMissing, TextRefused
from tavola.apps.service_desk.model import Comment, ServiceTicket
from tavola.apps.service_desk.store import ServiceDeskStore

ATTEMPTS_MAX = 10  # at adding a comment while others comment too


@dataclass(frozen=True, slots=True)
class ReportedIssue:
    """A new ticket; `replayed` if the same request created it earlier."""

    ticket: ServiceTicket
    replayed: bool


@dataclass(frozen=True, slots=True)
class CallerTickets:
    """A page of a caller's tickets, newest first."""

    caller_id: str  # as stored, for the next request
    tickets: list[ServiceTicket]
    cursor: str | None  # None on the last page


async def report_issue(
    store: ServiceDeskStore, caller: str, issue_description: str, key: str | None = None
) -> ReportedIssue:
    """Create a ticket; with an idempotency key, once per caller and key.

    The key is not stored: the ticket's ID is derived from it, and the table accepts each ID once.
    """
    caller_id = store.callers.caller_id(caller)
    _check_text(issue_description, "description")
    ticket_id = store.new_id() if key is None else store.callers.ticket_id(caller_id, key)
    now = store.now()
    ticket = ServiceTicket(
        ticket_id=ticket_id,
        caller_id=caller_id,
        issue_description=issue_description,
        created_at=now,
        updated_at=now,
    )
    try:
        await store.create(ticket)
    except ItemExists as error:
        if key is None:
            raise
        existing = error.found or await store.ticket(ticket_id)
        return ReportedIssue(_as_created(existing, ticket), replayed=True)
    return ReportedIssue(ticket, replayed=False)


def _as_created(existing: ServiceTicket, requested: ServiceTicket) -> ServiceTicket:
    """Return a ticket as it was when it was created; refuse a request with other content."""
    if (existing.caller_id, existing.issue_description) != (
        requested.caller_id,
        requested.issue_description,
    ):
        raise KeyReused
    return existing.model_copy(update={"status": OPEN, "updated_at": existing.created_at, "comments": []})


async def ticket_status(store: ServiceDeskStore, ticket_id: str) -> ServiceTicket:
    """Return a ticket with its comments."""
    _check_id(ticket_id)
    return await store.ticket(ticket_id)


async def add_comment(
    store: ServiceDeskStore, ticket_id: str, comment_text: str, seen: ServiceTicket | None = None
) -> ServiceTicket:
    """Add a comment to an existing ticket and return the ticket; with `seen`, only if it has not changed since."""
    _check_id(ticket_id)
    _check_text(comment_text, "comment")
    comment = Comment(comment_text=comment_text, added_at=store.now())
    return await store.append(ticket_id, comment, seen)


async def add_comment_once(
    store: ServiceDeskStore, ticket_id: str, comment_text: str, known: int
) -> ServiceTicket:
    """Add a comment unless it is among those after the first `known`, so that a form submitted twice adds it once.

    Retries if others comment at the same time.
    """
    for _ in range(ATTEMPTS_MAX):
        ticket = await ticket_status(store, ticket_id)
        if any(comment.comment_text == comment_text for comment in ticket.comments[known:]):
            return ticket
        try:
            return await add_comment(store, ticket_id, comment_text, seen=ticket)
        except ServiceTicketChanged:
            continue
    raise ServiceTicketChanged


async def recent_tickets(store: ServiceDeskStore, caller: str, cursor: str | None = None) -> CallerTickets:
    """Return the ten newest tickets of a caller, or the ten after a cursor."""
    caller_id = store.callers.caller_id(caller)
    tickets, next_cursor = await store.recent(caller_id, cursor)
    return CallerTickets(caller_id, tickets, next_cursor)


def _check_id(ticket_id: str) -> None:
    if not ticket_id or len(ticket_id.encode("utf-8", "surrogatepass")) > TICKET_ID_BYTES_MAX:
        raise ServiceTicketMissing


def _check_text(text: str, what: str) -> None:
    if not text.strip():
        raise TextRefused(f"Enter a {what}.")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise TextRefused(f"The {what} contains a lone surrogate. Send it as UTF-8.")
