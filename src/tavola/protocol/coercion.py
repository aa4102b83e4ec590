"""Serialization: a body walked beside its shape, as AWS's deserialiser walks it.

Only a body that the decoder or a later check has refused comes here. AWS finds every type error before
any other, so the walk comes before a refusal is raised; what AWS converts ("true" for a boolean, 1.5 for
an integer) the walk converts too. Members are walked in the order of the body, as a stream is read.
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
from tavola.protocol.shapes import Blob, Flag, Mapping, Moment, Node, Sequence, Structure, Text, Whole

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
# Attribute values nest, and the walk recurses. What lies deeper than any value may is not looked at and
# counts as empty: the values room refuses what is around it.
_STRUCTURES_WALKED = 2 * NESTING_LEVELS_MAX
_generic = msgspec.json.Decoder().decode


def decode_json(body: bytes) -> Any:
    """Return a body as plain JSON data; a SerializationFault without a text where it is none."""
    try:
        body.decode()
        return _generic(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise SerializationFault from None


def coerce_body(structure: Structure, body: bytes) -> dict[str, Any]:
    """Return the body as AWS understands it, or raise the SerializationFault that AWS raises.

    Unknown and null members are dropped; what converts is converted.
    """
    data = decode_json(body)
    if type(data) is not dict:
        raise SerializationFault
    return _structure(structure, data, 0)


def _structure(structure: Structure, data: dict[str, Any], depth: int) -> dict[str, Any]:
    mended: dict[str, Any] = {}
    if depth > _STRUCTURES_WALKED:
        return mended
    members = structure.members
    for name, value in data.items():
        if value is not None and name in members:
            mended[name] = _value(members[name].node, value, "field", depth)
    return mended


def _value(node: Node, value: Any, place: str, depth: int) -> Any:
    """Walk one value, which stands as a structure's "field" or as an "element" of a list or map."""
    match node:
        case Text():
            return _text(value)
        case Structure():
            if type(value) is dict:
                return _structure(node, value, depth + 1)
            if type(value) is list:
                raise SerializationFault(f"Unrecognized collection type class {_MODEL}{node.name}")
            raise SerializationFault(_misplaced(place))
        case Mapping():
            if type(value) is dict:
                return _mapping(node, value, depth)
            if type(value) is list:
                raise SerializationFault(
                    f"Unrecognized collection type java.util.Map<java.lang.String, {_java(node.value)}>"
                )
            raise SerializationFault(_CAST if place == "element" else _misplaced(place))
        case Sequence():
            if type(value) is list:
                return _sequence(node, value, depth)
            if type(value) is dict:
                raise SerializationFault(_OBJECT_MISPLACED)
            raise SerializationFault(_CAST if place == "element" else _misplaced(place))
        case Whole():
            return _whole(node, value)
        case Moment():
            return _moment(value)
        case Flag():
            return _flag(value)
        case Blob():
            return _blob(value)


def _misplaced(place: str) -> str:
    return "Unexpected field type" if place == "field" else "Unexpected value type in payload"


def _mapping(node: Mapping, data: dict[str, Any], depth: int) -> dict[str, Any]:
    mended: dict[str, Any] = {}
    for key, value in data.items():
        if value is None:
            # A null structure has no members; a null text is no entry.
            if isinstance(node.value, Structure):
                mended[key] = {}
        else:
            mended[key] = _value(node.value, value, "element", depth)
    return mended


def _sequence(node: Sequence, data: list[Any], depth: int) -> list[Any]:
    mended: list[Any] = []
    for value in data:
        if value is None:
            if isinstance(node.element, Structure):
                mended.append({})
        else:
            mended.append(_value(node.element, value, "element", depth))
    return mended


def _java(node: Node) -> str:
    match node:
        case Structure(name=name):
            return _MODEL + name
        case Sequence(element=element):
            return f"java.util.List<{_java(element)}>"
        case _:
            return "java.lang.String"


def _token(value: Any) -> str:
    """Return the parser's name of a JSON scalar."""
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


def _whole(node: Whole, value: Any) -> int:
    if type(value) is int or type(value) is float:
        most = INTEGER_MAX if node.java == "Integer" else LONG_MAX
        if -most - 1 <= value <= most:
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
        # Python lets bits past the last byte be; what it gives back has none.
        clean = b2a_base64(a2b_base64(value, strict_mode=True), newline=False) == value.encode()
    except Base64Error:
        clean = False
    if not clean:
        raise SerializationFault("Invalid last non-pad Base64 character dectected")  # AWS's spelling
    return value
