"""Heat maps of key accesses: the map, the keys behind a cell, the hottest keys, and the diagnosis.

A map is requested whole once and then only by its new columns. The response names its rows (`layout`); a request with that
name gets columns for the same rows, plus rows that were added since.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count as counting
from typing import Any, Literal

from tavola.engine import Hottest
from tavola.limits import PARTITION_READS_PER_S, PARTITION_WRITES_PER_S
from tavola.protocol.arns import DEFAULT_SCOPE, scope_of, table_name_of
from tavola.protocol.faults import ResourceNotFoundFault
from tavola.studio.endpoint import SEE_REQUESTS, Endpoint
from tavola.studio.monitoring.heat_diagnosis import HeatFinding, diagnose, window_traffic
from tavola.studio.monitoring.heat_keys import KeyAccesses, hottest_items, hottest_keys
from tavola.studio.monitoring.heat_map import (
    ROWS_MAX,
    HeatLayer,
    HeatLayout,
    HeatRow,
    RowKind,
    RowLookup,
    build_layout,
    column_count,
    column_of,
    extend_layout,
    first_column_s,
    paint_cells,
)
from tavola.studio.monitoring.heat_recorder import TIERS, HeatRecorder, HeatWindow, record_log, window_part
from tavola.studio.monitoring.heat_slots import METRICS, HeatSums, Metric
from tavola.studio.monitoring.key_order import HashedKeys, Keys, Order, SchemaKeys
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import LogQuery, Studio
from tavola.studio.table_layouts import parse_layout
from tavola.studio.types import ApiMessage, Item

HeatSource = Literal["engine", "studio", "log", "none"]


class HeatTimeRequest(ApiMessage):
    """A table or index and a time: the last `seconds`, or from one moment to another."""

    table: str
    index: str | None = None
    metric: Metric = "operations"
    seconds: int = 600
    from_s: int | None = None
    to_s: int | None = None
    log: bool = False  # read the access log instead of the monitor


class HeatRequest(HeatTimeRequest):
    """A heat map, or with `layout` only the new columns of an earlier one."""

    buckets: int = ROWS_MAX
    first: str | None = None  # only rows between two keys, from `first_keys` and `last_keys` of a map
    last: str | None = None
    layout: str | None = None  # of an earlier map; then only columns from `since_s` on are returned
    since_s: int | None = None
    diagnose: bool = True  # a page that polls every second does not need a diagnosis each time


class HeatTotals(ApiMessage):
    """Totals of each column over all keys."""

    operations: tuple[float, ...]
    reads: tuple[float, ...]
    writes: tuple[float, ...]
    throttles: tuple[float, ...]


class HeatLimits(ApiMessage):
    """Capacity units per second of one partition and of the whole table or index; None: only the account's quota."""

    partition_reads: int
    partition_writes: int
    reads: float | None
    writes: float | None
    mode: Literal["on-demand", "provisioned"]


class KeyHeatMap(ApiMessage):
    """A heat map, or its new columns. Rows are in key order from the top; accesses without a key come last."""

    table: str
    index: str | None
    metric: Metric
    source: HeatSource
    note: str  # which accesses are not recorded
    whole: bool
    layout: str
    from_s: int  # start of the first returned column
    column_s: int
    columns: int
    labels: tuple[str, ...]  # of all rows if `whole`, else of the new rows
    kinds: tuple[RowKind, ...]
    keys: tuple[int, ...]  # number of keys in each of these rows
    first_keys: tuple[str, ...]  # of each row, if the map is whole and some rows are key ranges
    last_keys: tuple[str, ...]
    places: tuple[int, ...]  # positions of the new rows; empty if `whole`
    rows: int
    cells: HeatLayer
    throttled: HeatLayer
    totals: HeatTotals
    limits: HeatLimits
    diagnosis: tuple[HeatFinding, ...]
    known_from_s: int | None
    now_s: float


class HeatCellRequest(ApiMessage):
    """The cells of one row in a time range."""

    table: str
    layout: str
    row: int
    from_s: int
    to_s: int
    index: str | None = None
    metric: Metric = "operations"


class OperationHeat(ApiMessage):
    """An operation and its amount of the metric."""

    operation: str
    amount: float


class HeatAmounts(ApiMessage):
    """The accesses of a key or row, by metric and by operation."""

    label: str
    operations: float
    reads: float
    writes: float
    throttles: float
    by_operation: tuple[OperationHeat, ...]


class HotKeyRow(HeatAmounts):
    """A key and its accesses: at least `count` of the requested metric, at most `count + error`."""

    key: Item | None  # None: only its hash is known
    count: float
    error: float
    share: float


class HeatCell(HeatAmounts):
    """The accesses behind some cells of a row; the time range is extended to whole recorded slots."""

    kind: RowKind
    from_s: int
    to_s: int
    keys: tuple[HotKeyRow, ...]
    more: int  # number of keys that are not listed
    items: tuple[HotKeyRow, ...]  # full primary keys, if there is a sort key


class HottestKeysRequest(HeatTimeRequest):
    """How many of the hottest keys to return."""

    count: int = 10


class HottestKeys(ApiMessage):
    """The hottest keys, by partition key and by full key."""

    source: HeatSource
    metric: Metric
    total: float
    partitions: tuple[HotKeyRow, ...]
    items: tuple[HotKeyRow, ...]
    insights: Hottest | None  # counts of the engine's Contributor Insights since they were enabled
    diagnosis: tuple[HeatFinding, ...]


_LAYOUTS_MAX = 32
_LOG_RECORDS = 200_000
_CELL_KEYS = 50


@dataclass(frozen=True, slots=True)
class _HeatTarget:
    """A table or index with its keys and limits."""

    arn: str
    index: str | None
    keys: Keys
    limits: HeatLimits


@dataclass(frozen=True, slots=True)
class _KnownLayout:
    """A layout that a page uses, and its table or index; for a log also the accesses read from it."""

    subject: _HeatTarget
    layout: HeatLayout
    window: HeatWindow | None = None


class _LayoutCache:
    """The most recently returned layouts, by name."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _KnownLayout] = OrderedDict()
        self._numbers = counting(1)

    def keep(self, subject: _HeatTarget, layout: HeatLayout, window: HeatWindow | None = None) -> str:
        name = f"L{next(self._numbers)}"
        if window is not None:  # the accesses of a log are large, so only the last ones are kept
            for before in [place for place, known in self._kept.items() if known.window is not None]:
                del self._kept[before]
        self._kept[name] = _KnownLayout(subject, layout, window)
        while len(self._kept) > _LAYOUTS_MAX:
            self._kept.popitem(last=False)
        return name

    def find(self, name: str | None, table: str, index: str | None) -> _KnownLayout | None:
        """Return a layout by name, if it belongs to this table or index."""
        known = None if name is None else self._kept.get(name)
        if name is None or known is None:
            return None
        if (table_name_of(known.subject.arn), known.subject.index) != (table_name_of(table), index):
            return None
        self._kept.move_to_end(name)
        return known


_LAYOUTS = _LayoutCache()


async def heat_map(studio: Studio, params: HeatRequest) -> KeyHeatMap:
    """Return a map, or only its new columns for a request with the layout of an earlier map."""
    new_columns = await _new_columns(studio, params)
    if new_columns is not None:
        return new_columns
    subject = await _load_target(studio, params.table, params.index, log=params.log)
    window = await _load_window(studio, subject, params)
    rows_max = max(3, min(ROWS_MAX, params.buckets))
    layout = await studio.run_in_thread(
        build_layout, window, subject.keys, rows_max, _key_range(subject, params)
    )
    layout_name = _LAYOUTS.keep(subject, layout, window if params.log else None)
    return await studio.run_in_thread(
        _build_map, studio, params, subject, (layout_name, layout, None), window, window
    )


async def _new_columns(studio: Studio, params: HeatRequest) -> KeyHeatMap | None:
    """Return the new columns of a map the page has; None if a whole map is needed."""
    known = _LAYOUTS.find(params.layout, params.table, params.index)
    if known is None or params.since_s is None or params.log:
        return None
    subject, layout = known.subject, known.layout
    full_window = await _load_window(studio, subject, params)
    start = first_column_s(layout, params.since_s)
    if start < full_window.from_s - layout.column_s:
        return None  # so much time passed that every column is new
    window = _recorded_window(studio, subject, start, full_window.to_s)
    extended = await studio.run_in_thread(extend_layout, layout, window, subject.keys)
    if extended is None:
        return None
    layout, new_rows = extended
    name = params.layout if not new_rows else _LAYOUTS.keep(subject, layout)
    assert name is not None, "it was found by its name"
    return await studio.run_in_thread(
        _build_map, studio, params, subject, (name, layout, new_rows), window, full_window
    )


def _key_range(subject: _HeatTarget, params: HeatRequest) -> tuple[Order, Order] | None:
    """Return the key range of a partial map."""
    if params.first is None or params.last is None:
        return None
    try:
        return subject.keys.order(bytes.fromhex(params.first)), subject.keys.order(bytes.fromhex(params.last))
    except ValueError as error:
        raise RequestRefused(
            "key-unreadable",
            "Invalid key",
            "`first` and `last` must be hexadecimal keys from an earlier response.",
            "Use its `first_keys` and `last_keys`, or leave both out.",
        ) from error


async def heat_cell(studio: Studio, params: HeatCellRequest) -> HeatCell:
    """Return the keys and operations behind some cells of a row."""
    known = _LAYOUTS.find(params.layout, params.table, params.index)
    if known is None or not 0 <= params.row < len(known.layout.rows):
        raise RequestRefused(
            "map-gone",
            "The heat map is out of date",
            "The studio no longer has the rows of this map.",
            "Reload the map, then open the cell.",
            status=409,
        )
    if known.window is None:
        window = _recorded_window(studio, known.subject, params.from_s, params.to_s)
    else:
        window = window_part(known.window, params.from_s, params.to_s)
    return await studio.run_in_thread(_build_cell, window, known.subject, known.layout, params)


async def heat_hottest(studio: Studio, params: HottestKeysRequest) -> HottestKeys:
    """Return the hottest keys, and those that the engine's Contributor Insights counted."""
    subject = await _load_target(studio, params.table, params.index, log=params.log)
    window = await _load_window(studio, subject, params)
    count = max(1, min(100, params.count))

    def rank_keys() -> HottestKeys:
        total = window.sums
        at = METRICS[params.metric]
        return HottestKeys(
            source=_source(studio, log=params.log),
            metric=params.metric,
            total=total[at],
            partitions=_key_rows(hottest_keys(window, params.metric, count), subject.keys, total[at]),
            items=_key_rows(hottest_items(window, params.metric, count), subject.keys, total[at]),
            insights=None if params.log else _insights(studio, params, subject, count),
            diagnosis=_diagnosis(window, subject.keys),
        )

    return await studio.run_in_thread(rank_keys)


def _build_map(
    studio: Studio,
    params: HeatRequest,
    subject: _HeatTarget,
    named_layout: tuple[str, HeatLayout, tuple[int, ...] | None],
    window: HeatWindow,
    whole: HeatWindow,
) -> KeyHeatMap:
    name, layout, new_rows = named_layout
    rows = layout.rows if new_rows is None else tuple(layout.rows[position] for position in new_rows)
    return KeyHeatMap(
        table=params.table,
        index=params.index,
        metric=params.metric,
        source=_source(studio, log=params.log),
        note=_note(studio, window, log=params.log),
        whole=new_rows is None,
        layout=name,
        from_s=first_column_s(layout, window.from_s),
        column_s=layout.column_s,
        columns=column_count(layout, window),
        labels=tuple(row.label for row in rows),
        kinds=tuple(row.kind for row in rows),
        keys=tuple(row.keys for row in rows),
        first_keys=_range_keys(rows, 0) if layout.shared and new_rows is None else (),
        last_keys=_range_keys(rows, 1) if layout.shared and new_rows is None else (),
        places=new_rows or (),
        rows=len(layout.rows),
        cells=paint_cells(window, layout, subject.keys, params.metric),
        throttled=paint_cells(window, layout, subject.keys, "throttles"),
        totals=_totals(window, layout),
        limits=subject.limits,
        diagnosis=_diagnosis(whole, subject.keys) if params.diagnose else (),
        known_from_s=min((slot.slot.start for slot in whole.slots), default=None),
        now_s=studio.clock.now(),
    )


def _range_keys(rows: Sequence[HeatRow], position: int) -> tuple[str, ...]:
    """Return the first or last key of each row; an `Order` ends with the key itself."""
    ends = [(row.first, row.last)[position] for row in rows]
    return tuple(end[-1].hex() if end and isinstance(end[-1], bytes) else "" for end in ends)


def _build_cell(
    window: HeatWindow, subject: _HeatTarget, layout: HeatLayout, params: HeatCellRequest
) -> HeatCell:
    lookup = RowLookup(layout, subject.keys)
    row = layout.rows[params.row]
    operations: dict[str, HeatSums] = {}
    inside: set[bytes] = set()
    for timed in window.slots:
        slot = timed.slot
        for key, number, *sums in slot.entries():
            if lookup[key] == params.row:
                name = window.operations[number]
                operations[name] = operations.get(name, HeatSums()) + sums
                if key is not None:
                    inside.add(key)
        for number, rest in slot.rest.items() if row.kind == "rest" else ():
            name = window.operations[number]
            operations[name] = operations.get(name, HeatSums()) + rest
    total = sum(operations.values(), HeatSums())
    at = METRICS[params.metric]
    keys = hottest_keys(window, params.metric, _CELL_KEYS, frozenset(inside))
    items = hottest_items(window, params.metric, _CELL_KEYS, inside)
    return HeatCell(
        label=row.label,
        kind=row.kind,
        # Old accesses are recorded in slots longer than the cell was when it was drawn.
        from_s=min((slot.slot.start for slot in window.slots), default=params.from_s),
        to_s=max((slot.slot.start + slot.span_s for slot in window.slots), default=params.to_s),
        **total._asdict(),
        by_operation=tuple(
            OperationHeat(name, sums.operations + sums.throttles)
            for name, sums in sorted(operations.items(), key=lambda entry: (-sum(entry[1]), entry[0]))
        ),
        keys=_key_rows(keys, subject.keys, total[at]),
        more=len(inside) - len(keys),
        items=_key_rows(items, subject.keys, total[at]),
    )


async def _load_target(studio: Studio, table: str, index: str | None, *, log: bool) -> _HeatTarget:
    """Return the keys and limits of a table or index."""
    described: dict[str, Any] = (await studio.db.call("DescribeTable", {"TableName": table}))["Table"]
    target = parse_layout(described).target(index)
    indexes = (*described.get("GlobalSecondaryIndexes", ()), *described.get("LocalSecondaryIndexes", ()))
    limits = _limits(
        described, next((index for index in indexes if index["IndexName"] == target.index), described)
    )
    if log:
        return _HeatTarget(table, index, HashedKeys(), limits)
    return _HeatTarget(described["TableArn"], index, SchemaKeys(target.schema), limits)


def _limits(described: dict[str, Any], own: dict[str, Any]) -> HeatLimits:
    mode = (described.get("BillingModeSummary") or {}).get("BillingMode")
    on_demand = mode == "PAY_PER_REQUEST"
    throughput = own.get("OnDemandThroughput" if on_demand else "ProvisionedThroughput") or {}
    reads = throughput.get("MaxReadRequestUnits" if on_demand else "ReadCapacityUnits")
    writes = throughput.get("MaxWriteRequestUnits" if on_demand else "WriteCapacityUnits")
    return HeatLimits(
        PARTITION_READS_PER_S,
        PARTITION_WRITES_PER_S,
        float(reads) if reads and reads > 0 else None,
        float(writes) if writes and writes > 0 else None,
        "on-demand" if on_demand else "provisioned",
    )


async def _load_window(studio: Studio, subject: _HeatTarget, params: HeatTimeRequest) -> HeatWindow:
    """Return the recorded accesses of a table or index in the requested time range."""
    if not params.log:
        end = _end(studio, params)
        start = params.from_s if params.from_s is not None else end - max(1, params.seconds)
        return _recorded_window(studio, subject, min(start, end - 1), end)
    reader = studio.require_log()
    query = LogQuery(table=params.table, since_s=params.from_s, until_s=params.to_s, limit=_LOG_RECORDS)

    def read() -> tuple[HeatRecorder, int | None, int]:
        records = list(reader(query))
        return *record_log(reversed(records)), len(records)

    recorder, last, count = await studio.run_in_thread(read)
    end = params.to_s or (int(studio.clock.now()) if last is None else last) + 1
    earliest = recorder.earliest_s(subject.arn, subject.index)
    start = params.from_s if params.from_s is not None else max(end - TIERS[-1].reach_s, earliest or end - 1)
    window = recorder.window(subject.arn, subject.index, min(start, end - 1), end)
    if count < _LOG_RECORDS:
        return window
    return replace(window, note=f"Only the newest {_LOG_RECORDS:,} records of this table were read.")


def _end(studio: Studio, params: HeatTimeRequest) -> int:
    return params.to_s if params.to_s is not None else int(studio.clock.now()) + 1


def _recorded_window(studio: Studio, subject: _HeatTarget, from_s: int, to_s: int) -> HeatWindow:
    if studio.monitor is None:
        return HeatWindow(subject.arn, subject.index, from_s, to_s, (), ())
    with studio.monitor.lock:
        recorder = studio.monitor.heat
        arn = subject.arn if studio.engine is not None else _recorded_arn(recorder, subject)
        return recorder.window(arn, subject.index, from_s, to_s)


def _recorded_arn(recorder: HeatRecorder, subject: _HeatTarget) -> str:
    """Return the ARN under which the studio's own calls recorded the table; a remote account may differ."""
    name = table_name_of(subject.arn)
    arns = [arn for arn, _, _ in recorder.places() if table_name_of(arn) == name]
    return arns[0] if arns else subject.arn


def _totals(window: HeatWindow, layout: HeatLayout) -> HeatTotals:
    totals = [[0.0] * column_count(layout, window) for _ in METRICS]
    for timed in window.slots:
        column = column_of(layout, window, timed.slot)
        for column_totals, amount in zip(totals, timed.slot.sums, strict=True):
            column_totals[column] += amount
    return HeatTotals(*(tuple(column_totals) for column_totals in totals))


def _diagnosis(window: HeatWindow, keys: Keys) -> tuple[HeatFinding, ...]:
    return diagnose([window_traffic(window, keys, "writes"), window_traffic(window, keys, "reads")])


def _key_rows(counted: list[KeyAccesses], keys: Keys, total: float) -> tuple[HotKeyRow, ...]:
    return tuple(
        HotKeyRow(
            label=keys.label(hot_key.key),
            key=keys.values(hot_key.key),
            count=hot_key.count,
            error=hot_key.error,
            share=hot_key.count / total if total else 0.0,
            **hot_key.sums._asdict(),
            by_operation=tuple(OperationHeat(name, amount) for name, amount in hot_key.by_operation),
        )
        for hot_key in counted
    )


def _insights(studio: Studio, params: HottestKeysRequest, subject: _HeatTarget, count: int) -> Hottest | None:
    if studio.engine is None:
        return None
    scope = scope_of(subject.arn) or DEFAULT_SCOPE
    try:
        hottest = studio.engine.hottest(params.table, params.index, scope, count=count)
    except ResourceNotFoundFault:
        return None  # local indexes have no insights
    return hottest if hottest.accessed or hottest.throttled else None


def _source(studio: Studio, *, log: bool) -> HeatSource:
    if log:
        return "log"
    if studio.monitor is None:
        return "none"
    return "studio" if studio.engine is None else "engine"


def _note(studio: Studio, window: HeatWindow, *, log: bool) -> str:
    """Return which accesses the map does not show; empty if it shows all."""
    match _source(studio, log=log):
        case "log":
            text = "From the access log, which contains only hashes of keys, so rows are not in key order."
            return f"{text} {window.note}" if window.note else text
        case "engine":
            return ""
        case _:
            return (
                "These tables are in another process, so only this studio's own requests are recorded. To see all "
                "requests, use `tavola serve --studio`, `tavola studio --store FILE`, or that server's access log."
            )


ENDPOINTS = (
    Endpoint("GET", "/heat", heat_map, permission=SEE_REQUESTS),
    Endpoint("GET", "/heat/cell", heat_cell, permission=SEE_REQUESTS),
    Endpoint("GET", "/heat/hottest", heat_hottest, permission=SEE_REQUESTS),
)
