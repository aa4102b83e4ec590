"""Converter: how the values of one Python type are written as attribute values, and read back.

Also the markers that select how a type is stored, and the errors that converters raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tavola.model.errors import ValueNotStorable
from tavola.values import Value

VALUE = "value"  # the subject of an error message until the field is known
_SHOWN_MAX = 60

Encode = Callable[[Any], Value]
Decode = Callable[[Value], Any]


class Exact:
    """Marks a float that is stored as the shortest decimal that reads back as the same float.

    `Attr[Annotated[float, Exact]]`. NaN, the infinities and what is outside DynamoDB's range are refused.
    DynamoDB has one zero, so -0.0 comes back as 0.0, which equals it.
    """


class EpochSeconds:
    """Marks a datetime that is stored as a number of seconds since 1970, as time to live requires.

    A fraction of a second is refused and never rounded: `value.replace(microsecond=0)` says what is meant.
    """


class EpochMilliseconds:
    """Marks a datetime that is stored as a number of milliseconds since 1970; finer fractions are refused."""


MARKERS = frozenset({Exact, EpochSeconds, EpochMilliseconds})


class Converter(Struct, frozen=True, eq=False):
    """An encoder and a decoder for one annotation, and facts about its values.

    `encode` is never given None: a field with the value None is left out. It gives `{}`, no value at all, for an
    empty set, which DynamoDB does not have: leave that out too, and read an attribute that is absent as
    `absent()` where there is one. `decode` gives what pydantic then validates (not strictly); a value of
    another type than it writes is given as plain Python, so that pydantic says what is wrong with it.
    """

    encode: Encode
    decode: Decode
    tags: frozenset[str]  # the DynamoDB types that it writes
    types: tuple[type, ...] = ()  # the classes of the values that it encodes
    key_kind: str | None = None  # what a key template calls it; None: it cannot stand in one
    choices: tuple[Any, ...] | None = None  # all there can be, as plain values in order
    nullable: bool = False  # the annotation allows None
    absent: Callable[[], Any] | None = None  # what an absent attribute reads as: an empty set
    kind: str = "other"  # the family: text, int, list, record, …
    word: str = "other"  # the whole type in words, such as `list[text]`
    detail: Any = None  # for the modules of this package
    # What a step into it leads to, None: any member of it; where nothing is said, all that is plain.
    inside: Callable[[str | int | None], Converter | None] | None = None

    @property
    def encode_inside(self) -> Encode:
        """The encoder for members of a container: None is NULL, an empty set an empty list."""
        if self.kind == "set":
            write: Encode = self.detail or self.encode
            return lambda value: {"NULL": True} if value is None else write(value) or {"L": []}
        encode = self.encode
        return (lambda value: {"NULL": True} if value is None else encode(value)) if self.nullable else encode

    @property
    def decode_inside(self) -> Decode:
        """The decoder for members of a container."""
        decode = self.decode
        return (lambda value: None if "NULL" in value else decode(value)) if self.nullable else decode


def optional(converter: Converter) -> Converter:
    """Return a converter for the same type or None."""
    if converter.nullable:
        return converter
    if converter.kind != "set":
        return replace(converter, nullable=True)
    return replace(
        converter, nullable=True, absent=None, encode=_full(converter.encode), detail=converter.encode
    )


def _full(encode: Encode) -> Encode:
    """Return an encoder that refuses an empty set, which could not be distinguished from None."""

    def encode_full(value: Any) -> Value:
        written = encode(value)
        if not written:
            raise storage_error(
                "an empty set is stored as a missing attribute, which this field reads as None; remove "
                "None from the type, or use None"
            )
        return written

    return encode_full


def wrong_type_error(value: Any, expected: str) -> ValueNotStorable:
    """Return the error for a value whose type is not its field's."""
    return storage_error(f"{show_value(value)} is of type {type(value).__name__}; give {expected}")


def storage_error(problem: str) -> ValueNotStorable:
    """Return the error for a value, without its place yet; see `with_place`."""
    return ValueNotStorable(VALUE, problem)


def with_place(error: ValueNotStorable, place: str) -> ValueNotStorable:
    """Return an error with the place of its value in front: `with_place(error, "Ticket.address")`."""
    inner = error.place.removeprefix(VALUE) if error.place.startswith(VALUE) else f": {error.place}"
    return ValueNotStorable(place + inner, error.problem)


def find_unencodable(encode: Encode, members: Iterable[tuple[str, Any]]) -> ValueNotStorable:
    """Return the error for the first member that cannot be encoded, with its place."""
    for step, member in members:
        try:
            encode(member)
        except ValueNotStorable as error:
            return with_place(error, VALUE + step)
    raise AssertionError("a member was refused a moment ago")


def show_value(value: Any) -> str:
    """Return a value as text for error messages, shortened."""
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 1]}…"
