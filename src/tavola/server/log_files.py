"""LogFiles: lines in files that rotate, written by a thread of its own so that nobody waits for the disk.

The newest lines are in the file that was named; `.1` beside it is the one before, and so on. What cannot be
written waits and is tried again each second; while so much waits that memory would suffer, new lines are
dropped and counted, and the count is written when there is room again.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from tavola.server.errors import AccessLogUnusable

_log = logging.getLogger("tavola.server")

WAITING_BYTES_MAX = 64 * 1024 * 1024
AGAIN_S = 1.0
STOP_S = 10.0  # for what waits when the server stops
_PIECES_MAX = 1000  # of one call to the system, which takes 1,024
PRIVATE = 0o600  # who asked for what is nobody else's business


class LogFiles:
    """Writes batches of whole lines; `write` never waits, `close` waits for all that was given."""

    def __init__(
        self,
        path: Path,
        *,
        file_bytes_max: int,
        files_max: int,
        gap: Callable[[int], bytes] = lambda count: b'{"dropped":%d}\n' % count,
    ) -> None:
        self._path = path
        self._file_bytes_max = file_bytes_max
        self._files_max = files_max
        self._gap = gap  # the line that tells how many are missing
        self._batches: deque[list[bytes]] = deque()
        self._given_bytes = 0  # each counter has one writer, so neither needs a lock
        self._taken_bytes = 0
        self._dropped = 0
        self._ending = False
        self._failing = False
        self._woken = threading.Event()
        check_place(path)
        try:
            self._file = _open(path)
            self._size = _end_line(self._file, path)
        except OSError as error:
            raise AccessLogUnusable(path, error.strerror or str(error)) from error
        self._thread = threading.Thread(target=self._live, name="tavola-access-log", daemon=True)
        self._thread.start()

    def write(self, batch: list[bytes], lines: int) -> None:
        """Take a batch of so many lines, in pieces that follow each other, to be written soon."""
        if self._given_bytes - self._taken_bytes > WAITING_BYTES_MAX:
            self._dropped += lines
            return
        if self._dropped:
            batch.insert(0, self._gap(self._dropped))
            self._dropped = 0
        self._given_bytes += sum(map(len, batch))
        self._batches.append(batch)
        self._woken.set()

    def close(self) -> None:
        """Write what was given, and let the file go."""
        self._ending = True
        self._woken.set()
        self._thread.join(STOP_S)
        if self._thread.is_alive() or self._batches or self._dropped:
            _log.error("The access log %s is not whole: its last lines could not be written.", self._path)
        if not self._thread.is_alive():
            os.close(self._file)

    def _live(self) -> None:
        while True:
            self._woken.wait()
            self._woken.clear()
            while self._batches:
                last = self._ending  # seen before the attempt, so that there is one more after the last batch
                if not self._put(self._batches[0]):
                    if last:
                        return
                    self._woken.wait(AGAIN_S)
                    continue
                self._taken_bytes += sum(map(len, self._batches.popleft()))
            if self._ending:
                return

    def _put(self, batch: list[bytes]) -> bool:
        """Write a batch whole, or nothing of it as far as a reader can tell; False if it must be tried again."""
        size = sum(map(len, batch))
        try:
            if self._size and self._size + size > self._file_bytes_max:
                self._rotate()
            try:
                written = 0 if sys.platform == "win32" else os.writev(self._file, batch[:_PIECES_MAX])
                rest = memoryview(b"".join(batch) if written < size else b"")
                while written < size:
                    written += os.write(self._file, rest[written:])
            except OSError:
                os.ftruncate(self._file, self._size)  # half a line would spoil the next one
                raise
        except OSError as error:
            if not self._failing:
                self._failing = True
                _log.error("The access log %s cannot be written (%s); its lines wait.", self._path, error)
            return False
        self._size += written
        if self._failing:
            self._failing = False
            _log.warning("The access log %s is written again.", self._path)
        return True

    def _rotate(self) -> None:
        """Begin a new file; the older ones move on by one, and the oldest goes."""
        for number in range(self._files_max - 1, 0, -1):
            newer = numbered_path(self._path, number - 1)
            if newer.exists():
                newer.replace(numbered_path(self._path, number))
        if self._files_max == 1:
            self._path.unlink(missing_ok=True)
        fresh = _open(self._path)
        os.close(self._file)
        self._file = fresh
        self._size = os.fstat(fresh).st_size


def check_place(path: Path) -> None:
    """Refuse what is there and no plain file: to rotate a device or a pipe would take it from everybody."""
    if path.exists() and not path.is_file():
        raise AccessLogUnusable(path, "it is no plain file, and cannot rotate")


def numbered_path(path: Path, number: int) -> Path:
    """Return where the file that was rotated so many times is."""
    return path if number == 0 else path.with_name(f"{path.name}.{number}")


def files_of(path: Path) -> Iterator[Path]:
    """Give the files of a log, the oldest first."""
    count = 0
    while numbered_path(path, count + 1).exists():
        count += 1
    for number in range(count, -1, -1):
        if numbered_path(path, number).exists():
            yield numbered_path(path, number)


def _end_line(file: int, path: Path) -> int:
    """Return a file's size, after ending the line in whose midst a process may have been killed."""
    size = os.fstat(file).st_size
    if size:
        with path.open("rb") as written:
            written.seek(-1, os.SEEK_END)
            if written.read(1) != b"\n":
                size += os.write(file, b"\n")
    return size


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE)
