"""Store: racks, logs and records in one SQLite database with one connection."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import cast

import apsw

from tavola.engine.storage.sqlite.errors import store_error, translated
from tavola.engine.storage.sqlite.files import connect_file, opening_error, set_up_file
from tavola.engine.storage.sqlite.log import SqliteLog
from tavola.engine.storage.sqlite.pages import has_checksums, spoilt_pages, spoilt_trees
from tavola.engine.storage.sqlite.rack import SqliteRack
from tavola.engine.storage.store import StoreError

_FORMAT = 2  # 1: without logs; an older Tavola would write past them, so it must not open this
_CHECKPOINT_PAGES = 4096
_COLUMNS_MAX = 256
_SYNC = {"full": "FULL", "off": "OFF"}


class SqliteStore:
    """Racks and records in one SQLite database with one connection."""

    def __init__(self, connection: apsw.Connection, *, in_memory: bool, syncs: bool) -> None:
        self.in_memory = in_memory
        self.syncs = syncs  # a commit waits for the disk
        self.trouble: StoreError | None = None
        self._connection = connection
        self._cursor = connection.cursor()
        self._wal_pages = 0
        if not in_memory:
            connection.wal_autocheckpoint(0)
            connection.set_wal_hook(self._committed)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None,
        *,
        sync: str,
        cache_mb: int,
        key: str | None = None,
        walked: bool = True,
    ) -> SqliteStore:
        """Open or make the store at `path`, or one in memory; refuse a file that somebody has open.

        With a key the file is encrypted, and opens with no other. A small file is `walked` through whole.
        """
        if sync not in _SYNC:
            raise StoreError(f"sync must be one of {', '.join(_SYNC)}, not {sync!r}")
        connection: apsw.Connection | None = None
        try:
            if path is None:
                connection = apsw.Connection(":memory:")
            else:
                connection = connect_file(os.fspath(path), key)
                set_up_file(connection, _SYNC[sync], encrypted=key is not None, walked=walked)
            connection.pragma("cache_size", -1024 * cache_mb)
            connection.pragma("temp_store", 2)
            store = cls(connection, in_memory=path is None, syncs=path is not None and sync == "full")
            store._prepare()
            return store
        except (apsw.Error, StoreError) as error:
            if connection is not None:
                # Otherwise the file would stay locked for whoever tries again.
                with suppress(apsw.Error):
                    connection.close(True)
            raise opening_error(path, error, encrypted=key is not None) from error

    @translated
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

    def _committed(self, _: apsw.Connection, __: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def rack(self, number: int, columns: Sequence[str]) -> SqliteRack:
        """Return the rack of this number, with these columns in this order."""
        return SqliteRack(self._connection, self._cursor, number, columns, summed=not self.in_memory)

    def problems(self, most: int) -> list[tuple[int | None, str | None, str]]:
        """Return what is wrong with the file as SQLite sees it, after a walk through all of its pages.

        Each with its page and with the table or index of SQLite's, as far as they are known.
        """
        try:
            found = [str(row[0]) for row in self._connection.execute(f"PRAGMA integrity_check({most:d})")]
        except apsw.Error as error:
            return self._spoilt(most) or [(None, None, str(store_error(error)))]
        return [] if found == ["ok"] else [(None, None, line) for text in found for line in text.splitlines()]

    def _spoilt(self, most: int) -> list[tuple[int | None, str | None, str]]:
        """Return the pages that cannot be read; of an encrypted file, the tables and indexes they are of."""
        pages: list[tuple[int | None, str | None]] = []
        with suppress(apsw.Error):
            if has_checksums(self._connection):
                pages += spoilt_pages(self._connection, most)
        if not pages:
            pages += [(None, tree) for tree in spoilt_trees(self._connection)]
        return [(page, tree, "a page is not as it was written") for page, tree in pages]

    @translated
    def create_rack(self, number: int) -> None:
        """Make the place of a new table."""
        self._cursor.execute(
            f"CREATE TABLE rack{number} (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
            " size INTEGER NOT NULL, sum INTEGER NOT NULL, item BLOB NOT NULL)"
        )

    @translated
    def drop_rack(self, number: int) -> None:
        """Remove a table's place and all that is in it."""
        self._cursor.execute(f"DROP TABLE rack{number}")

    @translated
    def add_column(self, number: int, column: str, *, ordered: bool) -> None:
        """Add a column to a rack; over an ordered one lies a partial index that holds the key too.

        The key in the index makes the order total, so a page can go on after any pair, there or gone.
        """
        self._cursor.execute(
            f"ALTER TABLE rack{number} ADD COLUMN {column} {'BLOB' if ordered else 'INTEGER'}"
        )
        if ordered:
            self._cursor.execute(
                f"CREATE INDEX rack{number}_{column} ON rack{number} ({column}, key)"
                f" WHERE {column} IS NOT NULL"
            )

    @translated
    def drop_column(self, number: int, column: str, *, ordered: bool) -> None:
        """Let go of a column: its index is dropped at once.

        The values stay in the rows, unread, because removing them would rewrite every row of the table. That
        is done only where dropped columns have gathered, long before there are more than SQLite allows.
        """
        if ordered:
            self._cursor.execute(f"DROP INDEX rack{number}_{column}")
        columns = self._cursor.execute(f"SELECT count(*) FROM pragma_table_info('rack{number}')").get
        if columns > _COLUMNS_MAX:
            self._cursor.execute(f"ALTER TABLE rack{number} DROP COLUMN {column}")

    def log(self, number: int) -> SqliteLog:
        """Return the log of this number, made earlier."""
        return SqliteLog(self._cursor, number)

    @translated
    def create_log(self, number: int) -> None:
        """Make the log of a rack, empty."""
        self._cursor.execute(
            f"CREATE TABLE log{number} (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, key BLOB NOT NULL,"
            " mark INTEGER NOT NULL, old BLOB, new BLOB)"
        )

    @translated
    def drop_log(self, number: int) -> None:
        """Remove a log and all that is in it."""
        self._cursor.execute(f"DROP TABLE log{number}")

    @translated
    def log_numbers(self) -> list[int]:
        """Return the numbers of the logs there are."""
        found = self._cursor.execute(
            "SELECT substr(name, 4) FROM sqlite_schema WHERE type = 'table' AND name GLOB 'log[0-9]*'"
        )
        return sorted(int(cast("str", name)) for (name,) in found.fetchall())

    @translated
    def put_record(self, kind: str, name: str, data: bytes, due_s: float | None = None) -> None:
        """Keep a record, in place of one of this kind and name."""
        self._cursor.execute("INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?)", (kind, name, data, due_s))

    @translated
    def get_record(self, kind: str, name: str) -> bytes | None:
        """Return a record's data."""
        found = self._cursor.execute("SELECT data FROM record WHERE kind = ? AND name = ?", (kind, name)).get
        return cast("bytes | None", found)

    @translated
    def delete_record(self, kind: str, name: str) -> None:
        """Remove a record if it is there."""
        self._cursor.execute("DELETE FROM record WHERE kind = ? AND name = ?", (kind, name))

    @translated
    def records(self, kind: str) -> Iterator[tuple[str, bytes]]:
        """Return the name and data of all records of a kind, by name."""
        found = self._cursor.execute("SELECT name, data FROM record WHERE kind = ? ORDER BY name", (kind,))
        return iter(cast("list[tuple[str, bytes]]", found.fetchall()))

    @translated
    def delete_due(self, kind: str, now_s: float) -> int:
        """Remove the records of a kind that are due, and return how many they were."""
        self._cursor.execute("DELETE FROM record WHERE kind = ? AND due <= ?", (kind, now_s))
        return self._connection.changes()

    @property
    def open_transaction(self) -> bool:
        """Tell whether something was begun and neither committed nor rolled back."""
        return self._connection.in_transaction

    @translated
    def begin(self) -> None:
        """Start a transaction."""
        self._cursor.execute("BEGIN IMMEDIATE")

    @translated
    def commit(self) -> None:
        """Make the transaction durable, then fold a long log into the file.

        A fold that fails leaves the commit standing, so it is told by `trouble` and not by an error here.
        """
        self._cursor.execute("COMMIT")
        if self._wal_pages >= _CHECKPOINT_PAGES:
            self._wal_pages = 0
            try:
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            except apsw.FullError:
                pass  # the log holds it all, and is folded in when there is room
            except apsw.Error as error:
                self.trouble = store_error(error)

    def rollback(self) -> None:
        """Undo the transaction; a failure here leaves nothing that a next opening would see."""
        if self._connection.in_transaction:
            try:
                self._cursor.execute("ROLLBACK")
            except apsw.Error as error:
                if self._connection.in_transaction:
                    raise store_error(error) from error

    def close(self) -> None:
        """Let go of the file, with the log folded into it where that works."""
        try:
            self._connection.close()
        except apsw.Error as error:
            raise store_error(error) from error
