"""Blobs that nobody points to any more are taken away while the desk runs; what is wanted stays."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

from tavola import ManualClock, connect_async
from tavola.apps.shell import AppSettings, opened_store
from tavola.apps.support_desk import service
from tavola.apps.support_desk.blob_sweeper import INTERVAL, MIN_AGE, BlobSweeper, sweep_blobs
from tavola.apps.support_desk.domain import NewTicket, TicketStatus
from tavola.apps.support_desk.model import TABLES, Metrics
from tavola.apps.support_desk.store import Retention, SupportDeskStore
from tavola.apps.support_desk.web import support_store
from tavola.clock import SYSTEM_CLOCK
from tavola.patterns import Blobs, FolderBlobs
from tests.apps.conftest import Run

LARGE = bytes(range(256)) * 4_000


def test_a_sweeper_takes_what_nobody_points_to(tmp_path: Path, run: Run[Any]) -> None:
    """Files that were replaced, removed or ended with their ticket are gone after two sweeps; the others are there."""
    clock = ManualClock(SYSTEM_CLOCK.now() + 2 * 86_400)  # blobs are dated by the disk, and lie before that

    async def steps() -> tuple[int, int, bytes]:
        async with connect_async("memory:", clock=clock) as db:
            store = SupportDeskStore(
                db, FolderBlobs(tmp_path), retention=Retention(tickets=timedelta(hours=1))
            )
            await store.create_tables()
            kept, over = [
                (await service.open_ticket(store, NewTicket("cust-001", "x" * 5_000))).value.ticket_id
                for _ in range(2)
            ]
            for number in range(3):
                await _attach(store, kept, "a.bin", bytes([number]) + LARGE)
            await _attach(store, kept, "b.bin", b"b" + LARGE)
            await service.detach(store, kept, "b.bin")
            await _attach(store, over, "c.bin", b"c" + LARGE)
            for status in (TicketStatus.PROCESSING, TicketStatus.READY):
                await service.change_ticket(store, over, status)
            clock.advance(2 * 3_600)
            await db.call("ListTables")  # what has ended is taken away before an answer
            before = len(list(store.blobs.store.list()))
            async with BlobSweeper(store, first=timedelta(0), every=timedelta(0)) as sweeper:
                await _sweeps(sweeper, 1)
                clock.advance(INTERVAL.total_seconds())
                await _sweeps(sweeper, 2)
            names = len(list(store.blobs.store.list()))
            return (
                before,
                names,
                await service.read_attachment(store, await service.get_attachment(store, kept, "a.bin")),
            )

    before, left, data = run(steps())

    assert MIN_AGE < INTERVAL
    assert (before, data) == (5, bytes([2]) + LARGE)
    assert left == 1


def test_a_sweep_sees_nobody_elses_blobs(tmp_path: Path, run: Run[Any]) -> None:
    """Applications that share a state folder keep their blobs apart: what another keeps is not the desk's to sweep."""
    clock = ManualClock(SYSTEM_CLOCK.now() + 2 * 86_400)
    settings = AppSettings(target="memory:", state=tmp_path, clock=clock)

    async def steps() -> tuple[bytes, bytes]:
        async with opened_store(settings, *TABLES) as opened:
            store = support_store(opened)
            elsewhere = Blobs(opened.db, opened.blobs, inline=0)
            beside = Blobs(opened.db, opened.blobs_of(Metrics), inline=0)
            others = [await elsewhere.keep(LARGE), await beside.keep(LARGE)]
            for _ in range(2):
                await sweep_blobs(store)
                clock.advance(INTERVAL.total_seconds())
            return await elsewhere.read(others[0]), await beside.read(others[1])

    assert run(steps()) == (LARGE, LARGE)


async def _attach(store: SupportDeskStore, ticket_id: str, name: str, data: bytes) -> None:
    kind = "application/octet-stream"
    await service.attach(store, ticket_id, name=name, content_type=kind, data=data)


async def _sweeps(sweeper: BlobSweeper, more: int) -> None:
    """Wait for so many sweeps that begin after this."""
    wanted = sweeper.sweeps + more
    while sweeper.sweeps < wanted:
        await asyncio.sleep(0)
