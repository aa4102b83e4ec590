"""The table and its indexes as targets of a read, and which items an index contains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tavola.studio.problems import RequestRefused
from tavola.studio.types import Item


@dataclass(frozen=True, slots=True)
class ReadTarget:
    """The table's own key, or an index; with how much there is, as DescribeTable tells it."""

    index: str | None  # None: the table itself
    local: bool
    hash: tuple[str, ...]
    range: tuple[str, ...]
    projection: Literal["ALL", "INCLUDE", "KEYS_ONLY"]
    included: tuple[str, ...]
    items: int
    bytes: int
    ready: bool = True  # an index that is being made cannot be asked

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of its key."""
        return self.hash + self.range

    @property
    def mean_bytes(self) -> int:
        """How large one item or entry is, on average; 0: nothing is known."""
        return -(-self.bytes // self.items) if self.items else 0

    def __str__(self) -> str:
        return "the table" if self.index is None else f"the index {self.index}"


@dataclass(frozen=True, slots=True)
class ReadTargets:
    """All ways into one table, the table's own first, then its indexes by name."""

    table: str
    types: Mapping[str, str]  # of every key attribute
    targets: tuple[ReadTarget, ...]
    _parts: tuple[tuple[tuple[str, str], ...], ...] = field(init=False, repr=False)  # the key of each index

    def __post_init__(self) -> None:
        parts = [tuple((name, self.types[name]) for name in way.attributes) for way in self.indexes]
        object.__setattr__(self, "_parts", tuple(parts))

    @property
    def table_target(self) -> ReadTarget:
        """The table itself."""
        return self.targets[0]

    @property
    def indexes(self) -> tuple[ReadTarget, ...]:
        """The indexes, in the order in which rows number them."""
        return self.targets[1:]

    def target(self, index: str | None) -> ReadTarget:
        """Return the way through an index, or the table itself."""
        for found in self.targets:
            if found.index == (index or None):
                return found
        known = ", ".join(str(each.index) for each in self.indexes) or "none"
        raise RequestRefused(
            "index-unknown",
            "There is no such index",
            f"{self.table} has no index {index!r}; it has {known}.",
            "Choose one of them, or the table.",
            status=404,
        )

    def projected_attributes(self, way: ReadTarget) -> tuple[str, ...] | None:
        """Return the attributes that entries of an index have at most; None: all of the item's."""
        if way.projection == "ALL":
            return None
        return tuple(dict.fromkeys((*self.table_target.attributes, *way.attributes, *way.included)))

    def contains(self, way: ReadTarget, item: Item) -> bool:
        """Tell whether an item is in an index: it has all attributes of the index's key, in their types.

        So does DynamoDB decide, and it refuses to store one of another type; items that stood there before the index
        was made may have one, and are left out.
        """
        return all(name in item and self.types[name] in item[name] for name in way.attributes)

    def index_numbers(self, item: Item) -> tuple[int, ...]:
        """Return the numbers of the indexes that an item of the table is in."""
        found: list[int] = []
        for at, parts in enumerate(
            self._parts
        ):  # for each of a thousand rows: `holds`, without its generator
            for name, type_ in parts:
                value = item.get(name)
                if value is None or type_ not in value:
                    break
            else:
                found.append(at)
        return tuple(found)


def read_targets(described: Mapping[str, Any]) -> ReadTargets:
    """Return the ways into a table as DescribeTable tells it."""
    types = {each["AttributeName"]: each["AttributeType"] for each in described["AttributeDefinitions"]}
    own = _read_target(described, None, local=False)
    indexes = [
        _read_target(each, each["IndexName"], local=local)
        for members, local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True))
        for each in described.get(members, ())
    ]
    return ReadTargets(
        described["TableName"], types, (own, *sorted(indexes, key=lambda way: way.index or ""))
    )


def _read_target(each: Mapping[str, Any], index: str | None, *, local: bool) -> ReadTarget:
    def half(kind: str) -> tuple[str, ...]:
        return tuple(part["AttributeName"] for part in each["KeySchema"] if part["KeyType"] == kind)

    projection = each.get("Projection", {})
    return ReadTarget(
        index,
        local,
        half("HASH"),
        half("RANGE"),
        projection.get("ProjectionType", "ALL"),
        tuple(projection.get("NonKeyAttributes", ())),
        each.get("ItemCount", 0),
        each.get("TableSizeBytes" if index is None else "IndexSizeBytes", 0),
        index is None or local or each.get("IndexStatus", "ACTIVE") in ("ACTIVE", "UPDATING"),
    )
