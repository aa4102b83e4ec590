"""A window of accesses as a map: rows of keys, columns of time.

Rows are in key order. Every key has its own row if there are few enough. Otherwise the heaviest keys keep a row and the
others share rows by key range. Accesses without a known key (scans, unnamed keys) have rows at the end, so the map adds up
to the consumed capacity. A map between two keys has finer rows for that range only.
"""

from __future__ import annotations

from array import array
from base64 import b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Literal
from zlib import compress

from tavola.studio.monitoring.heat_keys import (
    KEYS_SHOWN,
    ShownKeys,
    heaviest,
    key_weights,
    named_keys,
    sample_keys,
)
from tavola.studio.monitoring.heat_recorder import HeatWindow
from tavola.studio.monitoring.heat_slots import METRICS, SCALES, HeatSlot, Metric
from tavola.studio.monitoring.key_order import Keys, Order

RowKind = Literal["key", "range", "rest", "none"]

ROWS_MAX = 1000
COLUMNS_MAX = 600
_NEAT = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)
_KEYS_WITHIN = 50_000  # keys processed for a map between two keys
_OUTSTANDING = 2.0  # times the mean of a row: heavier keys have their own row


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A row: a key, a range of keys, or accesses without a known key."""

    kind: RowKind
    label: str
    first: Order = ()
    last: Order = ()
    keys: int = 0


@dataclass(frozen=True, slots=True)
class HeatLayout:
    """The rows of a map and the duration of a column."""

    column_s: int
    rows: tuple[HeatRow, ...]
    keyed: int  # rows with keys; the others come after them
    shared: bool  # some rows are ranges, so every new key fits an existing row
    shown: ShownKeys  # the keys that have a row; others are in the "rest" row
    within: tuple[Order, Order] | None = None  # keys outside are not on the map

    @property
    def none_row(self) -> int | None:
        """The row of accesses without a key."""
        return next(
            (
                position
                for position in range(self.keyed, len(self.rows))
                if self.rows[position].kind == "none"
            ),
            None,
        )

    @property
    def rest_row(self) -> int | None:
        """The row of keys that are not named."""
        return next(
            (
                position
                for position in range(self.keyed, len(self.rows))
                if self.rows[position].kind == "rest"
            ),
            None,
        )


@dataclass(frozen=True, slots=True)
class HeatLayer:
    """The cells of a metric as integers, row by row; multiply by `scale`."""

    bits: int
    scale: float
    most: float
    data: str  # little-endian, deflated (zlib), base64


def column_s(window: HeatWindow) -> int:
    """Return the duration of a column: at least that of a slot, and long enough to limit the columns."""
    needed = max(1, -(-(window.to_s - window.from_s) // COLUMNS_MAX))
    spans = (timed.span_s for timed in window.slots)
    least = max(needed, max(spans, default=1))
    return next((neat for neat in _NEAT if neat >= least), -(-least // 3600) * 3600)


def build_layout(
    window: HeatWindow, keys: Keys, rows_max: int = ROWS_MAX, within: tuple[Order, Order] | None = None
) -> HeatLayout:
    """Return the rows for a window, optionally only for keys in a range."""
    most = KEYS_SHOWN if within is None else _KEYS_WITHIN
    names = named_keys(window)
    weights = key_weights(window) if len(names) > min(most, rows_max) else {}
    sampled = ShownKeys(frozenset(names)) if len(names) <= most else sample_keys(weights, most)
    tail: list[HeatRow] = []
    if within is None:
        if sampled.cut is not None or any(timed.slot.rest for timed in window.slots):
            tail.append(HeatRow("rest", "other keys"))
        if any(timed.slot.has_keyless for timed in window.slots):
            tail.append(HeatRow("none", "no single key (scans)"))
    keyed_max = max(1, rows_max - len(tail))
    ordered = sorted((keys.order(key), key) for key in sampled.keys)
    if within is not None:
        low = bisect_left(ordered, within[0], key=itemgetter(0))
        ordered = ordered[low : bisect_right(ordered, within[1], key=itemgetter(0))]
    if len(ordered) <= keyed_max:
        rows = [HeatRow("key", keys.label(key), order, order, 1) for order, key in ordered]
    else:
        rows = _shared_rows(ordered, weights or key_weights(window), keys, keyed_max)
    shared = len(ordered) > keyed_max
    return HeatLayout(
        column_s(window), (*rows, *tail), len(rows), shared, replace(sampled, keys=frozenset()), within
    )


def _shared_rows(
    ordered: Sequence[tuple[Order, bytes]], weights: dict[bytes, float], keys: Keys, rows_max: int
) -> list[HeatRow]:
    """Return own rows for the hottest keys, and the remaining rows shared among the runs between them."""
    weights = {key: weights[key] for _, key in ordered}
    mean = sum(weights.values()) / rows_max
    hot = {key for key in heaviest(weights, (rows_max - 1) // 2) if weights[key] >= _OUTSTANDING * mean}
    runs: list[list[tuple[Order, bytes]]] = [[]]
    for pair in ordered:
        if pair[1] in hot:
            runs += [[pair], []]
        else:
            runs[-1].append(pair)
    cold = [run for run in runs if run and run[0][1] not in hot]
    # Each run has at least one row; further rows are distributed by number of keys.
    spare, over = rows_max - len(hot) - len(cold), sum(len(run) - 1 for run in cold)
    rows: list[HeatRow] = []
    for run in runs:
        if not run:
            continue
        if run[0][1] in hot:
            order, key = run[0]
            rows.append(HeatRow("key", keys.label(key), order, order, 1))
            continue
        extra_rows = spare * (len(run) - 1) // over if over else 0
        spare, over = spare - extra_rows, over - (len(run) - 1)
        share = 1 + extra_rows
        rows += [
            _range(run[position * len(run) // share : (position + 1) * len(run) // share], keys)
            for position in range(share)
        ]
    return rows


def _range(pairs: Sequence[tuple[Order, bytes]], keys: Keys) -> HeatRow:
    (first, first_key), (last, last_key) = pairs[0], pairs[-1]
    if len(pairs) == 1:
        return HeatRow("key", keys.label(first_key), first, first, 1)
    return HeatRow("range", f"{keys.label(first_key)} … {keys.label(last_key)}", first, last, len(pairs))


class RowLookup(dict[bytes | None, int | None]):
    """The row of each key, computed on demand: None if it has none yet, the number of rows if it is off the map."""

    def __init__(self, layout: HeatLayout, keys: Keys) -> None:
        super().__init__()
        self._layout = layout
        self._keys = keys
        self._firsts = [row.first for row in layout.rows[: layout.keyed]]
        self._beyond = len(layout.rows)
        self[None] = layout.none_row if layout.within is None else self._beyond

    def __missing__(self, key: bytes) -> int | None:
        layout = self._layout
        if not layout.shown.has(key):
            # Not cached: there may be very many.
            return layout.rest_row if layout.within is None else self._beyond
        row = self[key] = self._search(self._keys.order(key))
        return row

    def _search(self, order: Order) -> int | None:
        layout = self._layout
        if layout.within is not None and not layout.within[0] <= order <= layout.within[1]:
            return self._beyond
        rows = layout.rows
        at = bisect_right(self._firsts, order) - 1
        if at >= 0 and rows[at].first <= order <= rows[at].last:
            return at
        if not layout.shared:
            return None
        # Between two rows: use the nearest range, because the row of a key is for that key only.
        near = (row for away in range(8) for row in (at - away, at + 1 + away) if 0 <= row < layout.keyed)
        return next((row for row in near if rows[row].kind == "range"), max(0, at))


def extend_layout(
    layout: HeatLayout, window: HeatWindow, keys: Keys
) -> tuple[HeatLayout, tuple[int, ...]] | None:
    """Return a layout with rows for all keys of a window, and the positions of the new rows.

    None: a new layout is needed, because the new rows do not fit.
    """
    places = RowLookup(layout, keys)
    missing: dict[bytes, Order] = {}
    for timed in window.slots:
        for key in timed.slot.keys:
            if places[key] is None:
                if key is None:
                    return None
                missing[key] = keys.order(key)
        if timed.slot.rest and layout.rest_row is None and layout.within is None:
            return None
    if not missing:
        return layout, ()
    if len(layout.rows) + len(missing) > ROWS_MAX:
        return None
    added = set(missing.values())
    fresh = [HeatRow("key", keys.label(key), order, order, 1) for key, order in missing.items()]
    keyed = sorted((*layout.rows[: layout.keyed], *fresh), key=lambda row: row.first)
    new_rows = tuple(position for position, row in enumerate(keyed) if row.first in added)
    return replace(layout, rows=(*keyed, *layout.rows[layout.keyed :]), keyed=len(keyed)), new_rows


def first_column_s(layout: HeatLayout, at_s: int) -> int:
    """Return the start of the column of a moment."""
    return at_s // layout.column_s * layout.column_s


def column_count(layout: HeatLayout, window: HeatWindow) -> int:
    """Return the number of columns of a window."""
    return max(1, -(-(window.to_s - first_column_s(layout, window.from_s)) // layout.column_s))


def column_of(layout: HeatLayout, window: HeatWindow, slot: HeatSlot) -> int:
    """Return the column of a slot."""
    at = (slot.start - first_column_s(layout, window.from_s)) // layout.column_s
    return min(column_count(layout, window) - 1, max(0, at))


def paint_cells(window: HeatWindow, layout: HeatLayout, keys: Keys, metric: Metric) -> HeatLayer:
    """Return the cells of a metric."""
    width, height = column_count(layout, window), len(layout.rows)
    cells = array("I", bytes(4 * width * height))
    scale, place = SCALES[metric], METRICS[metric]
    rest_row = layout.rest_row
    row_of = RowLookup(layout, keys).__getitem__
    busy = (timed.slot for timed in window.slots if timed.slot.sums[place])
    for column, slots in groupby(busy, lambda slot: column_of(layout, window, slot)):
        amounts = [0] * (height + 1)  # the last one collects what is off the map
        for slot in slots:
            for row, value in zip(_rows_of(slot, layout, row_of), slot.column(metric), strict=True):
                amounts[row] += value  # type: ignore[index]  # the layout has a row for every key
            if slot.rest and rest_row is not None:
                amounts[rest_row] += round(slot.rest_of(metric) / scale)
        cells[column::width] = array("I", amounts[:height])
    return pack_cells(cells, scale)


def _rows_of(
    slot: HeatSlot, layout: HeatLayout, row_of: Callable[[bytes | None], int | None]
) -> Iterable[int | None]:
    """Return the row of each key of a slot; with very many keys, most are in the rest and need no lookup."""
    cut, heavy = layout.shown.cut, layout.shown.heavy
    if cut is None or layout.within is not None:
        return map(row_of, slot.keys)
    rest = layout.rest_row
    return [row_of(key) if key is None or key < cut or key in heavy else rest for key in slot.keys]


def pack_cells(cells: array[int], scale: float) -> HeatLayer:
    """Return numbers in the fewest bits, compressed."""
    most = max(cells, default=0)
    bits = 8 if most < 1 << 8 else 16 if most < 1 << 16 else 32
    packed = cells if bits == 32 else array("B" if bits == 8 else "H", cells)
    return HeatLayer(bits, scale, most * scale, b64encode(compress(packed.tobytes(), 1)).decode())
