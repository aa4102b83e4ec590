"""Choose the keys of a window to look at one by one, and rank them.

A window may name hundreds of thousands of keys. Above a bound, the heaviest keys are taken and a sample of the others by their
hash. The sample is the same at all times, so it is fair.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nlargest
from itertools import compress, repeat

from tavola.studio.monitoring.heat_recorder import HeatWindow
from tavola.studio.monitoring.heat_slots import METRICS, SCALES, HeatCounts, HeatSums, Metric, add_to

KEYS_SHOWN = 10_000
_HEAVY = 500  # keys that are shown however many there are


@dataclass(frozen=True, slots=True)
class ShownKeys:
    """The keys of a window that are looked at one by one."""

    keys: frozenset[bytes]
    cut: bytes | None = None  # keys from here on are not looked at; None: all are
    heavy: frozenset[bytes] = frozenset()  # but for these

    def has(self, key: bytes) -> bool:
        """Tell whether a key is one of them; also one that came later."""
        return self.cut is None or key < self.cut or key in self.heavy


@dataclass(frozen=True, slots=True)
class KeyAccesses:
    """A key and what it had: at least `count`, and at most `error` more."""

    key: bytes
    count: float
    error: float
    sums: HeatSums
    by_operation: tuple[tuple[str, float], ...] = ()


def named_keys(window: HeatWindow) -> set[bytes]:
    """Return the partition keys that a window names."""
    names: set[bytes | None] = set()
    names.update(*(timed.slot.keys for timed in window.slots))
    names.discard(None)
    return names  # type: ignore[return-value]  # what has no key was taken out


def sample_keys(weights: dict[bytes, float], most: int = KEYS_SHOWN) -> ShownKeys:
    """Return those of many keys that are looked at: the heaviest, and a fair sample of the others."""
    if len(weights) <= most:
        return ShownKeys(frozenset(weights))
    heavy = frozenset(heaviest(weights, min(_HEAVY, most)))
    # A key begins with its hash, so what is below some bytes is a sample by chance.
    some = sorted(list(weights)[:: max(1, len(weights) // most)])
    cut = some[len(some) * most // len(weights)]
    return ShownKeys(heavy.union([key for key in weights if key < cut]), cut, heavy)


def key_weights(window: HeatWindow) -> dict[bytes, float]:
    """Return how heavy each named partition key is, all metrics together."""
    weights: dict[bytes, float] = {}
    known = weights.get
    for timed in window.slots:
        slot = timed.slot
        lanes = [slot.lane(metric) for metric in METRICS if slot.sums[METRICS[metric]]]
        for key, weight in zip(slot.keys, map(sum, zip(*lanes, strict=True)), strict=True):
            if key is not None:
                weights[key] = known(key, 0) + weight
    return weights


def heaviest(weights: dict[bytes, float], count: int) -> list[bytes]:
    """Return the keys of the greatest weight, the heaviest first."""
    return [key for _, key in nlargest(count, zip(weights.values(), weights, strict=True))]


def key_totals(window: HeatWindow, metric: Metric) -> dict[bytes, float]:
    """Return what each named key had of a metric."""
    totals: dict[bytes | None, int] = {}
    known = totals.get
    for timed in window.slots:
        slot = timed.slot
        if slot.sums[METRICS[metric]]:
            amounts = slot.lane(metric)
            for key, value in zip(compress(slot.keys, amounts), filter(None, amounts), strict=True):
                totals[key] = known(key, 0) + value
    totals.pop(None, None)
    scale = SCALES[metric]
    return {key: value * scale for key, value in totals.items() if key is not None}


def hottest_keys(
    window: HeatWindow, metric: Metric, count: int = 10, among: frozenset[bytes] | None = None
) -> list[KeyAccesses]:
    """Return the partition keys that had most, the heaviest first; only those among some, where they are given."""
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
                assert key is not None, "no key is not among the hottest"
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
    """Return the whole keys that had most; none where partition keys are whole."""
    totals: dict[bytes, HeatCounts] = {}
    for timed in window.slots:
        for key, sums in timed.slot.items:
            add_to(totals, key, sums)
    at = METRICS[metric]
    amounts = {key: cell[at] for key, cell in totals.items() if cell[at]}
    if among is not None:
        # A whole key begins with its partition's, and partitions are of few lengths.
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


def _by_operation(window: HeatWindow, cells: dict[int, HeatCounts], at: int) -> tuple[tuple[str, float], ...]:
    operations = [(window.operations[number], cell[at]) for number, cell in cells.items() if cell[at]]
    return tuple(sorted(operations, key=lambda each: (-each[1], each[0])))
