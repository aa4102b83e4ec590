"""Build a workload from a recorded access log.

A record has the second, the operation, the tables with hashes of their keys, and the consumed units. The busiest keys of each table
keep their own course over time; the rest are counted together. The log has only hashes, so the positions of keys are random. The
items of a transaction pass or fail as one. What a log does not record, the keys of the index entries that a write changes, comes from
the design. A throttled call consumed nothing, so it is counted with the average units of its kind.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from tavola.design.simulation.calls import LoggedAccess, LoggedCall, parse_call
from tavola.design.simulation.demand import plan_stations, station_numbers
from tavola.design.simulation.errors import SimulationRefused
from tavola.design.simulation.keyspace import Floats, KeySet
from tavola.design.simulation.populations import ONE_VALUE, Populations, spread_of_writes
from tavola.design.simulation.rates import DAY_S
from tavola.design.simulation.scenario import Scenario
from tavola.design.simulation.workload import Access, Arm, Draw, RequestFlow, Workload
from tavola.model.document import Design, TableDesign

_ALONE = 24  # keys of a table, or of an index that is read, that keep their own course
_COURSES = 48  # of one kind of transaction, each of other keys
_NAMED = 5  # tables in one sentence
_DAYS_MAX = 31
_READS = frozenset({"BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems"})
_AT_ONCE = frozenset({"TransactGetItems", "TransactWriteItems"})

Place = tuple[str, str | None]  # a table, and the index of it that was read
Part = tuple[Place, int]  # a key's rank at a place; _ALONE for any of the rest


@dataclass(frozen=True)
class RecordedRates:
    """The requests of a trace, stored sparsely: most flows have none in most seconds."""

    seconds: int
    flows: int
    times: NDArray[np.intp]  # rising
    flow: NDArray[np.intp]
    counts: Floats

    def block(self, start: int, count: int) -> Floats:
        """Return the requests of `count` seconds from `start` on."""
        low, high = np.searchsorted(self.times, (start, start + count))
        found = np.zeros((min(count, self.seconds - start), self.flows))
        np.add.at(found, (self.times[low:high] - start, self.flow[low:high]), self.counts[low:high])
        return found

    def means(self) -> Floats:
        """Return each flow's mean."""
        total = np.bincount(self.flow, weights=self.counts, minlength=self.flows)
        found: Floats = total.astype(np.float64) / self.seconds
        return found

    def peaks(self) -> Floats:
        """Return the rates of the busiest ten seconds, all flows together."""
        return self.busiest(10).means()

    def busiest(self, seconds: int) -> RecordedRates:
        """Return the busiest stretch of so many seconds, or all of it if it is no longer."""
        if self.seconds <= seconds:
            return self
        each = np.bincount(self.times, weights=self.counts, minlength=self.seconds)
        total = np.concatenate(([0.0], np.cumsum(each)))
        start = int(np.argmax(total[seconds:] - total[:-seconds]))
        low, high = np.searchsorted(self.times, (start, start + seconds))
        kept = slice(int(low), int(high))
        return RecordedRates(
            seconds, self.flows, self.times[kept] - start, self.flow[kept], self.counts[kept]
        )

    def scaled(self, factors: tuple[float, ...]) -> RecordedRates:
        """Return the same with each flow so many times as often."""
        return replace(self, counts=self.counts * np.asarray(factors)[self.flow])


@dataclass(slots=True)
class _UnitsUsed:
    """What the calls of one kind took at a place, in all."""

    items: int = 0  # of calls that were charged
    reads: float = 0.0
    writes: float = 0.0
    entries: dict[str, float] = field(default_factory=dict)  # units, by index that was kept up to date


@dataclass(slots=True)
class _Log:
    """The calls of a log that are of the design, and what was passed over."""

    calls: list[LoggedCall] = field(default_factory=list)
    taken: dict[tuple[str, Place], _UnitsUsed] = field(default_factory=lambda: defaultdict(_UnitsUsed))
    keys: dict[Place, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    others: Counter[str] = field(default_factory=Counter)
    broken: int = 0
    first_broken: int | None = None

    def take(self, number: int, record: object, known: Mapping[str, TableDesign]) -> None:
        call = parse_call(record)
        if call is None:
            self.broken += 1
            self.first_broken = self.first_broken or number
        elif call.counts:
            self.others.update(touch.table for touch in call.touches if touch.table not in known)
            touches = tuple(touch for touch in call.touches if touch.table in known)
            if touches:
                self._add(replace(call, touches=touches))

    def _add(self, call: LoggedCall) -> None:
        self.calls.append(call)
        for touch in call.touches:
            place = (touch.table, touch.index)
            self.keys[place].update(touch.keys)
            if call.refused or not any(each.table == touch.table for each in call.consumed):
                continue
            taken = self.taken[call.operation, place]
            taken.items += max(1, len(touch.keys))
            for each in call.consumed:
                if each.table != touch.table:
                    continue
                if each.index is not None and each.writes:
                    taken.entries[each.index] = taken.entries.get(each.index, 0.0) + each.writes
                else:
                    taken.reads += each.reads
                    taken.writes += each.writes


def read_trace(records: Iterable[object], design: Design, scenario: Scenario) -> Workload:
    """Return the recorded traffic of a design's tables; refuse a log without any.

    Malformed records, and None for unreadable lines, are skipped and counted.
    """
    known = {table.name: table for table in design.tables}
    log = _Log()
    for number, record in enumerate(records, start=1):
        log.take(number, record, known)
    if not log.calls:
        raise SimulationRefused(_nothing(log, known))
    begins, seconds = _span([call.second for call in log.calls])
    builder = _Flows(design, scenario, log)
    for call in log.calls:
        builder.count(call, begins)
    flows, rates = builder.built(seconds)
    keys = tuple(builder.populations.found)
    return Workload(
        plan_stations(design, scenario, flows, rates),
        keys,
        flows,
        rates,
        assumptions=(*builder.populations.told(), *_told(log, known)),
        begins_at_s=float(begins),
        traced=True,
    )


class _Flows:
    """The flows of a log: each kind of call for each busy key, and for all the rest."""

    def __init__(self, design: Design, scenario: Scenario, log: _Log) -> None:
        self.populations = Populations(scenario)
        self._log = log
        self._known = {table.name: table for table in design.tables}
        self._stations = station_numbers(design)
        self._ranks: dict[Place, dict[str, int]] = {}
        self._sets: dict[Place, tuple[int, int]] = {}  # of busy keys, and of all others
        for place in sorted(log.keys, key=lambda each: (each[0], each[1] or "")):
            self._rank(place, log.keys[place])
        self._numbers: dict[tuple[str, tuple[Part, ...]], int] = {}
        self._courses: Counter[tuple[int, int]] = Counter()  # second, flow
        self._kinds: Counter[str] = Counter()  # courses of each kind of transaction

    def count(self, call: LoggedCall, begins: int) -> None:
        """Count a call in its second: a transaction as one, others for each of their keys."""
        parts = [part for touch in call.touches for part in self._parts(touch)]
        whole = (
            [tuple(sorted(parts, key=_order))] if call.operation in _AT_ONCE else [(part,) for part in parts]
        )
        for each in whole:
            self._courses[call.second - begins, self._number(call.operation, each)] += 1

    def built(self, seconds: int) -> tuple[tuple[RequestFlow, ...], RecordedRates]:
        """Return the flows and how often each was asked."""
        order = sorted(
            self._numbers, key=lambda each: (each[1][0][0][0], each[1][0][0][1] or "", each[0], _key(each[1]))
        )
        place_of = {self._numbers[each]: at for at, each in enumerate(order)}
        flows = tuple(self._flow(operation, parts) for operation, parts in order)
        told = sorted(self._courses)
        times = np.array([second for second, _ in told], dtype=np.intp)
        flow = np.array([place_of[number] for _, number in told], dtype=np.intp)
        counts = np.array([self._courses[each] for each in told], dtype=np.float64)
        factor = self.populations.scenario.rate_factor
        return flows, RecordedRates(seconds, len(flows), times, flow, counts * factor)

    def _rank(self, place: Place, counted: Counter[str]) -> None:
        table, index = place
        ranked = [key for key, _ in sorted(counted.items(), key=lambda each: (-each[1], each[0]))]
        self._ranks[place] = {key: rank for rank, key in enumerate(ranked[:_ALONE])}
        name = f"the partition key of {table}" + (f"/{index}" if index else "")
        busy = KeySet(
            name,
            max(1, min(_ALONE, len(ranked))),
            values=tuple(f"key {key}" for key in ranked[:_ALONE]),
            table=table,
        )
        # A refused call names no key, and a scan has none: they are spread over as many as there are.
        many = len(ranked) - _ALONE if len(ranked) > _ALONE else max(1, len(ranked))
        rest = KeySet(f"{name}, other keys", many if ranked else 10**9, table=table)
        self._sets[place] = (self.populations.add(busy), self.populations.add(rest))

    def _parts(self, touch: LoggedAccess) -> list[Part]:
        place = (touch.table, touch.index)
        ranks = self._ranks[place]
        return [(place, ranks.get(key, _ALONE)) for key in touch.keys] or [(place, _ALONE)]

    def _number(self, operation: str, parts: tuple[Part, ...]) -> int:
        found = self._numbers.get((operation, parts))
        if found is None and len(parts) > 1:
            # Few of many transactions are of the same keys: those past the first are counted by their tables.
            if self._kinds[operation] >= _COURSES:
                parts = tuple(sorted(((place, _ALONE) for place, _ in parts), key=_order))
                found = self._numbers.get((operation, parts))
            else:
                self._kinds[operation] += 1
        if found is None:
            found = self._numbers[operation, parts] = len(self._numbers)
        return found

    def _flow(self, operation: str, parts: tuple[Part, ...]) -> RequestFlow:
        places = dict.fromkeys(f"{table}/{index}" if index else table for (table, index), _ in parts)
        pattern = f"{operation} {' + '.join(places)}"
        draws = [draw for part in parts for draw in self._draws(operation, part)]
        return RequestFlow(pattern, pattern, tuple(draws))

    def _draws(self, operation: str, part: Part) -> list[Draw]:
        (name, index), rank = part
        table = self._known[name]
        station = self._stations.get((name, index), self._stations[name, None])
        taken = self._log.taken.get((operation, (name, index)), _UnitsUsed())
        items = max(1, taken.items)
        access: Access = "read" if operation in _READS or not (taken.writes or taken.entries) else "write"
        least = 0.5 if access == "read" else 1.0
        units = (taken.reads if access == "read" else taken.writes) / items or least
        arm = Arm(station, access, units, "any" if operation == "Scan" else "point")
        busy, rest = self._sets[name, index]
        own = Draw(busy, 0.0, (arm,), rank=rank) if rank < _ALONE else Draw(rest, 0.0, (arm,))
        entries = [
            self._entry(table, each, amount / items, new=operation == "PutItem")
            for each, amount in sorted(taken.entries.items())
        ]
        return [own, *(each for each in entries if each is not None)]

    def _entry(self, table: TableDesign, index: str, units: float, *, new: bool) -> Draw | None:
        """Return what a write draws in an index, by the design's keys: a log does not say which."""
        station = self._stations.get((table.name, index))
        if station is None or units <= 0:
            return None
        populations = self.populations
        skew = populations.scenario.skew
        scratch = Populations(populations.scenario)
        keyed = [(entity, key) for entity in table.entities if (key := entity.key_on(index)) is not None]
        if len({scratch.of_key(table, *each) for each in keyed}) > 1:  # whose item it was is not told
            count = max(keys.count for keys in scratch.found)
            several = ", ".join(dict.fromkeys(keys.name for keys in scratch.found))
            populations.assumptions[
                f"the log does not say whose entries of {index} were written ({several}): they are called unknown, and "
                f"spread by Zipf's law with exponent {skew:g} over {count:,} values, as many as the most of these have"
            ] = None
            unknown = KeySet(f"unknown key of {index}", count, assumed=True, table=table.name)
            return Draw(populations.add(unknown), skew, (Arm(station, "write", units, "any"),))
        for entity, key in keyed:
            names = [name for source in key.hash for name in source.fields]
            alike = new and populations.begin_alike(entity, names)
            populations.assumptions[
                f"the log does not say which entries of {index} were written: "
                + ("those of new items as above, others " if alike else "")
                + f"by Zipf's law with exponent {skew:g} over the values that the design has"
            ] = None
            spread = spread_of_writes(entity, key, new=new)
            keys = populations.of_key(table, entity, key)
            return Draw(keys, ONE_VALUE if alike else skew, (Arm(station, "write", units, spread),))
        unknown = KeySet(
            f"keys of {index}", populations.scenario.keys_unknown, assumed=True, table=table.name
        )
        populations.assumptions[
            f"the design does not say what {index} is keyed by: its entries are spread over {unknown.count:,} values"
        ] = None
        return Draw(populations.add(unknown), 0.0, (Arm(station, "write", units, "any"),))


def _key(parts: tuple[Part, ...]) -> tuple[tuple[str, str, int], ...]:
    return tuple(_order(part) for part in parts)


def _order(part: Part) -> tuple[str, str, int]:
    (table, index), rank = part
    return table, index or "", rank


def _span(seconds: list[int]) -> tuple[int, int]:
    """Return where a log begins and how long it goes; refuse one that no month holds."""
    begins, ends = min(seconds), max(seconds)
    if ends - begins >= _DAYS_MAX * DAY_S:
        first, last = (
            datetime.fromtimestamp(each, UTC).strftime("%Y-%m-%d %H:%M") for each in (begins, ends)
        )
        raise SimulationRefused(
            f"the log goes from {first} to {last}, {(ends - begins) // DAY_S:,} days; give at most {_DAYS_MAX} days of "
            "it, without records of another time"
        )
    return begins, ends - begins + 1


def _nothing(log: _Log, known: Mapping[str, TableDesign]) -> str:
    names = ", ".join(known) or "none"
    seen = ", ".join(sorted(log.others)[:_NAMED])
    more = f"; it has calls of {seen}" if log.others else ""
    broken = f"; {log.broken:,} of its lines are no records" if log.broken else ""
    return (
        f"the log has no call that reads or writes items of {names}{more}{broken}; give one of "
        "`tavola serve --access-log` in which these tables were used"
    )


def _told(log: _Log, known: Mapping[str, TableDesign]) -> list[str]:
    """Return in sentences what was passed over, and what the log does not say."""
    told: list[str] = []
    if log.broken:
        lines = (
            "1 line of the log is no record and was"
            if log.broken == 1
            else (f"{log.broken:,} lines of the log are no records and were")
        )
        told.append(f"{lines} passed over, the first at line {log.first_broken:,}")
    used = {touch.table for call in log.calls for touch in call.touches}
    sorted_ = sorted(name for name in used if known[name].settings.range is not None)
    if sorted_:
        told.append(
            f"the log names items, and not their partitions: those of one item collection in {', '.join(sorted_)} are "
            "taken to lie apart, unless a query names their partition"
        )
    told += [f"calls of {name}, which the design does not have, are left out" for name in sorted(log.others)]
    return told
