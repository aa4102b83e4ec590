"""Digests: the same text for equal values, whatever the order of their members and the form of their numbers.

Patterns store a digest to find out later whether a value is the same: a repeated request, a record that must not have been
altered. 1, 1.0 and Decimal("1.00") are equal, so are a list and a tuple; None differs from a missing member.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from hashlib import sha256
from hmac import new as hmac
from json.encoder import encode_basestring_ascii as _quoted
from operator import itemgetter
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from tavola.patterns.recipe import PatternError

_first = itemgetter(0)


class NotDigestible(PatternError):
    """A value of a type that has no defined equality."""

    def __init__(self, place: str, value: Any) -> None:
        self.place = place
        self.value = value
        super().__init__(
            f"{place} is of type {type(value).__name__}, which has no stable equality; use strings, numbers, "
            "times, containers, dataclasses or pydantic models"
        )


def digest_of(value: Any, secret: bytes | None = None) -> str:
    """Return 64 hexadecimal digits, the same for equal values; with a secret, an HMAC."""
    encoded = json.dumps(_canonical(value, "the value"), separators=(",", ":")).encode()
    return sha256(encoded).hexdigest() if secret is None else hmac(secret, encoded, "sha256").hexdigest()


def _canonical(value: Any, place: str) -> Any:
    """Return JSON that is the same for equal values; values that are not text are tagged with their kind."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return value
    if kind is dict:  # the common case first
        members = [
            (
                _quoted(k) if type(k) is str else _key(k, place),
                _canonical(v, place if type(v) is str else f"{place}[{k!r}]"),
            )
            for k, v in value.items()
        ]
        return ["M", sorted(members, key=_first)]
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float | Decimal):
        return ["N", _number(value)]
    if isinstance(value, bytes | bytearray | memoryview):
        return ["B", b64encode(value).decode()]
    if isinstance(value, datetime):
        return (value if value.tzinfo is None else value.astimezone(UTC)).isoformat()
    if isinstance(value, date | time | UUID):
        return str(value)
    if isinstance(value, timedelta):
        return ["N", _number(Decimal(value // timedelta(microseconds=1)).scaleb(-6))]
    if isinstance(value, BaseModel):
        value = dict(value)
    elif is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        members = [(_key(k, place), _canonical(v, f"{place}[{k!r}]")) for k, v in value.items()]
        return ["M", sorted(members, key=_first)]
    if isinstance(value, Set):
        return ["S", sorted(json.dumps(_canonical(member, f"{place}{{}}")) for member in value)]
    if isinstance(value, Sequence):
        return ["L", [_canonical(member, f"{place}[{position}]") for position, member in enumerate(value)]]
    raise NotDigestible(place, value)


def _key(name: Any, place: str) -> str:
    return json.dumps(_canonical(name, f"a name in {place}"))


def _number(value: float | Decimal) -> str:
    if type(value) is int:
        digits_text = str(abs(value))
        short = digits_text.rstrip("0")
        return f"{'-' if value < 0 else ''}{short}E{len(digits_text) - len(short)}" if short else "0"
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        return str(exact)
    sign, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    digits_text = "".join(map(str, digits)).lstrip("0")
    short = digits_text.rstrip("0")
    if not short:
        return "0"
    return f"{'-' if sign else ''}{short}E{exponent + len(digits_text) - len(short)}"
