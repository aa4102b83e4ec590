"""Spreading: the shards and the stretches of time that a question has to ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

from tavola.model import SHARD
from tavola.model.document import EntityDesign, KeyDesign
from tavola.studio.asking.entering import stored_of
from tavola.studio.asking.questions import Order, Question
from tavola.studio.problems import Refused

REQUESTS_MAX = 100  # that one run may fan out to

_STEPS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}


def check_requests(count: int) -> None:
    """Refuse a run that would fan out further than one may."""
    if count > REQUESTS_MAX:
        raise Refused(
            "too-many-requests",
            f"That would be {count:,} requests",
            f"A run fans out to {REQUESTS_MAX} at most.",
            "Ask for a shorter stretch of time, or for fewer values.",
        )


def spread(asked: Question, newest_first: bool) -> tuple[Sequence[Mapping[str, Any]], Order]:
    """Return what to add to the values for each shard, and how the shards' answers are put in order."""
    key, shards = asked.key, asked.key.shards
    if shards is None:
        return [{}], "in turn"
    if shards.by != "time":
        decides = key.index is None or (shards.by == "hash" and shards.reading is None)
        # Of a field that the key has a part of, such as the day of a time, the items that are found have other values.
        if shards.of and decides and set(shards.of) <= asked.fixed.keys() - _lossy(asked):
            return [{SHARD: shard_of(asked.entity, key, asked.fixed)}], "in turn"
        return [{SHARD: number} for number in range(shards.reads)], "merged"
    name = shards.of[0]
    if name in asked.fixed:
        return [{name: asked.fixed[name]}], "in turn"
    stretch = asked.stretch
    if stretch is None or stretch.field.name != name or stretch.operator != "between":
        raise Refused(
            "parameter-missing",
            f"{name} needs both ends",
            f"It is sharded by the {shards.bucket} of {name}, and only a range with both ends says which shards to ask.",
            f"Give {name} with “between”.",
        )
    start, end = stretch.operands
    buckets = moments(start, end, shards.bucket)
    falls = _falls(asked, name, buckets)
    if falls is not None and falls != newest_first:
        buckets = buckets[::-1]
    return [{name: bucket} for bucket in buckets], "merged" if falls is None else "in turn"


def _lossy(asked: Question) -> set[str]:
    bounds = (asked.entity.bound(source) for source in asked.key.sources)
    return {name for bound in bounds if bound is not None for name in bound.lossy_fields}


def _falls(asked: Question, name: str, buckets: Sequence[Any]) -> bool | None:
    """Return whether the sort key falls as time rises; None where it does not go by time, bucket by bucket."""
    source = next(iter(asked.key.range), None)
    if source is None or source.fields[:1] != (name,):
        return None
    bound = asked.entity.bound(source)
    if bound is None:
        return False
    part = bound.steps[0].part
    if not part.ordered or (part.lossy and len({part.encode(bucket) for bucket in buckets}) < len(buckets)):
        return None
    return part.descending


def shard_of(entity: EntityDesign, key: KeyDesign, values: Mapping[str, Any]) -> int:
    """Return the shard of an item by the fields that decide it, as the client takes it."""
    assert key.shards is not None
    names = key.shards.of or tuple(sorted(name for name in key.fields if name != SHARD))
    spelt = "\x00".join(
        f"{name}={next(iter(stored_of(entity.field(name), values[name]).values()))}" for name in names
    )
    return crc32(spelt.encode()) % key.shards.count


def moments(start: Any, end: Any, bucket: str) -> list[Any]:
    """Return a moment in each stretch of time from one to another, or a day where they are days."""
    days = not isinstance(start, datetime)
    at, last = (
        (datetime(each.year, each.month, each.day, tzinfo=UTC) if days else each.astimezone(UTC))
        for each in (start, end)
    )
    at = at.replace(microsecond=0)
    for grain, zero in (("second", "second"), ("minute", "minute"), ("hour", "hour")):
        if bucket == grain:
            break
        at = at.replace(**{zero: 0})  # type: ignore[arg-type]  # one of the three
    at = at.replace(day=1) if bucket in ("month", "year") else at
    at = at.replace(month=1) if bucket == "year" else at
    found: list[Any] = []
    while at <= last and len(found) <= REQUESTS_MAX:
        found.append(at.date() if days else at)
        if bucket in _STEPS:
            at += timedelta(seconds=_STEPS[bucket])
        elif bucket == "month":
            at = (at + timedelta(days=32)).replace(day=1)
        else:
            at = at.replace(year=at.year + 1)
    return found
