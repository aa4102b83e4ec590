"""Parse records of an access log: when, which operation, which keys, and the consumed units.

A record that does not have the server's format is rejected as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from tavola.protocol.faults import THROTTLING_CODES

_SECONDS_MAX = 253_370_764_800  # the year 9999, past which there are no dates


@dataclass(frozen=True, slots=True)
class LoggedAccess:
    """A table that a call accessed, the index it read, and hashes of the keys it named."""

    table: str
    index: str | None
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoggedUnits:
    """Units that a call consumed, of a table or of one of its indexes."""

    table: str
    index: str | None
    reads: float
    writes: float


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """One record; `counts` is False for calls that access no items or were refused for another reason than capacity."""

    second: int  # of the epoch
    operation: str
    touches: tuple[LoggedAccess, ...]
    consumed: tuple[LoggedUnits, ...]
    refused: bool  # for want of capacity
    counts: bool = True


class _MalformedRecord(Exception):
    """A record that is none."""


def parse_call(record: object) -> LoggedCall | None:
    """Parse a record; None if it is malformed."""
    try:
        return _parse(record)
    except _MalformedRecord:
        return None


def _parse(record: object) -> LoggedCall:
    fields = _mapping(record)
    category = _text(fields.get("eventCategory"))
    error = fields.get("errorCode")
    if error is not None:
        _text(error)
    second = _second(fields.get("eventTime"))
    operation = _text(fields.get("eventName"))
    if category != "Data" or (error is not None and error not in THROTTLING_CODES):
        return LoggedCall(second, operation, (), (), refused=False, counts=False)
    asked = _optional(fields.get("requestParameters"))
    places = _list(asked["tables"]) if "tables" in asked else ([asked] if asked else [])
    more = _optional(fields.get("additionalEventData"))
    return LoggedCall(
        second,
        operation,
        tuple(_touch(_mapping(place)) for place in places),
        tuple(_consumed(_mapping(each)) for each in _list(more.get("consumed") or [])),
        refused=error is not None,
    )


def _touch(fields: Mapping[str, Any]) -> LoggedAccess:
    keys = _list(fields.get("keys") or [])
    return LoggedAccess(
        _text(fields.get("tableName")), _name(fields.get("indexName")), tuple(map(_text, keys))
    )


def _consumed(fields: Mapping[str, Any]) -> LoggedUnits:
    return LoggedUnits(
        _text(fields.get("table")),
        _name(fields.get("index")),
        _number(fields.get("reads")),
        _number(fields.get("writes")),
    )


def _second(value: object) -> int:
    try:
        moment = datetime.fromisoformat(_text(value))
        second = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError, OSError) as error:
        raise _MalformedRecord from error
    if not 0 <= second < _SECONDS_MAX:
        raise _MalformedRecord
    return second


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _MalformedRecord
    return value


def _optional(value: object) -> Mapping[str, Any]:
    return {} if value is None else _mapping(value)


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise _MalformedRecord
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _MalformedRecord
    return value


def _name(value: object) -> str | None:
    return None if value is None else _text(value)


def _number(value: object) -> float:
    if value is None:
        return 0.0
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value < 1e9
        or not isfinite(value)
    ):
        raise _MalformedRecord
    return float(value)
