"""Load: what a design asks of each place and what it holds there, before any price.

It is the same under every way of paying, so it is worked out once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal, TypeVar

from tavola.design.cost.assumptions import Assumptions, CostRefused
from tavola.design.cost.storage import StoredSize, has_unknown_share, stored_sizes
from tavola.design.cost.traffic import AccessKind, PlaceTraffic, RatedAccess, rated_accesses, traffic_by_place
from tavola.model.document import Design, TableDesign
from tavola.model.identity_cache import IdentityCache

What = Literal[
    "reads", "writes", "transactions", "key changes", "replicated writes", "storage", "recovery", "backups", "streams",
    "reserved", "free tier",
]  # fmt: skip

T = TypeVar("T")

_RATE_MAX = 1e12  # requests a second, and units of one, that anything can be computed of


@dataclass(frozen=True, slots=True)
class LoadPart:
    """Units a second of one access that stand on one line."""

    access: int | None  # its number; None: nobody's
    index: str | None
    what: What
    per_second: Decimal
    copied: bool  # a global table's replicas make it again


CapacityPlace = tuple[
    str | None, AccessKind
]  # what units are provisioned for: a local index lives on its table's


@dataclass(frozen=True, slots=True)
class TableLoad:
    """What is asked of a table and its indexes, and what they hold."""

    table: TableDesign
    parts: Mapping[CapacityPlace, tuple[LoadPart, ...]]
    flows: Mapping[CapacityPlace, tuple[PlaceTraffic, ...]]
    copied: Mapping[
        CapacityPlace, tuple[PlaceTraffic, ...]
    ]  # that replicas make again: writes without what transactions add
    held: tuple[StoredSize, ...]
    sparse: tuple[str, ...]  # indexes of which nobody says how many items they hold


@dataclass(frozen=True, slots=True)
class DesignLoad:
    """What a design asks and holds, a table after the other."""

    accesses: tuple[RatedAccess, ...]
    tables: tuple[TableLoad, ...]


_loads: IdentityCache[DesignLoad] = IdentityCache(64)
_held: IdentityCache[tuple[tuple[StoredSize, ...], tuple[str, ...]]] = IdentityCache(512)


def compute_load(design: Design, assumptions: Assumptions, times: float = 1.0) -> DesignLoad:
    """Return what a design asks and holds; `times` is how many times as often everything is asked."""
    share, measured = assumptions.sparse_share, tuple(sorted(assumptions.storage_gb.items()))
    return _loads.get_or_compute(
        (design,), (share, measured, times), lambda: _load(design, assumptions, times)
    )


def _load(design: Design, assumptions: Assumptions, times: float) -> DesignLoad:
    told = checked_accesses(design, assumptions)
    if times != 1.0:
        told = tuple(_scale_rates(access, times) for access in told)
    own: dict[str, list[tuple[int, RatedAccess]]] = {table.name: [] for table in design.tables}
    for number, access in enumerate(told):
        for name in dict.fromkeys(units.table for units in access.units):
            if name in own:
                own[name].append((number, access))
    return DesignLoad(told, tuple(_of_table(table, own[table.name], assumptions) for table in design.tables))


def _of_table(table: TableDesign, told: list[tuple[int, RatedAccess]], assumptions: Assumptions) -> TableLoad:
    local = {index.name for index in table.indexes if index.local}
    parts: dict[CapacityPlace, list[LoadPart]] = {}
    copied: dict[CapacityPlace, list[PlaceTraffic]] = {}
    for number, access in told:
        for kind, part in _parts(table.name, number, access):
            parts.setdefault((None if part.index in local else part.index, kind), []).append(part)
        for units in access.units:
            amount = units.write - units.transacted
            if units.table == table.name and amount:
                place = (None if units.index in local else units.index, _WRITE)
                flow = PlaceTraffic(
                    table.name, units.index, "write", amount * access.rate, amount * access.peak
                )
                copied.setdefault(place, []).append(flow)
    met: dict[CapacityPlace, list[PlaceTraffic]] = {}
    for flow in sorted(traffic_by_place(access for _, access in told), key=lambda flow: str(flow.index)):
        if flow.table == table.name:
            met.setdefault((None if flow.index in local else flow.index, flow.kind), []).append(flow)
    share, measured = assumptions.sparse_share, assumptions.storage_gb.get(table.name)
    held, guessed = _held.get_or_compute((table,), (share, measured), lambda: _holds(table, share, measured))
    return TableLoad(table, _frozen(parts), _frozen(met), _frozen(copied), held, guessed)


def _holds(
    table: TableDesign, share: float, measured: float | None
) -> tuple[tuple[StoredSize, ...], tuple[str, ...]]:
    return stored_sizes(table, sparse_share=share, measured_gb=measured), tuple(
        index.name for index in table.indexes if has_unknown_share(table, index)
    )


_WRITE: AccessKind = "write"


def _frozen(lists: Mapping[CapacityPlace, list[T]]) -> dict[CapacityPlace, tuple[T, ...]]:
    return {place: tuple(each) for place, each in lists.items()}


def checked_accesses(design: Design, assumptions: Assumptions) -> tuple[RatedAccess, ...]:
    """Return every access of a design; refuse one that is asked more often, or takes more, than anything can be."""
    try:
        told = rated_accesses(design, sparse_share=assumptions.sparse_share)
    except OverflowError as error:
        raise CostRefused(
            "an access pattern reads or writes more than can be counted; look at items= and item_bytes=, and give what can be"
        ) from error
    for access in told:
        units = max((each.read + each.write for each in access.units), default=0.0)
        if access.peak > _RATE_MAX or units > _RATE_MAX:
            much = f"{access.peak:g} a second" if access.peak > _RATE_MAX else f"{units:g} units a request"
            raise CostRefused(
                f"{access.place}: {access.title!r} has {much}, which nothing can have; give {_RATE_MAX:g} at most"
            )
    return told


def _scale_rates(access: RatedAccess, times: float) -> RatedAccess:
    rate, peak = access.per_second, access.peak_per_second
    return replace(
        access,
        per_second=None if rate is None else round(rate * times, 9),
        peak_per_second=None if peak is None else round(peak * times, 9),
    )


def _parts(table: str, number: int, access: RatedAccess) -> Iterator[tuple[AccessKind, LoadPart]]:
    """Give the units of an access at a table and its indexes, the reads of a write among them."""
    if not access.rate:
        return
    rate = _decimal(access.rate)
    for units in access.units:
        if units.table != table:
            continue
        if access.kind == "write" and units.read:  # it reads its item first
            yield "read", LoadPart(number, units.index, "reads", rate * _decimal(units.read), copied=False)
        whole = units.read if access.kind == "read" else units.write
        rest = whole - units.transacted - units.moved
        plain: What = "reads" if access.kind == "read" else "writes"
        yield access.kind, LoadPart(number, units.index, plain, rate * _decimal(rest), copied=True)
        if units.transacted:
            # What a transaction adds is paid where it is made: replicas copy it as a plain write.
            transacted = rate * _decimal(units.transacted)
            yield access.kind, LoadPart(number, units.index, "transactions", transacted, copied=False)
        if units.moved:
            moved = rate * _decimal(units.moved)
            yield access.kind, LoadPart(number, units.index, "key changes", moved, copied=True)


def _decimal(told: float) -> Decimal:
    """Return a float as it is written: a tenth is a tenth."""
    return Decimal(str(round(told, 9)))
