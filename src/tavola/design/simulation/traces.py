"""Build a workload from a recorded access log.

A record has the second, the operation, the tables with hashes of their keys, and the consumed units; a record without the
server's format is skipped as a whole. The busiest keys of each table keep their own rates over time; the rest are counted
together. The log has only hashes, so the positions of keys are random. The items of a transaction pass or fail as one. What a
log does not record, the keys of the index entries that a write changes, comes from the design. A throttled call consumed
nothing, so it is counted with the average units of its kind.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct, convert
from numpy.typing import NDArray

from tavola.design.errors import SimulationError
from tavola.design.simulation.demand import plan_stations, station_numbers
from tavola.design.simulation.keyspace import Floats, KeySet
from tavola.design.simulation.populations import ONE_VALUE, Populations, spread_of_writes
from tavola.design.simulation.rates import DAY_S
from tavola.design.simulation.scenario import Scenario
from tavola.design.simulation.workload import Access, Arm, Draw, RequestFlow, Workload
from tavola.model.document import Design, TableDesign
from tavola.protocol.faults import THROTTLING_CODES

_SECONDS_MAX = 253_370_764_800  # the year 9999, past which there are no dates


class LoggedAccess(Struct, frozen=True, rename={"table": "tableName", "index": "indexName"}):
    """A table that a call accessed, the index it read, and hashes of the keys it named."""

    table: str
    index: str | None = None
    keys: tuple[str, ...] = ()


_Units = Annotated[float, Meta(ge=0, lt=1e9)]


class LoggedUnits(Struct, frozen=True):
    """Units that a call consumed, of a table or of one of its indexes."""

    table: str
    index: str | None = None
    reads: _Units = 0.0
    writes: _Units = 0.0


class _LogRecord(Struct, frozen=True, rename="camel"):
    """A record as the server writes it. Calls that do not count may have other parameters."""

    event_category: str
    event_name: str
    event_time: str
    error_code: str | None = None
    request_parameters: Any = None
    additional_event_data: Any = None


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """One record; `counts` is False for calls that access no items or were refused for another reason than capacity."""

    second: int  # since the epoch
    operation: str
    accesses: tuple[LoggedAccess, ...]
    consumed: tuple[LoggedUnits, ...]
    refused: bool  # throttled
    counts: bool = True


def parse_call(record: object) -> LoggedCall | None:
    """Parse a record; None if it is malformed."""
    try:
        return _parse(record)
    except (
        ValueError,
        OverflowError,
        OSError,
    ):  # msgspec's ValidationError is a ValueError; dates raise the others
        return None


def _parse(record: object) -> LoggedCall:
    fields = convert(record, _LogRecord)
    second, error = _parse_second(fields.event_time), fields.error_code
    if fields.event_category != "Data" or (error is not None and error not in THROTTLING_CODES):
        return LoggedCall(second, fields.event_name, (), (), refused=False, counts=False)
    parameters = convert(fields.request_parameters or {}, dict[str, Any])
    tables = parameters.get("tables", [parameters] if parameters else [])
    additional = convert(fields.additional_event_data or {}, dict[str, Any])
    return LoggedCall(
        second,
        fields.event_name,
        convert(_without_nulls(tables), tuple[LoggedAccess, ...]),
        convert(_without_nulls(additional.get("consumed") or []), tuple[LoggedUnits, ...]),
        refused=error is not None,
    )


def _without_nulls(objects: object) -> list[object]:
    """Return JSON objects without their null members, which count as absent."""
    return [
        {name: value for name, value in each.items() if value is not None} if isinstance(each, dict) else each
        for each in convert(objects, list[Any])
    ]


def _parse_second(text: str) -> int:
    moment = datetime.fromisoformat(text)
    second = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    if not 0 <= second < _SECONDS_MAX:
        raise ValueError(f"{text} is out of range")
    return second


_BUSY_KEYS_MAX = 24  # keys of a table, or of an index that is read, with a flow of their own
_TRANSACTIONS_MAX = 48  # sets of keys of one kind of transaction with a flow of their own
_NAMED = 5  # tables named in one sentence
_DAYS_MAX = 31
_READS = frozenset({"BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems"})
_AT_ONCE = frozenset({"TransactGetItems", "TransactWriteItems"})

Place = tuple[str, str | None]  # a table, and the index that was read
Part = tuple[Place, int]  # a place and the rank of a key there; _BUSY_KEYS_MAX for all other keys


@dataclass(frozen=True)
class RecordedRates:
    """The requests of a trace, stored sparsely: most flows have none in most seconds."""

    seconds: int
    flows: int
    times: NDArray[np.intp]  # ascending
    flow: NDArray[np.intp]
    counts: Floats

    def block(self, start: int, count: int) -> Floats:
        """Return the requests of `count` seconds from `start` on."""
        low, high = np.searchsorted(self.times, (start, start + count))
        requests = np.zeros((min(count, self.seconds - start), self.flows))
        np.add.at(requests, (self.times[low:high] - start, self.flow[low:high]), self.counts[low:high])
        return requests

    def means(self) -> Floats:
        """Return each flow's mean."""
        total = np.bincount(self.flow, weights=self.counts, minlength=self.flows)
        found: Floats = total.astype(np.float64) / self.seconds
        return found

    def peaks(self) -> Floats:
        """Return the rates of the busiest ten seconds, all flows together."""
        return self.busiest(10).means()

    def busiest(self, seconds: int) -> RecordedRates:
        """Return the busiest period of `seconds`, or all of it if it is shorter."""
        if self.seconds <= seconds:
            return self
        each = np.bincount(self.times, weights=self.counts, minlength=self.seconds)
        total = np.concatenate(([0.0], np.cumsum(each)))
        start = int(np.argmax(total[seconds:] - total[:-seconds]))
        low, high = np.searchsorted(self.times, (start, start + seconds))
        period = slice(int(low), int(high))
        return RecordedRates(
            seconds, self.flows, self.times[period] - start, self.flow[period], self.counts[period]
        )

    def scale(self, factors: tuple[float, ...]) -> RecordedRates:
        """Return the same rates with each flow multiplied by its factor."""
        return replace(self, counts=self.counts * np.asarray(factors)[self.flow])


@dataclass(slots=True)
class _UnitsUsed:
    """The units that all calls of one kind used at one place."""

    items: int = 0  # of calls that consumed units
    reads: float = 0.0
    writes: float = 0.0
    entries: dict[str, float] = field(default_factory=dict)  # write units, by index


@dataclass(slots=True)
class _Log:
    """The calls of a log that access the design's tables, and counts of what was skipped."""

    calls: list[LoggedCall] = field(default_factory=list)
    units_used: dict[tuple[str, Place], _UnitsUsed] = field(default_factory=lambda: defaultdict(_UnitsUsed))
    keys: dict[Place, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    others: Counter[str] = field(default_factory=Counter)
    broken: int = 0
    first_broken: int | None = None

    def add_record(self, number: int, record: object, tables: Mapping[str, TableDesign]) -> None:
        call = parse_call(record)
        if call is None:
            self.broken += 1
            self.first_broken = self.first_broken or number
        elif call.counts:
            self.others.update(access.table for access in call.accesses if access.table not in tables)
            accesses = tuple(access for access in call.accesses if access.table in tables)
            if accesses:
                self._add(replace(call, accesses=accesses))

    def _add(self, call: LoggedCall) -> None:
        self.calls.append(call)
        for access in call.accesses:
            place = (access.table, access.index)
            self.keys[place].update(access.keys)
            if call.refused or not any(each.table == access.table for each in call.consumed):
                continue
            units_used = self.units_used[call.operation, place]
            units_used.items += max(1, len(access.keys))
            for each in call.consumed:
                if each.table != access.table:
                    continue
                if each.index is not None and each.writes:
                    units_used.entries[each.index] = units_used.entries.get(each.index, 0.0) + each.writes
                else:
                    units_used.reads += each.reads
                    units_used.writes += each.writes


def read_trace(records: Iterable[object], design: Design, scenario: Scenario) -> Workload:
    """Return the recorded traffic of a design's tables; refuse a log without any.

    Malformed records, and None for unreadable lines, are skipped and counted.
    """
    known = {table.name: table for table in design.tables}
    log = _Log()
    for number, record in enumerate(records, start=1):
        log.add_record(number, record, known)
    if not log.calls:
        raise SimulationError(_explain_empty(log, known))
    begins, seconds = _span([call.second for call in log.calls])
    builder = _FlowBuilder(design, scenario, log)
    for call in log.calls:
        builder.count(call, begins)
    flows, rates = builder.build(seconds)
    keys = tuple(builder.populations.key_sets)
    return Workload(
        plan_stations(design, scenario, flows, rates),
        keys,
        flows,
        rates,
        assumptions=(*builder.populations.describe_assumptions(), *_describe_gaps(log, known)),
        begins_at_s=float(begins),
        traced=True,
    )


class _FlowBuilder:
    """Builds the flows of a log: one per kind of call and busy key, and one for all other keys."""

    def __init__(self, design: Design, scenario: Scenario, log: _Log) -> None:
        self.populations = Populations(scenario)
        self._log = log
        self._known = {table.name: table for table in design.tables}
        self._stations = station_numbers(design)
        self._ranks: dict[Place, dict[str, int]] = {}
        self._sets: dict[Place, tuple[int, int]] = {}  # the key sets of the busy keys and of all others
        for place in sorted(log.keys, key=lambda each: (each[0], each[1] or "")):
            self._rank(place, log.keys[place])
        self._numbers: dict[tuple[str, tuple[Part, ...]], int] = {}
        self._counts: Counter[tuple[int, int]] = Counter()  # requests by second and flow
        self._transactions: Counter[str] = Counter()  # flows of each kind of transaction

    def count(self, call: LoggedCall, begins: int) -> None:
        """Count a call in its second: a transaction once, other calls for each of their keys."""
        parts = [part for access in call.accesses for part in self._parts(access)]
        groups = (
            [tuple(sorted(parts, key=_order))] if call.operation in _AT_ONCE else [(part,) for part in parts]
        )
        for each in groups:
            self._counts[call.second - begins, self._flow_number(call.operation, each)] += 1

    def build(self, seconds: int) -> tuple[tuple[RequestFlow, ...], RecordedRates]:
        """Return the flows, and the rate of each over time."""
        order = sorted(
            self._numbers,
            key=lambda each: (each[1][0][0][0], each[1][0][0][1] or "", each[0], tuple(map(_order, each[1]))),
        )
        place_of = {self._numbers[each]: at for at, each in enumerate(order)}
        flows = tuple(self._flow(operation, parts) for operation, parts in order)
        counted = sorted(self._counts)
        times = np.array([second for second, _ in counted], dtype=np.intp)
        flow = np.array([place_of[number] for _, number in counted], dtype=np.intp)
        counts = np.array([self._counts[each] for each in counted], dtype=np.float64)
        factor = self.populations.scenario.rate_factor
        return flows, RecordedRates(seconds, len(flows), times, flow, counts * factor)

    def _rank(self, place: Place, key_counts: Counter[str]) -> None:
        table, index = place
        ranked = [key for key, _ in sorted(key_counts.items(), key=lambda each: (-each[1], each[0]))]
        self._ranks[place] = {key: rank for rank, key in enumerate(ranked[:_BUSY_KEYS_MAX])}
        name = f"the partition key of {table}" + (f"/{index}" if index else "")
        busy = KeySet(
            name,
            max(1, min(_BUSY_KEYS_MAX, len(ranked))),
            values=tuple(f"key {key}" for key in ranked[:_BUSY_KEYS_MAX]),
            table=table,
        )
        # Throttled calls and scans are logged without keys; they are spread over the number of keys that are known.
        count = len(ranked) - _BUSY_KEYS_MAX if len(ranked) > _BUSY_KEYS_MAX else max(1, len(ranked))
        rest = KeySet(f"{name}, other keys", count if ranked else 10**9, table=table)
        self._sets[place] = (self.populations.add(busy), self.populations.add(rest))

    def _parts(self, access: LoggedAccess) -> list[Part]:
        place = (access.table, access.index)
        ranks = self._ranks[place]
        return [(place, ranks.get(key, _BUSY_KEYS_MAX)) for key in access.keys] or [(place, _BUSY_KEYS_MAX)]

    def _flow_number(self, operation: str, parts: tuple[Part, ...]) -> int:
        number = self._numbers.get((operation, parts))
        if number is None and len(parts) > 1:
            # Transactions rarely repeat their keys: beyond the limit they are counted by table only.
            if self._transactions[operation] >= _TRANSACTIONS_MAX:
                parts = tuple(sorted(((place, _BUSY_KEYS_MAX) for place, _ in parts), key=_order))
                number = self._numbers.get((operation, parts))
            else:
                self._transactions[operation] += 1
        if number is None:
            number = self._numbers[operation, parts] = len(self._numbers)
        return number

    def _flow(self, operation: str, parts: tuple[Part, ...]) -> RequestFlow:
        places = dict.fromkeys(f"{table}/{index}" if index else table for (table, index), _ in parts)
        pattern = f"{operation} {' + '.join(places)}"
        draws = [draw for part in parts for draw in self._draws(operation, part)]
        return RequestFlow(pattern, pattern, tuple(draws))

    def _draws(self, operation: str, part: Part) -> list[Draw]:
        (name, index), rank = part
        table = self._known[name]
        station = self._stations.get((name, index), self._stations[name, None])
        units_used = self._log.units_used.get((operation, (name, index)), _UnitsUsed())
        items = max(1, units_used.items)
        access: Access = (
            "read" if operation in _READS or not (units_used.writes or units_used.entries) else "write"
        )
        minimum = 0.5 if access == "read" else 1.0
        units = (units_used.reads if access == "read" else units_used.writes) / items or minimum
        arm = Arm(station, access, units, "any" if operation == "Scan" else "point")
        busy, rest = self._sets[name, index]
        own = Draw(busy, 0.0, (arm,), rank=rank) if rank < _BUSY_KEYS_MAX else Draw(rest, 0.0, (arm,))
        entries = [
            self._entry(table, each, amount / items, new=operation == "PutItem")
            for each, amount in sorted(units_used.entries.items())
        ]
        return [own, *(each for each in entries if each is not None)]

    def _entry(self, table: TableDesign, index: str, units: float, *, new: bool) -> Draw | None:
        """Return the draw of a write in an index. A log does not have the index key, so it comes from the design."""
        station = self._stations.get((table.name, index))
        if station is None or units <= 0:
            return None
        populations = self.populations
        skew = populations.scenario.skew
        candidates = Populations(populations.scenario)
        keyed = [(entity, key) for entity in table.entities if (key := entity.key_on(index)) is not None]
        if (
            len({candidates.of_key(table, *each) for each in keyed}) > 1
        ):  # the log does not say which entity was written
            count = max(keys.count for keys in candidates.key_sets)
            several = ", ".join(dict.fromkeys(keys.name for keys in candidates.key_sets))
            populations.assumptions[
                f"The log does not show which entity's entries of {index} were written ({several}): they are spread by a Zipf "
                f"distribution with exponent {skew:g} over {count:,} values, the largest number among these"
            ] = None
            unknown = KeySet(f"unknown key of {index}", count, assumed=True, table=table.name)
            return Draw(populations.add(unknown), skew, (Arm(station, "write", units, "any"),))
        for entity, key in keyed:
            names = [name for source in key.hash for name in source.fields]
            same_value = new and populations.share_first_value(entity, names)
            populations.assumptions[
                f"The log does not show which entries of {index} were written: "
                + ("entries of new items as above, others are " if same_value else "they are ")
                + f"spread by a Zipf distribution with exponent {skew:g} over the values of the design"
            ] = None
            spread = spread_of_writes(entity, key, new=new)
            keys = populations.of_key(table, entity, key)
            return Draw(keys, ONE_VALUE if same_value else skew, (Arm(station, "write", units, spread),))
        unknown = KeySet(
            f"keys of {index}", populations.scenario.keys_unknown, assumed=True, table=table.name
        )
        populations.assumptions[
            f"The design does not declare the key of {index}: its entries are spread over {unknown.count:,} values"
        ] = None
        return Draw(populations.add(unknown), 0.0, (Arm(station, "write", units, "any"),))


def _order(part: Part) -> tuple[str, str, int]:
    (table, index), rank = part
    return table, index or "", rank


def _span(seconds: list[int]) -> tuple[int, int]:
    """Return when a log begins and its length; refuse one that is longer than a month."""
    begins, ends = min(seconds), max(seconds)
    if ends - begins >= _DAYS_MAX * DAY_S:
        first, last = (
            datetime.fromtimestamp(each, UTC).strftime("%Y-%m-%d %H:%M") for each in (begins, ends)
        )
        raise SimulationError(
            f"the log covers {(ends - begins) // DAY_S:,} days, from {first} to {last}; use at most {_DAYS_MAX} days of it"
        )
    return begins, ends - begins + 1


def _explain_empty(log: _Log, tables: Mapping[str, TableDesign]) -> str:
    names = ", ".join(tables) or "none"
    seen = ", ".join(sorted(log.others)[:_NAMED])
    more = f"; it has calls for {seen}" if log.others else ""
    broken = f"; {log.broken:,} of its lines are invalid" if log.broken else ""
    return (
        f"the log has no calls that read or write items of {names}{more}{broken}; use a log of `tavola serve --access-log` "
        "with traffic on these tables"
    )


def _describe_gaps(log: _Log, tables: Mapping[str, TableDesign]) -> list[str]:
    """Return sentences about skipped records and what the log does not say."""
    sentences: list[str] = []
    if log.broken:
        lines = (
            "1 invalid line of the log was"
            if log.broken == 1
            else f"{log.broken:,} invalid lines of the log were"
        )
        sentences.append(f"{lines} skipped, the first at line {log.first_broken:,}")
    used = {access.table for call in log.calls for access in call.accesses}
    sorted_ = sorted(name for name in used if tables[name].settings.range is not None)
    if sorted_:
        sentences.append(
            f"The log has hashes of items, not of partition keys: items of one item collection in {', '.join(sorted_)} are "
            "assumed to be in different partitions, unless a query names the partition"
        )
    sentences += [f"Calls for {name}, which is not in the design, are skipped" for name in sorted(log.others)]
    return sentences
