"""Part: how one value is written inside a key, and what is known of its texts without a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

Mode = Literal["", "encode", "refuse", "raw"]
Often = Literal["one", "any"]

# What one place of a text may hold: a bit for each ASCII character, and one for all others.
Signs = int
# A run of places, each taken once or any number of times. A part has one shape, or several to choose from.
Shape = tuple[tuple[Signs, Often], ...]

OTHERS: Signs = 1 << 128
ANY: Signs = (1 << 129) - 1

LAST = "\U0010ffff"
"""The last character there is, which no text in a key may hold: so `prefix + LAST` ends every prefix."""

DIGITS = "0123456789"


class Part(Struct, frozen=True, eq=False):
    """How the values of one field are written into a key, in an order that their texts keep."""

    kind: str
    spec: str
    encode: Callable[[Any], str]  # raises KeyPartRefused for a value that cannot be written
    decode: Callable[[str], Any]  # of a text that fits `pattern`; ValueError where it still is none
    pattern: str  # a regular expression that every text fits
    shapes: tuple[Shape, ...]
    choices: tuple[Any, ...] | None = None
    descending: bool = False
    ordered: bool = True  # texts sort as values do, or the other way round where it is descending
    closed: bool = True  # no text is the start of another, so that anything may follow
    fixed_width: int | None = None
    grain: int = 0  # 0: the value can be read back; above: digits are dropped, the more the higher
    mode: Mode = ""  # what is done with the delimiter, where the part is text
    least: str = ""  # no text sorts before this
    most: str = ""  # every text sorts before this and LAST

    @property
    def is_lossy(self) -> bool:
        """Tell whether values that differ may be written alike."""
        return self.grain > 0


def show_value(value: object) -> str:
    """Return a value as a sentence can name it."""
    try:
        spelt = repr(value)
    except ValueError:  # an int of thousands of digits
        return "a number with very many digits"
    return spelt if len(spelt) <= 60 else spelt[:59] + "…"


def character_set(characters: str) -> Signs:
    """Return the set of these characters."""
    held = 0
    for character in characters:
        held |= 1 << ord(character) if character.isascii() else OTHERS
    return held


def literal_shape(text: str) -> Shape:
    """Return the shape of a literal text; characters beyond ASCII are not distinguished."""
    return tuple((character_set(character), "one") for character in text)


def digit_shape(form: str) -> Shape:
    """Return the shape of a fixed-width form in which 0 stands for any digit."""
    return tuple((character_set(DIGITS if character == "0" else character), "one") for character in form)
