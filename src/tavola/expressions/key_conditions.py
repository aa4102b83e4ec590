"""Key conditions: from a condition to bounds of a key schema.

A key condition is parsed and checked as a condition, then reduced to one clause per attribute. `clauses_of` raises
the errors that need no table; `key_bounds` applies the rules of the schema, for keys of one attribute or several.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from msgspec import Struct

from tavola.expressions.errors import ExpressionError
from tavola.expressions.nodes import (
    And,
    Between,
    Comparison,
    ConditionNode,
    FunctionCall,
    InList,
    Leaf,
    Literal,
    Not,
    Or,
    Path,
    Truth,
    ValueRef,
)
from tavola.expressions.paths import operands_of, steps_of
from tavola.keys import Bounds, KeyAttribute, KeyRefused, KeySchema, SortCondition, partition_bounds
from tavola.values import Value

Values = Mapping[str, Value]

_FIELD = "KeyConditionExpression"
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NOT_SUPPORTED = "Query key condition not supported"
LEGACY_COUNT = "Conditions can be of length 1 or 2 only"


class KeyClause(Struct, frozen=True):
    """The condition on one key attribute: = < <= > >= BETWEEN or begins_with, and its values."""

    name: str
    operator: str
    operands: tuple[ValueRef | Literal, ...]


Clauses = tuple[KeyClause, ...]


class KeyCondition(Struct, frozen=True):
    """A compiled key condition, and the placeholders it uses."""

    clauses: Clauses
    attributes: frozenset[str]
    names_used: frozenset[str]
    values_used: frozenset[str]
    is_legacy: bool = False  # from KeyConditions


class KeyRange(Struct, frozen=True):
    """The range of an index that a query reads."""

    bounds: Bounds
    hash_values: tuple[Value, ...]
    at_most_one: bool  # every key attribute is fixed by `=`


def clauses_of(tree: ConditionNode) -> Clauses:
    """Return the clauses of a checked condition; refuse anything that cannot be a key condition."""
    clauses: dict[str, KeyClause] = {}
    for leaf in _conjuncts(tree):
        clause = _clause(leaf)
        if clause.name in clauses:
            _refuse("KeyConditionExpressions must only contain one condition per key")
        clauses[clause.name] = clause
    return tuple(clauses.values())


def key_bounds(condition: KeyCondition, schema: KeySchema, values: Values) -> KeyRange:
    """Return the range that a query reads under a schema; refuse a condition that does not fit it."""
    if condition.is_legacy and len(condition.clauses) > 2 and len(schema.attributes) <= 2:
        raise ExpressionError(LEGACY_COUNT)
    hash_clauses, range_clauses = _clauses_by_schema(condition.clauses, schema)
    hash_values = tuple(
        [
            _fitting(clause.operands[0], schema.hash[position], values)
            for position, clause in enumerate(hash_clauses)
        ]
    )
    range_values: list[Value] = []
    last = None
    for position, clause in enumerate(range_clauses):
        part = schema.range[position]
        fitting = [_fitting(operand, part, values) for operand in clause.operands]
        if clause.operator == "=":
            if not fitting[0][part.type]:
                raise ExpressionError(str(KeyRefused("empty", part.name, part.type)))
            range_values += fitting
        else:
            last = SortCondition(clause.operator, tuple(fitting))
    try:
        bounds = partition_bounds(schema, hash_values, range_values, last)
    except KeyRefused as refused:
        raise ExpressionError(str(refused)) from refused
    return KeyRange(bounds, hash_values, len(range_values) == len(schema.range))


def _fitting(operand: ValueRef | Literal, part: KeyAttribute, values: Values) -> Value:
    value = values[operand.name] if isinstance(operand, ValueRef) else operand.value
    if part.type not in value:
        raise ExpressionError(
            "One or more parameter values were invalid: Condition parameter type does not match schema type"
        )
    return value


def _clauses_by_schema(clauses: Clauses, schema: KeySchema) -> tuple[Clauses, Clauses]:
    """Return the clauses on hash and on range attributes, each in schema order."""
    if len(schema.hash) == 1:
        # The two forms of nearly all queries.
        first, last = clauses[0], clauses[-1]
        if first.name != schema.hash[0].name:
            first, last = last, first
        if first.name == schema.hash[0].name and first.operator == "=":
            if first is last:
                return (first,), ()
            if len(clauses) == 2 and schema.range and last.name == schema.range[0].name:
                return (first,), (last,)
    by_name = {clause.name: clause for clause in clauses}
    _check_count(len(clauses), schema)
    _check_hash(by_name, schema)
    range_clauses = _range_clauses(by_name, schema)
    return tuple([by_name[part.name] for part in schema.hash]), range_clauses


def _refuse(sentence: str) -> NoReturn:
    raise ExpressionError(f"Invalid {_FIELD}: {sentence}")


def _refuse_operator(operator: str) -> NoReturn:
    _refuse(f"Invalid operator used in {_FIELD}: {operator}")


def _conjuncts(tree: ConditionNode) -> list[Leaf]:
    leaves: list[Leaf] = []
    pending = [tree]
    while pending:
        node = pending.pop()
        match node:
            case And(parts):
                pending.extend(reversed(parts))
            case Or():
                _refuse_operator("OR")
            case Not():
                _refuse_operator("NOT")
            case _:
                leaves.append(node)
    return leaves


def _clause(leaf: Leaf) -> KeyClause:
    match leaf:
        case InList():
            _refuse_operator("IN")
        case Comparison("<>"):
            _refuse_operator("<>")
        case FunctionCall(function) if function != "begins_with":
            _refuse_operator(function)
        case Between():
            operator = "BETWEEN"
        case FunctionCall(function):
            operator = function
        case Comparison(sign):
            operator = sign
    name: str | None = None
    place = 0
    operands: list[ValueRef | Literal] = []
    for position, operand in enumerate(operands_of(leaf)):
        if isinstance(operand, FunctionCall | Truth):
            _refuse("KeyConditionExpressions cannot contain nested operations")
        if not isinstance(operand, Path):
            operands.append(operand)
            continue
        if name is not None:
            _refuse(f"Invalid condition in {_FIELD}: Multiple attribute names used in one condition")
        steps = steps_of(operand)
        if len(steps) > 1:
            _refuse("KeyConditionExpressions cannot have conditions on nested attributes")
        name, place = str(steps[0]), position
    if name is None:
        _refuse(f"Invalid condition in {_FIELD}: No key attribute specified")
    if place and operator not in _MIRRORED:
        _refuse(
            f"Invalid condition in {_FIELD}: {operator} operator must have the key attribute as its first "
            "operand"
        )
    return KeyClause(name, _MIRRORED[operator] if place else operator, tuple(operands))


def _check_count(count: int, schema: KeySchema) -> None:
    if count > len(schema.attributes):
        raise ExpressionError(
            f"The number of query conditions ({count}) exceeds the number of key attributes defined in the "
            f"schema ({len(schema.attributes)})"
        )


def _check_hash(clauses: Mapping[str, KeyClause], schema: KeySchema) -> None:
    if len(schema.hash) > 1:
        broken = [
            part.name
            for part in schema.hash
            if part.name not in clauses or clauses[part.name].operator != "="
        ]
        if broken:
            raise ExpressionError(
                f"HASH key attributes {', '.join(broken)} must have equality conditions specified in the query"
            )
        return
    name = schema.hash[0].name
    if name not in clauses:
        raise ExpressionError(f"Query condition missed key schema element: {name}")


def _range_clauses(clauses: Mapping[str, KeyClause], schema: KeySchema) -> Clauses:
    """Return the clauses on range attributes in schema order; all but the last are equalities."""
    named = [part.name for part in schema.range if part.name in clauses]
    if len(named) + len(schema.hash) < len(clauses):
        if len(schema.range) == 1:
            raise ExpressionError(f"Query condition missed key schema element: {schema.range[0].name}")
        raise ExpressionError(_NOT_SUPPORTED)
    if clauses[schema.hash[0].name].operator != "=":
        raise ExpressionError(_NOT_SUPPORTED)
    if not named:
        return ()
    before = schema.names[len(schema.hash) : schema.names.index(named[-1])]
    broken = [name for name in before if name not in clauses or clauses[name].operator != "="]
    if broken:
        raise ExpressionError(
            f"RANGE key attributes {', '.join(broken)} must have equality conditions specified in the query "
            f"because a condition is present on key attribute {named[-1]}"
        )
    return tuple([clauses[name] for name in named])
