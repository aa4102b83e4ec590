"""Partitions: ranges of a table's or index's keys, each with a throughput that nothing can exceed.

A partition holds a range of ordered keys, which begin with the hash of the partition key. It takes 3,000
units of reading and 1,000 of writing in a second and saves none of them. One that stays hot is split
where its heat divides best: between two keys, and so in the end around a hot key, but never across one. An
item collection is cut too, unless a local index keeps it together, or its keys come in order: then the
heat would only move to the end of the new half.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from tavola.engine.emulation.buckets import TokenBucket
from tavola.limits import PARTITION_READS_PER_S, PARTITION_WRITES_PER_S

_WINDOW_S = 10.0  # over which heat is judged
_HOT_SHARE = 0.8  # of what a partition can do
_SAMPLES = 512  # accesses by which a split is placed
_SAMPLES_MIN = 16
_LEAST_SHARE = 0.05  # of the heat that a split must move away to be worth it
_ORDERED_SHARE = 0.9  # of steps one way that make keys come in order
_ORDERED_KEYS_MIN = 8
_HASHES = 1 << 32

CollectionOf = Callable[[bytes], bytes]  # the part of a key that its item collection shares


class ThroughputPartition:
    """The keys from `lower` up to `upper` (None: the last), what is left to do on them, and their heat."""

    __slots__ = (
        "_hot_since_s",
        "_reads",
        "_samples",
        "_throttled",
        "_window_at_s",
        "_writes",
        "lower",
        "reads",
        "upper",
        "writes",
    )

    def __init__(self, lower: bytes, upper: bytes | None, now_s: float) -> None:
        self.lower = lower
        self.upper = upper
        self.reads = TokenBucket(PARTITION_READS_PER_S, 1.0, now_s)
        self.writes = TokenBucket(PARTITION_WRITES_PER_S, 1.0, now_s)
        self._samples: deque[tuple[bytes, float]] = deque(maxlen=_SAMPLES)
        self._window_at_s = now_s
        self._reads = self._writes = 0.0
        self._throttled = False
        self._hot_since_s: float | None = None

    def note(self, key: bytes, reads: float, writes: float, now_s: float, *, throttled: bool) -> None:
        """Count an access, and one that was refused: what is asked for is what heats."""
        self._roll(now_s)
        self._reads += reads
        self._writes += writes
        self._throttled |= throttled
        self._samples.append((key, reads / PARTITION_READS_PER_S + writes / PARTITION_WRITES_PER_S))

    def hot_for_s(self, now_s: float) -> float:
        """Return how long it has been hot without a break."""
        self._roll(now_s)
        return 0.0 if self._hot_since_s is None else now_s - self._hot_since_s

    def leave(self, now_s: float) -> None:
        """Leave it as it is, since no split would help; it is looked at again when it was hot for as long."""
        self._hot_since_s = now_s

    def place_of_split(self, collection_of: CollectionOf, *, whole_collections: bool) -> bytes | None:
        """Return the key at which the heat divides best, None where no split would help."""
        if len(self._samples) < _SAMPLES_MIN:
            return None
        return divide(self._samples, collection_of, whole_collections=whole_collections)

    def _roll(self, now_s: float) -> None:
        passed = now_s - self._window_at_s
        if 0 <= passed < _WINDOW_S:
            return
        hot = self._throttled or (
            self._reads >= _HOT_SHARE * PARTITION_READS_PER_S * _WINDOW_S
            or self._writes >= _HOT_SHARE * PARTITION_WRITES_PER_S * _WINDOW_S
        )
        if not hot or not 0 <= passed < 2 * _WINDOW_S:
            self._hot_since_s = None
        elif self._hot_since_s is None:
            self._hot_since_s = self._window_at_s
        self._window_at_s = now_s
        self._reads = self._writes = 0.0
        self._throttled = False


class ThroughputPartitions:
    """All partitions of one table or index, in the order of their keys."""

    def __init__(
        self, count: int, now_s: float, collection_of: CollectionOf, *, whole_collections: bool
    ) -> None:
        self._collection_of = collection_of
        self._whole_collections = whole_collections
        self._parts = [ThroughputPartition(b"", None, now_s)]
        self._lowers = [b""]
        self.splits = 0  # for heat
        self.grow(count, now_s)

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Iterator[ThroughputPartition]:
        return iter(self._parts)

    def find(self, key: bytes) -> ThroughputPartition:
        """Return the partition that a key lies in."""
        return self._parts[bisect_right(self._lowers, key) - 1]

    def grow(self, count: int, now_s: float) -> None:
        """Cut the widest partitions in halves until there are so many; there are never fewer again."""
        while len(self._parts) < count:
            place = max(range(len(self._parts)), key=lambda at: (self._width(at), -at))
            if self._width(place) < 2:
                return
            low = self._hash(self._parts[place].lower)
            self._cut(place, (low + self._width(place) // 2).to_bytes(4, "big"), now_s)

    def cool(self, partition: ThroughputPartition, after_s: float, now_s: float) -> bool:
        """Split a partition that has been hot for long enough, where that helps; tell whether it was."""
        if partition.hot_for_s(now_s) < after_s:
            return False
        place = partition.place_of_split(self._collection_of, whole_collections=self._whole_collections)
        if place is None or place <= partition.lower:
            partition.leave(now_s)
            return False
        self._cut(self._parts.index(partition), place, now_s)
        self.splits += 1
        return True

    def _cut(self, at: int, key: bytes, now_s: float) -> None:
        cut = self._parts[at]
        self._parts[at : at + 1] = [
            ThroughputPartition(cut.lower, key, now_s),
            ThroughputPartition(key, cut.upper, now_s),
        ]
        self._lowers.insert(at + 1, key)

    def _hash(self, lower: bytes | None) -> int:
        return _HASHES if lower is None else int.from_bytes(lower[:4].ljust(4, b"\0"), "big")

    def _width(self, at: int) -> int:
        part = self._parts[at]
        return self._hash(part.upper) - self._hash(part.lower)


def divide(
    samples: Iterable[tuple[bytes, float]], collection_of: CollectionOf, *, whole_collections: bool
) -> bytes | None:
    """Return the key that leaves as much heat on either side as can be, None where one key has it all."""
    sampled = list(samples)
    uncut = (
        set[bytes]()
        if whole_collections
        else _collections_in_order((key for key, _ in sampled), collection_of)
    )
    heat: dict[bytes, float] = {}
    for key, weight in sampled:
        collection = collection_of(key)
        atom = collection if whole_collections or collection in uncut else key
        heat[atom] = heat.get(atom, 0.0) + weight
    total = sum(heat.values())
    best: bytes | None = None
    nearest = total / 2 - total * _LEAST_SHARE  # further from the middle than this is not worth it
    left = 0.0
    for atom in sorted(heat):
        if left and abs(left - total / 2) <= nearest:
            best, nearest = atom, abs(left - total / 2)
        left += heat[atom]
    return best


def _collections_in_order(keys: Iterable[bytes], collection_of: CollectionOf) -> set[bytes]:
    """Return the collections whose keys come in order, one way or the other."""
    seen: dict[bytes, list[bytes]] = {}
    for key in keys:
        seen.setdefault(collection_of(key), []).append(key)
    ordered: set[bytes] = set()
    for collection, came in seen.items():
        if len(set(came)) < _ORDERED_KEYS_MIN:
            continue
        steps = [(first < second) - (first > second) for first, second in pairwise(came)]
        moved = [step for step in steps if step]
        if max(moved.count(1), moved.count(-1)) >= _ORDERED_SHARE * len(moved):
            ordered.add(collection)
    return ordered
