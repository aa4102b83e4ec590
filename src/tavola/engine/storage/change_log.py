"""ChangeLog: the changes of one table in the order in which they were made.

The log is ordered by id. An order by key, which as-of reads need, is an index that is created when the past is first
read and dropped some time after the last such read (see `engine.snapshots`).

A part of the changes, a shard of a stream, is chosen by a hash of their partitions. It is a hash of its own and not the one at
the start of a key: it must not change as long as someone reads a stream, or a record would move to a shard that its
reader has already read.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from zlib import crc32

import apsw

from tavola.engine.storage.errors import damage_error, store_error, translate_errors
from tavola.keys import LENGTH_BYTES, POSITION_BYTES, Bounds

_LENGTH_END = POSITION_BYTES + LENGTH_BYTES
_TOP = b"\xff" * 5  # above every key
_COLUMNS = "id, at, key, mark, old, new"


def partition_hash(key: bytes) -> int:
    """Return the hash by which the changes of a table are divided; all keys of a partition have the same."""
    length = int.from_bytes(key[POSITION_BYTES:_LENGTH_END], "big")
    return crc32(key[POSITION_BYTES : _LENGTH_END + length])


class ChangeLogRow(NamedTuple):
    """One change of one row: its time, key, kind, and the images that are kept of it."""

    id: int  # rises from 1 in the order of the changes
    at_us: int  # never decreases from one change to the next
    key: bytes
    mark: int  # kind and flags; `engine.journal` defines the bits
    old: bytes | None
    new: bytes | None


class ChangeLog:
    """The changes of one table, in a SQLite table of their own."""

    def __init__(self, cursor: apsw.Cursor, number: int) -> None:
        self._connection = cursor.connection
        self._execute = cursor.execute
        self._table = table = f"log{number}"
        self._append = f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?)"
        select = f"SELECT {_COLUMNS} FROM {table}"
        where = "WHERE id > ? AND id <= ?"
        self._read = f"{select} {where} ORDER BY id LIMIT ?"
        self._read_hashes = (
            f"{select} {where} AND partition_hash(key) BETWEEN ? AND ? - 1 ORDER BY id LIMIT ?"
        )
        self._first_change = f"{select} WHERE key = ? AND id > ? ORDER BY id LIMIT 1"
        self._changes_of = f"{select} WHERE key = ? AND id > ? ORDER BY id LIMIT ?"
        first = (
            f"{select} WHERE id IN (SELECT min(id) FROM {table} WHERE key >= ? AND key < ? AND id > ?"
            " GROUP BY key ORDER BY key{0} LIMIT ?) ORDER BY key{0}"
        )
        self._first_changes = {False: first.format(""), True: first.format(" DESC")}

    def append(self, row: ChangeLogRow) -> None:
        """Add a change at the end."""
        try:
            self._execute(self._append, row)
        except apsw.Error as error:
            raise store_error(error, self._connection) from error

    @translate_errors
    def read(
        self, after: int, upto: int, limit: int, hashes: tuple[int, int] | None = None
    ) -> list[ChangeLogRow]:
        """Return up to `limit` changes with ids greater than `after` and at most `upto`.

        With `hashes`, only changes of partitions whose hash is at least the first and less than the second.
        """
        if hashes is None:
            return _rows(self._execute(self._read, (after, upto, limit)))
        return _rows(self._execute(self._read_hashes, (after, upto, *hashes, limit)))

    @translate_errors
    def span(self) -> tuple[int, int, int]:
        """Return the ids of the first and the last change and the time of the last; zeros if the log is empty."""
        table = self._table
        first = self._execute(f"SELECT min(id) FROM {table}").get
        if first is None:
            return 0, 0, 0
        last: Any = self._execute(f"SELECT id, at FROM {table} ORDER BY id DESC LIMIT 1").get
        if not isinstance(last[1], int):
            # A page of another file or position
            raise damage_error("a row of a change log has the wrong form")
        return first, last[0], last[1]

    @translate_errors
    def id_at(self, at_us: int) -> int:
        """Return the id of the last change at or before a time; one less than the first id if there is none.

        Ids and times rise together, so a binary search finds it.
        """
        low, high, _ = self.span()
        if not high:
            return 0
        probe = f"SELECT at FROM {self._table} WHERE id = ?"
        while low <= high:
            middle = (low + high) // 2
            if self._execute(probe, (middle,)).get <= at_us:
                low = middle + 1
            else:
                high = middle - 1
        return high

    @property
    def has_key_index(self) -> bool:
        """Whether the log is indexed by key."""
        try:
            return bool(
                self._execute(
                    "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name = ?",
                    (f"{self._table}_key",),
                ).get
            )
        except apsw.Error as error:
            raise store_error(error, self._connection) from error

    @translate_errors
    def set_key_index(self, *, enabled: bool) -> None:
        """Create or drop the index by key that `first_change` and `first_changes` need to be fast."""
        table = self._table
        if enabled:
            self._execute(f"CREATE INDEX IF NOT EXISTS {table}_key ON {table} (key, id)")
        else:
            self._execute(f"DROP INDEX IF EXISTS {table}_key")

    @translate_errors
    def first_change(self, key: bytes, after: int) -> ChangeLogRow | None:
        """Return the first change of a key after an id."""
        rows = _rows(self._execute(self._first_change, (key, after)))
        return rows[0] if rows else None

    @translate_errors
    def first_changes(self, bounds: Bounds, after: int, limit: int, *, reverse: bool) -> list[ChangeLogRow]:
        """Return, for each key within bounds, its first change after an id; in key order."""
        upper = _TOP if bounds.upper is None else bounds.upper
        return _rows(self._execute(self._first_changes[reverse], (bounds.lower, upper, after, limit)))

    @translate_errors
    def changes_of(self, key: bytes, after: int, limit: int) -> list[ChangeLogRow]:
        """Return up to `limit` changes of a key after an id, in order."""
        return _rows(self._execute(self._changes_of, (key, after, limit)))

    @translate_errors
    def trim(self, upto: int, limit: int) -> int:
        """Remove up to `limit` of the oldest changes with ids up to `upto`, and return how many were removed.

        The last change is never removed, because the next id follows from it.
        """
        first, last, _ = self.span()
        until = min(upto, last - 1, first + limit - 1)
        if not first or until < first:
            return 0
        self._execute(f"DELETE FROM {self._table} WHERE id <= ?", (until,))
        return until - first + 1


def _rows(cursor: apsw.Cursor) -> list[ChangeLogRow]:
    return [ChangeLogRow(*row) for row in cursor.fetchall()]  # type: ignore[arg-type]  # as selected
