"""What a write costs in the table and in each of its indexes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tavola.studio.table_layouts import TableLayout, TargetLayout
from tavola.values import Item, equal, index_units, item_size, transact_write_units, write_units

IndexEffect = Literal["enters", "leaves", "moves", "updated", "untouched", "absent"]


@dataclass(frozen=True, slots=True)
class IndexWrite:
    """The effect of a write on one index, and its cost there."""

    index: str
    effect: IndexEffect
    bytes_before: int | None  # of the entry; None: there is none
    bytes_after: int | None
    units: float


@dataclass(frozen=True, slots=True)
class WriteCost:
    """The write units of a write: in total, for the table, and for each index."""

    units: float
    table_units: float
    indexes: tuple[IndexWrite, ...]


def write_cost(
    layout: TableLayout, before: Item | None, after: Item | None, *, transactional: bool = False
) -> WriteCost:
    """Return the cost of replacing one item with another; None means no item."""
    if before is not None and after is not None and layout.key_of(before) != layout.key_of(after):
        away = write_cost(layout, before, None, transactional=True)
        arrival = write_cost(layout, None, after, transactional=True)
        indexes = tuple(
            _combine_moves(one, two) for one, two in zip(away.indexes, arrival.indexes, strict=True)
        )
        return WriteCost(away.units + arrival.units, away.table_units + arrival.table_units, indexes)
    sizes = [0 if item is None else item_size(item) for item in (before, after)]
    table = transact_write_units(*sizes) if transactional else write_units(*sizes)
    indexes = tuple(_index_write(index, before, after) for index in layout.indexes)
    return WriteCost(table + sum(index.units for index in indexes), table, indexes)


def _index_write(index: TargetLayout, before: Item | None, after: Item | None) -> IndexWrite:
    name = index.index or ""
    was, will = index.entry_of(before), index.entry_of(after)
    old, new = (None if entry is None else item_size(entry) for entry in (was, will))
    if was is None or will is None:
        effect: IndexEffect = "absent" if was is will else "enters" if was is None else "leaves"
        return IndexWrite(name, effect, old, new, index_units(old, new, moved=True))
    moved = index.schema.entry_of(was) != index.schema.entry_of(will)
    same = equal({"M": was}, {"M": will})
    effect = "untouched" if same else "moves" if moved else "updated"
    return IndexWrite(name, effect, old, new, index_units(old, new, moved=moved, same=same))


def _combine_moves(departure: IndexWrite, arrival: IndexWrite) -> IndexWrite:
    effects: dict[tuple[bool, bool], IndexEffect] = {
        (True, True): "moves",
        (True, False): "leaves",
        (False, True): "enters",
        (False, False): "absent",
    }
    effect = effects[departure.effect == "leaves", arrival.effect == "enters"]
    return IndexWrite(
        departure.index, effect, departure.bytes_before, arrival.bytes_after, departure.units + arrival.units
    )
