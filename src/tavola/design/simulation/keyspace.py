"""Partition key values of a station, as shares of traffic over the range of their hashes.

Keys lie between 0 and 1 by their hash. The busiest are listed one by one, each a narrow range that holds its item collection; the
rest is spread evenly. So a billion keys cost no more than four thousand, and the traffic between two partition bounds is a subtraction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Spread = Literal[
    "point",  # one item of the collection, or its beginning: cannot be divided
    "rising",  # its end, as with sort keys that ascend over time
    "any",  # all over the collection
]

LISTED_KEYS_MAX = 4096  # keys that are listed one by one
LISTED_VALUES_MIN = 32  # values that are listed, however many shards they have
KEY_WIDTH = 2.0**-36  # of the range that holds a key's item collection


@dataclass(frozen=True, slots=True)
class KeySet:
    """The values that a partition key can have: how many, over how many shards each, and their names."""

    name: str  # its template, such as STATUS#{status}
    count: int
    shards: int = 1
    values: tuple[str, ...] = ()  # names of the first of them
    period_s: float | None = None  # after which other values replace them, as with a day in the key
    places: tuple[float, ...] | None = None  # positions of the first of them; None: random
    assumed: bool = False  # the count is an assumption
    table: str = ""  # keys of the same template in another table are different keys
    by_time: bool = False  # its shards are periods of time

    @property
    def listed_count(self) -> int:
        """How many values are listed one by one."""
        return min(self.count, max(LISTED_VALUES_MIN, LISTED_KEYS_MAX // self.shards))

    def label(self, rank: int) -> str:
        """Return the display name of a key: its value, with the shard where there are several."""
        value, shard = divmod(rank, self.shards)
        if value < len(self.values):
            text = self.values[value]
        elif self.count == 1:
            text = self.name
        else:
            text = f"{self.name} no. {value + 1}"
        return text if self.shards == 1 else f"{text} shard {shard}"

    def positions(self, seed: int, at_s: float = 0.0) -> Floats:
        """Return the positions of its keys; the same for the same seed, whatever else is simulated."""
        size = self.listed_count * self.shards
        if self.places is not None:
            return np.asarray(self.places[:size], dtype=np.float64)
        period = 0 if self.period_s is None else int(at_s // self.period_s)
        random = np.random.default_rng([seed, crc32(self.name.encode()), period])
        return np.minimum(random.random(size), 1.0 - 2 * KEY_WIDTH)


@dataclass(frozen=True)
class Popularity:
    """How requests are distributed over a key set: a share for each listed key, the rest spread evenly."""

    positions: Floats  # of the listed keys, the busiest first
    shares: Floats
    rest: float

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The keys ordered by position."""
        return np.argsort(self.positions, kind="stable")

    @cached_property
    def _curve(self) -> tuple[Floats, Floats]:
        """Edges and the share that lies below them, rising evenly in between."""
        lows = self.positions[self.order]
        steps = np.arange(lows.size) * KEY_WIDTH  # keys with the same position follow one another
        lows = np.maximum.accumulate(lows - steps) + steps
        edges = np.empty(2 * lows.size + 2)
        edges[0], edges[-1] = 0.0, 1.0
        edges[1:-1:2], edges[2:-1:2] = lows, lows + KEY_WIDTH
        below = np.concatenate(([0.0], np.cumsum(self.shares[self.order])))
        heights = self.rest * np.clip(edges, 0.0, 1.0)
        heights[1:-1:2] += below[:-1]
        heights[2:-1:2] += below[1:]
        heights[-1] = self.rest + below[-1]
        return np.maximum.accumulate(edges), heights

    @property
    def edges(self) -> Floats:
        """Where keys begin and end, in order, with 0 and 1."""
        return self._curve[0]

    def below(self, bounds: Floats, spread: Spread = "any") -> Floats:
        """Return the share of requests that falls below each of these positions."""
        edges, heights = self._curve
        if spread != "any" and edges.size > 2:
            lows, highs = edges[1:-1:2], edges[2:-1:2]
            at = np.clip(np.searchsorted(lows, bounds, side="right") - 1, 0, None)
            within = (bounds > lows[at]) & (bounds < highs[at])
            bounds = np.where(within, highs[at] if spread == "point" else lows[at], bounds)
        shares: Floats = np.interp(bounds, edges, heights)
        return shares


def popularity(keys: KeySet, skew: float, seed: int, at_s: float = 0.0) -> Popularity:
    """Return how requests are distributed over a key set by Zipf's law: the n-th busiest value gets 1/n^skew of the first one's share."""
    ranks = np.arange(1, keys.listed_count + 1, dtype=np.float64)
    weights = ranks**-skew
    rest = _unlisted_weight(keys.listed_count, keys.count, skew)
    total = weights.sum() + rest
    shares = np.repeat(weights / total / keys.shards, keys.shards)
    return Popularity(keys.positions(seed, at_s), shares, float(rest / total))


def _unlisted_weight(listed: int, count: int, skew: float) -> float:
    """Return the sum of n^-skew over the values that are not listed, by its integral."""
    if count <= listed:
        return 0.0
    low, high = listed + 0.5, count + 0.5
    if abs(skew - 1.0) < 1e-9:
        return float(np.log(high / low))
    return float((high ** (1 - skew) - low ** (1 - skew)) / (1 - skew))
