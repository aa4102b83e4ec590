"""Requests: conditions and updates of one entity as DynamoDB's expressions, never failing on a reserved word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from tavola.client.expiry import absence, expires
from tavola.expressions.builder import update as update_node
from tavola.expressions.nodes import (
    Action,
    And,
    Comparison,
    ConditionNode,
    FunctionCall,
    Literal,
    Path,
    ProjectionNode,
    UpdateNode,
)
from tavola.expressions.renderer import Renderer
from tavola.model import Condition, Shape, Table
from tavola.values import Item


def all_of(nodes: Iterable[ConditionNode | None]) -> ConditionNode | None:
    """Return the condition that all hold, None if there are none."""
    parts: list[ConditionNode] = []
    for node in nodes:
        if node is not None:
            parts += node.parts if isinstance(node, And) else (node,)
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def node_of(condition: Condition[Any] | None) -> ConditionNode | None:
    """Return the tree of a condition that may be left out."""
    return None if condition is None else condition.node


def expressed(
    request: dict[str, Any],
    *,
    condition: ConditionNode | None = None,
    actions: Sequence[Action] = (),
    key_condition: ConditionNode | None = None,
    filter_: ConditionNode | None = None,
    projection: Sequence[str] = (),
) -> dict[str, Any]:
    """Return a request with its expressions, names and values written into it."""
    renderer = Renderer()
    if key_condition is not None:
        request["KeyConditionExpression"] = renderer.condition(key_condition)
    if filter_ is not None:
        request["FilterExpression"] = renderer.condition(filter_)
    if condition is not None:
        request["ConditionExpression"] = renderer.condition(condition)
    if actions:
        node: UpdateNode = update_node(*actions)
        request["UpdateExpression"] = renderer.update(node)
    if projection:
        paths = tuple(Path((name,)) for name in dict.fromkeys(projection))
        request["ProjectionExpression"] = renderer.projection(ProjectionNode(paths))
    if renderer.names:
        request["ExpressionAttributeNames"] = renderer.names
    if renderer.values:
        request["ExpressionAttributeValues"] = renderer.values
    return request


def conditioned(
    request: dict[str, Any], condition: ConditionNode | None, actions: Sequence[Any] = ()
) -> dict[str, Any]:
    """Return a write with its condition, which brings the item where it fails."""
    if condition is not None:
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    if condition is None and not actions:
        return request
    return expressed(request, condition=condition, actions=actions)


def when_absent(request: dict[str, Any], shape: Shape, now_s: float) -> dict[str, Any]:
    """Return a write that holds only where no item is, or one that has expired; most creations have no other condition."""
    ttl = expires(shape)
    return request | _absence(shape.home.settings.hash, ttl, 0 if ttl is None else int(now_s))


@lru_cache(maxsize=64)
def _absence(key: str, ttl: str | None, now_s: int) -> dict[str, Any]:
    return conditioned({}, absence(key, ttl, now_s))


def unchanged(item: Item, attribute: str) -> ConditionNode:
    """Return the condition that an attribute is as it is in an item, or is absent where it is there."""
    stored = item.get(attribute)
    if stored is None:
        return FunctionCall("attribute_not_exists", (Path((attribute,)),))
    return Comparison("=", Path((attribute,)), Literal(stored))


def table_key(table: type[Table], item: Mapping[str, Any]) -> Item:
    """Return the key of an item in its table."""
    return {name: item[name] for name in table.settings.key_names}
