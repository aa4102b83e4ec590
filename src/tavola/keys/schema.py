"""KeySchema: the hash and range attributes of a table or index, and the encoded key of an item.

The encoded key is four bytes of the partition's hash, the hash values with their lengths, then the range values in sort
order. A partition is therefore a prefix, a query is a range of bytes, and a scan, which proceeds by hash, can be split into
segments at any hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

from msgspec import Struct
from msgspec.structs import force_setattr

from tavola.keys.errors import KeyRefused
from tavola.keys.order import key_bytes, terminate_part
from tavola.limits import HASH_KEY_BYTES_MAX, RANGE_KEY_BYTES_MAX
from tavola.values import Value

HASH_BYTES = 4  # of a key, at its start
HASH_SPACE = 1 << 8 * HASH_BYTES
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
    attributes: tuple[KeyAttribute, ...] = ()  # derived, as are the two below
    names: tuple[str, ...] = ()
    _texts: tuple[str, ...] | None = None  # the two names if the key is a string and a string

    def __post_init__(self) -> None:
        force_setattr(self, "attributes", self.hash + self.range)
        force_setattr(self, "names", tuple(attribute.name for attribute in self.attributes))
        two_texts = len(self.hash) == 1 and [each.type for each in self.attributes] == ["S", "S"]
        force_setattr(self, "_texts", self.names if two_texts else None)

    def key_of(self, item: Mapping[str, Any]) -> bytes:
        """Return the key of an item as ordered bytes; raise `KeyRefused` if it makes none."""
        key = self.entry_of(item)
        if key is None:
            missing = next(each for each in self.attributes if each.name not in item)
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
                    body = _LENGTHS[len(hash_part)] + hash_part
                    return crc32(body).to_bytes(HASH_BYTES, "big") + body + range_part
        hash_bytes = _parts(self.hash, item)
        if hash_bytes is not None and sum(map(len, hash_bytes)) > HASH_KEY_BYTES_MAX:
            raise KeyRefused("hash-size", self.hash[0].name, self.hash[0].type)
        if not self.range:
            return None if hash_bytes is None else partition_prefix(hash_bytes)
        range_bytes = _parts(self.range, item)
        if range_bytes is None:
            return None
        if sum(map(len, range_bytes)) > RANGE_KEY_BYTES_MAX:
            raise KeyRefused("range-size", self.range[0].name, self.range[0].type)
        if hash_bytes is None:
            return None
        key = partition_prefix(hash_bytes)
        for attribute, part in zip(self.range[:-1], range_bytes, strict=False):
            key += terminate_part(attribute.type, part)
        return key + range_bytes[-1]


def partition_prefix(parts: Sequence[bytes]) -> bytes:
    """Return what the keys of one partition start with, from the bytes of its hash values."""
    if len(parts) == 1:
        body = _LENGTHS[len(parts[0])] + parts[0]
    else:
        body = b"".join([_LENGTHS[len(part)] + part for part in parts])
    return crc32(body).to_bytes(HASH_BYTES, "big") + body


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
