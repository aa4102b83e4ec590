"""Report: a simulation as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tavola.design.simulation.diagnosis import NOTICED
from tavola.design.simulation.rates import DAY_S
from tavola.design.simulation.results import Simulation
from tavola.design.simulation.waits import describe_retries

_WIDTH = 110
_KEYS = 3
_BEGAN = {
    "cold": "It begins cold, with the partitions of a new table; --warm begins with those that days of it leave.",
    "settled": "It begins with the partitions that the day before has left; --cold begins with those of a new table.",
}


def report_lines(found: Simulation) -> Iterator[str]:
    """Give a simulation line by line: the sum, patterns, places with their diagnosis, and what was assumed."""
    hours = found.seconds / 3600
    span = f"{hours:g} h" if hours >= 1 else f"{found.seconds / 60:g} min"
    if found.seconds < 60 or found.seconds % 60:
        span = f"{found.seconds:,} s"
    mean = found.requests / found.seconds
    yield (
        f"{span} of {_count(mean)} requests a second ({_count(found.requests)} in all), seed {found.seed}: "
        f"{_share(found.throttled)} throttled."
    )
    if found.seconds < DAY_S and found.began != "warm":
        yield _BEGAN[found.began]
    yield ""
    rows = [("pattern", "asked/s", "peak/s", "throttled", "p99 wait", "given up", "held up by")]
    rows += [
        (
            pattern.name,
            _count(pattern.mean),
            _count(pattern.peak),
            _share(pattern.throttled),
            _wait(pattern.wait_p99_s),
            _share(pattern.given_up),
            pattern.held_up_by or "",
        )
        for pattern in found.patterns
    ]
    yield from _table(rows)
    yield ""
    rows = [("place", "", "units/s", "peak/s", "throttled", "partitions", "splits")]
    for place in found.places:
        begun, ended = place.partitions
        rows.append(
            (
                place.name,
                f"{place.access}s",
                _count(place.mean),
                _count(place.peak),
                _share(place.throttled),
                f"{begun}" if begun == ended else f"{begun} to {ended}",
                f"{place.splits or ''}",
            )
        )
    yield from _table(rows)
    for place in found.places:
        if place.throttled <= NOTICED:
            continue
        yield ""
        yield from _wrapped(f"{place.name}, {place.access}s: {place.diagnosis}")
        # Where a place is short of units as a whole, all its keys are refused alike.
        told = place.busiest if place.by_partitions > NOTICED else ()
        hot = [key for key in told if key.throttled > NOTICED][:_KEYS]
        for key in hot:
            yield f"  {key.name}: {_count(key.mean)} units/s, {_count(key.peak)} at its busiest, {_share(key.throttled)} throttled"
    if found.assumptions:
        yield ""
        yield "Assumed, where the design does not say:"
        for sentence in found.assumptions:
            yield from _wrapped(sentence, "  ")
    if found.without_rates:
        yield ""
        yield from _wrapped(f"Left out, without per_second: {', '.join(found.without_rates)}.")
    if found.zero_rates:
        yield ""
        yield from _wrapped(f"Left out, at a rate of 0: {', '.join(found.zero_rates)}.")
    if found.throttled > 0:
        yield ""
        yield f"Waits are of {describe_retries()}."


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    texts = {0, 1} if rows[0][1] == "" else {0}
    for row in rows:
        cells = [
            cell.ljust(width) if at in texts or at == len(row) - 1 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _wrapped(text: str, begin: str = "") -> Iterator[str]:
    line = begin
    for word in text.split():
        if len(line) + 1 + len(word) > _WIDTH and line.strip():
            yield line
            line = f"{begin}  "
        line = f"{line} {word}" if line.strip() else f"{line}{word}"
    yield line


def _count(value: float) -> str:
    if value >= 1e9:
        return f"{value / 1e9:,.1f} G"
    if value >= 1e6:
        return f"{value / 1e6:,.1f} M"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _share(value: float) -> str:
    if value <= 0:
        return "0"
    return "< 0.01 %" if value < 0.0001 else f"{value * 100:.2f} %"


def _wait(seconds: float) -> str:
    if seconds <= 0:
        return "0"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
