"""Request rates, latency and consumed capacity.

The numbers come from the monitor, which is in memory. With the engine in this process it saw every call; otherwise only the
studio's own, and the response says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from tavola.studio.endpoint import SEE_REQUESTS, Endpoint
from tavola.studio.monitoring.counters import (
    OTHER_KINDS,
    OTHERS,
    QUANTILES,
    CallCounter,
    CallKind,
    CallTally,
    CapacityTarget,
    CapacityUse,
    ClosedSlice,
    sum_slices,
)
from tavola.studio.monitoring.request_metrics import WINDOW_S_MAX, MetricsView, group_by_step
from tavola.studio.studio import Studio
from tavola.studio.types import ApiMessage

_PLACES_SHOWN = 12
_ROWS_SHOWN = 100


class OperationsRequest(ApiMessage):
    """A time window that ends now, and filters by table and operation."""

    window_s: int = 600
    table: str | None = None
    operation: str | None = None
    places: int = _PLACES_SHOWN  # tables and indexes with a time series


class OperationSeries(ApiMessage):
    """Counts per time step; percentiles are null for steps without requests."""

    times: tuple[int, ...]  # epoch seconds at which each step begins
    requests: tuple[int, ...]
    faults: tuple[int, ...]
    throttles: tuple[int, ...]
    conditions: tuple[int, ...]
    conflicts: tuple[int, ...]
    p50_ms: tuple[float | None, ...]
    p90_ms: tuple[float | None, ...]
    p99_ms: tuple[float | None, ...]
    p999_ms: tuple[float | None, ...]


class OperationTotals(ApiMessage):
    """Totals over the window."""

    requests: int
    per_second: float
    faults: int
    throttles: int
    conditions: int  # failed conditional writes
    conflicts: int  # conflicts with a transaction
    p50_ms: float | None
    p90_ms: float | None
    p99_ms: float | None
    p999_ms: float | None
    mean_ms: float | None
    slowest_ms: float
    reads: float  # units
    writes: float
    codes: Mapping[str, int]  # faults by code


class OperationRow(ApiMessage):
    """One operation on one table, or on several tables at once."""

    operation: str
    tables: tuple[str, ...]
    totals: OperationTotals


class TargetUse(ApiMessage):
    """The capacity consumed by a table or index, in total and as a time series."""

    table: str
    index: str | None
    reads: float  # total units
    writes: float
    peak_reads: float  # in one second, whatever the step
    peak_writes: float
    read_units: tuple[float, ...]  # per second, for each step; empty without a time series
    write_units: tuple[float, ...]


class OperationsSummary(ApiMessage):
    """All requests in a window."""

    seen: Literal["engine", "studio"]  # whose calls are counted
    now_s: float
    since_s: float  # when monitoring began
    window_s: int
    step_s: int
    calls: int  # since monitoring began
    own_calls: int  # the studio's own calls to the engine, which are not counted
    others: int  # calls in the window counted without their kind, because there were too many kinds
    series: OperationSeries
    totals: OperationTotals
    rows: tuple[OperationRow, ...]  # most frequent first
    places: tuple[TargetUse, ...]  # the busiest first
    tables: tuple[str, ...]  # seen in the window
    operations: tuple[str, ...]


def summarise_operations(studio: Studio, params: OperationsRequest) -> OperationsSummary:
    """Return the totals and time series of all requests in a window."""
    monitor = studio.require_monitor()
    window_s = max(1, min(params.window_s, WINDOW_S_MAX))
    with monitor.lock:
        view = monitor.metrics.view(window_s)
        calls, own_calls = monitor.metrics.calls, monitor.own_calls
    table, operation = params.table or None, params.operation or None
    now_s = studio.clock.now()
    seen_s = max(1.0, now_s - max(view.start_s, monitor.began_s))
    kinds = {kind for time_slice in view.summed for kind in time_slice.kinds}
    counted = _count_by_kind(view.summed, table, operation)
    return OperationsSummary(
        seen="studio" if studio.engine is None else "engine",
        now_s=now_s,
        since_s=monitor.began_s,
        window_s=window_s,
        step_s=view.step_s,
        calls=calls,
        own_calls=own_calls,
        others=max(_unnamed_calls(view.slices), _unnamed_calls(view.summed)),
        series=_series(view, table, operation),
        totals=_totals(counted.values(), seen_s),
        rows=_rows(counted, seen_s),
        places=_target_use(view, table, max(0, min(params.places, _PLACES_SHOWN)), (monitor.began_s, now_s)),
        tables=tuple(sorted({name for kind in kinds for name in kind.tables})),
        operations=tuple(sorted({kind.operation for kind in kinds if kind.operation != OTHERS})),
    )


def _unnamed_calls(slices: Iterable[ClosedSlice]) -> int:
    return sum_slices(
        (time_slice for time_slice in slices if OTHER_KINDS in time_slice.kinds), None, OTHERS
    ).tally.requests


def _series(view: MetricsView, table: str | None, operation: str | None) -> OperationSeries:
    by_step = group_by_step(view.slices, view.step_s)
    times = tuple(view.start_s + place * view.step_s for place in range(view.steps))
    tallies: list[CallTally] = []
    shares: list[tuple[float, ...] | None] = []
    nothing = CallTally(), None
    for time in times:
        slices = by_step.get(time, ())
        if len(slices) <= 1:
            tally, share = slices[0].summary(table, operation) if slices else nothing
        else:  # the current step, made of shorter slices
            cell = sum_slices(slices, table, operation)
            tally, share = cell.tally, cell.quantiles()
        tallies.append(tally)
        shares.append(share)
    columns = [
        tuple(None if step_shares is None else milliseconds(step_shares[place]) for step_shares in shares)
        for place in range(len(QUANTILES))
    ]
    return OperationSeries(
        times,
        tuple(tally.requests for tally in tallies),
        tuple(tally.faults for tally in tallies),
        tuple(tally.throttles for tally in tallies),
        tuple(tally.conditions for tally in tallies),
        tuple(tally.conflicts for tally in tallies),
        *columns,
    )


def _count_by_kind(
    slices: list[ClosedSlice], table: str | None, operation: str | None
) -> dict[CallKind, CallCounter]:
    """Sum several slices by kind of call."""
    counters: dict[CallKind, CallCounter] = {}
    for time_slice in slices:
        for position, kind in time_slice.matching(table, operation):
            time_slice.add_to(counters.setdefault(kind, CallCounter()), position)
    return counters


def _totals(cells: Iterable[CallCounter], seen_s: float) -> OperationTotals:
    total = CallCounter()
    for cell in cells:
        total.add(cell)
    tally, shares = total.tally, total.quantiles()
    percentiles = [None] * len(QUANTILES) if shares is None else [milliseconds(share) for share in shares]
    return OperationTotals(
        requests=tally.requests,
        per_second=tally.requests / seen_s,
        faults=tally.faults,
        throttles=tally.throttles,
        conditions=tally.conditions,
        conflicts=tally.conflicts,
        p50_ms=percentiles[0],
        p90_ms=percentiles[1],
        p99_ms=percentiles[2],
        p999_ms=percentiles[3],
        mean_ms=milliseconds(tally.took_s / tally.requests) if tally.requests else None,
        slowest_ms=milliseconds(tally.slowest_s),
        reads=tally.reads,
        writes=tally.writes,
        codes=dict(sorted(tally.codes.items(), key=lambda pair: (-pair[1], pair[0]))),
    )


def _rows(counted: Mapping[CallKind, CallCounter], seen_s: float) -> tuple[OperationRow, ...]:
    rows = [
        OperationRow(kind.operation, kind.tables, _totals((cell,), seen_s)) for kind, cell in counted.items()
    ]
    rows.sort(key=lambda row: (row.operation == OTHERS, -row.totals.requests, row.operation, row.tables))
    return tuple(rows[:_ROWS_SHOWN])


def _target_use(
    view: MetricsView, table: str | None, series_max: int, observed: tuple[float, float]
) -> tuple[TargetUse, ...]:
    sums: dict[CapacityTarget, CapacityUse] = {}
    for time_slice in view.summed:
        for target, units in time_slice.capacity_use():
            if table is None or target.table == table:
                sums.setdefault(target, CapacityUse()).add(*units)
    order = sorted(
        sums,
        key=lambda target: (
            target.table == OTHERS,
            -sums[target].reads - sums[target].writes,
            target.table,
            target.index_name or "",
        ),
    )[:_PLACES_SHOWN]
    steps = {target: ([0.0] * view.steps, [0.0] * view.steps) for target in order[:series_max]}
    for time_slice in view.slices:
        start_s = time_slice.start_s - time_slice.start_s % view.step_s
        # The current step, and the one in which monitoring began, were observed only in part.
        seconds = max(1.0, min(start_s + view.step_s, observed[1]) - max(start_s, observed[0]))
        for target, (reads, writes, *_) in time_slice.capacity_use():
            if target in steps:
                at = (start_s - view.start_s) // view.step_s
                steps[target][0][at] += reads / seconds
                steps[target][1][at] += writes / seconds
    return tuple(
        TargetUse(
            table=target.table,
            index=target.index_name,
            reads=sums[target].reads,
            writes=sums[target].writes,
            peak_reads=sums[target].peak_reads,
            peak_writes=sums[target].peak_writes,
            read_units=tuple(map(_round_units, steps[target][0])) if target in steps else (),
            write_units=tuple(map(_round_units, steps[target][1])) if target in steps else (),
        )
        for target in order
    )


def _round_units(units: float) -> float:
    return round(units, 3)


def milliseconds(seconds: float) -> float:
    """Return a duration in milliseconds, rounded to a tenth of a microsecond."""
    return round(seconds * 1000, 4)


ENDPOINTS = (Endpoint("GET", "/operations", summarise_operations, permission=SEE_REQUESTS),)
