"""Lines in files that rotate."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tavola.server import log_files
from tavola.server.access_log import AccessLog
from tavola.server.errors import AccessLogUnusable
from tavola.server.log_files import LogFiles, files_of, numbered_path


def _write_by(monkeypatch: pytest.MonkeyPatch, write: Callable[[int, memoryview], int]) -> None:
    """Replace the disk by a function of the test."""
    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "writev", lambda file, pieces: write(file, memoryview(b"".join(pieces))))


def test_lines_are_in_order_over_rotated_files(tmp_path: Path) -> None:
    """A full file is rotated;

    read from the oldest, the lines are those that were written, and none is cut.
    """
    path = tmp_path / "access.log"
    files = LogFiles(path, file_bytes_max=100, files_max=50)
    for number in range(200):
        files.write([b"line %d\n" % number], 1)
    files.close()

    found = b"".join(each.read_bytes() for each in files_of(path))
    assert found == b"".join(b"line %d\n" % number for number in range(200))
    assert len(list(files_of(path))) > 10
    assert all(each.stat().st_size <= 100 for each in files_of(path))


@pytest.mark.parametrize("files_max", [1, 3])
def test_the_number_of_files_is_bounded(tmp_path: Path, files_max: int) -> None:
    """The oldest file is deleted when there are too many; the newest line is always present."""
    path = tmp_path / "access.log"
    files = LogFiles(path, file_bytes_max=20, files_max=files_max)
    for number in range(50):
        files.write([b"line %d\n" % number], 1)
    files.close()

    assert len(list(tmp_path.iterdir())) == files_max
    assert path.read_bytes().endswith(b"line 49\n")


def test_a_log_goes_on_where_it_was(tmp_path: Path) -> None:
    """A second server appends, and a line that a crash has cut does not damage the next."""
    path = tmp_path / "access.log"
    path.write_bytes(b"first\ncut in the mid")
    files = LogFiles(path, file_bytes_max=1000, files_max=2)
    files.write([b"second\n"], 1)
    files.close()

    assert path.read_bytes() == b"first\ncut in the mid\nsecond\n"


def test_no_one_else_reads_it(tmp_path: Path) -> None:
    """The files are their owner's alone."""
    path = tmp_path / "access.log"
    LogFiles(path, file_bytes_max=1000, files_max=2).close()

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_place_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """A missing folder is an error before the server starts."""
    with pytest.raises(AccessLogUnusable, match="No such file"):
        LogFiles(tmp_path / "nowhere" / "access.log", file_bytes_max=1000, files_max=2)


def test_only_a_regular_file_is_accepted(tmp_path: Path) -> None:
    """A pipe, a folder or a device is refused before anything is written beside it or moved."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for place in (pipe, tmp_path):
        with pytest.raises(AccessLogUnusable, match="not a regular file"):
            LogFiles(place, file_bytes_max=1, files_max=2)
        with pytest.raises(AccessLogUnusable, match="not a regular file"):
            AccessLog(place)

    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_lines_wait_while_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Requests do not wait for a full disk; once it has space again every line is written, once and whole."""
    path = tmp_path / "access.log"
    failed = threading.Event()
    full = True
    true_write = os.write

    def write(file: int, data: memoryview) -> int:
        if full:
            if len(data) > 3:
                return true_write(file, data[:3])  # some of it fits, the rest does not
            failed.set()
            raise OSError(28, "No space left on device")
        return true_write(file, data)

    monkeypatch.setattr(log_files, "RETRY_S", 0.01)
    _write_by(monkeypatch, write)
    files = LogFiles(path, file_bytes_max=1000, files_max=2)
    files.write([b"first\n"], 1)
    assert failed.wait(10)
    files.write([b"second\n"], 1)
    full = False
    files.close()

    assert path.read_bytes() == b"first\nsecond\n"
    assert "cannot be written" in caplog.text


def test_excess_lines_are_dropped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that never accepts the lines costs bounded memory, and the log says how many are missing."""
    path = tmp_path / "access.log"
    opened = threading.Event()
    true_write = os.write

    def write(file: int, data: memoryview) -> int:
        opened.wait(10)
        return true_write(file, data)

    monkeypatch.setattr(log_files, "QUEUED_BYTES_MAX", 20)
    _write_by(monkeypatch, write)
    files = LogFiles(path, file_bytes_max=1000, files_max=2)
    files.write([b"a" * 30 + b"\n"], 1)
    for _ in range(5):
        files.write([b"dropped\n"], 2)
    opened.set()
    while files._queued_bytes != files._written_bytes:
        pass
    files.write([b"last\n"], 1)
    files.close()

    assert path.read_bytes() == b"a" * 30 + b'\n{"dropped":10}\nlast\n'


def test_lines_that_are_lost_in_the_end_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that stops while its disk is full logs that the access log is incomplete."""

    def write(file: int, data: memoryview) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log_files, "RETRY_S", 0.01)
    _write_by(monkeypatch, write)
    files = LogFiles(tmp_path / "access.log", file_bytes_max=1000, files_max=2)
    files.write([b"first\n"], 1)
    files.close()

    assert "is incomplete" in caplog.text


def test_files_are_numbered_by_age(tmp_path: Path) -> None:
    """The number behind the name is how often a file has moved."""
    assert numbered_path(tmp_path / "a.log", 0) == tmp_path / "a.log"
    assert numbered_path(tmp_path / "a.log", 3) == tmp_path / "a.log.3"
    assert list(files_of(tmp_path / "a.log")) == []


def test_a_batch_of_many_pieces_is_written_whole(tmp_path: Path) -> None:
    """More pieces than the system takes at once are written all the same, in order."""
    path = tmp_path / "access.log"
    pieces = [b"piece %d\n" % number for number in range(5000)]
    files = LogFiles(path, file_bytes_max=1_000_000, files_max=2)
    files.write(list(pieces), len(pieces))
    files.close()

    assert path.read_bytes() == b"".join(pieces)
