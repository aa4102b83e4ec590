"""Encode key values as bytes in DynamoDB's sort order.

Strings sort by their UTF-8 bytes and binary values by unsigned bytes, so both are encoded as themselves. A number becomes a sign
byte, an exponent byte and its digits in pairs. A value that another one follows is terminated, so that a value never runs
into the next; joined texts collide (`a#b` + `c` and `a` + `b#c`), these bytes do not.
"""

from __future__ import annotations

from base64 import b64decode
from functools import lru_cache
from typing import Any

from tavola.values import digits_of

_ZERO = b"\x80"
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
    pairs = [int(digits[at : at + 2]) + 1 for at in range(0, len(digits), 2)]
    body = bytes([exponent + _EXPONENT_BIAS, *pairs, 0])
    return b"\x7f" + bytes(255 - byte for byte in body) if negative else b"\x81" + body


def terminate_part(type_: str, part: bytes) -> bytes:
    """Return a sort part so that another may follow it without disturbing the order."""
    if type_ == "N":
        return part
    return escape_part(part) + b"\x00\x00"


def escape_part(part: bytes) -> bytes:
    """Return the open form of a part that others follow: its prefix, for begins_with."""
    return part.replace(b"\x00", b"\x00\xff")


def successor(prefix: bytes) -> bytes | None:
    """Return the least bytes after everything that starts with `prefix`; None if there are none."""
    trimmed = prefix.rstrip(b"\xff")
    if not trimmed:
        return None
    return trimmed[:-1] + bytes([trimmed[-1] + 1])
