"""KeySchema: the hash and range attributes of a table or index, and the encoded key of an item.

The encoded key is four bytes of the partition's hash (see `position`), the hash values with their lengths, then the range values
in sort order. A partition is therefore a prefix, a query is a range of bytes, and a scan, which proceeds by hash, reads rows in the
order in which they are stored and can be split into segments at any hash.

Items of one table may have equal keys in a global index. AWS orders them by a hash of their table keys, so an index's key ends with four
bytes of it, its tie, and its last range value is terminated:

    table, local index    hash │ length, hash value │ … │ range value
    global index          hash │ length, hash value │ … │ range value, end │ tie

Strings sort by their UTF-8 bytes and binary values by unsigned bytes, so both are encoded as themselves. A number becomes a sign
byte, an exponent byte and its digits in pairs. A value that another one follows is terminated, so that it never runs into the
next: joined texts collide (`a#b` + `c` and `a` + `b#c`), these bytes do not. `values_of` decodes a key, to show it to a person.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from tavola.keys.errors import KeyRefused
from tavola.keys.position import POSITION_BYTES, hashed_form, position_of
from tavola.limits import HASH_KEY_BYTES_MAX, RANGE_KEY_BYTES_MAX
from tavola.values import Value, canonical_number, digits_of

LENGTH_BYTES = 2  # before each hash value
_LENGTHS = tuple(length.to_bytes(LENGTH_BYTES, "big") for length in range(HASH_KEY_BYTES_MAX + 1))


class KeyAttribute(Struct, frozen=True):
    """One attribute of a key: its name, and its type S, N or B."""

    name: str
    type: str


class KeySchema(Struct, frozen=True):
    """The attributes that make a key: one hash and at most one range, up to four and four in an index."""

    hash: tuple[KeyAttribute, ...]
    range: tuple[KeyAttribute, ...] = ()
    ties: tuple[KeyAttribute, ...] = ()  # of a global index: the key of its table, which orders equal keys
    attributes: tuple[KeyAttribute, ...] = ()  # derived, as are those below
    names: tuple[str, ...] = ()
    _texts: tuple[str, ...] | None = None  # the two names if the key is a string and a string
    _tie_texts: tuple[str, ...] | None = None  # the names if the ties are strings

    def __post_init__(self) -> None:
        force_setattr(self, "attributes", self.hash + self.range)
        force_setattr(self, "names", tuple(attribute.name for attribute in self.attributes))
        two_texts = len(self.hash) == 1 and [attribute.type for attribute in self.attributes] == ["S", "S"]
        force_setattr(self, "_texts", self.names if two_texts else None)
        texts = all(attribute.type == "S" for attribute in self.ties)
        force_setattr(self, "_tie_texts", tuple(attribute.name for attribute in self.ties) if texts else None)

    def key_of(self, item: Mapping[str, Any]) -> bytes:
        """Return the key of an item as ordered bytes; raise `KeyRefused` if it makes none."""
        key = self.entry_of(item)
        if key is None:
            missing = next(attribute for attribute in self.attributes if attribute.name not in item)
            raise KeyRefused("missing", missing.name, missing.type)
        return key

    def entry_of(self, item: Mapping[str, Any]) -> bytes | None:
        """Return the key of an item, or None if it lacks an attribute and so is not in the index.

        Attributes that are there must fit, whether or not the others are.
        """
        if self._texts is not None:
            # A string and a string, as most keys are; what is not as it should be takes the long way.
            hash_, range_ = self._texts
            if hash_ not in item and range_ not in item:
                return None
            try:
                hash_part: bytes = item[hash_]["S"].encode()
                range_part: bytes = item[range_]["S"].encode()
            except KeyError:
                pass
            else:
                if 0 < len(hash_part) <= HASH_KEY_BYTES_MAX and 0 < len(range_part) <= RANGE_KEY_BYTES_MAX:
                    prefix = position_of(hash_part) + _LENGTHS[len(hash_part)] + hash_part
                    if not self.ties:
                        return prefix + range_part
                    return prefix + terminate_part("S", range_part) + self._tie_of(item)
        hash_bytes = _parts(self.hash, item)
        if hash_bytes is not None and sum(map(len, hash_bytes)) > HASH_KEY_BYTES_MAX:
            raise KeyRefused("hash-size", self.hash[0].name, self.hash[0].type)
        if not self.range and not self.ties:
            return None if hash_bytes is None else partition_prefix(self.hash, hash_bytes)
        range_bytes = _parts(self.range, item)
        if range_bytes is None:
            return None
        if sum(map(len, range_bytes)) > RANGE_KEY_BYTES_MAX:
            raise KeyRefused("range-size", self.range[0].name, self.range[0].type)
        if hash_bytes is None:
            return None
        key = partition_prefix(self.hash, hash_bytes)
        if self.ties:
            for attribute, part in zip(self.range, range_bytes, strict=True):
                key += terminate_part(attribute.type, part)
            return key + self._tie_of(item)
        for attribute, part in zip(self.range[:-1], range_bytes, strict=False):
            key += terminate_part(attribute.type, part)
        return key + range_bytes[-1]

    def without_tie(self, key: bytes) -> bytes:
        """Return a key of a global index as it is in a schema without ties: equal for items with equal keys."""
        if not self.ties:
            return key
        key = key[:-POSITION_BYTES]
        if not self.range or self.range[-1].type == "N":
            return key
        at = end_of_partition(self, key)
        for attribute in self.range[:-1]:
            at = _end_of_part(attribute, key, at)
        return key[:at] + unescape_part(key[at : -len(_CLOSING)])

    def _tie_of(self, item: Mapping[str, Any]) -> bytes:
        """Return what orders an item among those with the same key in a global index."""
        if self._tie_texts is not None:
            try:
                return position_of("".join([item[name]["S"] for name in self._tie_texts]).encode())
            except KeyError:
                pass  # refused below, with the reason
        parts = _parts(self.ties, item)
        if parts is None:
            missing = next(attribute for attribute in self.ties if attribute.name not in item)
            raise KeyRefused("missing", missing.name, missing.type)
        return position_of(
            b"".join(
                [hashed_form(attribute.type, part) for attribute, part in zip(self.ties, parts, strict=True)]
            )
        )


def partition_prefix(attributes: Sequence[KeyAttribute], parts: Sequence[bytes]) -> bytes:
    """Return what the keys of one partition start with, from the bytes of its hash values."""
    if len(parts) == 1:
        part = parts[0]
        return position_of(hashed_form(attributes[0].type, part)) + _LENGTHS[len(part)] + part
    hashed = [hashed_form(attribute.type, part) for attribute, part in zip(attributes, parts, strict=True)]
    body = [_LENGTHS[len(part)] + part for part in parts]
    return position_of(b"".join(hashed)) + b"".join(body)


def hash_parts(schema: KeySchema, values: Sequence[Value]) -> list[bytes]:
    """Return the bytes of a partition's hash values; raise `KeyRefused` where one does not fit."""
    item = {attribute.name: value for attribute, value in zip(schema.hash, values, strict=True)}
    parts = _parts(schema.hash, item)
    assert parts is not None, "a value for each hash attribute was given"
    if sum(map(len, parts)) > HASH_KEY_BYTES_MAX:
        raise KeyRefused("hash-size", schema.hash[0].name, schema.hash[0].type)
    return parts


def _parts(attributes: tuple[KeyAttribute, ...], item: Mapping[str, Any]) -> list[bytes] | None:
    parts: list[bytes] | None = []
    for attribute in attributes:
        value = item.get(attribute.name)
        if value is None:
            parts = None
            continue
        type_ = attribute.type
        content = value.get(type_)
        if content is None:
            raise KeyRefused("type", attribute.name, type_, next(iter(value), ""))
        if not content:
            raise KeyRefused("empty", attribute.name, type_)
        if parts is not None:
            parts.append(content.encode() if type_ == "S" else key_bytes(type_, content))
    return parts


_ZERO = b"\x80"
_CLOSING = b"\x00\x00"
_EXPONENT_BIAS = 129  # the exponents -129 … 126 of 0.DIGITS fill one byte


def key_bytes(type_: str, content: Any) -> bytes:
    """Return the bytes of one key value, such that bytes sort as values of this type sort."""
    if type_ == "S":
        return content.encode()  # type: ignore[no-any-return]  # content of an S is text
    if type_ == "N":
        return number_bytes(content)
    return b64decode(content)


@lru_cache(maxsize=8192)
def number_bytes(text: str) -> bytes:
    """Return a canonical number as bytes that sort numerically and close themselves."""
    negative, digits, exponent = digits_of(text)
    if not digits:
        return _ZERO
    if len(digits) % 2:
        digits += "0"
    pairs = [int(digits[position : position + 2]) + 1 for position in range(0, len(digits), 2)]
    body = bytes([exponent + _EXPONENT_BIAS, *pairs, 0])
    return b"\x7f" + bytes(255 - byte for byte in body) if negative else b"\x81" + body


def terminate_part(type_: str, part: bytes) -> bytes:
    """Return a sort part so that another may follow it without disturbing the order."""
    if type_ == "N":
        return part
    return escape_part(part) + _CLOSING


def escape_part(part: bytes) -> bytes:
    """Return the open form of a part that others follow: its prefix, for begins_with."""
    return part.replace(b"\x00", b"\x00\xff")


def unescape_part(part: bytes) -> bytes:
    """Return a part from its open form."""
    return part.replace(b"\x00\xff", b"\x00")


def successor(prefix: bytes) -> bytes | None:
    """Return the least bytes after everything that starts with `prefix`; None if there are none."""
    trimmed = prefix.rstrip(b"\xff")
    if not trimmed:
        return None
    return trimmed[:-1] + bytes([trimmed[-1] + 1])


def values_of(schema: KeySchema, key: bytes) -> dict[str, Value]:
    """Return the attributes of a key without a tie; those of its partition alone where the key is no longer."""
    values: dict[str, Value] = {}
    at = POSITION_BYTES
    for attribute in schema.hash:
        start = at + LENGTH_BYTES
        at = start + int.from_bytes(key[at:start], "big")
        values[attribute.name] = _value(attribute, key[start:at])
    if at == len(key):
        return values
    for attribute in schema.range[:-1]:
        end = _end_of_part(attribute, key, at)
        part = key[at:end] if attribute.type == "N" else unescape_part(key[at : end - len(_CLOSING)])
        values[attribute.name] = _value(attribute, part)
        at = end
    for attribute in schema.range[-1:]:
        values[attribute.name] = _value(attribute, key[at:])
    return values


def end_of_partition(schema: KeySchema, key: bytes) -> int:
    """Return the length of what all keys of a key's partition start with."""
    end = POSITION_BYTES
    for _ in schema.hash:
        end += LENGTH_BYTES + int.from_bytes(key[end : end + LENGTH_BYTES], "big")
    return end


def _end_of_part(attribute: KeyAttribute, key: bytes, offset: int) -> int:
    """Return where a terminated part ends that begins at an offset."""
    if attribute.type == "N":
        return _number_end(key, offset)
    end = offset
    while key[end : end + 2] != _CLOSING:
        # A zero byte of the value itself is followed by all ones, and never by another zero.
        end += 2 if key[end] == 0 else 1
    return end + 2


def _value(attribute: KeyAttribute, part: bytes) -> Value:
    if attribute.type == "S":
        return {"S": part.decode()}
    if attribute.type == "N":
        return {"N": _number(part)}
    return {"B": b64encode(part).decode()}


def _number_end(key: bytes, offset: int) -> int:
    if key[offset] == 0x80:
        return offset + 1
    return key.index(b"\x00" if key[offset] == 0x81 else b"\xff", offset + 2) + 1


def _number(part: bytes) -> str:
    if part[0] == 0x80:
        return "0"
    negative = part[0] == 0x7F
    body = bytes(255 - byte for byte in part[1:]) if negative else part[1:]
    digits = "".join(f"{pair - 1:02d}" for pair in body[1:-1])
    sign = "-" if negative else ""
    return canonical_number(f"{sign}0.{digits}e{body[0] - _EXPONENT_BIAS}")
