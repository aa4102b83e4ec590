"""File backups: a consistent copy of a database file, also while another process has it open and writes to it.

The problem. The process that serves a file owns it: no other can open it as a database. Copying its bytes is possible, but the
newest commits are in the WAL, and a checkpoint may move them into the file while it is read: such a copy mixes states.

The idea. Between two checkpoints the database file does not change, and the WAL only grows. A copy of the file, followed by a
copy of its WAL, is therefore what a crash would have left at that moment, and opens as such. A checkpoint that is under way
meanwhile does no harm either: whatever it writes into the file is also in the WAL, and replaying that puts it right. What must not
happen is that the WAL starts over before it was copied. So the backup asks for a pause:

    backup     lock FILE-backup ── copy FILE ───────────── copy FILE-wal ── same WAL as before? ── unlock ── check, rename
    server     commits go on, into the WAL; checkpoints wait while FILE-backup is locked                     checkpoint

The lock ends with the process that holds it, so a backup that is killed leaves no pause behind. The server reads nothing for the
backup and sends nothing: its clients notice only that the disk is busy, and the copy is throttled. The pause ends when the WAL has
reached `HELD_WAL_BYTES_MAX`, because a checkpoint takes time in proportion to it; above `HURRY_WAL_BYTES` the copy is not
throttled. A WAL that started over nevertheless has another header (see `wal_binding`): the copy begins again.

If the process that has the file open has found that it was deleted, replaced or changed, what lies under the name is not its
store: then no backup is written (see `file_watch`). It looks once a second, so a copy without a WAL of a file in use waits for that.

The copy is then opened with its WAL, as after a crash, which also verifies that the two belong together; the WAL is moved
into it and every page is checked. It gets a number of its own, so that the WAL of the original is never replayed over it.
An encrypted file stays encrypted. Only then the copy gets its name.

The cost: the time and the space of a copy; the WAL grows meanwhile. Not provided: a backup of the changes since the last one.
Without file locks (on Windows), the pause cannot be asked for, and a file that is written quickly cannot be backed up.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_IMODE

import apsw

from tavola.clock import monotonic
from tavola.clock import pause as wait
from tavola.engine.storage.errors import (
    StoreError,
    StoreForeign,
    StoreInUse,
    StoreMismatch,
    StoreReplaced,
    damage_error,
)
from tavola.engine.storage.file_watch import read_failure
from tavola.engine.storage.files import (
    APPLICATION_ID,
    PAGE_BYTES,
    connect_file,
    open_raw,
    opening_error,
    own_file,
)
from tavola.engine.storage.wal_binding import WalHeader, read_wal_header, write_binding
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.errors import ErrorKind
from tavola.folders import PRIVATE_MODE, sync_folder

if sys.platform != "win32":
    import fcntl

HELD_WAL_BYTES_MAX = 256 * 1024 * 1024
HURRY_WAL_BYTES = 64 * 1024 * 1024
DEFAULT_BYTES_PER_S = 128 * 1024 * 1024

_ATTEMPTS_MAX = 5
_CHUNK_BYTES = 1024 * 1024
_WATCH_S = 1.3  # after which a process has noticed that its files were changed
_LOCK_SUFFIX = "-backup"
_LOCK_ATTEMPTS_MAX = 100
_LOCK_MODE = (
    0o644  # the process that serves the file, possibly another user, tests the lock; the file is empty
)

Progress = Callable[[int, int], None]
"""Called with the number of bytes copied, and the total."""


class FileBackupFailed(StoreError):
    """The file could not be backed up; no backup was written."""

    kind = ErrorKind.CONFLICT
    remedy = "Try again when there are fewer writes, or stop the process that has the file open."


class FileBackupExists(StoreError):
    """The name of the backup is taken; the file of that name was not changed."""

    kind = ErrorKind.IN_USE
    remedy = "Choose another name, or replace the file with --force."


@dataclass(frozen=True, slots=True)
class _WalState:
    """What tells one round of a WAL from the next."""

    inode: int | None
    header: WalHeader | None

    @classmethod
    def read(cls, path: str) -> _WalState:
        try:
            inode = os.stat(path).st_ino
        except FileNotFoundError:
            return cls(None, None)
        return cls(inode, read_wal_header(path))


def back_up_file(
    path: str,
    to: str,
    key: str | None = None,
    *,
    replace: bool = False,
    bytes_per_s: float = DEFAULT_BYTES_PER_S,
    progress: Progress = lambda _done, _total: None,
    entropy: Entropy = SYSTEM_ENTROPY,
    pause: Callable[[float], object] = wait,
) -> int:
    """Write a verified copy of a store to `to`, and return its size in bytes; the file may be open and in use.

    An existing file is replaced only with `replace`, and keeps its mode; a new one is readable by its owner only. `to` does not
    exist, or is unchanged, until the copy is complete. `pause` waits for a number of seconds.
    """
    part = f"{to}.part"
    if os.path.exists(to):
        if os.path.samefile(path, to):
            raise FileBackupExists(f"{to} is the file itself")
        if not replace:
            raise FileBackupExists(f"{to} exists")
    try:
        with _pausing_checkpoints(path):
            _check_owner(path)
            for _ in range(_ATTEMPTS_MAX):
                if _copy(path, part, _Throttle(bytes_per_s, pause), progress):
                    break
            else:
                raise FileBackupFailed(
                    f"{path} was written so fast, or opened and closed so often, that no attempt of {_ATTEMPTS_MAX} was consistent"
                )
            if read_wal_header(f"{part}-wal") is None and _is_in_use(path):
                pause(_WATCH_S)
            _check_owner(path)
        _complete(path, part, key, entropy)
        os.chmod(part, S_IMODE(os.stat(to).st_mode) if os.path.exists(to) else PRIVATE_MODE)
        size = os.path.getsize(part)
        os.replace(part, to)
        sync_folder(Path(to).absolute().parent)
        return size
    except OSError as error:
        failure = FileBackupFailed(f"{path} cannot be copied to {to}: {error.strerror or error}")
        failure.remedy = "Choose a folder that is writable and has space for a copy of the file and its log."
        raise failure from error
    finally:
        with suppress(OSError):
            _remove_parts(part)


def _check_owner(path: str) -> None:
    """Refuse to back up what is not the store of the process that has it open."""
    failure = read_failure(path)
    if failure is not None:
        raise StoreReplaced(f"no backup was written: {failure}", is_readable=True)


def _is_in_use(path: str) -> bool:
    """Return whether a connection, of this process or another one, owns the file."""
    source = open_raw(path)
    try:
        source.xLock(apsw.SQLITE_LOCK_SHARED)
        source.xUnlock(apsw.SQLITE_LOCK_NONE)
    except apsw.Error:
        return True
    finally:
        source.xClose()
    return False


def _remove_parts(part: str) -> None:
    """Remove what an attempt, or a backup that was killed, has left: its WAL must not be replayed over another copy."""
    for name in (part, f"{part}-wal", f"{part}-journal"):
        with suppress(FileNotFoundError):
            os.unlink(name)


def is_being_backed_up(path: str) -> bool:
    """Return whether a process copies this file now, so that its WAL should not start over."""
    if sys.platform == "win32":
        return False
    try:
        lock = os.open(f"{path}{_LOCK_SUFFIX}", os.O_RDONLY)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # the file system has no locks
        return False
    finally:
        os.close(lock)
    return False


@contextmanager
def _pausing_checkpoints(path: str) -> Iterator[None]:
    """Hold the lock for which checkpoints of this file wait.

    Where it cannot be created, as in a folder that is read-only, the copy is tried without.
    """
    if sys.platform == "win32":
        yield
        return
    name = f"{path}{_LOCK_SUFFIX}"
    try:
        lock = os.open(name, os.O_RDWR | os.O_CREAT, _LOCK_MODE)
    except OSError:
        yield
        return
    try:
        if not _try_lock(lock, name):
            running = StoreInUse(f"another backup of {path} is running")
            running.remedy = "Wait until it has ended."
            raise running
        try:
            yield
        finally:
            with suppress(OSError):
                os.unlink(name)
    finally:
        os.close(lock)


def _try_lock(lock: int, name: str) -> bool:
    """Lock a file that was opened by its name; return False if another process has it, or deletes it now."""
    for _ in range(_LOCK_ATTEMPTS_MAX):  # a process that tests the lock holds it for a moment
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        except OSError:  # the file system has no locks: the copy is tried without
            return True
        with suppress(FileNotFoundError):
            return os.path.samestat(os.stat(name), os.fstat(lock))
        return False
    return False


class _Throttle:
    """Keeps a copy at a rate; 0 is no limit."""

    def __init__(self, bytes_per_s: float, pause: Callable[[float], object]) -> None:
        self._bytes_per_s = bytes_per_s
        self._pause = pause
        self._due_at_s = monotonic()

    def wait(self, count: int) -> None:
        """Wait as long as it should take to copy this many bytes, less the time that has passed."""
        if self._bytes_per_s:
            now_s = monotonic()
            self._due_at_s = max(self._due_at_s, now_s - 1.0) + count / self._bytes_per_s
            if self._due_at_s > now_s:
                self._pause(self._due_at_s - now_s)


def _copy(path: str, part: str, throttle: _Throttle, progress: Progress) -> bool:
    """Copy a file and then its WAL; return False if they changed in a way that makes the copy inconsistent."""
    _remove_parts(part)
    wal = f"{path}-wal"
    before = _WalState.read(wal)
    identity = os.stat(path).st_ino
    source = open_raw(
        path
    )  # through SQLite, which keeps the locks of a store that this process may have open
    try:
        first_page = source.xRead(min(PAGE_BYTES, source.xFileSize()), 0)
        done = 0
        with open(part, "wb", opener=_open_private) as target:
            while done < (size := source.xFileSize()):
                chunk = source.xRead(min(_CHUNK_BYTES, size - done), done)
                target.write(chunk)
                done += len(chunk)
                wal_bytes = _size_of(wal)
                progress(done, size + wal_bytes)
                if wal_bytes < HURRY_WAL_BYTES:
                    throttle.wait(len(chunk))
                if _WalState.read(wal) != before:
                    return False
            target.flush()
            os.fsync(target.fileno())
        if before.header is not None and not _copy_wal(wal, f"{part}-wal", done, progress):
            return False
        unchanged = _WalState.read(wal) == before and os.stat(path).st_ino == identity
        if before.header is None:  # a process may have come and gone; its first write changed the first page
            unchanged = unchanged and source.xRead(len(first_page), 0) == first_page
        return unchanged and not os.path.exists(f"{path}-journal")
    finally:
        source.xClose()


def _size_of(path: str) -> int:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


def _copy_wal(wal: str, to: str, copied: int, progress: Progress) -> bool:
    """Copy what the WAL contains now; return False if it is gone. Later commits are not part of the backup."""
    try:
        source = open(wal, "rb")  # noqa: SIM115 - closed below
    except FileNotFoundError:
        return False
    with source, open(to, "wb", opener=_open_private) as target:
        left = size = os.fstat(source.fileno()).st_size
        while left and (chunk := source.read(min(_CHUNK_BYTES, left))):
            target.write(chunk)
            left -= len(chunk)
            progress(copied + size - left, copied + size)
        target.flush()
        os.fsync(target.fileno())
    return True


def _open_private(name: str, flags: int) -> int:
    return os.open(name, flags, PRIVATE_MODE)


def _complete(path: str, part: str, key: str | None, entropy: Entropy) -> None:
    """Move the WAL of a copy into it, verify its pages, and give it a number of its own."""
    try:
        connection = connect_file(part, key)
        try:
            try:
                is_store = own_file(connection, key) == APPLICATION_ID
            except StoreMismatch as error:  # names the copy, which is removed
                raise StoreMismatch(
                    f"the log {path}-wal belongs to another state of {path}; no backup was written",
                    f"Put back the file that the log belongs to, or move {path}-wal away, without the writes in it.",
                ) from error
            if not is_store:
                raise StoreForeign(f"{path} is not a Tavola database file.")
            connection.pragma("journal_mode", "DELETE")
            result = connection.execute("PRAGMA quick_check(1)").get
            if result != "ok":
                raise damage_error(f"{path}: {str(result).splitlines()[-1]}")
            write_binding(connection, int.from_bytes(entropy.bytes(3), "big") or 1)
        finally:
            connection.close(True)
    except (apsw.Error, StoreError) as error:
        raise opening_error(path, error, encrypted=key is not None) from error
