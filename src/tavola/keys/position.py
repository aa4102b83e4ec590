"""The position of a partition: where its items are in a scan, as on AWS.

A scan goes through the partitions in the order of a hash of their keys, and a segment of a parallel scan is an equal share of
the hashes:

    position  =  MD5("Outliers" + bytes of the hash key), read as a big-endian number of 128 bits
    segment   =  position · TotalSegments // 2 ** 128

A string is hashed as UTF-8 and a binary value as itself. A number is hashed in a form of its own (`hashed_form`), which is not
the form that keys are ordered by (`schema.number_bytes`). Of several hash attributes the bytes are hashed one after the other.

Four bytes of the hash are enough, because a key continues with the partition key itself: partitions whose four bytes are equal
stay apart, in an order that is not that of AWS. Of tables with 10,000 partitions, about one in a hundred has such a pair.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

_md5: Callable[[bytes], Any]
try:
    # CPython's own implementation takes half the time of OpenSSL's for a short text, and each access to an item needs one.
    _md5 = import_module("_md5").md5
except ImportError:
    _md5 = partial(hashlib.md5, usedforsecurity=False)

POSITION_BYTES = 4  # of a key, at its start
POSITIONS = 1 << 8 * POSITION_BYTES

_SALT = b"Outliers"
_ZERO = b"\x80"
_ORDERED_BIAS = 129  # of the exponent in the ordered form
_ORDERED_NEGATIVE = 0x7F
_PAIRS_MAX = 20
_NEGATIVE_END = 102


def position_of(hashed: bytes) -> bytes:
    """Return the position of a partition from the hashed form of its key."""
    return _md5(_SALT + hashed).digest()[:POSITION_BYTES]  # type: ignore[no-any-return]  # bytes


def hashed_form(type_: str, part: bytes) -> bytes:
    """Return the bytes of a key value that are hashed, from those that it is ordered by."""
    return _hashed_number(part) if type_ == "N" else part


@lru_cache(maxsize=4096)
def _hashed_number(ordered: bytes) -> bytes:
    """Return the form in which AWS hashes a number: half of an even exponent, then the digits in pairs.

    The value is 0.DIGITS times ten to the exponent. An odd exponent is made even by a 0 before the digits.
    """
    if ordered == _ZERO:
        return _ZERO
    negative = ordered[0] == _ORDERED_NEGATIVE
    body = bytes(255 - byte for byte in ordered[1:]) if negative else ordered[1:]
    exponent = body[0] - _ORDERED_BIAS
    digits = "".join([f"{pair - 1:02d}" for pair in body[1:-1]])
    if exponent % 2:
        digits, exponent = "0" + digits.removesuffix("0"), exponent + 1
    if len(digits) % 2:
        digits += "0"
    pairs = [int(digits[position : position + 2]) for position in range(0, len(digits), 2)]
    head = (exponent // 2 - 64) % 256
    if not negative:
        return bytes([head, *[pair + 1 for pair in pairs]])
    end = [_NEGATIVE_END] if len(pairs) < _PAIRS_MAX else []
    return bytes([255 - head, *[101 - pair for pair in pairs], *end])
