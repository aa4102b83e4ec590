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
SPLIT_SHARE_MIN = 0.05  # of the heat that a split must move away to be worth it
PEAK_WINDOW_S = 60  # over which on-demand traffic is measured
PEAK_AGE_S = 30 * 60  # age at which capacity follows a peak
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

    popularity: Popularity
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
            self._split(at, float(self.bounds[at] + widths[at] / 2), now_s, "growth")
            grown = True
        return grown

    def grow_for_peak(self, used: Floats, now_s: float) -> bool:
        """Record a minute's use on demand; grow for the peak of half an hour ago."""
        reads, writes = used / PEAK_WINDOW_S
        needed = partitions_for(2 * reads, 2 * writes)
        most = max((count for _, count in self._peaks), default=len(self))
        if needed > max(most, len(self)):
            self._peaks.append((now_s, needed))
        grown = False
        while self._peaks and self._peaks[0][0] + PEAK_AGE_S <= now_s:
            grown |= self.grow(self._peaks.pop(0)[1], now_s)
        return grown

    def split_hot(
        self,
        heat: Floats,
        throttled: NDArray[np.bool_],
        now_s: float,
        split_after_s: float,
        sources: Callable[[], Sequence[HeatSource]],
    ) -> bool:
        """Record the heat of the window that ends now, and split partitions that were hot long enough.

        Returns whether any was split.
        """
        hot = throttled | (heat >= (HOT_SHARE * WINDOW_S) * LIMITS[:, None]).any(axis=0)
        newly_hot = hot & np.isnan(self.hot_since_s)
        self.hot_since_s[newly_hot] = now_s - WINDOW_S
        self.hot_since_s[~hot] = np.nan
        due = np.flatnonzero(now_s - self.hot_since_s >= split_after_s)
        if not due.size:
            return False
        split = False
        heat_sources = sources()
        for position in due[::-1]:  # from the last, so that the numbers of the others stay valid
            place = self.find_split(int(position), heat_sources) if len(self) < PARTITIONS_MAX else None
            if place is None:
                self.hot_since_s[position] = now_s  # tried again after it was hot for as long
                continue
            self._split(int(position), place, now_s, "heat")
            split = True
        return split

    def split_for_load(self, sources: Sequence[HeatSource]) -> None:
        """Split every partition that this load would heat, as in a table that has had it for days."""
        for _ in range(64):
            loads = np.zeros((2, len(self)))
            for source in sources:
                loads[source.access] += source.weight * np.diff(
                    source.popularity.below(self.edges, source.spread)
                )
            done = True
            for position in np.flatnonzero(loads.max(axis=0) > HOT_SHARE)[::-1]:
                place = self.find_split(int(position), sources) if len(self) < PARTITIONS_MAX else None
                if place is not None:
                    self._split(int(position), place, 0.0, "heat")
                    done = False
            if done:
                break
        self.cuts.clear()

    def find_split(self, position: int, sources: Sequence[HeatSource]) -> float | None:
        """Return the position that halves the heat of a partition best, or None if no split would help."""
        low, high = float(self.bounds[position]), float(self.edges[position + 1])
        if high - low < KEY_WIDTH * 2.0**-8:
            return None
        candidates = [np.linspace(low, high, 66)[1:-1]]
        for source in sources:
            inner = source.popularity.edges
            inner = inner[np.searchsorted(inner, low, "right") : np.searchsorted(inner, high, "left")]
            if inner.size > 512:
                inner = inner[:: inner.size // 512 + 1]
            candidates.append(inner)
            if source.spread == "any" and inner.size:  # an item collection can be split, too
                shares = np.diff(source.popularity.below(np.append(inner, high), "any"))
                widest = float(inner[int(np.argmax(shares))])
                candidates.append(widest + KEY_WIDTH * np.arange(1, 32) / 32)
        positions = np.unique(np.concatenate(candidates))
        positions = positions[(positions > low) & (positions < high)]
        if not positions.size:
            return None
        ends = np.concatenate(([low], positions, [high]))
        heights = np.zeros(ends.size)
        for source in sources:
            heights += source.weight * source.popularity.below(ends, source.spread)
        total_heat = heights[-1] - heights[0]
        if total_heat <= 0:
            return None
        left = (heights[1:-1] - heights[0]) / total_heat
        best = int(np.argmin(np.abs(left - 0.5)))
        return float(positions[best]) if SPLIT_SHARE_MIN <= left[best] <= 1 - SPLIT_SHARE_MIN else None

    def _split(self, position: int, place: float, now_s: float, reason: Literal["heat", "growth"]) -> None:
        self.bounds = np.insert(self.bounds, position + 1, place)
        fresh = np.repeat(LIMITS[:, None], 2, axis=1)
        self.levels = np.concatenate(
            (self.levels[:, :position], fresh, self.levels[:, position + 1 :]), axis=1
        )
        self.hot_since_s = np.concatenate(
            (self.hot_since_s[:position], [np.nan, np.nan], self.hot_since_s[position + 1 :])
        )
        self.cuts.append(PartitionSplit(now_s, place, reason))


def partitions_for(reads: float, writes: float, stored_bytes: float = 0.0) -> int:
    """Return how many partitions serve these units per second and hold these bytes, if spread evenly."""
    by_reads = -(-reads // PARTITION_READS_PER_S)
    by_writes = -(-writes // PARTITION_WRITES_PER_S)
    by_bytes = -(-stored_bytes // PARTITION_BYTES_MAX)
    return int(max(1, by_reads, by_writes, by_bytes))
