"""Crash tests, each shortly; `make crash` runs them for long. Each has planted faults that it must find."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.durability.campaign import fill, refuse

ROOT = Path(__file__).parents[2]


def _run(section: str, trials: int, seed: int = 1000, plant: str | None = None) -> dict[str, Any]:
    """Run a section in a process of its own, where the failing disk comes before the first store."""
    command = [sys.executable, "-m", "tests.durability.campaign", "--json", "--seconds", "35"]
    command += ["--only", section, "--trials", str(trials), "--seed", str(seed)]
    command += ["--plant", plant] if plant else []
    environment = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=55, check=False
    )
    assert done.stdout, done.stderr[-2000:]
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.slow
def test_a_power_cut_loses_nothing_acknowledged() -> None:
    """I1 I2 I4 I5 I7: after a power cut the store is in the state of the last answer, or of the step after it."""
    result = _run("power", trials=800)

    assert result["trials"] >= 100  # however busy the machine
    assert result["examples"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "invariant"),
    [
        ("sync-off", "I1"),
        ("early-answer", "I1"),
        ("torn-group", "I2"),
        ("stale-index", "I4"),
        ("no-record", "I5"),
        ("no-token", "I7"),
        ("no-number", "I10"),
    ],
)
def test_a_power_cut_finds_a_planted_fault(plant: str, invariant: str) -> None:
    """Without syncs, or with an answer too early, a group in parts, a forgotten index, record, token or WAL number."""
    result = _run("power", trials=150, plant=plant)

    assert result["failed"]
    assert any(invariant in example for example in result["examples"]), result["examples"]


@pytest.mark.slow
def test_a_failed_call_of_the_disk_is_reported_and_undone() -> None:
    """I1 I2 I9: whichever call fails, nothing acknowledged is lost, nothing is half done, reads go on."""
    result = _run("nth", trials=100_000, seed=7)

    assert result["trials"] >= 100
    assert result["examples"] == []


@pytest.mark.slow
def test_a_failed_call_finds_a_planted_fault() -> None:
    """A store that answers a failed commit as done is found."""
    assert _run("nth", trials=150, seed=9, plant="blind-commit")["failed"]


@pytest.mark.slow
def test_a_killed_writer_loses_nothing_acknowledged() -> None:
    """I1 I2 I4 I7: kill -9 at any moment leaves every acknowledged transaction, whole and once."""
    result = _run("kills", trials=10)

    assert result["trials"] >= 2
    assert result["examples"] == []


@pytest.mark.slow
def test_a_killed_writer_finds_a_planted_fault() -> None:
    """A writer that answers before it has committed is found."""
    assert _run("kills", trials=4, plant="early-answer")["failed"]


@pytest.mark.slow
def test_a_killed_server_loses_nothing_answered() -> None:
    """I1 I2 I4 I7: what the server answered over HTTP is there after kill -9."""
    result = _run("server", trials=6)

    assert result["trials"] >= 2
    assert result["examples"] == []


@pytest.mark.parametrize(
    "kind",
    [
        "file-flip",
        "file-flips",
        "file-zero-sector",
        "file-random-sector",
        "file-zero-page",
        "file-swap-pages",
        "file-repeat-page",
        "file-truncate",
        "large-flip",
        "large-flips",
        "large-zero-sector",
        "large-random-sector",
        "large-zero-page",
        "large-truncate",
        "log-flip",
        "log-zero-sector",
        "log-random-sector",
        "log-truncate",
    ],
)
def test_a_damaged_file_is_reported_and_never_served(kind: str) -> None:
    """I10: what is read of a damaged store is an error or the truth; of a damaged log, an earlier truth."""
    result = _run("damage", trials=60, plant=kind)

    assert result["trials"] >= 20
    assert result["examples"] == []


def test_damage_finds_a_planted_fault() -> None:
    """Without page checksums, damage is served and the trials see it."""
    assert _run("damage", trials=100, plant="no-checksums")["failed"]


def test_concurrent_transactions_are_strictly_serializable() -> None:
    """I3: what threads saw can be explained by one order that also agrees with real time."""
    result = _run("concurrency", trials=12)

    assert result["tally"]["transactions"] > 1000
    assert result["examples"] == []


@pytest.mark.slow
def test_transactions_over_http_are_strictly_serializable() -> None:
    """I3 over HTTP: also when a server commits the writes of several clients together."""
    result = _run("served", trials=2)

    assert result["trials"] >= 1
    assert result["examples"] == []


@pytest.mark.parametrize("plant", ["torn", "stale"])
def test_the_checker_finds_a_planted_fault(plant: str) -> None:
    """Transactions done action by action, and reads that are a moment old, are found."""
    assert _run("concurrency", trials=4, plant=plant)["failed"]


@pytest.mark.parametrize("kind", ["tmpfs", "limit"])
def test_a_full_disk_is_reported_and_recovered_from(kind: str, tmp_path: Path) -> None:
    """I1 I2 I17: a full disk refuses cleanly, keeps what was acknowledged, and takes writes again with room."""
    wrong = fill(kind, tmp_path)

    if wrong is None:
        pytest.skip("no small file system can be mounted here")
    assert wrong == []


def test_a_refused_write_gives_its_reason_and_passes(tmp_path: Path) -> None:
    """I17: a quota, a limit, a read-only mount and a lost permission pass like a full disk; a failed sync never does."""
    assert refuse(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tmpfs", "limit", "deleted"])
def test_a_server_says_why_it_refuses_writes_and_recovers(kind: str, tmp_path: Path) -> None:
    """I15 I17 over HTTP: each refusal and /readyz give the reason, the log says it once, and writing resumes without a restart."""
    wrong = fill(kind, tmp_path, "full_served")

    if wrong is None:
        pytest.skip("no small file system can be mounted here")
    assert wrong == []
