"""Errors: what SQLite says, as the store's own words."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import apsw

from tavola.engine.storage.store import StoreDamaged, StoreError, StoreFailed, StoreFull

# What says that a write or sync did not reach the disk; any other error says that we asked wrongly.
_DISK_ERRORS = (apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError)

_P = ParamSpec("_P")
_R = TypeVar("_R")


def translated(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make apsw's errors the store's own."""

    @wraps(method)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(*args, **kwargs)
        except apsw.Error as error:
            raise store_error(error) from error

    return call


def store_error(error: apsw.Error) -> StoreError:
    """Return what an error of SQLite means to whoever uses the store."""
    extended = getattr(error, "extendedresult", 0)
    if isinstance(error, apsw.CorruptError | apsw.NotADBError) or extended == apsw.SQLITE_IOERR_DATA:
        return damaged(
            "a page is not as it was written" if extended == apsw.SQLITE_IOERR_DATA else str(error)
        )
    if isinstance(error, apsw.FullError):
        return StoreFull("there is no room left for the store; free some space and try again")
    if isinstance(error, _DISK_ERRORS):
        return StoreFailed(f"the store failed ({error}); no write is accepted until it is opened again")
    return StoreError(f"the store refused what it was asked ({error}); nothing was changed")


def damaged(how: str) -> StoreDamaged:
    """Return the error of a store whose content is not what was written."""
    return StoreDamaged(
        f"the store is damaged ({how}); what is damaged is not served: restore it from a backup"
    )
