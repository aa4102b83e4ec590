"""BlobSweeper: a background task that deletes unreferenced blobs while the desk runs.

Replaced and removed files, expired tickets and lost races leave blobs behind. A sweep scans the table for references, so it runs
once a day, and first an hour after the start: a desk that runs only briefly never sweeps. A blob is deleted if two consecutive
sweeps find it unreferenced.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from types import TracebackType

from tavola import TavolaError
from tavola.apps.support_desk.model import Tickets
from tavola.apps.support_desk.store import SupportDeskStore
from tavola.patterns import Swept

FIRST_DELAY = timedelta(hours=1)
INTERVAL = timedelta(days=1)
MIN_AGE = timedelta(hours=12)  # longer than writing an item takes after its blob, shorter than the interval

_log = logging.getLogger("tavola.apps")


async def sweep_blobs(store: SupportDeskStore) -> Swept:
    """Delete the blobs that no item referenced now and at an earlier sweep."""
    return await store.blobs.sweep(Tickets, older=MIN_AGE)


class BlobSweeper:
    """The task: `async with BlobSweeper(store): …`."""

    def __init__(
        self, store: SupportDeskStore, *, first: timedelta = FIRST_DELAY, every: timedelta = INTERVAL
    ) -> None:
        self.store = store
        self.first = first
        self.every = every
        self.sweeps = 0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> BlobSweeper:
        self._task = asyncio.create_task(self._run(), name="sweeper")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        await asyncio.sleep(self.first.total_seconds())
        while True:
            try:
                swept = await sweep_blobs(self.store)
            except (TavolaError, OSError) as error:  # the next sweep retries
                _log.warning("sweeping blobs failed (%s); retrying later", type(error).__name__)
            else:
                self.sweeps += 1
                if swept.orphans:
                    _log.info("deleted %d unreferenced blobs, %d bytes", len(swept.orphans), swept.bytes)
            await asyncio.sleep(self.every.total_seconds())
