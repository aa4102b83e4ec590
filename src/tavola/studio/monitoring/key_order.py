"""Order and label partition keys for people.

Encoded keys start with a hash, so their bytes are in random order. Here they are sorted by their values, numbers inside a
string by value, so that keys created one after the other are adjacent.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tavola.keys import LENGTH_BYTES, POSITION_BYTES, KeySchema, hashed_form, position_of, values_of
from tavola.limits import MULTI_KEY_ATTRIBUTES_MAX
from tavola.values import Value

_NUMBERED = re.compile(r"(?<![0-9A-Za-z])([A-Za-z]*)0*([0-9]+)(?![0-9A-Za-z])")  # not a ULID
_SHOWN = 120  # characters of a key in a label

Order: TypeAlias = tuple[object, ...]
"""Compares with another of the same schema; never equal for two keys."""


class Keys(Protocol):
    """The order and labels of the keys of a table or index."""

    def order(self, partition: bytes) -> Order:
        """Return the sort order of a partition key."""
        ...

    def label(self, key: bytes) -> str:
        """Return a key as text, its parts separated by a space."""
        ...

    def values(self, key: bytes) -> dict[str, Value] | None:
        """Return the attributes of a key; None if unknown."""
        ...


@dataclass(frozen=True, slots=True)
class SchemaKeys:
    """Encoded keys of the engine, decoded with their schema."""

    schema: KeySchema

    def order(self, partition: bytes) -> Order:
        """Return the values of a partition key as they sort, and the key itself."""
        at = POSITION_BYTES
        parts: list[object] = []
        for attribute in self.schema.hash:
            start = at + LENGTH_BYTES
            at = start + int.from_bytes(partition[at:start], "big")
            part = partition[start:at]
            parts.append(natural(part.decode("utf-8", "replace")) if attribute.type == "S" else part)
        return (*parts, partition)

    def label(self, key: bytes) -> str:
        """Return the values of a key separated by a space; binary in base64."""
        values = self.values(key)
        if values is None:
            return f"key {key.hex()[:_SHOWN]}"
        text = " ".join([str(next(iter(value.values()))) for value in values.values()])
        return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"

    def values(self, key: bytes) -> dict[str, Value] | None:
        """Return the attributes of a key; None for a key of an older schema, as of an index that was recreated."""
        try:
            return values_of(self.schema, key)
        except (ArithmeticError, IndexError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class HashedKeys:
    """Hashed keys of an access log, which have neither order nor values."""

    def order(self, partition: bytes) -> Order:
        """Return the hash."""
        return (partition,)

    def label(self, key: bytes) -> str:
        """Return the hash as in the log."""
        return f"hash {key.decode('ascii', 'replace')}"

    def values(self, key: bytes) -> None:
        """Return None: a hash cannot be reversed."""
        return


def natural(text: str) -> str:
    """Return a sort key for a text in which trailing numbers of words sort by value."""
    return _NUMBERED.sub(_by_value, text)


def _by_value(match: re.Match[str]) -> str:
    # More digits mean a larger number; a leading 0 because digits sort before letters.
    return f"{match[1]}0{chr(0x30 + len(match[2]))}{match[2]}"


def hash_count(key: bytes) -> int | None:
    """Return the number of values in a key's hash, found by its position; None if it is not an encoded key.

    A key does not say which of its values are numbers, so each value is tried as one if it can be.
    """
    at, count = POSITION_BYTES, 0
    hashed = [b""]  # the hashed forms of the values so far, as texts or numbers
    while at + LENGTH_BYTES <= len(key) and count < MULTI_KEY_ATTRIBUTES_MAX:
        start = at + LENGTH_BYTES
        at = start + int.from_bytes(key[at:start], "big")
        count += 1
        forms = _hashed_forms(key[start:at])
        hashed = [before + form for before in hashed for form in forms]
        if at <= len(key) and any(position_of(each) == key[:POSITION_BYTES] for each in hashed):
            return count
    return None


def _hashed_forms(part: bytes) -> list[bytes]:
    forms = [hashed_form("S", part)]
    with suppress(ValueError, IndexError):
        forms.append(hashed_form("N", part))
    return forms


def partition_of(key: bytes, count: int) -> bytes:
    """Return the partition key part of a key whose hash has `count` values."""
    at = POSITION_BYTES + LENGTH_BYTES + (key[POSITION_BYTES] << 8 | key[POSITION_BYTES + 1])
    for _ in range(count - 1):
        at += LENGTH_BYTES + (key[at] << 8 | key[at + 1])
    return key[:at]
