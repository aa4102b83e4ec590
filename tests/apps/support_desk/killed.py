"""Kills: a process dies in the middle of opening a ticket, at many points, and its file is opened again.

    python -m tests.apps.support_desk.killed FOLDER [--apart]

For each point a child opens a ticket under a request's key and kills itself at its n-th call of a function, Python's or C's; the file is
then opened again, what it holds of the ticket is told as a line of JSON, and the same request is made once more. `--apart` is a planted fault: the ticket,
its event and its answer are written one after another.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from tavola import AsyncConnection, AsyncTransaction, Intent, connect_async
from tavola.apps.support_desk import service
from tavola.apps.support_desk.domain import NewTicket
from tavola.apps.support_desk.model import Event, RequestOutcome, Ticket
from tavola.apps.support_desk.store import SupportDeskStore
from tavola.patterns import FolderBlobs

POINTS = 12  # evenly over the work
LAST = (0, 1, 2, 5, 10, 20, 40, 80, 160, 320)  # calls before the end, where it is written
REQUEST = "r-1"
NEW = NewTicket("cust-001", "No paper in tray 2")


def _store(path: Path) -> SupportDeskStore:
    return SupportDeskStore(connect_async(f"file:{path}"), FolderBlobs(path.parent / "blobs"))


async def prepare(path: Path) -> None:
    """Make a file with the desk's tables and one ticket, so that everything was used once."""
    store = _store(path)
    async with store.db:
        await store.create_tables()
        await service.open_ticket(store, NewTicket("cust-000", "first"), idempotency_key="r-0")


async def open_and_die(path: Path, point: int) -> int:
    """Open a ticket and be killed at a point; return how many points there are, where the point is past them."""
    calls = 0

    def seen(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1
            if calls == point:
                os.kill(os.getpid(), signal.SIGKILL)

    store = _store(path)
    async with store.db:
        sys.setprofile(seen)
        await service.open_ticket(store, NEW, idempotency_key=REQUEST)
        sys.setprofile(None)
    return calls


async def found(path: Path) -> dict[str, Any]:
    """Return what a file holds of the ticket, and what the same request then comes to."""
    store = _store(path)
    async with store.db:
        mine = [each async for each in await store.db.scan(Ticket) if each.customer_id == NEW.customer_id]
        events = [each async for each in await store.db.scan(Event) if each.actor == NEW.customer_id]
        outcomes = [each async for each in await store.db.scan(RequestOutcome) if each.request == REQUEST]
        again = await service.open_ticket(store, NEW, idempotency_key=REQUEST)
        tickets = await service.list_customer_tickets(store, NEW.customer_id)
    return {
        "tickets": len(mine),
        "events": len(events),
        "outcomes": len(outcomes),
        "replayed": again.replayed,
        "in the end": len(tickets),
    }


def plant() -> None:
    """Let transactions be what careless programs have in their place: one write after another."""

    async def commit(self: AsyncTransaction) -> None:
        intent: Intent[Any]
        for intent in self.intents:
            assert intent.entity is not None, "the opening of a ticket only creates"
            await self._db.create(intent.entity)  # type: ignore[attr-defined]  # put there below

    def transaction(self: Any, token: str | None = None) -> AsyncTransaction:
        tx = begin(self, token)
        tx._db = self  # type: ignore[attr-defined]  # for `commit` above
        return tx

    begin = AsyncConnection.transaction
    AsyncConnection.transaction = transaction  # type: ignore[method-assign]
    AsyncTransaction.commit = commit  # type: ignore[method-assign]


def in_child(path: Path, point: int) -> int | None:
    """Open a ticket in a child that is killed at a point; return how many points there are, None if it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            os.write(writing, str(asyncio.run(open_and_die(path, point))).encode())
        finally:
            os._exit(0)
    os.close(writing)
    received = os.read(reading, 100)
    os.close(reading)
    os.waitpid(child, 0)
    return int(received) if received else None


def main(folder: Path, *, apart: bool) -> None:
    """Kill at each point and tell what is left."""
    if apart:
        plant()
    first = folder / "first.db"
    asyncio.run(prepare(first))

    def copy(name: str) -> Path:
        for file in folder.glob("first.db*"):
            shutil.copy(file, folder / file.name.replace("first", name))
        return folder / f"{name}.db"

    calls = in_child(copy("whole"), 0)
    assert calls is not None, "nobody is killed at point 0"
    evenly = [1 + number * calls // POINTS for number in range(POINTS)]
    for point in (*evenly, *(calls - before for before in LAST)):
        path = copy(f"p{point}")
        killed = in_child(path, point) is None
        outcome = {"point": point, "of": calls, "killed": killed, **asyncio.run(found(path))}
        os.write(1, json.dumps(outcome).encode() + b"\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), apart="--apart" in sys.argv)
