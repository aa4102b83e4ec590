"""Literals of a statement as values.

DynamoDB parses each literal separately and reports an error with its path from the literal's root, as `under
root.x[1]`. Sets are bags of strings or numbers; binary values are possible only as parameters.
"""

from __future__ import annotations

from tavola.expressions.partiql.errors import StatementError
from tavola.expressions.partiql.nodes import (
    CollectionLiteral,
    Expression,
    FunctionExpression,
    InfixOperator,
    Name,
    NestedStatement,
    Parameter,
    PathExpression,
    PrefixOperator,
    Scalar,
    Struct,
    Typed,
)
from tavola.limits import NESTING_LEVELS_MAX
from tavola.values import NumberRefused, Value, canonical_number

_INVALID = "One or more parameter values were invalid: "
_ROOT = "root"


def value_of(expression: Expression, path: str = _ROOT, depth: int = 0) -> Value:
    """Return the value of a literal; refuse one that no attribute can hold."""
    if depth > NESTING_LEVELS_MAX:
        raise StatementError(f"Nesting Levels have exceeded supported limits under {path}")
    match expression:
        case Scalar("S", text):
            return {"S": text}
        case Scalar("N", text):
            return {"N": _number(text, path)}
        case Scalar("BOOL", text):
            return {"BOOL": text == "true"}
        case Scalar("NULL"):
            return {"NULL": True}
        case CollectionLiteral("list", items):
            return {
                "L": [value_of(item, f"{path}[{position}]", depth + 1) for position, item in enumerate(items)]
            }
        case CollectionLiteral("bag", items):
            return _set(items, path)
        case Struct(fields):
            return {
                "M": {
                    name: value_of(value, f"{path}.{name}", depth + 1)
                    for name, value in _members(fields, path)
                }
            }
        case _:
            raise StatementError(
                f"Unsupported data type: {_kind(expression)} under key {path}", expression.place
            )


def members_of(item: Expression) -> list[tuple[str, Expression]]:
    """Return the attributes of the item in an INSERT."""
    if not isinstance(item, Struct):
        raise StatementError(f"Unsupported data type: {_kind(item)} under key {_ROOT}", item.place)
    return _members(item.fields, _ROOT)


def _members(fields: tuple[tuple[Expression, Expression], ...], path: str) -> list[tuple[str, Expression]]:
    members: dict[str, Expression] = {}
    for key, value in fields:
        if not isinstance(key, Scalar) or key.kind != "S":
            raise StatementError(f"Tuple keys must be of type String. Actual type: {_kind(key)} under {path}")
        if key.text in members:
            raise StatementError(f"Duplicate keys in tuple. Key: {key.text} under {path}")
        members[key.text] = value
    return list(members.items())


def _number(text: str, path: str) -> str:
    try:
        return canonical_number(text)
    except NumberRefused as refused:
        raise StatementError(f"{refused.classic} under {path}") from refused


def _set(items: tuple[Expression, ...], path: str) -> Value:
    if not items:
        raise StatementError("Empty bags are not supported")
    kinds = {item.kind if isinstance(item, Scalar) else None for item in items}
    texts = [item.text for item in items if isinstance(item, Scalar)]
    listed = ", ".join(texts)
    if kinds == {"S"}:
        if len(set(texts)) != len(texts):
            raise StatementError(f"{_INVALID}Input collection [{listed}] contains duplicates.")
        return {"SS": sorted(texts)}
    if kinds == {"N"}:
        numbers = [_number(text, path) for text in texts]
        if len(set(numbers)) != len(numbers):
            raise StatementError(f"{_INVALID}Input collection [{listed}] contains duplicates! under {path}")
        return {"NS": numbers}
    raise StatementError(
        "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags"
    )


def _kind(expression: Expression) -> str:
    match expression:
        case Parameter():
            return "Parameter"
        case FunctionExpression(name):
            return name
        case Name() | PathExpression():
            return "VariableReference"
        case Scalar(kind):
            return kind
        case CollectionLiteral(kind):
            return kind.capitalize()
        case Struct():
            return "Struct"
        case Typed():
            return "IsType"
        case PrefixOperator(operator) | InfixOperator(operator):
            return operator.upper()
        case NestedStatement(kind):
            return kind.capitalize()
