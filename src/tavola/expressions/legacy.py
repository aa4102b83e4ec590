"""Legacy parameters translated to the trees of expressions.

Expected, QueryFilter and ScanFilter become conditions, KeyConditions a key condition, AttributeUpdates an update,
AttributesToGet a projection. They name top-level attributes only, whatever characters a name has, and they have their
own errors. An entry is a mapping with DynamoDB's member names or an object with those names in snake case; its values
are already checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from tavola.expressions.conditions import CompiledCondition, compile_decider
from tavola.expressions.errors import ExpressionError
from tavola.expressions.key_conditions import LEGACY_COUNT, KeyClause, KeyCondition
from tavola.expressions.nodes import (
    Action,
    Add,
    And,
    Between,
    Comparison,
    ConditionNode,
    DeleteElements,
    FunctionCall,
    InList,
    Literal,
    Not,
    Or,
    Path,
    ProjectionNode,
    Remove,
    Set,
    UpdateNode,
)
from tavola.expressions.plans import projection_of, update_of
from tavola.expressions.projections import CompiledProjection
from tavola.expressions.updates import CompiledUpdate
from tavola.values import Value, compare, name_problem, tag_of

_NONE: frozenset[str] = frozenset()
_ORDERED = ("S", "N", "B")
_SIGNS = {"EQ": "=", "NE": "<>", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_KEY_OPERATORS = {
    **{name: sign for name, sign in _SIGNS.items() if name != "NE"},
    "BETWEEN": "BETWEEN",
    "BEGINS_WITH": "begins_with",
}
_ALLOWED_TYPES = {
    **dict.fromkeys(("LT", "LE", "GT", "GE", "BETWEEN", "IN", "CONTAINS", "NOT_CONTAINS"), _ORDERED),
    "BEGINS_WITH": ("S", "B"),
}
_ADDABLE = ("N", "SS", "NS", "BS", "L")  # lists too, although the documentation names only numbers and sets
_DELETABLE = ("SS", "NS", "BS")


def legacy_expected(expected: Mapping[str, Any], conditional_operator: str | None) -> CompiledCondition:
    """Return Expected as a condition."""
    return _condition([_expectation(name, entry) for name, entry in expected.items()], conditional_operator)


def legacy_filter(filters: Mapping[str, Any], conditional_operator: str | None) -> CompiledCondition:
    """Return QueryFilter or ScanFilter as a condition."""
    parts = []
    for name, entry in filters.items():
        operator = _member(entry, "ComparisonOperator")
        parts.append(_comparison(name, operator, _member(entry, "AttributeValueList") or ()))
    return _condition(parts, conditional_operator)


def legacy_key_conditions(conditions: Mapping[str, Any]) -> KeyCondition:
    """Return KeyConditions as a key condition."""
    entries = [
        (name, _member(entry, "ComparisonOperator"), _member(entry, "AttributeValueList") or ())
        for name, entry in conditions.items()
    ]
    for _, operator, values in entries:
        _check_values(operator, values)
    if not entries:
        raise ExpressionError(LEGACY_COUNT)
    clauses = []
    for name, operator, values in entries:
        if operator not in _KEY_OPERATORS:
            raise ExpressionError("Attempted conditional constraint is not an indexable operation")
        clauses.append(KeyClause(name, _KEY_OPERATORS[operator], tuple(map(Literal, values))))
    return KeyCondition(tuple(clauses), frozenset(conditions), _NONE, _NONE, is_legacy=True)


def legacy_updates(updates: Mapping[str, Any]) -> CompiledUpdate:
    """Return AttributeUpdates as an update."""
    _check_names(updates)
    actions = [_update(name, entry) for name, entry in updates.items()]
    return update_of(UpdateNode(tuple(actions)), _NONE, _NONE, legacy=True)


def legacy_attributes(names: Sequence[str]) -> CompiledProjection:
    """Return AttributesToGet as a projection."""
    _check_names(names)
    seen: set[str] = set()
    for name in names:
        if name in seen:
            _invalid(f"Duplicate value in attribute name: {name}")
        seen.add(name)
    return projection_of(ProjectionNode(tuple(Path((name,)) for name in names)), _NONE)


def _check_names(names: Iterable[str]) -> None:
    for name in names:
        problem = name_problem(name)
        if problem is not None:
            _invalid(problem)


def _member(entry: Any, name: str) -> Any:
    if isinstance(entry, Mapping):
        return entry.get(name)
    return getattr(entry, re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(), None)


def _invalid(sentence: str) -> NoReturn:
    raise ExpressionError(f"One or more parameter values were invalid: {sentence}")


def _condition(parts: list[ConditionNode], conditional_operator: str | None) -> CompiledCondition:
    row = Or if conditional_operator == "OR" and parts else And
    tree = parts[0] if len(parts) == 1 else row(tuple(parts))
    names = frozenset(str(step) for part in parts for step in _path_of(part).steps)
    return CompiledCondition(tree, compile_decider(tree), names, _NONE, _NONE, _NONE)


def _path_of(part: ConditionNode) -> Path:
    match part:
        case And((first, *_)):
            return _path_of(first)
        case Comparison(_, Path() as path) | Between(Path() as path) | InList(Path() as path):
            return path
        case FunctionCall(_, (Path() as path, *_)):
            return path
        case _:
            raise AssertionError("a legacy condition starts with its attribute")


def _expectation(name: str, entry: Any) -> ConditionNode:
    operator = _member(entry, "ComparisonOperator")
    value = _member(entry, "Value")
    values = _member(entry, "AttributeValueList")
    exists = _member(entry, "Exists")
    if value is not None and values is not None:
        _invalid(f"Value and AttributeValueList cannot be used together for Attribute: {name}")
    if operator is not None:
        if exists is not None:
            _invalid(f"Exists and ComparisonOperator cannot be used together for Attribute: {name}")
        if value is None and values is None and operator not in ("NULL", "NOT_NULL"):
            _invalid(
                f"Value or AttributeValueList must be used with ComparisonOperator: {operator} for "
                f"Attribute: {name}"
            )
        return _comparison(name, operator, [value] if value is not None else values or ())
    if values is not None:
        _invalid(f"AttributeValueList can only be used with a ComparisonOperator for Attribute: {name}")
    if exists is False:
        if value is not None:
            _invalid(f"Value cannot be used when Exists is false for Attribute: {name}")
        return FunctionCall("attribute_not_exists", (Path((name,)),))
    if value is None:
        _invalid(
            f"Value must be provided when Exists is {'null' if exists is None else 'true'} for Attribute: {name}"
        )
    return Comparison("=", Path((name,)), Literal(value))


def _comparison(name: str, operator: str, values: Sequence[Value]) -> ConditionNode:
    _check_values(operator, values)
    path = Path((name,))
    literals = tuple(map(Literal, values))
    match operator:
        case "NULL":
            return FunctionCall("attribute_not_exists", (path,))
        case "NOT_NULL":
            return FunctionCall("attribute_exists", (path,))
        case "BETWEEN":
            return Between(path, literals[0], literals[1])
        case "IN":
            return InList(path, literals)
        case "BEGINS_WITH":
            return FunctionCall("begins_with", (path, literals[0]))
        case "CONTAINS":
            return FunctionCall("contains", (path, literals[0]))
        case "NOT_CONTAINS":
            # Unlike NE, it does not hold for a missing attribute.
            return And(
                (
                    FunctionCall("attribute_exists", (path,)),
                    Not(FunctionCall("contains", (path, literals[0]))),
                )
            )
        case _:
            return Comparison(_SIGNS[operator], path, literals[0])


def _check_values(operator: str, values: Sequence[Value]) -> None:
    match operator:
        case "NULL" | "NOT_NULL":
            counted = not values
        case "IN":
            counted = bool(values)
        case _:
            counted = len(values) == (2 if operator == "BETWEEN" else 1)
    if not counted:
        _invalid(f"Invalid number of argument(s) for the {operator} ComparisonOperator")
    tags = [tag_of(value) for value in values]
    if len(set(tags)) > 1:
        _invalid("AttributeValues inside AttributeValueList must be of same type")
    if tags and tags[0] not in _ALLOWED_TYPES.get(operator, tags):
        _invalid(f"ComparisonOperator {operator} is not valid for {tags[0]} AttributeValue type")
    if operator == "BETWEEN" and compare(values[0], values[1]) == 1:
        raise ExpressionError(
            "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound"
        )


def _update(name: str, entry: Any) -> Action:
    action = _member(entry, "Action") or "PUT"
    value = _member(entry, "Value")
    path = Path((name,))
    if action not in ("ADD", "PUT", "DELETE"):
        raise ExpressionError(
            f"1 validation error detected: Value '{action}' at 'attributeUpdates.{name}.member.action' failed "
            "to satisfy constraint: Member must satisfy enum value set: [ADD, PUT, DELETE]"
        )
    if value is None:
        if action != "DELETE":
            _invalid("Only DELETE action is allowed when no attribute value is specified")
        return Remove(path)
    tag = tag_of(value)
    if action == "PUT":
        return Set(path, Literal(value))
    if action == "ADD":
        if tag not in _ADDABLE:
            _invalid(f"ADD action is not supported for the type {tag}")
        return Add(path, Literal(value))
    if tag not in _DELETABLE:
        _invalid(f"DELETE action with value is not supported for the type {tag}")
    return DeleteElements(path, Literal(value))
