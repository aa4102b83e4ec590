"""Partition queues: the records of one shard that must be handled one after another.

A shard has as many queues as its mapping's parallelization factor. A record goes to the queue that its partition key
hashes to, so the changes of one item stay in order whatever the other queues do:

    shard ──┬─ queue 0:  buffer ▸ batch ▸ segments being tried ▸ done or discarded
            └─ queue 1:  buffer ▸ …

`RecordBuffer` decides when waiting records make a batch: enough records, enough bytes, the oldest has waited for the
batching window, or the tumbling window ends. `PartitionQueue` then tries the batch as segments, which a failure may
split, until each record is done or discarded. Both only decide; the trigger calls the handler.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from tavola.limits import TRIGGER_PAYLOAD_BYTES_MAX
from tavola.triggers.events import StreamRecord, Window, batch_bytes
from tavola.triggers.mapping import EventSourceMapping
from tavola.triggers.outcomes import (
    BatchDecision,
    Discard,
    Failed,
    FailedFrom,
    Outcome,
    Segment,
    Succeeded,
    decide,
    expire,
    overflows,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """How long to wait before a retry: twice as long each time, up to a maximum. AWS does not publish its own values."""

    first_s: float = 1.0
    most_s: float = 60.0

    def wait_s(self, retry: int) -> float:
        """Return the wait before a retry; the first is number 1."""
        return min(self.most_s, self.first_s * 2.0 ** min(retry - 1, 60))


class _BufferedRecord(NamedTuple):
    record: StreamRecord
    read_at_s: float


class RecordBuffer:
    """Records of one partition queue that wait for a batch, in the stream's order."""

    def __init__(self, mapping: EventSourceMapping) -> None:
        self._mapping = mapping
        self._waiting: deque[_BufferedRecord] = deque()
        self._payload_bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def payload_bytes(self) -> int:
        """The payload size of the waiting records."""
        return self._payload_bytes

    @property
    def first(self) -> StreamRecord | None:
        """The record that is next."""
        return self._waiting[0].record if self._waiting else None

    @property
    def full(self) -> bool:
        """Whether a batch is full, by number of records or by bytes."""
        return (
            len(self._waiting) >= self._mapping.batch_size
            or self._payload_bytes + batch_bytes(()) >= TRIGGER_PAYLOAD_BYTES_MAX
        )

    def add(self, record: StreamRecord, now_s: float) -> None:
        """Append a record."""
        self._waiting.append(_BufferedRecord(record, now_s))
        self._payload_bytes += record.payload_bytes

    def due_at_s(self) -> float | None:
        """Return when the batching window of the oldest record ends; None: the buffer is empty."""
        if not self._waiting:
            return None
        return self._waiting[0].read_at_s + self._mapping.maximum_batching_window_in_seconds

    def take(
        self, now_s: float, *, flush: bool = False, until_s: float | None = None
    ) -> tuple[StreamRecord, ...]:
        """Return the records of the next batch; empty: it is not due yet.

        `flush`: do not wait for a full batch. `until_s` is the end of the tumbling window: records at or past it stay,
        and a batch that the window ends is due at once.
        """
        due_at_s = self.due_at_s()
        if due_at_s is None:
            return ()
        window_ends = until_s is not None and self._waiting[-1].record.created_at_s >= until_s
        if not (flush or window_ends or self.full or now_s >= due_at_s):
            return ()
        batch: list[StreamRecord] = []
        size = batch_bytes(())
        while self._waiting and len(batch) < self._mapping.batch_size:
            record = self._waiting[0].record
            if until_s is not None and record.created_at_s >= until_s:
                break
            if batch and size + record.payload_bytes > TRIGGER_PAYLOAD_BYTES_MAX:
                break  # a single record is always a batch, however large: it could never be handled otherwise
            self._waiting.popleft()
            size += record.payload_bytes
            self._payload_bytes -= record.payload_bytes
            batch.append(record)
        return tuple(batch)


@dataclass(frozen=True, slots=True)
class InvocationTask:
    """An invocation that is due: a segment, in a tumbling window if the mapping has them."""

    segment: Segment
    window: Window | None = None
    final: bool = False  # the window ends: no records, and its last state
    early: bool = False  # it ends early because its state is too large


class PartitionQueue:
    """The waiting records, the segments being tried, and the tumbling window they are in."""

    def __init__(
        self, number: int, mapping: EventSourceMapping, backoff: Backoff, window: Window | None = None
    ) -> None:
        self.number = number
        self.buffer = RecordBuffer(mapping)
        self.window = window
        self.retry_at_s = 0.0
        self.busy = False
        self.last_failure: str | None = None
        self._mapping = mapping
        self._backoff = backoff
        self._segments: list[Segment] = []
        self._early = window is not None and overflows(window.state)
        self._closing: Segment | None = Segment(()) if self._early else None

    @property
    def idle(self) -> bool:
        """Whether no record waits or is being tried; a window may still be open."""
        return not (self.busy or self._segments or self.buffer or self._closing)

    def is_drained(self, empty_at_s: float | None, *, ended: bool) -> bool:
        """Return whether there is nothing to do, not even a window to close."""
        return self.idle and not self._is_window_over(empty_at_s, ended=ended)

    @property
    def pending(self) -> int:
        """How many records wait or are being tried."""
        return len(self.buffer) + sum(len(segment.records) for segment in self._segments)

    def add(self, record: StreamRecord, now_s: float) -> None:
        """Append a record to the buffer."""
        self.buffer.add(record, now_s)

    def next_task(
        self, now_s: float, *, flush: bool, empty_at_s: float | None, ended: bool
    ) -> InvocationTask | None:
        """Return the invocation that is due now, or None.

        `flush`: a partial batch is due too. `empty_at_s`: when a read of the shard last returned nothing. `ended`:
        the shard is read to its end, which also ends its window.
        """
        if self.busy or now_s < self.retry_at_s:
            return None
        if self._closing is not None:
            return InvocationTask(self._closing, self.window, final=True, early=self._early)
        if not self._segments:
            until_s = self._enter_window()
            batch = self.buffer.take(now_s, flush=flush or ended, until_s=until_s)
            if batch:
                self._segments = [Segment(batch)]
            elif self._is_window_over(empty_at_s, ended=ended):
                self._closing = Segment(())
                return InvocationTask(self._closing, self.window, final=True)
        return InvocationTask(self._segments[0], self.window) if self._segments else None

    def expire(self, now_s: float) -> Discard | None:
        """Remove the records of the current segment that are too old, and return them."""
        if not self._segments or self.busy:
            return None
        discard, rest = expire(self._segments[0], now_s, self._mapping)
        self._segments[:1] = [] if rest is None else [rest]
        return discard

    def settle(self, task: InvocationTask, outcome: Outcome, now_s: float) -> BatchDecision:
        """Apply the outcome of a task; return what becomes of its records."""
        self.last_failure = None if isinstance(outcome, Succeeded) else outcome.reason
        if task.final:
            return self._settle_window(outcome, now_s)
        decision = decide(task.segment, outcome, self._mapping)
        self._segments[:1] = decision.left
        if decision.waits:
            self.retry_at_s = now_s + self._backoff.wait_s(decision.left[0].retries)
        else:
            self.retry_at_s = 0.0
        if (
            self.window is not None
            and isinstance(outcome, Succeeded | FailedFrom)
            and outcome.state is not None
        ):
            self.window = Window(self.window.start_s, self.window.end_s, outcome.state)
            if overflows(outcome.state):
                self._closing, self._early = Segment(()), True
        return decision

    def next_at_s(self) -> float | None:
        """Return when a task may be due by time alone; None: only new records can make one due."""
        if self.busy:
            return None
        if self._segments or self._closing is not None:
            return self.retry_at_s
        times = [self.buffer.due_at_s(), None if self.window is None else float(self.window.end_s)]
        return min((at_s for at_s in times if at_s is not None), default=None)

    def _settle_window(self, outcome: Outcome, now_s: float) -> BatchDecision:
        """Close the window, or schedule a retry: no later record is handled before its window is closed."""
        assert self._closing is not None, "a final invocation belongs to a window that closes"
        discarded: Discard | None = None
        if isinstance(outcome, Failed | FailedFrom):
            retries, invocations = self._closing.retries + 1, self._closing.invocations + 1
            limit = self._mapping.maximum_retry_attempts
            if limit == -1 or retries <= limit:
                self._closing = Segment((), retries, invocations)
                self.retry_at_s = now_s + self._backoff.wait_s(retries)
                return BatchDecision(left=(self._closing,), waits=True)
            discarded = Discard((), "RetryAttemptsExhausted", invocations, outcome.reason)
        self._closing, self._early, self.window = None, False, None
        self.retry_at_s = 0.0
        return BatchDecision(discarded=discarded)

    def _enter_window(self) -> float | None:
        """Return the end of the current window, opening one for the next record if none is open."""
        length_s = self._mapping.tumbling_window_in_seconds
        if not length_s:
            return None
        first = self.buffer.first
        if self.window is None and first is not None:
            start_s = int(first.created_at_s // length_s) * length_s
            self.window = Window(start_s, start_s + length_s)
        return None if self.window is None else float(self.window.end_s)

    def _is_window_over(self, empty_at_s: float | None, *, ended: bool) -> bool:
        """Return whether the open window can receive no more records."""
        if self.window is None:
            return False
        first = self.buffer.first
        if first is not None:
            return first.created_at_s >= self.window.end_s
        return ended or (empty_at_s is not None and empty_at_s >= self.window.end_s)
