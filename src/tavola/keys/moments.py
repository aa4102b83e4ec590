"""Encodings of dates and times inside a key: UTC and of fixed width, so that the text sorts as the time does.

Descending order replaces each digit by its nines' complement and keeps the punctuation.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from functools import lru_cache

from tavola.keys.errors import KeyPartRefused
from tavola.keys.numerals import complement
from tavola.keys.part import show_value

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
            raise KeyPartRefused(f"{show_value(value)} is no datetime; give one with a zone", value)
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
            raise KeyPartRefused(f"{show_value(value)} is no date; give a date without a time", value)
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
            f"{show_value(value)} has no zone, and means another moment in each; give a zone, as datetime.now(UTC) does",
            value,
        )
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise KeyPartRefused(
            f"{show_value(value)} is not within the years 1 to 9999 in UTC; give one that is", value
        ) from None
