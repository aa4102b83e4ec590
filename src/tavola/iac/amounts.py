"""How many items a change affects, and how many units it consumes.

The numbers come from the design (`items=`, `item_bytes=`) or from DynamoDB's own count of a deployed table. An undeclared number is not
guessed: it is None, or an upper bound marked as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tavola.limits import ON_DEMAND_WARM_WRITES_PER_S, READ_UNIT_BYTES, WRITE_UNIT_BYTES
from tavola.model.document import EntityDesign, IndexDesign, TableDesign
from tavola.model.sizes import declared_item_bytes, entry_bytes, item_bytes

WorkKind = Literal["backfill", "rewrite", "copy"]

_KEYS_BYTES = 200  # approximate size of an index entry with keys only


@dataclass(frozen=True, slots=True)
class TableCount:
    """DynamoDB's count of a table, updated about every six hours."""

    items: int
    bytes: int

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> TableCount:
        """Return the count in a table description."""
        return cls(int(described.get("ItemCount", 0)), int(described.get("TableSizeBytes", 0)))


@dataclass(frozen=True, slots=True)
class Work:
    """Work on existing items that a change requires."""

    kind: WorkKind
    items: int | None  # None: unknown
    write_units: float | None
    read_units: float | None = 0.0
    most: bool = False  # the numbers are an upper bound
    units_per_second: float = ON_DEMAND_WARM_WRITES_PER_S
    assumed: tuple[str, ...] = ()

    @property
    def seconds(self) -> float | None:
        """How long it takes at the table's or index's rate."""
        return None if self.write_units is None else self.write_units / self.units_per_second

    def __str__(self) -> str:
        if self.items is None or self.write_units is None:
            return (
                f"{self.kind} of an unknown number of items; declare items= and item_bytes= for an estimate"
            )
        if not self.items:
            return f"no items to {self.kind}"
        about = "at most " if self.most else "about "
        reads = f" and {self.read_units:,.0f} read units" if self.read_units else ""
        return (
            f"{self.kind} of {about}{self.items:,} items: {self.write_units:,.0f} write units{reads}, "
            f"{_spell_duration(self.seconds or 0)} at {self.units_per_second:,.0f} units per second"
        )


def backfill_of(table: TableDesign, index: IndexDesign, counted: TableCount | None) -> Work:
    """Return the work of filling an index: one entry write per item in it; reading the table is free."""
    members = [entity for entity in table.entities if entity.key_on(index.name) is not None]
    rate = _rate(table)
    declared = [entity.items for entity in members]
    if members and counted is not None and (share := _share(table, members)) is not None:
        return _counted_backfill(table, index, members, counted, share)
    if members and None not in declared and counted is None:
        units = sum((entity.items or 0) * _units(entry_bytes(table, entity, index)) for entity in members)
        items = sum(each or 0 for each in declared)
        assumed = _size_assumptions(table, members)
        return Work("backfill", items, float(units), units_per_second=rate, assumed=assumed)
    if counted is None:
        return Work("backfill", None, None, 0.0, False, rate)
    each_bytes = counted.bytes // counted.items if counted.items else 0
    if index.projection == "KEYS_ONLY":
        each_bytes = min(each_bytes, _KEYS_BYTES)
    return Work("backfill", counted.items, float(counted.items * _units(each_bytes)), 0.0, True, rate)


def _share(table: TableDesign, members: Iterable[EntityDesign]) -> float | None:
    """Return the fraction of a table's items that some entities are, by the design; None: undeclared."""
    every = [entity.items for entity in table.entities]
    if None in every or not sum(each or 0 for each in every):
        return None
    return sum(entity.items or 0 for entity in members) / sum(each or 0 for each in every)


def _counted_backfill(
    table: TableDesign, index: IndexDesign, members: list[EntityDesign], counted: TableCount, share: float
) -> Work:
    """Return the work of filling an index by DynamoDB's count, times the fraction that the design declares."""
    items = round(counted.items * share)
    declared = sum(entity.items or 0 for entity in members)
    size = counted.bytes // counted.items if counted.items else 0
    if index.projection == "KEYS_ONLY":
        size = min(size, _KEYS_BYTES)
    assumed = [_count_assumption(counted)]
    if share < 1:
        assumed.append(f"{share:.0%} of the items are in the index, by items= of the design")
    if declared != items:
        assumed.append(f"the design declares {declared:,} items")
    return Work("backfill", items, float(items * _units(size)), 0.0, False, _rate(table), tuple(assumed))


def _count_assumption(counted: TableCount) -> str:
    return f"DynamoDB reports {counted.items:,} items in the table, updated about every six hours"


def rewrite_of(
    table: TableDesign, was: EntityDesign, now: EntityDesign, counted: TableCount | None, *, moves: bool
) -> Work:
    """Return the work of rewriting the items of an entity: each item, and two entries in each index whose key changes."""
    size = item_bytes(table, now)
    units = float(_units(size) * (2 if moves else 1))
    for index in table.indexes:
        old, new = was.key_on(index.name), now.key_on(index.name)
        if moves and new is not None:
            units += 2 * _units(entry_bytes(table, now, index))
        elif old != new:
            units += _units(entry_bytes(table, now, index)) * (
                2 if old is not None and new is not None else 1
            )
    rate = _rate(table)
    kind: WorkKind = "copy" if moves else "rewrite"
    share = _share(table, [now])
    assumed = _size_assumptions(table, [now])
    items = now.items
    if counted is not None:
        items = counted.items if share is None else round(counted.items * share)
        assumed = (_count_assumption(counted), *assumed)
        if now.items is not None and now.items != items:
            assumed = (*assumed, f"the design declares {now.items:,} items")
    if items is None:
        return Work(kind, None, None, None, False, rate)
    most = counted is not None and share is None
    return Work(kind, items, items * units, _scan_units(items * size), most, rate, assumed)


def copy_of(table: TableDesign, counted: TableCount | None) -> Work:
    """Return the work of copying a table: each item is read, and written with its index entries."""
    rate = _rate(table)
    declared = [entity.items for entity in table.entities]
    if table.entities and None not in declared and counted is None:
        units = sum(
            (entity.items or 0)
            * (
                _units(item_bytes(table, entity))
                + sum(
                    _units(entry_bytes(table, entity, index))
                    for index in table.indexes
                    if entity.key_on(index.name) is not None
                )
            )
            for entity in table.entities
        )
        reads = _scan_units(sum((entity.items or 0) * item_bytes(table, entity) for entity in table.entities))
        items = sum(each or 0 for each in declared)
        return Work("copy", items, float(units), reads, False, rate, _size_assumptions(table, table.entities))
    if counted is None:
        return Work("copy", None, None, None, False, rate)
    size = counted.bytes // counted.items if counted.items else 0
    units = counted.items * _units(size) * (1 + len(table.indexes))
    return Work(
        "copy",
        counted.items,
        float(units),
        _scan_units(counted.bytes),
        True,
        rate,
        (_count_assumption(counted),),
    )


def _size_assumptions(table: TableDesign, entities: Iterable[EntityDesign]) -> tuple[str, ...]:
    return tuple(
        f"items of {entity.name} are estimated at {item_bytes(table, entity):,} bytes; declare item_bytes="
        for entity in entities
        if declared_item_bytes(entity) is None
    )


def _rate(table: TableDesign) -> float:
    return float(table.settings.write_units or ON_DEMAND_WARM_WRITES_PER_S)


def _scan_units(size: int) -> float:
    """Return the read units of a consistent scan over this many bytes."""
    return float(-(-size // READ_UNIT_BYTES))


def _units(size: int) -> int:
    return max(1, -(-size // WRITE_UNIT_BYTES))


def _spell_duration(seconds: float) -> str:
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    if seconds < 2 * 3600:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:,.1f} h"
