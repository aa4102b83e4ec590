"""Outcomes: what an invocation means for its records, and what happens next; pure functions.

The rules are Lambda's, with one exception. A failed batch is retried whole; with bisect it is retried in halves, which does not count as a
retry; a response that names failures completes the records before the lowest of them. Records are discarded only when their
retries are used up or they are too old. Each record of a segment ends up in exactly one group, in the stream's order: done,
discarded, or left for the next try.

The exception: without ReportBatchItemFailures, Lambda ignores `batchItemFailures` in a response, so records that the handler
reported count as handled and are lost. Here such a response fails its batch (`unread`), and the trigger says which setting
is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec

from tavola.limits import TRIGGER_STATE_BYTES_MAX
from tavola.triggers.events import StreamRecord
from tavola.triggers.mapping import EventSourceMapping

DiscardCondition: TypeAlias = Literal["RetryAttemptsExhausted", "RecordAgeExceeded"]

_LISTED_MAX = 10  # records listed in a message
_REPORT = "batchItemFailures"

UNREAD = (
    "the handler returned batchItemFailures, which this mapping does not read: report_batch_item_failures is off; on AWS "
    "these records would count as handled and be lost"
)
UNREAD_REMEDY = (
    "Set report_batch_item_failures=True (--report-batch-item-failures) here, and FunctionResponseTypes: "
    "[ReportBatchItemFailures] in the deployed mapping; or let the handler raise"
)

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Succeeded:
    """Every record was handled; `state` is the next state of a tumbling window, as JSON."""

    state: bytes | None = None


@dataclass(frozen=True, slots=True)
class FailedFrom:
    """The records before `index` were handled, the others were not."""

    index: int
    reason: str
    state: bytes | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """No record is known to be handled."""

    reason: str
    unread: bool = (
        False  # the handler reported failures that the mapping does not read; on AWS the records are lost
    )


Outcome: TypeAlias = Succeeded | FailedFrom | Failed


@dataclass(frozen=True, slots=True)
class Segment:
    """Records that are tried together, and how often they were tried."""

    records: tuple[StreamRecord, ...]
    retries: int = 0  # of exactly these records
    invocations: int = 0  # that included them, before splits as well


@dataclass(frozen=True, slots=True)
class Discard:
    """Discarded records, and why."""

    records: tuple[StreamRecord, ...]
    condition: DiscardCondition
    invocations: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class BatchDecision:
    """The result for a segment, in the stream's order: done, then discarded, then left."""

    done: tuple[StreamRecord, ...] = ()
    discarded: Discard | None = None
    left: tuple[Segment, ...] = ()
    waits: bool = False  # the next try is a retry, to be delayed


def read_response(
    response: object, sequences: Sequence[str], *, report_batch_item_failures: bool, stateful: bool = False
) -> Outcome:
    """Return the outcome that a handler's response means for the records with these sequence numbers.

    `response` is the handler's return value after a round trip through JSON.
    """
    if not report_batch_item_failures and isinstance(response, Mapping) and response.get(_REPORT):
        return Failed(UNREAD, unread=True)
    state: bytes | None = None
    if stateful:
        value = response.get("state") if isinstance(response, Mapping) else None
        if not isinstance(value, Mapping):
            return Failed('a tumbling window needs a response with its state: {"state": {…}}')
        state = _encode(value)
    if not report_batch_item_failures:
        return Succeeded(state)
    failed = _failed_indexes(response, sequences)
    if isinstance(failed, Failed):
        return failed
    if not failed:
        return Succeeded(state)
    return FailedFrom(failed[0], _failure_text([sequences[index] for index in failed]), state)


def _failure_text(failed: list[str]) -> str:
    """Return a message with the records that a handler reported as failed."""
    if len(failed) == 1:
        return f"the handler reported record {failed[0]} as failed"
    ending = f" and {len(failed) - _LISTED_MAX} more" if len(failed) > _LISTED_MAX else ""
    return f"the handler reported {len(failed)} records as failed: {', '.join(failed[:_LISTED_MAX])}{ending}"


def _failed_indexes(response: object, sequences: Sequence[str]) -> list[int] | Failed:
    """Return the indexes of the reported records, sorted; `Failed` if the report is invalid."""
    if response in (None, "", {}):
        return []
    if not isinstance(response, Mapping):
        return Failed("the response is not an object with batchItemFailures")
    reported = response.get(_REPORT)
    if reported is None:
        return []
    if not isinstance(reported, list):
        return Failed("batchItemFailures is not a list")
    indexes = {sequence: index for index, sequence in enumerate(sequences)}
    failed: set[int] = set()
    for failure in reported:
        identifier: Any = failure.get("itemIdentifier") if isinstance(failure, Mapping) else None
        index = indexes.get(identifier) if isinstance(identifier, str) else None
        if index is None:
            return Failed(f"batchItemFailures names {identifier!r}, which is not a record of the batch")
        failed.add(index)
    return sorted(failed)


def decide(segment: Segment, outcome: Outcome, settings: EventSourceMapping) -> BatchDecision:
    """Return what happens to a segment after an invocation."""
    records = segment.records
    invocations = segment.invocations + 1
    match outcome:
        case Succeeded():
            return BatchDecision(done=records)
        case FailedFrom(index, reason):
            done, rest = records[:index], records[index:]
        case Failed(reason):
            done, rest = (), records
    if done:  # split at the reported record: the rest starts with a new count of retries
        return BatchDecision(done, None, (Segment(rest, 0, invocations),))
    if settings.bisect_batch_on_function_error and len(rest) > 1:
        middle = (len(rest) + 1) // 2
        halves = (Segment(rest[:middle], 0, invocations), Segment(rest[middle:], 0, invocations))
        return BatchDecision(left=halves)
    limit = settings.maximum_retry_attempts
    if limit != -1 and segment.retries >= limit:
        return BatchDecision(discarded=Discard(rest, "RetryAttemptsExhausted", invocations, reason))
    return BatchDecision(left=(Segment(rest, segment.retries + 1, invocations),), waits=True)


def expire(
    segment: Segment, now_s: float, settings: EventSourceMapping
) -> tuple[Discard | None, Segment | None]:
    """Split a segment into records that are too old to be tried, and the rest.

    Records of a shard are ordered by time, so the old ones come first.
    """
    limit_s = settings.maximum_record_age_in_seconds
    if limit_s == -1:
        return None, segment
    old_count = 0
    for record in segment.records:
        if now_s - record.created_at_s <= limit_s:
            break
        old_count += 1
    if old_count == 0:
        return None, segment
    old, rest = segment.records[:old_count], segment.records[old_count:]
    discard = Discard(old, "RecordAgeExceeded", segment.invocations)
    return discard, Segment(rest, segment.retries, segment.invocations) if rest else None


def overflows(state: bytes | None) -> bool:
    """Return whether a state exceeds the size that a tumbling window may have."""
    return state is not None and len(state) > TRIGGER_STATE_BYTES_MAX
