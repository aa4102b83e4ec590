"""Load: the traffic and storage of each table and index, before any price.

It is the same for every payment option, so it is computed once and cached. Storage is items times their size, plus the
overhead that DynamoDB adds to each. Entities declare their number of items (`items=`); if a table has a measured size, that
size counts, and indexes follow in proportion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal, TypeVar

from tavola.design.cost.assumptions import Assumptions, CostError
from tavola.design.cost.capacity import share_in
from tavola.design.cost.traffic import AccessKind, PlaceTraffic, RatedAccess, rated_accesses, traffic_by_place
from tavola.model.document import Design, IndexDesign, TableDesign
from tavola.model.identity_cache import IdentityCache
from tavola.model.sizes import stored_entry_bytes, stored_item_bytes

What = Literal[
    "reads", "writes", "transactions", "key changes", "replicated writes", "storage", "recovery", "backups", "streams",
    "reserved", "free tier",
]  # fmt: skip

T = TypeVar("T")

GB = 1024**3
_RATE_MAX = 1e12  # requests per second, and units of one request


@dataclass(frozen=True, slots=True)
class LoadPart:
    """The units per second of one access on one line of the bill."""

    access: int | None  # its number; None: idle capacity
    index: str | None
    what: What
    per_second: Decimal
    copied: bool  # repeated by the replicas of a global table


CapacityPlace = tuple[str | None, AccessKind]  # where capacity is provisioned: a local index uses its table's


@dataclass(frozen=True, slots=True)
class StoredSize:
    """The gigabytes of a table or index."""

    index: str | None  # None: the table itself
    gb: Decimal
    local: bool = False


@dataclass(frozen=True, slots=True)
class TableLoad:
    """The traffic of a table and its indexes, and what they store."""

    table: TableDesign
    parts: Mapping[CapacityPlace, tuple[LoadPart, ...]]
    flows: Mapping[CapacityPlace, tuple[PlaceTraffic, ...]]
    # Writes that replicas repeat, without the extra units of transactions
    copied: Mapping[CapacityPlace, tuple[PlaceTraffic, ...]]
    stored: tuple[StoredSize, ...]
    sparse: tuple[str, ...]  # indexes whose share of the items is assumed


@dataclass(frozen=True, slots=True)
class DesignLoad:
    """The load of all tables."""

    accesses: tuple[RatedAccess, ...]
    tables: tuple[TableLoad, ...]


_loads: IdentityCache[DesignLoad] = IdentityCache(64)
_stored: IdentityCache[tuple[tuple[StoredSize, ...], tuple[str, ...]]] = IdentityCache(512)


def compute_load(design: Design, assumptions: Assumptions, times: float = 1.0) -> DesignLoad:
    """Return the load of a design, with all rates multiplied by `times`."""
    share, measured = assumptions.sparse_share, tuple(sorted(assumptions.storage_gb.items()))
    return _loads.get_or_compute(
        (design,), (share, measured, times), lambda: _load(design, assumptions, times)
    )


def _load(design: Design, assumptions: Assumptions, times: float) -> DesignLoad:
    accesses = checked_accesses(design, assumptions)
    if times != 1.0:
        accesses = tuple(_scale_rates(access, times) for access in accesses)
    accesses_by_table: dict[str, list[tuple[int, RatedAccess]]] = {table.name: [] for table in design.tables}
    for number, access in enumerate(accesses):
        for name in dict.fromkeys(units.table for units in access.units):
            if name in accesses_by_table:
                accesses_by_table[name].append((number, access))
    return DesignLoad(
        accesses,
        tuple(_table_load(table, accesses_by_table[table.name], assumptions) for table in design.tables),
    )


def _table_load(
    table: TableDesign, accesses: list[tuple[int, RatedAccess]], assumptions: Assumptions
) -> TableLoad:
    local = {index.name for index in table.indexes if index.local}
    parts: dict[CapacityPlace, list[LoadPart]] = {}
    copied: dict[CapacityPlace, list[PlaceTraffic]] = {}
    for number, access in accesses:
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
    flows: dict[CapacityPlace, list[PlaceTraffic]] = {}
    for flow in sorted(traffic_by_place(access for _, access in accesses), key=lambda flow: str(flow.index)):
        if flow.table == table.name:
            flows.setdefault((None if flow.index in local else flow.index, flow.kind), []).append(flow)
    share, measured = assumptions.sparse_share, assumptions.storage_gb.get(table.name)
    stored, guessed = _stored.get_or_compute(
        (table,), (share, measured), lambda: _stored_and_guessed(table, share, measured)
    )
    return TableLoad(table, _freeze(parts), _freeze(flows), _freeze(copied), stored, guessed)


def _stored_and_guessed(
    table: TableDesign, share: float, measured: float | None
) -> tuple[tuple[StoredSize, ...], tuple[str, ...]]:
    return stored_sizes(table, sparse_share=share, measured_gb=measured), tuple(
        index.name for index in table.indexes if has_unknown_share(table, index)
    )


_WRITE: AccessKind = "write"


def _freeze(lists: Mapping[CapacityPlace, list[T]]) -> dict[CapacityPlace, tuple[T, ...]]:
    return {place: tuple(accesses) for place, accesses in lists.items()}


def checked_accesses(design: Design, assumptions: Assumptions) -> tuple[RatedAccess, ...]:
    """Return every access of a design; raise CostError for absurd rates or units."""
    try:
        accesses = rated_accesses(design, sparse_share=assumptions.sparse_share)
    except OverflowError as error:
        raise CostError(
            "an access pattern reads or writes too much to compute; check items= and item_bytes="
        ) from error
    for access in accesses:
        units = max((unit.read + unit.write for unit in access.units), default=0.0)
        if access.peak > _RATE_MAX or units > _RATE_MAX:
            much = (
                f"{access.peak:g} requests per second"
                if access.peak > _RATE_MAX
                else f"{units:g} units per request"
            )
            raise CostError(f"{access.place}: {access.title!r} has {much}; the maximum is {_RATE_MAX:g}")
    return accesses


def _scale_rates(access: RatedAccess, times: float) -> RatedAccess:
    rate, peak = access.per_second, access.peak_per_second
    return replace(
        access,
        per_second=None if rate is None else round(rate * times, 9),
        peak_per_second=None if peak is None else round(peak * times, 9),
    )


def _parts(table: str, number: int, access: RatedAccess) -> Iterator[tuple[AccessKind, LoadPart]]:
    """Yield the units of an access at a table and its indexes, including the reads of a write."""
    if not access.rate:
        return
    rate = _decimal(access.rate)
    for units in access.units:
        if units.table != table:
            continue
        if access.kind == "write" and units.read:  # it reads its item first
            yield "read", LoadPart(number, units.index, "reads", rate * _decimal(units.read), copied=False)
        total_units = units.read if access.kind == "read" else units.write
        rest = total_units - units.transacted - units.moved
        plain: What = "reads" if access.kind == "read" else "writes"
        yield access.kind, LoadPart(number, units.index, plain, rate * _decimal(rest), copied=True)
        if units.transacted:
            # A transaction costs double in its own region only: replicas apply a plain write.
            transacted = rate * _decimal(units.transacted)
            yield access.kind, LoadPart(number, units.index, "transactions", transacted, copied=False)
        if units.moved:
            moved = rate * _decimal(units.moved)
            yield access.kind, LoadPart(number, units.index, "key changes", moved, copied=True)


def _decimal(number: float) -> Decimal:
    """Return a float by its shortest decimal text: 0.1 is one tenth."""
    return Decimal(str(round(number, 9)))


# Storage.


def stored_sizes(
    table: TableDesign, *, sparse_share: float, measured_gb: float | None = None
) -> tuple[StoredSize, ...]:
    """Return the sizes of a table and its indexes; entities without a declared number count as empty."""
    base = Decimal(sum((entity.items or 0) * stored_item_bytes(table, entity) for entity in table.entities))
    counts = {entity.name: Decimal(entity.items or 0) for entity in table.entities}
    if measured_gb is not None:
        measured_bytes = Decimal(str(measured_gb)) * GB
        if base:
            counts = {name: count * measured_bytes / base for name, count in counts.items()}
        else:  # no counts declared: as many of each entity
            one = sum(stored_item_bytes(table, entity) for entity in table.entities)
            counts = dict.fromkeys(counts, measured_bytes / one if one else Decimal(0))
        base = measured_bytes
    sizes = [StoredSize(None, base / GB)]
    for index in table.indexes:
        size = sum(
            (
                counts[entity.name]
                * Decimal(str(share_in(entity, key, sparse_share)))
                * stored_entry_bytes(table, entity, index)
                for entity in table.entities
                if (key := entity.key_on(index.name)) is not None
            ),
            Decimal(0),
        )
        sizes.append(StoredSize(index.name, size / GB, index.local))
    return tuple(sizes)


def entities_without_count(table: TableDesign) -> tuple[str, ...]:
    """Return the entities that do not declare their number of items."""
    return tuple(entity.name for entity in table.entities if entity.items is None)


def has_unknown_share(table: TableDesign, index: IndexDesign) -> bool:
    """Return whether an index has only an assumed share of the items of some entity."""
    keys = ((entity, entity.key_on(index.name)) for entity in table.entities)
    return any(
        key is not None and share_in(entity, key, 0.5) != share_in(entity, key, 0.25) for entity, key in keys
    )
