"""Outcomes: what an invocation means for its records, and what is done next. Values in, values out.

The rules are Lambda's. A failed batch is tried again, whole; with bisect it is tried in halves, which counts
as no retry; a response that names failures settles what comes before the lowest of them. Records are given up
when their retries are used up or when they are too old, and never otherwise. Each record of a segment ends
up in exactly one place: done, discarded, or left for the next try, and in the stream's order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec

from tavola.limits import TRIGGER_STATE_BYTES_MAX
from tavola.triggers.events import StreamRecord
from tavola.triggers.mapping import Mapping as Settings

Condition: TypeAlias = Literal["RetryAttemptsExhausted", "RecordAgeExceeded"]

_NAMED_MAX = 10  # records, in a sentence

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Succeeded:
    """Every record was handled; `state` is what a tumbling window goes on with, as JSON."""

    state: bytes | None = None


@dataclass(frozen=True, slots=True)
class FailedFrom:
    """Records before `index` were handled, those from it on were not."""

    index: int
    reason: str
    state: bytes | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing is known to be handled."""

    reason: str


Outcome: TypeAlias = Succeeded | FailedFrom | Failed


@dataclass(frozen=True, slots=True)
class Segment:
    """Records that are tried together, and how often they have been."""

    records: tuple[StreamRecord, ...]
    retries: int = 0  # tries of these very records after the first
    invocations: int = 0  # that they have been part of, splits included


@dataclass(frozen=True, slots=True)
class Discard:
    """Records that are given up, and why."""

    records: tuple[StreamRecord, ...]
    condition: Condition
    invocations: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a segment, in the order of the stream: done, then discarded, then left."""

    done: tuple[StreamRecord, ...] = ()
    discarded: Discard | None = None
    left: tuple[Segment, ...] = ()
    waits: bool = False  # the next try is a retry, and waits for its time


def read_response(
    response: object, sequences: Sequence[str], *, reports_failures: bool, stateful: bool = False
) -> Outcome:
    """Return what a handler's response says of the records with these sequence numbers.

    `response` is what the handler returned, as JSON reads it back.
    """
    state: bytes | None = None
    if stateful:
        found = response.get("state") if isinstance(response, Mapping) else None
        if not isinstance(found, Mapping):
            return Failed('a tumbling window needs a response with its state: {"state": {…}}')
        state = _encode(found)
    if not reports_failures:
        return Succeeded(state)
    places = _failures(response, sequences)
    if isinstance(places, Failed):
        return places
    if not places:
        return Succeeded(state)
    return FailedFrom(places[0], _failure_text([sequences[place] for place in places]), state)


def _failure_text(named: list[str]) -> str:
    """Return in words which records a handler has named as failed."""
    if len(named) == 1:
        return f"the handler reported the record {named[0]} as failed"
    more = f" and {len(named) - _NAMED_MAX} more" if len(named) > _NAMED_MAX else ""
    return f"the handler reported {len(named)} records as failed: {', '.join(named[:_NAMED_MAX])}{more}"


def _failures(response: object, sequences: Sequence[str]) -> list[int] | Failed:
    """Return the places of the records that are reported, in order; Failed: the report is unusable."""
    if response in (None, "", {}):
        return []
    if not isinstance(response, Mapping):
        return Failed("the response is no object with batchItemFailures")
    reported = response.get("batchItemFailures")
    if reported is None:
        return []
    if not isinstance(reported, list):
        return Failed("batchItemFailures is no list")
    places = {sequence: place for place, sequence in enumerate(sequences)}
    found: set[int] = set()
    for failure in reported:
        named: Any = failure.get("itemIdentifier") if isinstance(failure, Mapping) else None
        place = places.get(named) if isinstance(named, str) else None
        if place is None:
            return Failed(f"batchItemFailures names {named!r}, which is no record of the batch")
        found.add(place)
    return sorted(found)


def decide(segment: Segment, outcome: Outcome, settings: Settings) -> Decision:
    """Return what becomes of a segment after an invocation."""
    records = segment.records
    invocations = segment.invocations + 1
    match outcome:
        case Succeeded():
            return Decision(done=records)
        case FailedFrom(index, reason):
            done, rest = records[:index], records[index:]
        case Failed(reason):
            done, rest = (), records
    if done:  # split at the number that was reported: what is left begins anew
        return Decision(done, None, (Segment(rest, 0, invocations),))
    if settings.bisect_batch_on_function_error and len(rest) > 1:
        middle = (len(rest) + 1) // 2
        halves = (Segment(rest[:middle], 0, invocations), Segment(rest[middle:], 0, invocations))
        return Decision(left=halves)
    limit = settings.maximum_retry_attempts
    if limit != -1 and segment.retries >= limit:
        return Decision(discarded=Discard(rest, "RetryAttemptsExhausted", invocations, reason))
    return Decision(left=(Segment(rest, segment.retries + 1, invocations),), waits=True)


def expire(segment: Segment, now_s: float, settings: Settings) -> tuple[Discard | None, Segment | None]:
    """Return what of a segment is too old to be tried, and what remains of it.

    Records of a shard are in the order of their time, so that the old ones are its beginning.
    """
    limit_s = settings.maximum_record_age_in_seconds
    if limit_s == -1:
        return None, segment
    fresh = 0
    for record in segment.records:
        if now_s - record.created_at_s <= limit_s:
            break
        fresh += 1
    if fresh == 0:
        return None, segment
    old, rest = segment.records[:fresh], segment.records[fresh:]
    discard = Discard(old, "RecordAgeExceeded", segment.invocations)
    return discard, Segment(rest, segment.retries, segment.invocations) if rest else None


def overflows(state: bytes | None) -> bool:
    """Tell whether a state is more than a tumbling window may carry on."""
    return state is not None and len(state) > TRIGGER_STATE_BYTES_MAX
