"""Files that appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tavola.folders import write_whole


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """What stood there is there until the new content is, and nothing else is left in the folder."""
    file = tmp_path / "plan.txt"
    write_whole(file, "first")
    write_whole(file, b"second")

    assert file.read_text() == "second"
    assert list(tmp_path.iterdir()) == [file]


def test_what_cannot_be_written_leaves_what_stood(tmp_path: Path) -> None:
    """A folder in the place of the file is refused, and no part stays behind."""
    (tmp_path / "plan").mkdir()

    with pytest.raises(OSError, match="plan"):
        write_whole(tmp_path / "plan", "text")

    assert [each.name for each in tmp_path.iterdir()] == ["plan"]
