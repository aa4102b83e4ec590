"""Describe in sentences with numbers what a heat map shows.

Each detector is a pure function over `Traffic`, tested with a planted pattern. They look for what people look for on such
maps: a bright line (a hot key), a diagonal (sequential keys), a bright column (a burst), fine noise (even traffic).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tavola.studio.monitoring.heat_traffic import Access, KeyHeat, Traffic

Kind = Literal[
    "throttled", "hot-key", "scan-heavy", "sequential", "moving-key", "burst", "skewed", "even", "few", "idle"
]

_HOT_SHARE = 0.2
_ALONE = 0.6  # of the traffic of a moment, on one key
_IN_ORDER = 0.9  # correlation of keys and times
_BRIEF = 0.25  # of the window, that a key of a sequence is asked for
_SEQUENCE_KEYS = 20
_SEQUENCE_SHARE = 0.2
_BURST_COLUMNS = 20
_BURST_SHARE = 0.5
_BURST_PART = 0.1
_SCAN_SHARE = 0.5
_EVEN = 3.0  # times the mean
_SKEWED_MOST = 500  # keys that are spoken of together
_ENOUGH = 100  # operations, below which a pattern is chance
_NEAR = 0.1  # of what a partition takes
_FEW = 5  # keys of which nobody says that they are even or not
_PREFIX = re.compile(r"[^0-9]*")


@dataclass(frozen=True, slots=True)
class HeatFinding:
    """One thing that a map shows."""

    kind: Kind
    access: Access | None
    sentence: str
    key: str | None = None
    share: float | None = None  # of the units
    rate: float | None = None  # units a second, at the busiest
    limit: int | None = None  # that a partition takes
    factor: float | None = None  # of that rate, at which the limit is reached


def diagnose(traffics: Sequence[Traffic]) -> tuple[HeatFinding, ...]:
    """Return what there is to say, the most urgent first; never nothing."""
    enough = any(not few(traffic) for traffic in traffics)
    found = [
        finding
        for traffic in traffics
        for detect in ((throttled,) if few(traffic) else DETECTORS)
        if traffic.total or traffic.throttled
        if (finding := detect(traffic)) is not None
    ]
    if not found:
        asked = [
            f"{traffic.total:,.1f} {traffic.units}".replace(".0 ", " ")
            for traffic in traffics
            if traffic.total
        ]
        if not asked:
            return (HeatFinding("idle", None, "Nothing was asked in this time."),)
        if not enough:
            told = f"{' and '.join(asked)} were consumed: too little traffic to say more."
            return (HeatFinding("few", None, told),)
        return (HeatFinding("even", None, f"{' and '.join(asked)} were consumed, and nothing stands out."),)
    loud = {traffic.access: traffic.total for traffic in traffics}
    found.sort(key=lambda each: (_URGENCY.index(each.kind), -loud.get(each.access or "reads", 0.0)))
    worse = {each.access for each in found if each.kind in ("hot-key", "moving-key", "skewed", "sequential")}
    return tuple(each for each in found if each.kind != "even" or each.access not in worse)


def few(traffic: Traffic) -> bool:
    """Whether there was so little that a pattern in it is chance: few operations, less than a unit a second, no key near its limit."""
    top = max((key.peak for key in traffic.keys), default=0.0)
    return traffic.operations < _ENOUGH and traffic.total < traffic.asked_s and top < _NEAR * traffic.limit


def throttled(traffic: Traffic) -> HeatFinding | None:
    """Requests were refused for want of throughput."""
    if not traffic.throttled:
        return None
    told = f"{traffic.throttled:,.0f} {_request(traffic)} throttled"
    if traffic.throttled_key is not None:
        told += f", {_percent(traffic.throttled_share)} of them on {traffic.throttled_key}"
    return HeatFinding("throttled", traffic.access, f"{told}.", traffic.throttled_key, limit=traffic.limit)


def hot_key(traffic: Traffic) -> HeatFinding | None:
    """One key takes much more than its share: a bright line."""
    top = _top(traffic)
    if top is None:
        return None
    share, count = top.total / traffic.total, traffic.count
    if count > 1 and share < max(_HOT_SHARE, min(0.75, 2.5 / count)):
        return None
    takes = f"{top.label} takes {_percent(share)} of {traffic.access}"
    told = f"{takes}: {_limited(traffic, top.peak)}"
    factor = traffic.limit / top.peak
    return HeatFinding("hot-key", traffic.access, told, top.label, share, top.peak, traffic.limit, factor)


def _limited(traffic: Traffic, peak: float) -> str:
    """Return how far a key is from what its partition takes."""
    units = traffic.units.removesuffix("s") if _rate(peak) == "1" else traffic.units
    busiest = f"{_rate(peak)} {units} a second at its busiest"
    if peak < traffic.limit:
        return f"{busiest}. Its partition throttles at {traffic.limit:,}, which is {_times(traffic.limit / peak)} that."
    cure = "shard the key, or cache what is read" if traffic.access == "reads" else "shard the key"
    return f"{busiest}, and its partition throttles at {traffic.limit:,}. One item cannot be split over partitions: {cure}."


def scan_heavy(traffic: Traffic) -> HeatFinding | None:
    """Most of what is read is read by scans."""
    share = traffic.scanned / traffic.total if traffic.total else 0.0
    if traffic.access != "reads" or share < _SCAN_SHARE:
        return None
    told = (
        f"Scans take {_percent(share)} of reads: an index or a key that answers the question would read less."
    )
    return HeatFinding("scan-heavy", "reads", told, share=share)


def sequential(traffic: Traffic) -> HeatFinding | None:
    """Keys come in order, each for a while: a diagonal."""
    groups: dict[str, list[KeyHeat]] = {}
    for key in traffic.keys:
        groups.setdefault(_PREFIX.match(key.label)[0], []).append(key)  # type: ignore[index]  # it may be empty
    for keys in sorted(groups.values(), key=lambda each: -sum(key.total for key in each)):
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
        told = (
            f"Keys come in order ({named}, {count} keys with {_percent(share)} of {traffic.access}): a diagonal. "
            "The hash spreads them over partitions, so none gets hot by it."
        )
        return HeatFinding("sequential", traffic.access, told, named, share)
    peak = max(key.peak for key in keys)
    factor = traffic.limit / peak
    told = (
        f"Traffic moves from key to key in order ({named}): at any time one key takes {_percent(traffic.leader)} of "
        f"{traffic.access}, {_limited(traffic, peak)}"
    )
    return HeatFinding("moving-key", traffic.access, told, named, traffic.leader, peak, traffic.limit, factor)


def burst(traffic: Traffic) -> HeatFinding | None:
    """Most of the traffic comes in a small part of the time: a bright column."""
    columns = traffic.columns
    if len(columns) < _BURST_COLUMNS:
        return None
    few = max(1, int(len(columns) * _BURST_PART))
    top = sorted(columns, reverse=True)[:few]
    share, mean = sum(top) / sum(columns), sum(columns) / len(columns)
    if share < _BURST_SHARE or top[0] < 4 * mean:
        return None
    told = (
        f"It comes in bursts: {few * traffic.column_s:,} s of {len(columns) * traffic.column_s:,} s have "
        f"{_percent(share)} of {traffic.access}, {_times(top[0] / mean)} the mean at the highest "
        f"({_rate(top[0])} {traffic.units} a second)."
    )
    return HeatFinding("burst", traffic.access, told, share=share, rate=top[0])


def skewed(traffic: Traffic) -> HeatFinding | None:
    """A few keys take much, and none of them most."""
    top, count = _top(traffic), traffic.count
    if top is None or count < 2 * _FEW or hot_key(traffic) is not None or even(traffic) is not None:
        return None
    few = min(_SKEWED_MOST, max(1, count // 100)) if count >= 500 else min(10, count // 4)
    share = sum(sorted((key.total for key in traffic.keys), reverse=True)[:few]) / traffic.total
    if share < 3 * few / count:
        return None
    told = (
        f"{few:,} of {count:,} keys take {_percent(share)} of {traffic.access}; the hottest ({top.label}) takes "
        f"{_percent(top.total / traffic.total)}."
    )
    return HeatFinding(
        "skewed", traffic.access, told, top.label, share, top.peak, traffic.limit, traffic.limit / top.peak
    )


def even(traffic: Traffic) -> HeatFinding | None:
    """No key takes much more than another: fine noise."""
    top, count = _top(traffic), traffic.count
    if top is None or count < _FEW or traffic.scanned > _SCAN_SHARE * traffic.total:
        return None
    mean = traffic.named / count
    # Chance alone lets the luckiest of many keys have some more than the mean.
    if top.total > max(_EVEN * mean, mean + 5 * mean**0.5 + 4):
        return None
    told = (
        f"Even: {count:,} keys share the {traffic.access}, and the busiest ({top.label}) takes "
        f"{_percent(top.total / traffic.total)}."
    )
    return HeatFinding(
        "even", traffic.access, told, top.label, top.total / traffic.total, top.peak, traffic.limit
    )


DETECTORS: tuple[Callable[[Traffic], HeatFinding | None], ...] = (
    throttled,
    hot_key,
    scan_heavy,
    sequential,
    burst,
    skewed,
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
    """Return how well times rise with their place, from -1 to 1, by ranks; equal times share one."""
    order = sorted(range(len(times)), key=lambda at: times[at])
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
        return "less than 0.1 %"
    return f"{value:.0f} %" if value >= 10 or value == 0 else f"{value:.1f} %"


def _times(factor: float) -> str:
    return f"{factor:,.0f} times" if factor >= 10 else f"{factor:.1f} times".replace(".0 ", " ")


def _rate(units: float) -> str:
    return f"{units:,.0f}" if units >= 10 else f"{units:.1f}".removesuffix(".0")


def _request(traffic: Traffic) -> str:
    return "request was" if traffic.throttled == 1 else "requests were"
