"""Counters of requests, latency and units for one second, ten seconds or a minute.

A slice counts by kind of call (operation and tables) and by table or index. The number of kinds is bounded, because names
come from requests and a request may name anything.

Latencies are counted in buckets that are each 4 % wider than the one before. The middle of a bucket is within 2 % of the true
value from a microsecond to minutes, and bucket counts of two spans can be added, which percentiles cannot.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

GROWTH = 1.04
LEAST_S = 1e-6
BUCKETS_MAX = 512  # the last holds whatever took longer than nine minutes
QUANTILES = (0.5, 0.9, 0.99, 0.999)

_PER_LOG = 1 / math.log(GROWTH)
_log = math.log

Counts = dict[int, int]


def bucket_of(took_s: float) -> int:
    """Return the bucket that a duration falls into."""
    if took_s <= LEAST_S:
        return 0
    return min(BUCKETS_MAX, 1 + int(_log(took_s / LEAST_S) * _PER_LOG))


def duration_of(bucket: int) -> float:
    """Return the duration in seconds that a bucket stands for."""
    return LEAST_S if bucket == 0 else LEAST_S * math.pow(GROWTH, bucket - 0.5)


def quantiles(
    counts: Mapping[int, int], slowest_s: float = math.inf, shares: Iterable[float] = QUANTILES
) -> tuple[float, ...] | None:
    """Return the durations in seconds that such shares of the calls did not exceed; None of no call.

    None is longer than the slowest, which is known exactly and may lie below the middle of its bucket.
    """
    total = sum(counts.values())
    if not total:
        return None
    ordered = sorted(counts.items())
    durations = []
    for share in shares:
        rank, passed = math.ceil(share * total), 0
        for bucket, count in ordered:
            passed += count
            if passed >= rank:
                durations.append(min(slowest_s, duration_of(bucket)))
                break
    return tuple(durations)


CELLS_MAX = 96  # operations of tables told apart in a slice
PLACES_MAX = 128  # tables and indexes told apart in a slice
OTHERS = "(others)"  # what stands for all that are too many to be told apart
TOOK_MAX = 512  # durations before they are put into their buckets
_NUMBERS = 9
_UNITS = 4
_BESIDE_BYTES = 1024  # of a slice, beside its numbers


class CallKind(NamedTuple):
    """What calls have in common: the operation, and the tables that they touched or named."""

    operation: str
    tables: tuple[str, ...]

    def matches(self, table: str | None, operation: str | None) -> bool:
        """Tell whether it is of a table and an operation; None: whichever."""
        return (table is None or table in self.tables) and (operation is None or operation == self.operation)


class CapacityTarget(NamedTuple):
    """Where units are consumed."""

    table: str
    index_name: str | None


OTHER_KINDS = CallKind(OTHERS, ())
OTHER_TARGETS = CapacityTarget(OTHERS, None)


@dataclass(slots=True)
class CallTally:
    """How many calls there were, and what became of them."""

    requests: int = 0
    faults: int = 0
    throttles: int = 0
    conditions: int = 0  # conditional writes whose condition did not hold
    conflicts: int = 0  # writes and transactions that met another transaction
    took_s: float = 0.0
    slowest_s: float = 0.0
    reads: float = 0.0
    writes: float = 0.0
    codes: dict[str, int] = field(default_factory=dict)

    def add(self, other: CallTally) -> None:
        """Add what another counted."""
        self.requests += other.requests
        self.faults += other.faults
        self.throttles += other.throttles
        self.conditions += other.conditions
        self.conflicts += other.conflicts
        self.took_s += other.took_s
        self.slowest_s = max(self.slowest_s, other.slowest_s)
        self.reads += other.reads
        self.writes += other.writes
        for code, count in other.codes.items():
            self.codes[code] = self.codes.get(code, 0) + count


@dataclass(slots=True)
class CallCounter:
    """The calls of one kind, and how long they took."""

    tally: CallTally = field(default_factory=CallTally)
    latency: Counts = field(default_factory=dict)
    took: list[float] = field(default_factory=list)  # durations that are in neither yet

    def settle(self) -> None:
        """Count the durations that wait, all at once; it is done often enough to be done soon."""
        took = self.took
        if not took:
            return
        tally, latency = self.tally, self.latency
        tally.requests += len(took)
        tally.took_s += sum(took)
        tally.slowest_s = max(tally.slowest_s, *took)
        for bucket in map(bucket_of, took):
            latency[bucket] = latency.get(bucket, 0) + 1
        took.clear()

    def add(self, other: CallCounter) -> None:
        """Add what another counted."""
        other.settle()
        self.tally.add(other.tally)
        for bucket, count in other.latency.items():
            self.latency[bucket] = self.latency.get(bucket, 0) + count

    def quantiles(self) -> tuple[float, ...] | None:
        """Return how long the calls took, at the usual shares; None if there were none."""
        return quantiles(self.latency, self.tally.slowest_s)


class CapacityUse:
    """Units read and written in a place, and the most of each in a second."""

    __slots__ = ("peak_reads", "peak_writes", "reads", "writes")

    def __init__(self) -> None:
        self.reads = self.writes = self.peak_reads = self.peak_writes = 0.0

    def add(self, reads: float, writes: float, peak_reads: float, peak_writes: float) -> None:
        """Add what was used in another time."""
        self.reads += reads
        self.writes += writes
        self.peak_reads = max(self.peak_reads, peak_reads)
        self.peak_writes = max(self.peak_writes, peak_writes)


class CounterSlice:
    """What was counted since `start_s`; it is open while it is counted in."""

    __slots__ = ("cells", "length_s", "places", "start_s")

    def __init__(self, start_s: int, length_s: int = 1) -> None:
        self.start_s = start_s
        self.length_s = length_s
        self.cells: dict[CallKind, CallCounter] = {}
        self.places: dict[CapacityTarget, CapacityUse] = {}

    def cell(self, kind: CallKind) -> CallCounter:
        """Return where calls of this kind are counted."""
        counter = self.cells.get(kind)
        if counter is None:
            if len(self.cells) >= CELLS_MAX:
                kind = OTHER_KINDS
            counter = self.cells.setdefault(kind, CallCounter())
        return counter

    def place(self, target: CapacityTarget) -> CapacityUse:
        """Return where the units of a table or index are counted."""
        use = self.places.get(target)
        if use is None:
            if len(self.places) >= PLACES_MAX:
                target = OTHER_TARGETS
            use = self.places.setdefault(target, CapacityUse())
        return use

    def take(self, other: CounterSlice) -> None:
        """Count what a shorter slice counted."""
        for kind, cell in other.cells.items():
            self.cell(kind).add(cell)
        for target, used in other.places.items():
            self.place(target).add(used.reads, used.writes, *other.peaks(used))

    def peaks(self, used: CapacityUse) -> tuple[float, float]:
        """Return the most units read and written in a second: in a slice of one, all of them."""
        return (used.reads, used.writes) if self.length_s == 1 else (used.peak_reads, used.peak_writes)

    def closed(self) -> ClosedSlice:
        """Return what was counted so far, as it is kept; this one may be counted in further."""
        return ClosedSlice(self)


class ClosedSlice:
    """What was counted in a while that is over, in few arrays, since there are hours of it.

    What was told of it last is kept: a page asks the same each second.
    """

    __slots__ = (
        *("_asked", "_buckets", "_codes", "_counts", "_ends", "_numbers", "_told", "_units"),
        *("kinds", "places", "start_s"),
    )

    def __init__(self, of: CounterSlice) -> None:
        self.start_s = of.start_s
        self.kinds = tuple(of.cells)
        self.places = tuple(of.places)
        self._numbers = array("d")
        self._buckets, self._counts, self._ends = array("H"), array("I"), array("I")
        self._codes: dict[int, dict[str, int]] = {}
        for at, cell in enumerate(of.cells.values()):
            cell.settle()
            tally = cell.tally
            self._numbers.extend(
                (
                    *(tally.requests, tally.faults, tally.throttles, tally.conditions, tally.conflicts),
                    *(tally.took_s, tally.slowest_s, tally.reads, tally.writes),
                )
            )
            self._buckets.extend(cell.latency)
            self._counts.extend(cell.latency.values())
            self._ends.append(len(self._buckets))
            if tally.codes:
                self._codes[at] = dict(tally.codes)
        self._units = array("d")
        for used in of.places.values():
            self._units.extend((used.reads, used.writes, *of.peaks(used)))
        self._asked: tuple[str | None, str | None] | None = None
        self._told: tuple[CallTally, tuple[float, ...] | None] = CallTally(), None

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        numbers = 8 * (len(self._numbers) + len(self._units)) + 6 * len(self._buckets)
        names = len(self.kinds) + len(self.places) + sum(map(len, self._codes.values()))
        return _BESIDE_BYTES + numbers + 100 * names

    def add_to(self, cell: CallCounter, at: int) -> None:
        """Add the calls of one kind to others."""
        numbers, tally, latency = self._numbers[at * _NUMBERS : (at + 1) * _NUMBERS], cell.tally, cell.latency
        tally.requests += int(numbers[0])
        tally.faults += int(numbers[1])
        tally.throttles += int(numbers[2])
        tally.conditions += int(numbers[3])
        tally.conflicts += int(numbers[4])
        tally.took_s += numbers[5]
        tally.slowest_s = max(tally.slowest_s, numbers[6])
        tally.reads += numbers[7]
        tally.writes += numbers[8]
        for code, count in self._codes.get(at, {}).items():
            tally.codes[code] = tally.codes.get(code, 0) + count
        span = slice(self._ends[at - 1] if at else 0, self._ends[at])
        for bucket, count in zip(self._buckets[span], self._counts[span], strict=True):
            latency[bucket] = latency.get(bucket, 0) + count

    def used(self) -> Iterator[tuple[CapacityTarget, tuple[float, ...]]]:
        """Yield where units were consumed: those read and written, and the most of each in a second."""
        for at, target in enumerate(self.places):
            yield target, tuple(self._units[at * _UNITS : (at + 1) * _UNITS])

    def matching(self, table: str | None, operation: str | None) -> Iterator[tuple[int, CallKind]]:
        """Yield the kinds of calls of a table and an operation, each with its place."""
        for at, kind in enumerate(self.kinds):
            if kind.matches(table, operation):
                yield at, kind

    def summary(self, table: str | None, operation: str | None) -> tuple[CallTally, tuple[float, ...] | None]:
        """Return how many such calls there were and how long they took, at the usual shares; None if there were none."""
        if self._asked != (table, operation):
            cell = sum_slices((self,), table, operation)
            self._told = cell.tally, cell.quantiles()
            self._asked = (table, operation)
        return self._told

    def unnamed(self) -> ClosedSlice:
        """Return the same in all, of which nothing is told apart."""
        whole = CounterSlice(self.start_s, 0)
        whole.cells[OTHER_KINDS] = sum_slices((self,), None, None)
        used = whole.places[OTHER_TARGETS] = CapacityUse()
        for _, units in self.used():
            used.add(*units)
        return whole.closed()


def sum_slices(slices: Iterable[ClosedSlice], table: str | None, operation: str | None) -> CallCounter:
    """Return what several slices counted of a table and an operation."""
    cell = CallCounter()
    for each in slices:
        for at, _ in each.matching(table, operation):
            each.add_to(cell, at)
    return cell
