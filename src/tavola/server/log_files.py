"""LogFiles: rotating log files, written by a separate thread so that requests do not wait for the disk.

The newest lines are in the named file, older ones in `.1`, `.2` and so on beside it. A failed write is retried every second.
While more than `QUEUED_BYTES_MAX` are queued, new lines are dropped and counted; the count is logged when writing resumes.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from stat import S_IMODE

from tavola.folders import PRIVATE_MODE
from tavola.server.errors import AccessLogUnusable

_log = logging.getLogger("tavola.server")

QUEUED_BYTES_MAX = 64 * 1024 * 1024
RETRY_S = 1.0  # between attempts to write
CLOSE_TIMEOUT_S = 10.0  # how long `close` waits for the last lines
_CHUNKS_MAX = 1000  # in one writev, which allows 1,024


class LogFiles:
    """Writes batches of whole lines. `write` never blocks; `close` waits until all are written."""

    def __init__(
        self,
        path: Path,
        *,
        file_bytes_max: int,
        files_max: int,
        format_dropped: Callable[[int], bytes] = lambda count: b'{"dropped":%d}\n' % count,
    ) -> None:
        self._path = path
        self._file_bytes_max = file_bytes_max
        self._files_max = files_max
        self._format_dropped = format_dropped  # returns the line that stands in for a number of dropped lines
        self._batches: deque[list[bytes]] = deque()
        self._queued_bytes = 0  # each counter has one writer, so neither needs a lock
        self._written_bytes = 0
        self._dropped = 0
        self._closing = False
        self._failing = False
        self._wake = threading.Event()
        check_regular_file(path)
        try:
            self._file = _open(path)
            self._size = _end_line(self._file, path)
        except OSError as error:
            raise AccessLogUnusable(path, error.strerror or str(error)) from error
        self._thread = threading.Thread(target=self._run, name="tavola-access-log", daemon=True)
        self._thread.start()

    def write(self, batch: list[bytes], lines: int) -> None:
        """Queue a batch of `lines` lines; a chunk need not end at a line's end."""
        if self._queued_bytes - self._written_bytes > QUEUED_BYTES_MAX:
            self._dropped += lines
            return
        if self._dropped:
            batch.insert(0, self._format_dropped(self._dropped))
            self._dropped = 0
        self._queued_bytes += sum(map(len, batch))
        self._batches.append(batch)
        self._wake.set()

    def close(self) -> None:
        """Write everything that is queued, and close the file."""
        self._closing = True
        self._wake.set()
        self._thread.join(CLOSE_TIMEOUT_S)
        if self._thread.is_alive() or self._batches or self._dropped:
            _log.error("The access log %s is incomplete: its last lines could not be written.", self._path)
        if not self._thread.is_alive():
            os.close(self._file)

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            while self._batches:
                is_last_try = self._closing  # read before the attempt: one more try after the last batch
                if not self._write_batch(self._batches[0]):
                    if is_last_try:
                        return
                    self._wake.wait(RETRY_S)
                    continue
                self._written_bytes += sum(map(len, self._batches.popleft()))
            if self._closing:
                return

    def _write_batch(self, batch: list[bytes]) -> bool:
        """Write all of a batch, or nothing; return False if it must be retried."""
        size = sum(map(len, batch))
        try:
            if self._size and self._size + size > self._file_bytes_max:
                self._rotate()
            try:
                written = 0 if sys.platform == "win32" else os.writev(self._file, batch[:_CHUNKS_MAX])
                rest = memoryview(b"".join(batch) if written < size else b"")
                while written < size:
                    written += os.write(self._file, rest[written:])
            except OSError:
                os.ftruncate(self._file, self._size)  # remove an incomplete line
                raise
        except OSError as error:
            if not self._failing:
                self._failing = True
                _log.error(
                    "The access log %s cannot be written (%s); retrying every second.", self._path, error
                )
            return False
        self._size += written
        if self._failing:
            self._failing = False
            _log.warning("The access log %s can be written again.", self._path)
        return True

    def _rotate(self) -> None:
        """Start a new file; each older file gets the next number, and the oldest is deleted."""
        for number in range(self._files_max - 1, 0, -1):
            newer = numbered_path(self._path, number - 1)
            if newer.exists():
                newer.replace(numbered_path(self._path, number))
        if self._files_max == 1:
            self._path.unlink(missing_ok=True)
        file = _open(self._path)
        if sys.platform != "win32":
            os.fchmod(file, S_IMODE(os.fstat(self._file).st_mode))
        os.close(self._file)
        self._file = file
        self._size = os.fstat(file).st_size


def check_regular_file(path: Path) -> None:
    """Raise AccessLogUnusable if a path is a device or pipe: rotation would rename it."""
    if path.exists() and not path.is_file():
        raise AccessLogUnusable(path, "it is not a regular file, so it cannot be rotated")


def numbered_path(path: Path, number: int) -> Path:
    """Return the path of a log file after `number` rotations."""
    return path if number == 0 else path.with_name(f"{path.name}.{number}")


def files_of(path: Path) -> Iterator[Path]:
    """Yield the files of a log, oldest first."""
    count = 0
    while numbered_path(path, count + 1).exists():
        count += 1
    for number in range(count, -1, -1):
        if numbered_path(path, number).exists():
            yield numbered_path(path, number)


def _end_line(file: int, path: Path) -> int:
    """Terminate the last line, which is incomplete if a process was killed, and return the file's size."""
    size = os.fstat(file).st_size
    if size:
        with path.open("rb") as written:
            written.seek(-1, os.SEEK_END)
            if written.read(1) != b"\n":
                size += os.write(file, b"\n")
    return size


def _open(path: Path) -> int:
    return os.open(
        path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE_MODE
    )  # it shows who made which calls
