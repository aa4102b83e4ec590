"""Store in SQLite, in memory or in one file, through apsw; the only SQL in the project.

One table of rows for a rack: the ordered key beside the item, and a column for each index key with a
partial index over it. An index entry refers to its row and never copies the item, so a write touches an
index only when its key changes. Every page of a file carries a checksum (SQLite's checksum VFS), so a
damaged page is an error and never an answer; and since a page's checksum does not know the page's place,
every row of a file carries one of its item too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import wraps
from itertools import compress, islice
from operator import ne
from typing import Any, ParamSpec, TypeVar, cast
from zlib import crc32

import apsw
import apsw.sqlite_extra

from tavola.engine.storage.store import (
    Entry,
    Found,
    Line,
    Lines,
    StoreDamaged,
    StoreError,
    StoreFailed,
    StoreFull,
    StoreInUse,
)
from tavola.keys import Bounds

_APPLICATION_ID = 0x7461766F  # "tavo", in the file's header
_FORMAT = 1
_CHECKSUM_VFS = "cksmvfs"
_CHECKSUM_BYTES = 8
_PAGE_BYTES = 4096
_CHECKPOINT_PAGES = 4096
_CHUNK_ROWS = 64
_OTHERS_LEAVE_MS = 2000
_COLUMNS_MAX = 256
_CHECKED_BYTES_MAX = 8 * 1024 * 1024  # a store that is walked whole when it is opened, some 20 ms
_TOP = b"\xff" * 5  # above every key: the fifth byte of a key is the high byte of a length below 2,049
_SYNC = {"full": "FULL", "off": "OFF"}

# What says that a write or sync did not reach the disk; any other error says that we asked wrongly.
_DISK_ERRORS = (apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError)

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _translated(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make apsw's errors the store's own."""

    @wraps(method)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(*args, **kwargs)
        except apsw.Error as error:
            raise _store_error(error) from error

    return call


def _store_error(error: apsw.Error) -> StoreError:
    extended = getattr(error, "extendedresult", 0)
    if isinstance(error, apsw.CorruptError | apsw.NotADBError) or extended == apsw.SQLITE_IOERR_DATA:
        return _damaged(
            "a page is not as it was written" if extended == apsw.SQLITE_IOERR_DATA else str(error)
        )
    if isinstance(error, apsw.FullError):
        return StoreFull("there is no room left for the store; free some space and try again")
    if isinstance(error, _DISK_ERRORS):
        return StoreFailed(f"the store failed ({error}); no write is accepted until it is opened again")
    return StoreError(f"the store refused what it was asked ({error}); nothing was changed")


def _within(lines: list[Line], total: int, budget: int) -> Lines:
    """Return the lines up to the one that brings the total to the budget, and the total then."""
    reached = total + sum([line[1] for line in lines])
    if reached < budget:
        return lines, reached
    for place, line in enumerate(lines):
        total += line[1]
        if total >= budget:
            return lines[: place + 1], total
    raise AssertionError("the sum of the sizes reached the budget")


def _damaged(how: str) -> StoreDamaged:
    return StoreDamaged(
        f"the store is damaged ({how}); what is damaged is not served: restore it from a backup"
    )


def _check_sum(item: bytes, sum_: int) -> None:
    if crc32(item) != sum_:
        raise _damaged("an item is not as it was written")


class SqliteRack:
    """The rows of one table, as statements prepared once."""

    def __init__(
        self,
        connection: apsw.Connection,
        cursor: apsw.Cursor,
        number: int,
        columns: Sequence[str],
        *,
        summed: bool,
    ) -> None:
        self._connection = connection
        self._execute = cursor.execute
        self._columns = tuple(columns)
        self._summed = summed
        self._table = table = f"rack{number}"
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

    def get(self, key: bytes) -> Line | None:
        """Return item and size of the row with this key."""
        try:
            line = self._execute(self._get, (key,)).get
            if self._summed and line is not None:
                _check_sum(line[0], line[2])
            return line  # type: ignore[no-any-return]  # as selected
        except apsw.Error as error:
            raise _store_error(error) from error

    def find(self, key: bytes) -> Found | None:
        """Return all there is of the row with this key."""
        try:
            found = self._execute(self._find, (key,)).get
            if self._summed and found is not None:
                _check_sum(found[2], found[3])
            return found  # type: ignore[no-any-return]  # as selected
        except apsw.Error as error:
            raise _store_error(error) from error

    def insert(self, key: bytes, size: int, item: bytes, entries: Sequence[Entry]) -> None:
        """Add a row whose key is not there yet."""
        try:
            self._execute(self._insert, (key, size, self._sum(item), item, *entries))
        except apsw.Error as error:
            raise _store_error(error) from error

    def replace(
        self, row: int, size: int, item: bytes, old: Sequence[Entry], entries: Sequence[Entry]
    ) -> None:
        """Change a row; columns that stay as they were are left out, and so cost nothing."""
        try:
            if old == entries:
                self._execute(self._update, (size, self._sum(item), item, row))
                return
            changed = tuple(map(ne, old, entries))
            statement = self._updates.get(changed) or self._make_update(changed)
            self._execute(statement, (size, self._sum(item), item, *compress(entries, changed), row))
        except apsw.Error as error:
            raise _store_error(error) from error

    def _sum(self, item: bytes) -> int:
        return crc32(item) if self._summed else 0

    def _check(self, lines: list[Line]) -> None:
        if self._summed:
            for line in lines:
                _check_sum(line[0], line[2])

    def _make_update(self, changed: tuple[bool, ...]) -> str:
        sets = "".join(
            f", {column} = ?" for column, differs in zip(self._columns, changed, strict=True) if differs
        )
        statement = f"UPDATE {self._table} SET size = ?, sum = ?, item = ?{sets} WHERE id = ?"
        if len(self._updates) < 256:
            self._updates[changed] = statement
        return statement

    @_translated
    def fill(self, row: int, entries: Sequence[Entry]) -> None:
        """Set a row's entries and leave the rest of it."""
        self._execute(self._fill, (*entries, row))

    @_translated
    def delete(self, row: int) -> None:
        """Remove a row."""
        self._execute(self._delete, (row,))

    def page(self, bounds: Bounds, limit: int, budget: int, *, after: bytes | None, reverse: bool) -> Lines:
        """Return rows between the bounds by key, past the key `after`."""
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
    ) -> Lines:
        """Return item and size column of rows by an index column and then the key, past a pair.

        A page that goes on reads the rest of the pair's own index key first, then what follows: each is one
        range of the SQLite index, where a comparison of pairs would walk from the start again.
        """
        lower, upper = bounds.lower, _TOP if bounds.upper is None else bounds.upper
        if after is None:
            statement = self._index_page(column, size_column, "between", reverse)
            return self._read(statement, (lower, upper, limit), limit, budget)
        entry, key = after
        statement = self._index_page(column, size_column, "ties", reverse)
        lines, total = self._read(statement, (entry, key, limit), limit, budget)
        if len(lines) == limit or total >= budget:
            return lines, total
        lower, upper = (lower, entry) if reverse else (entry + b"\x00", upper)
        rest = limit if limit < 0 else limit - len(lines)
        statement = self._index_page(column, size_column, "between", reverse)
        more, further = self._read(statement, (lower, upper, rest), rest, budget - total)
        return lines + more, total + further

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

    def _read(self, statement: str, given: tuple[bytes | int, ...], limit: int, budget: int) -> Lines:
        """Return rows and the sum of their sizes, up to the row with which it reaches the budget.

        Rows come in chunks, so that what is held stays near the budget however many there are.
        """
        try:
            if 0 <= limit <= _CHUNK_ROWS:
                chunk: Any = self._execute(statement, given).fetchall()
                self._check(chunk)
                return _within(chunk, 0, budget)
            cursor = self._connection.execute(statement, given)
            lines: list[Line] = []
            total = 0
            while total < budget:
                chunk = list(islice(cursor, _CHUNK_ROWS))
                self._check(chunk)
                kept, total = _within(chunk, total, budget)
                lines += kept
                if len(chunk) < _CHUNK_ROWS:
                    break
            cursor.close(True)
            return lines, total
        except apsw.Error as error:
            raise _store_error(error) from error

    @_translated
    def total(self, column: str, size_column: str, bounds: Bounds) -> int:
        """Return the sum of a size column over the rows between bounds of a column."""
        upper = _TOP if bounds.upper is None else bounds.upper
        statement = f"SELECT total({size_column}) FROM {self._table} WHERE {column} >= ? AND {column} < ?"
        return int(self._execute(statement, (bounds.lower, upper)).get)

    @_translated
    def walk(self, after_row: int, limit: int) -> list[Found]:
        """Return up to `limit` rows in order of their ids, past one id."""
        rows = cast("list[Found]", self._execute(self._walk, (after_row, limit)).fetchall())
        if self._summed:
            for row in rows:
                _check_sum(row[2], row[3])
        return rows


class SqliteStore:
    """Racks and records in one SQLite database with one connection."""

    def __init__(self, connection: apsw.Connection, *, in_memory: bool) -> None:
        self.in_memory = in_memory
        self.trouble: StoreError | None = None
        self._connection = connection
        self._cursor = connection.cursor()
        self._wal_pages = 0
        if not in_memory:
            connection.wal_autocheckpoint(0)
            connection.set_wal_hook(self._committed)

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None, *, sync: str, cache_mb: int) -> SqliteStore:
        """Open or make the store at `path`, or one in memory; refuse a file that somebody has open."""
        if sync not in _SYNC:
            raise StoreError(f"sync must be one of {', '.join(_SYNC)}, not {sync!r}")
        connection: apsw.Connection | None = None
        try:
            if path is None:
                connection = apsw.Connection(":memory:")
            else:
                connection = _connect(os.fspath(path))
                _set_up_file(connection, _SYNC[sync])
            connection.pragma("cache_size", -1024 * cache_mb)
            connection.pragma("temp_store", 2)
            store = cls(connection, in_memory=path is None)
            store._prepare()
            return store
        except (apsw.Error, StoreError) as error:
            if connection is not None:
                # Otherwise the file would stay locked for whoever tries again.
                with suppress(apsw.Error):
                    connection.close(True)
            raise _opening_error(path, error) from error

    @_translated
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
        elif version > _FORMAT:
            raise StoreError("the store was written by a newer Tavola; open it with that version or later")

    def _committed(self, _: apsw.Connection, __: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def rack(self, number: int, columns: Sequence[str]) -> SqliteRack:
        """Return the rack of this number, with these columns in this order."""
        return SqliteRack(self._connection, self._cursor, number, columns, summed=not self.in_memory)

    @_translated
    def create_rack(self, number: int) -> None:
        """Make the place of a new table."""
        self._cursor.execute(
            f"CREATE TABLE rack{number} (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
            " size INTEGER NOT NULL, sum INTEGER NOT NULL, item BLOB NOT NULL)"
        )

    @_translated
    def drop_rack(self, number: int) -> None:
        """Remove a table's place and all that is in it."""
        self._cursor.execute(f"DROP TABLE rack{number}")

    @_translated
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

    @_translated
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

    @_translated
    def put_record(self, kind: str, name: str, data: bytes, due_s: float | None = None) -> None:
        """Keep a record, in place of one of this kind and name."""
        self._cursor.execute("INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?)", (kind, name, data, due_s))

    @_translated
    def get_record(self, kind: str, name: str) -> bytes | None:
        """Return a record's data."""
        found = self._cursor.execute("SELECT data FROM record WHERE kind = ? AND name = ?", (kind, name)).get
        return cast("bytes | None", found)

    @_translated
    def delete_record(self, kind: str, name: str) -> None:
        """Remove a record if it is there."""
        self._cursor.execute("DELETE FROM record WHERE kind = ? AND name = ?", (kind, name))

    @_translated
    def records(self, kind: str) -> Iterator[tuple[str, bytes]]:
        """Return the name and data of all records of a kind, by name."""
        found = self._cursor.execute("SELECT name, data FROM record WHERE kind = ? ORDER BY name", (kind,))
        return iter(cast("list[tuple[str, bytes]]", found.fetchall()))

    @_translated
    def delete_due(self, kind: str, now_s: float) -> int:
        """Remove the records of a kind that are due, and return how many they were."""
        self._cursor.execute("DELETE FROM record WHERE kind = ? AND due <= ?", (kind, now_s))
        return self._connection.changes()

    @property
    def open_transaction(self) -> bool:
        """Tell whether something was begun and neither committed nor rolled back."""
        return self._connection.in_transaction

    @_translated
    def begin(self) -> None:
        """Start a transaction."""
        self._cursor.execute("BEGIN IMMEDIATE")

    @_translated
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
                self.trouble = _store_error(error)

    def rollback(self) -> None:
        """Undo the transaction; a failure here leaves nothing that a next opening would see."""
        if self._connection.in_transaction:
            try:
                self._cursor.execute("ROLLBACK")
            except apsw.Error as error:
                if self._connection.in_transaction:
                    raise _store_error(error) from error

    def close(self) -> None:
        """Let go of the file, with the log folded into it where that works."""
        try:
            self._connection.close()
        except apsw.Error as error:
            raise _store_error(error) from error


def _opening_error(path: object, error: apsw.Error | StoreError) -> StoreError:
    if isinstance(error, StoreError):
        return error
    if isinstance(error, apsw.BusyError):
        return StoreInUse(
            f"{path} is open already, here or in another process; close that one, or connect to its endpoint"
        )
    if isinstance(error, apsw.NotADBError):
        return StoreDamaged(
            f"{path} is no Tavola store, or its first page is damaged; give another path, or restore it"
        )
    if isinstance(error, apsw.CantOpenError):
        if os.path.isdir(str(path)):
            return StoreError(f"{path} is a folder; give a file in it")
        return StoreError(f"{path} cannot be opened; check that its folder exists and is yours")
    return _store_error(error)


def _connect(path: str) -> apsw.Connection:
    if _CHECKSUM_VFS not in apsw.vfs_names():
        # Loading makes the checksum VFS the default of every apsw connection in the process: put it back.
        default = apsw.vfs_names()[0]
        apsw.sqlite_extra.load(apsw.Connection(":memory:"), "cksumvfs")
        apsw.set_default_vfs(default)
    return apsw.Connection(path, vfs=_CHECKSUM_VFS)


def _set_up_file(connection: apsw.Connection, synchronous: str) -> None:
    connection.reserve_bytes("main", _CHECKSUM_BYTES)  # of a file that is not there yet, as the page size is
    connection.pragma("page_size", _PAGE_BYTES)
    connection.pragma("locking_mode", "EXCLUSIVE")
    # Take the lock now, not at the first write: two engines must not both believe they own the file. By then
    # SQLite has also undone what a crash left half done, and so far nothing in the file was changed.
    connection.execute("BEGIN IMMEDIATE")
    owner = connection.pragma("application_id")
    connection.execute("ROLLBACK")
    # Whoever came second is refused at once above; the first waits until the others have let go.
    connection.set_busy_timeout(_OTHERS_LEAVE_MS)
    new = not os.path.getsize(connection.filename)
    if owner != _APPLICATION_ID and not new:
        raise StoreError(
            f"{connection.filename} is an SQLite database, but not a Tavola store; give another path"
        )
    if new:
        # Before there is a log, so that the file names its owner from its first page on.
        connection.pragma("application_id", _APPLICATION_ID)
    connection.pragma("journal_mode", "WAL")
    connection.pragma("synchronous", synchronous)
    _check_whole(connection)


def _check_whole(connection: apsw.Connection) -> None:
    """Refuse a file that lacks pages, or, if it is small, one whose pages do not fit together.

    A page's checksum says that the page is as it was written, not that it is where it was written. Walking all
    pages does, and takes time with the size; a large store is checked as it is read, and by request.
    """
    if connection.reserve_bytes("main", -1) != _CHECKSUM_BYTES:
        raise _damaged("its pages have no room for their checksums")
    path, log = connection.filename, connection.filename_wal
    size = os.path.getsize(path)
    if not os.path.exists(log) or not os.path.getsize(log):
        # With a log, pages may be there that the file has not got yet; without, it must hold them all.
        pages: int = connection.pragma("page_count")
        if size < pages * _PAGE_BYTES:
            raise _damaged(f"{path} is shorter than it was written")
    if size <= _CHECKED_BYTES_MAX:
        found = connection.execute("PRAGMA integrity_check(1)").get
        if found != "ok":
            raise _damaged(f"{path}: {str(found).splitlines()[-1]}")
