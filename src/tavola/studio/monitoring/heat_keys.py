"""Choose the keys of a window that are processed individually, and rank them.

A window may name hundreds of thousands of keys. If there are too many, the heaviest keys and a sample of the others are used.
The sample is chosen by hash, so it does not favour any key and contains the same keys in every window.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nlargest
from itertools import compress, repeat

from tavola.studio.monitoring.heat_recorder import HeatWindow
from tavola.studio.monitoring.heat_slots import METRICS, SCALES, HeatCounts, HeatSums, Metric, add_to

KEYS_SHOWN = 10_000
_HEAVY = 500  # the heaviest keys, which are always shown


@dataclass(frozen=True, slots=True)
class ShownKeys:
    """The keys of a window that are processed individually."""

    keys: frozenset[bytes]
    cut: bytes | None = None  # keys from this one on are excluded, except `heavy`; None: all are included
    heavy: frozenset[bytes] = frozenset()  # always included

    def has(self, key: bytes) -> bool:
        """Return whether a key is included, even if it first appeared later."""
        return self.cut is None or key < self.cut or key in self.heavy


@dataclass(frozen=True, slots=True)
class KeyAccesses:
    """A key and its accesses: between `count` and `count + error`."""

    key: bytes
    count: float
    error: float
    sums: HeatSums
    by_operation: tuple[tuple[str, float], ...] = ()


def named_keys(window: HeatWindow) -> set[bytes]:
    """Return the partition keys that a window records by name."""
    names: set[bytes | None] = set()
    names.update(*(timed.slot.keys for timed in window.slots))
    names.discard(None)
    return names  # type: ignore[return-value]  # None was removed


def sample_keys(weights: dict[bytes, float], most: int = KEYS_SHOWN) -> ShownKeys:
    """Return the keys to process individually: the heaviest, and a fair sample of the others."""
    if len(weights) <= most:
        return ShownKeys(frozenset(weights))
    heavy = frozenset(heaviest(weights, min(_HEAVY, most)))
    # A key starts with its hash, so all keys below a bound are a random sample.
    some = sorted(list(weights)[:: max(1, len(weights) // most)])
    cut = some[len(some) * most // len(weights)]
    return ShownKeys(heavy.union([key for key in weights if key < cut]), cut, heavy)


def key_weights(window: HeatWindow) -> dict[bytes, float]:
    """Return the sum of all metrics for each named partition key."""
    weights: dict[bytes, float] = {}
    known = weights.get
    for timed in window.slots:
        slot = timed.slot
        columns = [slot.column(metric) for metric in METRICS if slot.sums[METRICS[metric]]]
        for key, weight in zip(slot.keys, map(sum, zip(*columns, strict=True)), strict=True):
            if key is not None:
                weights[key] = known(key, 0) + weight
    return weights


def heaviest(weights: dict[bytes, float], count: int) -> list[bytes]:
    """Return the heaviest keys, the heaviest first."""
    return [key for _, key in nlargest(count, zip(weights.values(), weights, strict=True))]


def key_totals(window: HeatWindow, metric: Metric) -> dict[bytes, float]:
    """Return the total of a metric for each named key."""
    totals: dict[bytes | None, int] = {}
    known = totals.get
    for timed in window.slots:
        slot = timed.slot
        if slot.sums[METRICS[metric]]:
            amounts = slot.column(metric)
            for key, value in zip(compress(slot.keys, amounts), filter(None, amounts), strict=True):
                totals[key] = known(key, 0) + value
    totals.pop(None, None)
    scale = SCALES[metric]
    return {key: value * scale for key, value in totals.items() if key is not None}


def hottest_keys(
    window: HeatWindow, metric: Metric, count: int = 10, among: frozenset[bytes] | None = None
) -> list[KeyAccesses]:
    """Return the hottest partition keys, the hottest first; optionally only those in `among`."""
    totals = key_totals(window, metric)
    if among is not None:
        totals = {key: value for key, value in totals.items() if key in among}
    order = heaviest(totals, count)
    chosen = frozenset(order)
    cells: dict[bytes, dict[int, HeatCounts]] = {key: {} for key in order}
    errors = dict.fromkeys(order, 0.0)
    at = METRICS[metric]
    for timed in window.slots:
        slot = timed.slot
        named = chosen.intersection(slot.keys)
        if named:
            for key, operation, *sums in compress(slot.entries(), map(named.__contains__, slot.keys)):
                assert key is not None, "`named` has only keys"
                add_to(cells[key], operation, sums)
        if slot.floor[at]:
            for key in order:
                if not (slot.exact and key in named):
                    errors[key] += slot.floor[at]
    return [
        KeyAccesses(
            key,
            totals[key],
            errors[key],
            sum(map(_sums, cells[key].values()), HeatSums()),
            _by_operation(window, cells[key], at),
        )
        for key in order
    ]


def hottest_items(
    window: HeatWindow, metric: Metric, count: int = 10, among: Iterable[bytes] | None = None
) -> list[KeyAccesses]:
    """Return the hottest items by their full keys; none if the table has no sort key."""
    totals: dict[bytes, HeatCounts] = {}
    for timed in window.slots:
        for key, sums in timed.slot.items:
            add_to(totals, key, sums)
    at = METRICS[metric]
    amounts = {key: cell[at] for key, cell in totals.items() if cell[at]}
    if among is not None:
        # A full key starts with its partition key, and partition keys have only a few lengths.
        partitions = frozenset(among)
        lengths = {len(partition) for partition in partitions}
        amounts = {
            key: value
            for key, value in amounts.items()
            if not partitions.isdisjoint(map(key.__getitem__, map(slice, repeat(0, len(lengths)), lengths)))
        }
    order = heaviest(amounts, count)
    errors = dict.fromkeys(order, 0.0)
    for timed in window.slots:
        slot = timed.slot
        if slot.items_floor[at]:
            named = {key for key, _ in slot.items} if slot.items_exact else frozenset[bytes]()
            for key in order:
                if key not in named:
                    errors[key] += slot.items_floor[at]
    return [KeyAccesses(key, amounts[key], errors[key], _sums(totals[key])) for key in order]


def _sums(cell: HeatCounts) -> HeatSums:
    return HeatSums(*cell)


def _by_operation(
    window: HeatWindow, cells: dict[int, HeatCounts], column: int
) -> tuple[tuple[str, float], ...]:
    operations = [(window.operations[number], cell[column]) for number, cell in cells.items() if cell[column]]
    return tuple(sorted(operations, key=lambda operation: (-operation[1], operation[0])))
