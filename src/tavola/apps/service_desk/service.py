"""The four operations of the service desk: report an issue, ask for its state, add a comment, list recent tickets."""

from __future__ import annotations

from dataclasses import dataclass

from tavola import ItemExists
from tavola.apps.service_desk.domain import OPEN, TICKET_ID_BYTES_MAX
from tavola.apps.service_desk.errors import KeyReused, TextRefused, TicketChanged, TicketMissing
from tavola.apps.service_desk.model import Comment, Ticket
from tavola.apps.service_desk.store import ServiceDeskStore

CONTENTION_MAX = 10  # how often a comment is tried again that others came before


@dataclass(frozen=True, slots=True)
class Reported:
    """A ticket as it was made, now or when the same request came first."""

    ticket: Ticket
    replayed: bool


@dataclass(frozen=True, slots=True)
class Recent:
    """A page of a caller's tickets, newest first."""

    caller_id: str  # as it is stored, for the next question
    tickets: list[Ticket]
    cursor: str | None  # None: there are no more


async def report_issue(
    store: ServiceDeskStore, caller: str, issue_description: str, key: str | None = None
) -> Reported:
    """Make a ticket; with an idempotency key, once for that caller and key, however often it is asked.

    The key is kept nowhere: the ticket's id is made of it, and of two who create one id the table lets one.
    """
    caller_id = store.callers.caller_id(caller)
    _check_text(issue_description, "description")
    ticket_id = store.new_id() if key is None else store.callers.ticket_id(caller_id, key)
    now = store.now()
    ticket = Ticket(
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
        standing = error.found or await store.ticket(ticket_id)
        return Reported(_as_made(standing, ticket), replayed=True)
    return Reported(ticket, replayed=False)


def _as_made(standing: Ticket, asked: Ticket) -> Ticket:
    """Return a ticket as it was when it was made, which is what the lost answer said; refuse another payload."""
    if (standing.caller_id, standing.issue_description) != (asked.caller_id, asked.issue_description):
        raise KeyReused
    return standing.model_copy(update={"status": OPEN, "updated_at": standing.created_at, "comments": []})


async def ticket_status(store: ServiceDeskStore, ticket_id: str) -> Ticket:
    """Return a ticket with its comments."""
    _check_id(ticket_id)
    return await store.ticket(ticket_id)


async def add_comment(
    store: ServiceDeskStore, ticket_id: str, comment_text: str, seen: Ticket | None = None
) -> Ticket:
    """Add a comment to a ticket that exists, and return the ticket; only of the ticket as it was `seen`, if given."""
    _check_id(ticket_id)
    _check_text(comment_text, "comment")
    comment = Comment(comment_text=comment_text, added_at=store.now())
    return await store.append(ticket_id, comment, seen)


async def add_comment_once(store: ServiceDeskStore, ticket_id: str, comment_text: str, known: int) -> Ticket:
    """Add a comment unless it is among those that came after the `known` first: a form that was sent twice.

    Others may comment at the same time; then it is looked at again.
    """
    for _ in range(CONTENTION_MAX):
        ticket = await ticket_status(store, ticket_id)
        if any(comment.comment_text == comment_text for comment in ticket.comments[known:]):
            return ticket
        try:
            return await add_comment(store, ticket_id, comment_text, seen=ticket)
        except TicketChanged:
            continue
    raise TicketChanged


async def recent_tickets(store: ServiceDeskStore, caller: str, cursor: str | None = None) -> Recent:
    """Return the ten newest tickets of a caller, or the ten that follow a cursor."""
    caller_id = store.callers.caller_id(caller)
    tickets, following = await store.recent(caller_id, cursor)
    return Recent(caller_id, tickets, following)


def _check_id(ticket_id: str) -> None:
    if not ticket_id or len(ticket_id.encode("utf-8", "surrogatepass")) > TICKET_ID_BYTES_MAX:
        raise TicketMissing


def _check_text(text: str, what: str) -> None:
    if not text.strip():
        raise TextRefused(f"The {what} is empty. Say what is the matter.")
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise TextRefused(f"The {what} holds half a character, which is no text. Send it as UTF-8.")
