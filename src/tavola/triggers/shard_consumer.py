"""Shard consumer: one shard from its records to its position: read, filtered, queued by partition key, handled.

It knows which invocations are due and what an outcome changes; when the handler runs is the trigger's business.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from tavola.client.streams import RecordPage, ShardReader, StreamDescription, sequence_number
from tavola.triggers.checkpoints import Position, WindowPosition
from tavola.triggers.events import StreamRecord, Window, lambda_record, stream_record
from tavola.triggers.mapping import EventSourceMapping
from tavola.triggers.outcomes import BatchDecision, Outcome
from tavola.triggers.partition_queues import Backoff, InvocationTask, PartitionQueue

# Records of one shard in memory: reading stops at these, so a queue that keeps failing stops its shard in the end.
BACKLOG_RECORDS_MAX = 20_000
BACKLOG_BYTES_MAX = 64 * 1024 * 1024

_log = logging.getLogger("tavola.triggers")

QueuedTask: TypeAlias = tuple[PartitionQueue, InvocationTask]


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """How many records a read returned, and how many of them the filters dropped."""

    read: int
    filtered: int


class ShardProgress:
    """Which records of a shard are handled, and so where a restart must continue.

    Queues finish out of order. A restart may skip everything before the first unhandled record (`after`); how far each
    queue is beyond that is stored too, so that a restart hands it no record twice:

        read:      1   2   3   4   5   6
        handled:   ✓   ✓   –   ✓   –   ✓      after = 2, queue A = 4, queue B = 6
    """

    def __init__(self, after: str | None, queues: dict[int, str]) -> None:
        self.after = after  # every record up to this one is handled; None: not even the first
        self._queues = dict(queues)
        self._unhandled: deque[str] = deque()  # read, in order, from the first unhandled record on
        self._handled: set[str] = set()  # those of them that are handled

    @property
    def queues(self) -> dict[int, str]:
        """The last record that each queue has handled, where it is beyond `after`."""
        after = -1 if self.after is None else int(self.after)
        return {queue: sequence for queue, sequence in sorted(self._queues.items()) if int(sequence) > after}

    @property
    def open(self) -> int:
        """How many records are read and not yet behind `after`."""
        return len(self._unhandled)

    def is_handled(self, queue: int, number: int) -> bool:
        """Return whether a queue has handled a record, in this run or before it."""
        last = self._queues.get(queue)
        return last is not None and number <= int(last)

    def add_read(self, sequence: str) -> None:
        """Add a record that was read."""
        self._unhandled.append(sequence)

    def mark_skipped(self, sequence: str) -> None:
        """Mark a record that no queue handles: filtered, or handled before."""
        self._handled.add(sequence)
        self._advance()

    def mark_handled(self, queue: int, records: Iterable[StreamRecord]) -> None:
        """Mark records that a queue has finished, successfully or by discarding them."""
        for record in records:
            self._handled.add(record.sequence)
            self._queues[queue] = record.sequence
        self._advance()

    def _advance(self) -> None:
        while self._unhandled and self._unhandled[0] in self._handled:
            self.after = self._unhandled.popleft()
            self._handled.remove(self.after)


class ShardConsumer:
    """The work on one shard."""

    def __init__(
        self,
        reader: ShardReader,
        stream: StreamDescription,
        mapping: EventSourceMapping,
        backoff: Backoff,
        position: Position,
    ) -> None:
        self.shard_id = reader.shard_id
        self.reader = reader
        self.read_at_s = 0.0
        self.failed_reads = 0  # consecutive transient errors
        self._stream = stream
        self._mapping = mapping
        self._since_s = position.since_s
        self._ended = False
        self._empty_at_s: float | None = None  # when the last read returned nothing
        same_queues = position.factor == mapping.parallelization_factor
        self._progress = ShardProgress(position.after, position.queues if same_queues else {})
        windows = position.windows if same_queues and mapping.tumbling_window_in_seconds else {}
        self.dropped_windows = 0 if windows else len(position.windows)
        if self.dropped_windows:
            _log.error(
                "%s: the state of %d open windows is lost, because the mapping's parallelization factor changed or it has "
                "no windows any more",
                self.shard_id,
                self.dropped_windows,
            )
        self._queues = tuple(
            PartitionQueue(number, mapping, backoff, _restore_window(windows.get(number)))
            for number in range(mapping.parallelization_factor)
        )

    @property
    def is_finished(self) -> bool:
        """Whether the shard is closed and handled to its end, windows included."""
        return self._ended and all(queue.idle and queue.window is None for queue in self._queues)

    @property
    def is_drained(self) -> bool:
        """Whether everything that the shard has now is handled."""
        if not self._ended and self._empty_at_s is None:
            return False
        return all(queue.is_drained(self._empty_at_s, ended=self._ended) for queue in self._queues)

    @property
    def pending(self) -> int:
        """How many records wait or are being tried."""
        return sum(queue.pending for queue in self._queues)

    @property
    def last_failure(self) -> str | None:
        """Why the last invocation failed, if it did."""
        return next((queue.last_failure for queue in self._queues if queue.last_failure), None)

    def read_soon(self) -> None:
        """Make the next read due now, unless the service asked to wait."""
        self._empty_at_s = None
        if not self.failed_reads:
            self.read_at_s = 0.0

    def wants_records(self, now_s: float) -> bool:
        """Return whether a read is due and the backlog is not full."""
        return now_s >= self.read_at_s and self._has_capacity()

    def accept(self, page: RecordPage, now_s: float, poll_s: float) -> ReadCounts:
        """Filter a page's records and queue the rest; after an empty page the next read is due in `poll_s`."""
        filtered = 0
        for record in page.records:
            sequence = sequence_number(record)
            self._progress.add_read(sequence)
            event_record = lambda_record(record, self._stream.arn)
            if not self._mapping.filters.match(event_record):
                filtered += 1
                self._progress.mark_skipped(sequence)
                continue
            queued = stream_record(event_record, self._stream.hash_key)
            queue = self._queues[queued.partition % len(self._queues)]
            if self._progress.is_handled(queue.number, queued.number):
                self._progress.mark_skipped(sequence)
            else:
                queue.add(queued, now_s)
        self._ended = page.ended
        self._empty_at_s = None if page.records else now_s
        self.read_at_s = now_s if page.records else now_s + poll_s
        return ReadCounts(len(page.records), filtered)

    def due_tasks(self, now_s: float, *, flush: bool) -> tuple[QueuedTask, ...]:
        """Return the invocations that are due now, at most one per queue.

        `flush`: a partial batch is due as soon as the shard has nothing to add to it.
        """
        tasks: list[QueuedTask] = []
        for queue in self._queues:
            task = queue.next_task(
                now_s,
                flush=flush and self._empty_at_s is not None,
                empty_at_s=self._empty_at_s,
                ended=self._ended,
            )
            if task is not None:
                tasks.append((queue, task))
        return tuple(tasks)

    def settle(
        self, queue: PartitionQueue, task: InvocationTask, outcome: Outcome, now_s: float
    ) -> BatchDecision:
        """Apply an outcome; discarded records stay unhandled until `mark_discarded`."""
        decision = queue.settle(task, outcome, now_s)
        self._progress.mark_handled(queue.number, decision.done)
        return decision

    def mark_discarded(self, queue: PartitionQueue, records: tuple[StreamRecord, ...]) -> None:
        """Mark discarded records as handled, once their dead letter is written."""
        self._progress.mark_handled(queue.number, records)

    def next_at_s(self) -> float:
        """Return when something may be due by time alone; infinite: only new records can make it so."""
        times = [at_s for queue in self._queues if (at_s := queue.next_at_s()) is not None]
        if self._has_capacity():
            times.append(self.read_at_s)
        return min(times, default=inf)

    def position(self) -> Position:
        """Return how far the shard is handled."""
        if self.is_finished:
            return Position(after=self._progress.after, finished=True)
        return Position(
            after=self._progress.after,
            since_s=self._since_s if self._progress.after is None else None,
            factor=self._mapping.parallelization_factor,
            queues=self._progress.queues,
            windows={
                queue.number: WindowPosition(
                    queue.window.start_s, queue.window.end_s, queue.window.state.decode()
                )
                for queue in self._queues
                if queue.window is not None
            },
        )

    def _has_capacity(self) -> bool:
        if self._ended or all(queue.buffer.full for queue in self._queues):
            return False
        waiting = sum(len(queue.buffer) for queue in self._queues)
        size = sum(queue.buffer.payload_bytes for queue in self._queues)
        return waiting < BACKLOG_RECORDS_MAX and size < BACKLOG_BYTES_MAX


def _restore_window(position: WindowPosition | None) -> Window | None:
    return None if position is None else Window(position.start_s, position.end_s, position.state.encode())
