"""Traffic: every access of a design with its rate, and the units per second at each table and index.

A pattern without a rate is kept, and counts for nothing. An undeclared peak equals the average.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from math import ceil, cos, pi
from typing import Literal

from tavola.design.cost.capacity import (
    SPARSE_SHARE,
    RequestUnits,
    collection_units,
    need_units,
    pattern_units,
    write_pattern_units,
)
from tavola.model.document import AccessPattern, Design, TableDesign
from tavola.model.identity_cache import IdentityCache

AccessKind = Literal["read", "write"]

HOURS = 24


@dataclass(frozen=True, slots=True)
class RatedAccess:
    """One access pattern or write, the units of one request, and its rate."""

    kind: AccessKind
    place: str  # `Ticket.ByStatus`, or the entity that is written
    title: str
    units: tuple[RequestUnits, ...]
    per_second: float | None  # None: not declared
    peak_per_second: float | None = None

    @property
    def rate(self) -> float:
        """Requests per second on average; 0 if not declared."""
        return self.per_second or 0.0

    @property
    def peak(self) -> float:
        """Requests per second at the peak."""
        return max(self.rate, self.peak_per_second or 0.0)


@dataclass(frozen=True, slots=True)
class PlaceTraffic:
    """Units per second of one kind at one table or index: on average, and if all accesses peak together."""

    table: str
    index: str | None
    kind: AccessKind
    mean: float
    peak: float


def rated_accesses(design: Design, *, sparse_share: float = SPARSE_SHARE) -> tuple[RatedAccess, ...]:
    """Return every declared access of a design, in its order."""
    return tuple(_accesses(design, sparse_share))


_known: IdentityCache[tuple[RatedAccess, ...]] = IdentityCache(512)


def _accesses(design: Design, sparse_share: float) -> Iterator[RatedAccess]:
    titles: set[str] = set()
    for table in design.tables:
        own = _known.get_or_compute((table,), sparse_share, partial(_of_table, table, sparse_share))
        titles |= {access.title for access in own if access.kind == "read"}
        yield from own
    for need in design.needs:
        if need.route is not None and need.title not in titles:
            access = need.access or AccessPattern(need.name)
            yield _read(need.name, access, need_units(design, need))


def _of_table(table: TableDesign, sparse_share: float) -> tuple[RatedAccess, ...]:
    found: list[RatedAccess] = []
    for entity in table.entities:
        for pattern in entity.all_patterns:
            # A key without an AccessPattern is not an access; a query always is.
            if pattern.access is not None or pattern != entity.primary:
                access = pattern.access or AccessPattern(pattern.name)
                units = pattern_units(table, entity, pattern)
                found.append(_read(f"{entity.name}.{pattern.name}", access, units))
        for write in entity.writes:
            units = write_pattern_units(table, entity, write, sparse_share=sparse_share)
            rates = write.per_second, write.peak_per_second
            found.append(RatedAccess("write", entity.name, write.title, units, *rates))
    for collection in table.collections:
        access = collection.access or AccessPattern(collection.name)
        found.append(_read(collection.name, access, collection_units(table, collection)))
    return tuple(found)


def _read(place: str, access: AccessPattern, units: tuple[RequestUnits, ...]) -> RatedAccess:
    return RatedAccess("read", place, access.title, units, access.per_second, access.peak_per_second)


def traffic_by_place(accesses: Iterable[RatedAccess]) -> tuple[PlaceTraffic, ...]:
    """Return the traffic of each table and index, reads and writes separately."""
    means: dict[tuple[str, str | None, AccessKind], float] = {}
    peaks: dict[tuple[str, str | None, AccessKind], float] = {}
    for access in accesses:
        for units in access.units:
            amounts: tuple[tuple[AccessKind, float], ...] = (("read", units.read), ("write", units.write))
            for kind, amount in amounts:
                place = (units.table, units.index, kind)
                if amount:
                    means[place] = means.get(place, 0.0) + amount * access.rate
                    peaks[place] = peaks.get(place, 0.0) + amount * access.peak
    return tuple(PlaceTraffic(*place, mean, peaks[place]) for place, mean in means.items())


def daily_demand(mean: float, peak: float, hours: int = HOURS) -> tuple[float, ...]:
    """Return the highest demand in each hour of a day whose traffic rises and falls.

    It follows a cosine, up to twice the mean; a higher peak gets one hour of its own. `mean` and `peak` are those of the hours
    with traffic; the other hours have none.
    """
    swell = min(mean, peak - mean)
    middle = hours // 2
    demand = []
    for hour in range(hours):
        away = max(0.0, abs(hour - middle) - 0.5)  # the end of the hour that is nearer to midday
        demand.append(mean + swell * cos(2 * pi * away / hours))
    demand[middle] = peak
    return (*demand, *[0.0] * (HOURS - hours))


def autoscaled_units(
    demand: Iterable[float], *, target: int, least: int = 1, most: int | None = None
) -> tuple[int, ...]:
    """Return the units that auto scaling provisions in each hour for a demand, within its limits."""
    units = (max(least, ceil(round(each * 100 / target, 9))) for each in demand)
    return tuple(each if most is None else min(each, most) for each in units)


@lru_cache(maxsize=8192)  # pure, and called alike for several payment options
def hourly_units(
    mean: float, peak: float, hours: int, target: int, least: int = 1, most: int | None = None
) -> tuple[int, ...]:
    """Return the units that auto scaling provisions in each hour of a day with such traffic."""
    return autoscaled_units(daily_demand(mean, peak, hours), target=target, least=least, most=most)
