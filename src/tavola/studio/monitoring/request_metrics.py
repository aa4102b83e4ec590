"""Requests, faults, latency and consumed units by operation and table, over several hours.

Notified of every call, so recording only counts. What a page shows is computed on request from immutable slices, outside
the lock. Bounded in every direction: distinct operations, tables and indexes, time, and bytes kept of a request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tavola.clock import Clock
from tavola.engine import ItemAccess
from tavola.protocol.arns import Scope
from tavola.protocol.faults import THROTTLING_CODES, Fault, TransactionCanceledFault
from tavola.protocol.operations import OPERATIONS
from tavola.studio.monitoring.counters import (
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
from tavola.studio.monitoring.timeline import SET_BACK_S, SLICE_LENGTHS, Timeline, level_of

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
        touches: Sequence[ItemAccess],
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
        for arn, index, _, reads, writes, _ in touches:
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
            looks, known = self._named(operation, touches, body)
            if first is not None and not several:
                self._at[first] = known
        else:
            looks = False
        asked, cell, mark = known
        cell.took.append(took_s)
        if len(cell.took) >= TOOK_MAX:
            cell.settle()
        tally = cell.tally
        tally.reads += read
        tally.writes += written
        if looks or took_s > mark.time or read + written > mark.units:
            self._dearest.keep(mark, began_s, took_s, touches, read + written, fault, body)
        if fault is not None:
            self._refused(tally, asked, began_s, fault, body)
        elif operation in _BATCHES and any(_is_refused(touch) for touch in touches):
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

    def _named(self, operation: str, touches: Sequence[ItemAccess], body: bytes) -> tuple[bool, _KindCounter]:
        """Return where a call is counted, and whether it is the first of its kind in this second."""
        if touches:
            tables = tuple(dict.fromkeys(self._name(touch.table) for touch in touches))
        else:
            named = named_table(body)
            tables = () if named is None else (named,)
        asked = CallKind(operation if operation in OPERATIONS else UNKNOWN, tables)
        index = touches[0].index_name if touches else None
        found = self._counted.get((asked, index))
        if found is not None:
            return False, found
        if len(self._kinds) >= _NAMES_MAX:
            self._kinds.clear()
        asked = self._kinds.setdefault(asked, asked)
        found = _KindCounter(asked, self._slice.cell(asked), self._dearest.leaders_of(asked, index))
        if len(self._counted) < _NAMES_MAX:
            self._counted[asked, index] = found
        return True, found

    def _place(self, arn: str, index: str | None) -> CapacityUse:
        found = self._places[arn, index] = self._slice.place(CapacityTarget(self._name(arn), index))
        return found

    def _name(self, arn: str) -> str:
        found = self._names.get(arn)
        if found is None:
            if len(self._names) >= _NAMES_MAX:
                self._names.clear()
            found = self._names[arn] = table_name_only(arn)
        return found

    def _refused(self, tally: CallTally, asked: CallKind, began_s: float, fault: Fault, body: bytes) -> None:
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
            kept = body if len(body) <= BODY_BYTES_MAX // 16 else None
            self._troubles.append(FailedCall(began_s, asked, fault.code, reasons, kept))


def _is_refused(touch: ItemAccess) -> bool:
    """Tell whether a touch is of what was refused: nothing else consumes nothing."""
    return not touch.reads and not touch.writes
