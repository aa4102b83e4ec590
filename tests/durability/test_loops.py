"""Tasks that share a sync, killed while they write."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.durability.loops import kill_once, stored


def test_a_killed_loop_loses_nothing_answered(tmp_path: Path) -> None:
    """I1: what a connection on a loop answered, alone or in batches, beside a server or by it, is there after kill -9."""
    random = Random(5)
    result: set[str] = set()
    for _ in range(3):
        fresh = kill_once(tmp_path / "store.db", random)
        assert len(fresh) >= 20
        result |= fresh

        assert result - stored(tmp_path / "store.db") == set()


def test_a_killed_loop_finds_a_planted_fault(tmp_path: Path) -> None:
    """A connection that answers before the sync is found."""
    result = kill_once(tmp_path / "store.db", Random(5), blind=True)

    assert result - stored(tmp_path / "store.db")
