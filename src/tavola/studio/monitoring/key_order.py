"""Order and label partition keys for people.

Encoded keys start with a hash, so their bytes are in random order. Here they are sorted by their values, numbers inside a
string by value, so that keys created one after the other are adjacent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from zlib import crc32

from tavola.keys import KeySchema, values_of
from tavola.values import Value

_HASH_BYTES = 4
_LENGTH_BYTES = 2
_NUMBERED = re.compile(r"(?<![0-9A-Za-z])([A-Za-z]*)0*([0-9]+)(?![0-9A-Za-z])")  # not a ULID
_SHOWN = 120  # characters of a key; the rest is of no use on a map

Order: TypeAlias = tuple[object, ...]
"""Compares with another of the same schema; never equal for two keys."""


class Keys(Protocol):
    """How the keys of a table or index are ordered and told."""

    def order(self, partition: bytes) -> Order:
        """Return what a partition key sorts by."""
        ...

    def label(self, key: bytes) -> str:
        """Return a key as a person reads it; of a whole key, its parts with a space between."""
        ...

    def values(self, key: bytes) -> dict[str, Value] | None:
        """Return the attributes of a key, None where nobody knows them."""
        ...


@dataclass(frozen=True, slots=True)
class SchemaKeys:
    """Keys of the engine, read by their schema."""

    schema: KeySchema

    def order(self, partition: bytes) -> Order:
        """Return the values of a partition key in the order they sort by, and the key itself."""
        at = _HASH_BYTES
        parts: list[object] = []
        for attribute in self.schema.hash:
            start = at + _LENGTH_BYTES
            at = start + int.from_bytes(partition[at:start], "big")
            part = partition[start:at]
            parts.append(natural(part.decode("utf-8", "replace")) if attribute.type == "S" else part)
        return (*parts, partition)

    def label(self, key: bytes) -> str:
        """Return the values of a key with a space between them; binary in base64."""
        values = self.values(key)
        if values is None:
            return f"key {key.hex()[:_SHOWN]}"
        text = " ".join([str(next(iter(value.values()))) for value in values.values()])
        return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"

    def values(self, key: bytes) -> dict[str, Value] | None:
        """Return the attributes of a key; None of one that another schema made, as of an index that was made anew."""
        try:
            return values_of(self.schema, key)
        except (ArithmeticError, IndexError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class HashedKeys:
    """Keys of which an access log has the hash alone: they lie anywhere, and say nothing."""

    def order(self, partition: bytes) -> Order:
        """Return the hash."""
        return (partition,)

    def label(self, key: bytes) -> str:
        """Return the hash as the log writes it."""
        return f"hash {key.decode('ascii', 'replace')}"

    def values(self, key: bytes) -> None:
        """Return nothing: a hash does not go back."""
        return


def natural(text: str) -> str:
    """Return what a text sorts by: a word that ends in digits by their value, before words that go on otherwise."""
    return _NUMBERED.sub(_by_value, text)


def _by_value(match: re.Match[str]) -> str:
    # The more digits the larger; a nought before them, since digits sort before letters.
    return f"{match[1]}0{chr(0x30 + len(match[2]))}{match[2]}"


def hash_count(key: bytes) -> int | None:
    """Return how many values the hash of a key was made of, which its checksum tells; None if it is no such key."""
    hash_value = int.from_bytes(key[:_HASH_BYTES], "big")
    at, count = _HASH_BYTES, 0
    while at + _LENGTH_BYTES <= len(key):
        at += _LENGTH_BYTES + int.from_bytes(key[at : at + _LENGTH_BYTES], "big")
        count += 1
        if at <= len(key) and crc32(key[_HASH_BYTES:at]) == hash_value:
            return count
    return None


def partition_of(key: bytes, count: int) -> bytes:
    """Return the partition of a key whose hash has so many values."""
    at = _HASH_BYTES + _LENGTH_BYTES + (key[_HASH_BYTES] << 8 | key[_HASH_BYTES + 1])
    for _ in range(count - 1):
        at += _LENGTH_BYTES + (key[at] << 8 | key[at + 1])
    return key[:at]
