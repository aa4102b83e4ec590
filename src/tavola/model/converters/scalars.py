"""Scalars: converters of text, numbers, booleans, bytes, UUIDs, enums, literals and times.

A datetime always has a time zone: one without is refused, because the machine's own zone is hardly ever meant. It is stored in
UTC and in one width, so that the texts sort as the times do; with a marker (`EpochSeconds`), as a number.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal, InvalidOperation
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
    number_text,
)
from tavola.model.errors import ValueNotStorable
from tavola.values import Value

_S = frozenset({"S"})
_N = frozenset({"N"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WIDTH = len("2026-01-31T12:00:00.000000Z")
_SECONDS_A_DAY = 86_400
_MICRO = 1_000_000
_EXACT = Context(prec=300)  # wider than any number, whatever precision the caller's thread works with


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
            cls.__name__, f"members of {cls.__name__} are stored by value; give each a string or an integer"
        )
    return _choice(cls.__name__, members, plain, _enum_encoder(cls, plain), (cls,))


def _member(cls: type[Enum], value: Any) -> Enum:
    """Return the enum member for a member or its value; refuse other values."""
    try:
        return cls(value)
    except ValueError as error:
        raise storage_error(f"{show_value(value)} is not a member of {cls.__name__}") from error


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
            f"Literal{list(values)}", "literals are stored as strings or integers; use only these"
        )
    written = {
        (type(member), member): encode_plain(value) for member, value in zip(members, plain, strict=True)
    }

    def encode_literal(value: Any) -> Value:
        try:
            return written[type(value), value].copy()
        except (KeyError, TypeError) as error:
            raise storage_error(f"{show_value(value)} is not one of {word}") from error

    if plain and all(type(member) is str for member in members):
        allowed = frozenset(members)

        def encode_literal_text(value: Any) -> Value:
            if type(value) is str and value in allowed:
                return {"S": value}
            if isinstance(value, str) and str.__str__(value) in allowed:
                return {"S": str.__str__(value)}
            raise storage_error(f"{show_value(value)} is not one of {word}")

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
    """Return the converter of a fixed set of choices, which are stored as plain values."""
    stored = {_content(value): member for value, member in zip(plain, members, strict=True)}
    tags = frozenset(tag for tag, _ in stored)
    decode = decode_plain if not stored else choice_decoder(stored, decode_plain)
    kinds = {type(value) for value in plain}
    key_kind = "enum" if kinds == {str} else "int" if kinds == {int} else None
    return Converter(
        encode, decode, tags, types, key_kind, plain, nullable, detail=stored, kind="choice", word=word
    )


def choice_decoder(stored: dict[tuple[str, Any], Any], otherwise: Decode) -> Decode:
    """Return a decoder that maps stored choices to their Python values, and passes other values to another decoder."""
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
    """Return the stored form of a choice: text, an integer, a boolean or bytes; None for anything else."""
    value = member.value if isinstance(member, Enum) else member
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value if isinstance(value, bool | bytes) else None


def _encode_datetime(value: Any) -> Value:
    if type(value) is not datetime or value.tzinfo is not UTC:
        value = _in_utc(value)
    text = to_builtins(value)  # a fifth of the time that isoformat takes
    return {"S": text if len(text) == _WIDTH else f"{text[:19]}.000000Z"}


def _in_utc(value: Any) -> datetime:
    """Return a datetime in UTC; refuse other values, and datetimes without a time zone."""
    if not isinstance(value, datetime):
        raise wrong_type_error(value, "a datetime with a time zone")
    if value.utcoffset() is None:
        raise storage_error(
            f"{show_value(value)} has no time zone; use datetime.now(UTC), or value.replace(tzinfo=…)"
        )
    try:
        moment = value.astimezone(UTC)
    except OverflowError as error:
        raise storage_error(f"{show_value(value)} lies outside the years 1 to 9999 in UTC") from error
    return datetime(
        moment.year,
        moment.month,
        moment.day,
        moment.hour,
        moment.minute,
        moment.second,
        moment.microsecond,
        UTC,
    )


def _decode_datetime(value: Value) -> Any:
    try:
        return datetime.fromisoformat(value["S"])
    except (KeyError, ValueError):
        return decode_plain(value)


def _epoch_encoder(micros: int, unit: str, remedy: str) -> Encode:
    """Return an encoder of datetimes as whole units since 1970."""

    def encode_epoch(value: Any) -> Value:
        moment = value if type(value) is datetime and value.tzinfo is UTC else _in_utc(value)
        since = moment - _EPOCH
        if since.microseconds % micros:
            raise storage_error(
                f"{show_value(value)} has a fraction of a {unit}, which this field cannot hold; give {remedy}"
            )
        whole_units = (since.days * _SECONDS_A_DAY + since.seconds) * (_MICRO // micros)
        return {"N": str(whole_units + since.microseconds // micros)}

    return encode_epoch


def _epoch_decoder(micros: int) -> Decode:
    """Return a decoder of datetimes from units since 1970, with or without fractions."""

    def decode_epoch(value: Value) -> Any:
        try:
            text = value["N"]
            if micros == _MICRO and text.isdigit():
                return datetime.fromtimestamp(int(text), UTC)
            since = _duration(text, micros)
            return decode_plain(value) if since is None else _EPOCH + since
        except (KeyError, ValueError, OverflowError, OSError):
            return decode_plain(value)

    return decode_epoch


def whole_second(value: Any) -> Any:
    """Return a datetime without its fraction of a second; anything else as it is, to be refused by its converter."""
    return value.replace(microsecond=0) if isinstance(value, datetime) else value


def _encode_expiry(value: Any) -> Value:
    return EPOCH_SECONDS.encode(whole_second(value))


def _encode_date(value: Any) -> Value:
    if type(value) is date:
        return {"S": to_builtins(value)}
    if isinstance(value, date) and not isinstance(value, datetime):
        return {"S": date.isoformat(value)}
    raise wrong_type_error(value, "a date; use value.date() for a datetime")


def _decode_date(value: Value) -> Any:
    try:
        return date.fromisoformat(value["S"])
    except (KeyError, ValueError):
        return decode_plain(value)


def _encode_time(value: Any) -> Value:
    if not isinstance(value, time):
        raise wrong_type_error(value, "a time of day")
    if value.tzinfo is not None and value.utcoffset() is None:
        raise storage_error(
            f"{show_value(value)} has a time zone whose offset depends on the date; use a fixed offset, or store the "
            "name of the zone in a field of its own"
        )
    return {"S": time.isoformat(value, "microseconds")}


def _decode_time(value: Value) -> Any:
    try:
        return time.fromisoformat(value["S"])
    except (KeyError, ValueError):
        return decode_plain(value)


def _encode_duration(value: Any) -> Value:
    if not isinstance(value, timedelta):
        raise wrong_type_error(value, "a timedelta")
    seconds = value.days * _SECONDS_A_DAY + value.seconds
    if not value.microseconds:
        return {"N": str(seconds)}
    return {"N": number_text(Decimal(seconds * _MICRO + value.microseconds).scaleb(-6, _EXACT))}


def _decode_duration(value: Value) -> Any:
    try:
        duration = _duration(value["N"], _MICRO)
        return decode_plain(value) if duration is None else duration
    except (KeyError, OverflowError):
        return decode_plain(value)


def _duration(text: str, micros: int) -> timedelta | None:
    """Return a number of units as a duration, None if it is finer than a microsecond."""
    total = _EXACT.multiply(Decimal(text), Decimal(micros))
    return None if _EXACT.remainder(total, Decimal(1)) else timedelta(microseconds=int(total))


_WHOLE_SECONDS = "value.replace(microsecond=0)"
_WHOLE_MILLISECONDS = "value.replace(microsecond=value.microsecond // 1000 * 1000)"

DATETIME = Converter(
    _encode_datetime, _decode_datetime, _S, (datetime,), "datetime", kind="datetime", word="datetime"
)
EPOCH_SECONDS = Converter(_epoch_encoder(_MICRO, "second", _WHOLE_SECONDS), _epoch_decoder(_MICRO),
    _N, (datetime,), "datetime", kind="epoch", word="epoch-seconds")  # fmt: skip
EPOCH_MILLISECONDS = Converter(_epoch_encoder(1000, "millisecond", _WHOLE_MILLISECONDS), _epoch_decoder(1000),
    _N, (datetime,), "datetime", kind="epoch", word="epoch-milliseconds")  # fmt: skip
EXPIRY = Converter(  # of a time to live, which DynamoDB reads in whole seconds
    _encode_expiry, EPOCH_SECONDS.decode, _N, (datetime,), kind="expiry", word="datetime"
)
DATE = Converter(_encode_date, _decode_date, _S, (date,), "date", kind="date", word="date")
TIME = Converter(_encode_time, _decode_time, _S, (time,), kind="time", word="time")
DURATION = Converter(_encode_duration, _decode_duration, _N, (timedelta,), kind="duration", word="duration")
