"""Streams through the design: changes, routers, subscriptions, projectors and the outbox, on both clients."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, assert_type

from tavola import AsyncConnection, Connection, EntityChange, RawChange, Router, changes_of
from tavola.client.stream_changes import AnyChange
from tavola.patterns import Message, Outbox, OutboxEvent, Projected, Projector, Relayed, Share
from tests.patterns.board import Board, Case, Counted, Helpdesk, Numbers, Status
from tests.patterns.test_outbox import Outgoing, Relaying, Shop

TABLES = (Helpdesk, Board, Shop)
AT = datetime(2026, 1, 1, tzinfo=UTC)

router = Router(Helpdesk)


@router.on(Case, "inserted", "modified")
def on_case(change: EntityChange[Case]) -> None:
    """The change has the entity's own type."""
    assert_type(change.new, Case | None)
    assert_type(change.old, Case | None)
    assert_type(change.changed, frozenset[str])
    assert_type(change.expired, bool)
    if change.new is not None:
        assert_type(change.new.status, Status)


@router.raw
def on_stranger(change: RawChange) -> None:
    """What the design does not know is as DynamoDB has it."""
    assert_type(change.new, dict[str, dict[str, Any]] | None)


def seen(change: AnyChange) -> str:
    """A match narrows to the entity."""
    match change:
        case EntityChange(new=Case() as case):
            assert_type(case.status, Status)
            return case.case_id
        case EntityChange():
            return "another"
        case RawChange():
            return "raw"


def shares(case: Case) -> Iterator[Share]:
    """What a case adds."""
    yield Share("cases", case.status, Decimal("1.5"))


def send(event: OutboxEvent) -> None:
    """Publish an event."""


async def asend(event: OutboxEvent) -> None:
    """Publish an event on a loop."""


def use(db: Connection) -> None:
    """With a connection, everything is called."""
    projector = Projector(db, Helpdesk, Numbers, Counted)
    projector.of(Case)(shares)
    outbox = Outbox(db, Outgoing, Relaying, Outgoing.Waiting)
    with db.transaction() as writes:
        writes.put(Case(case_id="c", opened_at=AT))
        outbox.add(writes, "case/c", Message("made", {"at": 1}))
    for change in db.subscribe(Helpdesk, from_="start", follow=False):
        router.dispatch(change)
        assert seen(change) == "c"
    assert_type(projector.follow(db.subscribe(Helpdesk, from_="start", follow=False)), int)
    assert_type(projector.value("cases", "new"), Numbers)
    assert_type(projector.value("cases").mean, Decimal | None)
    assert_type(projector.apply([]), Projected)
    assert_type(outbox.relay(send), Relayed)
    assert list(changes_of(Helpdesk, {"Records": []})) == []


async def use_async(db: AsyncConnection) -> None:
    """With an asynchronous one, it is awaited."""
    projector = Projector(db, Helpdesk, Numbers, Counted)
    projector.of(Case)(shares)
    outbox = Outbox(db, Outgoing, Relaying, Outgoing.Waiting)
    async with db.transaction() as writes:
        writes.put(Case(case_id="c", opened_at=AT))
        outbox.add(writes, "case/c", Message("made"))
    async for change in await db.subscribe(Helpdesk, from_="start", follow=False):
        await router.adispatch(change)
    assert_type(await projector.follow(await db.subscribe(Helpdesk, from_="start", follow=False)), int)
    assert_type(await projector.value("cases", "new"), Numbers)
    assert_type(await outbox.relay(asend), Relayed)
