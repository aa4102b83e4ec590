"""Results: what a simulation found, as plain numbers and texts, for a page, a terminal or another program."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from tavola.design.simulation.workload import Access

SCHEMA = "tavola.simulation/1"
SHARDS_MOST = 1024  # that are tried


@dataclass(frozen=True, slots=True)
class BusyKey:
    """A partition key that took much: units a second on average and at the busiest, and what was refused of it."""

    name: str
    mean: float
    peak: float
    throttled: float
    position: float  # of its hash, 0 to 1


@dataclass(frozen=True, slots=True)
class ShardsNeeded:
    """How many shards a partition key needs so that its place throttles less than a thousandth, by simulating it."""

    keys: str  # the key's template
    now: int
    needed: int | None  # None: no number up to the most that was tried is enough
    throttled: float  # at the place, with that many
    by_time: bool = False  # its shards are hours or days, and these would come beside them


@dataclass(frozen=True, slots=True)
class PlaceResult:
    """A table or global index, read or written."""

    table: str
    index: str | None
    access: Access
    mode: str  # on-demand or provisioned
    units: float  # that it may take a second as a whole; scaled, what it had while it refused, or else at the end
    mean: float  # units asked a second
    peak: float
    throttled: float  # the share of the units asked that it refused
    by_partitions: float  # by a partition
    by_whole: float  # by its capacity, or the quota
    partitions: tuple[int, int]  # at the beginning and at the end
    splits: int  # for heat
    busiest: tuple[BusyKey, ...]
    diagnosis: str
    shards: tuple[ShardsNeeded, ...] = ()  # of each key that is hot

    @property
    def name(self) -> str:
        """Its name for people."""
        return self.table if self.index is None else f"{self.table}/{self.index}"


@dataclass(frozen=True, slots=True)
class PatternResult:
    """An access pattern: how often it was asked, and what became of it."""

    name: str
    title: str
    mean: float  # requests a second
    peak: float
    throttled: float  # the share that was refused at first
    wait_p99_s: float
    given_up: float
    held_up_by: str | None  # the place that refused most of it


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A place over time and keys: units a second in each stretch, and the share of them that was refused."""

    table: str
    index: str | None
    access: Access
    column_s: int
    begins_at_s: float
    heat: tuple[tuple[float, ...], ...]  # a row for each stretch of keys, from 0 up
    throttled: tuple[tuple[float, ...], ...]
    bounds: tuple[float, ...]  # where partitions began at first
    cuts: tuple[tuple[float, float, str], ...]  # when, where and why one became two
    keys: tuple[BusyKey, ...]

    @property
    def name(self) -> str:
        """Its name for people."""
        return self.table if self.index is None else f"{self.table}/{self.index}"


@dataclass(frozen=True, slots=True)
class Simulation:
    """All that one run found."""

    seed: int
    seconds: int
    began: Literal[
        "cold", "settled", "warm"
    ]  # with partitions of a new table, of the day before, of many days
    begins_at_s: float
    requests: float
    throttled: float
    wait_p99_s: float
    places: tuple[PlaceResult, ...]
    patterns: tuple[PatternResult, ...]
    heat_maps: tuple[HeatMap, ...]
    assumptions: tuple[str, ...]
    without_rates: tuple[str, ...]
    zero_rates: tuple[str, ...]  # patterns that are never asked
    times: tuple[float, ...]  # where stretches of time begin, in seconds
    asked: tuple[float, ...]  # requests a second in each
    refused: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as data that JSON can hold; numbers keep six digits, which is more than it knows."""
        found: dict[str, Any] = _rounded(asdict(self))
        for place, told in zip(found["places"], self.places, strict=True):
            place["name"] = told.name
        for heat_map, each in zip(found["heat_maps"], self.heat_maps, strict=True):
            heat_map["name"] = each.name
        return found


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}") + 0.0  # no -0
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(each) for each in value]
    return value
