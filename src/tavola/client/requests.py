"""Requests: conditions and updates of entities, written as DynamoDB expressions.

Three rules become conditions here, so that DynamoDB checks them in the same request as the write:

- expiry: an item whose time to live is over counts as absent, whether or not DynamoDB has deleted it yet. Readers call
  `is_expired`; writers send the same rule as a condition. The rule is DynamoDB's: a whole number of seconds that lies in the
  past, by no more than five years;
- schema version: an update in place would leave an item of an older schema half old and half new, so it applies to items of
  the current version only, and older items are rewritten as a whole (see `writes`);
- unchanged items: a write that was worked out from an item it read is conditional on what it read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from tavola.client.marshalling import VERSION, describe_type, version_of
from tavola.expressions.conditions import compile_decider
from tavola.expressions.nodes import (
    Action,
    And,
    Comparison,
    ConditionNode,
    FunctionCall,
    Literal,
    Not,
    Or,
    Path,
    ProjectionNode,
    UpdateNode,
)
from tavola.expressions.renderer import Renderer
from tavola.limits import TTL_PAST_S_MAX
from tavola.model import Change, Condition, EntityShape, QueryRefused, Table, fields_apply_to
from tavola.values import Item, Value, canonical_number

ItemId = tuple[str, str]  # a table's deployed name, and the item's key as text

_encode = msgspec.json.Encoder(order="sorted").encode
_decode_item = msgspec.json.Decoder(Item).decode


def item_id(table_name: str, key: Mapping[str, Any]) -> ItemId:
    """Return an id that is equal for equal keys, whatever form their numbers have."""
    canonical = {
        attribute: {"N": canonical_number(value["N"])} if "N" in value else value
        for attribute, value in key.items()
    }
    return table_name, _encode(canonical).decode()


def table_key(table: type[Table], item: Mapping[str, Any]) -> Item:
    """Return the primary key of an item."""
    return {name: item[name] for name in table.settings.key_names}


def fault_item(item: Any) -> Item | None:
    """Return the stored item that a failed condition brought, decoded if it is not yet."""
    return item if item is None or isinstance(item, dict) else _decode_item(bytes(item))


def all_of(nodes: Iterable[ConditionNode | None]) -> ConditionNode | None:
    """Return the condition that all given ones hold, None if there are none."""
    parts: list[ConditionNode] = []
    for node in nodes:
        if node is not None:
            parts += node.parts if isinstance(node, And) else (node,)
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def node_of(condition: Condition[Any] | None) -> ConditionNode | None:
    """Return the syntax tree of an optional condition."""
    return None if condition is None else condition.node


def add_expressions(
    request: dict[str, Any],
    *,
    condition: ConditionNode | None = None,
    actions: Sequence[Action] = (),
    key_condition: ConditionNode | None = None,
    filter_: ConditionNode | None = None,
    projection: Sequence[str] = (),
) -> dict[str, Any]:
    """Add rendered expressions, with their names and values, to a request, and return it."""
    renderer = Renderer()
    if key_condition is not None:
        request["KeyConditionExpression"] = renderer.condition(key_condition)
    if filter_ is not None:
        request["FilterExpression"] = renderer.condition(filter_)
    if condition is not None:
        request["ConditionExpression"] = renderer.condition(condition)
    if actions:
        request["UpdateExpression"] = renderer.update(UpdateNode(tuple(actions)))
    if projection:
        paths = tuple(Path((name,)) for name in dict.fromkeys(projection))
        request["ProjectionExpression"] = renderer.projection(ProjectionNode(paths))
    if renderer.names:
        request["ExpressionAttributeNames"] = renderer.names
    if renderer.values:
        request["ExpressionAttributeValues"] = renderer.values
    return request


def add_condition(
    request: dict[str, Any], condition: ConditionNode | None, actions: Sequence[Any] = ()
) -> dict[str, Any]:
    """Add a condition and update actions to a write; if the condition fails, the response holds the stored item."""
    if condition is not None:
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    if condition is None and not actions:
        return request
    return add_expressions(request, condition=condition, actions=actions)


def with_absence_condition(request: dict[str, Any], shape: EntityShape, now_s: float) -> dict[str, Any]:
    """Return a put that fails if an unexpired item exists; cached, because most creates have no other condition."""
    ttl = ttl_attribute(shape)
    return request | _absence_expressions(shape.home.settings.hash, ttl, 0 if ttl is None else int(now_s))


@lru_cache(maxsize=64)
def _absence_expressions(key: str, ttl: str | None, now_s: int) -> dict[str, Any]:
    return add_condition({}, _absence(key, ttl, now_s))


def is_expired(table: type[Table], item: Mapping[str, Value], now_s: float) -> bool:
    """Return whether an item's time to live is over."""
    ttl = table.settings.ttl
    if ttl is None:
        return False
    stored = item.get(ttl)
    if stored is None or "N" not in stored:
        return False
    first_s, end_s = _expired_range(now_s)
    return first_s <= float(stored["N"]) < end_s


def ttl_attribute(shape: EntityShape) -> str | None:
    """Return the attribute that an entity's items expire by, None if they do not expire."""
    ttl = shape.home.settings.ttl
    return ttl if ttl in shape.by_attribute else None


def expired_node(ttl: str, now_s: float) -> ConditionNode:
    """Return the condition that an item has expired."""
    first_s, end_s = _expired_range(now_s)
    path = Path((ttl,))
    return And(
        (
            Comparison(">=", path, Literal({"N": str(first_s)})),
            Comparison("<", path, Literal({"N": str(end_s)})),
        )
    )


def not_expired_node(ttl: str, now_s: float) -> ConditionNode:
    """Return the condition that an item has not expired; it also holds if the item is missing."""
    return Not(expired_node(ttl, now_s))


def exists_node(shape: EntityShape, now_s: float) -> ConditionNode:
    """Return the condition that an item exists and has not expired."""
    exists = FunctionCall("attribute_exists", (Path((shape.home.settings.hash,)),))
    ttl = ttl_attribute(shape)
    return exists if ttl is None else And((exists, not_expired_node(ttl, now_s)))


def absent_node(shape: EntityShape, now_s: float) -> ConditionNode:
    """Return the condition that no item exists, or only an expired one that is not deleted yet."""
    return _absence(shape.home.settings.hash, ttl_attribute(shape), now_s)


def _absence(key: str, ttl: str | None, now_s: float) -> ConditionNode:
    missing = FunctionCall("attribute_not_exists", (Path((key,)),))
    return missing if ttl is None else Or((missing, expired_node(ttl, now_s)))


def ignoring_expired(shape: EntityShape, node: ConditionNode | None, now_s: float) -> ConditionNode | None:
    """Return a condition that treats expired items as absent."""
    ttl = ttl_attribute(shape)
    if node is None or ttl is None:
        return node
    if compile_decider(node)({}, {}):
        return Or((expired_node(ttl, now_s), node))
    return And((not_expired_node(ttl, now_s), *(node.parts if isinstance(node, And) else (node,))))


def _expired_range(now_s: float) -> tuple[int, int]:
    """Return the first second that counts as expired, and the first that does not any more."""
    now = int(now_s)
    return max(now - TTL_PAST_S_MAX + 1, 1), now + 1


def unchanged_node(item: Item, attribute: str) -> ConditionNode:
    """Return the condition that an attribute has the same value as in `item`, or is absent there too."""
    stored = item.get(attribute)
    if stored is None:
        return FunctionCall("attribute_not_exists", (Path((attribute,)),))
    return Comparison("=", Path((attribute,)), Literal(stored))


def unchanged_nodes(shape: EntityShape, item: Item) -> list[ConditionNode]:
    """Return the conditions that an item is exactly as it was read."""
    settings = shape.home.settings
    names = (item.keys() | shape.by_attribute.keys() | {VERSION}) - set(settings.key_names)
    exists: list[ConditionNode] = [FunctionCall("attribute_exists", (Path((settings.hash,)),))]
    return exists + [unchanged_node(item, name) for name in sorted(names)]


def is_outdated(shape: EntityShape, item: Item | None) -> bool:
    """Return whether an item has another schema version than its entity."""
    return item is not None and shape.version > 1 and version_of(shape, item) != shape.version


def current_version_nodes(shape: EntityShape, *, or_absent: bool) -> list[ConditionNode]:
    """Return the condition that an item has its entity's schema version; empty for version 1."""
    if shape.version == 1:
        return []
    current = Comparison("=", Path((VERSION,)), Literal({"N": str(shape.version)}))
    if not or_absent:
        return [current]
    return [Or((FunctionCall("attribute_not_exists", (Path((shape.home.settings.hash,)),)), current))]


def not_newer_nodes(shape: EntityShape) -> list[ConditionNode]:
    """Return the condition that no item of a newer schema exists, whose fields a put would lose; empty for version 1.

    A program of version 1 writes no version and checks for none: it cannot know that there will be a second.
    """
    if shape.version == 1:
        return []
    path = Path((VERSION,))
    known = Comparison("<=", path, Literal({"N": str(shape.version)}))
    return [Or((FunctionCall("attribute_not_exists", (path,)), known))]


def check_condition(shape: EntityShape, condition: Any, verb: str, parameter: str = "when") -> None:
    """Refuse a value that is not a condition, or a condition on another entity."""
    if condition is None:
        return
    name = shape.entity.__name__
    if not isinstance(condition, Condition):
        if isinstance(condition, bool):
            problem = f"this is {condition}; compare the field of the class, {name}.field, not of an instance"
        elif isinstance(condition, Change):
            problem = f"this is a change of {condition.field}; pass changes before {parameter}="
        else:
            problem = f"this is {describe_type(condition)}"
        raise QueryRefused(
            f"{name}.{verb}", f"{parameter}= takes a condition such as {name}.field.eq(…): {problem}"
        )
    if condition.entity is not None and not fields_apply_to(shape.entity, condition.entity):
        raise QueryRefused(
            f"{name}.{verb}",
            f"{parameter}= is a condition on {condition.entity.__name__}; use fields of {name}",
        )
