"""Literals of a statement as values.

DynamoDB parses each literal separately and reports an error with its path from the literal's root, as `under
root.x[1]`. Sets are bags of strings or numbers; binary values are possible only as parameters.
"""

from __future__ import annotations

from tavola.expressions.partiql.errors import StatementError
from tavola.expressions.partiql.nodes import (
    Expression,
    Function,
    Infix,
    Name,
    NestedStatement,
    Parameter,
    Path,
    Prefix,
    Scalar,
    Sequence,
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
        case Sequence("list", items):
            return {"L": [value_of(item, f"{path}[{at}]", depth + 1) for at, item in enumerate(items)]}
        case Sequence("bag", items):
            return _set(items, path)
        case Struct(fields):
            return {
                "M": {
                    name: value_of(value, f"{path}.{name}", depth + 1) for name, value in _named(fields, path)
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
    return _named(item.fields, _ROOT)


def _named(fields: tuple[tuple[Expression, Expression], ...], path: str) -> list[tuple[str, Expression]]:
    named: dict[str, Expression] = {}
    for key, value in fields:
        if not isinstance(key, Scalar) or key.kind != "S":
            raise StatementError(f"Tuple keys must be of type String. Actual type: {_kind(key)} under {path}")
        if key.text in named:
            raise StatementError(f"Duplicate keys in tuple. Key: {key.text} under {path}")
        named[key.text] = value
    return list(named.items())


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
        return {"SS": texts}
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
        case Function(name):
            return name
        case Name() | Path():
            return "VariableReference"
        case Scalar(kind):
            return kind
        case Sequence(kind):
            return kind.capitalize()
        case Struct():
            return "Struct"
        case Typed():
            return "IsType"
        case Prefix(operator) | Infix(operator):
            return operator.upper()
        case NestedStatement(kind):
            return kind.capitalize()
