"""Store: rows by key, ranges over the key or an index, in a transaction. The port.

A store knows bytes and nothing else: no item, no table's meaning, no AWS. A *rack* is the place of one
DynamoDB table: a row has its ordered key, the item as bytes, the bytes it counts for, and one entry
for each of the rack's columns. A column is either the ordered key of an index, None where the row is not
in it, or a number kept beside it. A *record* is anything small that must survive with the rows: a table's
definition, a token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from tavola.errors import TavolaError
from tavola.keys import Bounds

Entry = bytes | int | None
Found = tuple[int, int, bytes, int, *tuple[Entry, ...]]  # row id, size, item, checksum, entries
Line = tuple[bytes, int, int]  # item, size, checksum
Lines = tuple[list[Line], int]  # rows, and the sum of their sizes


class StoreError(TavolaError):
    """The store cannot do what was asked; the sentence says why and what to do."""


class StoreInUse(StoreError):
    """Another process, or another engine of this one, has the file open."""


class StoreDamaged(StoreError):
    """What was read from the file is not what was written: nothing of it is served."""


class StoreFull(StoreError):
    """There is no room; the transaction is undone, and writing works again once there is room."""


class StoreFailed(StoreError):
    """A write or sync failed, so what is on the disk is not known: no write is accepted any more."""


class Rack(Protocol):
    """The rows of one table."""

    def get(self, key: bytes) -> Line | None:
        """Return item and size of the row with this key."""
        ...

    def find(self, key: bytes) -> Found | None:
        """Return all there is of the row with this key."""
        ...

    def insert(self, key: bytes, size: int, item: bytes, entries: Sequence[Entry]) -> None:
        """Add a row whose key is not there yet."""
        ...

    def replace(
        self, row: int, size: int, item: bytes, old: Sequence[Entry], entries: Sequence[Entry]
    ) -> None:
        """Change a row; entries that stay as they were cost nothing."""
        ...

    def fill(self, row: int, entries: Sequence[Entry]) -> None:
        """Set a row's entries and leave the rest of it."""
        ...

    def delete(self, row: int) -> None:
        """Remove a row."""
        ...

    def page(self, bounds: Bounds, limit: int, budget: int, *, after: bytes | None, reverse: bool) -> Lines:
        """Return rows between the bounds by key, past the key `after`.

        At most `limit` rows (-1: no limit), and none after the one that brings the sizes to `budget`.
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
    ) -> Lines:
        """Return item and size column of rows by an index column and then the key.

        The page starts past the pair `after`, whether or not a row has it.
        """
        ...

    def total(self, column: str, size_column: str, bounds: Bounds) -> int:
        """Return the sum of a size column over the rows between bounds of a column."""
        ...

    def walk(self, after_row: int, limit: int) -> list[Found]:
        """Return up to `limit` rows in order of their ids, past one id."""
        ...


class Store(Protocol):
    """Racks and records in one place, changed in transactions by one writer."""

    in_memory: bool
    trouble: StoreError | None  # why nothing more may be written, although what was committed stands

    def rack(self, number: int, columns: Sequence[str]) -> Rack:
        """Return the rack of this number, made earlier, with these columns in this order."""
        ...

    def create_rack(self, number: int) -> None:
        """Make the place of a new table; it has no columns yet."""
        ...

    def drop_rack(self, number: int) -> None:
        """Remove a table's place and all that is in it."""
        ...

    def add_column(self, number: int, column: str, *, ordered: bool) -> None:
        """Add a column to a rack, empty in every row; an ordered one can be ranged over."""
        ...

    def drop_column(self, number: int, column: str, *, ordered: bool) -> None:
        """Let go of a column of a rack; its name is not used again."""
        ...

    def put_record(self, kind: str, name: str, data: bytes, due_s: float | None = None) -> None:
        """Keep a record, in place of one of this kind and name."""
        ...

    def get_record(self, kind: str, name: str) -> bytes | None:
        """Return a record's data."""
        ...

    def delete_record(self, kind: str, name: str) -> None:
        """Remove a record if it is there."""
        ...

    def records(self, kind: str) -> Iterator[tuple[str, bytes]]:
        """Return the name and data of all records of a kind, by name."""
        ...

    def delete_due(self, kind: str, now_s: float) -> int:
        """Remove the records of a kind that are due, and return how many they were."""
        ...

    @property
    def open_transaction(self) -> bool:
        """Tell whether something was begun and neither committed nor rolled back."""
        ...

    def begin(self) -> None:
        """Start a transaction."""
        ...

    def commit(self) -> None:
        """Make the transaction durable; if that fails it is undone and the error raised."""
        ...

    def rollback(self) -> None:
        """Undo the transaction."""
        ...

    def close(self) -> None:
        """Let go of the file; what is not committed is gone."""
        ...
