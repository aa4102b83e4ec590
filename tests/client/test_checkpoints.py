"""Checkpoints in a file: a saved checkpoint is durable before it counts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tavola import CheckpointRefused
from tavola.client.checkpoints import CheckpointFile


def test_load_returns_the_last_saved_checkpoint(tmp_path: Path) -> None:
    """A checkpoint replaces the one before; after clear, load returns None."""
    file = CheckpointFile(tmp_path / "place.json")
    assert file.load() is None

    file.save({"at": 1})
    file.save({"at": 2})

    assert file.load() == {"at": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["place.json"]
    file.clear()
    assert file.load() is None


def test_the_file_is_on_the_disk_before_it_takes_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes are synced, then the file is renamed, then the folder is synced; else a power cut loses the place."""
    steps: list[Any] = []
    sync, replace = os.fsync, Path.replace

    def synced(handle: int) -> None:
        steps.append(Path(f"/proc/self/fd/{handle}").resolve().name)
        sync(handle)

    def replaced(self: Path, target: Any) -> Any:
        steps.append("replace")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)

    CheckpointFile(tmp_path / "place.json").save({"at": 1})

    assert len(steps) == 3
    assert steps[1] == "replace"
    if Path("/proc/self/fd").exists():
        assert steps == [".place.json.new", "replace", tmp_path.name]


def test_a_file_that_is_not_a_checkpoint_is_refused(tmp_path: Path) -> None:
    """The error names the file."""
    for text in ("", "[1]"):
        (tmp_path / "place.json").write_text(text)

        with pytest.raises(CheckpointRefused, match=r"place\.json"):
            CheckpointFile(tmp_path / "place.json").load()
