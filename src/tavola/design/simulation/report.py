"""Report: a simulation as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tavola.design.simulation.diagnosis import NEGLIGIBLE_SHARE
from tavola.design.simulation.rates import DAY_S
from tavola.design.simulation.results import Simulation
from tavola.design.simulation.waits import describe_retries

_WIDTH = 110
_KEYS = 3
_BEGAN = {
    "cold": "Starts cold, with the partitions of a new table; use --warm to start with partitions after days of this traffic.",
    "settled": "Starts with partitions after one day of this traffic; use --cold to start with those of a new table.",
}


def report_lines(simulation: Simulation) -> Iterator[str]:
    """Yield a simulation line by line: totals, patterns, places with their diagnosis, and assumptions."""
    hours = simulation.seconds / 3600
    span = f"{hours:g} h" if hours >= 1 else f"{simulation.seconds / 60:g} min"
    if simulation.seconds < 60 or simulation.seconds % 60:
        span = f"{simulation.seconds:,} s"
    mean = simulation.requests / simulation.seconds
    calls = sum(pattern.mean for pattern in simulation.patterns)
    yield (
        f"{span} at {_count(mean)} DynamoDB requests per second ({_count(calls)} calls), {_count(simulation.requests)} in total, seed {simulation.seed}: "
        f"{_share(simulation.throttled)} throttled."
    )
    if simulation.seconds < DAY_S and simulation.began != "warm":
        yield _BEGAN[simulation.began]
    yield ""
    rows = [("Access pattern", "Requests/s", "Peak/s", "Throttled", "p99 delay", "Failed", "Bottleneck")]
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
        for pattern in simulation.patterns
    ]
    yield from _table(rows)
    yield ""
    rows = [("Table or index", "", "Units/s", "Peak/s", "Throttled", "Partitions", "Splits")]
    for place in simulation.places:
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
    for place in simulation.places:
        if place.throttled <= NEGLIGIBLE_SHARE:
            continue
        yield ""
        yield from _wrap(f"{place.name}, {place.access}s: {place.diagnosis}")
        # If the capacity of the whole table or index is exceeded, all keys are throttled alike.
        keys = place.busiest if place.by_partitions > NEGLIGIBLE_SHARE else ()
        hot = [key for key in keys if key.throttled > NEGLIGIBLE_SHARE][:_KEYS]
        for key in hot:
            yield f"  {key.name}: {_count(key.mean)} units/s, {_count(key.peak)} at peak, {_share(key.throttled)} throttled"
    if simulation.assumptions:
        yield ""
        yield "Assumptions"
        for sentence in simulation.assumptions:
            yield from _wrap(sentence, "  ")
    if simulation.without_rates:
        yield ""
        yield from _wrap(f"Not simulated, no per_second: {', '.join(simulation.without_rates)}.")
    if simulation.zero_rates:
        yield ""
        yield from _wrap(f"Not simulated, rate of 0: {', '.join(simulation.zero_rates)}.")
    if simulation.throttled > 0:
        yield ""
        yield f"Delays assume {describe_retries()}."


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[position]) for row in rows) for position in range(len(rows[0]))]
    texts = {0, 1} if rows[0][1] == "" else {0}
    for row in rows:
        cells = [
            cell.ljust(width) if position in texts or position == len(row) - 1 else cell.rjust(width)
            for position, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _wrap(text: str, begin: str = "") -> Iterator[str]:
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
    return "< 0.01%" if value < 0.0001 else f"{value * 100:.2f}%"


def _wait(seconds: float) -> str:
    if seconds <= 0:
        return "0"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
