"""The report of the applications' section: a table for people, the bars, and a plot."""

import json
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.applications.desks import BASELINE, OURS, TITLES
from benchmarks.applications.routes import CONNECTIONS, PAUSE_MS, ROUTES, Route
from benchmarks.report import markdown_table, number

READ_RATE_MIN: Final = 1_500.0
READ_P99_MS_MAX: Final = 5.0
CREATE_RATE_MIN: Final = 400.0
SCALE_MAX: Final = 1.3  # ten times the data to once


@dataclass(frozen=True, slots=True)
class Reading:
    """One timed run of one route."""

    desk: str
    tickets: int
    route: str
    paced: bool
    round: int
    rate: float
    p50_ms: float
    p99_ms: float
    errors: int
    cpu_us: float  # of the desk and its database, for each request
    other_cores: float  # what neither they nor nobody took: the load itself among it


@dataclass(frozen=True, slots=True)
class Run:
    """What a run found."""

    date: str
    machine: str
    sync_us: float
    load: str
    rounds: int
    seconds: int
    fills: dict[str, float]
    failures: list[str]
    readings: list[Reading] = field(default_factory=list)

    @classmethod
    def from_json(cls, text: str) -> "Run":
        """Return a run as it was written."""
        told: dict[str, Any] = json.loads(text)
        told["readings"] = [Reading(**each) for each in told["readings"]]
        return cls(**told)

    def middle(self, desk: str, tickets: int, route: str, what: str, *, paced: bool) -> float | None:
        """Return the median of the rounds; None where there is none, or an answer was an error."""
        found = [
            each
            for each in self.readings
            if (each.desk, each.tickets, each.route, each.paced) == (desk, tickets, route, paced)
        ]
        if not found or any(each.errors for each in found):
            return None
        return float(median(getattr(each, what) for each in found))

    def sizes(self, desk: str) -> list[int]:
        """Return the numbers of tickets that a desk was measured with."""
        return sorted({each.tickets for each in self.readings if each.desk == desk})


def markdown(run: Run) -> str:
    """Return the whole report."""
    parts = [
        "# The support desk under load",
        "Written by `python -m benchmarks.applications`; every round is in `applications.json`.",
        "\n".join(
            (
                f"- date: {run.date}",
                f"- machine: {run.machine}; fdatasync after 4 KB takes {run.sync_us:.0f} µs",
                (
                    f"- load: {run.load}, {CONNECTIONS} connections, {run.rounds} rounds of {run.seconds} s, the median counts; "
                    f"*paced*: a connection rests about {PAUSE_MS} ms between an answer and its next request"
                ),
                *(
                    f"- filled: {name} tickets in {took:.0f} s"
                    for name, took in run.fills.items()
                    if took >= 1
                ),
                *(f"- not measured: {failure}" for failure in run.failures),
            )
        ),
        "![answers per second of both desks](applications.svg)",
        "## The bars",
        markdown_table(("what", "to reach", "measured", "met"), _bars(run)),
        "## Every route",
        markdown_table(
            (
                "route",
                "desk",
                "tickets",
                "answers/s",
                "p50 ms",
                "p99 ms",
                "paced /s",
                "paced p99 ms",
                "processor µs",
            ),
            _rows(run),
        ),
        "## Beside the desk that is written by hand",
        markdown_table(
            ("route", "tickets", "ours /s", "baseline /s", "ours / baseline", "p99 paced, baseline / ours"),
            _ratios(run),
        ),
        _METHOD,
    ]
    return "\n\n".join(parts) + "\n"


_METHOD: Final = """\
Ours is `tavola app support-desk` on a file: the engine, the client, the application and its web server are one process, every
write is on the disk before it is answered, and the projector of the dashboard's numbers follows the stream meanwhile. The baseline is
`benchmarks/applications/baseline.py`: the document's own keys and calls in plain boto3, a FastAPI application in one process, DynamoDB
Local with its data in memory in another, a thread for its counters. Create is one idempotent, transactional request for a ticket, its first
event and its outcome; each has a key of its own. Tickets and customers are drawn at random from all over the month. The file was read once
before, so that the system has it in memory."""


def _bars(run: Run) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    sizes = run.sizes(OURS)
    if not sizes:
        return rows
    largest = sizes[-1]
    for route in ROUTES:
        rate = run.middle(OURS, largest, route.name, "rate", paced=False)
        least = CREATE_RATE_MIN if route.writes else READ_RATE_MIN
        rows.append(
            (
                f"{route.title}, {largest:,} tickets",
                f"≥ {least:,.0f}/s",
                f"{number(rate)}/s",
                _met(rate is not None and rate >= least),
            )
        )
        if not route.writes:
            paced = run.middle(OURS, largest, route.name, "p99_ms", paced=True)
            offered = run.middle(OURS, largest, route.name, "rate", paced=True)
            good = (
                paced is not None
                and offered is not None
                and paced < READ_P99_MS_MAX
                and offered >= READ_RATE_MIN
            )
            rows.append(
                (
                    f"{route.title}, {largest:,} tickets, p99 at {number(offered)}/s",
                    f"< {READ_P99_MS_MAX:g} ms at ≥ {READ_RATE_MIN:,.0f}/s",
                    f"{number(paced)} ms",
                    _met(good),
                )
            )
            full = run.middle(OURS, largest, route.name, "p99_ms", paced=False)
            rows.append(
                (
                    f"{route.title}, {largest:,} tickets, p99 as fast as it answers",
                    f"< {READ_P99_MS_MAX:g} ms",
                    f"{number(full)} ms",
                    _met(full is not None and full < READ_P99_MS_MAX),
                )
            )
    for small, large in pairwise(sizes):
        for route in ROUTES:
            for what, paced, words in (("rate", False, "a request costs"), ("p99_ms", True, "p99 paced")):
                before = run.middle(OURS, small, route.name, what, paced=paced)
                after = run.middle(OURS, large, route.name, what, paced=paced)
                grown = (
                    None if not before or not after else before / after if what == "rate" else after / before
                )
                rows.append(
                    (
                        f"{route.title}, {large:,} tickets to {small:,}: {words}",
                        f"≤ {SCALE_MAX:g}×",
                        "–" if grown is None else f"{grown:.2f}×",
                        _met(grown is not None and grown <= SCALE_MAX),
                    )
                )
    return rows


def _met(met: bool) -> str:
    return "yes" if met else "**no**"


def _rows(run: Run) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for route in ROUTES:
        for desk in (OURS, BASELINE):
            for tickets in run.sizes(desk):
                cells = [
                    run.middle(desk, tickets, route.name, what, paced=paced)
                    for what, paced in (
                        ("rate", False), ("p50_ms", False), ("p99_ms", False), ("rate", True), ("p99_ms", True), ("cpu_us", False),
                    )
                ]  # fmt: skip
                rows.append((route.title, TITLES[desk], f"{tickets:,}", *map(number, cells)))
    return rows


def _ratios(run: Run) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for tickets in sorted(set(run.sizes(OURS)) & set(run.sizes(BASELINE))):
        for route in ROUTES:
            mine = run.middle(OURS, tickets, route.name, "rate", paced=False)
            theirs = run.middle(BASELINE, tickets, route.name, "rate", paced=False)
            mine_ms = run.middle(OURS, tickets, route.name, "p99_ms", paced=True)
            theirs_ms = run.middle(BASELINE, tickets, route.name, "p99_ms", paced=True)
            rows.append(
                (
                    route.title, f"{tickets:,}", number(mine), number(theirs),
                    f"{mine / theirs:.1f}×" if mine and theirs else "–",
                    f"{theirs_ms / mine_ms:.1f}×" if mine_ms and theirs_ms else "–",
                )
            )  # fmt: skip
    return rows


def draw(run: Run, path: Path) -> None:
    """Write the plot: answers per second of every route, both desks, on one logarithmic scale."""
    shown = [(desk, tickets) for desk in (OURS, BASELINE) for tickets in run.sizes(desk)]
    if not shown:
        return
    figure = Figure(figsize=(10, 1.2 + 0.34 * len(ROUTES) * len(shown)), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    axis.set_title("Support desk, answers per second, 16 connections", loc="left", fontsize=11)
    axis.set_xscale("log")
    axis.grid(axis="x", color="#dddddd", zorder=0)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    axis.tick_params(axis="y", length=0)
    places, labels = [], []
    row = 0.0
    for route in ROUTES:
        for desk, tickets in shown:
            _bar(axis, run, route, desk, tickets, row)
            places.append(row)
            labels.append(f"{route.title} · {TITLES[desk]}, {tickets:,}")
            row += 1
        row += 0.5
    axis.set_yticks(places, labels, fontsize=8)
    axis.set_ylim(row - 0.5, -0.8)
    # No date and no random ids in the file: the same numbers give the same bytes.
    with rc_context({"svg.hashsalt": "tavola"}):
        figure.savefig(path, dpi=130, metadata={"Date": None} if path.suffix == ".svg" else None)


def _bar(axis: Any, run: Run, route: Route, desk: str, tickets: int, row: float) -> None:
    rate = run.middle(desk, tickets, route.name, "rate", paced=False)
    if rate is None:
        return
    axis.barh(row, rate, height=0.8, color="#c0392b" if desk == OURS else "#5d6d7e", zorder=2)
    axis.annotate(
        f"{rate:,.0f}", (rate, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8
    )
