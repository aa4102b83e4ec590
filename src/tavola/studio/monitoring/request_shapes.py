"""The part of a request that is kept for display: what it asks for, without stored values.

A read is kept whole so that it can be repeated. Of a write, the key and the expressions are kept, and for every other value its
type and size. Long lists are truncated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from tavola.protocol.arns import Scope, table_arn, table_name_of

SHAPE_BYTES_MAX = 8 * 1024
BODY_BYTES_MAX = 64 * 1024  # longer bodies are not parsed
_SHOWN_MAX = 3  # elements of a long list

READS = frozenset(
    {"BatchGetItem", "GetItem", "Query", "Scan", "SearchVectors", "TransactGetItems", "ListItemVersions"}
)
"""Operations that read items and change nothing."""

_STATEMENTS = {"BatchExecuteStatement": "Statements", "ExecuteTransaction": "TransactStatements"}
"""Operations with several PartiQL statements, and the parameter that holds them."""

_WHOLE = frozenset({"Key", "Keys", "ExpressionAttributeNames", "KeySchema", "AttributeDefinitions"})
_VALUES = frozenset(
    {"Item", "ExpressionAttributeValues", "ExclusiveStartKey", "Expected", "AttributeUpdates"}
)
_TYPES = frozenset({"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"})
_FORM = (
    *("IndexName", "Select", "ConsistentRead", "KeyConditionExpression", "FilterExpression", "Statement"),
    *("ProjectionExpression", "ConditionExpression", "UpdateExpression"),
)
_LITERAL = re.compile(r"'(?:[^']|'')*'")
_SELECTS = re.compile(r"\s*(select|exists\s*\(\s*select)\b", re.IGNORECASE)
_NAMED = re.compile(rb'"TableName"\s*:\s*"([A-Za-z0-9_.:/-]{1,255})"')

_decode = msgspec.json.Decoder().decode


def request_shape(operation: str, body: bytes) -> bytes:
    """Return the displayed part of a request as JSON; only its length if it is too long."""
    if len(body) > BODY_BYTES_MAX:
        return _omission(len(body))
    try:
        request = _decode(body)
    except (msgspec.DecodeError, RecursionError):
        return _omission(len(body))
    if isinstance(request, dict):
        request.pop("ReturnConsumedCapacity", None)
    shape = msgspec.json.encode(request if is_read(operation, request) else _without_values(request))
    return shape if len(shape) <= SHAPE_BYTES_MAX else _omission(len(body))


def request_form(shape: bytes) -> tuple[tuple[str, str], ...]:
    """Return the form of a request: its index and expressions without values."""
    request = _decode(shape)
    if not isinstance(request, dict):
        return ()
    return tuple((name, str(request[name])) for name in _FORM if name in request)


def is_read(operation: str, request: Any) -> bool:
    """Return whether a request only reads items, so that it can be repeated safely.

    Only the parameters that the operation itself uses count, since further ones may be there to deceive.
    """
    if operation in READS:
        return True
    if not isinstance(request, Mapping):
        return False
    if operation == "ExecuteStatement":
        return _is_select(request)
    statements = request.get(_STATEMENTS[operation]) if operation in _STATEMENTS else None
    return isinstance(statements, list) and bool(statements) and all(map(_is_select, statements))


def _is_select(statement: Any) -> bool:
    text = statement.get("Statement") if isinstance(statement, Mapping) else None
    return isinstance(text, str) and _SELECTS.match(text) is not None


def named_table(body: bytes) -> str | None:
    """Return the first table name in a request without parsing it; None if there is none."""
    match = _NAMED.search(body, 0, BODY_BYTES_MAX)
    if match is None:
        return None
    return table_name_of(match[1].decode())


def qualified_arn(scope: Scope, name_or_arn: str) -> str:
    """Return the ARN of a table from its name or ARN."""
    return name_or_arn if name_or_arn.startswith("arn:") else table_arn(scope, name_or_arn)


def _omission(bytes_: int) -> bytes:
    return msgspec.json.encode({"omitted": f"a request of {bytes_:,} bytes"})


def _without_values(node: Any) -> Any:
    if isinstance(node, list):
        elements = [_without_values(element) for element in node[:_SHOWN_MAX]]
        return elements if len(node) <= _SHOWN_MAX else [*elements, f"… and {len(node) - _SHOWN_MAX} more"]
    if not isinstance(node, dict):
        return node
    copy: dict[str, Any] = {}
    for name, value in node.items():
        if name in _WHOLE:
            copy[name] = value
        elif name in _VALUES and isinstance(value, dict):
            copy[name] = {name: _describe_value(content) for name, content in value.items()}
        elif name == "Parameters" and isinstance(value, list):
            copy[name] = [_describe_value(element) for element in value]
        elif name == "Statement":
            copy[name] = _LITERAL.sub("'…'", str(value))
        else:
            copy[name] = _without_values(value)
    return copy


def _describe_value(value: Any) -> str:
    """Return the type and size of an attribute value as text."""
    if isinstance(value, dict) and len(value) == 1:
        ((kind, content),) = value.items()
        if kind in _TYPES:
            match content:
                case str():
                    return f"{kind}, {len(content.encode()):,} bytes"
                case list() | dict():
                    return f"{kind}, {len(content):,} elements"
                case _:
                    return str(kind)
    return "…"
