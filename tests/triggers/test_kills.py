"""A consumer that is killed again and again loses nothing, and an idempotent one counts nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.triggers.kills import campaign

pytestmark = pytest.mark.slow  # processes that are killed: `make slow` runs it

SEED = 20261116


def test_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """I5 over HTTP: under eight writers, over rolling shards, through six kills."""
    run, faults = campaign(tmp_path, SEED, kills=6, writes=60)

    assert faults == []
    assert run.kills == 6
    assert run.shards > 4, "no shard has rolled, so lineages were not tried"
    assert sum(run.written.values()) == 8 * 60


@pytest.mark.parametrize(
    ("plant", "kills", "words"), [("checkpoint", 1, "counted"), ("children", 0, "order")]
)
def test_a_planted_fault_is_found(tmp_path: Path, plant: str, kills: int, words: str) -> None:
    """A checkpoint before the handler's success, and a child before its parent, are seen."""
    _, faults = campaign(tmp_path, SEED, kills=kills, writes=50, plant=plant)

    assert any(words in fault for fault in faults), faults
