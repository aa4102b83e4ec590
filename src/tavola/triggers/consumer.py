"""Consumer: one shard, from its records to its position: read, filtered, laid into lanes, dealt with.

It knows what is due and what an outcome changes; who runs the handler, and when, is the trigger's business.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from tavola.client import sequence_of
from tavola.triggers.checkpoints import Position, WindowPosition
from tavola.triggers.events import StreamRecord, Window, lambda_record, stream_record
from tavola.triggers.lanes import Backoff, Lane, Task
from tavola.triggers.mapping import Mapping
from tavola.triggers.outcomes import Decision, Outcome
from tavola.triggers.progress import Progress
from tavola.triggers.shards import ShardReader, Stream

BACKLOG_RECORDS_MAX = 20_000  # of one shard in memory: a lane that is held up stops the reading in the end
BACKLOG_BYTES_MAX = 64 * 1024 * 1024

_log = logging.getLogger("tavola.triggers")

DueTask: TypeAlias = tuple[Lane, Task]


@dataclass(frozen=True, slots=True)
class Reading:
    """What one look at a shard brought."""

    read: int
    filtered: int


class ShardConsumer:
    """The work on one shard."""

    def __init__(
        self, reader: ShardReader, stream: Stream, mapping: Mapping, backoff: Backoff, position: Position
    ) -> None:
        self.shard_id = reader.shard_id
        self.read_again_at_s = 0.0
        self.misses = 0  # readings in a row that the service put off
        self._reader = reader
        self._stream = stream
        self._mapping = mapping
        self._since_s = position.since_s
        self._ended = False
        self._dry_at_s: float | None = None
        kept = position.factor == mapping.parallelization_factor
        self._progress = Progress(position.after, position.lanes if kept else {})
        windows = position.windows if kept and mapping.tumbling_window_in_seconds else {}
        if position.windows and not windows:
            _log.warning(
                "%s: open windows are dropped, because the mapping has other lanes or no windows now",
                self.shard_id,
            )
        self._lanes = tuple(
            Lane(number, mapping, backoff, _opened(windows.get(number)))
            for number in range(mapping.parallelization_factor)
        )

    @property
    def finished(self) -> bool:
        """Whether the shard is closed and everything in it is dealt with, its windows too."""
        return self._ended and all(lane.idle and lane.window is None for lane in self._lanes)

    @property
    def dry(self) -> bool:
        """Whether everything that the shard has now is dealt with."""
        if not self._ended and self._dry_at_s is None:
            return False
        return all(lane.rests(self._dry_at_s, ended=self._ended) for lane in self._lanes)

    @property
    def left(self) -> int:
        """How many records wait or are at hand."""
        return sum(lane.left for lane in self._lanes)

    @property
    def last_failure(self) -> str | None:
        """Why the last invocation failed, if it did."""
        return next((lane.last_failure for lane in self._lanes if lane.last_failure), None)

    def look_again(self) -> None:
        """Forget that there was nothing more, and read at once."""
        self._dry_at_s = None
        if not self.misses:
            self.read_again_at_s = 0.0

    def wants(self, now_s: float) -> bool:
        """Tell whether it is time to read, and there is room for what comes."""
        return now_s >= self.read_again_at_s and self._takes_more()

    def read(self, now_s: float, poll_s: float) -> Reading:
        """Read once, and lay what the handler wants into the lanes; `poll_s` is the wait after nothing."""
        page = self._reader.read()
        filtered = 0
        for record in page.records:
            sequence = sequence_of(record)
            self._progress.note_read(sequence)
            given = lambda_record(record, self._stream.arn)
            if not self._mapping.filters.match(given):
                filtered += 1
                self._progress.note_passed_over(sequence)
                continue
            kept = stream_record(given, self._stream.hash_key)
            lane = self._lanes[kept.partition % len(self._lanes)]
            if self._progress.knows(lane.number, kept.number):
                self._progress.note_passed_over(sequence)
            else:
                lane.add(kept, now_s)
        self._ended = page.ended
        self._dry_at_s = None if page.records else now_s
        self.read_again_at_s = now_s if page.records else now_s + poll_s
        return Reading(len(page.records), filtered)

    def due(self, now_s: float, *, flush: bool) -> tuple[DueTask, ...]:
        """Return the invocations that are due now, at most one for each lane.

        `flush`: a partial batch goes as soon as the shard has nothing more to add to it.
        """
        tasks: list[DueTask] = []
        for lane in self._lanes:
            task = lane.due(
                now_s,
                flush=flush and self._dry_at_s is not None,
                dry_at_s=self._dry_at_s,
                ended=self._ended,
            )
            if task is not None:
                tasks.append((lane, task))
        return tuple(tasks)

    def settle(self, lane: Lane, task: Task, outcome: Outcome, now_s: float) -> Decision:
        """Take an outcome; what was discarded still counts as open until `note_discarded`."""
        decision = lane.settle(task, outcome, now_s)
        self._progress.note_done(lane.number, decision.done)
        return decision

    def note_discarded(self, lane: Lane, records: tuple[StreamRecord, ...]) -> None:
        """Records that were given up are written down, and dealt with."""
        self._progress.note_done(lane.number, records)

    def next_at_s(self) -> float:
        """Return when the shard may have something to do by time alone; infinite: only when something comes."""
        times = [at_s for lane in self._lanes if (at_s := lane.next_at_s()) is not None]
        if self._takes_more():
            times.append(self.read_again_at_s)
        return min(times, default=inf)

    def position(self) -> Position:
        """Return how far the shard is dealt with."""
        if self.finished:
            return Position(after=self._progress.after, finished=True)
        return Position(
            after=self._progress.after,
            since_s=self._since_s if self._progress.after is None else None,
            factor=self._mapping.parallelization_factor,
            lanes=self._progress.lanes,
            windows={
                lane.number: WindowPosition(
                    lane.window.start_s, lane.window.end_s, lane.window.state.decode()
                )
                for lane in self._lanes
                if lane.window is not None
            },
        )

    def _takes_more(self) -> bool:
        if self._ended or all(lane.gathering.full for lane in self._lanes):
            return False
        waiting = sum(len(lane.gathering) for lane in self._lanes)
        size = sum(lane.gathering.payload_bytes for lane in self._lanes)
        return waiting < BACKLOG_RECORDS_MAX and size < BACKLOG_BYTES_MAX


def _opened(kept: WindowPosition | None) -> Window | None:
    return None if kept is None else Window(kept.start_s, kept.end_s, kept.state.encode())
