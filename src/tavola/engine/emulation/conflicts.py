"""Conflicts: transactions that are taken to be still at work when the next request comes.

The engine does one thing at a time, so nothing ever meets anything. Here a write transaction holds its
items, and its token, for a while after it came: a write that comes meanwhile conflicts, as it would on AWS
with a transaction that runs beside it. A single write is short, and only a TransactGetItems notices it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tavola.clock import Clock
from tavola.engine.emulation.chance import SeededChance
from tavola.protocol.arns import Scope
from tavola.protocol.faults import CancellationReason

ItemAddress = tuple[int, bytes]  # a table's number and an item's key

ONGOING = CancellationReason("TransactionConflict", "Transaction is ongoing for the item")


class Conflicts:
    """The items and tokens that are held now."""

    def __init__(self, clock: Clock, longest_s: float, chance: SeededChance) -> None:
        self._clock = clock
        self._longest_s = longest_s
        self._chance = chance
        self._transacted = HeldUntil()
        self._written = HeldUntil()
        self._tokens = HeldUntil()

    def hold_transaction(self, places: Iterable[ItemAddress], scope: Scope, token: str | None) -> None:
        """Hold the items of a write transaction that was done, and its token, for as long as chance says."""
        now_s = self._clock.now()
        until_s = now_s + self._longest_s * self._chance.share()
        for place in places:
            self._transacted.hold(place, now_s, until_s)
        if token is not None:
            self._tokens.hold((scope.account, scope.region, token), now_s, until_s)

    def hold_write(self, place: ItemAddress) -> None:
        """Hold the item of a single write, against TransactGetItems alone."""
        now_s = self._clock.now()
        self._written.hold(place, now_s, now_s + self._longest_s * self._chance.share())

    def blocks_write(self, place: ItemAddress) -> bool:
        """Tell whether a write meets a transaction on its item."""
        return self._transacted.holds(place, self._clock.now())

    def blocks_read(self, place: ItemAddress) -> bool:
        """Tell whether a transactional read meets a write on its item."""
        now_s = self._clock.now()
        return self._transacted.holds(place, now_s) or self._written.holds(place, now_s)

    def in_progress(self, scope: Scope, token: str) -> bool:
        """Tell whether the transaction of a token is still at work."""
        return self._tokens.holds((scope.account, scope.region, token), self._clock.now())


class HeldUntil:
    """What is held, and until when."""

    __slots__ = ("_queue", "_until_s")

    def __init__(self) -> None:
        self._until_s: dict[object, float] = {}
        self._queue: deque[tuple[object, float]] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def hold(self, what: object, now_s: float, until_s: float) -> None:
        """Hold something until a time, and let go of what is over."""
        # Forgetting from the front keeps it small; what ends before an earlier one is forgotten with that.
        while self._queue and self._queue[0][1] <= now_s:
            gone, _ = self._queue.popleft()
            if self._until_s.get(gone, now_s + 1) <= now_s:
                del self._until_s[gone]
        self._until_s[what] = max(until_s, self._until_s.get(what, until_s))
        self._queue.append((what, until_s))

    def holds(self, what: object, now_s: float) -> bool:
        """Tell whether something is held now."""
        return self._until_s.get(what, now_s) > now_s
