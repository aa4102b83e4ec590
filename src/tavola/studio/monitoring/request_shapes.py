"""The part of a request that is kept for display: what it asks for, without stored values.

A read is kept whole so that it can be repeated. Of a write, the key and the expressions are kept, and for every other value its
type and size. Long lists are truncated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

SHAPE_BYTES_MAX = 8 * 1024
BODY_BYTES_MAX = 64 * 1024  # a longer body is not looked into
_SHOWN_MAX = 3  # members of a long list

READS = frozenset(
    {"BatchGetItem", "GetItem", "Query", "Scan", "SearchVectors", "TransactGetItems", "ListItemVersions"}
)
"""Operations that read items and change nothing."""

_STATEMENTS = {"BatchExecuteStatement": "Statements", "ExecuteTransaction": "TransactStatements"}
"""Operations of several texts, each of which says whether it reads or writes, and where these are."""

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
    """Return what is kept of a request, as JSON; of one that is too long to keep, how long it was."""
    if len(body) > BODY_BYTES_MAX:
        return _omitted(len(body))
    try:
        request = _decode(body)
    except (msgspec.DecodeError, RecursionError):
        return _omitted(len(body))
    if isinstance(request, dict):
        request.pop("ReturnConsumedCapacity", None)
    shape = msgspec.json.encode(request if is_read(operation, request) else _without_values(request))
    return shape if len(shape) <= SHAPE_BYTES_MAX else _omitted(len(body))


def request_form(shape: bytes) -> tuple[tuple[str, str], ...]:
    """Return what two requests of one form have in common: the index and the expressions, whatever their values."""
    request = _decode(shape)
    if not isinstance(request, dict):
        return ()
    return tuple((name, str(request[name])) for name in _FORM if name in request)


def is_read(operation: str, request: Any) -> bool:
    """Tell whether a request reads items and changes nothing, so that it may be made again.

    Only what the operation itself looks at counts: a harmless member beside it, which it ignores, proves nothing.
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
    """Return the table that a request names first, without taking it apart; None if it names none."""
    match = _NAMED.search(body, 0, BODY_BYTES_MAX)
    if match is None:
        return None
    return table_name_only(match[1].decode())


def table_name_only(name_or_arn: str) -> str:
    """Return the name of a table that is told by its name or its ARN."""
    return name_or_arn.partition(":table/")[2].partition("/")[0] or name_or_arn


def _omitted(bytes_: int) -> bytes:
    return msgspec.json.encode({"omitted": f"a request of {bytes_:,} bytes"})


def _without_values(node: Any) -> Any:
    if isinstance(node, list):
        elements = [_without_values(each) for each in node[:_SHOWN_MAX]]
        return elements if len(node) <= _SHOWN_MAX else [*elements, f"… and {len(node) - _SHOWN_MAX} more"]
    if not isinstance(node, dict):
        return node
    copy: dict[str, Any] = {}
    for name, value in node.items():
        if name in _WHOLE:
            copy[name] = value
        elif name in _VALUES and isinstance(value, dict):
            copy[name] = {each: _describe_value(content) for each, content in value.items()}
        elif name == "Parameters" and isinstance(value, list):
            copy[name] = [_describe_value(each) for each in value]
        elif name == "Statement":
            copy[name] = _LITERAL.sub("'…'", str(value))
        else:
            copy[name] = _without_values(value)
    return copy


def _describe_value(value: Any) -> str:
    """Return the type and the length of an attribute value."""
    if isinstance(value, dict) and len(value) == 1:
        ((kind, content),) = value.items()
        if kind in _TYPES:
            match content:
                case str():
                    return f"{kind}, {len(content.encode()):,} bytes"
                case list() | dict():
                    return f"{kind}, {len(content):,} members"
                case _:
                    return str(kind)
    return "…"
