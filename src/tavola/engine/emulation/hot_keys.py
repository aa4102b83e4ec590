"""Hot keys: the most frequent of any number of keys, counted in limited memory.

A table may have a billion keys, of which few are hot. Counters exist for the most frequent keys; when there are too many,
the smallest are dropped. A key that appears later may be one of the dropped ones, so its counter starts from the largest
dropped count, and that much is reported as its possible error. Up to `capacity` different keys, counts are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nlargest

from msgspec import Struct

CAPACITY = 1000


class HotKey(Struct, frozen=True):
    """A key and its count, which is at most `error` too high and never too low."""

    key: bytes
    count: float
    error: float


class KeyCounters:
    """The heaviest of any number of keys."""

    __slots__ = ("_capacity", "_counts", "_errors", "_floor", "total")

    def __init__(self, capacity: int = CAPACITY) -> None:
        assert capacity > 0, "at least one key is counted"
        self._capacity = capacity
        self._counts: dict[bytes, float] = {}
        self._errors: dict[bytes, float] = {}
        self._floor = 0.0  # the highest count that a key without a counter can have
        self.total = 0.0

    def add(self, key: bytes, weight: float) -> None:
        """Count a key."""
        self.total += weight
        counted = self._counts.get(key)
        if counted is not None:
            self._counts[key] = counted + weight
            return
        self._counts[key] = self._floor + weight
        if self._floor:
            self._errors[key] = self._floor
        if len(self._counts) > 2 * self._capacity:
            self._drop_smallest()

    def top(self, count: int) -> list[HotKey]:
        """Return the heaviest keys, the heaviest first; keys that weigh the same go by their bytes."""
        largest = nlargest(count, sorted(self._counts.items()), key=lambda counted: counted[1])
        return [HotKey(key, weight, self._errors.get(key, 0.0)) for key, weight in largest]

    def __iter__(self) -> Iterator[tuple[bytes, float]]:
        return iter(self._counts.items())

    def _drop_smallest(self) -> None:
        """Drop the smaller half of the counters; the largest dropped count is the floor from now on."""
        order = sorted(self._counts.items(), key=lambda counted: (-counted[1], counted[0]))
        kept, dropped = order[: self._capacity], order[self._capacity :]
        self._floor = max(self._floor, dropped[0][1])
        self._counts = dict(kept)
        self._errors = {key: self._errors[key] for key, _ in kept if key in self._errors}


class HotKeyCounters:
    """The hottest keys of one table or global index: partition keys, and whole keys if there is a sort key.

    Accessed keys are counted in units, throttled keys in requests.
    """

    __slots__ = ("accessed", "accessed_items", "throttled", "throttled_items")

    def __init__(self) -> None:
        self.accessed = KeyCounters()
        self.accessed_items = KeyCounters()
        self.throttled = KeyCounters()
        self.throttled_items = KeyCounters()

    def note_accessed(self, partition: bytes, item: bytes | None, units: float) -> None:
        """Count an access; for a page, only the partition."""
        self.accessed.add(partition, units)
        if item is not None:
            self.accessed_items.add(item, units)

    def note_throttled(self, partition: bytes, item: bytes | None) -> None:
        """Count a throttled access."""
        self.throttled.add(partition, 1.0)
        if item is not None:
            self.throttled_items.add(item, 1.0)
