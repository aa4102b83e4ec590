"""Decode a key's bytes into attribute values, to show the key to a person."""

from __future__ import annotations

from base64 import b64encode

from tavola.keys.schema import HASH_BYTES, LENGTH_BYTES, KeyAttribute, KeySchema
from tavola.values import Value, canonical_number

_EXPONENT_BIAS = 129
_CLOSING = b"\x00\x00"


def values_of(schema: KeySchema, key: bytes) -> dict[str, Value]:
    """Return the attributes of a key; those of its partition alone where the key is no longer."""
    found: dict[str, Value] = {}
    at = HASH_BYTES
    for attribute in schema.hash:
        start = at + LENGTH_BYTES
        at = start + int.from_bytes(key[at:start], "big")
        found[attribute.name] = _value(attribute, key[start:at])
    if at == len(key):
        return found
    for attribute in schema.range[:-1]:
        at, found[attribute.name] = _closed_value(attribute, key, at)
    for attribute in schema.range[-1:]:
        found[attribute.name] = _value(attribute, key[at:])
    return found


def _closed_value(attribute: KeyAttribute, key: bytes, at: int) -> tuple[int, Value]:
    if attribute.type == "N":
        end = _number_end(key, at)
        return end, _value(attribute, key[at:end])
    end = at
    while key[end : end + 2] != _CLOSING:
        # A zero byte of the value itself is followed by all ones, and never by another zero.
        end += 2 if key[end] == 0 else 1
    return end + 2, _value(attribute, key[at:end].replace(b"\x00\xff", b"\x00"))


def _value(attribute: KeyAttribute, part: bytes) -> Value:
    if attribute.type == "S":
        return {"S": part.decode()}
    if attribute.type == "N":
        return {"N": _number(part)}
    return {"B": b64encode(part).decode()}


def _number_end(key: bytes, at: int) -> int:
    if key[at] == 0x80:
        return at + 1
    return key.index(b"\x00" if key[at] == 0x81 else b"\xff", at + 2) + 1


def _number(part: bytes) -> str:
    if part[0] == 0x80:
        return "0"
    negative = part[0] == 0x7F
    body = bytes(255 - byte for byte in part[1:]) if negative else part[1:]
    digits = "".join(f"{pair - 1:02d}" for pair in body[1:-1])
    sign = "-" if negative else ""
    return canonical_number(f"{sign}0.{digits}e{body[0] - _EXPONENT_BIAS}")
