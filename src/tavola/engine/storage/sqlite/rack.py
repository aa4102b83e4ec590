"""Rack: the rows of one table, an index column for each index, statements prepared once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress, islice
from operator import ne
from typing import Any, cast
from zlib import crc32

import apsw

from tavola.engine.storage.sqlite.errors import damaged, store_error, translated
from tavola.engine.storage.store import Entry, Found, Line, Lines, Row
from tavola.keys import Bounds

_CHUNK_ROWS = 64
_TOP = b"\xff" * 5  # above every key: the fifth byte of a key is the high byte of a length below 2,049


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


def _check_sum(item: bytes, sum_: int) -> None:
    if crc32(item) != sum_:
        raise damaged("an item is not as it was written")


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
        self._execute_many = cursor.executemany
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
        self._rows = f"SELECT key, size, item, sum{listed} FROM {table} WHERE"

    def get(self, key: bytes) -> Line | None:
        """Return item and size of the row with this key."""
        try:
            line = self._execute(self._get, (key,)).get
            if self._summed and line is not None:
                _check_sum(line[0], line[2])
            return line  # type: ignore[no-any-return]  # as selected
        except apsw.Error as error:
            raise store_error(error) from error

    def find(self, key: bytes) -> Found | None:
        """Return all there is of the row with this key."""
        try:
            found = self._execute(self._find, (key,)).get
            if self._summed and found is not None:
                _check_sum(found[2], found[3])
            return found  # type: ignore[no-any-return]  # as selected
        except apsw.Error as error:
            raise store_error(error) from error

    def insert(self, key: bytes, size: int, item: bytes, entries: Sequence[Entry]) -> None:
        """Add a row whose key is not there yet."""
        try:
            self._execute(self._insert, (key, size, self._sum(item), item, *entries))
        except apsw.Error as error:
            raise store_error(error) from error

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
            raise store_error(error) from error

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

    @translated
    def fill(self, row: int, entries: Sequence[Entry]) -> None:
        """Set a row's entries and leave the rest of it."""
        self._execute(self._fill, (*entries, row))

    @translated
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
            raise store_error(error) from error

    @translated
    def rows(self, bounds: Bounds, limit: int, *, reverse: bool = False) -> list[Row]:
        """Return up to `limit` whole rows between the bounds, by key."""
        upper = _TOP if bounds.upper is None else bounds.upper
        descending = " DESC" if reverse else ""
        statement = f"{self._rows} key >= ? AND key < ? ORDER BY key{descending} LIMIT ?"
        return self._whole(statement, (bounds.lower, upper, limit))

    @translated
    def index_rows(
        self, column: str, bounds: Bounds, limit: int, *, after: tuple[bytes, bytes] | None, reverse: bool
    ) -> list[Row]:
        """Return up to `limit` whole rows by an index column and then the key, past the pair `after`."""
        lower, upper = bounds.lower, _TOP if bounds.upper is None else bounds.upper
        descending = " DESC" if reverse else ""
        found: list[Row] = []
        if after is not None:
            entry, key = after
            past = "<" if reverse else ">"
            statement = f"{self._rows} {column} = ? AND key {past} ? ORDER BY key{descending} LIMIT ?"
            found = self._whole(statement, (entry, key, limit))
            lower, upper = (lower, entry) if reverse else (entry + b"\x00", upper)
        if len(found) < limit:
            statement = (
                f"{self._rows} {column} >= ? AND {column} < ?"
                f" ORDER BY {column}{descending}, key{descending} LIMIT ?"
            )
            found += self._whole(statement, (lower, upper, limit - len(found)))
        return found

    def _whole(self, statement: str, given: tuple[bytes | int, ...]) -> list[Row]:
        rows = cast("list[Row]", self._execute(statement, given).fetchall())
        if self._summed:
            for row in rows:
                _check_sum(row[2], row[3])
        return rows

    @translated
    def insert_rows(self, rows: Sequence[Row]) -> None:
        """Add rows whose keys are not there yet; their checksums are made anew."""
        sum_ = self._sum
        self._execute_many(self._insert, [(row[0], row[1], sum_(row[2]), row[2], *row[4:]) for row in rows])

    @translated
    def total(self, column: str, size_column: str, bounds: Bounds) -> int:
        """Return the sum of a size column over the rows between bounds of a column."""
        upper = _TOP if bounds.upper is None else bounds.upper
        statement = f"SELECT total({size_column}) FROM {self._table} WHERE {column} >= ? AND {column} < ?"
        return int(self._execute(statement, (bounds.lower, upper)).get)

    @translated
    def due(self, column: str, after: int, upto: int, limit: int) -> list[bytes]:
        """Return keys of rows whose number in a column is past one and up to another, the lowest first."""
        statement = (
            f"SELECT key FROM {self._table} WHERE {column} > ? AND {column} <= ? ORDER BY {column} LIMIT ?"
        )
        found: Any = self._execute(statement, (after, upto, limit)).fetchall()
        return [key for (key,) in found]

    @translated
    def inspect(self, after_row: int, limit: int) -> list[tuple[int, bool, Row]]:
        """Return rows in order of their ids as they are, each with whether its item is as it was written."""
        statement = self._rows.replace("SELECT key", "SELECT id, key", 1) + " id > ? ORDER BY id LIMIT ?"
        found: Any = self._execute(statement, (after_row, limit)).fetchall()
        return [
            (row[0], isinstance(row[3], bytes) and (not self._summed or crc32(row[3]) == row[4]), row[1:])
            for row in found
        ]

    def entries(self, column: str) -> Iterator[tuple[bytes, bytes]]:
        """Return key and entry of every row that has one in a column."""
        statement = f"SELECT key, {column} FROM {self._table} WHERE {column} IS NOT NULL"
        try:
            yield from cast("Iterator[tuple[bytes, bytes]]", self._connection.execute(statement))
        except apsw.Error as error:
            raise store_error(error) from error

    @translated
    def walk(self, after_row: int, limit: int) -> list[Found]:
        """Return up to `limit` rows in order of their ids, past one id."""
        rows = cast("list[Found]", self._execute(self._walk, (after_row, limit)).fetchall())
        if self._summed:
            for row in rows:
                _check_sum(row[2], row[3])
        return rows
