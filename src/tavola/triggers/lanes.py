"""Lanes: one line of invocations, each after the one before; a shard has as many as its parallelisation.

Records of one partition key are always in one lane, so their order holds whatever the other lanes do. A
lane says what is due and takes the outcome; it calls nobody.
"""

from __future__ import annotations

from dataclasses import dataclass

from tavola.triggers.batches import Gathering
from tavola.triggers.events import StreamRecord, Window
from tavola.triggers.mapping import Mapping
from tavola.triggers.outcomes import (
    Decision,
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
    """How long a retry waits: twice as long each time, up to a most. AWS does not publish its own."""

    first_s: float = 1.0
    most_s: float = 60.0

    def wait_s(self, retry: int) -> float:
        """Return how long the retry of this number waits, counted from one."""
        return min(self.most_s, self.first_s * 2.0 ** min(retry - 1, 60))


@dataclass(frozen=True, slots=True)
class Task:
    """An invocation that is due: a segment, inside a tumbling window or not."""

    segment: Segment
    window: Window | None = None
    final: bool = False  # the window ends: no records, and the state for the last time
    early: bool = False  # it ends before its time, because its state has grown too large


class Lane:
    """Records that wait, the segments at hand, and the window they are in."""

    def __init__(self, number: int, mapping: Mapping, backoff: Backoff, window: Window | None = None) -> None:
        self.number = number
        self.gathering = Gathering(mapping)
        self.window = window
        self.not_before_s = 0.0
        self.busy = False
        self.last_failure: str | None = None
        self._mapping = mapping
        self._backoff = backoff
        self._segments: list[Segment] = []
        self._early = window is not None and overflows(window.state)
        self._closing: Segment | None = Segment(()) if self._early else None

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing is at hand; a window may still be open."""
        return not (self.busy or self._segments or self.gathering or self._closing)

    def rests(self, dry_at_s: float | None, *, ended: bool) -> bool:
        """Tell whether there is nothing to do, a window that could be closed included."""
        return self.idle and not self._window_over(dry_at_s, ended=ended)

    @property
    def left(self) -> int:
        """How many records wait or are at hand."""
        return len(self.gathering) + sum(len(segment.records) for segment in self._segments)

    def add(self, record: StreamRecord, now_s: float) -> None:
        """Let a record wait for its batch."""
        self.gathering.add(record, now_s)

    def due(self, now_s: float, *, flush: bool, dry_at_s: float | None, ended: bool) -> Task | None:
        """Return the invocation that is due now, or None.

        `flush`: a partial batch need not wait. `dry_at_s`: when the shard was last found to have nothing more.
        `ended`: it is closed and read to its end, which also ends its window.
        """
        if self.busy or now_s < self.not_before_s:
            return None
        if self._closing is not None:
            return Task(self._closing, self.window, final=True, early=self._early)
        if not self._segments:
            until_s = self._enter_window()
            taken = self.gathering.take(now_s, flush=flush or ended, until_s=until_s)
            if taken:
                self._segments = [Segment(taken)]
            elif self._window_over(dry_at_s, ended=ended):
                self._closing = Segment(())
                return Task(self._closing, self.window, final=True)
        return Task(self._segments[0], self.window) if self._segments else None

    def expire(self, now_s: float) -> Discard | None:
        """Give up what is too old of the segment at hand, and return it."""
        if not self._segments or self.busy:
            return None
        discard, rest = expire(self._segments[0], now_s, self._mapping)
        self._segments[:1] = [] if rest is None else [rest]
        return discard

    def settle(self, task: Task, outcome: Outcome, now_s: float) -> Decision:
        """Take the outcome of a task, and return what became of its records."""
        self.last_failure = None if isinstance(outcome, Succeeded) else outcome.reason
        if task.final:
            return self._settle_window(outcome, now_s)
        decision = decide(task.segment, outcome, self._mapping)
        self._segments[:1] = decision.left
        if decision.waits:
            self.not_before_s = now_s + self._backoff.wait_s(decision.left[0].retries)
        else:
            self.not_before_s = 0.0
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
        """Return when the lane may be due again by time alone; None: only when something comes."""
        if self.busy:
            return None
        if self._segments or self._closing is not None:
            return self.not_before_s
        times = [self.gathering.due_at_s(), None if self.window is None else float(self.window.end_s)]
        return min((at_s for at_s in times if at_s is not None), default=None)

    def _settle_window(self, outcome: Outcome, now_s: float) -> Decision:
        """Close the window, or try again until it can be: nothing goes past a window that is not closed."""
        assert self._closing is not None, "a final invocation belongs to a window that closes"
        given_up: Discard | None = None
        if isinstance(outcome, Failed | FailedFrom):
            retries, invocations = self._closing.retries + 1, self._closing.invocations + 1
            limit = self._mapping.maximum_retry_attempts
            if limit == -1 or retries <= limit:
                self._closing = Segment((), retries, invocations)
                self.not_before_s = now_s + self._backoff.wait_s(retries)
                return Decision(left=(self._closing,), waits=True)
            given_up = Discard((), "RetryAttemptsExhausted", invocations, outcome.reason)
        self._closing, self._early, self.window = None, False, None
        self.not_before_s = 0.0
        return Decision(discarded=given_up)

    def _enter_window(self) -> float | None:
        """Return the end of the window that the next record is in; opens one where none is open."""
        length_s = self._mapping.tumbling_window_in_seconds
        if not length_s:
            return None
        first = self.gathering.first
        if self.window is None and first is not None:
            start_s = int(first.created_at_s // length_s) * length_s
            self.window = Window(start_s, start_s + length_s)
        return None if self.window is None else float(self.window.end_s)

    def _window_over(self, dry_at_s: float | None, *, ended: bool) -> bool:
        """Tell whether the open window can get no more records."""
        if self.window is None:
            return False
        first = self.gathering.first
        if first is not None:
            return first.created_at_s >= self.window.end_s
        return ended or (dry_at_s is not None and dry_at_s >= self.window.end_s)
