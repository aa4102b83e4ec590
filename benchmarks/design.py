"""Design: how long the tools that judge a design take; `python -m benchmarks.design` writes design.md."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from platform import machine, python_version
from time import process_time
from typing import TYPE_CHECKING

from tavola.clock import monotonic

if TYPE_CHECKING:
    from tavola.model.document import Design

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "simulate.md"
PLACE = Path(__file__).with_name("design.md")


@dataclass(frozen=True)
class Measurement:
    """One thing that is timed: a name, what it must stay below, and the work, which returns a word on what it did."""

    name: str
    seconds_max: float
    work: Callable[[], str]


def tickets() -> "Design":
    """Return the design of the guide's page: tickets with an index by status, 2,570 requests a second."""
    import re
    import sys
    from types import ModuleType

    from tavola.model.document import design_of

    source = re.findall(r"```python runnable\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    module = sys.modules["tickets"] = ModuleType("tickets")
    exec(compile(source, str(PAGE), "exec", dont_inherit=True), vars(module))  # the page is our own
    return design_of(module)


def _simulated(factor: float) -> str:
    """Do all that the command does: a day, and the search for shards."""
    from tavola.design.simulation import Scenario, simulate

    found = simulate(tickets(), Scenario(rate_factor=factor, quota=4e6))
    needed = [each.needed or "no number of" for place in found.places for each in place.shards]
    shards = "".join(f", {each} shards" for each in needed)
    return f"{found.requests / 1e9:.1f} G requests, {found.throttled:.1%} throttled{shards}"


def _solved(name: str) -> str:
    from importlib import import_module

    from tavola.design.solver import solve
    from tavola.model.document import design_of

    found = solve(design_of(import_module(f"tavola.apps.{name}.model")))
    assert found.before is not None
    many = sum(len(table.indexes) for table in found.design.tables)
    return f"{many} indexes, {found.month.total:.2f} a month; as it is, {found.before.total:.2f}"


MEASUREMENTS: list[Measurement] = [
    Measurement("simulate: a day of the guide's tickets, 2,570 requests/s", 60, lambda: _simulated(1)),
    Measurement("simulate: the same at 0.64 M requests/s", 60, lambda: _simulated(250)),
    Measurement("simulate: the same at 1.03 M requests/s", 60, lambda: _simulated(400)),
    Measurement("solve: the support desk", 10, lambda: _solved("support_desk")),
    Measurement("solve: the service desk", 10, lambda: _solved("service_desk")),
    Measurement("solve: the Terraform review", 10, lambda: _solved("terraform_review")),
]


def measured(measurements: Sequence[Measurement]) -> str:
    """Run all of them and return the page."""
    lines = [
        "# What judging a design takes",
        "",
        f"Python {python_version()}, {machine()}; one run each. Where seconds exceed those of the processor, others were at work beside it. `python -m benchmarks.design` makes this page.",
        "",
        "| What | Seconds | of the processor | At most | |",
        "|---|---:|---:|---:|---|",
    ]
    for each in measurements:
        began, began_cpu = monotonic(), process_time()
        told = each.work()
        took = f"{monotonic() - began:.1f} | {process_time() - began_cpu:.1f}"
        lines.append(f"| {each.name} | {took} | {each.seconds_max:g} | {told} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PLACE.write_text(measured(MEASUREMENTS), encoding="utf-8")
