"""The keys of a table and its indexes, and what a write to them costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tavola.keys import KeyAttribute, KeyRefused, KeySchema
from tavola.values import Item, equal, index_units, item_size, transact_write_units, write_units


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """An index: its key, and which attributes it holds (None: all)."""

    name: str
    local: bool
    schema: KeySchema
    projected: frozenset[str] | None

    def entry_of(self, item: Item | None) -> Item | None:
        """Return what the index holds of an item; None where the item is not in it, or cannot be."""
        if item is None:
            return None
        try:
            if self.schema.entry_of(item) is None:
                return None
        except KeyRefused:
            return None
        if self.projected is None:
            return item
        return {name: value for name, value in item.items() if name in self.projected}


@dataclass(frozen=True, slots=True)
class TableLayout:
    """A table's key and its indexes."""

    table: str
    schema: KeySchema
    indexes: tuple[IndexLayout, ...]
    on_demand: bool

    def key_of(self, item: Mapping[str, Any]) -> Item:
        """Return the key of an item, as much of it as the item has."""
        return {name: item[name] for name in self.schema.names if name in item}

    def identity_of(self, item: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what tells an item of the table from every other: the contents of its key."""
        return tuple(str(item.get(each.name, {}).get(each.type, "")) for each in self.schema.attributes)


def parse_layout(described: Mapping[str, Any]) -> TableLayout:
    """Return the layout that DescribeTable tells."""
    types = {each["AttributeName"]: each["AttributeType"] for each in described["AttributeDefinitions"]}
    schema = _schema(described["KeySchema"], types)
    indexes = [
        _index(each, types, schema, local=local)
        for members, local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True))
        for each in described.get(members, ())
    ]
    billing = described.get("BillingModeSummary", {}).get("BillingMode")
    indexes.sort(key=lambda index: index.name)
    return TableLayout(described["TableName"], schema, tuple(indexes), billing == "PAY_PER_REQUEST")


def _index(
    described: Mapping[str, Any], types: Mapping[str, str], table: KeySchema, *, local: bool
) -> IndexLayout:
    schema = _schema(described["KeySchema"], types)
    projection = described["Projection"]
    projected = None
    if projection.get("ProjectionType", "ALL") != "ALL":
        projected = frozenset({*schema.names, *table.names, *projection.get("NonKeyAttributes", ())})
    return IndexLayout(described["IndexName"], local, schema, projected)


def _schema(told: list[Mapping[str, str]], types: Mapping[str, str]) -> KeySchema:
    def half(role: str) -> tuple[KeyAttribute, ...]:
        return tuple(
            KeyAttribute(each["AttributeName"], types[each["AttributeName"]])
            for each in told
            if each["KeyType"] == role
        )

    return KeySchema(half("HASH"), half("RANGE"))


IndexEffect = Literal["enters", "leaves", "moves", "updated", "untouched", "absent"]


@dataclass(frozen=True, slots=True)
class IndexWrite:
    """What a write does to one index, and what it costs there."""

    index: str
    effect: IndexEffect
    bytes_before: int | None  # of the entry; None: there is none
    bytes_after: int | None
    units: float


@dataclass(frozen=True, slots=True)
class WriteCost:
    """The write units of a write: all, the table's, and those of each index."""

    units: float
    table_units: float
    indexes: tuple[IndexWrite, ...]


def write_cost(
    layout: TableLayout, before: Item | None, after: Item | None, *, transactional: bool = False
) -> WriteCost:
    """Return what it costs to make one item of another; None is no item."""
    if before is not None and after is not None and layout.key_of(before) != layout.key_of(after):
        away = write_cost(layout, before, None, transactional=True)
        there = write_cost(layout, None, after, transactional=True)
        indexes = tuple(
            _combine_moves(one, two) for one, two in zip(away.indexes, there.indexes, strict=True)
        )
        return WriteCost(away.units + there.units, away.table_units + there.table_units, indexes)
    sizes = [0 if item is None else item_size(item) for item in (before, after)]
    table = transact_write_units(*sizes) if transactional else write_units(*sizes)
    indexes = tuple(_index_write(index, before, after) for index in layout.indexes)
    return WriteCost(table + sum(each.units for each in indexes), table, indexes)


def _index_write(index: IndexLayout, before: Item | None, after: Item | None) -> IndexWrite:
    was, will = index.entry_of(before), index.entry_of(after)
    old, new = (None if entry is None else item_size(entry) for entry in (was, will))
    if was is None or will is None:
        effect: IndexEffect = "absent" if was is will else "enters" if was is None else "leaves"
        return IndexWrite(index.name, effect, old, new, index_units(old, new, moved=True))
    moved = index.schema.entry_of(was) != index.schema.entry_of(will)
    same = equal({"M": was}, {"M": will})
    effect = "untouched" if same else "moves" if moved else "updated"
    return IndexWrite(index.name, effect, old, new, index_units(old, new, moved=moved, same=same))


def _combine_moves(away: IndexWrite, there: IndexWrite) -> IndexWrite:
    effects: dict[tuple[bool, bool], IndexEffect] = {
        (True, True): "moves",
        (True, False): "leaves",
        (False, True): "enters",
        (False, False): "absent",
    }
    effect = effects[away.effect == "leaves", there.effect == "enters"]
    return IndexWrite(away.index, effect, away.bytes_before, there.bytes_after, away.units + there.units)
