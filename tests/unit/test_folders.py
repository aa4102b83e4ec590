"""Folders: a new name is on the disk when the call returns."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tavola.folders import sync_folder


def test_the_folder_itself_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is synced is the folder, and its handle is closed again."""
    synced: list[int] = []

    def sync(handle: int) -> None:
        assert stat.S_ISDIR(os.fstat(handle).st_mode)
        synced.append(handle)

    monkeypatch.setattr(os, "fsync", sync)
    sync_folder(tmp_path)

    (handle,) = synced
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handle)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    """A folder that cannot be opened is an error, never silence."""
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "none")
