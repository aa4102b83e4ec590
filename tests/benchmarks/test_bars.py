"""Bars: ratios and verdicts, from samples made by hand."""

import pytest

from benchmarks.bars import compare, cost_ratio, verdicts
from benchmarks.results import Footprint, Results, Sample, cells


def sample(engine: str, rate: float, **other: object) -> Sample:
    """One second of `rate` requests."""
    fields: dict[str, object] = {
        "stage": "peers",
        "engine": engine,
        "storage": "memory",
        "items": 10_000,
        "operation": "get",
        "connections": 16,
        "round": 0,
        "requests": int(rate),
        "seconds": 1.0,
        "errors": 0,
        "cpu_us": 10.0,
        "p50_ms": 1.0,
        "p99_ms": 2.0,
        "foreign_cores": 0.1,
    }
    return Sample(**(fields | other))  # type: ignore[arg-type]  # fields are named by hand


def test_the_ratio_is_of_medians_to_the_best_peer() -> None:
    """Ours is compared with the fastest peer, each by its median round."""
    results = Results(
        samples=(
            *(sample("tavola", rate, round=number) for number, rate in enumerate((900, 1000, 5000))),
            *(sample("dynalite", rate, round=number) for number, rate in enumerate((200, 250, 100))),
            sample("dynoxide", 150),
        )
    )

    comparison = compare(cells(results), "memory", 10_000, "get", 16)

    assert comparison.best_engine == "dynalite"
    assert comparison.ratio == pytest.approx(5.0)
    assert comparison.ratio_low == pytest.approx(900 / 250)


def test_a_peer_with_errors_is_no_best_peer() -> None:
    """A rate that was reached by refusing requests is void."""
    results = Results(
        samples=(sample("tavola", 1000), sample("dynalite", 9000, errors=1), sample("moto", 10))
    )

    comparison = compare(cells(results), "memory", 10_000, "get", 16)

    assert comparison.best_engine == "moto"


def test_our_own_errors_leave_no_ratio() -> None:
    """The same holds for ours: no ratio, and the bar counts as not measured."""
    results = Results(samples=(sample("tavola", 1000, errors=3), sample("moto", 10)))

    assert compare(cells(results), "memory", 10_000, "get", 16).ratio is None
    assert verdicts(results)[0].met is None


def test_bars_are_judged_at_the_smallest_table_and_most_connections() -> None:
    """A second size or one connection more or less does not change the verdict."""
    results = Results(
        samples=(
            sample("tavola", 399),
            sample("moto", 100),
            sample("tavola", 4000, items=100_000),
            sample("moto", 100, items=100_000),
            sample("tavola", 4000, connections=1),
            sample("moto", 100, connections=1),
        )
    )

    verdict = verdicts(results)[0]

    assert verdict.met is False
    assert verdict.measured.startswith("4.0× moto")


def test_growth_is_the_rate_lost() -> None:
    """A million items at half the rate cost twice as much; only the scale stage is asked."""
    results = Results(
        samples=(
            sample("tavola", 1000, stage="scale"),
            sample("tavola", 500, stage="scale", items=1_000_000),
            sample("tavola", 1, items=1_000_000),
        )
    )

    found = cost_ratio(cells(results), "memory", "get", 16)

    assert found is not None
    assert found[2] == pytest.approx(2.0)
    assert [verdict.met for verdict in verdicts(results) if verdict.subject == "GetItem, memory"][-1] is False


def test_start_and_memory_are_judged_by_medians() -> None:
    """One slow start among three does not count; the peers' starts are not judged."""
    footprint = Footprint("peers", "tavola", "memory", 10_000, (0.2, 0.1, 9.0), 59.0, 0.0, 0.0, 0.0, 0.0)
    other = Footprint("peers", "moto", "memory", 10_000, (3.0,), 500.0, 0.0, 0.0, 0.0, 0.0)

    found = verdicts(Results(footprints=(footprint, other), empty_engine_ms=2.5))

    assert [(verdict.measured, verdict.met) for verdict in found] == [
        ("0.20 s", True),
        ("59 MB", True),
        ("2.50 ms", False),
    ]
