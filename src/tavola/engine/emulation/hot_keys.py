"""Hot keys: the keys that were asked for most, counted in little room.

A table may have a billion keys and few that matter. Counters are kept for the keys that were seen most; when
there are too many, the smallest go, and a key that comes after may have been among them: it starts from
what they had, and that much is told as its error. Up to `capacity` different keys nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nlargest

CAPACITY = 1000


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key and what was counted of it: at most `error` too much, never too little."""

    key: bytes
    count: float
    error: float


class KeyCounters:
    """The heaviest of any number of keys."""

    __slots__ = ("_capacity", "_counts", "_errors", "_floor", "total")

    def __init__(self, capacity: int = CAPACITY) -> None:
        assert capacity > 0, "somebody must be counted"
        self._capacity = capacity
        self._counts: dict[bytes, float] = {}
        self._errors: dict[bytes, float] = {}
        self._floor = 0.0  # the most that a key without a counter can have had
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
            self._shed()

    def top(self, count: int) -> list[HotKey]:
        """Return the heaviest keys, the heaviest first; keys that weigh the same go by their bytes."""
        found = nlargest(count, sorted(self._counts.items()), key=lambda counted: counted[1])
        return [HotKey(key, weight, self._errors.get(key, 0.0)) for key, weight in found]

    def __iter__(self) -> Iterator[tuple[bytes, float]]:
        return iter(self._counts.items())

    def _shed(self) -> None:
        """Let the smaller half of the counters go; what the largest of them had is the floor from now on."""
        order = sorted(self._counts.items(), key=lambda counted: (-counted[1], counted[0]))
        kept, gone = order[: self._capacity], order[self._capacity :]
        self._floor = max(self._floor, gone[0][1])
        self._counts = dict(kept)
        self._errors = {key: self._errors[key] for key, _ in kept if key in self._errors}


class HotKeyCounters:
    """The hottest keys of one table or global index: by partition key, and by whole key where there is more.

    What was accessed weighs the units that it took; what was throttled, the requests.
    """

    __slots__ = ("accessed", "accessed_items", "throttled", "throttled_items")

    def __init__(self) -> None:
        self.accessed = KeyCounters()
        self.accessed_items = KeyCounters()
        self.throttled = KeyCounters()
        self.throttled_items = KeyCounters()

    def note_accessed(self, partition: bytes, item: bytes | None, units: float) -> None:
        """Count an access; of a page, the partition alone."""
        self.accessed.add(partition, units)
        if item is not None:
            self.accessed_items.add(item, units)

    def note_throttled(self, partition: bytes, item: bytes | None) -> None:
        """Count an access that was refused."""
        self.throttled.add(partition, 1.0)
        if item is not None:
            self.throttled_items.add(item, 1.0)
