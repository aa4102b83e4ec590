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
BUCKETS_MAX = 512  # the last one holds everything over nine minutes
QUANTILES = (0.5, 0.9, 0.99, 0.999)

_PER_LOG = 1 / math.log(GROWTH)
_log = math.log

Counts = dict[int, int]


def bucket_of(took_s: float) -> int:
    """Return the bucket of a duration."""
    if took_s <= LEAST_S:
        return 0
    return min(BUCKETS_MAX, 1 + int(_log(took_s / LEAST_S) * _PER_LOG))


def duration_of(bucket: int) -> float:
    """Return the middle of a bucket in seconds."""
    return LEAST_S if bucket == 0 else LEAST_S * math.pow(GROWTH, bucket - 0.5)


def quantiles(
    counts: Mapping[int, int], slowest_s: float = math.inf, shares: Iterable[float] = QUANTILES
) -> tuple[float, ...] | None:
    """Return quantiles of the durations in seconds; None if there are no calls.

    They are capped at the slowest duration, which is exact and may be below the middle of its bucket.
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


CELLS_MAX = 96  # kinds of calls in a slice
PLACES_MAX = 128  # tables and indexes in a slice
OTHERS = "(others)"  # stands for all kinds, tables and indexes beyond the maximum
TOOK_MAX = 512  # durations collected before they are put into buckets
_NUMBERS = 9
_UNITS = 4
_OVERHEAD_BYTES = 1024  # of a slice


class CallKind(NamedTuple):
    """The kind of a call: its operation and the tables that it accessed or named."""

    operation: str
    tables: tuple[str, ...]

    def matches(self, table: str | None, operation: str | None) -> bool:
        """Return whether it is of a table and an operation; None matches any."""
        return (table is None or table in self.tables) and (operation is None or operation == self.operation)


class CapacityTarget(NamedTuple):
    """A table or index that consumes capacity."""

    table: str
    index_name: str | None


OTHER_KINDS = CallKind(OTHERS, ())
OTHER_TARGETS = CapacityTarget(OTHERS, None)


@dataclass(slots=True)
class CallTally:
    """The number of calls and of their outcomes."""

    requests: int = 0
    faults: int = 0
    throttles: int = 0
    conditions: int = 0  # failed conditional writes
    conflicts: int = 0  # conflicts with a transaction
    took_s: float = 0.0
    slowest_s: float = 0.0
    reads: float = 0.0
    writes: float = 0.0
    codes: dict[str, int] = field(default_factory=dict)

    def add(self, other: CallTally) -> None:
        """Add another's counts."""
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
    """The calls of one kind and their latencies."""

    tally: CallTally = field(default_factory=CallTally)
    latency: Counts = field(default_factory=dict)
    took: list[float] = field(default_factory=list)  # durations not counted yet

    def settle(self) -> None:
        """Count the collected durations."""
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
        """Add another's counts."""
        other.settle()
        self.tally.add(other.tally)
        for bucket, count in other.latency.items():
            self.latency[bucket] = self.latency.get(bucket, 0) + count

    def quantiles(self) -> tuple[float, ...] | None:
        """Return the usual quantiles of the latencies; None if there are no calls."""
        return quantiles(self.latency, self.tally.slowest_s)


class CapacityUse:
    """Units read and written by a table or index, and their peaks in one second."""

    __slots__ = ("peak_reads", "peak_writes", "reads", "writes")

    def __init__(self) -> None:
        self.reads = self.writes = self.peak_reads = self.peak_writes = 0.0

    def add(self, reads: float, writes: float, peak_reads: float, peak_writes: float) -> None:
        """Add the use in another time."""
        self.reads += reads
        self.writes += writes
        self.peak_reads = max(self.peak_reads, peak_reads)
        self.peak_writes = max(self.peak_writes, peak_writes)


class CounterSlice:
    """Counts since `start_s` that can still grow."""

    __slots__ = ("cells", "length_s", "places", "start_s")

    def __init__(self, start_s: int, length_s: int = 1) -> None:
        self.start_s = start_s
        self.length_s = length_s
        self.cells: dict[CallKind, CallCounter] = {}
        self.places: dict[CapacityTarget, CapacityUse] = {}

    def cell(self, kind: CallKind) -> CallCounter:
        """Return the counter for a kind of call."""
        counter = self.cells.get(kind)
        if counter is None:
            if len(self.cells) >= CELLS_MAX:
                kind = OTHER_KINDS
            counter = self.cells.setdefault(kind, CallCounter())
        return counter

    def place(self, target: CapacityTarget) -> CapacityUse:
        """Return the counter for the units of a table or index."""
        use = self.places.get(target)
        if use is None:
            if len(self.places) >= PLACES_MAX:
                target = OTHER_TARGETS
            use = self.places.setdefault(target, CapacityUse())
        return use

    def take(self, other: CounterSlice) -> None:
        """Add the counts of a shorter slice."""
        for kind, cell in other.cells.items():
            self.cell(kind).add(cell)
        for target, used in other.places.items():
            self.place(target).add(used.reads, used.writes, *other.peaks(used))

    def peaks(self, used: CapacityUse) -> tuple[float, float]:
        """Return the peak units per second; in a slice of one second, all units."""
        return (used.reads, used.writes) if self.length_s == 1 else (used.peak_reads, used.peak_writes)

    def freeze(self) -> ClosedSlice:
        """Return an immutable copy of the counts so far."""
        return ClosedSlice(self)


class ClosedSlice:
    """The counts of a finished slice, in compact arrays because hours of them are kept.

    The last summary is cached, because a page requests the same one every second.
    """

    __slots__ = (
        *("_buckets", "_codes", "_counts", "_ends", "_numbers", "_summary", "_summary_filter", "_units"),
        *("kinds", "places", "start_s"),
    )

    def __init__(self, of: CounterSlice) -> None:
        self.start_s = of.start_s
        self.kinds = tuple(of.cells)
        self.places = tuple(of.places)
        self._numbers = array("d")
        self._buckets, self._counts, self._ends = array("H"), array("I"), array("I")
        self._codes: dict[int, dict[str, int]] = {}
        for position, cell in enumerate(of.cells.values()):
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
                self._codes[position] = dict(tally.codes)
        self._units = array("d")
        for used in of.places.values():
            self._units.extend((used.reads, used.writes, *of.peaks(used)))
        self._summary_filter: tuple[str | None, str | None] | None = None
        self._summary: tuple[CallTally, tuple[float, ...] | None] = CallTally(), None

    @property
    def bytes(self) -> int:
        """The approximate memory use."""
        numbers = 8 * (len(self._numbers) + len(self._units)) + 6 * len(self._buckets)
        names = len(self.kinds) + len(self.places) + sum(map(len, self._codes.values()))
        return _OVERHEAD_BYTES + numbers + 100 * names

    def add_to(self, cell: CallCounter, position: int) -> None:
        """Add the calls of one kind to a counter."""
        numbers, tally, latency = (
            self._numbers[position * _NUMBERS : (position + 1) * _NUMBERS],
            cell.tally,
            cell.latency,
        )
        tally.requests += int(numbers[0])
        tally.faults += int(numbers[1])
        tally.throttles += int(numbers[2])
        tally.conditions += int(numbers[3])
        tally.conflicts += int(numbers[4])
        tally.took_s += numbers[5]
        tally.slowest_s = max(tally.slowest_s, numbers[6])
        tally.reads += numbers[7]
        tally.writes += numbers[8]
        for code, count in self._codes.get(position, {}).items():
            tally.codes[code] = tally.codes.get(code, 0) + count
        span = slice(self._ends[position - 1] if position else 0, self._ends[position])
        for bucket, count in zip(self._buckets[span], self._counts[span], strict=True):
            latency[bucket] = latency.get(bucket, 0) + count

    def capacity_use(self) -> Iterator[tuple[CapacityTarget, tuple[float, ...]]]:
        """Yield each table and index with its read and write units and their peaks per second."""
        for position, target in enumerate(self.places):
            yield target, tuple(self._units[position * _UNITS : (position + 1) * _UNITS])

    def matching(self, table: str | None, operation: str | None) -> Iterator[tuple[int, CallKind]]:
        """Yield the matching kinds of calls, each with its position."""
        for position, kind in enumerate(self.kinds):
            if kind.matches(table, operation):
                yield position, kind

    def summary(self, table: str | None, operation: str | None) -> tuple[CallTally, tuple[float, ...] | None]:
        """Return the tally and latency quantiles of matching calls."""
        if self._summary_filter != (table, operation):
            cell = sum_slices((self,), table, operation)
            self._summary = cell.tally, cell.quantiles()
            self._summary_filter = (table, operation)
        return self._summary

    def without_kinds(self) -> ClosedSlice:
        """Return a smaller slice with the same totals, without distinguishing kinds and tables."""
        merged = CounterSlice(self.start_s, 0)
        merged.cells[OTHER_KINDS] = sum_slices((self,), None, None)
        used = merged.places[OTHER_TARGETS] = CapacityUse()
        for _, units in self.capacity_use():
            used.add(*units)
        return merged.freeze()


def sum_slices(slices: Iterable[ClosedSlice], table: str | None, operation: str | None) -> CallCounter:
    """Sum the matching calls of several slices."""
    cell = CallCounter()
    for time_slice in slices:
        for position, _ in time_slice.matching(table, operation):
            time_slice.add_to(cell, position)
    return cell
