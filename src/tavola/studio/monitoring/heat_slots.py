"""Accesses per key in one span of time: the heaviest keys by name, the rest as a sum.

A slot is immutable. Several merge into one longer slot with the same sums, which is how the past takes less memory. Units are
stored as whole numbers of half units, the smallest there is, so sums are exact.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from itertools import chain
from typing import Literal, NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)

Metric = Literal["operations", "reads", "writes", "throttles"]

HeatCounts = list[float]
"""Operations, read units, write units and throttled requests."""

KEYS_KEPT = 1000  # named keys per second
KEYS_KEPT_LATER = 400  # named keys in a longer slot
ITEMS_KEPT = 24  # full keys
_HALF = (0.5).__mul__


class HeatSums(NamedTuple):
    """Totals of the four metrics."""

    operations: float = 0.0
    reads: float = 0.0
    writes: float = 0.0
    throttles: float = 0.0

    def __add__(self, other: Iterable[float]) -> HeatSums:  # type: ignore[override]  # adds, does not concatenate
        return HeatSums(*(mine + its for mine, its in zip(self, other, strict=True)))


_NOTHING = HeatSums()
METRICS: Mapping[Metric, int] = {"operations": 0, "reads": 1, "writes": 2, "throttles": 3}
"""The position of each metric in `HeatSums`."""
SCALES: Mapping[Metric, float] = {"operations": 1.0, "reads": 0.5, "writes": 0.5, "throttles": 1.0}
"""The value of one unit in a slot's columns."""

Entry = tuple[bytes | None, int, float, float, float, float]
"""A partition key (None for a scan), the number of an operation, and its four metrics."""

SlotCells = dict[int, dict[bytes | None, HeatCounts]]
"""Counts by operation number and partition key."""
Items = tuple[tuple[bytes, HeatSums], ...]
"""Full keys, the heaviest first."""


class HeatSlot:
    """The accesses of a table or index in one span of time."""

    __slots__ = (
        "_columns",
        "_ops",
        "exact",
        "floor",
        "items",
        "items_exact",
        "items_floor",
        "keys",
        "rest",
        "start",
        "sums",
    )

    def __init__(
        self,
        start: int,
        key_cells: SlotCells,
        rest: Mapping[int, HeatCounts],
        floor: HeatSums,
        items: Items,
        items_floor: HeatSums,
        *,
        exact: bool,
        items_exact: bool,
    ) -> None:
        self.start = start
        self.keys: tuple[bytes | None, ...] = tuple(chain.from_iterable(key_cells.values()))
        """The named keys, once for each operation."""
        self._ops = b"".join([bytes((operation,)) * len(cells) for operation, cells in key_cells.items()])
        cells = [cell for by_key in key_cells.values() for cell in by_key.values()]
        self._columns = (
            array("I", [int(cell[0]) for cell in cells]),
            array("I", [int(cell[1] * 2.0 + 0.5) for cell in cells]),
            array("I", [int(cell[2] * 2.0 + 0.5) for cell in cells]),
            array("I", [int(cell[3]) for cell in cells]),
        )
        self.rest = {operation: HeatSums(*cell) for operation, cell in rest.items()}
        operations, reads, writes, throttles = map(sum, self._columns)
        self.sums = sum(self.rest.values(), HeatSums(operations, reads / 2, writes / 2, throttles))
        """Totals over all keys."""
        self.floor = floor  # upper bound for a key that is not named
        self.items = items
        self.items_floor = items_floor  # the same for a full key
        self.exact = exact  # the counts of named keys are complete
        self.items_exact = items_exact

    def __len__(self) -> int:
        return len(self.keys)

    def entries(self) -> Iterator[Entry]:
        """Return the counts by key and operation."""
        counts, reads, writes, throttles = self._columns
        return zip(
            self.keys, self._ops, counts, map(_HALF, reads), map(_HALF, writes), throttles, strict=True
        )

    @property
    def has_keyless(self) -> bool:
        """Whether there are accesses without a single key, such as scans."""
        return None in self.keys

    def column(self, metric: Metric) -> array[int]:
        """Return a metric for each of `keys` as integers; multiply by its scale."""
        return self._columns[METRICS[metric]]

    def rest_of(self, metric: Metric) -> float:
        """Return the total of a metric over keys that are not named."""
        at = METRICS[metric]
        return sum((sums[at] for sums in self.rest.values()), 0.0)


def build_slot(
    start: int,
    gathered: SlotCells,
    items: Items = (),
    items_floor: HeatSums = _NOTHING,
    keys_max: int = KEYS_KEPT,
) -> HeatSlot:
    """Return a slot of collected counts; the lightest keys go into the rest."""
    return _slot(start, gathered, {}, _NOTHING, items, items_floor, keys_max, items_exact=True)


def merge_slots(start: int, slots: Iterable[HeatSlot], keys_max: int = KEYS_KEPT_LATER) -> HeatSlot:
    """Return one slot for several; totals and the counts of named keys are preserved."""
    gathered: SlotCells = {}
    items: dict[bytes | None, HeatCounts] = {}
    rest: dict[int, HeatCounts] = {}
    floor = items_floor = _NOTHING
    for slot in slots:
        for key, operation, count, reads, writes, throttles in slot.entries():
            by_key = gathered.get(operation)
            if by_key is None:
                by_key = gathered[operation] = {}
            cell = by_key.get(key)
            if cell is None:
                by_key[key] = [count, reads, writes, throttles]
            else:
                cell[0] += count
                cell[1] += reads
                cell[2] += writes
                cell[3] += throttles
        for item, item_sums in slot.items:
            add_to(items, item, item_sums)
        for operation, item_sums in slot.rest.items():
            add_to(rest, operation, item_sums)
        floor += slot.floor
        items_floor += slot.items_floor
    exact = not any(items_floor)
    heaviest, dropped = heaviest_items((items,))
    return _slot(start, gathered, rest, floor, heaviest, items_floor + dropped, keys_max, items_exact=exact)


def without_names(slot: HeatSlot) -> HeatSlot:
    """Return a slot with all counts in the rest."""
    merged = merge_slots(slot.start, (slot,), 0)
    merged.items_floor += _most(sums for _, sums in merged.items)
    merged.items = ()
    return merged


def add_to(into: dict[Key, HeatCounts], place: Key, sums: Sequence[float]) -> None:
    """Add to the counts of a key."""
    cell = into.get(place)
    if cell is None:
        into[place] = list(sums)
    else:
        cell[0] += sums[0]
        cell[1] += sums[1]
        cell[2] += sums[2]
        cell[3] += sums[3]


def heaviest_items(gathered: Collection[Mapping[bytes | None, HeatCounts]]) -> tuple[Items, HeatSums]:
    """Return the heaviest full keys, and an upper bound for the others."""
    weights: dict[bytes, float] = {}
    for by_key in gathered:
        for key, cell in by_key.items():
            if key is not None:
                weights[key] = weights.get(key, 0.0) + sum(cell)
    top = [key for _, key in nlargest(ITEMS_KEPT, zip(weights.values(), weights, strict=True))]
    heaviest = tuple(
        (key, sum((HeatSums(*cells[key]) for cells in gathered if key in cells), _NOTHING)) for key in top
    )
    if len(top) == len(weights):
        return heaviest, _NOTHING
    named = {None, *top}
    return heaviest, sum(
        (_most(cell for key, cell in cells.items() if key not in named) for cells in gathered), _NOTHING
    )


def _slot(
    start: int,
    gathered: SlotCells,
    rest: dict[int, HeatCounts],
    floor: HeatSums,
    items: Items,
    items_floor: HeatSums,
    keys_max: int,
    *,
    items_exact: bool,
) -> HeatSlot:
    exact = not any(floor)
    if sum(map(len, gathered.values())) > keys_max:
        chosen = _heaviest(gathered, keys_max)
        cells: SlotCells = {}
        for operation, by_key in gathered.items():
            cells[operation] = {key: cell for key, cell in by_key.items() if key in chosen}
            gone = [cell for key, cell in by_key.items() if key not in chosen]
            if gone:
                add_to(rest, operation, [sum(amounts) for amounts in zip(*gone, strict=True)])
                floor += _most(gone)  # an upper bound: the maxima may be of different keys
        gathered = cells
    return HeatSlot(start, gathered, rest, floor, items, items_floor, exact=exact, items_exact=items_exact)


def _most(cells: Iterable[Sequence[float]]) -> HeatSums:
    """Return the maximum of each metric."""
    return HeatSums(*(max(amounts) for amounts in zip(_NOTHING, *cells, strict=True)))


def _heaviest(gathered: SlotCells, entries_max: int) -> set[bytes | None]:
    """Return the heaviest keys that fit with all their operations; None is always included.

    Ties are broken by the hash that keys start with, so the kept keys are a random sample.
    """
    weights: dict[bytes, float] = {}
    for by_key in gathered.values():
        for key, cell in by_key.items():
            if key is not None:
                weights[key] = weights.get(key, 0.0) + sum(cell)
    chosen: set[bytes | None] = {None}
    is_merged = len(gathered) > 1
    entries_left = entries_max
    for key in sorted(sorted(weights), key=weights.__getitem__, reverse=True)[:entries_max]:
        entries_left -= sum(key in by_key for by_key in gathered.values()) if is_merged else 1
        if entries_left < 0:
            break
        chosen.add(key)
    return chosen
