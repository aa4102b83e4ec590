"""Stored items: what stands in a table as it stands there, for what is built on the client.

An entity tells its fields alone, and as they read: defaults filled in, old schemas upgraded. Who seals items, copies them or
looks for something in all of them needs the attributes themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tavola.client.batches import get_items
from tavola.client.context import Context
from tavola.client.effects import Call, Program
from tavola.client.marshalling import entity_of, version_of
from tavola.client.queries import plan_query
from tavola.client.requests import all_of
from tavola.client.upgrades import as_read
from tavola.client.writes import keyed
from tavola.model import Condition, Entity, PrimaryKey, Selection, Table, request_of, shape_of
from tavola.values import Item

E = TypeVar("E", bound=Entity)


@dataclass(frozen=True, slots=True)
class StoredPage:
    """Some items of a table, and the key from which to go on; None: that was all."""

    items: list[Item]
    after: Item | None


def get_stored(context: Context, keys: Sequence[PrimaryKey[Any]]) -> Program[list[Item | None]]:
    """Return the items under keys of any entities as they are now, in the order of the keys; None where there is none."""
    places: dict[type[Table], list[int]] = {}
    primaries: list[Item] = []
    for at, key in enumerate(keys):
        shape, values, _ = keyed(key)
        primaries.append(shape.primary(values))
        places.setdefault(shape.home, []).append(at)
    found: list[Item | None] = [None] * len(primaries)
    for table, members in places.items():
        items = yield from get_items(context, table, [primaries[at] for at in members], True)
        for at, item in zip(members, items, strict=True):
            found[at] = item
    return found


def scan_stored(context: Context, table: type[Table], after: Item | None) -> Program[StoredPage]:
    """Return a page of all items of a table, whatever they are, as they are now."""
    request: dict[str, Any] = {"TableName": context.name_of(table), "ConsistentRead": True}
    if after is not None:
        request["ExclusiveStartKey"] = after
    answer = yield Call("Scan", request)
    return StoredPage(answer["Items"], answer.get("LastEvaluatedKey"))


def query_stored(context: Context, selection: Selection[Any], after: Item | None) -> Program[StoredPage]:
    """Return a page of what a question of a table finds, as it is now, in the order of the keys."""
    asked = plan_query(context, request_of(selection), consistent=True)
    (request,) = asked.requests
    if after is not None:
        request = {**request, "ExclusiveStartKey": after}
    answer = yield Call("Query", request)
    return StoredPage(answer["Items"], answer.get("LastEvaluatedKey"))


def count_stored(request: dict[str, Any]) -> Program[int]:
    """Return how many items a Query finds, through all its pages; they are read and paid for, and not sent."""
    asked = {**request, "Select": "COUNT"}
    count = 0
    while True:
        answer = yield Call("Query", asked)
        count += int(answer["Count"])
        if "LastEvaluatedKey" not in answer:
            return count
        asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def read_stored(entity: type[E], item: Item) -> E:
    """Return the entity in a stored item of its kind."""
    return entity_of(entity, item)


def place_of(key: PrimaryKey[Any]) -> Item:
    """Return where the item of a key stands."""
    shape, values, _ = keyed(key)
    return shape.primary(values)


def misplaced(entity: type[Entity], item: Item) -> list[str]:
    """Return the attributes of index keys that are not what the item's own fields put there: it answers where it should not.

    A shard that was drawn by chance may be any, so indexes with such shards are not looked at; nor are items of an old schema.
    """
    shape = shape_of(entity)
    if version_of(shape, item) != shape.version:
        return []
    values = entity_of(entity, item).__dict__
    primary = shape.primary(values)
    wrong: set[str] = set()
    for key in shape.keys:
        if key.shards is not None and key.shards.by == "random":
            continue
        told = shape.index_attributes(key, values, primary, lambda _: 0) or {}
        names = {source.attribute for source in key.written} - shape.by_attribute.keys()
        wrong |= {name for name in names if item.get(name) != told.get(name)}
    return sorted(wrong)


def as_stored(entity: type[E], item: Item) -> Condition[E]:
    """Return the condition that an item still is what was read, attribute by attribute."""
    node = all_of(as_read(shape_of(entity), item))
    assert node is not None, "an item that was read exists"
    return Condition(node)
