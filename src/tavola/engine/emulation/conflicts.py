"""Conflicts with transactions that are treated as still running.

The engine executes one call at a time, so requests never really conflict. Here a write transaction holds its items and
its token for a while after it was executed: a write to one of them meanwhile conflicts, as it would on AWS with a
transaction that runs concurrently. A single write is short, and conflicts only with TransactGetItems.
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

    def hold_transaction(self, addresses: Iterable[ItemAddress], scope: Scope, token: str | None) -> None:
        """Hold the items and the token of an executed write transaction for a random time."""
        now_s = self._clock.elapsed()
        until_s = now_s + self._longest_s * self._chance.share()
        for address in addresses:
            self._transacted.hold(address, now_s, until_s)
        if token is not None:
            self._tokens.hold((scope.account, scope.region, token), now_s, until_s)

    def hold_write(self, address: ItemAddress) -> None:
        """Hold the item of a single write, against TransactGetItems only."""
        now_s = self._clock.elapsed()
        self._written.hold(address, now_s, now_s + self._longest_s * self._chance.share())

    def blocks_write(self, address: ItemAddress) -> bool:
        """Return whether a running transaction holds the item of a write."""
        return self._transacted.holds(address, self._clock.elapsed())

    def blocks_read(self, address: ItemAddress) -> bool:
        """Return whether a running write or transaction holds the item of a transactional read."""
        now_s = self._clock.elapsed()
        return self._transacted.holds(address, now_s) or self._written.holds(address, now_s)

    def in_progress(self, scope: Scope, token: str) -> bool:
        """Return whether the transaction with a token is still running."""
        return self._tokens.holds((scope.account, scope.region, token), self._clock.elapsed())


class HeldUntil:
    """Held items or tokens, each until a time."""

    __slots__ = ("_queue", "_until_s")

    def __init__(self) -> None:
        self._until_s: dict[object, float] = {}
        self._queue: deque[tuple[object, float]] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def hold(self, held: object, now_s: float, until_s: float) -> None:
        """Hold something until a time, and release what has expired."""
        # Expired entries are removed from the front of the queue, so it stays small.
        while self._queue and self._queue[0][1] <= now_s:
            expired, _ = self._queue.popleft()
            if self._until_s.get(expired, now_s + 1) <= now_s:
                del self._until_s[expired]
        self._until_s[held] = max(until_s, self._until_s.get(held, until_s))
        self._queue.append((held, until_s))

    def holds(self, held: object, now_s: float) -> bool:
        """Return whether something is held now."""
        return self._until_s.get(held, now_s) > now_s
