"""TableStore: the rows of one table, as everything above storage reads and writes them.

Two classes implement it: `store.SqliteTableStore` holds the current rows; `engine.snapshots.AsOfTableStore` reads the
rows of an earlier time, so that every read operation works on the past unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from tavola.keys import Bounds

Entry = bytes | int | None
"""The value of one column: the ordered key of an index (None: not in the index), or a number kept beside it."""

ItemRow = tuple[bytes, int, int]  # item, size, checksum
StoredRow = tuple[int, int, bytes, int, *tuple[Entry, ...]]  # row id, size, item, checksum, entries
KeyedRow = tuple[bytes, int, bytes, int, *tuple[Entry, ...]]  # key, size, item, checksum, entries
ItemPage = tuple[list[ItemRow], int]  # rows, and the sum of their sizes


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
        """Add rows whose keys do not exist yet; their checksums are computed again."""
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
