"""StoreError and its kinds, and the translation of SQLite's errors into them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import apsw

from tavola.errors import ErrorKind, TavolaError

# A write or sync did not reach the disk. Any other error means that the request was wrong.
_DISK_ERRORS = (apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError)

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
    remedy = "Stop the other process, or use its endpoint; one process owns a file."


class StoreLocked(StoreError):
    """The key does not open the file, or the file has none; nothing was changed."""

    remedy = "Pass the file's key with --key-file, --key-command or TAVOLA_KEY; an unencrypted file has none."


class StoreDamaged(StoreError):
    """What was read from the file is not what was written; none of it is served."""

    remedy = "Pass the key if the file is encrypted (--key-file); otherwise restore the file from a copy."


class StoreFull(StoreError):
    """The disk is full; the transaction is rolled back, and writing works again once there is space."""

    remedy = "Free disk space and start again; no confirmed write is lost."


class StoreFailed(StoreError):
    """A write or sync failed, so the content of the disk is uncertain: no more writes are accepted."""


def translate_errors(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Raise StoreError in place of the apsw errors of a method."""

    @wraps(method)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(*args, **kwargs)
        except apsw.Error as error:
            raise store_error(error) from error

    return call


def store_error(error: apsw.Error) -> StoreError:
    """Return the StoreError that corresponds to an error of SQLite."""
    extended = getattr(error, "extendedresult", 0)
    if isinstance(error, apsw.CorruptError | apsw.NotADBError) or extended == apsw.SQLITE_IOERR_DATA:
        return damage_error(
            "a page does not have its written content" if extended == apsw.SQLITE_IOERR_DATA else str(error)
        )
    if isinstance(error, apsw.FullError):
        return StoreFull("the disk is full; free some space and try again")
    if isinstance(error, _DISK_ERRORS):
        return StoreFailed(f"the store failed ({error}); no write is accepted until it is opened again")
    return StoreError(f"the store refused the request ({error}); nothing was changed")


def damage_error(how: str) -> StoreDamaged:
    """Return the error for content that is not what was written."""
    return StoreDamaged(
        f"the store is damaged ({how}); damaged data is not returned: restore the file from a backup"
    )
