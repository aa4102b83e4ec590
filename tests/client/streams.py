"""Shared by the tests of streams: a ticket, and a subscription read to its end on either client."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tavola import Table
from tavola.client.stream_changes import AnyChange
from tavola.client.subscriptions import AsyncSubscription
from tests.client.conftest import Awaited
from tests.client.desk import Desk, Ticket

AT = datetime(2026, 9, 1, 12, tzinfo=UTC)


def ticket(ticket_id: str = "t1", **more: object) -> Ticket:
    """Return a ticket."""
    return Ticket(ticket_id=ticket_id, customer_id="c1", subject="VPN", created_at=AT, **more)  # type: ignore[arg-type]


def listed(db: Any, subscription: Any) -> list[AnyChange]:
    """Return every change of a subscription that does not follow, on either client."""
    if not isinstance(subscription, AsyncSubscription):
        return list(subscription)

    async def everything() -> list[AnyChange]:
        return [change async for change in subscription]

    assert isinstance(db, Awaited)
    found: list[AnyChange] = db._loop.run_until_complete(everything())
    return found


def read_changes(db: Any, table: type[Table] = Desk, **options: Any) -> list[AnyChange]:
    """Return every change in a table's stream."""
    return listed(db, db.subscribe(table, from_="start", follow=False, **options))
