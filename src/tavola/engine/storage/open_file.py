"""OpenFile: the files of an open store, with the checkpoints that move the WAL into the database file."""

from __future__ import annotations

from contextlib import suppress

import apsw

from tavola.clock import monotonic
from tavola.engine.storage.errors import StoreError, StoreFull, StoreReplaced, store_error
from tavola.engine.storage.file_backups import HELD_WAL_BYTES_MAX, is_being_backed_up
from tavola.engine.storage.file_watch import FileWatch
from tavola.engine.storage.files import PAGE_BYTES, keep_wal, open_raw
from tavola.engine.storage.wal_binding import begin_wal, end_wal, move_wal

_CHECKPOINT_PAGES = 4096
_CHECK_INTERVAL_S = 0.25


class OpenFile:
    """Watches the files of a store, and moves a long WAL into the database file after a commit."""

    __slots__ = ("_check_at_s", "_connection", "_wal_pages", "_watch", "trouble", "wal_is_bound")

    def __init__(self, connection: apsw.Connection) -> None:
        """Watch the files that the connection has open."""
        self.trouble: StoreError | None = None  # why no more writes are possible after a durable commit
        self.wal_is_bound = False
        self._connection = connection
        self._watch = FileWatch(connection.filename, open_raw(connection.filename))
        self._check_at_s = 0.0
        self._wal_pages = 0
        connection.set_wal_hook(self._note_wal_pages)

    def _note_wal_pages(self, _: apsw.Connection, __: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def begin_wal(self) -> None:
        """Bind a new WAL to the file; before the first write, so that a file that is only read stays as it is."""
        try:
            begin_wal(self._connection)
            self.wal_is_bound = True
        except apsw.Error as error:
            # On a full disk the WAL stays as it is, and belongs to the file all the same. The next write tries again.
            if not isinstance(store_error(error, self._connection), StoreFull):
                raise
        finally:
            self.note_checkpoint()

    def note_checkpoint(self) -> None:
        """Take the files as they are now: this process has just moved the WAL."""
        self._wal_pages = 0
        self._watch.note_checkpoint()

    def check_sometimes(self) -> None:
        """Check the files if that was not done lately; before a commit."""
        if monotonic() >= self._check_at_s:
            self.check()

    def check(self) -> None:
        """Raise StoreReplaced if another program deleted, replaced or changed the files of this store."""
        self._check_at_s = monotonic() + _CHECK_INTERVAL_S
        failure = self._watch.check(self._wal_pages)
        if failure is not None:
            self._check_at_s = 0.0  # every later commit is refused
            raise failure

    def checkpoint_if_long(self) -> None:
        """Move a long WAL into the file, unless a backup reads it; after a commit.

        A failure goes to `trouble`. On a full disk the WAL stays, since it holds everything, until there is space.
        """
        if self._wal_pages < _CHECKPOINT_PAGES:
            return
        is_short = self._wal_pages * PAGE_BYTES < HELD_WAL_BYTES_MAX
        if is_short and is_being_backed_up(self._connection.filename):
            return
        try:
            self.check()
            try:
                move_wal(self._connection)
            finally:
                self.note_checkpoint()
        except apsw.Error as error:
            known = store_error(error, self._connection)
            if not isinstance(known, StoreFull):
                self.trouble = known
        except StoreReplaced as error:
            self.trouble = error

    def close(self) -> None:
        """Prepare for closing the connection, which moves the WAL into the file unless that is another one now."""
        if self._watch.check(self._wal_pages) is not None:
            if not self._watch.only_wal_is_missing():
                keep_wal(self._connection)
        elif self.wal_is_bound:
            with suppress(apsw.Error):  # a full disk; the WAL belongs to the file without it too
                end_wal(self._connection)
        self._watch.close()
