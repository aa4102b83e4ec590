"""Expiry: an item whose time to live is over is not there, whether or not DynamoDB has deleted it yet.

Whoever reads an item asks `expired`; whoever writes lets DynamoDB decide by the same rule, as a condition. The rule
is DynamoDB's own: a whole second that is past, though by no more than five years; anything else is no time.
"""

from __future__ import annotations

from collections.abc import Mapping

from tavola.expressions.conditions import compile_decider
from tavola.expressions.nodes import And, Comparison, ConditionNode, FunctionCall, Literal, Not, Or, Path
from tavola.limits import TTL_PAST_S_MAX
from tavola.model import Shape, Table
from tavola.values import Value


def expired(table: type[Table], item: Mapping[str, Value], now_s: float) -> bool:
    """Return whether an item's time to live is over."""
    ttl = table.settings.ttl
    if ttl is None:
        return False
    stored = item.get(ttl)
    if stored is None or "N" not in stored:
        return False
    first_s, end_s = _past(now_s)
    return first_s <= float(stored["N"]) < end_s


def expires(shape: Shape) -> str | None:
    """Return the attribute by which an entity's items expire, None if they never do."""
    ttl = shape.home.settings.ttl
    return ttl if ttl in shape.by_attribute else None


def ended(ttl: str, now_s: float) -> ConditionNode:
    """Return the condition that an item has expired."""
    first_s, end_s = _past(now_s)
    path = Path((ttl,))
    return And(
        (
            Comparison(">=", path, Literal({"N": str(first_s)})),
            Comparison("<", path, Literal({"N": str(end_s)})),
        )
    )


def alive(ttl: str, now_s: float) -> ConditionNode:
    """Return the condition that an item has not expired, which holds of no item too."""
    return Not(ended(ttl, now_s))


def there(shape: Shape, now_s: float) -> ConditionNode:
    """Return the condition that an item exists and has not expired."""
    exists = FunctionCall("attribute_exists", (Path((shape.home.settings.hash,)),))
    ttl = expires(shape)
    return exists if ttl is None else And((exists, alive(ttl, now_s)))


def absent(shape: Shape, now_s: float) -> ConditionNode:
    """Return the condition that no item exists, or one that has expired and waits to be deleted."""
    return absence(shape.home.settings.hash, expires(shape), now_s)


def absence(key: str, ttl: str | None, now_s: float) -> ConditionNode:
    """Return the same, for a table whose items have this key and expire by that attribute."""
    missing = FunctionCall("attribute_not_exists", (Path((key,)),))
    return missing if ttl is None else Or((missing, ended(ttl, now_s)))


def as_seen(shape: Shape, node: ConditionNode | None, now_s: float) -> ConditionNode | None:
    """Return a condition for which an item that has expired is none, whether or not it still stands."""
    ttl = expires(shape)
    if node is None or ttl is None:
        return node
    if compile_decider(node)({}, {}):
        return Or((ended(ttl, now_s), node))
    return And((alive(ttl, now_s), *(node.parts if isinstance(node, And) else (node,))))


def _past(now_s: float) -> tuple[int, int]:
    """Return the seconds that are past: the first that counts, and the first that is still to come."""
    now = int(now_s)
    return max(now - TTL_PAST_S_MAX + 1, 1), now + 1
