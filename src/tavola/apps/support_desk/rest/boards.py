"""Board: the dashboard's numbers as they are told, made once and given to all who ask until they change.

They change when the follower has counted. Another process may count too, so nothing is kept longer than a second.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from hashlib import blake2b

from tavola.apps.shell import Follower
from tavola.apps.support_desk import service
from tavola.apps.support_desk.domain import Dashboard
from tavola.apps.support_desk.resources import dashboard_of
from tavola.apps.support_desk.store import SupportDeskStore

DAYS = 30
DAYS_MAX = 366
KEPT_S = 1.0
KEPT_MAX = 8  # numbers of days that are kept at a time


@dataclass(frozen=True, slots=True)
class Shown:
    """The numbers at a moment."""

    numbers: Dashboard
    content: bytes
    etag: str
    generation: int
    made_s: float


class Board:
    """The numbers of a desk, for as many days back as is asked."""

    def __init__(self, store: SupportDeskStore, follower: Follower) -> None:
        self._store = store
        self._follower = follower
        self._clock = store.db.context.clock
        self._kept: dict[int, Shown] = {}
        self._turn = asyncio.Lock()

    async def show(self, days: int = DAYS) -> Shown:
        """Return the numbers; who comes while they are made waits for the same."""
        kept = self._fresh(days)
        if kept is None:
            async with self._turn:
                kept = self._fresh(days) or await self._made(days)
        return kept

    def _fresh(self, days: int) -> Shown | None:
        kept = self._kept.get(days)
        if kept is None or kept.generation != self._follower.generation:
            return None
        return kept if 0 <= self._clock.now() - kept.made_s < KEPT_S else None

    async def _made(self, days: int) -> Shown:
        generation, made_s = self._follower.generation, self._clock.now()  # of before they are read
        numbers = await service.dashboard(self._store, days=days)
        content = dashboard_of(numbers).model_dump_json().encode()
        etag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
        self._kept.pop(days, None)
        while len(self._kept) >= KEPT_MAX:
            del self._kept[next(iter(self._kept))]
        shown = self._kept[days] = Shown(numbers, content, etag, generation, made_s)
        return shown
