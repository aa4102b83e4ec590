"""The partitions of one station: key ranges with token buckets, and when one is split.

The rules are those of the engine's emulation: 3,000 read and 1,000 write units per second, of which one second's worth is saved.

    0 ├────────────┼──────┼─────────────────────────┤ 1   hash of the partition key
           cold      hot            cold
                     └─ hot for split_after_s: cut where the heat is halved,
                        or not at all if one key alone is hot

Heat is judged every ten seconds; 80 % of a limit counts as hot. A single hot key cannot be divided unless its requests fall on
different items of its collection (`Spread`). On demand, the peak of half an hour ago is served twice over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tavola.design.simulation.keyspace import KEY_WIDTH, Floats, Popularity, Spread
from tavola.limits import PARTITION_BYTES_MAX, PARTITION_READS_PER_S, PARTITION_WRITES_PER_S

WINDOW_S = 10  # over which heat is judged
HOT_SHARE = 0.8  # of what a partition can do
LEAST_SHARE = 0.05  # of the heat that a split must move away to be worth it
PEAK_WINDOW_S = 60  # over which on-demand traffic is measured
PEAK_AGE_S = 30 * 60  # after which a peak counts as previous
PARTITIONS_MAX = 20_000

LIMITS = np.array([PARTITION_READS_PER_S, PARTITION_WRITES_PER_S], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class PartitionSplit:
    """A partition that was split in two: when, where and why."""

    at_s: float
    place: float
    reason: Literal["heat", "growth"]


@dataclass(frozen=True, slots=True)
class HeatSource:
    """A part of a station's traffic and where it falls; its weight is a fraction of a partition's limit."""

    crowd: Popularity
    spread: Spread
    weight: float
    access: int = 1  # 0 reads, 1 writes


class Partitions:
    """All partitions of one station, ordered by key."""

    def __init__(self, count: int) -> None:
        self.bounds: Floats = np.zeros(1)  # where each begins
        self.levels: Floats = LIMITS[:, None] * np.ones((2, 1))
        self.hot_since_s: Floats = np.full(1, np.nan)
        self.cuts: list[PartitionSplit] = []
        self._peaks: list[tuple[float, int]] = []
        self.grow(count, 0.0)
        self.cuts.clear()

    def __len__(self) -> int:
        return int(self.bounds.size)

    @property
    def edges(self) -> Floats:
        """Where partitions begin, and 1 at the end."""
        return np.append(self.bounds, 1.0)

    def grow(self, count: int, now_s: float) -> bool:
        """Halve the widest partitions until there are `count`; return whether any was halved."""
        grown = False
        while len(self) < min(count, PARTITIONS_MAX):
            widths = np.diff(self.edges)
            at = int(np.argmax(widths))
            if widths[at] < 2 * KEY_WIDTH:
                break
            self._cut(at, float(self.bounds[at] + widths[at] / 2), now_s, "growth")
            grown = True
        return grown

    def measure(self, used: Floats, now_s: float) -> bool:
        """Record a minute's use on demand; grow for the peak of half an hour ago."""
        reads, writes = used / PEAK_WINDOW_S
        wanted = partitions_for(2 * reads, 2 * writes)
        most = max((count for _, count in self._peaks), default=len(self))
        if wanted > max(most, len(self)):
            self._peaks.append((now_s, wanted))
        grown = False
        while self._peaks and self._peaks[0][0] + PEAK_AGE_S <= now_s:
            grown |= self.grow(self._peaks.pop(0)[1], now_s)
        return grown

    def judge(
        self,
        heat: Floats,
        throttled: NDArray[np.bool_],
        now_s: float,
        split_after_s: float,
        sources: Callable[[], Sequence[HeatSource]],
    ) -> bool:
        """Record the heat of the window that ends now, split what was hot long enough, and return whether anything was split."""
        hot = throttled | (heat >= (HOT_SHARE * WINDOW_S) * LIMITS[:, None]).any(axis=0)
        fresh = hot & np.isnan(self.hot_since_s)
        self.hot_since_s[fresh] = now_s - WINDOW_S
        self.hot_since_s[~hot] = np.nan
        due = np.flatnonzero(now_s - self.hot_since_s >= split_after_s)
        if not due.size:
            return False
        split = False
        heated = sources()
        for at in due[::-1]:  # from the last, so that the places of the others stay
            place = self.divide(int(at), heated) if len(self) < PARTITIONS_MAX else None
            if place is None:
                self.hot_since_s[at] = now_s  # looked at again when it was hot for as long
                continue
            self._cut(int(at), place, now_s, "heat")
            split = True
        return split

    def settle(self, sources: Sequence[HeatSource]) -> None:
        """Split everything that would be hot under this load at once, as in a table that has borne it for long."""
        for _ in range(64):
            loads = np.zeros((2, len(self)))
            for source in sources:
                loads[source.access] += source.weight * np.diff(source.crowd.below(self.edges, source.spread))
            done = True
            for at in np.flatnonzero(loads.max(axis=0) > HOT_SHARE)[::-1]:
                place = self.divide(int(at), sources) if len(self) < PARTITIONS_MAX else None
                if place is not None:
                    self._cut(int(at), place, 0.0, "heat")
                    done = False
            if done:
                break
        self.cuts.clear()

    def divide(self, at: int, sources: Sequence[HeatSource]) -> float | None:
        """Return the position that halves the heat of a partition best, or None if no split would help."""
        low, high = float(self.bounds[at]), float(self.edges[at + 1])
        if high - low < KEY_WIDTH * 2.0**-8:
            return None
        places = [np.linspace(low, high, 66)[1:-1]]
        for source in sources:
            inner = source.crowd.edges
            inner = inner[np.searchsorted(inner, low, "right") : np.searchsorted(inner, high, "left")]
            if inner.size > 512:
                inner = inner[:: inner.size // 512 + 1]
            places.append(inner)
            if source.spread == "any" and inner.size:  # an item collection may be cut too
                shares = np.diff(source.crowd.below(np.append(inner, high), "any"))
                widest = float(inner[int(np.argmax(shares))])
                places.append(widest + KEY_WIDTH * np.arange(1, 32) / 32)
        tried = np.unique(np.concatenate(places))
        tried = tried[(tried > low) & (tried < high)]
        if not tried.size:
            return None
        ends = np.concatenate(([low], tried, [high]))
        heights = np.zeros(ends.size)
        for source in sources:
            heights += source.weight * source.crowd.below(ends, source.spread)
        whole = heights[-1] - heights[0]
        if whole <= 0:
            return None
        left = (heights[1:-1] - heights[0]) / whole
        best = int(np.argmin(np.abs(left - 0.5)))
        return float(tried[best]) if LEAST_SHARE <= left[best] <= 1 - LEAST_SHARE else None

    def _cut(self, at: int, place: float, now_s: float, reason: Literal["heat", "growth"]) -> None:
        self.bounds = np.insert(self.bounds, at + 1, place)
        fresh = np.repeat(LIMITS[:, None], 2, axis=1)
        self.levels = np.concatenate((self.levels[:, :at], fresh, self.levels[:, at + 1 :]), axis=1)
        self.hot_since_s = np.concatenate(
            (self.hot_since_s[:at], [np.nan, np.nan], self.hot_since_s[at + 1 :])
        )
        self.cuts.append(PartitionSplit(now_s, place, reason))


def partitions_for(reads: float, writes: float, stored_bytes: float = 0.0) -> int:
    """Return how many partitions serve so many units per second and hold so many bytes, if spread evenly."""
    by_reads = -(-reads // PARTITION_READS_PER_S)
    by_writes = -(-writes // PARTITION_WRITES_PER_S)
    by_bytes = -(-stored_bytes // PARTITION_BYTES_MAX)
    return int(max(1, by_reads, by_writes, by_bytes))
