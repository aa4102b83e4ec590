"""Times: converters of datetimes, dates, times of day and durations.

A datetime has a zone, always: one without is refused, because a machine's own zone is nobody's intention.
It is stored in UTC and in one width, so that the texts sort as the moments do; with a marker, as a number.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any

from msgspec import to_builtins

from tavola.model.converters.converter import (
    Converter,
    Decode,
    Encode,
    show_value,
    storage_error,
    wrong_type_error,
)
from tavola.model.converters.plain import decode_plain, number_text
from tavola.values import Value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WIDTH = len("2026-01-31T12:00:00.000000Z")
_SECONDS_A_DAY = 86_400
_MICRO = 1_000_000
_EXACT = Context(prec=300)  # wider than any number, whatever precision the caller's thread works with
_S = frozenset({"S"})
_N = frozenset({"N"})


def _encode_datetime(value: Any) -> Value:
    if type(value) is not datetime or value.tzinfo is not UTC:
        value = _in_utc(value)
    text = to_builtins(value)  # a fifth of the time that isoformat takes
    return {"S": text if len(text) == _WIDTH else f"{text[:19]}.000000Z"}


def _in_utc(value: Any) -> datetime:
    """Return a moment in UTC; refuse what is none, and what has no zone."""
    if not isinstance(value, datetime):
        raise wrong_type_error(value, "a datetime with a zone")
    if value.utcoffset() is None:
        raise storage_error(
            f"{show_value(value)} has no zone, so it is no moment; give a zone: datetime.now(UTC), or "
            "value.replace(tzinfo=…)"
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
    """Return an encoder of moments as whole units since 1970."""

    def encode_epoch(value: Any) -> Value:
        moment = value if type(value) is datetime and value.tzinfo is UTC else _in_utc(value)
        since = moment - _EPOCH
        if since.microseconds % micros:
            raise storage_error(
                f"{show_value(value)} has a fraction of a {unit}, which this field cannot hold; give {remedy}"
            )
        whole = (since.days * _SECONDS_A_DAY + since.seconds) * (_MICRO // micros)
        return {"N": str(whole + since.microseconds // micros)}

    return encode_epoch


def _epoch_decoder(micros: int) -> Decode:
    """Return a decoder of moments from units since 1970, whole or not."""

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


def _encode_date(value: Any) -> Value:
    if type(value) is date:
        return {"S": to_builtins(value)}
    if isinstance(value, date) and not isinstance(value, datetime):
        return {"S": date.isoformat(value)}
    raise wrong_type_error(value, "a date; value.date() is that of a datetime")


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
            f"{show_value(value)} has a zone whose offset depends on the date; give a fixed offset, or store the "
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
DATE = Converter(_encode_date, _decode_date, _S, (date,), "date", kind="date", word="date")
TIME = Converter(_encode_time, _decode_time, _S, (time,), kind="time", word="time")
DURATION = Converter(_encode_duration, _decode_duration, _N, (timedelta,), kind="duration", word="duration")
