"""The traffic that the simulator runs: the rate of each kind of request, the keys it draws and the units it uses there.

The only input of the simulator, built from access patterns (`demand`) or from a recorded access log (`traces`). A flow is a kind of
request; it draws keys. Where one drawn key decides about several stations (a table and an index with the same partition key), they are
the arms of one draw.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from tavola.design.simulation.keyspace import Floats, KeySet, Popularity, Spread, popularity
from tavola.limits import PARTITION_READS_PER_S, PARTITION_WRITES_PER_S

Access = Literal["read", "write"]
ACCESSES: tuple[Access, ...] = ("read", "write")
PARTITION_LIMITS: dict[Access, int] = {
    "read": PARTITION_READS_PER_S,
    "write": PARTITION_WRITES_PER_S,
}  # units per second


@dataclass(frozen=True, slots=True)
class StationCapacity:
    """The capacity of a station: units per second as a whole, initial partitions, and the bounds of auto scaling."""

    reads: float
    writes: float
    on_demand: bool
    partitions: int = 1  # at the beginning
    reads_max: float | None = None  # maximum of auto scaling; None: not scaled
    writes_max: float | None = None
    reads_min: float = 1.0
    writes_min: float = 1.0
    target: float = 0.7


@dataclass(frozen=True, slots=True)
class TableOrIndex:
    """A table, or one of its global indexes."""

    table: str
    index: str | None

    @property
    def name(self) -> str:
        """The display name."""
        return self.table if self.index is None else f"{self.table}/{self.index}"


@dataclass(frozen=True, slots=True)
class Station(TableOrIndex):
    """A table or global index, as DynamoDB meters it."""

    capacity: StationCapacity
    whole_collections: bool = False  # a local index keeps item collections together


@dataclass(frozen=True, slots=True)
class Arm:
    """What a request uses at one station, at the key it drew."""

    station: int
    access: Access
    units: float
    spread: Spread = "point"


@dataclass(frozen=True, slots=True)
class Draw:
    """A key that a request draws, and the stations where that key matters."""

    keys: int  # number of its key set in the workload
    skew: float
    arms: tuple[Arm, ...]
    rank: int | None = None  # always this key: the busiest keys of a trace have draws of their own


@dataclass(frozen=True, slots=True)
class RequestFlow:
    """A kind of request and the keys that it draws."""

    pattern: str  # name of its access pattern in the design
    title: str
    draws: tuple[Draw, ...]
    fan: float = 1.0  # requests of this flow per call of the pattern


class RequestRates(Protocol):
    """The number of requests of each flow in each second."""

    @property
    def seconds(self) -> int:
        """Return the length of the run."""
        ...

    def block(self, start: int, count: int) -> Floats:
        """Return the requests of `count` seconds from `start` on: one row per second, one column per flow."""
        ...

    def means(self) -> Floats:
        """Return each flow's mean over the whole time."""
        ...

    def peaks(self) -> Floats:
        """Return each flow's rate at the busiest time."""
        ...

    def busiest(self, seconds: int) -> RequestRates:
        """Return the busiest period of `seconds`, or all of it if it is shorter."""
        ...

    def scale(self, factors: tuple[float, ...]) -> RequestRates:
        """Return the same rates with each flow multiplied by its factor."""
        ...


@dataclass(frozen=True, slots=True)
class Workload:
    """Flows over stations, with the keys that they draw."""

    stations: tuple[Station, ...]
    keys: tuple[KeySet, ...]
    flows: tuple[RequestFlow, ...]
    rates: RequestRates
    assumptions: tuple[str, ...] = ()  # values that are not declared, and what is assumed
    without_rates: tuple[str, ...] = ()  # patterns without a rate, left out
    zero_rates: tuple[str, ...] = ()  # patterns with a rate of 0, left out
    begins_at_s: float = 0.0  # second of the day, or for a trace since the epoch
    traced: bool = False  # from a log: each flow is a part of its pattern's calls, not a step of every call

    def pattern_flows(self) -> dict[str, list[int]]:
        """Return the flows of each pattern, in the order of the first of each."""
        flows_by_pattern: dict[str, list[int]] = {}
        for number, flow in enumerate(self.flows):
            flows_by_pattern.setdefault(flow.pattern, []).append(number)
        return flows_by_pattern


@dataclass(slots=True)
class KeyPopularities:
    """How each draw of a workload is distributed over its keys at a time; computed once per key set and skew."""

    workload: Workload
    seed: int
    _cache: dict[tuple[int, float, int | None, int], Popularity] = field(default_factory=dict)

    def of(self, draw: Draw, at_s: float) -> Popularity:
        """Return how a draw is distributed over its keys at a time."""
        keys = self.workload.keys[draw.keys]
        period = 0 if keys.period_s is None else int(at_s // keys.period_s)
        cache_key = (draw.keys, draw.skew, draw.rank, period)
        popularity_ = self._cache.get(cache_key)
        if popularity_ is None:
            popularity_ = popularity(keys, draw.skew, self.seed, at_s)
            if draw.rank is not None:
                at = slice(draw.rank * keys.shards, (draw.rank + 1) * keys.shards)
                even = np.full(keys.shards, 1.0 / keys.shards)
                popularity_ = Popularity(popularity_.positions[at], even, 0.0)
            self._cache[cache_key] = popularity_
        return popularity_
