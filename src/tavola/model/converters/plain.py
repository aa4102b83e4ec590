"""Plain values: text, numbers, bytes, booleans, None and containers of these, converted by their own type.

Used for fields of type `Any` and JSON, and for reading values that a field did not expect. An integer reads as int, other
numbers as Decimal, or as float where floats are exact.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from tavola.model.converters.converter import (
    VALUE,
    Converter,
    Encode,
    find_unencodable,
    show_value,
    storage_error,
    with_place,
    wrong_type_error,
)
from tavola.model.errors import ValueNotStorable
from tavola.values import TAGS, NumberRefused, Value, canonical_number

SET_ORDER: Mapping[str, Callable[[str], bytes]] = {"B": a2b_base64}
"""By which the members of a set are sorted, as DynamoDB returns them: binaries by their bytes, others by their text."""

_SMALL = 10**18  # below it no integer can be refused
_FLOAT_WHOLE_MAX = 2**53  # up to it every integer is a float
_SET_TAGS = {str: "SS", int: "NS", Decimal: "NS", float: "NS", bytes: "BS"}
FLOAT_REMEDY = (
    "floats are binary, DynamoDB numbers are decimal: use Decimal, or Annotated[float, "
    "Exact] to store the shortest decimal that reads back as the same float"
)


def number_text(value: Any, render: Callable[[Any], str] = str) -> str:
    """Return a number as DynamoDB writes it, exactly; refuse one that it cannot hold."""
    try:
        return canonical_number(render(value))
    except (NumberRefused, ValueError) as error:  # ValueError: an int of thousands of digits
        raise storage_error(
            f"{_show_type(value)} cannot be stored exactly: DynamoDB's numbers have up to 38 digits and reach "
            "from 1E-130 to 9.99E+125; round it yourself, or store it as text"
        ) from error


def _show_type(value: Any) -> str:
    try:
        return show_value(value)
    except ValueError:
        return "an integer with thousands of digits"


def encode_int(value: Any) -> Value:
    """Return an integer as N."""
    if type(value) is int and -_SMALL < value < _SMALL:
        return {"N": str(value)}
    if isinstance(value, int):
        return {"N": number_text(int(value))}
    raise wrong_type_error(value, "an int")


def encode_decimal(value: Any) -> Value:
    """Return a Decimal or an integer as N."""
    if isinstance(value, Decimal | int):
        return {"N": number_text(value if isinstance(value, Decimal) else int(value))}
    raise wrong_type_error(value, "a Decimal, such as Decimal('0.1')")


def encode_float(value: Any) -> Value:
    """Return a float as N: the shortest decimal that reads back as the same float."""
    if isinstance(value, float):
        return {"N": number_text(value, float.__repr__)}
    if isinstance(value, int) and abs(value) <= _FLOAT_WHOLE_MAX:
        return {"N": number_text(int(value))}
    raise wrong_type_error(value, "a float")


def encode_bytes(value: Any) -> Value:
    """Return bytes as B."""
    if isinstance(value, bytes | bytearray | memoryview):
        return {"B": b2a_base64(value, newline=False).decode()}
    raise wrong_type_error(value, "bytes")


def encode_text(value: Any) -> Value:
    """Return text as S."""
    if type(value) is str:
        return {"S": value}
    if isinstance(value, str):
        return {"S": str.__str__(value)}
    raise wrong_type_error(value, "text")


def _encode_checked_text(value: str) -> Value:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise storage_error(
                f"{show_value(value)} contains a lone surrogate; store it as bytes"
            ) from error
    return {"S": value}


def _encoder(exact: bool) -> Encode:
    """Return the encoder of plain values, with or without floats."""

    def encode_list(value: Any) -> Value:
        try:
            return {"L": [encode(member) for member in value]}
        except ValueNotStorable as error:
            raise find_unencodable(
                encode, ((f"[{place}]", member) for place, member in enumerate(value))
            ) from error

    def encode_map(value: Mapping[Any, Any]) -> Value:
        written = {}
        for name, member in value.items():
            if type(name) is not str or not name:
                raise storage_error(
                    f"{show_value(name)} names a member of a map; DynamoDB wants text that is not empty"
                )
            try:
                written[name] = encode(member)
            except ValueNotStorable as error:
                raise with_place(error, f"{VALUE}.{name}") from error
        return {"M": written}

    def encode_set(value: Any) -> Value:
        tags = {_SET_TAGS.get(type(member)) for member in value}
        tag = tags.pop() if len(tags) == 1 else None
        if tag is None:
            raise storage_error(
                f"{show_value(value)} is not a DynamoDB set, which contains only strings, only numbers or only binary values and is never empty; "
                "use a list"
            )
        scalar = tag[0]
        return {tag: sorted({encode(member)[scalar] for member in value}, key=SET_ORDER.get(scalar))}

    encoders: dict[type, Callable[[Any], Value]] = {
        str: _encode_checked_text,
        bool: lambda value: {"BOOL": value},
        int: encode_int,
        type(None): lambda value: {"NULL": True},
        Decimal: encode_decimal,
        bytes: encode_bytes,
        bytearray: encode_bytes,
        list: encode_list,
        tuple: encode_list,
        dict: encode_map,
        set: encode_set,
        frozenset: encode_set,
    }
    if exact:
        encoders[float] = encode_float

    def encode(value: Any) -> Value:
        encode_type = encoders.get(type(value))
        if encode_type is not None:
            return encode_type(value)
        if isinstance(value, float):
            raise storage_error(f"{show_value(value)} is a float: {FLOAT_REMEDY}")
        raise storage_error(
            f"{show_value(value)} is of type {type(value).__name__}, and this field does not say how it is stored; "
            "declare the type instead of Any, or give text, a number, bytes or a container"
        )

    return encode


def _decoder(fraction: Callable[[str], Any]) -> Callable[[Value], Any]:
    """Return the decoder of plain values, given the type of numbers that are not integers."""

    def number(text: str) -> Any:
        try:
            return int(text)
        except ValueError:
            return fraction(text)

    decoders: dict[str, Callable[[Any], Any]] = {
        "S": lambda content: content,
        "N": number,
        "B": a2b_base64,
        "BOOL": lambda content: content,
        "NULL": lambda content: None,
        "L": lambda content: [decode(member) for member in content],
        "M": lambda content: {name: decode(member) for name, member in content.items()},
        "SS": set,
        "NS": lambda content: {number(member) for member in content},
        "BS": lambda content: {a2b_base64(member) for member in content},
    }

    def decode(value: Value) -> Any:
        for tag, content in value.items():
            return decoders[tag](content)
        raise AssertionError("a stored value has exactly one tag")

    return decode


encode_plain = _encoder(exact=False)
decode_plain = _decoder(Decimal)
decode_exact = _decoder(float)

_ALL_TAGS = frozenset(TAGS)
ANY = Converter(encode_plain, decode_plain, _ALL_TAGS, nullable=True, kind="any", word="any")
EXACT_ANY = Converter(_encoder(exact=True), decode_exact, _ALL_TAGS, nullable=True, kind="any", word="any")
