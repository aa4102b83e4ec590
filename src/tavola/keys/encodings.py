"""Encodings of strings, numbers, times, UUIDs and choices inside a key, so that the text sorts as the value does.

Strings. Let D be the delimiter and E the next character (`#` and `$`). In a string that another field follows, every character up
to and including E becomes E and two hexadecimal digits; all other characters are above E and stay as they are. Two consequences:

- No encoded string contains D, so the end of a field is unambiguous.
- Joined strings sort as tuples. If one string continues where another ends, it continues with a character above D, so `a` + D
  sorts below `ab` + D, as `a` sorts below `ab`. An escape starts with the lowest character in use, and escapes sort as what they encode.

    values   ("a", "x")   ("a#b", "x")   ("ab", "x")
    keys      a#x          a$23b#x        ab#x

The last string of a key ends with the key and is written unchanged.

Whole numbers are padded to a fixed width. A negative number is `-` and the nines' complement of its digits: `-` sorts below every
digit, and of two negative numbers the one farther from zero sorts first. Descending order complements the positive numbers
instead, and writes the negative ones plain after a `~`, which sorts above every digit.

Decimals that DynamoDB can hold are written as `1`, three digits of exponent, the significant digits and a `.`, which sorts below
every digit. Zero is `0`. A negative number is `-` and the nines' complement of the same digits, ended by `~`. No encoded number is
a prefix of another, and equal numbers have the same text. Fixed point is a padded whole number with a decimal point.

Dates and times are in UTC and of fixed width. Descending order replaces each digit by its nines' complement and keeps the punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any
from uuid import UUID

from tavola.keys.errors import KeyPartRefused
from tavola.keys.part import ANY, LAST, Mode, Shape, character_set, digit_shape, literal_shape, show_value
from tavola.values import NumberRefused, canonical_number, digits_of

_HEX = "0123456789ABCDEF"
_HEX_COMPLEMENTS = str.maketrans("0123456789abcdef", "fedcba9876543210")


def escape_sign(delimiter: str) -> str:
    """Return the character that escapes begin with: the one after the delimiter."""
    return chr(ord(delimiter) + 1)


def text_encoder(mode: Mode, delimiter: str, final: bool) -> Callable[[object], str]:
    """Return the function that writes a string into its place of a key."""
    if final or mode == "raw":
        return _verbatim
    sign = escape_sign(delimiter)
    low = re.compile(f"[\\x00-\\x{ord(sign):02x}]")
    search = low.search
    if mode == "refuse":

        def refusing(value: object) -> str:
            text = _verbatim(value)
            match = search(text)
            if match is not None:
                raise KeyPartRefused(
                    f"{show_value(text)} holds {match[0]!r}, and characters up to {sign!r} have no place before "
                    f"the delimiter {delimiter!r}; remove it from the value, or remove `refuse` from the template to escape it",
                    value,
                )
            return text

        return refusing
    escapes = {code: f"{sign}{code:02X}" for code in range(ord(sign) + 1)}

    def encoding(value: object) -> str:
        text = value if type(value) is str and value.isascii() else _verbatim(value)
        return text if search(text) is None else text.translate(escapes)

    return encoding


def text_decoder(mode: Mode, delimiter: str, final: bool) -> Callable[[str], str]:
    """Return the function that reads what `text_encoder` wrote."""
    if final or mode != "encode":
        return str
    sign = escape_sign(delimiter)
    escape = re.compile(re.escape(sign) + "([0-9A-F]{2})")

    def decoding(text: str) -> str:
        return escape.sub(lambda match: chr(int(match[1], 16)), text) if sign in text else text

    return decoding


def text_pattern(mode: Mode, delimiter: str, final: bool) -> str:
    """Return the regular expression of a string in its place."""
    if final:
        return ".*"
    if mode == "raw":
        return ".*?"
    sign = escape_sign(delimiter)
    above = f"[^\\x00-\\x{ord(sign):02x}]"
    return f"{above}*" if mode == "refuse" else f"(?:{above}|{re.escape(sign)}[0-9A-F]{{2}})*"


def text_shape(mode: Mode, delimiter: str, final: bool) -> Shape:
    """Return what a string in its place may hold."""
    if final or mode == "raw":
        return ((ANY, "any"),)
    sign = escape_sign(delimiter)
    above = ANY & ~((1 << ord(sign) + 1) - 1)
    return ((above | character_set(sign + _HEX), "any"),) if mode == "encode" else ((above, "any"),)


def predecessor(text: str) -> str:
    """Return the greatest text below `text`: no text without LAST lies between the two."""
    code = ord(text[-1])
    if code == 0:
        return text[:-1]
    return text[:-1] + chr(0xD7FF if code == 0xE000 else code - 1) + LAST


def _verbatim(value: object) -> str:
    if not isinstance(value, str):
        raise KeyPartRefused(f"{show_value(value)} is not a string; use a str", value)
    # A string that is also a member of an Enum would otherwise print its name.
    text = value if type(value) is str else str.__str__(value)
    if text.isascii():
        return text
    if LAST in text:
        raise KeyPartRefused(
            "a key cannot contain U+10FFFF, which marks the end of key ranges; remove it", value
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise KeyPartRefused(
            f"{show_value(text)} is half of a surrogate pair; give whole characters", value
        ) from None
    return text


_COMPLEMENTS = bytes.maketrans(b"0123456789", b"9876543210")


def complement(text: str) -> str:
    """Return an ASCII text with each of its digits taken from nine, which turns the order of such texts round."""
    # As bytes: a third of the time that a string takes.
    return text.encode().translate(_COMPLEMENTS).decode()


def whole_encoder(width: int, descending: bool) -> Callable[[object], str]:
    """Return the function that writes an int in so many digits."""
    limit: int = 10**width
    top = limit - 1
    plain, signed = f"%0{width}d", f"-%0{width}d"
    fallen = f"~%0{width}d"

    def encode_ascending(value: object) -> str:
        number = value if type(value) is int else _whole(value)
        if 0 <= number < limit:
            return plain % number
        if -limit < number < 0:
            return signed % (top + number)
        raise _too_wide(number, width)

    def encode_descending(value: object) -> str:
        number = value if type(value) is int else _whole(value)
        if 0 <= number < limit:
            return plain % (top - number)
        if -limit < number < 0:
            return fallen % -number
        raise _too_wide(number, width)

    return encode_descending if descending else encode_ascending


def whole_decoder(width: int, descending: bool) -> Callable[[str], int]:
    """Return the function that reads what `whole_encoder` wrote."""
    top: int = 10**width - 1

    def decode_ascending(text: str) -> int:
        return int(text[1:]) - top if text[0] == "-" else int(text)

    def decode_descending(text: str) -> int:
        return -int(text[1:]) if text[0] == "~" else top - int(text)

    return decode_descending if descending else decode_ascending


def whole_pattern(width: int, descending: bool) -> str:
    """Return the regular expression of an int in so many digits."""
    return f"{'~' if descending else '-'}?[0-9]{{{width}}}"


def whole_shapes(form: str, descending: bool) -> tuple[Shape, ...]:
    """Return the shapes of a padded number, with its sign and without."""
    return digit_shape(form), literal_shape("~" if descending else "-") + digit_shape(form)


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise KeyPartRefused(f"{show_value(value)} is not an integer; use an int", value)


def _too_wide(number: int, width: int) -> KeyPartRefused:
    return KeyPartRefused(
        f"{show_value(number)} needs more than the {width} digits of its place; "
        "use a smaller number, or declare a larger width for the template",
        number,
    )


_BIAS = 500  # in the middle of three digits; the exponents of 0.DIGITS go from -129 to 126

FLOATING = r"0|1[0-9]{3}[0-9]+\.|-[0-9]{3}[0-9]+~"


def floating_encoder(descending: bool) -> Callable[[object], str]:
    """Return the function that writes any number."""

    def encode(value: object) -> str:
        negative, digits, exponent = _digits(value)
        if not digits:
            return "0"
        body = f"{exponent + _BIAS:03d}{digits}"
        # A descending number is its negative, ascending.
        return f"-{complement(body)}~" if negative != descending else f"1{body}."

    return encode


def floating_decoder(descending: bool) -> Callable[[str], Decimal]:
    """Return the function that reads what `floating_encoder` wrote."""

    def decode(text: str) -> Decimal:
        if text == "0":
            return Decimal(0)
        body = text[1:-1]
        negative = text[0] == "-"
        if negative:
            body = complement(body)
        sign = "-" if negative != descending else ""
        try:
            return Decimal(canonical_number(f"{sign}0.{body[3:]}e{int(body[:3]) - _BIAS}"))
        except NumberRefused as refused:
            raise ValueError(str(refused)) from None

    return decode


def fixed_encoder(whole: int, fraction: int, descending: bool) -> Callable[[object], str]:
    """Return the function that writes a number in so many digits before and after its point."""
    padded = whole_encoder(whole + fraction, descending)

    def encode(value: object) -> str:
        negative, digits, exponent = _digits(value)
        shift = exponent - len(digits) + fraction
        if shift < 0 or exponent > whole:
            raise KeyPartRefused(
                f"{show_value(value)} does not fit {whole} digits before the point and {fraction} after; "
                "round it first, or declare a wider place for all keys of this template",
                value,
            )
        scaled = int(digits or "0") * 10**shift if digits else 0
        text = padded(-scaled if negative else scaled)
        return f"{text[:-fraction]}.{text[-fraction:]}" if fraction else text

    return encode


def fixed_decoder(whole: int, fraction: int, descending: bool) -> Callable[[str], Decimal]:
    """Return the function that reads what `fixed_encoder` wrote."""
    padded = whole_decoder(whole + fraction, descending)

    def decode(text: str) -> Decimal:
        # As text, since a product of decimals is rounded to the precision of the context.
        return Decimal(canonical_number(f"{padded(text.replace('.', ''))}e-{fraction}"))

    return decode


def _digits(value: object) -> tuple[bool, str, int]:
    if isinstance(value, float):
        raise KeyPartRefused(f"{show_value(value)} is a float, which is not exact; use a Decimal", value)
    if isinstance(value, bool) or not isinstance(value, (Decimal, int)):
        raise KeyPartRefused(f"{show_value(value)} is not a decimal number; use a Decimal", value)
    try:
        return digits_of(canonical_number(str(value)))
    except (NumberRefused, ValueError) as refused:
        raise KeyPartRefused(f"{show_value(value)} is not a DynamoDB number: {refused}", value) from None


# Each with the form of its text, the coarser the later; the first is exact.
DATETIME_FORMS = {
    "us": "0000-00-00T00:00:00.000000Z",
    "ms": "0000-00-00T00:00:00.000Z",
    "s": "0000-00-00T00:00:00Z",
    "minute": "0000-00-00T00:00",
    "hour": "0000-00-00T00",
    "day": "0000-00-00",
    "month": "0000-00",
    "year": "0000",
}
DATE_FORMS = {"day": "0000-00-00", "month": "0000-00", "year": "0000"}

_FIRST = "0001-01-01T00:00:00.000000"


def datetime_encoder(grain: str, descending: bool) -> Callable[[object], str]:
    """Return the function that writes a moment, cut to its grain."""
    form = DATETIME_FORMS[grain]
    end = "Z" if form.endswith("Z") else ""
    width = len(form) - len(end)

    def encode(value: object) -> str:
        if not isinstance(value, datetime):
            raise KeyPartRefused(f"{show_value(value)} is not a datetime; use one with a time zone", value)
        moment = value if value.tzinfo is UTC else _in_utc(value)
        return _utc_text(moment)[:width] + end

    return encode if not descending else lambda value: complement(encode(value))


def datetime_decoder(grain: str, descending: bool) -> Callable[[str], datetime]:
    """Return the function that reads a moment in UTC: the first one of its grain."""
    ends = DATETIME_FORMS[grain].endswith("Z")
    rest = "" if ends else _FIRST[len(DATETIME_FORMS[grain]) :] + "Z"

    def decode(text: str) -> datetime:
        return datetime.fromisoformat((complement(text) if descending else text) + rest)

    return decode


def date_encoder(grain: str, descending: bool) -> Callable[[object], str]:
    """Return the function that writes a date, cut to its grain."""
    width = len(DATE_FORMS[grain])

    def encode(value: object) -> str:
        if not isinstance(value, date) or isinstance(value, datetime):
            raise KeyPartRefused(f"{show_value(value)} is not a date; use a date without a time", value)
        return date.isoformat(value)[:width]

    return encode if not descending else lambda value: complement(encode(value))


def date_decoder(grain: str, descending: bool) -> Callable[[str], date]:
    """Return the function that reads a date: the first one of its grain."""

    def decode(text: str) -> date:
        shown = complement(text) if descending else text
        return date.fromisoformat(shown + _FIRST[len(shown) : 10])

    return decode


@lru_cache(maxsize=1024)
def _utc_text(moment: datetime) -> str:
    """Return a moment in UTC to the microsecond; a put writes the same one into key after key."""
    # By hand: isoformat asks the zone for its offset and spells it, which takes half as long again.
    return "%04d-%02d-%02dT%02d:%02d:%02d.%06d" % (  # noqa: UP031  # and an f-string twice as long
        moment.year,
        moment.month,
        moment.day,
        moment.hour,
        moment.minute,
        moment.second,
        moment.microsecond,
    )


def _in_utc(value: datetime) -> datetime:
    if value.utcoffset() is None:
        raise KeyPartRefused(
            f"{show_value(value)} has no time zone; use one, as in datetime.now(UTC)",
            value,
        )
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise KeyPartRefused(f"{show_value(value)} is outside the years 1 to 9999 in UTC", value) from None


def raw_int(value: object) -> str:
    """Return a whole number without padding."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    raise KeyPartRefused(f"{show_value(value)} is not an integer; use an int", value)


def bool_encoder(descending: bool) -> Callable[[object], str]:
    """Return the function that writes a bool as a digit."""

    def encode(value: object) -> str:
        if value is True or value is False:
            return "1" if value is not descending else "0"
        raise KeyPartRefused(f"{show_value(value)} is not a bool; use True or False", value)

    return encode


def uuid_encoder(descending: bool) -> Callable[[object], str]:
    """Return the function that writes a UUID as its text, with complemented digits for descending order."""

    def encode(value: object) -> str:
        if not isinstance(value, UUID):
            raise KeyPartRefused(f"{show_value(value)} is not a UUID; use a uuid.UUID", value)
        return str(value).translate(_HEX_COMPLEMENTS) if descending else str(value)

    return encode


def uuid_decoder(descending: bool) -> Callable[[str], UUID]:
    """Return the function that reads a UUID back."""
    return lambda text: UUID(text.translate(_HEX_COMPLEMENTS) if descending else text)


def choice_encoder(choices: tuple[Any, ...], texts: Sequence[str]) -> Callable[[Any], str]:
    """Return the function that writes one of several choices; it takes a member of an Enum as well as its value."""
    table: dict[object, str] = dict(zip(choices, texts, strict=True)) | dict(
        zip(plain_choices(choices), texts, strict=True)
    )
    takes_bool = any(isinstance(value, bool) for value in plain_choices(choices))

    def encode(value: object) -> str:
        try:
            if takes_bool or (value is not True and value is not False):
                return table[value]
        except (KeyError, TypeError):
            pass
        some = ", ".join(repr(plain) for plain in plain_choices(choices[:12]))
        raise KeyPartRefused(f"{show_value(value)} is not one of its choices; use one of {some}", value)

    return encode


def plain_choices(choices: tuple[Any, ...]) -> list[Any]:
    """Return the values of choices; an Enum member whose value cannot be a key represents itself."""
    return [
        choice.value if isinstance(choice, Enum) and isinstance(choice.value, (str, int)) else choice
        for choice in choices
    ]
