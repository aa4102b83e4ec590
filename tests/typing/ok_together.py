"""Batches and transactions: every member keeps its own type, and so does the reason why it failed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import assert_type

from tavola import AsyncConnection, Connection, Intent, TransactionCancelled, WriteFailure
from tests.client.desk import Desk, Event, Session, Ticket

TABLES = (Desk,)
AT = datetime(2026, 1, 1, tzinfo=UTC)


def ticket(name: str) -> Ticket:
    """Return a ticket."""
    return Ticket(ticket_id=name, customer_id="c1", subject="s", created_at=AT)


def use(db: Connection) -> None:
    """Write and read several things at once."""
    key, event = Ticket.Key(ticket_id="t1"), Event(ticket_id="t1", at=AT, event_id="e1", kind="opened")
    assert_type(db.put_many([ticket("t1"), event]), int)
    assert_type(db.get_many(Ticket.Key(ticket_id=name) for name in ("t1", "t2")), list[Ticket | None])
    three = db.get_all(key, Event.Key(ticket_id="t1", at=AT, event_id="e1"), Session.Key(session_id="s"))
    assert_type(three, tuple[Ticket | None, Event | None, Session | None])
    at_once = db.get_together(key, Event.Key(ticket_id="t1", at=AT, event_id="e1"))
    assert_type(at_once, tuple[Ticket | None, Event | None])
    assert_type(db.get_together([key, Ticket.Key(ticket_id="t2")]), list[Ticket | None])
    assert_type(db.delete_many([Session.Key(session_id="s"), event]), int)

    with db.transaction() as tx:
        created = tx.create(ticket("t2"))
        tx.update(key, Ticket.status.set("closed"), when=Ticket.status == "open")
        tx.put(event, when=Event.kind.not_exists())
        tx.delete(Session.Key(session_id="s"), when=Session.agent.not_exists())
    assert_type(created, Intent[Ticket])

    tx = db.transaction()
    checked = tx.check(key, when=Ticket.status == "open")
    tx.create(Session(session_id="s", agent="ann", expires=AT))
    try:
        tx.commit()
    except TransactionCancelled as error:
        reason = error.failed[checked]
        assert_type(reason, WriteFailure[Ticket])
        assert_type(reason.item, Ticket | None)

        assert reason.item is not None
        assert reason.item.status == "closed"
    assert three[2] is None
    assert at_once[0] is not None


async def use_async(db: AsyncConnection) -> None:
    """Do the same with the asynchronous shell."""
    await db.put_many([ticket("t1")])
    key = Ticket.Key(ticket_id="t1")
    assert_type(await db.get_many([key]), list[Ticket | None])
    assert_type(await db.get_all(key, Session.Key(session_id="s")), tuple[Ticket | None, Session | None])
    assert_type(await db.get_together(key, Session.Key(session_id="s")), tuple[Ticket | None, Session | None])
    async with db.transaction() as tx:
        changed = tx.update(key, Ticket.status.set("closed"), Ticket.assignee.set("ann"))
        tx.create(ticket("t3"))
    assert_type(changed, Intent[Ticket])

    assert await db.get(Ticket.Key(ticket_id="t3")) is not None
