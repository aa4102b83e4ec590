"""Measuring: the units of all calls inside, by table and index, and of no other call."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from tavola import Connection, ItemExists, connect, connect_async
from tavola.prices import load_book
from tests.client.desk import Desk, Ticket

AT = datetime(2026, 9, 1, 12, tzinfo=UTC)


def ticket(**more: object) -> Ticket:
    """Return a ticket."""
    return Ticket(**{"ticket_id": "t1", "customer_id": "c1", "subject": "VPN", "created_at": AT, **more})  # type: ignore[arg-type]


def test_calls_are_summed_by_table_and_index(db: Connection) -> None:
    """Writes count on the table and on each index they change, reads where they read."""
    with db.measure() as spent:
        db.put(ticket(subject="x" * 1_500))
        db.get(Ticket.Key(ticket_id="t1"))
        list(db.query(Ticket.ByCustomer(customer_id="c1")))

    (table,) = spent.tables.values()
    assert (spent.calls, spent.reads, spent.writes) == (3, 1.0, 5.0)
    assert (table.reads, table.writes) == (0.5, 2.0)
    assert table.indexes == {"gsi1": 2.5, "gsi3": 1.0}
    assert spent.operations == {"PutItem": 1, "GetItem": 1, "Query": 1}
    assert str(spent) == "1 read and 5 write units by 1 GetItem, 1 PutItem, 1 Query"
    assert spent.usd(load_book("us-east-1")) == Decimal("0.00000325")


def test_calls_outside_the_block_are_not_counted(db: Connection) -> None:
    """A meter ends with its block; an inner meter also counts for the outer one."""
    with db.measure() as outer:
        db.put(ticket())
        with db.measure() as inner:
            db.get(Ticket.Key(ticket_id="t1"))
    db.get(Ticket.Key(ticket_id="t1"))

    assert (inner.calls, outer.calls) == (1, 2)
    assert str(inner) == "0.5 read units by 1 GetItem"


def test_a_refused_write_has_no_units(db: Connection) -> None:
    """DynamoDB reports no units for a refusal, so the meter counts none."""
    db.put(ticket())

    with db.measure() as spent, pytest.raises(ItemExists):
        db.create(ticket())

    assert (spent.calls, spent.writes) == (0, 0.0)


def test_threads_do_not_disturb_each_other() -> None:
    """Another thread's calls are not counted, unless it runs in this thread's context."""
    with connect("memory:") as db, ThreadPoolExecutor(1) as pool:
        db.create_tables(Desk)
        with db.measure() as spent:
            pool.submit(db.put, ticket()).result()
            assert spent.calls == 0
            pool.submit(copy_context().run, db.put, ticket()).result()

    assert spent.calls == 1


def test_tasks_started_inside_count_and_others_do_not() -> None:
    """A task takes its maker's meter with it; one made outside has none."""

    async def story() -> tuple[int, int]:
        async with connect_async("memory:") as db:
            await db.create_tables(Desk)
            begin = asyncio.Event()

            async def outsider() -> None:
                await begin.wait()
                await db.put(ticket(ticket_id="t9"))

            outside = asyncio.create_task(outsider())
            with db.measure() as spent:
                begin.set()
                await asyncio.gather(*(db.put(ticket(ticket_id=f"t{number}")) for number in range(3)))
                await outside
            with db.measure() as later:
                await db.get(Ticket.Key(ticket_id="t9"))
            return spent.calls, later.calls

    assert asyncio.run(story()) == (3, 1)
