"""The applications' section of the benchmark: what wrk is told, and what is called reached."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps
from pathlib import Path

import pytest

from benchmarks.applications.desks import BASELINE, OURS
from benchmarks.applications.report import Reading, Run, draw, markdown
from benchmarks.applications.routes import ROUTES, script


def reading(
    desk: str, tickets: int, route: str, rate: float, p99_ms: float, paced: bool, errors: int = 0
) -> Reading:
    return Reading(desk, tickets, route, paced, 1, rate, 1.0, p99_ms, errors, 100.0, 0.0)


def run_of(*readings: Reading) -> Run:
    return Run("2030-01-01 00:00 UTC", "a machine", 150.0, "wrk", 1, 1, {}, [], list(readings))


def whole(rate: float = 2000.0, p99_ms: float = 3.0, large: float = 1.0, errors: int = 0) -> Run:
    """A run of both sizes and the baseline; `large` is what the large table is slower by."""
    return run_of(
        *(
            reading(desk, tickets, route.name, rate / slower, p99_ms * slower, paced, errors)
            for desk, tickets, slower in ((OURS, 100, 1.0), (OURS, 1000, large), (BASELINE, 100, 10.0))
            for route in ROUTES
            for paced in (False, True)
        )
    )


def verdicts(run: Run) -> dict[str, str]:
    rows = [
        line.split(" | ") for line in markdown(run).splitlines() if line.endswith((" yes |", " **no** |"))
    ]
    return {row[0].removeprefix("| "): row[-1].removesuffix(" |") for row in rows}


def test_a_run_that_reaches_everything_says_so() -> None:
    """Rates, waits and growth within the bars are met."""
    assert set(verdicts(whole()).values()) == {"yes"}


@pytest.mark.parametrize(
    ("run", "missed"),
    [
        (whole(rate=1400.0), "ticket by id, 1,000 tickets"),
        (whole(rate=300.0), "create a ticket, 1,000 tickets"),
        (whole(p99_ms=6.0), "ticket by id, 1,000 tickets, p99 at 2,000/s"),
        (whole(rate=4000.0, large=1.4), "dashboard, 1,000 tickets to 100: a request costs"),
        (whole(rate=4000.0, large=1.4), "dashboard, 1,000 tickets to 100: p99 paced"),
        (whole(errors=1), "ticket by id, 1,000 tickets"),
    ],
)
def test_a_bar_that_is_missed_is_told(run: Run, missed: str) -> None:
    """A rate too low, a wait too long, a large table too slow, an answer that was an error: none is called met."""
    assert verdicts(run)[missed] == "**no**"


def test_both_desks_stand_side_by_side(tmp_path: Path) -> None:
    """Where both have a size, the ratio is told; and the run is drawn."""
    run = whole()
    draw(run, tmp_path / "run.svg")

    assert "| ticket by id | 100 | 2,000 | 200 | 10.0× | 10.0× |" in markdown(run)
    assert (tmp_path / "run.svg").stat().st_size > 1000


def test_a_run_is_read_back_as_it_was_written() -> None:
    """Reporting again needs no measuring."""
    run = whole()

    assert Run.from_json(dumps(asdict(run))) == run


@pytest.mark.parametrize("paced", [False, True])
def test_a_script_names_what_is_asked(paced: bool) -> None:
    """Each route asks for tickets and customers that are there; a paced one rests in between."""
    told = {route.name: script(route, ["t-1"], ["c-1"], "m", 1, paced=paced) for route in ROUTES}

    assert all('{"t-1"}' in each and ("function delay()" in each) == paced for each in told.values())
    assert '"Idempotency-Key"] = mark .. "-" .. number' in told["create"]
