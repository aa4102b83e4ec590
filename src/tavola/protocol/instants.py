"""Parse and format points in time, which are microseconds since the epoch.

Text is ISO 8601, or seconds since the epoch as AWS writes them. Text without a zone is UTC, like all responses. A
Python `datetime` without a zone is refused: Python takes it for local time, and AWS's tools disagree about its meaning.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from math import isfinite

from tavola.protocol.faults import ValidationFault

AS_OF_HEADER = "x-tavola-as-of"
"""Header of a request that reads a past state; Tavola's own."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LAST_US = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // _MICROSECOND
_SECONDS = re.compile(r"[0-9]{1,11}(?:\.[0-9]+)?")
_CHARACTERS_MAX = 64  # longer than any valid form
TIME_FORMS = "2026-11-16T10:00:00Z, 2026-11-16T11:00:00.5+01:00 or 1794823200 (seconds since 1970)"
"""Valid forms of a time, for messages."""


def parse_instant(text: str) -> int:
    """Return the microseconds since the epoch that text denotes; raise ValidationFault if it is invalid."""
    text = text.strip()
    if len(text) > _CHARACTERS_MAX:
        raise ValidationFault(f"{text[:_CHARACTERS_MAX]!r}… is not a time; write one such as {TIME_FORMS}")
    if _SECONDS.fullmatch(text):
        seconds_text, _, part = text.partition(".")
        return _check_range(int(seconds_text) * 1_000_000 + int((part + "000000")[:6]), text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValidationFault(f"{text!r} is not a time; write one such as {TIME_FORMS}") from error
    return _check_range(
        _since_epoch(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)), text
    )


def instant_of(moment: datetime | float | str) -> int:
    """Return the microseconds since the epoch of an aware datetime, epoch seconds, or text."""
    if isinstance(moment, str):
        return parse_instant(moment)
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValidationFault(
                f"{moment.isoformat()!r} has no time zone; add one, for example with tzinfo=timezone.utc"
            )
        return _check_range(_since_epoch(moment), moment.isoformat())
    if isinstance(moment, bool) or not isinstance(moment, int | float):
        raise ValidationFault(
            f"{moment!r} is not a time; pass a datetime with a time zone, or a string such as {TIME_FORMS}"
        )
    return _check_range(round(moment * 1_000_000) if isfinite(moment) else -1, moment)


def instant_text(at_us: int) -> str:
    """Return a time as ISO 8601 in UTC, with fractional seconds only if they are not zero."""
    moment = _EPOCH + timedelta(microseconds=at_us)
    return moment.isoformat().replace("+00:00", "Z")


def _since_epoch(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _check_range(at_us: int, value: str | float) -> int:
    """Return `at_us` if it is between 1970 and 9999; `value` is the original, for the message."""
    if not 0 <= at_us <= _LAST_US:
        raise ValidationFault(f"{value!r} is not between 1970 and 9999; write a time such as {TIME_FORMS}")
    return at_us
