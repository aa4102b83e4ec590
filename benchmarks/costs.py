"""Costs: what a way to serve takes of the rate, measured beside the same server without it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.results import Cost, Results
from benchmarks.workload import BY_NAME

HEADER: Final = ("operation", "mode", "requests/s", "of the first", "may cost", "µs a request", "met")


def title_of(cost: Cost) -> str:
    """What was asked: an operation of the workload, or a piece of work that says itself what it is."""
    found = BY_NAME.get(cost.operation)
    return cost.operation if found is None else found.title


def share(cost: Cost, base: Cost) -> float:
    """How much of the rate is left, the median of the rounds; what slowed a whole round slowed both sides."""
    return median(mine / its for mine, its in zip(cost.rates, base.rates, strict=True))


def is_met(cost: Cost, base: Cost) -> bool | None:
    """Whether it costs no more than it may; None where nothing was said, or answers failed."""
    if cost.share_max is None or cost.errors or base.errors:
        return None
    return share(cost, base) >= 1 - cost.share_max


def sections(costs: Sequence[Cost]) -> dict[str, list[list[str]]]:
    """The rows of each section: operations, and in each the modes in the order they were given."""
    told: dict[str, list[list[str]]] = {}
    for name in dict.fromkeys(cost.section for cost in costs):
        ours = [cost for cost in costs if cost.section == name]
        for operation in dict.fromkeys(cost.operation for cost in ours):
            found = [cost for cost in ours if cost.operation == operation]
            told.setdefault(name, []).extend(_row(cost, found[0]) for cost in found)
    return told


def _row(cost: Cost, base: Cost) -> list[str]:
    words = {True: "yes", False: "no", None: ""}
    return [
        title_of(cost),
        cost.mode,
        f"{cost.rate:,.0f}" + (f" ({cost.errors} errors)" if cost.errors else ""),
        f"{share(cost, base):.0%}",
        "" if cost.share_max is None else f"{cost.share_max:.0%}",
        f"{median(cost.cpu_us):.1f}",
        words[is_met(cost, base)],
    ]


def put_into(path: Path, costs: Sequence[Cost]) -> None:
    """Put sections that were measured alone in the place of their earlier ones in a file of results."""
    results = Results.from_json(path.read_text())
    anew = {cost.section for cost in costs}
    kept = tuple(cost for cost in results.costs if cost.section not in anew)
    told = {
        f"measured alone: {section}": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC" for section in sorted(anew)
    }
    replace(results, about={**results.about, **told}, costs=(*kept, *costs)).save(path)
