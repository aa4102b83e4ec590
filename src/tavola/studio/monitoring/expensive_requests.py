"""The requests that consumed the most units or took longest, minute by minute, and why.

For each kind of request (operation, tables, index) the running minute keeps the few most expensive ones, each of a different
form: requests that differ only in values have the same form. A finished minute keeps the most expensive of all kinds, and
after an hour ten minutes are merged into one:

    running minute   3 per kind            ┐
    last hour        20 per minute         ├ each bounded in bytes too
    last six hours   20 per ten minutes    ┘

A steady flood of one kind therefore does not hide a rare expensive request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

from tavola.engine import ItemAccess
from tavola.protocol.arns import table_name_of
from tavola.protocol.faults import Fault
from tavola.studio.monitoring.counters import CELLS_MAX, CallKind
from tavola.studio.monitoring.request_shapes import request_form, request_shape
from tavola.studio.types import ConsumedUnits

By = Literal["units", "time"]

EACH_MAX = 3  # of one kind, in the running minute
ALL_MAX = 20  # of all kinds, in a span that is over
SPAN_BYTES_MAX = 24 * 1024  # of their shapes, in a span that is over
TARGETS_MAX = 24  # tables and indexes listed for one request
_MINUTE_S = 60
_HOUR_S = 3600
_LATER_S = 600
_KEPT_S = 21_600


@dataclass(frozen=True, slots=True)
class ExpensiveRequest:
    """One request and its cost."""

    number: int  # in order of arrival
    kind: CallKind
    at_s: float
    took_s: float
    units: float
    consumed: tuple[ConsumedUnits, ...]
    items: int  # items or partitions accessed
    fault: str | None
    shape: bytes  # JSON
    form: int  # equal for requests that differ only in values


class KindLeaders:
    """The most expensive requests of one kind in the current minute, by form, and the thresholds for parsing another.

    A request must be parsed to know its form, which is slow. So in each second the first request is parsed, and then
    only requests above the thresholds: a flood of one form is not parsed repeatedly and does not hide other forms.
    """

    __slots__ = ("by_time", "by_units", "kind", "time", "units")

    def __init__(self, kind: CallKind) -> None:
        self.kind = kind
        self.by_units: dict[int, ExpensiveRequest] = {}
        self.by_time: dict[int, ExpensiveRequest] = {}
        self.units = 0.0
        self.time = -1.0

    def keep(self, request: ExpensiveRequest) -> None:
        """Keep a request if it is the most expensive of its form, by units or by time."""
        self.units = max(self.units, request.units)
        self.time = max(self.time, request.took_s)
        if request.units > 0.0:
            _keep_most_expensive("units", self.by_units, request)
        _keep_most_expensive("time", self.by_time, request)

    def turn(self) -> None:
        """Start a new second: lower the thresholds to the least expensive request kept."""
        self.units = min((request.units for request in self.by_units.values()), default=0.0)
        self.time = min((request.took_s for request in self.by_time.values()), default=-1.0)

    def of(self, by: By) -> Iterable[ExpensiveRequest]:
        """Return the kept requests."""
        return (self.by_units if by == "units" else self.by_time).values()


_FULL = KindLeaders(CallKind("", ()))
"""For kinds beyond the maximum, which are not recorded."""
_FULL.units = _FULL.time = inf


class ExpensiveRequests:
    """Keeps the most expensive requests of several hours, bounded in number and size."""

    def __init__(self) -> None:
        self._minute = -1
        self._number = 0
        self._marks: dict[tuple[CallKind, str | None], KindLeaders] = {}
        self._minutes: deque[tuple[int, dict[By, tuple[ExpensiveRequest, ...]]]] = deque()
        self._later: deque[tuple[int, dict[By, tuple[ExpensiveRequest, ...]]]] = deque()

    def turn(self, second: int) -> None:
        """Start a new second; earlier `KindLeaders` may belong to a finished minute."""
        minute = second // _MINUTE_S
        if minute > self._minute or minute < self._minute - 1:
            self._close(minute)

    def leaders_of(self, kind: CallKind, index: str | None) -> KindLeaders:
        """Return the leaders of a kind at the start of a second; requests to an index are a kind of their own."""
        leaders = self._marks.get((kind, index))
        if leaders is None:
            if len(self._marks) >= CELLS_MAX:
                return _FULL
            leaders = self._marks[kind, index] = KindLeaders(kind)
        leaders.turn()
        return leaders

    def keep(
        self,
        mark: KindLeaders,
        began_s: float,
        took_s: float,
        accesses: Sequence[ItemAccess],
        units: float,
        fault: Fault | None,
        body: bytes,
    ) -> None:
        """Parse a request and keep it if it is among the most expensive."""
        if mark is _FULL:
            return
        shape = request_shape(mark.kind.operation, body)
        self._number += 1
        mark.keep(
            ExpensiveRequest(
                number=self._number,
                kind=mark.kind,
                at_s=began_s,
                took_s=took_s,
                units=units,
                consumed=_sum_units(accesses),
                items=len({(access.table, access.key) for access in accesses}),
                fault=None if fault is None else fault.code,
                shape=shape,
                form=hash(request_form(shape)),
            )
        )

    def of(self, by: By) -> list[ExpensiveRequest]:
        """Return all kept requests, unordered."""
        spans = [
            request
            for spans in (self._later, self._minutes)
            for _, requests in spans
            for request in requests[by]
        ]
        return spans + [request for mark in self._marks.values() for request in mark.of(by)]

    @property
    def request_count(self) -> int:
        """The number of kept requests."""
        return len(self.of("units")) + len(self.of("time"))

    def _close(self, minute: int) -> None:
        """Close the current minute, and merge minutes older than an hour."""
        if minute < self._minute - 1:  # the clock was set back
            self._minutes.clear()
            self._later.clear()
        elif self._minute >= 0:
            closed = {
                by: _most_expensive(by, (request for mark in self._marks.values() for request in mark.of(by)))
                for by in _BOTH
            }
            self._minutes.append((self._minute * _MINUTE_S, closed))
        self._marks.clear()
        self._minute = minute
        now_s = minute * _MINUTE_S
        while self._minutes and self._minutes[0][0] < now_s - _HOUR_S:
            start_s, oldest = self._minutes.popleft()
            start_s -= start_s % _LATER_S
            if self._later and self._later[-1][0] == start_s:
                _, others = self._later.pop()
                oldest = {by: _most_expensive(by, (*others[by], *oldest[by])) for by in _BOTH}
            self._later.append((start_s, oldest))
        while self._later and self._later[0][0] < now_s - _KEPT_S:
            self._later.popleft()


_BOTH: tuple[By, ...] = ("units", "time")


def _cost(by: By, request: ExpensiveRequest) -> float:
    return request.units if by == "units" else request.took_s


def select_requests(
    by: By, requests: Iterable[ExpensiveRequest], since_s: float, table: str | None, operation: str | None
) -> list[ExpensiveRequest]:
    """Return matching requests since a time, the most expensive first, one of each form."""
    return _one_per_form(
        by,
        (
            request
            for request in requests
            if request.at_s >= since_s and request.kind.matches(table, operation)
        ),
    )


def _one_per_form(by: By, requests: Iterable[ExpensiveRequest]) -> list[ExpensiveRequest]:
    forms: dict[object, ExpensiveRequest] = {}
    for request in sorted(requests, key=lambda request: (-_cost(by, request), -request.number)):
        forms.setdefault((request.kind, request.form), request)
    return list(forms.values())


def _most_expensive(by: By, requests: Iterable[ExpensiveRequest]) -> tuple[ExpensiveRequest, ...]:
    """Return the most expensive requests of a finished span, within its size limit."""
    chosen: list[ExpensiveRequest] = []
    bytes_left = SPAN_BYTES_MAX
    for request in _one_per_form(by, requests)[:ALL_MAX]:
        bytes_left -= len(request.shape)
        if bytes_left < 0:
            break
        chosen.append(request)
    return tuple(chosen)


def _keep_most_expensive(by: By, forms: dict[int, ExpensiveRequest], request: ExpensiveRequest) -> None:
    known = forms.get(request.form)
    if known is None or _cost(by, known) < _cost(by, request):
        forms[request.form] = request
        if len(forms) > EACH_MAX:
            del forms[min(forms, key=lambda form: _cost(by, forms[form]))]


def _sum_units(accesses: Sequence[ItemAccess]) -> tuple[ConsumedUnits, ...]:
    """Return the units of a request by table and index."""
    sums: dict[tuple[str, str | None], ConsumedUnits] = {}
    for access in accesses:
        if not access.reads and not access.writes:
            continue
        place = table_name_of(access.table), access.index_name
        known = sums.get(place)
        if known is None:
            if len(sums) >= TARGETS_MAX:
                continue
            sums[place] = ConsumedUnits(*place, access.reads, access.writes)
        else:
            sums[place] = ConsumedUnits(*place, known.reads + access.reads, known.writes + access.writes)
    return tuple(sums.values())


_READ_BYTES = 4 * 1024
_WRITE_BYTES = 1024
_MANY = 10
_LARGE_ITEM_UNITS = 4.0
_SLOW_S = 0.05


def explain_request(expensive: ExpensiveRequest, request: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the reasons for a request's cost, the most important first; empty if it is ordinary."""
    operation = expensive.kind.operation
    reads = sum(place.reads for place in expensive.consumed)
    writes = sum(place.writes for place in expensive.consumed)
    consistent = request.get("ConsistentRead") is True
    reasons: list[str] = []
    if operation == "Scan":
        reasons.append(
            f"A scan is charged for every item it reads: {_read_size(reads, consistent=consistent)} here."
        )
    if operation == "Query" and reads >= _MANY:
        reasons.append(
            f"The page has {_read_size(reads, consistent=consistent)}: a query is charged for every item that matches "
            "its key condition."
        )
    if request.get("FilterExpression") is not None:
        reasons.append("Filters apply after reading: items that the filter drops are charged too.")
    if request.get("ProjectionExpression") is not None and reads >= _MANY:
        reasons.append("A projection reduces the response, not the charge.")
    if consistent and reads:
        reasons.append("A strongly consistent read costs twice as much as an eventually consistent one.")
    if operation.startswith("Transact") or operation == "ExecuteTransaction":
        reasons.append("A transaction costs twice as much.")
    if operation.startswith(("Batch", "Transact")) and expensive.items > 1:
        reasons.append(f"It has {expensive.items:,} items; a batch saves requests, not capacity.")
    reasons += _explain_writes(expensive, writes)
    if expensive.fault is not None:
        reasons.append(f"It failed: {expensive.fault}.")
    if expensive.took_s >= _SLOW_S:
        reasons.append(
            f"It took {expensive.took_s * 1000:,.0f} ms, including waiting for other requests and for the disk."
        )
    return tuple(reasons)


def _explain_writes(expensive: ExpensiveRequest, writes: float) -> list[str]:
    reasons = []
    indexes = [place for place in expensive.consumed if place.index is not None and place.writes]
    if indexes:
        share = sum(place.writes for place in indexes)
        names = ", ".join(dict.fromkeys(place.index or "" for place in indexes))
        reasons.append(
            f"{share:g} of {writes:g} write units are for {len(indexes)} "
            f"{'index' if len(indexes) == 1 else 'indexes'} ({names})."
        )
    table_writes = sum(place.writes for place in expensive.consumed if place.index is None)
    if expensive.items == 1 and table_writes >= _LARGE_ITEM_UNITS:
        reasons.append(
            f"The item is large: a write is charged for the whole item, one unit per {_WRITE_BYTES // 1024} KB."
        )
    return reasons


def _read_size(units: float, *, consistent: bool) -> str:
    """Return the size of a read of some units as text."""
    kilobytes = units * _READ_BYTES * (1 if consistent else 2) / 1024
    return f"about {kilobytes:,.0f} KB" if kilobytes < 1024 else f"about {kilobytes / 1024:,.1f} MB"
