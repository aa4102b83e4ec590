"""Store: rows by key, ranges over the key or an index, in a transaction. The port.

A store knows bytes and nothing else: no item, no table's meaning, no AWS. A *rack* is the place of one
DynamoDB table: a row has its ordered key, the item as bytes, the bytes it counts for, and one entry
for each of the rack's columns. A column is either the ordered key of an index, None where the row is not
in it, or a number kept beside it. A *log* is the changes of one rack in the order they were made. A *record*
is anything small that must survive with the rows: a table's definition, a token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from tavola.errors import ErrorKind, TavolaError
from tavola.keys import Bounds

Entry = bytes | int | None
Found = tuple[int, int, bytes, int, *tuple[Entry, ...]]  # row id, size, item, checksum, entries
Line = tuple[bytes, int, int]  # item, size, checksum
Row = tuple[bytes, int, bytes, int, *tuple[Entry, ...]]  # key, size, item, checksum, entries
Lines = tuple[list[Line], int]  # rows, and the sum of their sizes


class LogRow(NamedTuple):
    """One change of one row: when, of which key, of what kind, and the images that are kept of it."""

    id: int  # rises from 1 in the order of the changes
    at_us: int  # never goes down from one change to the next
    key: bytes
    mark: int  # what kind of change it was; the journal knows the meaning
    old: bytes | None
    new: bytes | None


class StoreError(TavolaError):
    """The store cannot do what was asked; the sentence says why and what to do."""

    code = "store-unusable"
    kind = ErrorKind.INTERNAL
    remedy = "Name another file, or make this one a readable and writable file."


class StoreInUse(StoreError):
    """Another process, or another engine of this one, has the file open."""

    kind = ErrorKind.IN_USE
    remedy = "Stop the other process, or use its endpoint; one process owns a file."


class StoreLocked(StoreError):
    """The key does not open the file, or the file has none; nothing was changed."""

    remedy = "Give its own key with --key-file, --key-command or TAVOLA_KEY; a file in clear takes none."


class StoreDamaged(StoreError):
    """What was read from the file is not what was written: nothing of it is served."""

    remedy = "Give the key if it is encrypted (--key-file); otherwise restore it from a copy."


class StoreFull(StoreError):
    """There is no room; the transaction is undone, and writing works again once there is room."""

    remedy = "Make room on the disk and start again; nothing that was confirmed is lost."


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

    def rows(self, bounds: Bounds, limit: int, *, reverse: bool = False) -> list[Row]:
        """Return up to `limit` whole rows between the bounds, by key."""
        ...

    def index_rows(
        self, column: str, bounds: Bounds, limit: int, *, after: tuple[bytes, bytes] | None, reverse: bool
    ) -> list[Row]:
        """Return up to `limit` whole rows by an index column and then the key, past the pair `after`."""
        ...

    def insert_rows(self, rows: Sequence[Row]) -> None:
        """Add rows whose keys are not there yet; their checksums are made anew."""
        ...

    def total(self, column: str, size_column: str, bounds: Bounds) -> int:
        """Return the sum of a size column over the rows between bounds of a column."""
        ...

    def due(self, column: str, after: int, upto: int, limit: int) -> list[bytes]:
        """Return keys of rows whose number in a column is past one and up to another, the lowest first."""
        ...

    def entries(self, column: str) -> Iterator[tuple[bytes, bytes]]:
        """Return key and entry of every row that has one in a column."""
        ...

    def walk(self, after_row: int, limit: int) -> list[Found]:
        """Return up to `limit` rows in order of their ids, past one id."""
        ...


class Log(Protocol):
    """The changes of one rack, in order."""

    def append(self, row: LogRow) -> None:
        """Add a change after all others."""
        ...

    def read(self, after: int, upto: int, bounds: Bounds, limit: int) -> list[LogRow]:
        """Return up to `limit` changes of keys between bounds, past one id and up to another, in order."""
        ...

    def span(self) -> tuple[int, int, int]:
        """Return the ids of the first and the last change, and when the last was; zeros without any."""
        ...

    def id_at(self, at_us: int) -> int:
        """Return the id of the last change at or before a time, one less than the first if there is none."""
        ...

    @property
    def has_key_index(self) -> bool:
        """Tell whether the log has an order by key too."""
        ...

    def index_keys(self, *, wanted: bool) -> None:
        """Make or drop the order by key that `first_change` and `first_changes` need to be quick."""
        ...

    def first_change(self, key: bytes, after: int) -> LogRow | None:
        """Return the first change of a key past an id."""
        ...

    def first_changes(self, bounds: Bounds, after: int, limit: int, *, reverse: bool) -> list[LogRow]:
        """Return the first change past an id of each key between bounds, by key."""
        ...

    def changes_of(self, key: bytes, after: int, limit: int) -> list[LogRow]:
        """Return the changes of a key past an id, in order."""
        ...

    def trim(self, upto: int, limit: int) -> int:
        """Remove up to `limit` of the first changes, none past an id and never the last; return how many."""
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

    def log(self, number: int) -> Log:
        """Return the log of this number, made earlier."""
        ...

    def create_log(self, number: int) -> None:
        """Make the log of a rack, empty."""
        ...

    def drop_log(self, number: int) -> None:
        """Remove a log and all that is in it."""
        ...

    def log_numbers(self) -> list[int]:
        """Return the numbers of the logs there are."""
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
