"""Service: what the desk does, one function for each use case.

Each takes the store first. Reads of lists give a `Slice`: the items and a cursor that leads on, or None. What cannot be done is an error of
`errors`, or one of Tavola's own (a bad cursor, another payload under a request's key).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Protocol, TypeVar

from tavola import AsyncTransaction, Entity, Intent, Selection, TransactionCancelled
from tavola.apps.support_desk import numbers
from tavola.apps.support_desk.attachments import (
    attach,
    attachment,
    attachment_data,
    detach,
    same_file,
    text_kept,
    whole_text,
)
from tavola.apps.support_desk.changes import (
    add_note,
    change_status,
    change_ticket,
    end_escalation,
    escalate,
)
from tavola.apps.support_desk.domain import (
    Dashboard,
    EventKind,
    NewFeedback,
    NewTicket,
    Role,
    Status,
    Stretch,
    subject_of,
)
from tavola.apps.support_desk.embeddings import embed
from tavola.apps.support_desk.errors import TicketMissing
from tavola.apps.support_desk.model import (
    Escalation,
    Event,
    Feedback,
    FeedbackSummary,
    Login,
    Ticket,
    TicketFeedback,
    TicketFile,
    TicketSummary,
    TicketVector,
)
from tavola.apps.support_desk.similar import Hit
from tavola.apps.support_desk.store import FeedbackGiven, Neighbour, SupportDeskStore, TicketOpened
from tavola.patterns import Answer, Slice

__all__ = [
    "add_note",
    "attach",
    "attachment",
    "attachment_data",
    "change_status",
    "change_ticket",
    "customer_tickets",
    "dashboard",
    "detach",
    "end_escalation",
    "end_session",
    "escalate",
    "escalations",
    "events_of_day",
    "feedback_by_operator",
    "feedback_of_ticket",
    "give_feedback",
    "latest_events",
    "open_ticket",
    "recent_tickets",
    "same_file",
    "session",
    "similar_tickets",
    "start_session",
    "ticket",
    "ticket_file",
    "ticket_with_feedback",
    "tickets",
    "tickets_by_status",
    "tickets_like",
    "timeline",
    "whole_text",
]

LIMIT = 20
FILE_ITEMS_MAX = (
    200  # of a ticket with what hangs on it: itself, its feedback, its files, and events while there is room
)
HITS_MAX = 100  # of a vector search, to find enough among them that are still there
EVER = Stretch()

E = TypeVar("E", bound=Entity)
E_co = TypeVar("E_co", bound=Entity, covariant=True)


class _Dated(Protocol[E_co]):
    """A moment in a sort key, as it is asked."""

    def between(self, lower: datetime, upper: datetime, /) -> Selection[E_co]: ...
    def gte(self, value: datetime, /) -> Selection[E_co]: ...
    def lte(self, value: datetime, /) -> Selection[E_co]: ...


@dataclass(frozen=True, slots=True)
class Similar:
    """A ticket whose text is near another's: 0 is the same direction, 2 the opposite."""

    ticket: Ticket
    distance: float


# Tickets


async def open_ticket(
    store: SupportDeskStore, new: NewTicket, *, request: str | None = None
) -> Answer[TicketOpened]:
    """Open a ticket with its first event, both or none; under a request's key it is done once, and answered as often as it is asked.

    The same key with another payload is an `IdempotencyMismatch`. `.replayed` says that it was done before.
    """

    async def fill(tx: AsyncTransaction) -> TicketOpened:
        return await _opening(store, new, tx)

    if request is not None:
        return await store.tickets_opened.together(request, new, fill, scope=f"tickets/{new.customer_id}")
    async with store.db.transaction() as tx:
        opened = await fill(tx)
    return Answer(opened, replayed=False)


async def ticket(store: SupportDeskStore, ticket_id: str, *, consistent: bool = False) -> Ticket:
    """Return a ticket; one that is not there is a `TicketMissing`."""
    found = await store.db.get(Ticket.Key(ticket_id=ticket_id), consistent=consistent)
    if found is None:
        raise TicketMissing(ticket_id)
    return found


async def tickets(store: SupportDeskStore, ticket_ids: Iterable[str]) -> list[Ticket | None]:
    """Return any number of tickets in the order of their ids, None where there is none."""
    return await store.db.get_many(Ticket.Key(ticket_id=ticket_id) for ticket_id in ticket_ids)


async def customer_tickets(
    store: SupportDeskStore,
    customer_id: str,
    *,
    status: Status | None = None,
    limit: int = LIMIT,
    cursor: str | None = None,
    newest_first: bool = True,
) -> Slice[TicketSummary]:
    """Return a customer's tickets, all or those of one status, newest first or oldest first."""
    asked: Selection[TicketSummary] = Ticket.ByCustomer(customer_id=customer_id)
    if status is not None:
        asked = Ticket.ByCustomerAndStatus(customer_id=customer_id).status.eq(status)
    return await _slice(store, asked, limit, cursor, newest_first=newest_first)


async def tickets_by_status(
    store: SupportDeskStore,
    status: Status,
    during: Stretch = EVER,
    *,
    limit: int = LIMIT,
    cursor: str | None = None,
    newest_first: bool = True,
) -> Slice[TicketSummary]:
    """Return the tickets of a status that were opened during a stretch of time, newest first or oldest first."""
    if during.empty:
        return Slice((), None)
    asked = Ticket.ByStatus(status=status)
    return await _slice(
        store, _during(asked, asked.created_at, during), limit, cursor, newest_first=newest_first
    )


async def recent_tickets(
    store: SupportDeskStore,
    during: Stretch = EVER,
    *,
    limit: int = LIMIT,
    cursor: str | None = None,
    newest_first: bool = True,
) -> Slice[TicketSummary]:
    """Return the tickets that were opened during a stretch of time, newest first or oldest first."""
    if during.empty:
        return Slice((), None)
    asked = Ticket.Recent()
    return await _slice(
        store, _during(asked, asked.created_at, during), limit, cursor, newest_first=newest_first
    )


async def escalations(
    store: SupportDeskStore,
    *,
    engineer: str | None = None,
    limit: int = LIMIT,
    cursor: str | None = None,
    newest_first: bool = True,
) -> Slice[Escalation]:
    """Return the escalated tickets, all or one engineer's, last escalated first or last."""
    asked: Selection[Escalation] = Ticket.Escalated()
    if engineer is not None:
        asked = Ticket.ByEngineer(assigned_to=engineer)
    return await _slice(store, asked, limit, cursor, newest_first=newest_first)


# What hangs on a ticket


async def ticket_file(store: SupportDeskStore, ticket_id: str) -> TicketFile:
    """Return a ticket with its feedback, attachments and events, in one query; `.ticket` is there.

    Of a long history the last events are in it; `timeline` has them all.
    """
    file = await store.db.collect(TicketFile(ticket_id=ticket_id), newest_first=True, limit=FILE_ITEMS_MAX)
    if file.ticket is None:
        raise TicketMissing(ticket_id)
    for newest_first in (file.feedback, file.attachments, file.events):
        newest_first.reverse()
    return file


async def ticket_with_feedback(store: SupportDeskStore, ticket_id: str) -> TicketFeedback:
    """Return a ticket with its feedback, in one query; `.ticket` is there."""
    found = await store.db.collect(TicketFeedback(ticket_id=ticket_id))
    if found.ticket is None:
        raise TicketMissing(ticket_id)
    return found


async def feedback_of_ticket(
    store: SupportDeskStore, ticket_id: str, *, limit: int = LIMIT, cursor: str | None = None
) -> Slice[Feedback]:
    """Return a ticket's feedback, newest first; of a ticket that is not there, none."""
    return await _slice(store, Feedback.OfTicket(ticket_id=ticket_id), limit, cursor)


async def feedback_by_operator(
    store: SupportDeskStore, operator_id: str, *, limit: int = 50, cursor: str | None = None
) -> Slice[FeedbackSummary]:
    """Return the feedback that an operator gave, newest first."""
    return await _slice(store, Feedback.ByOperator(operator_id=operator_id), limit, cursor)


async def give_feedback(
    store: SupportDeskStore, ticket_id: str, new: NewFeedback, *, request: str | None = None
) -> Answer[FeedbackGiven]:
    """Give feedback on a ticket that is there; idempotent under a request's key."""
    checked: list[Intent[Ticket]] = []

    def fill(tx: AsyncTransaction) -> FeedbackGiven:
        made = Feedback(
            ticket_id=ticket_id,
            feedback_id=store.new_id("fb"),
            operator_id=new.operator_id,
            submitted_at=store.now(),
            rating=new.rating,
            was_helpful=new.was_helpful,
            comment=new.comment,
        )
        checked.append(tx.check(Ticket.Key(ticket_id=ticket_id)))
        tx.create(made)
        return FeedbackGiven(
            ticket_id=ticket_id,
            feedback_id=made.feedback_id,
            operator_id=made.operator_id,
            submitted_at=made.submitted_at,
            rating=made.rating,
        )

    try:
        if request is not None:
            return await store.feedback_given.together(request, new, fill, scope=f"feedback/{ticket_id}")
        async with store.db.transaction() as tx:
            given = fill(tx)
        return Answer(given, replayed=False)
    except TransactionCancelled as error:
        if any(intent in error.failed and error.failed[intent].kind == "missing" for intent in checked):
            raise TicketMissing(ticket_id) from error
        raise


async def timeline(
    store: SupportDeskStore,
    ticket_id: str,
    during: Stretch = EVER,
    *,
    newest_first: bool = False,
    limit: int = 100,
    cursor: str | None = None,
) -> Slice[Event]:
    """Return a ticket's events of a stretch of time, in the order in which they happened or newest first."""
    if during.empty:
        return Slice((), None)
    asked = Event.OfTicket(ticket_id=ticket_id)
    return await _slice(store, _during(asked, asked.at, during), limit, cursor, newest_first=newest_first)


async def latest_events(store: SupportDeskStore, ticket_id: str, count: int = 10) -> list[Event]:
    """Return a ticket's last events, newest first."""
    page = await store.db.query(Event.OfTicket(ticket_id=ticket_id), newest_first=True, limit=count)
    return page.items


async def events_of_day(
    store: SupportDeskStore, ticket_id: str, day: date, *, limit: int = 100, cursor: str | None = None
) -> Slice[Event]:
    """Return what happened to a ticket on a day, in UTC, in order."""
    whole = Stretch(datetime.combine(day, time.min, UTC), datetime.combine(day, time.max, UTC))
    return await timeline(store, ticket_id, whole, limit=limit, cursor=cursor)


async def similar_tickets(
    store: SupportDeskStore,
    *,
    text: str | None = None,
    embedding: tuple[float, ...] | None = None,
    count: int = 5,
) -> list[Similar]:
    """Return the tickets nearest to a text or an embedding, nearest first; `SimilarUnavailable` where the target has no vector index."""
    if embedding is None:
        embedding = embed(text or "", store.similar.dimensions)
    return await _nearest(store, embedding, count)


async def tickets_like(store: SupportDeskStore, ticket_id: str, *, count: int = 5) -> list[Similar]:
    """Return the tickets most like one, from the cache for a quarter of an hour; none where there is no such ticket.

    One that was given no embedding is looked for by its words.
    """

    async def compute() -> list[Neighbour] | None:
        vector = await store.db.get(TicketVector.Key(ticket_id=ticket_id))
        if vector is not None:
            embedding = tuple(vector.embedding)
        else:
            found = await store.db.get(Ticket.Key(ticket_id=ticket_id))
            if found is None:
                return None
            embedding = embed(found.symptom_text, store.similar.dimensions)
        near = await _nearest(store, embedding, count, but=ticket_id)
        return [Neighbour(ticket_id=each.ticket.ticket_id, distance=each.distance) for each in near]

    found = await store.neighbours.get_or_compute(f"similar/{ticket_id}/{count}", compute)
    return await _tickets_of(store, found or [])


# Sessions and numbers


async def start_session(store: SupportDeskStore, user_id: str, role: Role) -> Login:
    """Begin a session; its id is what the browser keeps."""
    return await store.sessions.start(user_id, role=role)


async def session(store: SupportDeskStore, session_id: str) -> Login | None:
    """Return a session that is valid, renewed if it was time; None if it is over, deleted or not."""
    return await store.sessions.use(session_id)


async def end_session(store: SupportDeskStore, session_id: str) -> bool:
    """End a session now; return whether there was one."""
    return await store.sessions.revoke(session_id)


async def dashboard(store: SupportDeskStore, *, days: int = 30) -> Dashboard:
    """Return the numbers of the desk, with one query; as exact as the stream is read."""
    return await numbers.dashboard(store.db, store.now().date(), days)


# How


async def _opening(store: SupportDeskStore, new: NewTicket, tx: AsyncTransaction) -> TicketOpened:
    """Fill a transaction with a new ticket, its first event and its embedding."""
    if new.embedding is not None:
        store.similar.check(new.embedding)
    text, whole = await text_kept(store, new.symptom_text)
    now = store.now()
    made = Ticket(
        ticket_id=store.new_id("tkt"),
        customer_id=new.customer_id,
        priority=new.priority,
        subject=new.subject or subject_of(new.symptom_text),
        symptom_text=text,
        full_text=whole,
        product=new.product,
        created_at=now,
        updated_at=now,
    )
    tx.create(made)
    tx.create(
        Event(
            ticket_id=made.ticket_id,
            at=now,
            sequence=1,
            kind=EventKind.CREATED,
            actor=new.customer_id,
            new_status=made.status,
            ttl=store.audit_ends(now),
        )
    )
    if new.embedding is not None:
        tx.create(
            TicketVector(
                ticket_id=made.ticket_id, customer_id=made.customer_id, embedding=list(new.embedding)
            )
        )
    return TicketOpened(
        ticket_id=made.ticket_id,
        customer_id=made.customer_id,
        status=made.status,
        priority=made.priority,
        subject=made.subject,
        created_at=now,
        version=1,
    )


async def _slice(
    store: SupportDeskStore,
    asked: Selection[E],
    limit: int,
    cursor: str | None,
    *,
    newest_first: bool = True,
) -> Slice[E]:
    page = await store.db.query(asked, limit=limit, cursor=cursor, newest_first=newest_first)
    return Slice(tuple(page.items), page.cursor)


def _during(asked: Selection[E], part: _Dated[E], during: Stretch) -> Selection[E]:
    """Return a question narrowed to a stretch of time, by a part of its sort key."""
    if during.start is not None and during.end is not None:
        return part.between(during.start, during.end)
    if during.start is not None:
        return part.gte(during.start)
    return asked if during.end is None else part.lte(during.end)


async def _nearest(
    store: SupportDeskStore, embedding: tuple[float, ...], count: int, *, but: str | None = None
) -> list[Similar]:
    """Return the nearest tickets that are there; where the search finds too many that are over, it is made wider."""
    asked = count if but is None else count + 1
    while True:
        hits = await store.similar.nearest(embedding, asked)
        found = await _tickets_of(store, [hit for hit in hits if hit.ticket_id != but])
        if len(found) >= count or len(hits) < asked or asked >= HITS_MAX:
            return found[:count]
        asked = min(HITS_MAX, 4 * asked)


async def _tickets_of(store: SupportDeskStore, hits: Sequence[Hit | Neighbour]) -> list[Similar]:
    """Return the tickets of a search as they are now; those that are gone are left out."""
    found = await tickets(store, [hit.ticket_id for hit in hits])
    return [Similar(each, hit.distance) for each, hit in zip(found, hits, strict=True) if each is not None]
