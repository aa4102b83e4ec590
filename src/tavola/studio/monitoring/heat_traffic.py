"""The reads or writes of a window by key and time, as input for the pattern detectors."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from typing import Literal

from tavola.limits import PARTITION_READS_PER_S, PARTITION_WRITES_PER_S
from tavola.studio.monitoring.heat_keys import KEYS_SHOWN, key_totals, named_keys, sample_keys
from tavola.studio.monitoring.heat_recorder import HeatWindow
from tavola.studio.monitoring.heat_slots import METRICS, SCALES, HeatSlot
from tavola.studio.monitoring.key_order import Keys

Access = Literal["reads", "writes"]

_READING = frozenset({"BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems"})
_SCANNING = frozenset({"BatchExecuteStatement", "ExecuteStatement", "Scan"})  # where they name no key


@dataclass(frozen=True, slots=True)
class KeyHeat:
    """What one key had: in all, in its busiest second, and when."""

    label: str
    total: float
    peak: float  # units a second
    first_s: float
    last_s: float
    centre_s: float
    stands_for: float = 1.0  # keys: more than itself, if it is one of a sample


@dataclass(frozen=True, slots=True)
class Traffic:
    """Reads or writes of a place in a window, by key in key order and by time."""

    access: Access
    window_s: int
    keys: tuple[KeyHeat, ...]  # all, or a fair sample of very many
    columns: tuple[float, ...]  # units a second, from the first activity to the last
    column_s: int
    total: float
    count: int  # keys that have a name
    named: float  # what they had
    scanned: float = 0.0  # of the total, by scans
    leader: float = 0.0  # the share that the first of each moment has
    throttled: float = 0.0  # requests
    throttled_key: str | None = None
    throttled_share: float = 0.0
    operations: float = 0.0  # in the moments that have some of it
    asked_s: int = 0  # the time that is looked at, with what is quiet of it

    @property
    def limit(self) -> int:
        """Units a second that one partition takes."""
        return PARTITION_READS_PER_S if self.access == "reads" else PARTITION_WRITES_PER_S

    @property
    def units(self) -> str:
        """What is counted."""
        return "read units" if self.access == "reads" else "write units"


def window_traffic(window: HeatWindow, keys: Keys, access: Access) -> Traffic:
    """Return the reads or writes of a window, as the detectors look at them."""
    at = METRICS[access]
    # Of very many keys only some are followed; what all of them had is added up without their times.
    all_had = key_totals(window, access) if len(named_keys(window)) > KEYS_SHOWN else None
    shown = sample_keys(all_had or {})
    cells: dict[bytes, list[float]] = {}  # total, peak, first, last, moment
    refused: dict[bytes | None, float] = {}
    taken: dict[int, float] = {}
    total = scanned = led = operations = 0.0
    for stretch in window.slots:
        slot = stretch.slot
        if slot.sums.throttles:
            _add_throttles(window, slot, access, refused)
        if not slot.sums[at]:
            continue
        total += slot.sums[at]
        operations += slot.sums.operations
        taken[slot.start] = taken.get(slot.start, 0.0) + slot.sums[at]
        here = _by_key(slot, access)
        if here.pop(None, 0.0):
            scanned += _scanned_units(window, slot, access)
        led += max(here.values(), default=0.0)
        if all_had is not None:
            here = {key: units for key, units in here.items() if key in shown.keys}
        _follow(cells, here, slot.start, stretch.span_s)
    if all_had is None:
        count, named, times = len(cells), sum(cell[0] for cell in cells.values()), 1.0
    else:
        count, named = len(all_had), sum(all_had.values())
        heavy = sum(all_had.get(key, 0.0) for key in shown.heavy)
        sampled = sum(cell[0] for key, cell in cells.items() if key not in shown.heavy)
        times = (named - heavy) / sampled if sampled else 1.0
    throttles = sum(refused.values())
    refused.pop(None, None)
    worst = max(((amount, key) for key, amount in refused.items() if key is not None), default=None)
    span = max((stretch.span_s for stretch in window.slots), default=1)
    return Traffic(
        access=access,
        window_s=_active_s(window),
        keys=tuple(
            KeyHeat(keys.label(key), cell[0], cell[1], cell[2], cell[3], cell[4] / cell[0], stands_for)
            for key in sorted(cells, key=keys.order)
            for cell, stands_for in ((cells[key], 1.0 if key in shown.heavy else times),)
        ),
        columns=_columns(taken, span),
        column_s=span,
        total=total,
        scanned=scanned,
        leader=led / total if total else 0.0,
        throttled=throttles,
        throttled_key=None if worst is None else keys.label(worst[1]),
        throttled_share=0.0 if worst is None else worst[0] / throttles,
        count=count,
        named=named,
        operations=operations,
        asked_s=window.to_s - window.from_s,
    )


def _by_key(slot: HeatSlot, access: Access) -> dict[bytes | None, float]:
    """Return what each key had in a slot, by all operations together."""
    scale, lane = SCALES[access], slot.lane(access)
    had = [value * scale for value in lane if value]
    named = list(compress(slot.keys, lane))
    found = dict(zip(named, had, strict=True))
    if len(found) < len(named):
        found = dict.fromkeys(named, 0.0)
        for key, units in zip(named, had, strict=True):
            found[key] += units
    return found


def _follow(
    cells: dict[bytes, list[float]], here: dict[bytes | None, float], start: int, span_s: int
) -> None:
    """Add a slot to what is known of each key."""
    known = cells.get
    middle, last = start + (span_s - 1) / 2, start + span_s - 1
    for key, units in here.items():
        cell = known(key)  # type: ignore[arg-type]  # what has no key was taken out
        if cell is None:
            cells[key] = [units, units / span_s, start, last, units * middle]  # type: ignore[index]
        else:
            cell[0] += units
            if units > cell[1] * span_s:
                cell[1] = units / span_s
            cell[3] = last
            cell[4] += units * middle


def _scanned_units(window: HeatWindow, slot: HeatSlot, access: Access) -> float:
    return sum(
        reads if access == "reads" else writes
        for key, operation, _, reads, writes, _ in slot.entries()
        if key is None and window.operations[operation] in _SCANNING
    )


def _add_throttles(
    window: HeatWindow, slot: HeatSlot, access: Access, refused: dict[bytes | None, float]
) -> None:
    """Add up refused requests by key; None for those of no key that is known."""
    for key, operation, _, _, _, throttles in slot.entries():
        if throttles and (window.operations[operation] in _READING) == (access == "reads"):
            refused[key] = refused.get(key, 0.0) + throttles
    for operation, sums in slot.rest.items():
        if (window.operations[operation] in _READING) == (access == "reads"):
            refused[None] = refused.get(None, 0.0) + sums.throttles


def _active_s(window: HeatWindow) -> int:
    """Return the time from the first activity to the last."""
    if not window.slots:
        return 0
    last = window.slots[-1]
    return last.slot.start + last.span_s - window.slots[0].slot.start


def _columns(taken: dict[int, float], span: int) -> tuple[float, ...]:
    """Return the units a second of equal stretches, those with nothing in them too."""
    if not taken:
        return ()
    first, last = min(taken) // span, max(taken) // span
    found = [0.0] * (last - first + 1)
    for start, units in taken.items():
        found[start // span - first] += units / span
    return tuple(found)
