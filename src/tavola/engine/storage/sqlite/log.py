"""Log: the changes of one rack, appended in order; by key too where somebody reads the past."""

from __future__ import annotations

from typing import Any

import apsw

from tavola.engine.storage.sqlite.errors import damaged, store_error, translated
from tavola.engine.storage.store import LogRow
from tavola.keys import Bounds

_TOP = b"\xff" * 5  # above every key
_COLUMNS = "id, at, key, mark, old, new"


class SqliteLog:
    """One table of changes, the id its only order until `index_keys` asks for the key's."""

    def __init__(self, cursor: apsw.Cursor, number: int) -> None:
        self._execute = cursor.execute
        self._table = table = f"log{number}"
        self._append = f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?)"
        select = f"SELECT {_COLUMNS} FROM {table}"
        self._read = f"{select} WHERE id > ? AND id <= ? AND key >= ? AND key < ? ORDER BY id LIMIT ?"
        self._first_change = f"{select} WHERE key = ? AND id > ? ORDER BY id LIMIT 1"
        self._changes_of = f"{select} WHERE key = ? AND id > ? ORDER BY id LIMIT ?"
        first = (
            f"{select} WHERE id IN (SELECT min(id) FROM {table} WHERE key >= ? AND key < ? AND id > ?"
            " GROUP BY key ORDER BY key{0} LIMIT ?) ORDER BY key{0}"
        )
        self._first_changes = {False: first.format(""), True: first.format(" DESC")}

    def append(self, row: LogRow) -> None:
        """Add a change after all others."""
        try:
            self._execute(self._append, row)
        except apsw.Error as error:
            raise store_error(error) from error

    @translated
    def read(self, after: int, upto: int, bounds: Bounds, limit: int) -> list[LogRow]:
        """Return up to `limit` changes of keys between bounds, past one id and up to another, in order."""
        upper = _TOP if bounds.upper is None else bounds.upper
        return _rows(self._execute(self._read, (after, upto, bounds.lower, upper, limit)))

    @translated
    def span(self) -> tuple[int, int, int]:
        """Return the ids of the first and the last change, and when the last was; zeros without any."""
        table = self._table
        first = self._execute(f"SELECT min(id) FROM {table}").get
        if first is None:
            return 0, 0, 0
        last: Any = self._execute(f"SELECT id, at FROM {table} ORDER BY id DESC LIMIT 1").get
        if not isinstance(last[1], int):
            raise damaged("a change in a log is of another form than changes are")  # a page from elsewhere
        return first, last[0], last[1]

    @translated
    def id_at(self, at_us: int) -> int:
        """Return the id of the last change at or before a time, one less than the first if there is none.

        Ids and times rise together, so the place is found by halving.
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
        """Tell whether the log has an order by key too."""
        try:
            return bool(
                self._execute(
                    "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name = ?",
                    (f"{self._table}_key",),
                ).get
            )
        except apsw.Error as error:
            raise store_error(error) from error

    @translated
    def index_keys(self, *, wanted: bool) -> None:
        """Make or drop the order by key that `first_change` and `first_changes` need to be quick."""
        table = self._table
        if wanted:
            self._execute(f"CREATE INDEX IF NOT EXISTS {table}_key ON {table} (key, id)")
        else:
            self._execute(f"DROP INDEX IF EXISTS {table}_key")

    @translated
    def first_change(self, key: bytes, after: int) -> LogRow | None:
        """Return the first change of a key past an id."""
        rows = _rows(self._execute(self._first_change, (key, after)))
        return rows[0] if rows else None

    @translated
    def first_changes(self, bounds: Bounds, after: int, limit: int, *, reverse: bool) -> list[LogRow]:
        """Return the first change past an id of each key between bounds, by key."""
        upper = _TOP if bounds.upper is None else bounds.upper
        return _rows(self._execute(self._first_changes[reverse], (bounds.lower, upper, after, limit)))

    @translated
    def changes_of(self, key: bytes, after: int, limit: int) -> list[LogRow]:
        """Return the changes of a key past an id, in order."""
        return _rows(self._execute(self._changes_of, (key, after, limit)))

    @translated
    def trim(self, upto: int, limit: int) -> int:
        """Remove up to `limit` of the first changes, none past an id and never the last; return how many.

        The last stays, because the next id follows from it.
        """
        first, last, _ = self.span()
        until = min(upto, last - 1, first + limit - 1)
        if not first or until < first:
            return 0
        self._execute(f"DELETE FROM {self._table} WHERE id <= ?", (until,))
        return until - first + 1


def _rows(found: apsw.Cursor) -> list[LogRow]:
    return [LogRow(*row) for row in found.fetchall()]  # type: ignore[arg-type]  # as selected
