"""Turns: how much work expensive requests may do before the loop looks for other clients again.

The problem. In one turn, the event loop reads every socket that is ready, and each request is executed as it is read. Fifty
clients with requests of almost a millisecond would delay the fifty-first by 45 ms in every turn.

The idea. Clients are not equal: one whose last request was expensive is `heavy` until it sends a cheap one. Cheap requests are
executed as they are read, because most of them share the commit at the end of the turn. Requests of heavy clients share a
budget for each turn. What exceeds it waits, unread requests included, and is executed in later turns, the client first that was
served the longest time ago:

    turn 1   read: light A, heavy B, light C, heavy D, heavy E      executed: A B C      waiting: D E
    turn 2   read: light A                                          executed: D A        waiting: E
    turn 3   read: light C, heavy B                                 executed: E C        waiting: B

So a light client waits for one budget, one expensive request that exceeds it, and one slice of `PendingWork`. Single requests
that take much longer are computed in slices there.

The cost: a test for each request, and nothing else for light clients. Given up: expensive writes of several clients share
fewer commits.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from heapq import heappop, heappush
from itertools import count
from typing import Protocol


class HeavyClient(Protocol):
    """A connection that continues in later turns."""

    @property
    def is_heavy(self) -> bool:
        """Whether its last request was expensive, so that it needs a budget."""
        ...

    def process_waiting(self) -> None:
        """Execute requests that wait, and read again if none is left."""
        ...


class TurnQueue:
    """The budget of the current turn, and the heavy clients that wait for the next ones."""

    __slots__ = ("_budget_s", "_is_scheduled", "_loop", "_order", "_spent_s", "_waiting", "is_spent")

    def __init__(self, loop: AbstractEventLoop, budget_s: float) -> None:
        self._loop = loop
        self._budget_s = budget_s
        self._spent_s = 0.0  # by heavy clients in this turn
        self._waiting: list[tuple[float, int, HeavyClient]] = []  # a heap
        self._order = count()
        self._is_scheduled = False
        self.is_spent = False  # whether requests of heavy clients have to wait

    def add_cost(self, cost_s: float) -> None:
        """Count an expensive request that was executed in this turn."""
        self._spent_s += cost_s
        if self._spent_s >= self._budget_s:
            self.is_spent = True
        self._schedule()

    def wait(self, client: HeavyClient, served_s: float) -> None:
        """Let a client continue in one of the next turns; `served_s` is when it was served last."""
        heappush(self._waiting, (served_s, next(self._order), client))
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        """Start the budget of a new turn, and let waiting clients use it."""
        self._is_scheduled = False
        self._spent_s = 0.0
        self.is_spent = False
        waiting, self._waiting = self._waiting, []
        while waiting:
            entry = heappop(waiting)
            if self.is_spent and entry[2].is_heavy:
                heappush(self._waiting, entry)
            else:
                entry[2].process_waiting()  # and waits again if there is more
        if self._waiting:
            self.is_spent = True  # clients that are read in this turn come after those that wait
            self._schedule()
