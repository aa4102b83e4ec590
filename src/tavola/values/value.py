"""A DynamoDB value: its ten types, equality and order, numbers, and the errors of invalid values.

A value is DynamoDB JSON: a dict with one entry, type tag to content. Binary stays base64 text, and numbers stay text in
canonical form. Nothing is converted on the way in or out; an item is decoded only if its contents are needed.

A number has up to 38 digits and a limited range. Its canonical text is plain decimal: no exponent, no leading or trailing
zeros, no plus sign, and zero is `0`. Two numbers are equal exactly if their texts are.
"""

from __future__ import annotations

import re
from base64 import b64decode
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any

import msgspec

from tavola.errors import TavolaError
from tavola.limits import NUMBER_DIGITS_MAX, NUMBER_EXPONENT_MAX, NUMBER_EXPONENT_MIN

Value = dict[str, Any]
Item = dict[str, Value]

TAGS = ("S", "N", "B", "SS", "NS", "BS", "M", "L", "BOOL", "NULL")
_SETS = ("SS", "NS", "BS")

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Item)

encode_item = _encoder.encode
decode_item = _decoder.decode

_SYNTAX = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?)([0-9]+))?", re.ASCII)
_OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
_UNDERFLOW = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
_TOO_PRECISE = f"Attempting to store more than {NUMBER_DIGITS_MAX} significant digits in a Number"
_NOT_NUMERIC = "The parameter cannot be converted to a numeric value"

# Wide enough that the sum of the largest and the smallest number is exact.
_EXACT = Context(prec=NUMBER_EXPONENT_MAX - NUMBER_EXPONENT_MIN + NUMBER_DIGITS_MAX + 2)
_CACHED_TEXT_MAX = 64


class ValueRefused(TavolaError):
    """A value of the right shape that DynamoDB does not accept: a ValidationException.

    DynamoDB words some refusals in two ways, by operation and region; both are carried, and the
    calling operation chooses. A `bare` message has no prefix in any operation.
    """

    remedy = "Fix the value or expression above; nothing was changed."

    def __init__(self, classic: str, modern: str | None = None, *, bare: bool = False) -> None:
        self.classic = classic
        self.modern = classic if modern is None else modern
        self.bare = bare
        super().__init__(self.modern)


class NumberRefused(ValueRefused):
    """Text that is no DynamoDB number, or a result that no DynamoDB number can hold."""


class DuplicatesRefused(ValueRefused):
    """A set that names a member twice."""


class ValueMalformed(TavolaError):
    """JSON that does not deserialise into an attribute value: a SerializationException."""

    remedy = "Fix the value or expression above; nothing was changed."


def tag_of(value: Value) -> str:
    """Return the type tag of an admitted value."""
    for tag in value:
        return tag
    raise AssertionError("an admitted value has exactly one tag")


def equal(left: Value, right: Value) -> bool:
    """Tell whether two admitted values are the same: deep, sets without order, numbers as numbers."""
    if left == right:
        return True
    for tag, mine in left.items():
        theirs = right.get(tag)
        if theirs is None:
            return False
        if tag in _SETS:
            return len(mine) == len(theirs) and set(mine) == set(theirs)
        if tag == "L":
            return len(mine) == len(theirs) and all(map(equal, mine, theirs))
        if tag == "M":
            return mine.keys() == theirs.keys() and all(equal(mine[name], theirs[name]) for name in mine)
    return False


def compare(left: Value, right: Value) -> int | None:
    """Return -1, 0 or 1 for two strings, numbers or binaries; None where there is no order."""
    for tag, mine in left.items():
        theirs = right.get(tag)
        if theirs is None:
            return None
        if tag == "S":
            return _order(mine.encode(), theirs.encode())
        if tag == "N":
            a, b = decimal_of(mine), decimal_of(theirs)
            return (a > b) - (a < b)
        if tag == "B":
            return _order(b64decode(mine), b64decode(theirs))
    return None


def _order(first: bytes, second: bytes) -> int:
    return (first > second) - (first < second)


# Numbers


def canonical_number(text: str) -> str:
    """Return the one text of the number that `text` spells; refuse what DynamoDB refuses."""
    return admit_number(text)[0]


def admit_number(text: str) -> tuple[str, int]:
    """Return the canonical text of a number and the bytes it counts for."""
    if len(text) <= _CACHED_TEXT_MAX:
        return _admit_cached(text)
    return _admit(text)


def number_size(text: str) -> int:
    """Return the bytes that a number counts for."""
    return admit_number(text)[1]


def add_numbers(left: str, right: str) -> str:
    """Return the exact sum; refuse one that no number can hold."""
    return _result(_EXACT.add(decimal_of(left), decimal_of(right)))


def subtract_numbers(left: str, right: str) -> str:
    """Return the exact difference; refuse one that no number can hold."""
    return _result(_EXACT.subtract(decimal_of(left), decimal_of(right)))


@lru_cache(maxsize=8192)
def decimal_of(text: str) -> Decimal:
    """Return a canonical number as a Decimal, exactly."""
    return Decimal(text)


def digits_of(text: str) -> tuple[bool, str, int]:
    """Return sign, significant digits and decimal exponent of a canonical number.

    The value is 0.DIGITS times ten to the exponent; zero has no digits.
    """
    negative = text.startswith("-")
    whole, _, fraction = text.lstrip("-").partition(".")
    whole = whole.lstrip("0")
    if whole:
        return negative, (whole + fraction).rstrip("0"), len(whole)
    digits = fraction.lstrip("0")
    return negative, digits, len(digits) - len(fraction)


def _result(value: Decimal) -> str:
    try:
        return canonical_number(str(value))
    except NumberRefused as refused:
        # AWS reports a sum with too many digits as an overflow.
        raise NumberRefused(_OVERFLOW) from refused


def _admit(text: str) -> tuple[str, int]:
    if text.isascii() and text.isdigit() and text[0] != "0" and len(text) <= NUMBER_DIGITS_MAX:
        # A whole number as most are: it is canonical already.
        return text, 1 + (len(text.rstrip("0")) + 1) // 2
    match = _SYNTAX.fullmatch(text)
    whole, fraction = (match[2], match[3] or "") if match else ("", "")
    if not match or not (whole or fraction):
        raise NumberRefused(f"{_NOT_NUMERIC}: {text}" if text else _NOT_NUMERIC, f"{_NOT_NUMERIC}: {text}")
    whole = whole.lstrip("0")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) if whole else len(digits) - len(fraction)
    digits = digits.rstrip("0")
    if not digits:
        return "0", 1
    point = _shift(point, match[4] == "-", match[5] or "0")
    if len(digits) > NUMBER_DIGITS_MAX:
        raise NumberRefused(_TOO_PRECISE)
    negative = match[1] == "-"
    return _render(negative, digits, point), _size(negative, digits, point)


_admit_cached = lru_cache(maxsize=65536)(_admit)


def _shift(point: int, exponent_negative: bool, exponent: str) -> int:
    exponent = exponent.lstrip("0")
    # Ten digits reach past every number; more would only make the arithmetic slow.
    size = int(exponent[:10] or "0")
    magnitude = point - size if exponent_negative else point + size
    if magnitude - 1 > NUMBER_EXPONENT_MAX:
        # The older layer keeps the exponent in 32 bits and wraps round.
        wrapped = len(exponent) >= 10 and int(exponent[:10]) >= 2**31 - 1
        raise NumberRefused(_UNDERFLOW if wrapped else _OVERFLOW, _OVERFLOW)
    if magnitude - 1 < NUMBER_EXPONENT_MIN:
        raise NumberRefused(_UNDERFLOW)
    return magnitude


def _render(negative: bool, digits: str, point: int) -> str:
    sign = "-" if negative else ""
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return f"{sign}{digits}{'0' * (point - len(digits))}"
    return f"{sign}{digits[:point]}.{digits[point:]}"


def _size(negative: bool, digits: str, point: int) -> int:
    integer_digits = min(max(point, 0), len(digits))
    fraction = len(digits) - integer_digits
    return 1 + (integer_digits + 1) // 2 + (fraction + 1) // 2 + negative
