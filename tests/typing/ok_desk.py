"""Fifteen calls on the support desk's design, each result held to its type; then the same asynchronously."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import assert_type

from tavola import AsyncConnection, AsyncPage, Connection, Page
from tests.client.desk import Desk, Event, Feedback, Session, Status, Ticket, TicketFile, TicketRef

TABLES = (Desk,)
AT = datetime(2026, 1, 1, tzinfo=UTC)


def fill() -> list[Ticket | Event | Feedback | Session]:
    """Return a ticket and what belongs to it."""
    return [
        Ticket(
            ticket_id="t1", customer_id="c1", subject="VPN down", created_at=AT, assignee="ann", queue="vip"
        ),
        Event(ticket_id="t1", at=AT, event_id="e1", kind="opened"),
        Feedback(ticket_id="t1", customer_id="c1", score=2),
        Session(session_id="s1", agent="ann", expires=datetime(2100, 1, 1, tzinfo=UTC)),
    ]


def use(db: Connection) -> None:
    """Do everything once."""
    db.put_many(fill())
    ticket = Ticket(ticket_id="t2", customer_id="c1", subject="s", created_at=AT)
    assert_type(ticket.status, Status)

    assert_type(db.get(Ticket.Key(ticket_id="t1")), Ticket | None)
    assert_type(db.get(Event.Key(ticket_id="t1", at=AT, event_id="e1")), Event | None)
    assert_type(db.put(ticket, when=~Ticket.ticket_id.exists()), Ticket)
    assert_type(db.query(Ticket.ByCustomer(customer_id="c1")), Page[Ticket])
    assert_type(db.query(Ticket.ByCustomer(customer_id="c1").status.eq("open")), Page[Ticket])
    dated = Ticket.ByCustomer(customer_id="c1").status.eq("open").created_at.between(AT, AT)
    assert_type(db.query(dated), Page[Ticket])
    urgent = Ticket.ByAssignee(assignee="ann").priority.lt(4)
    talked = db.query(urgent.where((Ticket.replies >= 0) & Ticket.subject.begins_with("VPN")))
    assert_type(talked.items, list[Ticket])
    by_status = db.query(Ticket.ByStatus(status="open").created_at.gte(AT))
    assert_type(by_status, Page[TicketRef])
    between = db.query(Ticket.ByStatus(status="open").created_at.between(AT, AT), newest_first=True)
    assert_type(between, Page[TicketRef])
    queued = db.query(Ticket.InQueue(queue="vip", status="open").priority.eq(3).created_at.gte(AT), limit=10)
    assert_type(queued, Page[Ticket])
    assert_type(db.query(Event.InTicket(ticket_id="t1").at.eq(AT).event_id.begins_with("e")), Page[Event])
    closed = db.update(
        Ticket.Key(ticket_id="t1"),
        Ticket.status.set("closed"),
        Ticket.replies.add(1),
        Ticket.assignee.remove(),
        when=Ticket.status == "open",
    )
    assert_type(closed, Ticket)
    file = db.collect(TicketFile(ticket_id="t1"))
    assert_type(file, TicketFile)
    assert_type(file.ticket, Ticket | None)
    assert_type(file.feedback, Feedback | None)
    assert_type(file.events, list[Event])
    for event in db.query(Event.InTicket(ticket_id="t1"), newest_first=True):
        assert_type(event.at, datetime)
    scored = Feedback.ByCustomer(customer_id="c1").score.between(1, 3)
    assert_type(db.query(scored.where(Feedback.score.is_in(1, 2))), Page[Feedback])
    ended = db.delete(Session.Key(session_id="s1"), when=Session.expires > AT)
    assert_type(ended, Session | None)
    assert_type(db.get(Ticket.Key(ticket_id="t1"), view=TicketRef), TicketRef | None)

    assert len(by_status.items) == 2
    assert [len(page.items) for page in (talked, queued, between)] == [1, 1, 2]
    assert ended is not None
    assert (closed.status, closed.replies, closed.assignee) == ("closed", 1, None)
    assert file.ticket == closed
    assert file.feedback is not None
    assert len(file.events) == 1


async def use_async(db: AsyncConnection) -> None:
    """Do the same with the asynchronous shell."""
    await db.put_many(fill())
    assert_type(await db.get(Ticket.Key(ticket_id="t1")), Ticket | None)
    assert_type(await db.query(Ticket.ByCustomer(customer_id="c1").status.eq("open")), AsyncPage[Ticket])
    assert_type(await db.query(Ticket.ByStatus(status="open").created_at.gte(AT)), AsyncPage[TicketRef])
    async for event in await db.query(Event.InTicket(ticket_id="t1")):
        assert_type(event, Event)
    changed = await db.update(Ticket.Key(ticket_id="t1"), Ticket.status.set("closed"))
    assert_type(changed, Ticket)
    file = await db.collect(TicketFile(ticket_id="t1"))
    assert_type(file.events, list[Event])
    assert_type(await db.count(Ticket.ByCustomer(customer_id="c1")), int)
    assert_type(await db.scan(Ticket, where=Ticket.status == "closed"), AsyncPage[Ticket])
    assert_type(await db.delete(changed), Ticket | None)

    assert await db.get(Ticket.Key(ticket_id="t1")) is None
