"""Describe in sentences with numbers what a heat map shows.

Each detector is a pure function over `Traffic`, tested with a planted pattern. They look for what people look for on such
maps: a bright line (a hot key), a diagonal (sequential keys), a bright column (a burst), fine noise (even traffic).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
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
    """The traffic of one key: in total, in its busiest second, and when."""

    label: str
    total: float
    peak: float  # units a second
    first_s: float
    last_s: float
    centre_s: float
    stands_for: float = 1.0  # number of keys it represents in a sample


@dataclass(frozen=True, slots=True)
class Traffic:
    """Reads or writes of a table or index in a window, by key in key order and by time."""

    access: Access
    window_s: int
    keys: tuple[KeyHeat, ...]  # all keys, or a fair sample
    columns: tuple[float, ...]  # units a second, from the first activity to the last
    column_s: int
    total: float
    count: int  # named keys
    named: float  # units of named keys
    scanned: float = 0.0  # units of scans
    leader: float = 0.0  # mean share of the hottest key at each moment
    throttled: float = 0.0  # requests
    throttled_key: str | None = None
    throttled_share: float = 0.0
    operations: float = 0.0  # in slots that have such traffic
    asked_s: int = 0  # length of the requested time range, idle time included

    @property
    def limit(self) -> int:
        """Maximum units per second of one partition."""
        return PARTITION_READS_PER_S if self.access == "reads" else PARTITION_WRITES_PER_S

    @property
    def units(self) -> str:
        """The name of the units."""
        return "read units" if self.access == "reads" else "write units"


def window_traffic(window: HeatWindow, keys: Keys, access: Access) -> Traffic:
    """Return the reads or writes of a window for the detectors."""
    at = METRICS[access]
    # With very many keys only a sample is followed over time; totals include all keys.
    all_had = key_totals(window, access) if len(named_keys(window)) > KEYS_SHOWN else None
    sample = sample_keys(all_had or {})
    cells: dict[bytes, list[float]] = {}  # total, peak, first, last, moment
    refused: dict[bytes | None, float] = {}
    taken: dict[int, float] = {}
    total = scanned = led = operations = 0.0
    for timed in window.slots:
        slot = timed.slot
        if slot.sums.throttles:
            _add_throttles(window, slot, access, refused)
        if not slot.sums[at]:
            continue
        total += slot.sums[at]
        operations += slot.sums.operations
        taken[slot.start] = taken.get(slot.start, 0.0) + slot.sums[at]
        units_by_key = _by_key(slot, access)
        if units_by_key.pop(None, 0.0):
            scanned += _scanned_units(window, slot, access)
        led += max(units_by_key.values(), default=0.0)
        if all_had is not None:
            units_by_key = {key: units for key, units in units_by_key.items() if key in sample.keys}
        _follow(cells, units_by_key, slot.start, timed.span_s)
    if all_had is None:
        count, named, times = len(cells), sum(cell[0] for cell in cells.values()), 1.0
    else:
        count, named = len(all_had), sum(all_had.values())
        heavy = sum(all_had.get(key, 0.0) for key in sample.heavy)
        sampled = sum(cell[0] for key, cell in cells.items() if key not in sample.heavy)
        times = (named - heavy) / sampled if sampled else 1.0
    throttles = sum(refused.values())
    refused.pop(None, None)
    worst = max(((amount, key) for key, amount in refused.items() if key is not None), default=None)
    span = max((timed.span_s for timed in window.slots), default=1)
    return Traffic(
        access=access,
        window_s=_active_s(window),
        keys=tuple(
            KeyHeat(keys.label(key), cell[0], cell[1], cell[2], cell[3], cell[4] / cell[0], stands_for)
            for key in sorted(cells, key=keys.order)
            for cell, stands_for in ((cells[key], 1.0 if key in sample.heavy else times),)
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
    """Return the units of each key in a slot, over all operations."""
    scale, amounts = SCALES[access], slot.column(access)
    had = [value * scale for value in amounts if value]
    named = list(compress(slot.keys, amounts))
    by_key = dict(zip(named, had, strict=True))
    if len(by_key) < len(named):
        by_key = dict.fromkeys(named, 0.0)
        for key, units in zip(named, had, strict=True):
            by_key[key] += units
    return by_key


def _follow(
    cells: dict[bytes, list[float]], units_by_key: dict[bytes | None, float], start: int, span_s: int
) -> None:
    """Add a slot to the totals of each key."""
    known = cells.get
    middle, last = start + (span_s - 1) / 2, start + span_s - 1
    for key, units in units_by_key.items():
        cell = known(key)  # type: ignore[arg-type]  # None was removed
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
    """Add up throttled requests by key; None if the key is unknown."""
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
    """Return the units per second of equal time spans, including idle ones."""
    if not taken:
        return ()
    first, last = min(taken) // span, max(taken) // span
    totals = [0.0] * (last - first + 1)
    for start, units in taken.items():
        totals[start // span - first] += units / span
    return tuple(totals)


Kind = Literal[
    "throttled", "hot-key", "scan-heavy", "sequential", "moving-key", "burst", "skewed", "even", "few", "idle"
]

_HOT_SHARE = 0.2
_ALONE = 0.6  # share of one key at a moment
_IN_ORDER = 0.9  # correlation of keys and times
_BRIEF = 0.25  # share of the window in which a key of a sequence is used
_SEQUENCE_KEYS = 20
_SEQUENCE_SHARE = 0.2
_BURST_COLUMNS = 20
_BURST_SHARE = 0.5
_BURST_PART = 0.1
_SCAN_SHARE = 0.5
_EVEN = 3.0  # times the mean
_SKEWED_MOST = 500  # keys reported together
_ENOUGH = 100  # operations: with fewer, a pattern is chance
_NEAR = 0.1  # of a partition's limit
_FEW = 5  # keys: with fewer, "even" has no meaning
_PREFIX = re.compile(r"[^0-9]*")


@dataclass(frozen=True, slots=True)
class HeatFinding:
    """One observation about a map."""

    kind: Kind
    access: Access | None
    sentence: str
    key: str | None = None
    share: float | None = None  # of the units
    rate: float | None = None  # peak units per second
    limit: int | None = None  # of a partition
    factor: float | None = None  # limit divided by rate


def diagnose(traffics: Sequence[Traffic]) -> tuple[HeatFinding, ...]:
    """Return the findings, the most urgent first; never empty."""
    enough = any(not is_sparse(traffic) for traffic in traffics)
    findings = [
        finding
        for traffic in traffics
        for detect in ((detect_throttling,) if is_sparse(traffic) else DETECTORS)
        if traffic.total or traffic.throttled
        if (finding := detect(traffic)) is not None
    ]
    if not findings:
        amounts = [
            f"{traffic.total:,.1f} {traffic.units}".replace(".0 ", " ")
            for traffic in traffics
            if traffic.total
        ]
        if not amounts:
            return (HeatFinding("idle", None, "No requests in this period."),)
        if not enough:
            sentence = f"{' and '.join(amounts)} were consumed, too little for a diagnosis."
            return (HeatFinding("few", None, sentence),)
        return (HeatFinding("even", None, f"{' and '.join(amounts)} were consumed, and nothing stands out."),)
    totals = {traffic.access: traffic.total for traffic in traffics}
    findings.sort(
        key=lambda finding: (_URGENCY.index(finding.kind), -totals.get(finding.access or "reads", 0.0))
    )
    worse = {
        finding.access
        for finding in findings
        if finding.kind in ("hot-key", "moving-key", "skewed", "sequential")
    }
    return tuple(finding for finding in findings if finding.kind != "even" or finding.access not in worse)


def is_sparse(traffic: Traffic) -> bool:
    """Return whether there is too little traffic for a diagnosis, and no key near its limit."""
    top = max((key.peak for key in traffic.keys), default=0.0)
    return traffic.operations < _ENOUGH and traffic.total < traffic.asked_s and top < _NEAR * traffic.limit


def detect_throttling(traffic: Traffic) -> HeatFinding | None:
    """Find throttled requests."""
    if not traffic.throttled:
        return None
    sentence = f"{traffic.throttled:,.0f} {_request(traffic)} throttled"
    if traffic.throttled_key is not None:
        sentence += f", {_percent(traffic.throttled_share)} of them on {traffic.throttled_key}"
    return HeatFinding(
        "throttled", traffic.access, f"{sentence}.", traffic.throttled_key, limit=traffic.limit
    )


def hot_key(traffic: Traffic) -> HeatFinding | None:
    """Find a key with much more than its share: a bright line."""
    top = _top(traffic)
    if top is None:
        return None
    share, count = top.total / traffic.total, traffic.count
    if count > 1 and share < max(_HOT_SHARE, min(0.75, 2.5 / count)):
        return None
    receives = f"{top.label} receives {_percent(share)} of {traffic.access}"
    sentence = f"{receives}: {_compare_with_limit(traffic, top.peak)}"
    factor = traffic.limit / top.peak
    return HeatFinding("hot-key", traffic.access, sentence, top.label, share, top.peak, traffic.limit, factor)


def _compare_with_limit(traffic: Traffic, peak: float) -> str:
    """Return a key's peak and its distance from the partition limit, as sentences."""
    units = traffic.units.removesuffix("s") if _rate(peak) == "1" else traffic.units
    busiest = f"{_rate(peak)} {units} per second at its peak"
    if peak < traffic.limit:
        return f"{busiest}. The partition limit is {traffic.limit:,}, which is {_times(traffic.limit / peak)} as much."
    remedy = "shard the key or cache reads" if traffic.access == "reads" else "shard the key"
    return f"{busiest}, above the partition limit of {traffic.limit:,}. One key cannot be split: {remedy}."


def scan_heavy(traffic: Traffic) -> HeatFinding | None:
    """Find out whether most reads are scans."""
    share = traffic.scanned / traffic.total if traffic.total else 0.0
    if traffic.access != "reads" or share < _SCAN_SHARE:
        return None
    sentence = (
        f"Scans are {_percent(share)} of reads: a query by key, or on a suitable index, would read less."
    )
    return HeatFinding("scan-heavy", "reads", sentence, share=share)


def sequential(traffic: Traffic) -> HeatFinding | None:
    """Find keys that are used in order, each for a while: a diagonal."""
    groups: dict[str, list[KeyHeat]] = {}
    for key in traffic.keys:
        groups.setdefault(_PREFIX.match(key.label)[0], []).append(key)  # type: ignore[index]  # it may be empty
    for keys in sorted(groups.values(), key=lambda group: -sum(key.total for key in group)):
        total = sum(key.total * key.stands_for for key in keys)
        if len(keys) < _SEQUENCE_KEYS or total < _SEQUENCE_SHARE * traffic.total:
            continue
        course = _correlation([key.centre_s for key in keys])
        lasting = sum(key.total * key.stands_for * (key.last_s - key.first_s) for key in keys)
        brief = lasting / total / max(1, traffic.window_s)
        span = max(key.last_s for key in keys) - min(key.first_s for key in keys)
        if abs(course) < _IN_ORDER or brief > _BRIEF or span < 3:
            continue
        return _sequence(traffic, keys, total, rising=course > 0)
    return None


def _sequence(traffic: Traffic, keys: Sequence[KeyHeat], total: float, *, rising: bool) -> HeatFinding:
    first, last = (keys[0], keys[-1]) if rising else (keys[-1], keys[0])
    share = min(1.0, total / traffic.total)
    named = f"{first.label} … {last.label}"
    if traffic.leader < _ALONE:
        count = f"{len(keys):,}"
        if len(traffic.keys) < traffic.count:
            count = f"about {round(sum(key.stands_for for key in keys), -2):,.0f}"
        sentence = (
            f"Keys are used in order ({named}, {count} keys with {_percent(share)} of {traffic.access}): a diagonal. "
            "Hashing spreads them over partitions, so none becomes hot."
        )
        return HeatFinding("sequential", traffic.access, sentence, named, share)
    peak = max(key.peak for key in keys)
    factor = traffic.limit / peak
    sentence = (
        f"Traffic moves from key to key in order ({named}): at any time one key receives {_percent(traffic.leader)} of "
        f"{traffic.access}, {_compare_with_limit(traffic, peak)}"
    )
    return HeatFinding(
        "moving-key", traffic.access, sentence, named, traffic.leader, peak, traffic.limit, factor
    )


def burst(traffic: Traffic) -> HeatFinding | None:
    """Find traffic that is concentrated in a small part of the time: a bright column."""
    columns = traffic.columns
    if len(columns) < _BURST_COLUMNS:
        return None
    busiest = max(1, int(len(columns) * _BURST_PART))
    top = sorted(columns, reverse=True)[:busiest]
    share, mean = sum(top) / sum(columns), sum(columns) / len(columns)
    if share < _BURST_SHARE or top[0] < 4 * mean:
        return None
    sentence = (
        f"Traffic comes in bursts: {busiest * traffic.column_s:,} s of {len(columns) * traffic.column_s:,} s have "
        f"{_percent(share)} of {traffic.access}, with a peak of {_times(top[0] / mean)} the mean "
        f"({_rate(top[0])} {traffic.units} per second)."
    )
    return HeatFinding("burst", traffic.access, sentence, share=share, rate=top[0])


def detect_skew(traffic: Traffic) -> HeatFinding | None:
    """Find a small group of keys with much of the traffic."""
    top, count = _top(traffic), traffic.count
    if top is None or count < 2 * _FEW or hot_key(traffic) is not None or even(traffic) is not None:
        return None
    few = min(_SKEWED_MOST, max(1, count // 100)) if count >= 500 else min(10, count // 4)
    share = sum(sorted((key.total for key in traffic.keys), reverse=True)[:few]) / traffic.total
    if share < 3 * few / count:
        return None
    sentence = (
        f"{few:,} of {count:,} keys receive {_percent(share)} of {traffic.access}; the hottest ({top.label}) receives "
        f"{_percent(top.total / traffic.total)}."
    )
    return HeatFinding(
        "skewed",
        traffic.access,
        sentence,
        top.label,
        share,
        top.peak,
        traffic.limit,
        traffic.limit / top.peak,
    )


def even(traffic: Traffic) -> HeatFinding | None:
    """Find even traffic, in which no key receives much more than another: fine noise."""
    top, count = _top(traffic), traffic.count
    if top is None or count < _FEW or traffic.scanned > _SCAN_SHARE * traffic.total:
        return None
    mean = traffic.named / count
    # By chance, the busiest of many keys always receives somewhat more than the mean.
    if top.total > max(_EVEN * mean, mean + 5 * mean**0.5 + 4):
        return None
    sentence = (
        f"{count:,} keys share the {traffic.access} evenly; the busiest ({top.label}) receives "
        f"{_percent(top.total / traffic.total)}."
    )
    return HeatFinding(
        "even", traffic.access, sentence, top.label, top.total / traffic.total, top.peak, traffic.limit
    )


DETECTORS: tuple[Callable[[Traffic], HeatFinding | None], ...] = (
    detect_throttling,
    hot_key,
    scan_heavy,
    sequential,
    burst,
    detect_skew,
    even,
)
_URGENCY: tuple[Kind, ...] = (
    "throttled",
    "hot-key",
    "moving-key",
    "scan-heavy",
    "burst",
    "skewed",
    "sequential",
    "even",
    "few",
    "idle",
)


def _top(traffic: Traffic) -> KeyHeat | None:
    return max(traffic.keys, key=lambda key: (key.total, key.label), default=None)


def _correlation(times: Sequence[float]) -> float:
    """Return the rank correlation of times with their position, from -1 to 1; equal times share a rank."""
    order = sorted(range(len(times)), key=lambda position: times[position])
    ranks = [0.0] * len(times)
    at = 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and times[order[end + 1]] == times[order[at]]:
            end += 1
        for place in order[at : end + 1]:
            ranks[place] = (at + end) / 2
        at = end + 1
    mean = (len(times) - 1) / 2
    places = sum((place - mean) ** 2 for place in range(len(times)))
    spread = sum((rank - mean) ** 2 for rank in ranks)
    if not places or not spread:
        return 0.0
    return float(
        sum((place - mean) * (rank - mean) for place, rank in enumerate(ranks)) / (places * spread) ** 0.5
    )


def _percent(share: float) -> str:
    value = share * 100
    if 0 < value < 0.05:
        return "less than 0.1%"
    return f"{value:.0f}%" if value >= 10 or value == 0 else f"{value:.1f}%"


def _times(factor: float) -> str:
    return f"{factor:,.0f} times" if factor >= 10 else f"{factor:.1f} times".replace(".0 ", " ")


def _rate(units: float) -> str:
    return f"{units:,.0f}" if units >= 10 else f"{units:.1f}".removesuffix(".0")


def _request(traffic: Traffic) -> str:
    return "request was" if traffic.throttled == 1 else "requests were"
