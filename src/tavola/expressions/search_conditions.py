"""Search conditions: the equalities that a vector search filters by.

A search accepts the condition language reduced to comparisons with `=` joined by AND, each of an attribute with a
value. The index knows which attributes are allowed.
"""

from __future__ import annotations

from msgspec import Struct

from tavola.expressions.conditions import CompiledCondition
from tavola.expressions.errors import ExpressionError
from tavola.expressions.nodes import And, Comparison, ConditionNode, Path, ValueRef
from tavola.expressions.paths import steps_of

_FIELD = "Invalid SearchConditionExpression: "
_COMPARATOR = f"{_FIELD}Invalid comparator used in SearchConditionExpression"


class SearchClause(Struct, frozen=True):
    """An attribute and the placeholder of its required value."""

    name: str
    value: str
    nested: bool  # the path goes into the attribute, which is refused


def search_clauses(condition: CompiledCondition) -> tuple[SearchClause, ...]:
    """Return the equalities of a condition; refuse any other condition."""
    return tuple(_clauses(condition.tree))


def _clauses(node: ConditionNode) -> list[SearchClause]:
    match node:
        case And(parts):
            return [clause for part in parts for clause in _clauses(part)]
        case Comparison("=", Path() as path, ValueRef(value)) | Comparison(
            "=", ValueRef(value), Path() as path
        ):
            steps = steps_of(path)
            return [SearchClause(str(steps[0]), value, len(steps) > 1)]
        case _:
            raise ExpressionError(_COMPARATOR)
