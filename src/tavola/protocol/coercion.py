"""A request body converted to its declared types, as AWS's deserializer does.

Only bodies that the fast decoder or a later check refused come here. AWS reports type errors before any other error,
so the body is walked before the other error is raised. Where AWS converts ("true" to a boolean, 1.5 to an integer),
the walk converts too. Members are visited in body order, as a stream parser does.
"""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from typing import Any

import msgspec

from tavola.limits import NESTING_LEVELS_MAX
from tavola.protocol.faults import SerializationFault
from tavola.protocol.fields import INTEGER_MAX, LONG_MAX, MOMENT_S_MAX
from tavola.protocol.shapes import (
    BooleanNode,
    BytesNode,
    IntegerNode,
    ListNode,
    MapNode,
    Node,
    StructureNode,
    TextNode,
    TimeNode,
)

_MODEL = "com.amazonaws.dynamodb.v20120810."
_TRUE = frozenset({"true", "1", "yes"})
_FALSE = frozenset({"false", "0", "no"})
_CAST = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class "
    "java.lang.Class (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are "
    "in module java.base of loader 'bootstrap')"
)
_OBJECT_MISPLACED = "Start of structure or map found where not expected"
_not_base64 = re.compile(r"[^A-Za-z0-9+/=]")
# Attribute values nest and the walk recurses. Values nested deeper than allowed are treated as empty:
# `tavola.values` refuses the value around them.
_STRUCTURES_WALKED = 2 * NESTING_LEVELS_MAX
_generic = msgspec.json.Decoder().decode


def decode_json(body: bytes) -> Any:
    """Return a body as plain JSON data; raise SerializationFault without a message if it is not JSON."""
    try:
        body.decode()
        return _generic(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise SerializationFault from None


def coerce_body(structure: StructureNode, body: bytes) -> dict[str, Any]:
    """Return the body as AWS understands it, or raise the SerializationFault that AWS raises.

    Unknown and null members are dropped; convertible values are converted.
    """
    data = decode_json(body)
    if type(data) is not dict:
        raise SerializationFault
    return _structure(structure, data, 0)


def _structure(structure: StructureNode, data: dict[str, Any], depth: int) -> dict[str, Any]:
    coerced: dict[str, Any] = {}
    if depth > _STRUCTURES_WALKED:
        return coerced
    members = structure.members
    for name, value in data.items():
        if value is not None and name in members:
            coerced[name] = _value(members[name].node, value, "field", depth)
    return coerced


def _value(node: Node, value: Any, container: str, depth: int) -> Any:
    """Convert one value; `container` is "field" in a structure, "element" in a list or map."""
    match node:
        case TextNode():
            return _text(value)
        case StructureNode():
            if type(value) is dict:
                return _structure(node, value, depth + 1)
            if type(value) is list:
                raise SerializationFault(f"Unrecognized collection type class {_MODEL}{node.name}")
            raise SerializationFault(_wrong_type_message(container))
        case MapNode():
            if type(value) is dict:
                return _mapping(node, value, depth)
            if type(value) is list:
                raise SerializationFault(
                    f"Unrecognized collection type java.util.Map<java.lang.String, {_java(node.value)}>"
                )
            raise SerializationFault(_CAST if container == "element" else _wrong_type_message(container))
        case ListNode():
            if type(value) is list:
                return _sequence(node, value, depth)
            if type(value) is dict:
                raise SerializationFault(_OBJECT_MISPLACED)
            raise SerializationFault(_CAST if container == "element" else _wrong_type_message(container))
        case IntegerNode():
            return _whole(node, value)
        case TimeNode():
            return _moment(value)
        case BooleanNode():
            return _flag(value)
        case BytesNode():
            return _blob(value)


def _wrong_type_message(container: str) -> str:
    return "Unexpected field type" if container == "field" else "Unexpected value type in payload"


def _mapping(node: MapNode, data: dict[str, Any], depth: int) -> dict[str, Any]:
    coerced: dict[str, Any] = {}
    for key, value in data.items():
        if value is None:
            # A null structure becomes an empty one; a null scalar is dropped.
            if isinstance(node.value, StructureNode):
                coerced[key] = {}
        else:
            coerced[key] = _value(node.value, value, "element", depth)
    return coerced


def _sequence(node: ListNode, data: list[Any], depth: int) -> list[Any]:
    coerced: list[Any] = []
    for value in data:
        if value is None:
            if isinstance(node.element, StructureNode):
                coerced.append({})
        else:
            coerced.append(_value(node.element, value, "element", depth))
    return coerced


def _java(node: Node) -> str:
    match node:
        case StructureNode(name=name):
            return _MODEL + name
        case ListNode(element=element):
            return f"java.util.List<{_java(element)}>"
        case _:
            return "java.lang.String"


def _token(value: Any) -> str:
    """Return the JSON parser's token name for a scalar."""
    if value is True:
        return "TRUE_VALUE"
    if value is False:
        return "FALSE_VALUE"
    if type(value) is int:
        return "NUMBER_VALUE"
    return "DECIMAL_VALUE" if type(value) is float else "STRING_VALUE"


def _refuse_container(value: Any, java: str) -> None:
    if type(value) is list:
        raise SerializationFault(f"Unrecognized collection type class {java}")
    if type(value) is dict:
        raise SerializationFault(_OBJECT_MISPLACED)


def _text(value: Any) -> str:
    if type(value) is str:
        return value
    _refuse_container(value, "java.lang.String")
    raise SerializationFault(f"{_token(value)} cannot be converted to String")


def _whole(node: IntegerNode, value: Any) -> int:
    if type(value) is int or type(value) is float:
        limit = INTEGER_MAX if node.java == "Integer" else LONG_MAX
        if -limit - 1 <= value <= limit:
            return int(value)
    _refuse_container(value, f"java.lang.{node.java}")
    raise SerializationFault(f"{_token(value)} cannot be converted to {node.java}")


def _moment(value: Any) -> float:
    if (type(value) is int or type(value) is float) and abs(value) <= MOMENT_S_MAX:
        return float(value)
    _refuse_container(value, "java.util.Date")
    raise SerializationFault(f"{_token(value)} cannot be converted to Date")


def _flag(value: Any) -> bool:
    if type(value) is bool:
        return value
    if type(value) is str:
        if value.lower() in _TRUE:
            return True
        if value.lower() in _FALSE:
            return False
        raise SerializationFault("Unexpected token received from parser")
    _refuse_container(value, "java.lang.Boolean")
    raise SerializationFault(f"{_token(value)} cannot be converted to Boolean")


def _blob(value: Any) -> str:
    if type(value) is not str:
        _refuse_container(value, "java.nio.ByteBuffer")
        raise SerializationFault("only base-64-encoded strings are convertible to bytes")
    if len(value) % 4:
        raise SerializationFault(
            f"Base64 encoded length is expected a multiple of 4 bytes but found: {len(value)}"
        )
    stray = _not_base64.search(value)
    if stray is not None:
        raise SerializationFault(f"Invalid Base64 character: '{stray[0]}'")
    try:
        # Python ignores leftover bits in the last character; encoding the result again reveals them.
        clean = b2a_base64(a2b_base64(value, strict_mode=True), newline=False) == value.encode()
    except Base64Error:
        clean = False
    if not clean:
        raise SerializationFault("Invalid last non-pad Base64 character dectected")  # AWS's spelling
    return value
