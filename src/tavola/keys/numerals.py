"""Encodings of whole numbers inside a key, padded to a fixed width so that the text sorts as the number does.

A negative number is `-` and the nines' complement of its digits: `-` sorts below every digit, and of two negative numbers the one
farther from zero sorts first. Descending order complements the positive numbers instead, and writes the negative ones plain
after a `~`, which sorts above every digit.
"""

from __future__ import annotations

from collections.abc import Callable

from tavola.keys.errors import KeyPartRefused
from tavola.keys.part import Shape, digit_shape, literal_shape, show_value

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

    def ascending(value: object) -> str:
        number = value if type(value) is int else _whole(value)
        if 0 <= number < limit:
            return plain % number
        if -limit < number < 0:
            return signed % (top + number)
        raise _too_wide(number, width)

    def turned(value: object) -> str:
        number = value if type(value) is int else _whole(value)
        if 0 <= number < limit:
            return plain % (top - number)
        if -limit < number < 0:
            return fallen % -number
        raise _too_wide(number, width)

    return turned if descending else ascending


def whole_decoder(width: int, descending: bool) -> Callable[[str], int]:
    """Return the function that reads what `whole_encoder` wrote."""
    top: int = 10**width - 1

    def ascending(text: str) -> int:
        return int(text[1:]) - top if text[0] == "-" else int(text)

    def turned(text: str) -> int:
        return -int(text[1:]) if text[0] == "~" else top - int(text)

    return turned if descending else ascending


def whole_pattern(width: int, descending: bool) -> str:
    """Return the regular expression of an int in so many digits."""
    return f"{'~' if descending else '-'}?[0-9]{{{width}}}"


def whole_shapes(form: str, descending: bool) -> tuple[Shape, ...]:
    """Return the shapes of a padded number, with its sign and without."""
    return digit_shape(form), literal_shape("~" if descending else "-") + digit_shape(form)


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise KeyPartRefused(f"{show_value(value)} is no whole number; give an int", value)


def _too_wide(number: int, width: int) -> KeyPartRefused:
    return KeyPartRefused(
        f"{show_value(number)} needs more than the {width} digits of its place; "
        "give a smaller number, or declare a wider place for all keys of this template",
        number,
    )
