"""Sweeping: blobs that nobody points to any more are taken away, by a task that runs as long as the desk.

A file that is replaced or removed, a ticket that ends, and a create that another was faster with each leave a blob behind. A sweep scans the
table for what is wanted, so it is made once a day, and the first a while after the start: a desk that is tried out for a minute
never does it. What one sweep finds without an item, the next takes away.
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

FIRST = timedelta(hours=1)  # after the start
EVERY = timedelta(days=1)
OLDER = timedelta(hours=12)  # far longer than between a blob and its item, and less than between two sweeps

_log = logging.getLogger("tavola.apps")


async def sweep(store: SupportDeskStore) -> Swept:
    """Take away the blobs that no item of the desk points to, now and at a sweep before."""
    return await store.blobs.sweep(Tickets, older=OLDER)


class Sweeper:
    """The task: `async with Sweeper(store): …`."""

    def __init__(
        self, store: SupportDeskStore, *, first: timedelta = FIRST, every: timedelta = EVERY
    ) -> None:
        self.store = store
        self.first = first
        self.every = every
        self.sweeps = 0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Sweeper:
        self._task = asyncio.create_task(self._live(), name="sweeper")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _live(self) -> None:
        await asyncio.sleep(self.first.total_seconds())
        while True:
            try:
                swept = await sweep(self.store)
            except (TavolaError, OSError) as error:  # the next one takes what this one left
                _log.warning("blobs were not swept (%s); it is tried again later", type(error).__name__)
            else:
                self.sweeps += 1
                if swept.orphans:
                    _log.info("%d blobs were swept, %d bytes", len(swept.orphans), swept.bytes)
            await asyncio.sleep(self.every.total_seconds())
