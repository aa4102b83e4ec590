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
from tavola.protocol.arns import Scope, table_name_of
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
from tavola.studio.monitoring.request_shapes import BODY_BYTES_MAX, named_table


class SliceLength(NamedTuple):
    """A length of slices and how long they are kept."""

    length_s: int
    kept_s: int


SLICE_LENGTHS = (SliceLength(1, 600), SliceLength(10, 3600), SliceLength(60, 21_600))
WINDOW_S_MAX = SLICE_LENGTHS[-1].kept_s
SET_BACK_S = 60
"""A call this long before the last one means that the clock was set back, so older counts are discarded."""
BYTES_MAX = 16 * 1024 * 1024


class Timeline:
    """Counts over time in slices of three lengths."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._open: list[CounterSlice | None]
        self._closed: list[deque[ClosedSlice]]
        self.clear()

    def clear(self) -> None:
        """Discard all counts."""
        self._open = [None for _ in SLICE_LENGTHS]
        self._closed = [deque() for _ in SLICE_LENGTHS]
        self.bytes = 0  # approximate memory of closed slices

    def slice_at(self, second: int) -> CounterSlice:
        """Return the open slice for a second; slightly late calls count in the current second."""
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
        """Close the open slice of a level, add it to the next longer one, and drop old slices."""
        current = self._open[level]
        assert current is not None
        closed = current.freeze()
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
        """Drop the details of the oldest seconds, then tens of seconds, then minutes, until memory suffices."""
        for slices in self._closed:
            for position, time_slice in enumerate(slices):
                if self.bytes <= self._bytes_max:
                    return
                if time_slice.kinds != (OTHER_KINDS,):
                    slices[position] = thinned = time_slice.without_kinds()
                    self.bytes += thinned.bytes - time_slice.bytes

    def since(self, start_s: int, level: int, end_s: float = inf) -> list[ClosedSlice]:
        """Return the slices of a level in a time range, in order; the last ones may be shorter."""
        slices = [time_slice for time_slice in self._closed[level] if start_s <= time_slice.start_s < end_s]
        for lower in range(level, -1, -1):
            current = self._open[lower]
            if current is not None and start_s <= current.start_s < end_s:
                slices.append(current.freeze())
        return slices

    def fewest_slices(self, start_s: int, level: int) -> list[ClosedSlice]:
        """Return the slices since a time for totals, using longer ones where they fit entirely."""
        slices: list[ClosedSlice] = []
        for longer in range(level + 1, len(SLICE_LENGTHS)):
            length_s = SLICE_LENGTHS[longer].length_s
            aligned_s = -(-start_s // length_s) * length_s
            slices += self.since(start_s, longer - 1, aligned_s)
            start_s = aligned_s
        return slices + self.since(start_s, len(SLICE_LENGTHS) - 1)

    @property
    def slice_count(self) -> int:
        """The number of slices in memory."""
        return sum(len(slices) for slices in self._closed) + sum(
            time_slice is not None for time_slice in self._open
        )


def level_of(window_s: int) -> int:
    """Return the level whose slices cover a window."""
    for level, step in enumerate(SLICE_LENGTHS):
        if window_s <= step.kept_s:
            return level
    return len(SLICE_LENGTHS) - 1


def group_by_step(slices: Iterable[ClosedSlice], step_s: int) -> dict[int, list[ClosedSlice]]:
    """Return slices by the start of their step."""
    by_step: dict[int, list[ClosedSlice]] = {}
    for time_slice in slices:
        by_step.setdefault(time_slice.start_s - time_slice.start_s % step_s, []).append(time_slice)
    return by_step


FAILED_CALLS_MAX = 200
UNKNOWN = "(unknown)"  # stands for all operations that DynamoDB does not have
_NAMES_MAX = 1024

_THROTTLES = frozenset(
    {
        *THROTTLING_CODES,
        *("ProvisionedThroughputExceeded", "ThrottlingError"),  # in cancellation reasons
    }
)
_BATCHES = frozenset({"BatchExecuteStatement", "BatchGetItem", "BatchWriteItem"})
_CONDITIONS = frozenset({"ConditionalCheckFailedException", "ConditionalCheckFailed"})
_CONFLICTS = frozenset(
    {"TransactionConflictException", "TransactionConflict", "TransactionInProgressException"}
)


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A call that was throttled, conflicted with a transaction, or failed its condition."""

    at_s: float
    kind: CallKind
    code: str
    reasons: tuple[str, ...]  # for a cancelled transaction, one per action
    body: bytes | None  # None: too long to keep


@dataclass(frozen=True, slots=True)
class MetricsView:
    """The counts of a window as immutable slices."""

    start_s: int  # of the first step
    step_s: int
    steps: int
    slices: list[ClosedSlice]  # for a series
    summed: list[ClosedSlice]  # the same time in fewer slices, for totals


class _KindCounter(NamedTuple):
    """The counters for a kind of call in the current second."""

    kind: CallKind
    cell: CallCounter
    mark: KindLeaders


class RequestMetrics:
    """Counts requests. Not thread-safe: callers hold the monitor's lock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timeline = Timeline()
        self._expensive = ExpensiveRequests()
        self._failed: deque[FailedCall] = deque(maxlen=FAILED_CALLS_MAX)
        self._names: dict[str, str] = {}  # table names by ARN
        self._kinds: dict[CallKind, CallKind] = {}  # interned
        self._slice = CounterSlice(-1)
        self._second = -1
        # Counters of the current second, so that most calls need only one lookup.
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
        has_several = False
        for arn, index, _, reads, writes, _ in accesses:
            used = self._places.get((arn, index)) or self._place(arn, index)
            used.reads += reads
            used.writes += writes
            read += reads
            written += writes
            if first is None:
                first = operation, arn, index
            elif arn != first[1]:
                has_several = True
        known = None if has_several or first is None else self._at.get(first)
        if known is None:
            is_first, known = self._find_counter(operation, accesses, body)
            if first is not None and not has_several:
                self._at[first] = known
        else:
            is_first = False
        kind, cell, mark = known
        cell.took.append(took_s)
        if len(cell.took) >= TOOK_MAX:
            cell.settle()
        tally = cell.tally
        tally.reads += read
        tally.writes += written
        if is_first or took_s > mark.time or read + written > mark.units:
            self._expensive.keep(mark, began_s, took_s, accesses, read + written, fault, body)
        if fault is not None:
            self._count_fault(tally, kind, began_s, fault, body)
        elif operation in _BATCHES and any(_is_refused(access) for access in accesses):
            tally.throttles += 1  # part of a batch was throttled, which is not a fault

    def view(self, window_s: int) -> MetricsView:
        """Return the counts of the last `window_s` seconds, including the current one."""
        level = level_of(window_s)
        step_s = SLICE_LENGTHS[level].length_s
        now_s = max(int(self._clock.now()), self._second)  # ignores small steps back of the clock
        last_s = now_s - now_s % step_s
        steps = max(1, window_s // step_s)
        start_s = last_s - (steps - 1) * step_s
        return MetricsView(
            start_s,
            step_s,
            steps,
            self._timeline.since(start_s, level),
            self._timeline.fewest_slices(start_s, level),
        )

    def expensive_requests(self, by: By) -> list[ExpensiveRequest]:
        """Return the most expensive requests of all hours; `select_requests` picks those of a window."""
        return self._expensive.of(by)

    def failed_calls(self, window_s: int, table: str | None, operation: str | None) -> list[FailedCall]:
        """Return the latest failed calls, newest first."""
        since_s = self._clock.now() - window_s
        return [
            call
            for call in reversed(self._failed)
            if call.at_s >= since_s and call.kind.matches(table, operation)
        ]

    @property
    def record_count(self) -> int:
        """The number of slices and requests in memory, which is bounded."""
        return self._timeline.slice_count + self._expensive.request_count + len(self._failed)

    @property
    def slice_bytes(self) -> int:
        """The approximate memory use of the slices."""
        return self._timeline.bytes

    def _turn(self, second: int) -> None:
        """Start a new second."""
        self._slice = self._timeline.slice_at(second)
        self._second = self._slice.start_s
        self._at.clear()
        self._counted.clear()
        self._places.clear()
        self._expensive.turn(second)

    def _find_counter(
        self, operation: str, accesses: Sequence[ItemAccess], body: bytes
    ) -> tuple[bool, _KindCounter]:
        """Return the counter of a call, and whether the call is the first of its kind in this second."""
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
        counter = _KindCounter(kind, self._slice.cell(kind), self._expensive.leaders_of(kind, index))
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
            name = self._names[arn] = table_name_of(arn)
        return name

    def _count_fault(
        self, tally: CallTally, call_kind: CallKind, began_s: float, fault: Fault, body: bytes
    ) -> None:
        tally.faults += 1
        tally.codes[fault.code] = tally.codes.get(fault.code, 0) + 1
        reasons = (
            tuple(reason.code for reason in fault.reasons)
            if isinstance(fault, TransactionCanceledFault)
            else ()
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
            self._failed.append(FailedCall(began_s, call_kind, fault.code, reasons, body_to_keep))


def _is_refused(access: ItemAccess) -> bool:
    """Return whether an access was throttled: only throttled ones consume nothing."""
    return not access.reads and not access.writes
