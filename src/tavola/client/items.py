"""Get, put, create, update and delete one entity: the programs behind `Connection` and `AsyncConnection`."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from tavola.client.context import Context
from tavola.client.effects import Call, Program
from tavola.client.marshalling import (
    VERSION,
    entity_of,
    item_of,
    resolve_target,
    shape_of_entity,
    version_of,
    view_from,
    view_of,
)
from tavola.client.requests import add_expressions, is_expired, with_absence_condition
from tavola.client.transactions import create_error, write_intent
from tavola.client.writes import Intent
from tavola.model import (
    Change,
    Condition,
    Entity,
    EntityShape,
    ModelError,
    PrimaryKey,
    check_partial_view,
    shape_of,
)
from tavola.protocol.faults import ConditionalCheckFailedFault

E = TypeVar("E", bound=Entity)


@overload
def get(context: Context, key: PrimaryKey[E], *, consistent: bool | None = None) -> Program[E | None]: ...
@overload
def get(
    context: Context, key: PrimaryKey[Any], *, view: type[E], consistent: bool | None = None
) -> Program[E | None]: ...
def get(
    context: Context,
    key: PrimaryKey[Any],
    *,
    view: type[Entity] | None = None,
    consistent: bool | None = None,
) -> Program[Any]:
    """Return the entity with this key, or None if there is none or it has expired.

    With a `view`, an entity class without a key, only the view's fields are transferred; the read costs the same.
    """
    shape, values, _ = resolve_target(key)
    table = shape.home
    request: dict[str, Any] = {"TableName": context.name_of(table), "Key": shape.primary(values)}
    if view is not None:
        add_expressions(request, projection=_attributes_of(shape, view))
    if consistent is None:
        assert shape.key is not None
        consistent = shape.key.access is not None and shape.key.access.consistent
    if consistent:
        request["ConsistentRead"] = True
    response = yield Call("GetItem", request)
    item = response.get("Item")
    if item is None or is_expired(table, item, context.clock.now()):
        return None
    if view is None:
        return entity_of(shape.entity, item)
    assert shape.key is not None
    if version_of(shape, item) == shape.version:
        return view_of(view, item, shape.key.key, shape)
    # The item has an older schema, and its upgrade may derive the view's fields from any others.
    entity: Entity | None = yield from get(context, key, consistent=consistent)
    return None if entity is None else view_from(view, entity)


def _attributes_of(shape: EntityShape, view: type[Entity]) -> list[str]:
    """Return the attributes that a view needs, and those for the item's key, tag, time to live and version."""
    value: Any = view
    if not (isinstance(value, type) and issubclass(value, Entity)):
        raise ModelError(
            f"{shape.entity.__name__}.get", "view= takes an entity class without a Key, such as TicketRef"
        )
    part = shape_of(view)
    if view is not shape.entity:
        check_partial_view(shape, part)
    settings = shape.home.settings
    names = [*settings.key_names, settings.tag, settings.ttl, VERSION]
    return [
        *(name for name in names if name is not None),
        *(field.attribute for field in part.fields.values()),
    ]


def put(context: Context, entity: E, *, when: Condition[E] | None = None) -> Program[E]:
    """Store an entity and replace the item that has its key, if any; `when` is checked against that item."""
    shape = shape_of_entity(entity, "put")
    if when is not None or shape.lock is not None or shape.uniques or shape.immutable or shape.version > 1:
        yield from write_intent(context, Intent("put", entity, when=when))
        return entity
    yield Call("PutItem", {"TableName": context.name_of(shape.home), "Item": item_of(shape, entity, context)})
    return entity


def create(context: Context, entity: E) -> Program[E]:
    """Store a new entity; raise `ItemExists` if an item has its key already, unless that has expired."""
    shape = shape_of_entity(entity, "create")
    if shape.uniques or shape.lock is not None:
        yield from write_intent(context, Intent("create", entity))
        return entity
    request = {"TableName": context.name_of(shape.home), "Item": item_of(shape, entity, context)}
    try:
        yield Call("PutItem", with_absence_condition(request, shape, context.clock.now()))
    except ConditionalCheckFailedFault as fault:
        raise create_error(context, entity, fault) from fault
    return entity


def update(
    context: Context,
    target: PrimaryKey[E] | E,
    *changes: Change[E],
    when: Condition[E] | None = None,
    create: bool = False,
) -> Program[E]:
    """Change an item and every index key that depends on the changed fields; return the entity as it is now.

    If the item does not exist, `ItemMissing` is raised; with `create` it is created from the key and the changes.
    """
    intent = Intent("update", target, changes=changes, when=when, create_missing=create)
    item = yield from write_intent(context, intent)
    assert item is not None, "an updated item exists"
    return entity_of(intent.shape.entity, item)  # type: ignore[no-any-return]  # a shape does not know its class


def delete(
    context: Context, target: PrimaryKey[E] | E, *, when: Condition[E] | None = None, erase: bool = False
) -> Program[E | None]:
    """Delete an item and return the entity it was, or None; an immutable entity is deleted only with `erase`."""
    intent = Intent("delete", target, when=when, erase=erase)
    item = yield from write_intent(context, intent)
    if item is None or is_expired(intent.shape.home, item, context.clock.now()):
        return None
    return entity_of(intent.shape.entity, item)  # type: ignore[no-any-return]  # a shape does not know its class
