"""Calls: records of an access log, parsed: when, what was asked, of which keys, and what it took.

A record that is not as the server writes it is none, whatever is wrong with it; what is in one is of the types
that are told here.
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
class Touch:
    """A table that a call asked, the index it read, and hashes of the keys it named."""

    table: str
    index: str | None
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Consumed:
    """Units that a call took, of a table or of an index of it."""

    table: str
    index: str | None
    reads: float
    writes: float


@dataclass(frozen=True, slots=True)
class Call:
    """One record; `counts` is False for what reads and writes no items, or was refused for what it asked."""

    second: int  # of the epoch
    operation: str
    touches: tuple[Touch, ...]
    consumed: tuple[Consumed, ...]
    refused: bool  # for want of capacity
    counts: bool = True


class _Broken(Exception):
    """A record that is none."""


def call_of(record: object) -> Call | None:
    """Return a record as a call, None where it is no record."""
    try:
        return _parsed(record)
    except _Broken:
        return None


def _parsed(record: object) -> Call:
    told = _mapping(record)
    category = _text(told.get("eventCategory"))
    error = told.get("errorCode")
    if error is not None:
        _text(error)
    second = _second(told.get("eventTime"))
    operation = _text(told.get("eventName"))
    if category != "Data" or (error is not None and error not in THROTTLING_CODES):
        return Call(second, operation, (), (), refused=False, counts=False)
    asked = _optional(told.get("requestParameters"))
    places = _list(asked["tables"]) if "tables" in asked else ([asked] if asked else [])
    more = _optional(told.get("additionalEventData"))
    return Call(
        second,
        operation,
        tuple(_touch(_mapping(place)) for place in places),
        tuple(_consumed(_mapping(each)) for each in _list(more.get("consumed") or [])),
        refused=error is not None,
    )


def _touch(told: Mapping[str, Any]) -> Touch:
    keys = _list(told.get("keys") or [])
    return Touch(_text(told.get("tableName")), _name(told.get("indexName")), tuple(map(_text, keys)))


def _consumed(told: Mapping[str, Any]) -> Consumed:
    return Consumed(
        _text(told.get("table")),
        _name(told.get("index")),
        _number(told.get("reads")),
        _number(told.get("writes")),
    )


def _second(value: object) -> int:
    try:
        moment = datetime.fromisoformat(_text(value))
        second = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError, OSError) as error:
        raise _Broken from error
    if not 0 <= second < _SECONDS_MAX:
        raise _Broken
    return second


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _Broken
    return value


def _optional(value: object) -> Mapping[str, Any]:
    return {} if value is None else _mapping(value)


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise _Broken
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _Broken
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
        raise _Broken
    return float(value)
