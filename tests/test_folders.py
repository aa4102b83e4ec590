"""Files that appear whole or not at all."""

from __future__ import annotations

from pathlib import Path
from stat import S_IMODE

import pytest

from tavola.folders import write_whole


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """What stood there is there until the new content is, and nothing else is left in the folder."""
    file = tmp_path / "plan.txt"
    write_whole(file, "first")
    write_whole(file, b"second")

    assert file.read_text() == "second"
    assert list(tmp_path.iterdir()) == [file]


def test_a_private_file_is_for_its_owner_only(tmp_path: Path) -> None:
    """A file that exists keeps its mode, whatever it is."""
    file = tmp_path / "users.json"
    write_whole(file, "first", private=True)
    assert S_IMODE(file.stat().st_mode) == 0o600

    for mode in (0o640, 0o600):
        file.chmod(mode)
        write_whole(file, "second", private=mode == 0o640)
        assert S_IMODE(file.stat().st_mode) == mode


def test_what_cannot_be_written_leaves_what_stood(tmp_path: Path) -> None:
    """A folder in the place of the file is refused, and no part stays behind."""
    (tmp_path / "plan").mkdir()

    with pytest.raises(OSError, match="plan"):
        write_whole(tmp_path / "plan", "text")

    assert [each.name for each in tmp_path.iterdir()] == ["plan"]
