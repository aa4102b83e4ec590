"""Requests and responses of the heat endpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tavola.studio.monitoring.heat_diagnosis import HeatFinding
from tavola.studio.monitoring.heat_map import ROWS_MAX, HeatLayer, RowKind
from tavola.studio.monitoring.heat_slots import Metric
from tavola.studio.types import Item

HeatSource = Literal["engine", "studio", "log", "none"]


@dataclass(frozen=True, slots=True)
class HeatRequest:
    """A map of a table or index: the last so many seconds, or from one moment to another."""

    table: str
    index: str | None = None
    metric: Metric = "operations"
    seconds: int = 600
    from_s: int | None = None
    to_s: int | None = None
    buckets: int = ROWS_MAX
    first: str | None = (
        None  # only what lies between two keys, as `first_keys` and `last_keys` of a map name them
    )
    last: str | None = None
    layout: str | None = None  # of an earlier answer; then only columns from `since_s` on are given
    since_s: int | None = None
    log: bool = False  # from the access log instead of what was seen
    diagnose: bool = True  # whoever asks for columns each second need not be told each time


@dataclass(frozen=True, slots=True)
class HeatTotals:
    """Totals of each column over all keys."""

    operations: tuple[float, ...]
    reads: tuple[float, ...]
    writes: tuple[float, ...]
    throttles: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class HeatLimits:
    """What a partition and the whole may do a second; None: as much as the account lets it."""

    partition_reads: int
    partition_writes: int
    reads: float | None
    writes: float | None
    mode: Literal["on-demand", "provisioned"]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A map, or its new columns. Rows lie in key order, from the top; what has no key comes last."""

    table: str
    index: str | None
    metric: Metric
    source: HeatSource
    note: str  # what is known here, and what is not
    whole: bool
    layout: str
    from_s: int  # where the first column given begins
    column_s: int
    columns: int
    labels: tuple[str, ...]  # of all rows if it is whole, else of those that are new
    kinds: tuple[RowKind, ...]
    keys: tuple[int, ...]  # in each of these rows
    first_keys: tuple[str, ...]  # of each row, where some are ranges of keys and the map is whole
    last_keys: tuple[str, ...]
    places: tuple[int, ...]  # where the new rows are; of a whole map, none
    rows: int
    cells: HeatLayer
    throttled: HeatLayer
    totals: HeatTotals
    limits: HeatLimits
    diagnosis: tuple[HeatFinding, ...]
    known_from_s: int | None
    now_s: float


@dataclass(frozen=True, slots=True)
class HeatCellRequest:
    """The cells of one row from one moment to another."""

    table: str
    layout: str
    row: int
    from_s: int
    to_s: int
    index: str | None = None
    metric: Metric = "operations"


@dataclass(frozen=True, slots=True)
class OperationHeat:
    """An operation, and how much of the metric it had."""

    operation: str
    amount: float


@dataclass(frozen=True, slots=True)
class HotKeyRow:
    """A key and its accesses: at least `count` of the requested metric, at most `count + error`."""

    label: str
    key: Item | None  # None: only its hash is known
    count: float
    error: float
    share: float
    operations: float
    reads: float
    writes: float
    throttles: float
    by_operation: tuple[OperationHeat, ...]


@dataclass(frozen=True, slots=True)
class HeatCell:
    """What lies behind some cells; in all the time that the slots they were made of cover."""

    label: str
    kind: RowKind
    from_s: int
    to_s: int
    operations: float
    reads: float
    writes: float
    throttles: float
    by_operation: tuple[OperationHeat, ...]
    keys: tuple[HotKeyRow, ...]
    more: int  # keys that are not listed
    items: tuple[HotKeyRow, ...]  # whole keys, where there is a sort key


@dataclass(frozen=True, slots=True)
class HottestKeysRequest:
    """The hottest keys of a table or index in a time."""

    table: str
    index: str | None = None
    metric: Metric = "operations"
    seconds: int = 600
    from_s: int | None = None
    to_s: int | None = None
    count: int = 10
    log: bool = False


@dataclass(frozen=True, slots=True)
class InsightKey:
    """A key that Contributor Insights counted: at most `error` too much, never too little."""

    label: str
    key: Item
    count: float
    error: float


@dataclass(frozen=True, slots=True)
class HeatInsights:
    """What Contributor Insights of the engine counted, since it was switched on."""

    accessed: tuple[InsightKey, ...]
    accessed_items: tuple[InsightKey, ...]
    throttled: tuple[InsightKey, ...]
    throttled_items: tuple[InsightKey, ...]


@dataclass(frozen=True, slots=True)
class HottestKeys:
    """The keys that had most, by partition key and by whole key."""

    source: HeatSource
    metric: Metric
    total: float
    partitions: tuple[HotKeyRow, ...]
    items: tuple[HotKeyRow, ...]
    insights: HeatInsights | None
    diagnosis: tuple[HeatFinding, ...]
