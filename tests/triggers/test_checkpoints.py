"""Checkpoints outlive the process, whatever ends it."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from tavola.client.checkpoints import CheckpointRefused
from tavola.triggers import (
    CheckpointLog,
    FileInUse,
    MemoryCheckpoint,
    Position,
    TriggerCheckpoint,
    TriggerFileRefused,
    WindowPosition,
)

ARN = "arn:table/a/stream/1"
LATER = "arn:table/a/stream/2"
POSITION = Position(
    after="21", factor=2, queues={1: "23"}, windows={0: WindowPosition(60, 120, '{"n":1}')}, since_s=None
)


def test_positions_are_found_again(tmp_path: Path) -> None:
    """What was saved is what is loaded, by stream and shard; the last word counts, and None forgets."""
    path = tmp_path / "checkpoints"
    with CheckpointLog(path) as kept:
        assert TriggerCheckpoint(kept).load(ARN) == {}
        TriggerCheckpoint(kept).save(
            ARN, {"a": Position(after="1"), "b": Position(since_s=1.5), "c": Position(finished=True)}
        )
        TriggerCheckpoint(kept).save(LATER, {"a": Position(after="7")})
        TriggerCheckpoint(kept).save(ARN, {"a": POSITION, "c": None})
        assert TriggerCheckpoint(kept).load(ARN) == {"a": POSITION, "b": Position(since_s=1.5)}

    with CheckpointLog(path) as again:
        assert TriggerCheckpoint(again).load(ARN) == {"a": POSITION, "b": Position(since_s=1.5)}
        assert TriggerCheckpoint(again).load(LATER) == {"a": Position(after="7")}


def test_memory_keeps_them_as_the_file_does() -> None:
    """Both stores meet one port."""
    kept = MemoryCheckpoint()
    TriggerCheckpoint(kept).save(ARN, {"a": POSITION, "b": Position()})
    TriggerCheckpoint(kept).save(ARN, {"b": None})

    assert TriggerCheckpoint(kept).load(ARN) == {"a": POSITION}
    assert TriggerCheckpoint(kept).load(LATER) == {}


def test_a_file_cut_anywhere_opens_and_is_no_further_than_it_was(tmp_path: Path) -> None:
    """A process killed within a write leaves a beginning of it; every such file is read as some state before."""
    path = tmp_path / "checkpoints"
    with CheckpointLog(path) as kept:
        for number in range(5):
            TriggerCheckpoint(kept).save(ARN, {"a": Position(after=str(number))})
    whole = path.read_bytes()
    found = []
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        with CheckpointLog(path) as torn:
            found.append(int(TriggerCheckpoint(torn).load(ARN).get("a", Position(after="-1")).after or "-1"))
            TriggerCheckpoint(torn).save(ARN, {"a": Position(after="99")})
        with CheckpointLog(path) as mended:
            assert TriggerCheckpoint(mended).load(ARN)["a"].after == "99"

    assert found == sorted(found)
    assert set(found) == {-1, 0, 1, 2, 3, 4}


def test_a_damaged_line_is_passed_over_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A line that does not fit its checksum is not believed; the others are, and nothing is lost by it."""
    path = tmp_path / "checkpoints"
    with CheckpointLog(path) as kept:
        TriggerCheckpoint(kept).save(ARN, {"a": Position(after="1")})
        TriggerCheckpoint(kept).save(ARN, {"a": Position(after="2")})
        TriggerCheckpoint(kept).save(ARN, {"b": Position(after="3")})
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"2"', b'"9"')
    path.write_bytes(b"".join(lines))

    with caplog.at_level(logging.WARNING), CheckpointLog(path) as again:
        assert TriggerCheckpoint(again).load(ARN) == {"a": Position(after="1"), "b": Position(after="3")}
    assert "damaged in line 3" in caplog.text


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    """A file that is not a checkpoint file is refused and not overwritten."""
    for text in (b"precious\nnotes\n", b"precious"):
        path = tmp_path / "notes.txt"
        path.write_bytes(text)

        with pytest.raises(TriggerFileRefused, match="not a checkpoint file"):
            CheckpointLog(path)
        assert path.read_bytes() == text


def test_one_trigger_owns_a_file(tmp_path: Path) -> None:
    """Two triggers on one file would take turns in going back."""
    path = tmp_path / "checkpoints"
    with CheckpointLog(path), pytest.raises(FileInUse, match="used by another running trigger"):
        CheckpointLog(path)

    CheckpointLog(path).close()


def test_a_long_log_is_written_anew(tmp_path: Path) -> None:
    """The file stays small, stays locked, and holds the same."""
    path = tmp_path / "checkpoints"
    with CheckpointLog(path, rewrite_bytes=2000) as kept:
        for number in range(500):
            TriggerCheckpoint(kept).save(ARN, {"a": Position(after=str(number)), "b": POSITION})
        with pytest.raises(FileInUse):
            CheckpointLog(path)

    assert path.stat().st_size < 4000
    assert not path.with_name("checkpoints.new").exists()
    with CheckpointLog(path) as again:
        assert TriggerCheckpoint(again).load(ARN) == {"a": Position(after="499"), "b": POSITION}


def test_what_does_not_shrink_is_not_written_again_and_again(tmp_path: Path) -> None:
    """Many shards make a long file rightly."""
    path = tmp_path / "checkpoints"
    with CheckpointLog(path, rewrite_bytes=100) as kept:
        for number in range(50):
            TriggerCheckpoint(kept).save(ARN, {f"shard-{number}": Position(after=str(number))})
        inode = path.stat().st_ino
        TriggerCheckpoint(kept).save(ARN, {"shard-50": Position()})

        assert path.stat().st_ino == inode
        assert len(TriggerCheckpoint(kept).load(ARN)) == 51


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    """The sentence names the file and the reason."""
    with pytest.raises(TriggerFileRefused, match="No such file or directory"):
        CheckpointLog(tmp_path / "nowhere" / "checkpoints")


def test_a_full_disk_is_told_and_nothing_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A position that could not be written is not taken for saved."""
    with CheckpointLog(tmp_path / "checkpoints") as kept:
        TriggerCheckpoint(kept).save(ARN, {"a": Position(after="1")})

        def full(file: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fdatasync", full)
        with pytest.raises(TriggerFileRefused, match="No space left"):
            TriggerCheckpoint(kept).save(ARN, {"a": Position(after="2")})
        assert TriggerCheckpoint(kept).load(ARN) == {"a": Position(after="1")}
        monkeypatch.undo()
        TriggerCheckpoint(kept).save(ARN, {"b": Position(after="3")})

    with CheckpointLog(tmp_path / "checkpoints") as again:
        assert TriggerCheckpoint(again).load(ARN) == {"a": Position(after="1"), "b": Position(after="3")}


def test_a_file_with_one_byte_changed_is_damaged_or_says_what_it_said(tmp_path: Path) -> None:
    """Whichever byte it is, a stream that was begun is never taken for one that was not."""
    path = tmp_path / "checkpoints"
    with CheckpointLog(path) as kept:
        TriggerCheckpoint(kept).save(ARN, {"a": Position(since_s=1.5)})
    whole = path.read_bytes()
    outcomes: set[object] = set()
    for place in range(len(whole)):
        for flip in (0x01, 0x07, 0x20):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :])
            try:
                with CheckpointLog(path) as again:
                    outcomes.add((bool(TriggerCheckpoint(again).load(ARN)), again.is_damaged))
            except TriggerFileRefused:
                outcomes.add("refused")

    assert outcomes == {(False, True), "refused"}


def test_a_torn_first_line_is_no_damage(tmp_path: Path) -> None:
    """What was killed within its first save had begun nothing."""
    path = tmp_path / "checkpoints"
    with CheckpointLog(path) as kept:
        TriggerCheckpoint(kept).save(ARN, {"a": Position(since_s=1.5)})
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole) - 1):
        path.write_bytes(whole[:end])
        with CheckpointLog(path) as torn:
            assert (TriggerCheckpoint(torn).load(ARN), torn.is_damaged) == ({}, False)


def test_the_file_of_another_tables_stream_is_refused(tmp_path: Path) -> None:
    """It names both streams; a later stream of the same table is another matter."""
    path = tmp_path / "checkpoints"
    with CheckpointLog(path) as kept:
        TriggerCheckpoint(kept).save(ARN, {"a": Position(after="1")})

        assert TriggerCheckpoint(kept).load(LATER) == {}
        with pytest.raises(
            CheckpointRefused, match=r"another stream, arn:table/a/stream/1, not arn:table/b/"
        ):
            TriggerCheckpoint(kept).load("arn:table/b/stream/1")
