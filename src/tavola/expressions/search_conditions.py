"""Search conditions: what a vector search asks of its entries, which is equality alone.

The language is that of conditions; of it a search takes comparisons with `=`, joined by AND, each of an
attribute with a value. Which attributes those may be, the index knows.
"""

from __future__ import annotations

from dataclasses import dataclass

from tavola.expressions.conditions import Condition
from tavola.expressions.errors import ExpressionError
from tavola.expressions.nodes import And, Comparison, ConditionNode, Path, ValueRef
from tavola.expressions.paths import steps_of

_FIELD = "Invalid SearchConditionExpression: "
_COMPARATOR = f"{_FIELD}Invalid comparator used in SearchConditionExpression"


@dataclass(frozen=True, slots=True)
class SearchClause:
    """An attribute and the placeholder of the value that it must have."""

    name: str
    value: str
    nested: bool  # the path goes into the attribute, which no search may


def search_clauses(condition: Condition) -> tuple[SearchClause, ...]:
    """Return the equalities that a condition consists of; refuse one that says anything else."""
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
