"""Mistakes in batches and transactions, one a line; nothing here is ever run."""

from __future__ import annotations

from datetime import UTC, datetime

from tavola import AsyncConnection, Connection, TransactionCancelled
from tests.client.desk import Event, Session, Ticket

AT = datetime(2026, 1, 1, tzinfo=UTC)


def batches(db: Connection) -> None:
    """Batches take keys to read and to delete, and entities to write."""
    key = Ticket.Key(ticket_id="t1")
    db.get_many(["t1"])  # error: texts are no keys
    db.get_many([Ticket.ByCustomer(customer_id="c1")])  # error: queries are no keys
    db.get_many([key])[0].subject  # error: None is not handled
    db.put_many([key])  # error: keys are no entities
    db.put_many([{"ticket_id": "t1"}])  # error: a dict is no entity
    db.delete_many([Ticket])  # error: a class is no key
    first, second = db.get_together(key, Session.Key(session_id="s"))
    first.subject  # error: None is not handled
    if second is not None:
        second.subject  # error: another entity's field


def transactions(db: Connection) -> None:
    """Each member of a transaction is of one entity, its condition and its changes too."""
    key = Ticket.Key(ticket_id="t1")
    with db.transaction() as tx:
        tx.create(key)  # error: a key is no entity
        tx.put(Session(session_id="s", agent="a", expires=AT), when=Ticket.status == "open")  # error: other
        tx.update(key, Event.kind.set("x"))  # error: another entity's change
        tx.update(key, Ticket.status.set("opne"))  # error: wrong literal
        tx.delete(key, when=Event.kind == "x")  # error: another entity's condition
        checked = tx.check(key, when=Ticket.status == "opne")  # error: wrong literal
        tx.get(key)  # error: a transaction writes
    try:
        tx.commit()
    except TransactionCancelled as error:
        error.failed[checked].item.subject  # error: None is not handled
        error.failed["checked"]  # error: a name is no member
    with db.transaction(7):  # error: a token is a text
        pass


async def asynchronous(db: AsyncConnection) -> None:
    """An asynchronous transaction ends with its `async with`."""
    with db.transaction() as tx:  # error: async with
        pass
    async with db.transaction() as tx:
        tx.update(Ticket.Key(ticket_id="t1"), Event.kind.set("x"))  # error: another entity's change
    db.get_together(Ticket.Key(ticket_id="t1"))[0]  # error: not awaited
