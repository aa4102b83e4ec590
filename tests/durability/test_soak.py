"""A short form of the soak; `make soak` runs it for long."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.durability.soak import CLIENTS, SERVER, SoakSample, leaks, run, write_report

SHORT_MARGIN_MB = 64.0  # caches fill during the whole short form
LEAK = f"""
import threading
def leak(stop=threading.Event(), kept=[]):
    while not stop.wait(0.05):
        kept.append((b"x" * 2_000_000, open("/dev/null")))
threading.Thread(target=leak, daemon=True).start()
{SERVER}"""
EVEN = [SoakSample(float(at), 100.0, 20, 16.0, 50.0, 1000, 1.0, 5.0) for at in range(30)]


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_server_under_load_does_not_grow(tmp_path: Path) -> None:
    """I25 over HTTP: under a mixed load, memory, open files and the WAL stay bounded, and no request fails."""
    samples, failures = run(tmp_path, 12, seed=1, interval_s=0.5)
    write_report(samples, [], tmp_path)

    assert failures == []
    assert sum(sample.requests for sample in samples) > 100 * CLIENTS
    assert leaks(samples, SHORT_MARGIN_MB) == []
    assert (tmp_path / "soak.svg").stat().st_size


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_server_that_leaks_is_found(tmp_path: Path) -> None:
    """A planted fault: a server that keeps memory and files."""
    samples, failures = run(tmp_path, 6, seed=1, interval_s=0.25, program=LEAK)

    assert failures == []
    assert [fault.split(" grew")[0] for fault in leaks(samples, SHORT_MARGIN_MB)] == ["memory", "open files"]


@pytest.mark.parametrize(
    ("rate", "fault"),
    [
        ({}, []),
        ({"rss_mb": 0.5}, []),  # within the margin
        ({"rss_mb": 2.0}, ["memory grew from 119 to 151 MB"]),
        ({"open_files": 1}, ["open files grew from 33 to 49"]),
        ({"wal_mb": 1.0}, ["the WAL grew to 45 MB"]),
    ],
)
def test_growth_is_judged_after_the_warm_up(rate: dict[str, Any], fault: list[str]) -> None:
    """Each series that grows by so much a sample is found, and the first fifth does not count for memory and files."""
    samples = [
        replace(even, **{name: getattr(even, name) + each * number for name, each in rate.items()})
        for number, even in enumerate(EVEN)
    ]

    assert leaks(samples) == fault


def test_a_few_samples_prove_nothing() -> None:
    """A soak that ends at once is a failure."""
    assert leaks(EVEN[:3]) == ["3 samples are too few"]
