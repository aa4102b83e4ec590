"""Results: what a simulation found, as plain numbers and texts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from tavola.design.simulation.workload import Access, TableOrIndex

SCHEMA = "tavola.simulation/1"
SHARDS_MAX = 1024  # the highest number tried


@dataclass(frozen=True, slots=True)
class BusyKey:
    """A busy partition key: units per second on average and at its peak, and the share that was refused."""

    name: str
    mean: float
    peak: float
    throttled: float
    position: float  # of its hash, 0 to 1


@dataclass(frozen=True, slots=True)
class ShardsNeeded:
    """How many shards a partition key needs so that its place refuses less than one write in a thousand."""

    keys: str  # the key's template
    now: int
    needed: int | None  # None: no number up to SHARDS_MAX is enough
    throttled: float  # refused share of the place with that many
    by_time: bool = False  # it is sharded by time, and these shards would be additional


@dataclass(frozen=True, slots=True)
class PlaceResult(TableOrIndex):
    """A table or global index, read or written."""

    access: Access
    mode: str  # on-demand or provisioned
    units: float  # capacity per second; with auto scaling, on average while it refused, else at the end
    mean: float  # units requested per second
    peak: float
    throttled: float  # share of the requested units that was refused
    by_partitions: float  # refused by a partition
    by_whole: float  # refused by its capacity or the account's quota
    partitions: tuple[int, int]  # at the beginning and at the end
    splits: int  # for heat
    busiest: tuple[BusyKey, ...]
    diagnosis: str
    shards: tuple[ShardsNeeded, ...] = ()  # of each hot key


@dataclass(frozen=True, slots=True)
class PatternResult:
    """An access pattern: its rate, and how many of its requests were refused or delayed."""

    name: str
    title: str
    mean: float  # requests per second
    peak: float
    throttled: float  # share that was refused
    wait_p99_s: float
    given_up: float
    held_up_by: str | None  # the place that refused the largest share


@dataclass(frozen=True, slots=True)
class HeatMap(TableOrIndex):
    """A place over time and key ranges: units per second, and the share that was refused."""

    access: Access
    column_s: int
    begins_at_s: float
    heat: tuple[tuple[float, ...], ...]  # one row per key range, from 0 up
    throttled: tuple[tuple[float, ...], ...]
    bounds: tuple[float, ...]  # initial partition bounds
    cuts: tuple[tuple[float, float, str], ...]  # time, position and reason of each split
    keys: tuple[BusyKey, ...]


@dataclass(frozen=True, slots=True)
class Simulation:
    """The result of one run."""

    seed: int
    seconds: int
    began: Literal["cold", "settled", "warm"]  # partitions of a new table, as after a day, as after days
    begins_at_s: float
    requests: float
    throttled: float
    wait_p99_s: float
    places: tuple[PlaceResult, ...]
    patterns: tuple[PatternResult, ...]
    heat_maps: tuple[HeatMap, ...]
    assumptions: tuple[str, ...]
    without_rates: tuple[str, ...]
    zero_rates: tuple[str, ...]  # patterns with a rate of 0
    times: tuple[float, ...]  # start of each column, in seconds
    requested: tuple[float, ...]  # requests per second in each column
    refused: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data; numbers are rounded to six digits."""
        document: dict[str, Any] = _round_numbers(asdict(self))
        for place, place_result in zip(document["places"], self.places, strict=True):
            place["name"] = place_result.name
        for heat_map, source_map in zip(document["heat_maps"], self.heat_maps, strict=True):
            heat_map["name"] = source_map.name
        return document


def _round_numbers(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}") + 0.0  # no -0
    if isinstance(value, dict):
        return {name: _round_numbers(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_round_numbers(element) for element in value]
    return value
