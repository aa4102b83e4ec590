"""FileWatch: notices that the files of an open store were deleted, replaced or changed by another program.

The problem. A process that has a file open keeps it, whatever happens to its name. After `rm store.db`, or a backup moved over
it, commits go on into a file that no one can reach, are confirmed, and are lost when the process ends. After `cp backup
store.db`, which writes into the same file, our pages and the backup's are mixed.

The idea. While a store is open, its files obey rules that are cheap to test:

- the names of the database file and of its WAL lead to the files that were opened (device and inode);
- the database file grows or keeps its size, and the WAL contains at least the pages that we committed to it;
- the first page of the database file changes only when we move the WAL into it. Every checkpoint writes
  another number there (see `wal_binding`), so the page of a backup differs.

`check` tests them. `OpenFile` calls it before each checkpoint and, at most four times a second, before a commit; background
work calls it once a second. So the writes that are confirmed between the damage and its detection, and lost with the file, are those of a
fraction of a second. The cost is two `stat` calls and a read of a page that is in memory, about 5 µs, four times a second.

After a failed check the store refuses writes until it is opened again, and does not move its WAL into the file when it is closed: the
file is another one now. If only the name of the WAL is gone, the file is still the right one: then closing moves into it what the WAL contained. If only a name changed, reads continue from the file that is still open; if the content changed, they stop too.
Putting the file back does not resume writing: whether it is complete is only known after it was opened again.

A backup is made by another process, which sees only the names. So a process that has found a change says so in `FILE-failed`, which it keeps locked as
long as it lives (`read_failure`).

The first page is read through SQLite. Opening and closing the file by other means would release our locks on it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import apsw

from tavola.engine.storage.errors import StoreReplaced
from tavola.engine.storage.files import PAGE_BYTES
from tavola.folders import PRIVATE_MODE

if sys.platform != "win32":
    import fcntl

_ADVICE = (
    "If you need what only this process still has, read it before you stop the process. Then put the right file back, or a "
    "backup, and start again"
)
_CLOSE_ADVICE = "Stop this process, without killing it: it then moves what its log contains into the file. Then start again"
_MARK_SUFFIX = "-failed"
_MARK_BYTES_MAX = 4096
_WAL_HEADER_BYTES = 32
_WAL_FRAME_BYTES = 24 + PAGE_BYTES


class FileWatch:
    """What the files of an open store must look like, until the next checkpoint."""

    def __init__(self, path: str, raw: apsw.VFSFile) -> None:
        """Watch the files at `path`, which were just opened; `raw` reads the database file, and is closed with this."""
        self._paths = (path, f"{path}-wal")
        self._raw = raw
        self._identities = tuple(_identity(os.stat(watched)) for watched in self._paths)
        self.failure: StoreReplaced | None = None
        self._mark: int | None = None  # the open file that tells other processes of the failure
        self.note_checkpoint()

    def note_checkpoint(self) -> None:
        """Accept what the database file contains now: the store itself has written it."""
        self._size = self._raw.xFileSize()
        self._first_page = self._raw.xRead(PAGE_BYTES, 0)

    def check(self, wal_pages: int) -> StoreReplaced | None:
        """Return the error for files that are not as we left them; `wal_pages` were committed to the WAL."""
        if self.failure is None:
            self.failure = self._inspect(wal_pages)
            if self.failure is not None:
                self._mark = _write_mark(self._paths[0], str(self.failure))
        return self.failure

    def _inspect(self, wal_pages: int) -> StoreReplaced | None:
        try:
            sizes = []
            for path, identity in zip(self._paths, self._identities, strict=True):
                try:
                    state = os.stat(path)
                except FileNotFoundError:
                    advice = (
                        _CLOSE_ADVICE if path != self._paths[0] and self.only_wal_is_missing() else _ADVICE
                    )
                    return _describe_change(path, "was deleted or moved away", advice, is_readable=True)
                if _identity(state) != identity:
                    return _describe_change(path, "was replaced by another file", is_readable=True)
                sizes.append(state.st_size)
            if sizes[0] < self._size:
                return _describe_change(self._paths[0], "was truncated or overwritten", is_readable=False)
            if wal_pages and sizes[1] < _WAL_HEADER_BYTES + wal_pages * _WAL_FRAME_BYTES:
                return _describe_change(self._paths[1], "was truncated", is_readable=False)
            if self._raw.xRead(PAGE_BYTES, 0) != self._first_page:
                return _describe_change(self._paths[0], "was overwritten", is_readable=False)
        except (OSError, apsw.Error):  # the folder or the page cannot be read now: no proof of a change
            return None
        return None

    def only_wal_is_missing(self) -> bool:
        """Return whether the name of the WAL is gone, and the database file is as we left it."""
        path, wal = self._paths
        try:
            state = os.stat(path)
            return (
                not os.path.exists(wal)
                and _identity(state) == self._identities[0]
                and state.st_size >= self._size
                and self._raw.xRead(PAGE_BYTES, 0) == self._first_page
            )
        except (OSError, apsw.Error):
            return False

    def close(self) -> None:
        """Close what reads the first page, and take back what was said to other processes."""
        if self._mark is not None:
            with suppress(OSError):
                os.unlink(f"{self._paths[0]}{_MARK_SUFFIX}")
            os.close(self._mark)
            self._mark = None
        with suppress(apsw.Error):
            self._raw.xClose()


def read_failure(path: str) -> str | None:
    """Return why the process that has this file open accepts no writes, if it has found that its files were changed."""
    if sys.platform == "win32":
        return None
    try:
        mark = os.open(f"{path}{_MARK_SUFFIX}", os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(mark, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(mark, _MARK_BYTES_MAX).decode("utf-8", "replace")
    except OSError:  # the file system has no locks
        return None
    finally:
        os.close(mark)
    return None  # of a process that was killed


def _write_mark(path: str, reason: str) -> int | None:
    """Write and lock the mark of a failure; None where that is not possible."""
    if sys.platform == "win32":
        return None
    mark: int | None = None
    try:
        mark = os.open(f"{path}{_MARK_SUFFIX}", os.O_RDWR | os.O_CREAT | os.O_TRUNC, PRIVATE_MODE)
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(mark, reason.encode()[:_MARK_BYTES_MAX])
    except OSError:
        if mark is not None:
            os.close(mark)
        return None
    return mark


def _identity(state: os.stat_result) -> tuple[int, int]:
    return state.st_dev, state.st_ino


def _describe_change(path: str, how: str, advice: str = _ADVICE, *, is_readable: bool) -> StoreReplaced:
    reads = "reads continue" if is_readable else "reads are refused too, because they would mix two states"
    return StoreReplaced(
        f"{os.path.basename(path)} {how} while the store was open: no write is accepted, {reads}. {advice}",
        is_readable=is_readable,
    )
