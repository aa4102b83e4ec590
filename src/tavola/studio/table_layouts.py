"""A table's keys, indexes and sizes, parsed from DescribeTable.

The only place that parses the keys and indexes of a table description. Queries choose one of its targets, edits compute what a write does to each index,
and item recognition, heat maps and access explanations take the key attributes from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tavola.keys import KeyAttribute, KeyRefused, KeySchema
from tavola.studio.problems import RequestRefused
from tavola.values import Item


@dataclass(frozen=True, slots=True)
class TargetLayout:
    """What a request can read: the table itself or one of its indexes, with its key and size."""

    index: str | None  # None: the table itself
    local: bool
    schema: KeySchema
    projection: Literal["ALL", "INCLUDE", "KEYS_ONLY"]
    included: tuple[str, ...]
    projected: tuple[str, ...] | None  # all attributes that an entry can have; None: those of the item
    items: int
    bytes: int
    status: str = "ACTIVE"

    @property
    def hash(self) -> tuple[str, ...]:
        """The partition key attributes."""
        return tuple(attribute.name for attribute in self.schema.hash)

    @property
    def range(self) -> tuple[str, ...]:
        """The sort key attributes."""
        return tuple(attribute.name for attribute in self.schema.range)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The key attributes, partition key first."""
        return self.schema.names

    @property
    def ready(self) -> bool:
        """Whether it can be read; an index that is being created cannot."""
        return self.index is None or self.local or self.status in ("ACTIVE", "UPDATING")

    @property
    def mean_bytes(self) -> int:
        """The average size of an item or entry; 0 if no items are counted."""
        return -(-self.bytes // self.items) if self.items else 0

    def entry_of(self, item: Item | None) -> Item | None:
        """Return the attributes of an item that this index stores; None if the item is not in the index."""
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

    def __str__(self) -> str:
        return "the table" if self.index is None else f"the index {self.index}"


@dataclass(frozen=True, slots=True)
class TableLayout:
    """A table and its indexes."""

    table: str
    types: Mapping[str, str]  # of every key attribute
    targets: tuple[TargetLayout, ...]  # the table first, then its indexes by name
    on_demand: bool
    _index_keys: tuple[tuple[tuple[str, str], ...], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        keys = (
            tuple((attribute.name, attribute.type) for attribute in index.schema.attributes)
            for index in self.indexes
        )
        object.__setattr__(self, "_index_keys", tuple(keys))

    @property
    def table_target(self) -> TargetLayout:
        """The table itself."""
        return self.targets[0]

    @property
    def indexes(self) -> tuple[TargetLayout, ...]:
        """The indexes, in the order in which rows number them."""
        return self.targets[1:]

    @property
    def schema(self) -> KeySchema:
        """The key of the table itself."""
        return self.targets[0].schema

    def target(self, index: str | None) -> TargetLayout:
        """Return an index by name, or the table itself."""
        for target in self.targets:
            if target.index == (index or None):
                return target
        known = ", ".join(str(index.index) for index in self.indexes) or "none"
        raise RequestRefused(
            "index-unknown",
            "Index not found",
            f"{self.table} has no index {index}; its indexes: {known}.",
            "Choose one of them, or the table.",
            status=404,
        )

    def contains(self, target: TargetLayout, item: Mapping[str, Any]) -> bool:
        """Return whether an item is in an index: it has all key attributes of the index in their types.

        DynamoDB decides in the same way, and refuses to store a key attribute of another type. Items that are older than the
        index may have one, and are left out of it.
        """
        return all(
            attribute.name in item and attribute.type in item[attribute.name]
            for attribute in target.schema.attributes
        )

    def index_numbers(self, item: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the positions of the indexes that contain an item."""
        numbers: list[int] = []
        for position, key in enumerate(
            self._index_keys
        ):  # `contains` without its generator: called for every row
            for name, type_ in key:
                value = item.get(name)
                if value is None or type_ not in value:
                    break
            else:
                numbers.append(position)
        return tuple(numbers)

    def key_of(self, item: Mapping[str, Any]) -> Item:
        """Return the key attributes that an item has."""
        return {name: item[name] for name in self.schema.names if name in item}

    def identity_of(self, item: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the values of an item's key, which are unique in the table."""
        return tuple(
            str(item.get(attribute.name, {}).get(attribute.type, "")) for attribute in self.schema.attributes
        )


def parse_layout(described: Mapping[str, Any]) -> TableLayout:
    """Return the layout of a table from the `Table` that DescribeTable returns.

    AWS describes a table that is being deleted by little more than its name, so keys and indexes may be missing.
    """
    types = {
        definition["AttributeName"]: definition["AttributeType"]
        for definition in described.get("AttributeDefinitions", ())
    }
    table_schema = _key_schema(described.get("KeySchema", ()), types)
    table = TargetLayout(
        None,
        False,
        table_schema,
        "ALL",
        (),
        None,
        described.get("ItemCount", 0),
        described.get("TableSizeBytes", 0),
    )
    indexes = [
        _parse_index(index, types, table_schema, local=local)
        for members, local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True))
        for index in described.get(members, ())
        if "KeySchema" in index
    ]
    billing = described.get("BillingModeSummary", {}).get("BillingMode")
    targets = (table, *sorted(indexes, key=lambda index: index.index or ""))
    return TableLayout(described["TableName"], types, targets, billing == "PAY_PER_REQUEST")


def _parse_index(
    described: Mapping[str, Any], types: Mapping[str, str], table: KeySchema, *, local: bool
) -> TargetLayout:
    schema = _key_schema(described["KeySchema"], types)
    projection = described.get("Projection", {})
    kind, included = projection.get("ProjectionType", "ALL"), tuple(projection.get("NonKeyAttributes", ()))
    return TargetLayout(
        described["IndexName"],
        local,
        schema,
        kind,
        included,
        None if kind == "ALL" else tuple(dict.fromkeys((*table.names, *schema.names, *included))),
        described.get("ItemCount", 0),
        described.get("IndexSizeBytes", 0),
        described.get("IndexStatus", "ACTIVE"),
    )


def _key_schema(parts: Iterable[Mapping[str, str]], types: Mapping[str, str]) -> KeySchema:
    attributes: dict[str, list[KeyAttribute]] = {"HASH": [], "RANGE": []}
    for part in parts:
        name = part["AttributeName"]
        if name in types:
            attributes[part["KeyType"]].append(KeyAttribute(name, types[name]))
    return KeySchema(tuple(attributes["HASH"]), tuple(attributes["RANGE"]))
