"""The use cases of the support desk: one function each, on a `SupportDeskStore`.

Lists are returned as a `Slice`: the items, and the cursor of the next page or None. Failures raise an error of `errors`, or one of
Tavola's own, such as `CursorRefused` or `IdempotencyMismatch`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from tavola import AsyncTransaction, Intent, Selection, TransactionCancelled
from tavola.apps.queries import query_slice, select_between
from tavola.apps.support_desk import metrics
from tavola.apps.support_desk.attachments import (
    attach,
    detach,
    get_attachment,
    is_same_file,
    read_attachment,
    read_full_text,
    store_text,
)
from tavola.apps.support_desk.changes import add_note, change_ticket, end_escalation, escalate
from tavola.apps.support_desk.domain import (
    Dashboard,
    EventKind,
    NewFeedback,
    NewTicket,
    TicketStatus,
    TimeRange,
    UserRole,
    make_subject,
)
from tavola.apps.support_desk.errors import TicketMissing
from tavola.apps.support_desk.model import (
    Escalation,
    Event,
    Feedback,
    FeedbackSummary,
    FullTicket,
    Login,
    Ticket,
    TicketFeedback,
    TicketSummary,
    TicketVector,
)
from tavola.apps.support_desk.similar import SimilarHit, embed
from tavola.apps.support_desk.store import CachedNeighbour, FeedbackGiven, SupportDeskStore, TicketOpened
from tavola.patterns import Answer, Slice

__all__ = [
    "add_note",
    "attach",
    "change_ticket",
    "detach",
    "end_escalation",
    "end_session",
    "escalate",
    "find_similar_tickets",
    "find_tickets_like",
    "get_attachment",
    "get_full_ticket",
    "get_ticket",
    "get_ticket_with_feedback",
    "get_tickets",
    "give_feedback",
    "is_same_file",
    "list_customer_tickets",
    "list_day_events",
    "list_escalations",
    "list_events",
    "list_latest_events",
    "list_operator_feedback",
    "list_recent_tickets",
    "list_ticket_feedback",
    "list_tickets_by_status",
    "open_ticket",
    "read_attachment",
    "read_dashboard",
    "read_full_text",
    "start_session",
    "use_session",
]

LIMIT = 20
FULL_TICKET_ITEMS_MAX = 200  # the ticket, its feedback and files, then events up to the limit
HITS_MAX = 100  # of a vector search, some of whose tickets may have expired
ALL_TIME = TimeRange()


@dataclass(frozen=True, slots=True)
class SimilarTicket:
    """A ticket with a similar text; a distance of 0 is the same direction, 2 the opposite."""

    ticket: Ticket
    distance: float


# Tickets


async def open_ticket(
    store: SupportDeskStore, new: NewTicket, *, idempotency_key: str | None = None
) -> Answer[TicketOpened]:
    """Open a ticket and write its first event, in one transaction.

    With an idempotency key the ticket is opened once, and a repeated request gets the same answer with `.replayed` set. The same key
    with another payload raises `IdempotencyMismatch`.
    """

    async def fill(tx: AsyncTransaction) -> TicketOpened:
        return await _stage_new_ticket(store, new, tx)

    if idempotency_key is not None:
        scope = f"tickets/{new.customer_id}"
        return await store.tickets_opened.together(idempotency_key, new, fill, scope=scope)
    async with store.db.transaction() as tx:
        opened = await fill(tx)
    return Answer(opened, replayed=False)


async def get_ticket(store: SupportDeskStore, ticket_id: str, *, consistent: bool = False) -> Ticket:
    """Return a ticket; raise `TicketMissing` if there is none."""
    ticket = await store.db.get(Ticket.Key(ticket_id=ticket_id), consistent=consistent)
    if ticket is None:
        raise TicketMissing(ticket_id)
    return ticket


async def get_tickets(store: SupportDeskStore, ticket_ids: Iterable[str]) -> list[Ticket | None]:
    """Return any number of tickets in the order of their ids, None for those that do not exist."""
    return await store.db.get_many(Ticket.Key(ticket_id=ticket_id) for ticket_id in ticket_ids)


async def list_customer_tickets(
    store: SupportDeskStore,
    customer_id: str,
    *,
    status: TicketStatus | None = None,
    limit: int = LIMIT,
    cursor: str | None = None,
    newest_first: bool = True,
) -> Slice[TicketSummary]:
    """Return a customer's tickets, all or those with a status."""
    selection: Selection[TicketSummary] = Ticket.ByCustomer(customer_id=customer_id)
    if status is not None:
        selection = Ticket.ByCustomerAndStatus(customer_id=customer_id).status.eq(status)
    return await query_slice(store.db, selection, limit, cursor, newest_first=newest_first)


async def list_tickets_by_status(
    store: SupportDeskStore,
    status: TicketStatus,
    during: TimeRange = ALL_TIME,
    *,
    limit: int = LIMIT,
    cursor: str | None = None,
    newest_first: bool = True,
) -> Slice[TicketSummary]:
    """Return the tickets with a status that were opened in a time range."""
    if during.empty:
        return Slice((), None)
    query = Ticket.ByStatus(status=status)
    selection = select_between(query, query.created_at, during.start, during.end)
    return await query_slice(store.db, selection, limit, cursor, newest_first=newest_first)


async def list_recent_tickets(
    store: SupportDeskStore,
    during: TimeRange = ALL_TIME,
    *,
    limit: int = LIMIT,
    cursor: str | None = None,
    newest_first: bool = True,
) -> Slice[TicketSummary]:
    """Return the tickets that were opened in a time range."""
    if during.empty:
        return Slice((), None)
    query = Ticket.Recent()
    selection = select_between(query, query.created_at, during.start, during.end)
    return await query_slice(store.db, selection, limit, cursor, newest_first=newest_first)


async def list_escalations(
    store: SupportDeskStore,
    *,
    engineer: str | None = None,
    limit: int = LIMIT,
    cursor: str | None = None,
    newest_first: bool = True,
) -> Slice[Escalation]:
    """Return the escalated tickets, all or one engineer's, by the time of escalation."""
    selection: Selection[Escalation] = Ticket.Escalated()
    if engineer is not None:
        selection = Ticket.ByEngineer(assigned_to=engineer)
    return await query_slice(store.db, selection, limit, cursor, newest_first=newest_first)


# Items that belong to a ticket


async def get_full_ticket(store: SupportDeskStore, ticket_id: str) -> FullTicket:
    """Return a ticket with its feedback, attachments and events, in one query; `.ticket` is never None.

    A long history is cut to its last events; `list_events` returns all of them.
    """
    full = await store.db.collect(
        FullTicket(ticket_id=ticket_id), newest_first=True, limit=FULL_TICKET_ITEMS_MAX
    )
    if full.ticket is None:
        raise TicketMissing(ticket_id)
    for newest_first in (full.feedback, full.attachments, full.events):
        newest_first.reverse()
    return full


async def get_ticket_with_feedback(store: SupportDeskStore, ticket_id: str) -> TicketFeedback:
    """Return a ticket with its feedback, in one query; `.ticket` is never None."""
    collection = await store.db.collect(TicketFeedback(ticket_id=ticket_id))
    if collection.ticket is None:
        raise TicketMissing(ticket_id)
    return collection


async def list_ticket_feedback(
    store: SupportDeskStore, ticket_id: str, *, limit: int = LIMIT, cursor: str | None = None
) -> Slice[Feedback]:
    """Return a ticket's feedback, newest first; an empty list if there is no such ticket."""
    selection = Feedback.ByTicket(ticket_id=ticket_id)
    return await query_slice(store.db, selection, limit, cursor, newest_first=True)


async def list_operator_feedback(
    store: SupportDeskStore, operator_id: str, *, limit: int = 50, cursor: str | None = None
) -> Slice[FeedbackSummary]:
    """Return the feedback that an operator gave, newest first."""
    selection = Feedback.ByOperator(operator_id=operator_id)
    return await query_slice(store.db, selection, limit, cursor, newest_first=True)


async def give_feedback(
    store: SupportDeskStore, ticket_id: str, new: NewFeedback, *, idempotency_key: str | None = None
) -> Answer[FeedbackGiven]:
    """Store feedback on an existing ticket; once per idempotency key."""
    checks: list[Intent[Ticket]] = []

    def fill(tx: AsyncTransaction) -> FeedbackGiven:
        feedback = Feedback(
            ticket_id=ticket_id,
            feedback_id=store.new_id("fb"),
            operator_id=new.operator_id,
            submitted_at=store.now(),
            rating=new.rating,
            was_helpful=new.was_helpful,
            comment=new.comment,
        )
        checks.append(tx.check(Ticket.Key(ticket_id=ticket_id)))
        tx.create(feedback)
        return FeedbackGiven.model_validate(feedback, from_attributes=True)

    try:
        if idempotency_key is not None:
            scope = f"feedback/{ticket_id}"
            return await store.feedback_given.together(idempotency_key, new, fill, scope=scope)
        async with store.db.transaction() as tx:
            receipt = fill(tx)
        return Answer(receipt, replayed=False)
    except TransactionCancelled as error:
        if any(check in error.failed and error.failed[check].kind == "missing" for check in checks):
            raise TicketMissing(ticket_id) from error
        raise


async def list_events(
    store: SupportDeskStore,
    ticket_id: str,
    during: TimeRange = ALL_TIME,
    *,
    newest_first: bool = False,
    limit: int = 100,
    cursor: str | None = None,
) -> Slice[Event]:
    """Return a ticket's events in a time range, oldest first by default."""
    if during.empty:
        return Slice((), None)
    query = Event.ByTicket(ticket_id=ticket_id)
    selection = select_between(query, query.at, during.start, during.end)
    return await query_slice(store.db, selection, limit, cursor, newest_first=newest_first)


async def list_latest_events(store: SupportDeskStore, ticket_id: str, count: int = 10) -> list[Event]:
    """Return a ticket's last events, newest first."""
    page = await store.db.query(Event.ByTicket(ticket_id=ticket_id), newest_first=True, limit=count)
    return page.items


async def list_day_events(
    store: SupportDeskStore, ticket_id: str, day: date, *, limit: int = 100, cursor: str | None = None
) -> Slice[Event]:
    """Return a ticket's events of one UTC day, oldest first."""
    during = TimeRange(datetime.combine(day, time.min, UTC), datetime.combine(day, time.max, UTC))
    return await list_events(store, ticket_id, during, limit=limit, cursor=cursor)


async def find_similar_tickets(
    store: SupportDeskStore,
    *,
    text: str | None = None,
    embedding: tuple[float, ...] | None = None,
    count: int = 5,
) -> list[SimilarTicket]:
    """Return the tickets nearest to a text or an embedding; raise `SimilarUnavailable` if the target has no vector index."""
    if embedding is None:
        embedding = embed(text or "", store.similar.dimensions)
    return await _find_nearest(store, embedding, count)


async def find_tickets_like(
    store: SupportDeskStore, ticket_id: str, *, count: int = 5
) -> list[SimilarTicket]:
    """Return the tickets most similar to one, cached for a quarter of an hour; none if there is no such ticket.

    A ticket without an embedding is compared by the words of its text.
    """

    async def compute() -> list[CachedNeighbour] | None:
        vector = await store.db.get(TicketVector.Key(ticket_id=ticket_id))
        if vector is not None:
            embedding = tuple(vector.embedding)
        else:
            ticket = await store.db.get(Ticket.Key(ticket_id=ticket_id))
            if ticket is None:
                return None
            embedding = embed(ticket.symptom_text, store.similar.dimensions)
        nearest = await _find_nearest(store, embedding, count, exclude=ticket_id)
        return [
            CachedNeighbour(ticket_id=neighbour.ticket.ticket_id, distance=neighbour.distance)
            for neighbour in nearest
        ]

    neighbours = await store.neighbours.get_or_compute(f"similar/{ticket_id}/{count}", compute)
    return await _read_tickets(store, neighbours or [])


# Sessions and numbers


async def start_session(store: SupportDeskStore, user_id: str, role: UserRole) -> Login:
    """Start a session; the browser keeps its id."""
    return await store.sessions.start(user_id, role=role)


async def use_session(store: SupportDeskStore, session_id: str) -> Login | None:
    """Return a valid session, renewed if due; None if it has expired or ended."""
    return await store.sessions.use(session_id)


async def end_session(store: SupportDeskStore, session_id: str) -> bool:
    """End a session now; return whether it existed."""
    return await store.sessions.revoke(session_id)


async def read_dashboard(store: SupportDeskStore, *, days: int = 30) -> Dashboard:
    """Return the desk's numbers with one query; they are as current as the stream has been read."""
    return await metrics.read_dashboard(store.db, store.now().date(), days)


# Shared steps


async def _stage_new_ticket(store: SupportDeskStore, new: NewTicket, tx: AsyncTransaction) -> TicketOpened:
    """Add a new ticket, its first event and its embedding to a transaction."""
    if new.embedding is not None:
        store.similar.check(new.embedding)
    text, full_text = await store_text(store, new.symptom_text)
    now = store.now()
    ticket = Ticket(
        ticket_id=store.new_id("tkt"),
        customer_id=new.customer_id,
        priority=new.priority,
        subject=new.subject or make_subject(new.symptom_text),
        symptom_text=text,
        full_text=full_text,
        product=new.product,
        created_at=now,
        updated_at=now,
    )
    tx.create(ticket)
    tx.create(
        Event(
            ticket_id=ticket.ticket_id,
            at=now,
            sequence=1,
            kind=EventKind.CREATED,
            actor=new.customer_id,
            new_status=ticket.status,
            ttl=store.event_expiry(now),
        )
    )
    if new.embedding is not None:
        tx.create(
            TicketVector(
                ticket_id=ticket.ticket_id, customer_id=ticket.customer_id, embedding=list(new.embedding)
            )
        )
    return TicketOpened(
        ticket_id=ticket.ticket_id,
        customer_id=ticket.customer_id,
        status=ticket.status,
        priority=ticket.priority,
        subject=ticket.subject,
        created_at=now,
        version=1,
    )


async def _find_nearest(
    store: SupportDeskStore, embedding: tuple[float, ...], count: int, *, exclude: str | None = None
) -> list[SimilarTicket]:
    """Return the nearest tickets that still exist; the search is widened if too many hits have expired."""
    search_count = count if exclude is None else count + 1
    while True:
        hits = await store.similar.nearest(embedding, search_count)
        tickets = await _read_tickets(store, [hit for hit in hits if hit.ticket_id != exclude])
        if len(tickets) >= count or len(hits) < search_count or search_count >= HITS_MAX:
            return tickets[:count]
        search_count = min(HITS_MAX, 4 * search_count)


async def _read_tickets(
    store: SupportDeskStore, hits: Sequence[SimilarHit | CachedNeighbour]
) -> list[SimilarTicket]:
    """Return the current tickets of search hits; those that no longer exist are left out."""
    tickets = await get_tickets(store, [hit.ticket_id for hit in hits])
    return [
        SimilarTicket(ticket, hit.distance)
        for ticket, hit in zip(tickets, hits, strict=True)
        if ticket is not None
    ]
