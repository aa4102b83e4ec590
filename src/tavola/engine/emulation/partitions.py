"""Partitions of a table or index, each with a hard throughput limit, and how hot ones are split; token buckets.

A partition holds a range of ordered keys, which begin with the hash of the partition key. It serves 3,000 read units and
1,000 write units per second, and saves none of them. A partition that stays hot is split where its heat divides best:

    before   [ a  b  C  C  C  d ]          C is hot
    after    [ a  b ] [ C  C  C  d ]       the split is between two keys, never inside one

An item collection is split too, unless a local index keeps it together, or its keys arrive in order: then the heat would
only move to the end of the new half.

A token bucket meters throughput as DynamoDB does. A request is admitted while the bucket has any tokens, and is then
charged in full, so a large request may leave a debt that is paid back over time. In the long run, no more is admitted than
the rate and the saved tokens allow.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from tavola.limits import PARTITION_READS_PER_S, PARTITION_WRITES_PER_S

_WINDOW_S = 10.0  # over which heat is measured
_HOT_SHARE = 0.8  # of a partition's limit
_SAMPLES = 512  # accesses from which the split key is chosen
_SAMPLES_MIN = 16
_MOVED_SHARE_MIN = 0.05  # of the heat that a split must move to be worthwhile
_ORDERED_SHARE = 0.9  # of steps in one direction for keys to count as ordered
_ORDERED_KEYS_MIN = 8
_HASHES = 1 << 32

CollectionOf = Callable[[bytes], bytes]  # the part of a key that its item collection shares


class ThroughputPartition:
    """The keys from `lower` up to `upper` (None: the end), their remaining throughput, and their heat."""

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
        """Count an access, served or throttled: both are heat."""
        self._roll(now_s)
        self._reads += reads
        self._writes += writes
        self._throttled |= throttled
        self._samples.append((key, reads / PARTITION_READS_PER_S + writes / PARTITION_WRITES_PER_S))

    def hot_for_s(self, now_s: float) -> float:
        """Return how long the partition has been hot without interruption."""
        self._roll(now_s)
        return 0.0 if self._hot_since_s is None else now_s - self._hot_since_s

    def postpone_split(self, now_s: float) -> None:
        """Do not split, because no split would help; reconsider when it has been hot for as long again."""
        self._hot_since_s = now_s

    def split_key(self, collection_of: CollectionOf, *, whole_collections: bool) -> bytes | None:
        """Return the key at which the heat divides best, None if no split would help."""
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
        """Return the partition of a key."""
        return self._parts[bisect_right(self._lowers, key) - 1]

    def grow(self, count: int, now_s: float) -> None:
        """Halve the widest partitions until there are `count`; the number never decreases."""
        while len(self._parts) < count:
            widest = max(range(len(self._parts)), key=lambda position: (self._width(position), -position))
            if self._width(widest) < 2:
                return
            low = self._hash(self._parts[widest].lower)
            self._split(widest, (low + self._width(widest) // 2).to_bytes(4, "big"), now_s)

    def split_if_hot(self, partition: ThroughputPartition, after_s: float, now_s: float) -> bool:
        """Split a partition that has been hot for long enough, if that helps; return whether it was split."""
        if partition.hot_for_s(now_s) < after_s:
            return False
        key = partition.split_key(self._collection_of, whole_collections=self._whole_collections)
        if key is None or key <= partition.lower:
            partition.postpone_split(now_s)
            return False
        self._split(self._parts.index(partition), key, now_s)
        self.splits += 1
        return True

    def _split(self, position: int, key: bytes, now_s: float) -> None:
        old = self._parts[position]
        self._parts[position : position + 1] = [
            ThroughputPartition(old.lower, key, now_s),
            ThroughputPartition(key, old.upper, now_s),
        ]
        self._lowers.insert(position + 1, key)

    def _hash(self, lower: bytes | None) -> int:
        return _HASHES if lower is None else int.from_bytes(lower[:4].ljust(4, b"\0"), "big")

    def _width(self, position: int) -> int:
        part = self._parts[position]
        return self._hash(part.upper) - self._hash(part.lower)


def divide(
    samples: Iterable[tuple[bytes, float]], collection_of: CollectionOf, *, whole_collections: bool
) -> bytes | None:
    """Return the key that divides the heat most evenly, None if one key has nearly all of it."""
    sampled = list(samples)
    unsplittable = (
        set[bytes]()
        if whole_collections
        else _collections_in_order((key for key, _ in sampled), collection_of)
    )
    heat: dict[bytes, float] = {}
    for key, weight in sampled:
        collection = collection_of(key)
        unit = collection if whole_collections or collection in unsplittable else key
        heat[unit] = heat.get(unit, 0.0) + weight
    total = sum(heat.values())
    best: bytes | None = None
    nearest = total / 2 - total * _MOVED_SHARE_MIN  # a split further from the middle is not worthwhile
    left = 0.0
    for unit in sorted(heat):
        if left and abs(left - total / 2) <= nearest:
            best, nearest = unit, abs(left - total / 2)
        left += heat[unit]
    return best


def _collections_in_order(keys: Iterable[bytes], collection_of: CollectionOf) -> set[bytes]:
    """Return the collections whose keys arrive in ascending or descending order."""
    seen: dict[bytes, list[bytes]] = {}
    for key in keys:
        seen.setdefault(collection_of(key), []).append(key)
    ordered: set[bytes] = set()
    for collection, arrived in seen.items():
        if len(set(arrived)) < _ORDERED_KEYS_MIN:
            continue
        steps = [(first < second) - (first > second) for first, second in pairwise(arrived)]
        if max(steps.count(1), steps.count(-1)) >= _ORDERED_SHARE * (len(steps) - steps.count(0)):
            ordered.add(collection)
    return ordered


class TokenBucket:
    """Tokens that arrive at a rate and are saved for up to `kept_s` seconds."""

    __slots__ = ("_at_s", "_kept_s", "level", "rate")

    def __init__(self, rate: float, kept_s: float, at_s: float, *, filled_s: float = 1.0) -> None:
        self.rate = rate
        self.level = rate * min(filled_s, kept_s)
        self._kept_s = kept_s
        self._at_s = at_s

    def level_at(self, now_s: float) -> float:
        """Return the current number of tokens, negative for a debt."""
        passed = now_s - self._at_s
        if passed > 0:
            self.level = min(self.level + passed * self.rate, self.rate * self._kept_s)
        # If the clock is set back, nothing is lost, and time counts from there.
        self._at_s = now_s
        return self.level

    def has_tokens(self, now_s: float) -> bool:
        """Return whether a request is admitted now."""
        return self.level_at(now_s) > 0

    def take(self, units: float) -> None:
        """Charge an admitted request."""
        self.level -= units

    def set_rate(self, rate: float, now_s: float) -> None:
        """Change the rate; saved tokens stay, up to what the new rate may save."""
        if rate != self.rate:
            self.level_at(now_s)
            self.rate = rate
            self.level = min(self.level, rate * self._kept_s)
