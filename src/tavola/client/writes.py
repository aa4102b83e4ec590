"""Writes: what every write of an entity is made of: its target, its item, its lock, and why it was refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from tavola.client.context import Context
from tavola.client.marshalling import item_of, stamp
from tavola.expressions.nodes import Comparison, ConditionNode, FunctionCall, Literal, Path, Set
from tavola.model import Change, Entity, ModelError, PrimaryKey, Shape, shape_of
from tavola.protocol.faults import ConditionalCheckFailedFault
from tavola.values import Item

E = TypeVar("E", bound=Entity)

CONTENTION_MAX = 20  # how often a write is worked out again before it is given up

NO_CHANGE = "no change is given; give Ticket.status.set(…)"

_decode = msgspec.json.Decoder(Item).decode


def keyed(target: PrimaryKey[E] | E) -> tuple[Shape, dict[str, Any], Entity | None]:
    """Return the shape of what a key or an entity names, the values of its key, and the entity if it is one."""
    told: Any = target
    if isinstance(told, Entity):
        shape = shape_of(type(told))
        home = shape.home  # an error for a view, which is in no table
        assert shape.key is not None, f"an entity of {home.__name__} has a key"
        return shape, {name: told.__dict__[name] for name in shape.key.partition}, told
    if isinstance(told, PrimaryKey):
        return shape_of(type(told).__compiled__().owner), told.__dict__, None
    if isinstance(told, type):
        raise ModelError(
            told.__qualname__, f"it is a class; give an entity or a key, such as {told.__qualname__}(…)"
        )
    raise ModelError(type(told).__name__, "give an entity or its key, such as Ticket.Key(ticket_id=…)")


def named(shape: Shape, values: Mapping[str, Any]) -> str:
    """Return how errors name an item."""
    told = ", ".join(f"{name}={shape.fields[name].show(value)}" for name, value in values.items())
    return f"{shape.entity.__name__} {told}"


def founding(shape: Shape, keys: Mapping[str, Any], changes: Sequence[Change[Any]]) -> list[Any]:
    """Return what an update writes besides, so that an item it makes is a whole one: its key's fields and tag."""
    item: Item = {}
    stamp(shape, shape.home, item)
    native = {source.attribute for source in shape.key.key.sources} if shape.key else set()
    for name, value in keys.items():
        field = shape.fields[name]
        if field.attribute not in native:
            item[field.attribute] = field.encode(value)
    touched = {shape.fields[change.field].attribute for change in changes}
    return [Set(Path((name,)), Literal(value)) for name, value in item.items() if name not in touched]


def locked_item(shape: Shape, entity: Entity, context: Context) -> Item:
    """Return an entity as the item that is stored, with its lock raised."""
    item = item_of(shape, entity, context)
    if shape.lock is not None:
        item[shape.lock.attribute] = {"N": str(entity.__dict__[shape.lock.name] + 1)}
    return item


def lock_node(shape: Shape, entity: Entity) -> ConditionNode | None:
    """Return the condition that an item is as it was when an entity was read, None without a lock."""
    lock = shape.lock
    if lock is None:
        return None
    held = entity.__dict__[lock.name]
    if held == 0:
        return FunctionCall("attribute_not_exists", (Path((lock.attribute,)),))
    return Comparison("=", Path((lock.attribute,)), Literal({"N": str(held)}))


def raise_lock(shape: Shape, entity: Entity) -> None:
    """Note in an entity that it was written."""
    if shape.lock is not None:
        entity.__dict__[shape.lock.name] += 1


def fault_item(fault: ConditionalCheckFailedFault) -> Item | None:
    """Return the item that a refusal brought, None if there is none."""
    return brought(fault.extra.get("Item"))


def brought(found: Any) -> Item | None:
    """Return an item that a fault holds, decoded or not."""
    if found is None or isinstance(found, dict):
        return found
    return _decode(bytes(found))
