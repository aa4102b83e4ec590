"""Store: tables, change logs and records in one SQLite database with one connection."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import cast

import apsw

from tavola.engine.storage.change_log import ChangeLog
from tavola.engine.storage.errors import StoreError, store_error, translate_errors
from tavola.engine.storage.files import (
    connect_file,
    find_damaged_pages,
    find_damaged_trees,
    has_checksums,
    opening_error,
    set_up_file,
)
from tavola.engine.storage.table_store import SqliteTableStore

_FORMAT = (
    2  # 1 had no change logs; a Tavola of that version would bypass them, so it must not open this store
)
_CHECKPOINT_PAGES = 4096
_COLUMNS_MAX = 256
_SYNC = {"full": "FULL", "off": "OFF"}


class Store:
    """Tables, change logs and records in one SQLite database, changed in transactions by one writer."""

    def __init__(self, connection: apsw.Connection, *, in_memory: bool, syncs: bool) -> None:
        self.in_memory = in_memory
        self.syncs = syncs  # a commit waits for the disk
        self.trouble: StoreError | None = (
            None  # why no more writes are possible, although the last commit is durable
        )
        self._connection = connection
        self._cursor = connection.cursor()
        self._wal_pages = 0
        if not in_memory:
            connection.wal_autocheckpoint(0)
            connection.set_wal_hook(self._note_wal_pages)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None,
        *,
        sync: str,
        cache_mb: int,
        key: str | None = None,
        check_pages: bool = True,
    ) -> Store:
        """Open or create the store at `path`, or one in memory; raise StoreInUse if the file is open elsewhere.

        With a key the file is encrypted and opens with that key only. With `check_pages`, a small file is checked in full.
        """
        if sync not in _SYNC:
            raise StoreError(f"sync must be one of {', '.join(_SYNC)}, not {sync!r}")
        connection: apsw.Connection | None = None
        try:
            if path is None:
                connection = apsw.Connection(":memory:")
            else:
                connection = connect_file(os.fspath(path), key)
                set_up_file(connection, _SYNC[sync], encrypted=key is not None, check_pages=check_pages)
            connection.pragma("cache_size", -1024 * cache_mb)
            connection.pragma("temp_store", 2)
            store = cls(connection, in_memory=path is None, syncs=path is not None and sync == "full")
            store._prepare()
            return store
        except (apsw.Error, StoreError) as error:
            if connection is not None:
                # Otherwise the file would stay locked for the next attempt.
                with suppress(apsw.Error):
                    connection.close(True)
            raise opening_error(path, error, encrypted=key is not None) from error

    @translate_errors
    def _prepare(self) -> None:
        version = self._connection.pragma("user_version")
        if version == 0:
            self._cursor.execute("BEGIN IMMEDIATE")
            self._cursor.execute(
                "CREATE TABLE record (kind TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL,"
                " due REAL, PRIMARY KEY (kind, name)) WITHOUT ROWID"
            )
            self._cursor.execute("CREATE INDEX record_due ON record (kind, due) WHERE due IS NOT NULL")
            self._connection.pragma("user_version", _FORMAT)
            self._cursor.execute("COMMIT")
        elif version < _FORMAT:
            self._connection.pragma("user_version", _FORMAT)
        elif version > _FORMAT:
            raise StoreError("the store was written by a newer Tavola; open it with that version or later")

    def _note_wal_pages(self, _: apsw.Connection, __: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def table(self, number: int, columns: Sequence[str]) -> SqliteTableStore:
        """Return the rows of the table with this number, which has these columns in this order."""
        return SqliteTableStore(
            self._connection, self._cursor, number, columns, has_checksums=not self.in_memory
        )

    def problems(self, most: int) -> list[tuple[int | None, str | None, str]]:
        """Check all pages of the file and return what SQLite finds wrong, at most `most` problems.

        Each problem has its page and its SQLite table or index, as far as they are known.
        """
        try:
            found = [str(row[0]) for row in self._connection.execute(f"PRAGMA integrity_check({most:d})")]
        except apsw.Error as error:
            return self._damaged_pages(most) or [(None, None, str(store_error(error)))]
        return [] if found == ["ok"] else [(None, None, line) for text in found for line in text.splitlines()]

    def _damaged_pages(self, most: int) -> list[tuple[int | None, str | None, str]]:
        """Return the pages that cannot be read; for an encrypted file, the tables and indexes that contain them."""
        pages: list[tuple[int | None, str | None]] = []
        with suppress(apsw.Error):
            if has_checksums(self._connection):
                pages += find_damaged_pages(self._connection, most)
        if not pages:
            pages += [(None, tree) for tree in find_damaged_trees(self._connection)]
        return [(page, tree, "a page is not as it was written") for page, tree in pages]

    @translate_errors
    def create_table(self, number: int) -> None:
        """Create the rows of a new table, without columns; SQLite's name for it is part of the file format."""
        self._cursor.execute(
            f"CREATE TABLE rack{number} (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
            " size INTEGER NOT NULL, sum INTEGER NOT NULL, item BLOB NOT NULL)"
        )

    @translate_errors
    def drop_table(self, number: int) -> None:
        """Remove a table with all of its rows."""
        self._cursor.execute(f"DROP TABLE rack{number}")

    @translate_errors
    def add_column(self, number: int, column: str, *, ordered: bool) -> None:
        """Add a column, empty in every row, to a table; an `ordered` one gets a partial index that includes the key.

        The key makes the order total, so a page can start after any pair of entry and key, even a deleted one.
        """
        self._cursor.execute(
            f"ALTER TABLE rack{number} ADD COLUMN {column} {'BLOB' if ordered else 'INTEGER'}"
        )
        if ordered:
            self._cursor.execute(
                f"CREATE INDEX rack{number}_{column} ON rack{number} ({column}, key)"
                f" WHERE {column} IS NOT NULL"
            )

    @translate_errors
    def drop_column(self, number: int, column: str, *, ordered: bool) -> None:
        """Drop a column: its index at once, its values later. The column's name is never used again.

        Removing the values would rewrite every row of the table, so they stay, unread, until many dropped columns
        have accumulated, long before SQLite's limit.
        """
        if ordered:
            self._cursor.execute(f"DROP INDEX rack{number}_{column}")
        columns = self._cursor.execute(f"SELECT count(*) FROM pragma_table_info('rack{number}')").get
        if columns > _COLUMNS_MAX:
            self._cursor.execute(f"ALTER TABLE rack{number} DROP COLUMN {column}")

    def log(self, number: int) -> ChangeLog:
        """Return the change log of the table with this number, which has one."""
        return ChangeLog(self._cursor, number)

    @translate_errors
    def create_log(self, number: int) -> None:
        """Create the empty change log of a table."""
        self._cursor.execute(
            f"CREATE TABLE log{number} (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, key BLOB NOT NULL,"
            " mark INTEGER NOT NULL, old BLOB, new BLOB)"
        )

    @translate_errors
    def drop_log(self, number: int) -> None:
        """Remove a change log with all of its changes."""
        self._cursor.execute(f"DROP TABLE log{number}")

    @translate_errors
    def log_numbers(self) -> list[int]:
        """Return the numbers of the tables that have a change log."""
        found = self._cursor.execute(
            "SELECT substr(name, 4) FROM sqlite_schema WHERE type = 'table' AND name GLOB 'log[0-9]*'"
        )
        return sorted(int(cast("str", name)) for (name,) in found.fetchall())

    def put_record(self, kind: str, name: str, data: bytes, due_s: float | None = None) -> None:
        """Store a record, replacing the one of this kind and name."""
        try:
            self._cursor.execute(
                "INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?)", (kind, name, data, due_s)
            )
        except apsw.Error as error:
            raise store_error(error) from error

    @translate_errors
    def get_record(self, kind: str, name: str) -> bytes | None:
        """Return the data of a record, or None."""
        found = self._cursor.execute("SELECT data FROM record WHERE kind = ? AND name = ?", (kind, name)).get
        return cast("bytes | None", found)

    @translate_errors
    def delete_record(self, kind: str, name: str) -> None:
        """Remove a record if it exists."""
        self._cursor.execute("DELETE FROM record WHERE kind = ? AND name = ?", (kind, name))

    @translate_errors
    def records(self, kind: str) -> Iterator[tuple[str, bytes]]:
        """Return the name and data of all records of a kind, ordered by name."""
        found = self._cursor.execute("SELECT name, data FROM record WHERE kind = ? ORDER BY name", (kind,))
        return iter(cast("list[tuple[str, bytes]]", found.fetchall()))

    @translate_errors
    def delete_due(self, kind: str, now_s: float) -> int:
        """Remove the records of a kind that are due, and return their number."""
        self._cursor.execute("DELETE FROM record WHERE kind = ? AND due <= ?", (kind, now_s))
        return self._connection.changes()

    @property
    def open_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._connection.in_transaction

    def begin(self) -> None:
        """Start a transaction."""
        try:
            self._cursor.execute("BEGIN IMMEDIATE")
        except apsw.Error as error:
            raise store_error(error) from error

    def commit(self) -> None:
        """Make the transaction durable, or roll it back and raise; then checkpoint a long WAL.

        If the checkpoint fails, the commit is durable all the same, so the error goes to `trouble` and is not raised.
        """
        try:
            self._cursor.execute("COMMIT")
        except apsw.Error as error:
            raise store_error(error) from error
        if self._wal_pages >= _CHECKPOINT_PAGES:
            self._wal_pages = 0
            try:
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            except apsw.FullError:
                pass  # the WAL holds everything, and is moved into the file when there is space
            except apsw.Error as error:
                self.trouble = store_error(error)

    def rollback(self) -> None:
        """Roll the transaction back; even if that fails, a store that is opened again does not have it."""
        if self._connection.in_transaction:
            try:
                self._cursor.execute("ROLLBACK")
            except apsw.Error as error:
                if self._connection.in_transaction:
                    raise store_error(error) from error

    def close(self) -> None:
        """Close the file, with the WAL moved into it if possible; uncommitted changes are lost."""
        try:
            self._connection.close()
        except apsw.Error as error:
            raise store_error(error) from error
