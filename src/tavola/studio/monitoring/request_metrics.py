"""Requests, faults, latency and consumed units by operation and table, over several hours.

Notified of every call, so recording only counts. What a page shows is computed on request from immutable slices, outside
the lock. Bounded in every direction: distinct operations, tables and indexes, time, and bytes kept of a request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from tavola.clock import Clock
from tavola.engine import ItemAccess
from tavola.protocol.arns import Scope
from tavola.protocol.faults import THROTTLING_CODES, Fault, TransactionCanceledFault
from tavola.protocol.operations import OPERATIONS
from tavola.studio.monitoring.counters import (
    OTHER_KINDS,
    TOOK_MAX,
    CallCounter,
    CallKind,
    CallTally,
    CapacityTarget,
    CapacityUse,
    ClosedSlice,
    CounterSlice,
)
from tavola.studio.monitoring.expensive_requests import By, ExpensiveRequest, ExpensiveRequests, KindLeaders
from tavola.studio.monitoring.request_shapes import BODY_BYTES_MAX, named_table, table_name_only


class SliceLength(NamedTuple):
    """A length of slices, and for how long they are kept."""

    length_s: int
    kept_s: int


SLICE_LENGTHS = (SliceLength(1, 600), SliceLength(10, 3600), SliceLength(60, 21_600))
WINDOW_S_MAX = SLICE_LENGTHS[-1].kept_s
SET_BACK_S = 60
"""A call that came so long before the last one: the clock was set back, and what was counted is of another time."""
BYTES_MAX = 16 * 1024 * 1024


class Timeline:
    """What was counted, by when; `slice_at` gives where to count."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._open: list[CounterSlice | None]
        self._closed: list[deque[ClosedSlice]]
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._open = [None for _ in SLICE_LENGTHS]
        self._closed = [deque() for _ in SLICE_LENGTHS]
        self.bytes = 0  # about, of what is closed

    def slice_at(self, second: int) -> CounterSlice:
        """Return the slice of a second; a call that came a little earlier is counted with those that come now."""
        current = self._open[0]
        if current is not None and second <= current.start_s:
            if current.start_s - second <= SET_BACK_S:
                return current
            self.clear()
        elif current is not None:
            self._close(0, second)
            self._thin()
        self._open[0] = current = CounterSlice(second)
        return current

    def _close(self, level: int, second: int) -> None:
        """End the open slice of a level, add it to the longer one, and drop what is too old by now."""
        current = self._open[level]
        assert current is not None
        closed = current.closed()
        self._open[level] = None
        slices = self._closed[level]
        slices.append(closed)
        self.bytes += closed.bytes
        while (
            slices
            and slices[0].start_s < second - SLICE_LENGTHS[level].kept_s - SLICE_LENGTHS[level].length_s
        ):
            self.bytes -= slices.popleft().bytes
        if level + 1 == len(SLICE_LENGTHS):
            return
        length_s = SLICE_LENGTHS[level + 1].length_s
        start_s = closed.start_s - closed.start_s % length_s
        longer = self._open[level + 1]
        if longer is not None and longer.start_s != start_s:
            self._close(level + 1, second)
            longer = None
        if longer is None:
            longer = self._open[level + 1] = CounterSlice(start_s, length_s)
        longer.take(current)

    def _thin(self) -> None:
        """Sum up the oldest seconds, then tens of seconds, then minutes, until all of it has room."""
        for slices in self._closed:
            for at, each in enumerate(slices):
                if self.bytes <= self._bytes_max:
                    return
                if each.kinds != (OTHER_KINDS,):
                    slices[at] = unnamed = each.unnamed()
                    self.bytes += unnamed.bytes - each.bytes

    def since(self, start_s: int, level: int, end_s: float = inf) -> list[ClosedSlice]:
        """Return what was counted since then in slices of a level, the last ones shorter, in order of time."""
        slices = [each for each in self._closed[level] if start_s <= each.start_s < end_s]
        for lower in range(level, -1, -1):
            current = self._open[lower]
            if current is not None and start_s <= current.start_s < end_s:
                slices.append(current.closed())
        return slices

    def summed(self, start_s: int, level: int) -> list[ClosedSlice]:
        """Return what was counted since then in few slices, for sums: longer ones where they lie wholly inside."""
        slices: list[ClosedSlice] = []
        for longer in range(level + 1, len(SLICE_LENGTHS)):
            length_s = SLICE_LENGTHS[longer].length_s
            aligned_s = -(-start_s // length_s) * length_s
            slices += self.since(start_s, longer - 1, aligned_s)
            start_s = aligned_s
        return slices + self.since(start_s, len(SLICE_LENGTHS) - 1)

    @property
    def kept(self) -> int:
        """How many slices are kept."""
        return sum(len(kept) for kept in self._closed) + sum(each is not None for each in self._open)


def level_of(window_s: int) -> int:
    """Return the level whose slices reach back so far."""
    for level, step in enumerate(SLICE_LENGTHS):
        if window_s <= step.kept_s:
            return level
    return len(SLICE_LENGTHS) - 1


def group_by_step(slices: Iterable[ClosedSlice], step_s: int) -> dict[int, list[ClosedSlice]]:
    """Return slices by the start of the step that they lie in."""
    by_step: dict[int, list[ClosedSlice]] = {}
    for each in slices:
        by_step.setdefault(each.start_s - each.start_s % step_s, []).append(each)
    return by_step


FAILED_CALLS_MAX = 200
UNKNOWN = "(unknown)"  # an operation that there is not, whatever it is called
_NAMES_MAX = 1024

_THROTTLES = frozenset(
    {
        *THROTTLING_CODES,
        *("ProvisionedThroughputExceeded", "ThrottlingError"),  # as the reasons of a cancellation call them
    }
)
_BATCHES = frozenset({"BatchExecuteStatement", "BatchGetItem", "BatchWriteItem"})
_CONDITIONS = frozenset({"ConditionalCheckFailedException", "ConditionalCheckFailed"})
_CONFLICTS = frozenset(
    {"TransactionConflictException", "TransactionConflict", "TransactionInProgressException"}
)


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A call that was throttled, met another transaction, or whose condition did not hold."""

    at_s: float
    kind: CallKind
    code: str
    reasons: tuple[str, ...]  # of a cancelled transaction, for each of its actions
    body: bytes | None  # None: too long to keep


@dataclass(frozen=True, slots=True)
class MetricsView:
    """What was counted in a window, in slices that change no more."""

    start_s: int  # of the first step
    step_s: int
    steps: int
    slices: list[ClosedSlice]  # for a series
    summed: list[ClosedSlice]  # the same in fewer, for sums


class _KindCounter(NamedTuple):
    """Where the calls of a kind are counted in the running second."""

    kind: CallKind
    cell: CallCounter
    mark: KindLeaders


class RequestMetrics:
    """Counts what is asked. Not safe from several threads: whoever calls it holds the watch's lock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timeline = Timeline()
        self._dearest = ExpensiveRequests()
        self._troubles: deque[FailedCall] = deque(maxlen=FAILED_CALLS_MAX)
        self._names: dict[str, str] = {}  # of tables, by ARN
        self._kinds: dict[CallKind, CallKind] = {}  # one object of each, however long it is kept
        self._slice = CounterSlice(-1)
        self._second = -1
        # Of the running second, so that a call need not be named: where it is counted, and its units.
        self._at: dict[tuple[str, str, str | None], _KindCounter] = {}  # by operation, ARN and index
        self._counted: dict[tuple[CallKind, str | None], _KindCounter] = {}
        self._places: dict[tuple[str, str | None], CapacityUse] = {}
        self.calls = 0

    def note(
        self,
        operation: str,
        scope: Scope,
        began_s: float,
        took_s: float,
        accesses: Sequence[ItemAccess],
        fault: Fault | None,
        body: bytes,
    ) -> None:
        """Count a call."""
        self.calls += 1
        second = int(began_s)
        if second > self._second or second < self._second - SET_BACK_S:
            self._turn(second)
        read = written = 0.0
        first = None
        several = False
        for arn, index, _, reads, writes, _ in accesses:
            used = self._places.get((arn, index)) or self._place(arn, index)
            used.reads += reads
            used.writes += writes
            read += reads
            written += writes
            if first is None:
                first = operation, arn, index
            elif arn != first[1]:
                several = True
        known = None if several or first is None else self._at.get(first)
        if known is None:
            looks, known = self._named(operation, accesses, body)
            if first is not None and not several:
                self._at[first] = known
        else:
            looks = False
        kind, cell, mark = known
        cell.took.append(took_s)
        if len(cell.took) >= TOOK_MAX:
            cell.settle()
        tally = cell.tally
        tally.reads += read
        tally.writes += written
        if looks or took_s > mark.time or read + written > mark.units:
            self._dearest.keep(mark, began_s, took_s, accesses, read + written, fault, body)
        if fault is not None:
            self._refused(tally, kind, began_s, fault, body)
        elif operation in _BATCHES and any(_is_refused(access) for access in accesses):
            tally.throttles += 1  # some of a batch was left for later, and no fault tells of it

    def view(self, window_s: int) -> MetricsView:
        """Return what was counted in the last so many seconds, the running one among them."""
        level = level_of(window_s)
        step_s = SLICE_LENGTHS[level].length_s
        now_s = max(int(self._clock.now()), self._second)  # a clock that is set back a little stands still
        last_s = now_s - now_s % step_s
        steps = max(1, window_s // step_s)
        start_s = last_s - (steps - 1) * step_s
        return MetricsView(
            start_s,
            step_s,
            steps,
            self._timeline.since(start_s, level),
            self._timeline.summed(start_s, level),
        )

    def expensive_requests(self, by: By) -> list[ExpensiveRequest]:
        """Return the dearest requests of hours; `chosen` picks those of a window."""
        return self._dearest.of(by)

    def failed_calls(self, window_s: int, table: str | None, operation: str | None) -> list[FailedCall]:
        """Return the last calls that were throttled or lost a race, the newest first."""
        since_s = self._clock.now() - window_s
        return [
            each
            for each in reversed(self._troubles)
            if each.at_s >= since_s and each.kind.matches(table, operation)
        ]

    @property
    def kept(self) -> int:
        """How many slices and requests are kept, which is bounded."""
        return self._timeline.kept + self._dearest.kept + len(self._troubles)

    @property
    def slice_bytes(self) -> int:
        """About how much memory the slices take."""
        return self._timeline.bytes

    def _turn(self, second: int) -> None:
        """Begin a second."""
        self._slice = self._timeline.slice_at(second)
        self._second = self._slice.start_s
        self._at.clear()
        self._counted.clear()
        self._places.clear()
        self._dearest.turn(second)

    def _named(
        self, operation: str, accesses: Sequence[ItemAccess], body: bytes
    ) -> tuple[bool, _KindCounter]:
        """Return where a call is counted, and whether it is the first of its kind in this second."""
        if accesses:
            tables = tuple(dict.fromkeys(self._name(access.table) for access in accesses))
        else:
            named = named_table(body)
            tables = () if named is None else (named,)
        kind = CallKind(operation if operation in OPERATIONS else UNKNOWN, tables)
        index = accesses[0].index_name if accesses else None
        counter = self._counted.get((kind, index))
        if counter is not None:
            return False, counter
        if len(self._kinds) >= _NAMES_MAX:
            self._kinds.clear()
        kind = self._kinds.setdefault(kind, kind)
        counter = _KindCounter(kind, self._slice.cell(kind), self._dearest.leaders_of(kind, index))
        if len(self._counted) < _NAMES_MAX:
            self._counted[kind, index] = counter
        return True, counter

    def _place(self, arn: str, index: str | None) -> CapacityUse:
        use = self._places[arn, index] = self._slice.place(CapacityTarget(self._name(arn), index))
        return use

    def _name(self, arn: str) -> str:
        name = self._names.get(arn)
        if name is None:
            if len(self._names) >= _NAMES_MAX:
                self._names.clear()
            name = self._names[arn] = table_name_only(arn)
        return name

    def _refused(
        self, tally: CallTally, call_kind: CallKind, began_s: float, fault: Fault, body: bytes
    ) -> None:
        tally.faults += 1
        tally.codes[fault.code] = tally.codes.get(fault.code, 0) + 1
        reasons = (
            tuple(each.code for each in fault.reasons) if isinstance(fault, TransactionCanceledFault) else ()
        )
        codes = {fault.code, *reasons}
        throttled, conditional, conflict = (
            not codes.isdisjoint(kind) for kind in (_THROTTLES, _CONDITIONS, _CONFLICTS)
        )
        tally.throttles += throttled
        tally.conditions += conditional
        tally.conflicts += conflict
        if throttled or conditional or conflict:
            body_to_keep = body if len(body) <= BODY_BYTES_MAX // 16 else None
            self._troubles.append(FailedCall(began_s, call_kind, fault.code, reasons, body_to_keep))


def _is_refused(access: ItemAccess) -> bool:
    """Return whether an access was throttled: only those consume nothing."""
    return not access.reads and not access.writes
