"""Store: tables, change logs and records in one SQLite database with one connection.

`SqliteTableStore` holds the rows of one of its tables, with SQL statements that are built once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import compress, islice
from operator import ne
from typing import Any, cast
from zlib import crc32

import apsw

from tavola.engine.storage.change_log import ChangeLog, partition_hash
from tavola.engine.storage.errors import StoreError, damage_error, store_error, translate_errors
from tavola.engine.storage.file_format import FORMAT, check_format, needs_upgrade, upgrade_format
from tavola.engine.storage.files import (
    connect_file,
    find_damaged_pages,
    find_damaged_trees,
    has_checksums,
    opening_error,
    set_up_file,
)
from tavola.engine.storage.open_file import OpenFile
from tavola.engine.storage.table_store import Entry, ItemPage, ItemRow, KeyedRow, StoredRow
from tavola.engine.storage.wal_binding import read_format, write_format
from tavola.keys import Bounds

_COLUMNS_MAX = 256
_SYNC = {"full": "FULL", "off": "OFF"}
SQL_TABLE_PREFIX = "rack"  # part of the file format
_CHUNK_ROWS = 64
_TOP = b"\xff" * 5  # above every key: the fifth byte of a key is the high byte of a length below 2,049


def sql_table(number: int) -> str:
    """Return the name of the SQL table with a table's rows."""
    return f"{SQL_TABLE_PREFIX}{number}"


class Store:
    """Tables, change logs and records in one SQLite database, changed in transactions by one writer."""

    def __init__(self, connection: apsw.Connection, *, in_memory: bool, syncs: bool) -> None:
        self.in_memory = in_memory
        self.syncs = syncs  # a commit waits for the disk
        self._connection = connection
        self._cursor = connection.cursor()
        hash_function: Any = partition_hash  # of the one argument that the statements of `ChangeLog` pass
        connection.create_scalar_function("partition_hash", hash_function, 1, deterministic=True)
        self._file = None if in_memory else OpenFile(connection)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None,
        *,
        sync: str,
        cache_mb: int,
        key: str | None = None,
        check_pages: bool = True,
        upgrade: bool = True,
    ) -> Store:
        """Open or create the store at `path`, or one in memory; raise StoreInUse if the file is open elsewhere.

        With a key the file is encrypted and opens with that key only. With `check_pages`, a small file is checked in full.
        A file of an older format is upgraded, unless the caller does it (see `upgrade_for_now`).
        """
        if sync not in _SYNC:
            raise StoreError(f"sync must be one of {', '.join(_SYNC)}, not {sync!r}")
        connection: apsw.Connection | None = None
        try:
            if path is None:
                connection = apsw.Connection(":memory:")
            else:
                connection = connect_file(os.fspath(path), key)
                set_up_file(connection, _SYNC[sync], key, check_pages=check_pages)
            connection.pragma("cache_size", -1024 * cache_mb)
            connection.pragma("temp_store", 2)
            store = cls(connection, in_memory=path is None, syncs=path is not None and sync == "full")
            store._prepare(upgrade=upgrade)
            return store
        except (apsw.Error, StoreError) as error:
            if connection is not None:
                # Otherwise the file would stay locked for the next attempt.
                with suppress(apsw.Error):
                    connection.close(True)
            raise opening_error(path, error, encrypted=key is not None) from error

    @translate_errors
    def _prepare(self, *, upgrade: bool) -> None:
        if read_format(self._connection) == 0:
            self._cursor.execute("BEGIN IMMEDIATE")
            self._cursor.execute(
                "CREATE TABLE record (kind TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL,"
                " due REAL, PRIMARY KEY (kind, name)) WITHOUT ROWID"
            )
            self._cursor.execute("CREATE INDEX record_due ON record (kind, due) WHERE due IS NOT NULL")
            write_format(self._connection, FORMAT)
            self._cursor.execute("COMMIT")
            return
        check_format(self._connection)
        if upgrade and needs_upgrade(self._connection):
            if self._file is not None:
                self._file.begin_wal()
            upgrade_format(self._connection)
            if self._file is not None:
                self._file.note_checkpoint()

    @translate_errors
    def upgrade_for_now(self) -> None:
        """Bring a store of an older format to the present one within the open transaction, which is not committed."""
        upgrade_format(self._connection, commits=False)

    @property
    def trouble(self) -> StoreError | None:
        """Why no more writes are possible after a durable commit."""
        return None if self._file is None else self._file.trouble

    def table(self, number: int, columns: Sequence[str]) -> SqliteTableStore:
        """Return the rows of the table with this number, which has these columns in this order."""
        return SqliteTableStore(
            self._connection, self._cursor, number, columns, has_checksums=not self.in_memory
        )

    def problems(self, count_max: int) -> list[tuple[int | None, str | None, str]]:
        """Check all pages of the file and return what SQLite finds wrong, at most `count_max` problems.

        Each problem has its page and its SQLite table or index, as far as they are known.
        """
        try:
            messages = [
                str(row[0]) for row in self._connection.execute(f"PRAGMA integrity_check({count_max:d})")
            ]
        except apsw.Error as error:
            return self._damaged_pages(count_max) or [(None, None, str(store_error(error)))]
        return (
            []
            if messages == ["ok"]
            else [(None, None, line) for text in messages for line in text.splitlines()]
        )

    def _damaged_pages(self, count_max: int) -> list[tuple[int | None, str | None, str]]:
        """Return the pages that cannot be read; for an encrypted file, the tables and indexes that contain them."""
        pages: list[tuple[int | None, str | None]] = []
        with suppress(apsw.Error):
            if has_checksums(self._connection):
                pages += find_damaged_pages(self._connection, count_max)
        if not pages:
            pages += [(None, tree) for tree in find_damaged_trees(self._connection)]
        return [(page, tree, "a page does not have its written content") for page, tree in pages]

    @translate_errors
    def create_table(self, number: int) -> None:
        """Create the rows of a new table, without columns."""
        self._cursor.execute(
            f"CREATE TABLE {sql_table(number)} (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
            " size INTEGER NOT NULL, sum INTEGER NOT NULL, item BLOB NOT NULL)"
        )

    @translate_errors
    def drop_table(self, number: int) -> None:
        """Remove a table with all of its rows."""
        self._cursor.execute(f"DROP TABLE {sql_table(number)}")

    @translate_errors
    def add_column(self, number: int, column: str, *, ordered: bool) -> None:
        """Add a column, empty in every row, to a table; an `ordered` one gets a partial index that includes the key.

        The key makes the order total, so a page can start after any pair of entry and key, even a deleted one.
        """
        table = sql_table(number)
        self._cursor.execute(f"ALTER TABLE {table} ADD COLUMN {column} {'BLOB' if ordered else 'INTEGER'}")
        if ordered:
            self._cursor.execute(
                f"CREATE INDEX {table}_{column} ON {table} ({column}, key) WHERE {column} IS NOT NULL"
            )

    @translate_errors
    def drop_column(self, number: int, column: str, *, ordered: bool) -> None:
        """Drop a column: its index at once, its values later. The column's name is never used again.

        Removing the values would rewrite every row of the table, so they stay, unread, until many dropped columns
        have accumulated, long before SQLite's limit.
        """
        table = sql_table(number)
        if ordered:
            self._cursor.execute(f"DROP INDEX {table}_{column}")
        columns = self._cursor.execute(f"SELECT count(*) FROM pragma_table_info('{table}')").get
        if columns > _COLUMNS_MAX:
            self._cursor.execute(f"ALTER TABLE {table} DROP COLUMN {column}")

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
        numbers = self._cursor.execute(
            "SELECT substr(name, 4) FROM sqlite_schema WHERE type = 'table' AND name GLOB 'log[0-9]*'"
        )
        return sorted(int(cast("str", name)) for (name,) in numbers.fetchall())

    def put_record(self, kind: str, name: str, data: bytes, due_s: float | None = None) -> None:
        """Store a record, replacing the one of this kind and name."""
        try:
            self._cursor.execute(
                "INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?)", (kind, name, data, due_s)
            )
        except apsw.Error as error:
            raise store_error(error, self._connection) from error

    @translate_errors
    def get_record(self, kind: str, name: str) -> bytes | None:
        """Return the data of a record, or None."""
        data = self._cursor.execute("SELECT data FROM record WHERE kind = ? AND name = ?", (kind, name)).get
        return cast("bytes | None", data)

    @translate_errors
    def delete_record(self, kind: str, name: str) -> None:
        """Remove a record if it exists."""
        self._cursor.execute("DELETE FROM record WHERE kind = ? AND name = ?", (kind, name))

    @translate_errors
    def records(self, kind: str) -> Iterator[tuple[str, bytes]]:
        """Return the name and data of all records of a kind, ordered by name."""
        rows = self._cursor.execute("SELECT name, data FROM record WHERE kind = ? ORDER BY name", (kind,))
        return iter(cast("list[tuple[str, bytes]]", rows.fetchall()))

    @translate_errors
    def delete_due(self, kind: str, store_s: float) -> int:
        """Remove the records of a kind that are due at a store time, and return their number."""
        self._cursor.execute("DELETE FROM record WHERE kind = ? AND due <= ?", (kind, store_s))
        return self._connection.changes()

    @property
    def open_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._connection.in_transaction

    def begin(self, *, will_commit: bool = True) -> None:
        """Start a transaction; one that will be rolled back leaves the file as it is, to the byte."""
        try:
            if will_commit and self._file is not None and not self._file.wal_is_bound:
                self._file.begin_wal()
            self._cursor.execute("BEGIN IMMEDIATE")
        except apsw.Error as error:
            raise store_error(error, self._connection) from error

    def commit(self) -> None:
        """Make the transaction durable, or roll it back and raise; then checkpoint a long WAL.

        If the checkpoint fails, the commit is durable all the same, so the error goes to `trouble` and is not raised.
        """
        if self._file is not None:
            self._file.check_sometimes()
        try:
            self._cursor.execute("COMMIT")
        except apsw.Error as error:
            raise store_error(error, self._connection) from error
        if self._file is not None:
            self._file.checkpoint_if_long()

    def check_file(self) -> None:
        """Raise StoreReplaced if another program deleted, replaced or changed the files of this store."""
        if self._file is not None:
            self._file.check()

    def rollback(self) -> None:
        """Roll the transaction back; even if that fails, a store that is opened again does not have it."""
        if self._connection.in_transaction:
            try:
                self._cursor.execute("ROLLBACK")
            except apsw.Error as error:
                if self._connection.in_transaction:
                    raise store_error(error, self._connection) from error

    def close(self) -> None:
        """Close the file, with the WAL moved into it if possible and safe; uncommitted changes are lost."""
        if self._file is not None:
            self._file.close()
        try:
            self._connection.close()
        except apsw.Error as error:
            raise store_error(error) from error


class SqliteTableStore:
    """The current rows of one table; see `TableStore` for the methods that are not explained here."""

    def __init__(
        self,
        connection: apsw.Connection,
        cursor: apsw.Cursor,
        number: int,
        columns: Sequence[str],
        *,
        has_checksums: bool,
    ) -> None:
        self._connection = connection
        self._execute = cursor.execute
        self._execute_many = cursor.executemany
        self._columns = tuple(columns)
        self._has_checksums = has_checksums
        self._table = table = sql_table(number)
        listed = "".join(f", {column}" for column in columns)
        marks = ", ?" * len(columns)
        self._get = f"SELECT item, size, sum FROM {table} WHERE key = ?"
        self._find = f"SELECT id, size, item, sum{listed} FROM {table} WHERE key = ?"
        self._insert = f"INSERT INTO {table} (key, size, sum, item{listed}) VALUES (?, ?, ?, ?{marks})"
        self._update = f"UPDATE {table} SET size = ?, sum = ?, item = ? WHERE id = ?"
        self._delete = f"DELETE FROM {table} WHERE id = ?"
        self._walk = f"SELECT id, size, item, sum{listed} FROM {table} WHERE id > ? ORDER BY id LIMIT ?"
        self._fill = f"UPDATE {table} SET {', '.join(f'{c} = ?' for c in columns)} WHERE id = ?"
        self._updates: dict[tuple[bool, ...], str] = {}
        select = f"SELECT item, size, sum FROM {table} WHERE"
        self._page = f"{select} key >= ? AND key < ? ORDER BY key LIMIT ?"
        self._page_back = f"{select} key >= ? AND key < ? ORDER BY key DESC LIMIT ?"
        self._index_pages: dict[tuple[str, str, bool], str] = {}
        self._rows = f"SELECT key, size, item, sum{listed} FROM {table} WHERE"

    def get(self, key: bytes) -> ItemRow | None:
        """Return the item and size of the row with this key."""
        try:
            row = self._execute(self._get, (key,)).get
            if self._has_checksums and row is not None:
                _check_checksum(row[0], row[2])
            return row  # type: ignore[no-any-return]  # as selected
        except apsw.Error as error:
            raise store_error(error, self._connection) from error

    def find(self, key: bytes) -> StoredRow | None:
        """Return the whole row with this key."""
        try:
            row = self._execute(self._find, (key,)).get
            if self._has_checksums and row is not None:
                _check_checksum(row[2], row[3])
            return row  # type: ignore[no-any-return]  # as selected
        except apsw.Error as error:
            raise store_error(error, self._connection) from error

    def insert(self, key: bytes, size: int, item: bytes, entries: Sequence[Entry]) -> None:
        """Add a row whose key does not exist yet."""
        try:
            self._execute(self._insert, (key, size, self._checksum(item), item, *entries))
        except apsw.Error as error:
            raise store_error(error, self._connection) from error

    def replace(
        self, row: int, size: int, item: bytes, old: Sequence[Entry], entries: Sequence[Entry]
    ) -> None:
        """Change a row; unchanged columns are left out of the statement, so their indexes are not touched."""
        try:
            if old == entries:
                self._execute(self._update, (size, self._checksum(item), item, row))
                return
            changed = tuple(map(ne, old, entries))
            statement = self._updates.get(changed) or self._make_update(changed)
            self._execute(statement, (size, self._checksum(item), item, *compress(entries, changed), row))
        except apsw.Error as error:
            raise store_error(error, self._connection) from error

    def _checksum(self, item: bytes) -> int:
        return crc32(item) if self._has_checksums else 0

    def _check_rows(self, rows: list[ItemRow]) -> None:
        if self._has_checksums:
            for row in rows:
                _check_checksum(row[0], row[2])

    def _make_update(self, changed: tuple[bool, ...]) -> str:
        sets = "".join(
            f", {column} = ?" for column, differs in zip(self._columns, changed, strict=True) if differs
        )
        statement = f"UPDATE {self._table} SET size = ?, sum = ?, item = ?{sets} WHERE id = ?"
        if len(self._updates) < 256:
            self._updates[changed] = statement
        return statement

    @translate_errors
    def fill(self, row: int, entries: Sequence[Entry]) -> None:
        """Set the entries of a row and leave its item unchanged."""
        self._execute(self._fill, (*entries, row))

    @translate_errors
    def delete(self, row: int) -> None:
        """Remove a row."""
        self._execute(self._delete, (row,))

    def page(
        self, bounds: Bounds, limit: int, budget: int, *, after: bytes | None, reverse: bool
    ) -> ItemPage:
        """Return rows within the bounds in key order, after the key `after`."""
        lower, upper = bounds.lower, _TOP if bounds.upper is None else bounds.upper
        if reverse:
            bound = upper if after is None else min(upper, after)
            return self._read(self._page_back, (lower, bound, limit), limit, budget)
        if after is not None:
            lower = max(lower, after + b"\x00")
        return self._read(self._page, (lower, upper, limit), limit, budget)

    def index_page(
        self,
        column: str,
        size_column: str,
        bounds: Bounds,
        limit: int,
        budget: int,
        *,
        after: tuple[bytes, bytes] | None,
        reverse: bool,
    ) -> ItemPage:
        """Return the items and index sizes of rows, ordered by an index column and then by key, after a pair.

        A following page reads the rest of the pair's own index key first, then the index keys after it. Each is one
        range of the SQLite index; a comparison of pairs would scan from the start again.
        """
        lower, upper = bounds.lower, _TOP if bounds.upper is None else bounds.upper
        if after is None:
            statement = self._index_page(column, size_column, "between", reverse)
            return self._read(statement, (lower, upper, limit), limit, budget)
        entry, key = after
        statement = self._index_page(column, size_column, "ties", reverse)
        rows, total = self._read(statement, (entry, key, limit), limit, budget)
        if len(rows) == limit or total >= budget:
            return rows, total
        lower, upper = (lower, entry) if reverse else (entry + b"\x00", upper)
        rest = limit if limit < 0 else limit - len(rows)
        statement = self._index_page(column, size_column, "between", reverse)
        more, further = self._read(statement, (lower, upper, rest), rest, budget - total)
        return rows + more, total + further

    def _index_page(self, column: str, size_column: str, part: str, reverse: bool) -> str:
        statement = self._index_pages.get((column, part, reverse))
        if statement is None:
            descending = " DESC" if reverse else ""
            if part == "ties":
                where = f"{column} = ? AND key {'<' if reverse else '>'} ? ORDER BY key{descending}"
            else:
                where = f"{column} >= ? AND {column} < ? ORDER BY {column}{descending}, key{descending}"
            statement = f"SELECT item, {size_column}, sum FROM {self._table} WHERE {where} LIMIT ?"
            self._index_pages[column, part, reverse] = statement
        return statement

    def _read(self, statement: str, parameters: tuple[bytes | int, ...], limit: int, budget: int) -> ItemPage:
        """Return rows and the sum of their sizes, up to the row that reaches the budget.

        Rows are read in chunks, so that memory stays near the budget however many rows match.
        """
        try:
            if 0 <= limit <= _CHUNK_ROWS:
                chunk: Any = self._execute(statement, parameters).fetchall()
                self._check_rows(chunk)
                return _cut_at_budget(chunk, 0, budget)
            cursor = self._connection.execute(statement, parameters)
            rows: list[ItemRow] = []
            total = 0
            while total < budget:
                chunk = list(islice(cursor, _CHUNK_ROWS))
                self._check_rows(chunk)
                within, total = _cut_at_budget(chunk, total, budget)
                rows += within
                if len(chunk) < _CHUNK_ROWS:
                    break
            cursor.close(True)
            return rows, total
        except apsw.Error as error:
            raise store_error(error, self._connection) from error

    @translate_errors
    def rows(self, bounds: Bounds, limit: int, *, reverse: bool = False) -> list[KeyedRow]:
        """Return up to `limit` whole rows within the bounds, in key order."""
        upper = _TOP if bounds.upper is None else bounds.upper
        descending = " DESC" if reverse else ""
        statement = f"{self._rows} key >= ? AND key < ? ORDER BY key{descending} LIMIT ?"
        return self._whole_rows(statement, (bounds.lower, upper, limit))

    @translate_errors
    def index_rows(
        self, column: str, bounds: Bounds, limit: int, *, after: tuple[bytes, bytes] | None, reverse: bool
    ) -> list[KeyedRow]:
        """Return up to `limit` whole rows ordered by an index column and then by key, after the pair `after`."""
        lower, upper = bounds.lower, _TOP if bounds.upper is None else bounds.upper
        descending = " DESC" if reverse else ""
        rows: list[KeyedRow] = []
        if after is not None:
            entry, key = after
            past = "<" if reverse else ">"
            statement = f"{self._rows} {column} = ? AND key {past} ? ORDER BY key{descending} LIMIT ?"
            rows = self._whole_rows(statement, (entry, key, limit))
            lower, upper = (lower, entry) if reverse else (entry + b"\x00", upper)
        if len(rows) < limit:
            statement = (
                f"{self._rows} {column} >= ? AND {column} < ?"
                f" ORDER BY {column}{descending}, key{descending} LIMIT ?"
            )
            rows += self._whole_rows(statement, (lower, upper, limit - len(rows)))
        return rows

    def _whole_rows(self, statement: str, parameters: tuple[bytes | int, ...]) -> list[KeyedRow]:
        rows = cast("list[KeyedRow]", self._execute(statement, parameters).fetchall())
        if self._has_checksums:
            for row in rows:
                _check_checksum(row[2], row[3])
        return rows

    @translate_errors
    def insert_rows(self, rows: Sequence[KeyedRow]) -> None:
        """Add rows whose keys do not exist yet; their checksums are computed again."""
        checksum = self._checksum
        self._execute_many(
            self._insert, [(row[0], row[1], checksum(row[2]), row[2], *row[4:]) for row in rows]
        )

    @translate_errors
    def total(self, column: str, size_column: str, bounds: Bounds) -> int:
        """Return the sum of a size column over the rows within bounds of a column."""
        upper = _TOP if bounds.upper is None else bounds.upper
        statement = f"SELECT total({size_column}) FROM {self._table} WHERE {column} >= ? AND {column} < ?"
        return int(self._execute(statement, (bounds.lower, upper)).get)

    @translate_errors
    def due(self, column: str, after: int, upto: int, limit: int) -> list[bytes]:
        """Return keys of rows whose number in a column is greater than `after` and at most `upto`, lowest first."""
        statement = (
            f"SELECT key FROM {self._table} WHERE {column} > ? AND {column} <= ? ORDER BY {column} LIMIT ?"
        )
        rows: Any = self._execute(statement, (after, upto, limit)).fetchall()
        return [key for (key,) in rows]

    @translate_errors
    def inspect(self, after_row: int, limit: int) -> list[tuple[int, bool, KeyedRow]]:
        """Return rows in the order of their ids, unchecked, each with its id and whether its item is undamaged."""
        statement = self._rows.replace("SELECT key", "SELECT id, key", 1) + " id > ? ORDER BY id LIMIT ?"
        rows: Any = self._execute(statement, (after_row, limit)).fetchall()
        return [
            (
                row[0],
                isinstance(row[3], bytes) and (not self._has_checksums or crc32(row[3]) == row[4]),
                row[1:],
            )
            for row in rows
        ]

    def entries(self, column: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield the key and entry of every row that has an entry in a column."""
        statement = f"SELECT key, {column} FROM {self._table} WHERE {column} IS NOT NULL"
        try:
            yield from cast("Iterator[tuple[bytes, bytes]]", self._connection.execute(statement))
        except apsw.Error as error:
            raise store_error(error, self._connection) from error

    @translate_errors
    def walk(self, after_row: int, limit: int) -> list[StoredRow]:
        """Return up to `limit` rows in the order of their ids, after one id."""
        rows = cast("list[StoredRow]", self._execute(self._walk, (after_row, limit)).fetchall())
        if self._has_checksums:
            for row in rows:
                _check_checksum(row[2], row[3])
        return rows


def _cut_at_budget(rows: list[ItemRow], total: int, budget: int) -> ItemPage:
    """Cut the rows after the one that brings the total to the budget; return them and the total."""
    reached = total + sum([row[1] for row in rows])
    if reached < budget:
        return rows, reached
    for count, row in enumerate(rows, start=1):
        total += row[1]
        if total >= budget:
            return rows[:count], total
    raise AssertionError("the sum of the sizes reached the budget")


def _check_checksum(item: bytes, sum_: int) -> None:
    if crc32(item) != sum_:
        raise damage_error("the checksum of an item does not match")
