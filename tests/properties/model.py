"""Model: a DynamoDB table as a plain dict, with the documented formulas for what its calls consume.

It knows four tables by heart, among them every kind of key and index. What it cannot say in a line it leaves
to the conformance tests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.properties.naive import (
    Item,
    identity,
    item_bytes,
    plain,
    read_units,
    sort_key,
    write_units,
)


@dataclass(frozen=True, slots=True)
class IndexShape:
    """An index of a table: its key attributes and what it holds."""

    name: str
    hash: tuple[str, ...]
    range: tuple[str, ...]
    projection: str
    named: tuple[str, ...] = ()
    local: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """A table's keys and indexes; `late` ones can be added while there is data."""

    name: str
    hash: str
    range: str | None
    types: dict[str, str]
    indexes: tuple[IndexShape, ...] = ()
    late: tuple[IndexShape, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the names of the table's key attributes."""
        return (self.hash, *((self.range,) if self.range else ()))

    def held(self, index: IndexShape | None, item: Item) -> Item | None:
        """Return what an index, or the table itself, holds of an item; None if nothing."""
        if index is None:
            return item
        if not {*index.hash, *index.range} <= item.keys():
            return None
        if index.projection == "ALL":
            return item
        kept = {*self.keys, *index.hash, *index.range, *index.named}
        return {name: value for name, value in item.items() if name in kept}


_TYPES = {"pk": "S", "sk": "N", "a": "S", "b": "B", "n": "N", "c": "S"}
_LOCAL = IndexShape("local", ("pk",), ("a",), "KEYS_ONLY", local=True)
_GLOBAL = IndexShape("global", ("a",), ("n",), "ALL")
_MULTI = IndexShape("multi", ("a", "n"), ("c", "b", "sk"), "INCLUDE", ("note",))
_KEYS = IndexShape("keys", ("c",), (), "KEYS_ONLY")
_WIDE = IndexShape("wide", ("n",), ("a", "b", "c", "pk"), "ALL")
_LIST = IndexShape("list", ("n",), ("b",), "INCLUDE", ("note", "c"))

SHAPES = (
    Shape("sorted", "pk", "sk", _TYPES, (_LOCAL, _GLOBAL), (_MULTI, _KEYS)),
    Shape("plain", "b", None, _TYPES, (_KEYS,), (_GLOBAL, _WIDE)),
    Shape(
        "binary", "n", "b", _TYPES, (IndexShape("local", ("n",), ("c",), "ALL", local=True), _MULTI), (_LIST,)
    ),
    Shape("texts", "a", "c", _TYPES, (_WIDE,), (_LIST, _KEYS)),
)


@dataclass(slots=True)
class Cost:
    """What a write consumes on the table and on each index it changes."""

    table: float = 0.0
    indexes: dict[str, float] = field(default_factory=dict)

    def add(self, other: Cost, factor: float = 1.0) -> None:
        """Add another write's cost; a transaction pays the table twice."""
        self.table += factor * other.table
        for name, units in other.indexes.items():
            self.indexes[name] = self.indexes.get(name, 0.0) + units


class Model:
    """A table's items by their keys."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.indexes = {index.name: index for index in shape.indexes}
        self.items: dict[tuple[Any, ...], Item] = {}

    def key(self, item: Item) -> tuple[Any, ...]:
        """Return what identifies an item."""
        return identity(item, self.shape.keys)

    def get(self, key: Item) -> Item | None:
        """Return the item under a key."""
        return self.items.get(self.key(key))

    def cost(self, old: Item | None, new: Item | None) -> Cost:
        """Return the documented price of a write."""
        cost = Cost(write_units(item_bytes(old or {}), item_bytes(new or {})))
        for index in self.indexes.values():
            before = self.shape.held(index, old) if old is not None else None
            after = self.shape.held(index, new) if new is not None else None
            units = self._index_cost(index, before, after)
            if units:
                cost.indexes[index.name] = units
        return cost

    def _index_cost(self, index: IndexShape, before: Item | None, after: Item | None) -> float:
        if before is None and after is None:
            return 0.0
        if before is None or after is None:
            return write_units(0, item_bytes(before or after or {}))
        if plain(before) == plain(after):
            return 0.0
        names = (*index.hash, *index.range)
        if identity(before, names) != identity(after, names):
            return write_units(0, item_bytes(before)) + write_units(0, item_bytes(after))
        return write_units(item_bytes(before), item_bytes(after))

    def put(self, item: Item) -> Cost:
        """Put an item and return its price."""
        old = self.get(item)
        self.items[self.key(item)] = item
        return self.cost(old, item)

    def delete(self, key: Item) -> Cost:
        """Delete an item and return its price."""
        return self.cost(self.items.pop(self.key(key), None), None)

    def rows(self, index: str | None) -> list[Item]:
        """Return what the table or one of its indexes holds, in no order."""
        shape = self.indexes[index] if index else None
        return [held for item in self.items.values() if (held := self.shape.held(shape, item)) is not None]

    def names(self, index: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the hash and the range attributes of the table or an index."""
        if index:
            return self.indexes[index].hash, self.indexes[index].range
        return (self.shape.hash,), (self.shape.range,) if self.shape.range else ()

    def order(self, index: str | None, item: Item) -> tuple[Any, ...]:
        """Return what an item sorts by within its partition."""
        return tuple(sort_key(item[name]) for name in self.names(index)[1])


def page_units(items: list[Item], *, consistent: bool) -> float:
    """Return the price of reading items together."""
    return read_units(sum(map(item_bytes, items)), consistent=consistent)


def create_request(shape: Shape) -> dict[str, Any]:
    """Return the CreateTable of a shape, without its late indexes."""
    used = {*shape.keys, *(name for index in shape.indexes for name in (*index.hash, *index.range))}
    request: dict[str, Any] = {
        "TableName": shape.name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": _definitions(shape, used),
        "KeySchema": _schema((shape.hash,), (shape.range,) if shape.range else ()),
    }
    for member, local in (("LocalSecondaryIndexes", True), ("GlobalSecondaryIndexes", False)):
        listed = [index_request(index) for index in shape.indexes if index.local == local]
        if listed:
            request[member] = listed
    return request


def add_request(shape: Shape, index: IndexShape) -> dict[str, Any]:
    """Return the UpdateTable that adds an index."""
    return {
        "TableName": shape.name,
        "AttributeDefinitions": _definitions(shape, {*shape.keys, *index.hash, *index.range}),
        "GlobalSecondaryIndexUpdates": [{"Create": index_request(index)}],
    }


def index_request(index: IndexShape) -> dict[str, Any]:
    """Return an index as a request spells it."""
    projection: dict[str, Any] = {"ProjectionType": index.projection}
    if index.named:
        projection["NonKeyAttributes"] = list(index.named)
    return {
        "IndexName": index.name,
        "KeySchema": _schema(index.hash, index.range),
        "Projection": projection,
    }


def _definitions(shape: Shape, names: set[str]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": shape.types[name]} for name in sorted(names)]


def _schema(hash_: tuple[str, ...], range_: tuple[str, ...]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": "HASH"} for name in hash_] + [
        {"AttributeName": name, "KeyType": "RANGE"} for name in range_
    ]
