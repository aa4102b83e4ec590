"""Scalars: converters of text, numbers, booleans, bytes, UUIDs, enums and literals; times are in `times`."""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64
from decimal import Decimal, InvalidOperation
from enum import Enum, Flag
from typing import Any
from uuid import UUID

from msgspec import to_builtins

from tavola.model.converters.converter import (
    Converter,
    Decode,
    Encode,
    show_value,
    storage_error,
    wrong_type_error,
)
from tavola.model.converters.plain import (
    decode_plain,
    encode_bytes,
    encode_decimal,
    encode_float,
    encode_int,
    encode_plain,
    encode_text,
)
from tavola.model.errors import ValueNotStorable
from tavola.values import Value

_S = frozenset({"S"})
_N = frozenset({"N"})


def _decode_text(value: Value) -> Any:
    try:
        return value["S"]
    except KeyError:
        return decode_plain(value)


def _decode_int(value: Value) -> Any:
    try:
        return int(value["N"])
    except (KeyError, ValueError):
        return decode_plain(value)


def _decode_decimal(value: Value) -> Any:
    try:
        return Decimal(value["N"])
    except (KeyError, InvalidOperation):
        return decode_plain(value)


def _decode_float(value: Value) -> Any:
    try:
        return float(value["N"])
    except (KeyError, ValueError):
        return decode_plain(value)


def _encode_bool(value: Any) -> Value:
    if value is True or value is False:
        return {"BOOL": value}
    raise wrong_type_error(value, "True or False")


def _decode_bool(value: Value) -> Any:
    try:
        return value["BOOL"]
    except KeyError:
        return decode_plain(value)


def _decode_bytes(value: Value) -> Any:
    try:
        return a2b_base64(value["B"])
    except (KeyError, Base64Error):
        return decode_plain(value)


def _encode_uuid(value: Any) -> Value:
    if type(value) is UUID:
        return {"S": to_builtins(value)}  # three times as fast as str
    if isinstance(value, UUID):
        return {"S": str(value)}
    raise wrong_type_error(value, "a UUID")


TEXT = Converter(encode_text, _decode_text, _S, (str,), "text", kind="text", word="text")
INT = Converter(encode_int, _decode_int, _N, (int,), "int", kind="int", word="int")
DECIMAL = Converter(
    encode_decimal, _decode_decimal, _N, (Decimal,), "decimal", kind="decimal", word="decimal"
)
FLOAT = Converter(encode_float, _decode_float, _N, (float,), kind="float", word="float")
BOOL = Converter(_encode_bool, _decode_bool, frozenset({"BOOL"}), (bool,), "bool", kind="bool", word="bool")
BYTES = Converter(encode_bytes, _decode_bytes, frozenset({"B"}), (bytes,), kind="bytes", word="bytes")
# The text is left to pydantic, which makes a UUID of it in a third of the time that Python needs.
IDENTIFIER = Converter(_encode_uuid, _decode_text, _S, (UUID,), "uuid", kind="uuid", word="uuid")
NULL = Converter(
    lambda value: {"NULL": True}, decode_plain, frozenset({"NULL"}), nullable=True, kind="null", word="null"
)


def of_enum(cls: type[Enum]) -> Converter:
    """Return the converter of an enum: its members by value, which must be text or integers."""
    members = list(cls)
    if issubclass(cls, Flag):
        return Converter(
            lambda value: encode_int(_member(cls, value).value),
            _flag_decoder(cls),
            _N,
            (cls,),
            kind="int",
            word=cls.__name__,
        )
    plain = tuple(_plain(member) for member in members)
    if not members or None in plain:
        raise ValueNotStorable(
            cls.__name__, f"the members of {cls.__name__} are stored by value; give each text or an integer"
        )
    return _choice(cls.__name__, members, plain, _enum_encoder(cls, plain), (cls,))


def _member(cls: type[Enum], value: Any) -> Enum:
    """Return a member as it is, a member's value as its member; refuse the rest."""
    try:
        return cls(value)
    except ValueError as error:
        raise storage_error(f"{show_value(value)} is no {cls.__name__}; give a member of it") from error


def _enum_encoder(cls: type[Enum], plain: tuple[Any, ...]) -> Encode:
    if all(type(value) is str for value in plain):

        def encode_text_member(member: Any) -> Value:
            if type(member) is not cls:
                member = _member(cls, member)
            value = member._value_
            return {"S": value if type(value) is str else str.__str__(value)}

        return encode_text_member

    def encode_member(member: Any) -> Value:
        return encode_plain(_plain(member if type(member) is cls else _member(cls, member)))

    return encode_member


def _flag_decoder(cls: type[Flag]) -> Decode:
    def decode_flag(value: Value) -> Any:
        try:
            return cls(int(value["N"]))
        except (KeyError, ValueError):
            return decode_plain(value)

    return decode_flag


def of_literal(values: tuple[Any, ...]) -> Converter:
    """Return the converter of `Literal[…]`: text, integers, booleans, members of enums."""
    members = [value for value in values if value is not None]
    plain = tuple(_plain(value) for value in members)
    word = " | ".join(map(repr, plain)) or "null"
    if None in plain:
        raise ValueNotStorable(
            f"Literal{list(values)}", "a literal is stored as text or as an integer; give these"
        )
    written = {
        (type(member), member): encode_plain(value) for member, value in zip(members, plain, strict=True)
    }

    def encode_literal(value: Any) -> Value:
        try:
            return written[type(value), value].copy()
        except (KeyError, TypeError) as error:
            raise storage_error(f"{show_value(value)} is none of {word}") from error

    if plain and all(type(member) is str for member in members):
        allowed = frozenset(members)

        def encode_literal_text(value: Any) -> Value:
            if type(value) is str and value in allowed:
                return {"S": value}
            if isinstance(value, str) and str.__str__(value) in allowed:
                return {"S": str.__str__(value)}
            raise storage_error(f"{show_value(value)} is none of {word}")

        return _choice(word, members, plain, encode_literal_text, (str,), nullable=None in values)
    types = tuple(dict.fromkeys(type(member) for member in members))
    return _choice(word, members, plain, encode_literal, types, nullable=None in values)


def _choice(
    word: str,
    members: list[Any],
    plain: tuple[Any, ...],
    encode: Encode,
    types: tuple[type, ...],
    *,
    nullable: bool = False,
) -> Converter:
    """Return the converter of values of which there are only these, written as plain values."""
    stored = {_content(value): member for value, member in zip(plain, members, strict=True)}
    tags = frozenset(tag for tag, _ in stored)
    decode = decode_plain if not stored else choice_decoder(stored, decode_plain)
    kinds = {type(value) for value in plain}
    key_kind = "enum" if kinds == {str} else "int" if kinds == {int} else None
    return Converter(
        encode, decode, tags, types, key_kind, plain, nullable, detail=stored, kind="choice", word=word
    )


def choice_decoder(stored: dict[tuple[str, Any], Any], otherwise: Decode) -> Decode:
    """Return the decoder that gives the Python value of each stored one, and others as another decoder does."""
    tags = {tag for tag, _ in stored}
    if len(tags) == 1:
        (tag,) = tags
        by_content = {content: member for (_, content), member in stored.items()}

        def decode_one_tag(value: Value) -> Any:
            try:
                return by_content[value[tag]]
            except KeyError:
                return otherwise(value)

        return decode_one_tag

    def decode_choice(value: Value) -> Any:
        for tag, content in value.items():
            if type(content) is not list and type(content) is not dict and (tag, content) in stored:
                return stored[tag, content]
        return otherwise(value)

    return decode_choice


def _content(value: Any) -> tuple[str, Any]:
    ((tag, content),) = encode_plain(value).items()
    return tag, content


def _plain(member: Any) -> Any:
    """Return what a member is stored as: text, an integer, a boolean or bytes; None for anything else."""
    value = member.value if isinstance(member, Enum) else member
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value if isinstance(value, bool | bytes) else None
