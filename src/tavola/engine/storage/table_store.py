"""TableStore: the rows of one table, as everything above storage reads and writes them.

Two classes implement it: `SqliteTableStore`, below, holds the current rows in SQLite with statements that are built
once; `engine.snapshots.AsOfTableStore` reads the rows of an earlier time, so that every read operation works on the past
unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress, islice
from operator import ne
from typing import Any, Protocol, cast
from zlib import crc32

import apsw

from tavola.engine.storage.errors import damage_error, store_error, translate_errors
from tavola.keys import Bounds

Entry = bytes | int | None
"""The value of one column: the ordered key of an index (None: not in the index), or a number kept beside it."""

ItemRow = tuple[bytes, int, int]  # item, size, checksum
StoredRow = tuple[int, int, bytes, int, *tuple[Entry, ...]]  # row id, size, item, checksum, entries
KeyedRow = tuple[bytes, int, bytes, int, *tuple[Entry, ...]]  # key, size, item, checksum, entries
ItemPage = tuple[list[ItemRow], int]  # rows, and the sum of their sizes

_CHUNK_ROWS = 64
_TOP = b"\xff" * 5  # above every key: the fifth byte of a key is the high byte of a length below 2,049


class TableStore(Protocol):
    """The rows of one table, by key and by the columns of its indexes."""

    def get(self, key: bytes) -> ItemRow | None:
        """Return the item and size of the row with this key."""
        ...

    def find(self, key: bytes) -> StoredRow | None:
        """Return the whole row with this key."""
        ...

    def insert(self, key: bytes, size: int, item: bytes, entries: Sequence[Entry]) -> None:
        """Add a row whose key does not exist yet."""
        ...

    def replace(
        self, row: int, size: int, item: bytes, old: Sequence[Entry], entries: Sequence[Entry]
    ) -> None:
        """Change a row; entries that are unchanged are not written."""
        ...

    def fill(self, row: int, entries: Sequence[Entry]) -> None:
        """Set the entries of a row and leave its item unchanged."""
        ...

    def delete(self, row: int) -> None:
        """Remove a row."""
        ...

    def page(
        self, bounds: Bounds, limit: int, budget: int, *, after: bytes | None, reverse: bool
    ) -> ItemPage:
        """Return rows within the bounds in key order, starting after the key `after`.

        At most `limit` rows (-1: no limit), and none after the one that brings the sum of sizes to `budget`.
        """
        ...

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
        """Return the items and index sizes of rows, ordered by an index column and then by key.

        The page starts after the pair `after` of index key and key, whether or not a row has that pair.
        """
        ...

    def rows(self, bounds: Bounds, limit: int, *, reverse: bool = False) -> list[KeyedRow]:
        """Return up to `limit` whole rows within the bounds, in key order."""
        ...

    def index_rows(
        self, column: str, bounds: Bounds, limit: int, *, after: tuple[bytes, bytes] | None, reverse: bool
    ) -> list[KeyedRow]:
        """Return up to `limit` whole rows ordered by an index column and then by key, after the pair `after`."""
        ...

    def insert_rows(self, rows: Sequence[KeyedRow]) -> None:
        """Add rows whose keys do not exist yet; their checksums are computed anew."""
        ...

    def total(self, column: str, size_column: str, bounds: Bounds) -> int:
        """Return the sum of a size column over the rows within bounds of a column."""
        ...

    def due(self, column: str, after: int, upto: int, limit: int) -> list[bytes]:
        """Return keys of rows whose number in a column is greater than `after` and at most `upto`, lowest first."""
        ...

    def entries(self, column: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield the key and entry of every row that has an entry in a column."""
        ...

    def walk(self, after_row: int, limit: int) -> list[StoredRow]:
        """Return up to `limit` rows in the order of their ids, after one id."""
        ...


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
        self._rows = f"SELECT key, size, item, sum{listed} FROM {table} WHERE"

    def get(self, key: bytes) -> ItemRow | None:
        """Return the item and size of the row with this key."""
        try:
            row = self._execute(self._get, (key,)).get
            if self._has_checksums and row is not None:
                _check_checksum(row[0], row[2])
            return row  # type: ignore[no-any-return]  # as selected
        except apsw.Error as error:
            raise store_error(error) from error

    def find(self, key: bytes) -> StoredRow | None:
        """Return the whole row with this key."""
        try:
            found = self._execute(self._find, (key,)).get
            if self._has_checksums and found is not None:
                _check_checksum(found[2], found[3])
            return found  # type: ignore[no-any-return]  # as selected
        except apsw.Error as error:
            raise store_error(error) from error

    def insert(self, key: bytes, size: int, item: bytes, entries: Sequence[Entry]) -> None:
        """Add a row whose key does not exist yet."""
        try:
            self._execute(self._insert, (key, size, self._checksum(item), item, *entries))
        except apsw.Error as error:
            raise store_error(error) from error

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
            raise store_error(error) from error

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
            raise store_error(error) from error

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
        """Add rows whose keys do not exist yet; their checksums are computed anew."""
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
        found: Any = self._execute(statement, (after, upto, limit)).fetchall()
        return [key for (key,) in found]

    @translate_errors
    def inspect(self, after_row: int, limit: int) -> list[tuple[int, bool, KeyedRow]]:
        """Return rows in the order of their ids, unchecked, each with its id and whether its item is undamaged."""
        statement = self._rows.replace("SELECT key", "SELECT id, key", 1) + " id > ? ORDER BY id LIMIT ?"
        found: Any = self._execute(statement, (after_row, limit)).fetchall()
        return [
            (
                row[0],
                isinstance(row[3], bytes) and (not self._has_checksums or crc32(row[3]) == row[4]),
                row[1:],
            )
            for row in found
        ]

    def entries(self, column: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield the key and entry of every row that has an entry in a column."""
        statement = f"SELECT key, {column} FROM {self._table} WHERE {column} IS NOT NULL"
        try:
            yield from cast("Iterator[tuple[bytes, bytes]]", self._connection.execute(statement))
        except apsw.Error as error:
            raise store_error(error) from error

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
    for place, row in enumerate(rows):
        total += row[1]
        if total >= budget:
            return rows[: place + 1], total
    raise AssertionError("the sum of the sizes reached the budget")


def _check_checksum(item: bytes, sum_: int) -> None:
    if crc32(item) != sum_:
        raise damage_error("an item is not as it was written")
