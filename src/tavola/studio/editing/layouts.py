"""Layout: the keys of a table and of its indexes as they stand, which say what a write touches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tavola.keys import KeyAttribute, KeyRefused, KeySchema
from tavola.values import Item


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
class Layout:
    """A table's key and its indexes."""

    table: str
    schema: KeySchema
    indexes: tuple[IndexLayout, ...]
    on_demand: bool

    def key_of(self, item: Mapping[str, Any]) -> Item:
        """Return the key of an item, as much of it as the item has."""
        return {name: item[name] for name in self.schema.names if name in item}

    def place_of(self, item: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what tells an item of the table from every other: the contents of its key."""
        return tuple(str(item.get(each.name, {}).get(each.type, "")) for each in self.schema.attributes)


def layout_of(described: Mapping[str, Any]) -> Layout:
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
    return Layout(described["TableName"], schema, tuple(indexes), billing == "PAY_PER_REQUEST")


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
