"""The heat of keys from an access log, in which keys are hashes.

A record has the second, the operation, key hashes and consumed units. The units of a call with several keys are divided
evenly among them, in half units, because the log does not say more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from tavola.clock import ManualClock
from tavola.engine import ItemAccess
from tavola.protocol.accounts import DEFAULT_SCOPE
from tavola.protocol.faults import THROTTLING_CODES, Fault, ThrottlingFault
from tavola.studio.monitoring.heat_recorder import HeatRecorder


def record_log(records: Iterable[Mapping[str, Any]]) -> tuple[HeatRecorder, int | None]:
    """Return what records say, the oldest first, and the last second that they tell of; places by table name.

    A record that is not as the server writes it is passed over.
    """
    clock = ManualClock(0.0)
    recorder = HeatRecorder(clock, hashed=True)
    last: int | None = None
    for record in records:
        at_s = _second(record.get("eventTime"))
        operation = record.get("eventName")
        if at_s is None or not isinstance(operation, str):
            continue
        refused = record.get("errorCode") in THROTTLING_CODES
        if record.get("errorCode") is not None and not refused:
            continue
        touches = _log_accesses(record, refused=refused)
        if touches:
            fault: Fault | None = ThrottlingFault("Throughput was exceeded.", []) if refused else None
            recorder.note(operation, DEFAULT_SCOPE, at_s, 0.0, touches, fault, b"")
            last = at_s if last is None else max(last, at_s)
            clock.set(float(last))
    return recorder, last


class _LogTarget(msgspec.Struct, rename="camel"):
    """A table or index that a record names, and the hashes of keys."""

    table_name: str = ""
    index_name: str | None = None
    keys: list[str] | None = None
    tables: list[_LogTarget] | None = None  # of a call of several, each by itself


class _LogUnits(msgspec.Struct):
    """What was consumed at one place."""

    table: str
    index: str | None = None
    reads: float | None = None
    writes: float | None = None


class _LogDetails(msgspec.Struct):
    """What a record says beside the request."""

    consumed: list[_LogUnits] | None = None


def _log_accesses(record: Mapping[str, Any], *, refused: bool) -> list[ItemAccess]:
    try:
        asked = msgspec.convert(record.get("requestParameters") or {}, _LogTarget)
        more = msgspec.convert(record.get("additionalEventData") or {}, _LogDetails)
    except msgspec.ValidationError:
        return []
    named: dict[tuple[str, str | None], list[bytes]] = {
        (place.table_name, place.index_name): [key.encode() for key in place.keys or ()]
        for place in asked.tables or (asked,)
        if place.table_name
    }
    if refused:
        return [
            ItemAccess(table, index, key, 0.0, 0.0)
            for (table, index), keys in named.items()
            for key in keys or (None,)
        ]
    found: list[ItemAccess] = []
    for each in more.consumed or ():
        keys = named.get((each.table, each.index), [])
        found += _divide_units(each.table, each.index, keys, each.reads or 0.0, each.writes or 0.0)
    return found


def _divide_units(
    table: str, index: str | None, keys: list[bytes], reads: float, writes: float
) -> list[ItemAccess]:
    if not keys:
        return [ItemAccess(table, index, None, reads, writes)]
    found: list[ItemAccess] = []
    for at, key in enumerate(keys):
        parts = [_part(units, at, len(keys)) for units in (reads, writes)]
        # Of an index that is written the log has the table's keys, which say nothing of its own.
        entry = key if index is not None else None
        if any(parts):
            found.append(ItemAccess(table, index, key, parts[0], parts[1], entry))
    return found


def _part(units: float, at: int, count: int) -> float:
    halves = round(units * 2)
    return (halves // count + (at < halves % count)) / 2


def _second(value: object) -> int | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
