"""Items: get, put, create, update and delete of one entity, as steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from tavola.client.context import Context
from tavola.client.errors import ItemExists, ItemMissing, UpdateContended
from tavola.client.marshalling import entity_of, expired
from tavola.client.requests import absent, all_of, conditioned, node_of, there
from tavola.client.steps import Call, Steps, Wait
from tavola.client.updates import UpdatePlan
from tavola.client.writes import (
    CONTENTION_MAX,
    fault_item,
    found_in,
    founding,
    keyed,
    lock_node,
    locked_item,
    named,
    put_refusal,
    raise_lock,
    refusal,
    settle,
)
from tavola.expressions import decider_of
from tavola.model import Change, Condition, Entity, ModelError, PrimaryKey, shape_of
from tavola.protocol import ConditionalCheckFailedFault
from tavola.values import Item

__all__ = ["create", "delete", "get", "keyed", "named", "put", "update"]

E = TypeVar("E", bound=Entity)


def get(context: Context, key: PrimaryKey[E], consistent: bool | None) -> Steps[E | None]:
    """Return the entity under a key, None if there is none or it has expired."""
    shape, values, _ = keyed(key)
    table = shape.home
    request: dict[str, Any] = {"TableName": context.name_of(table), "Key": shape.primary(values)}
    if consistent is None:
        assert shape.key is not None
        consistent = shape.key.access is not None and shape.key.access.consistent
    if consistent:
        request["ConsistentRead"] = True
    answer = yield Call("GetItem", request)
    item = answer.get("Item")
    if item is None or expired(table, item, context.clock.now()):
        return None
    return entity_of(shape.entity, item)  # type: ignore[no-any-return]


def put(context: Context, entity: E, when: Condition[Any] | None) -> Steps[E]:
    """Store an entity over whatever is there; with a lock, only over what it was read from."""
    shape = shape_of(type(entity))
    if shape.uniques:
        return (yield from put_guarded(context, entity, when))
    item, lock = locked_item(shape, entity, context)
    request = {"TableName": context.name_of(shape.home), "Item": item}
    try:
        yield Call("PutItem", conditioned(request, all_of([node_of(when), lock])))
    except ConditionalCheckFailedFault as fault:
        raise put_refusal(shape, entity, when, fault_item(fault), context) from fault
    raise_lock(shape, entity)
    return entity


def create(context: Context, entity: E) -> Steps[E]:
    """Store an entity that is not there yet; what has expired is not there."""
    shape = shape_of(type(entity))
    if shape.uniques:
        return (yield from create_guarded(context, entity))
    item, _ = locked_item(shape, entity, context)
    request = {"TableName": context.name_of(shape.home), "Item": item}
    try:
        yield Call("PutItem", conditioned(request, absent(shape, context.clock.now())))
    except ConditionalCheckFailedFault as fault:
        what = named(shape, keyed(entity)[1])
        raise ItemExists(what, found_in(shape, fault_item(fault), context)) from fault
    raise_lock(shape, entity)
    return entity


def update(
    context: Context,
    target: PrimaryKey[E] | E,
    changes: Sequence[Change[Any]],
    when: Condition[Any] | None,
    create_missing: bool,
) -> Steps[E]:
    """Change an item, and every index key that depends on what is changed."""
    shape, keys, entity = keyed(target)
    if not changes:
        raise ModelError(f"{shape.entity.__name__}.update", "no change is given; give Ticket.status.set(…)")
    lock = None if entity is None else lock_node(shape, entity)
    plan = UpdatePlan(shape, keys, changes, when)
    primary = shape.primary(keys)
    wanted = all_of([node_of(when), lock])
    decide = None if wanted is None else decider_of(wanted)
    item: Item | None = None
    if plan.unsettled and shape.policy == "read":
        answer = yield Call(
            "GetItem", {"TableName": context.name_of(shape.home), "Key": primary, "ConsistentRead": True}
        )
        item = answer.get("Item")
    for attempt in range(1, CONTENTION_MAX + 1):
        now_s = context.clock.now()
        if item is not None and expired(shape.home, item, now_s):
            item = None
        planned = settle(plan, item, primary, context, create_missing=create_missing)
        exists = None if create_missing else there(shape, now_s)
        request: dict[str, Any] = {
            "TableName": context.name_of(shape.home), "Key": primary, "ReturnValues": "ALL_NEW",
        }  # fmt: skip
        actions = planned.actions
        if create_missing:
            actions = (*actions, *founding(shape, keys, changes))
        condition = all_of([exists, wanted, *planned.guards])
        try:
            answer = yield Call("UpdateItem", conditioned(request, condition, actions))
            return entity_of(shape.entity, answer["Attributes"])  # type: ignore[no-any-return]
        except ConditionalCheckFailedFault as fault:
            stands = fault_item(fault)
            gone = stands is None or expired(shape.home, stands, now_s)
            if gone and not create_missing:
                raise ItemMissing(plan.what) from fault
            if not planned.guards or (decide is not None and not decide(stands or {}, {})):
                raise refusal(shape, plan.what, when, lock, stands, context) from fault
            item = stands
        yield Wait(context.patience.pause_s(min(attempt, 6)))
    raise UpdateContended(plan.what, CONTENTION_MAX)


def delete(context: Context, target: PrimaryKey[E] | E, when: Condition[Any] | None) -> Steps[E | None]:
    """Delete an item and return what it was, None if there was none."""
    shape, keys, entity = keyed(target)
    lock = None if entity is None else lock_node(shape, entity)
    request: dict[str, Any] = {
        "TableName": context.name_of(shape.home), "Key": shape.primary(keys), "ReturnValues": "ALL_OLD",
    }  # fmt: skip
    try:
        answer = yield Call("DeleteItem", conditioned(request, all_of([node_of(when), lock])))
    except ConditionalCheckFailedFault as fault:
        raise refusal(shape, named(shape, keys), when, lock, fault_item(fault), context) from fault
    item = answer.get("Attributes")
    if item is None or expired(shape.home, item, context.clock.now()):
        return None
    return entity_of(shape.entity, item)  # type: ignore[no-any-return]
