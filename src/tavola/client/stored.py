"""Stored items: items as DynamoDB holds them, for fixtures, exports and code built on the client.

An entity shows only its fields, with defaults filled in and old schemas upgraded. Code that encrypts, copies or searches items
needs the stored attributes. `to_item` and `from_item` convert without a connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from tavola.client.batches import get_items
from tavola.client.context import Context
from tavola.client.effects import Call, Program
from tavola.client.marshalling import (
    as_json,
    entity_of,
    is_item_of,
    item_of,
    resolve_target,
    shape_of_entity,
    version_of,
)
from tavola.client.queries import prepare_query
from tavola.client.requests import all_of, unchanged_nodes
from tavola.model import (
    Condition,
    Entity,
    ItemUnreadable,
    ModelError,
    PrimaryKey,
    Selection,
    Table,
    request_of,
    shape_of,
)
from tavola.values import Item

E = TypeVar("E", bound=Entity)


@lru_cache(maxsize=1)
def _default_context() -> Context:
    """Return a context for conversions, which do not depend on table names."""
    return Context()


def to_item(entity: Entity) -> Item:
    """Return the item that `put` would store: fields, keys, index keys and tag, as DynamoDB JSON (a B is base64 text).

    A lock has the entity's value, and a random shard may differ from the stored one.
    """
    shape = shape_of_entity(entity, "to_item")
    _ = shape.home  # raises for a view, which is not stored
    return item_of(shape, entity, _default_context())


def from_item(entity: type[E], item: Mapping[str, Any]) -> E:
    """Return the entity in an item of DynamoDB JSON; a B may also be bytes, as botocore returns it.

    An item of an older schema is upgraded, and an expired item is returned. An item of another entity, or one that does not
    match the entity's fields, raises `ItemUnreadable`.
    """
    value: Any = entity
    if not (isinstance(value, type) and issubclass(value, Entity)):
        raise ModelError("from_item", "it takes an entity class and an item, such as from_item(Ticket, item)")
    shape = shape_of(entity)
    stored = as_json(item)
    if shape.table is not None and not is_item_of(shape, shape.table, stored):
        raise ItemUnreadable(entity.__name__, "the item belongs to another entity, by its tag or its key")
    return entity_of(entity, stored)


@dataclass(frozen=True, slots=True)
class StoredPage:
    """Some items of a table, and the key after which to continue; None: this was the last page."""

    items: list[Item]
    after: Item | None


def get_stored(context: Context, keys: Sequence[PrimaryKey[Any]]) -> Program[list[Item | None]]:
    """Return the current items with these keys, of any entities, in the order of the keys; None where there is none."""
    positions: dict[type[Table], list[int]] = {}
    primaries: list[Item] = []
    for position, key in enumerate(keys):
        shape, values, _ = resolve_target(key)
        primaries.append(shape.primary(values))
        positions.setdefault(shape.home, []).append(position)
    stored: list[Item | None] = [None] * len(primaries)
    for table, members in positions.items():
        items = yield from get_items(context, table, [primaries[position] for position in members], True)
        for position, item in zip(members, items, strict=True):
            stored[position] = item
    return stored


def scan_stored(context: Context, table: type[Table], after: Item | None) -> Program[StoredPage]:
    """Return a page of all items of a table, read consistently."""
    request = {"TableName": context.name_of(table), "ConsistentRead": True}
    return _read_stored_page("Scan", request, after)


def query_stored(context: Context, selection: Selection[Any], after: Item | None) -> Program[StoredPage]:
    """Return a page of the items that a query of a table finds, read consistently, in the order of the keys."""
    (request,) = prepare_query(context, request_of(selection), consistent=True).requests
    return _read_stored_page("Query", request, after)


def _read_stored_page(operation: str, request: dict[str, Any], after: Item | None) -> Program[StoredPage]:
    if after is not None:
        request = {**request, "ExclusiveStartKey": after}
    response = yield Call(operation, request)
    return StoredPage(response["Items"], response.get("LastEvaluatedKey"))


def count_stored(request: dict[str, Any]) -> Program[int]:
    """Return the number of items that a Query finds on all its pages; they are read and paid for, but not transferred."""
    page_request = {**request, "Select": "COUNT"}
    count = 0
    while True:
        response = yield Call("Query", page_request)
        count += int(response["Count"])
        if "LastEvaluatedKey" not in response:
            return count
        page_request["ExclusiveStartKey"] = response["LastEvaluatedKey"]


def read_stored(entity: type[E], item: Item) -> E:
    """Return the entity in a stored item of its class."""
    return entity_of(entity, item)


def primary_key(key: PrimaryKey[Any]) -> Item:
    """Return a key as DynamoDB JSON."""
    shape, values, _ = resolve_target(key)
    return shape.primary(values)


def stale_attributes(entity: type[Entity], item: Item) -> list[str]:
    """Return the index key attributes whose stored value differs from what the item's fields determine.

    Indexes with random shards are not checked, because any shard is right; nor are items of an old schema.
    """
    shape = shape_of(entity)
    if version_of(shape, item) != shape.version:
        return []
    values = entity_of(entity, item).__dict__
    primary = shape.primary(values)
    stale: set[str] = set()
    for key in shape.keys:
        if key.shards is not None and key.shards.by == "random":
            continue
        expected = shape.index_attributes(key, values, primary, lambda _: 0) or {}
        names = {source.attribute for source in key.written} - shape.by_attribute.keys()
        stale |= {name for name in names if item.get(name) != expected.get(name)}
    return sorted(stale)


def as_stored(entity: type[E], item: Item) -> Condition[E]:
    """Return the condition that an item is exactly as it was read."""
    node = all_of(unchanged_nodes(shape_of(entity), item))
    assert node is not None, "the existence of the item is a condition"
    return Condition(node)
