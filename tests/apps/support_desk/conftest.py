"""A support desk on each target, with a clock that tests move."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tavola import AsyncConnection, ConsumedCapacity, ManualClock
from tavola.apps.support_desk import service
from tavola.apps.support_desk.domain import NewTicket, TicketStatus
from tavola.apps.support_desk.model import Tickets
from tavola.apps.support_desk.store import Retention, SupportDeskStore
from tavola.patterns import FolderBlobs
from tests.apps.conftest import Run, Target

T = TypeVar("T")

FOR_EVER = Retention()

MORNING = datetime.combine(
    datetime.now(UTC).date() + timedelta(days=1), time(9), UTC
)  # ahead of every server's own clock, so that none thinks that something has expired


class Desk:
    """A desk whose use cases are called and waited for: `desk(service.ticket, "tkt_1")`."""

    def __init__(self, store: SupportDeskStore, clock: ManualClock, run: Run[Any]) -> None:
        self.store = store
        self.db: AsyncConnection = store.db
        self.clock = clock
        self.run = run

    def __call__(self, use_case: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, **options: Any) -> T:
        result: T = self.run(use_case(self.store, *arguments, **options))
        return result

    def open(self, customer: str = "cust-001", text: str = "The printer is out of order", **more: Any) -> str:
        """Open a ticket a minute after whatever was before, and return its id."""
        self.clock.advance(60)
        key = more.pop("idempotency_key", None)
        return self(
            service.open_ticket, NewTicket(customer, text, **more), idempotency_key=key
        ).value.ticket_id

    def move(self, ticket_id: str, *statuses: TicketStatus) -> None:
        """Change a ticket's status, a minute after another."""
        for status in statuses:
            self.clock.advance(60)
            self(service.change_ticket, ticket_id, status)

    def spent(
        self, use_case: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, **options: Any
    ) -> ConsumedCapacity:
        """Do a use case and return what it consumed."""

        async def steps() -> ConsumedCapacity:
            with self.db.measure() as spent:
                await use_case(self.store, *arguments, **options)
            return spent

        found: ConsumedCapacity = self.run(steps())
        return found

    def count(self) -> int:
        """Let the projector read the stream to its end, from its start; return how many changes it saw."""

        async def steps() -> int:
            changes = await self.db.subscribe(Tickets, from_="start", follow=False)
            return await self.store.projector.follow(changes)

        seen: int = self.run(steps())
        return seen


@pytest.fixture
def clock() -> ManualClock:
    """A morning."""
    return ManualClock(MORNING.timestamp())


@pytest.fixture
def desk(target: Target, run: Run[Any], clock: ManualClock, tmp_path: Path) -> Iterator[Desk]:
    """An empty desk."""
    yield from opened(target, run, clock, tmp_path)


def opened(
    target: Target, run: Run[Any], clock: ManualClock, folder: Path, retention: Retention = FOR_EVER
) -> Iterator[Desk]:
    """Give a desk with its tables made, and close it."""

    async def start() -> SupportDeskStore:
        db = target.connect(clock=clock, cursor_secret=b"a secret of tests")
        store = SupportDeskStore(db, FolderBlobs(folder / "blobs"), retention=retention)
        await store.create_tables()
        return store

    store = run(start())
    try:
        yield Desk(store, clock, run)
    finally:
        run(store.db.close())
