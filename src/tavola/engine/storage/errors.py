"""StoreError and its kinds, and the translation of SQLite's errors into them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import apsw

from tavola.errors import ErrorKind, TavolaError

# A write or sync did not reach the disk. Any other error means that the request was wrong.
_DISK_ERRORS = (apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError)
# The system refused a write as a whole, so the disk is as it was, and the same write works when the cause is gone.
_REFUSED_WRITES = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "the disk quota is used up; free some space, or raise the quota",
    errno.EFBIG: "a file may not grow further; raise the limit on the size of files (ulimit -f)",
    errno.EROFS: "the file system is mounted read-only; mount it writable again",
    errno.EACCES: "this process may no longer write; give it back the permission",
    errno.EPERM: "this process may no longer write; give it back the permission",
}

_P = ParamSpec("_P")
_R = TypeVar("_R")


class StoreError(TavolaError):
    """The store cannot carry out a request; the message says why and what to do."""

    code = "store-unusable"
    kind = ErrorKind.INTERNAL
    remedy = "Choose another file, or make this one readable and writable."


class StoreForeign(StoreError):
    """The file is not a Tavola database; it is left as it is."""

    remedy = "Choose a database file, or a new file name."


class StoreInUse(StoreError):
    """Another process, or another engine in this one, has the file open."""

    kind = ErrorKind.IN_USE
    remedy = "Stop the other process, or use --endpoint with its address; one process owns a file."


class StoreLocked(StoreError):
    """The key does not open the file, or the file has none; nothing was changed."""

    remedy = "Pass the file's key with --key-file, --key-command or TAVOLA_KEY; an unencrypted file has none."


class StoreDamaged(StoreError):
    """What was read from the file is not what was written; none of it is served."""

    remedy = "Pass the key if the file is encrypted (--key-file); otherwise restore the file from a copy."


class StoreFull(StoreError):
    """The system refuses to write: the disk is full or read-only. The transaction is rolled back.

    Writing works again once the cause is gone.
    """

    remedy = "Free disk space, or make the disk writable, and start again; no confirmed write is lost."


class StoreFailed(StoreError):
    """A write or sync failed, so the content of the disk is uncertain: no more writes are accepted."""


class StoreReplaced(StoreFailed):
    """The file was deleted, replaced or changed by another program while it was open.

    If `is_readable`, this process still has the file that it opened, and reads continue.
    """

    remedy = "Restore the files as the cause says, and start again."

    def __init__(self, message: str, *, is_readable: bool) -> None:
        self.is_readable = is_readable
        super().__init__(message)


class StoreMismatch(StoreError):
    """The log beside the file was written for another file; neither was changed."""

    kind = ErrorKind.CONFLICT

    def __init__(self, message: str, remedy: str) -> None:
        self.remedy = remedy
        super().__init__(message)


def translate_errors(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Raise StoreError in place of the apsw errors of a method."""

    @wraps(method)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(*args, **kwargs)
        except apsw.Error as error:
            raise store_error(error, getattr(args[0], "_connection", None)) from error

    return call


def store_error(error: apsw.Error, connection: apsw.Connection | None = None) -> StoreError:
    """Return the StoreError that corresponds to an error of SQLite; the connection knows what the system said."""
    extended = getattr(error, "extendedresult", 0)
    if isinstance(error, apsw.CorruptError | apsw.NotADBError) or extended == apsw.SQLITE_IOERR_DATA:
        return damage_error(
            "a page does not have its written content" if extended == apsw.SQLITE_IOERR_DATA else str(error)
        )
    if isinstance(error, apsw.FullError):
        return _refused_write(errno.ENOSPC, connection)
    is_failed_write = (
        extended == apsw.SQLITE_IOERR_WRITE
    )  # of a failed sync, what it should have kept may be lost
    if is_failed_write and connection is not None and connection.system_errno in _REFUSED_WRITES:
        return _refused_write(connection.system_errno, connection)
    if isinstance(error, _DISK_ERRORS):
        return StoreFailed(f"the store failed ({error}); no write is accepted until it is opened again")
    return StoreError(f"the store refused the request ({error}); nothing was changed")


def _refused_write(number: int, connection: apsw.Connection | None) -> StoreFull:
    what = os.path.basename(connection.filename) if connection is not None else "the store"
    return StoreFull(
        f"{what} cannot be written: {_REFUSED_WRITES[number]}. Nothing of this write was kept, and writes are accepted as soon "
        "as the cause is gone"
    )


def damage_error(how: str) -> StoreDamaged:
    """Return the error for content that is not what was written."""
    return StoreDamaged(
        f"the store is damaged ({how}); damaged data is not returned: restore the file from a backup"
    )
