"""Snapshots: read a table as of an earlier time, without restoring it.

The past is not stored; it is computed from the current rows and the change log (see `journal`). For one key:

    the item at position p  =  the old image of the key's first change after p
                               or the current item, if the key has no change after p

    position p                now
        │  2: a=1→a=2  3: a=2→a=3
        ├───────●──────────●────┤     first change of a after p is 2, its old image is a=1
        │                       │     b has no change after p: its current item is the answer

For a range of keys, the current rows and the first change of each key are read in key order and merged; a row whose key
has a change is replaced by the old image, or left out if there was none. `AsOfTableStore` offers this as a `TableStore`,
so queries and scans work on the past unchanged.

Cost: a read by key needs the log in key order, an index that is built when the past is first read and dropped later.
Reading a past index costs more: its entries follow only from all changes since then, which the first page reads
(`history` caches the result). Limitation: definitions are not versioned, so the past is read with the table's current
indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple, NoReturn

from tavola.engine.catalog import StoredIndex, StoredTable
from tavola.engine.history import HistoryCache, IndexHistory
from tavola.engine.journal import BY_SERVICE
from tavola.engine.storage import (
    ChangeLog,
    ChangeLogRow,
    Entry,
    ItemPage,
    ItemRow,
    KeyedRow,
    StoredRow,
    TableStore,
)
from tavola.engine.store_time import StoreTime
from tavola.engine.writes import entry_of, every_index, expiry_of
from tavola.keys import Bounds
from tavola.limits import PAGE_BYTES_MAX
from tavola.protocol.faults import (
    InvalidRestoreTimeFault,
    PointInTimeRecoveryUnavailableFault,
    ValidationFault,
)
from tavola.protocol.instants import instant_text
from tavola.values import decode_item, item_size

_CHUNK_ROWS = 128
_VERSIONS_READ = 4
_EVERYTHING = Bounds(b"", None)
_UNORDERED_CHANGES_MAX = 500
_UNLIMITED_BYTES = 1 << 62
_SECOND_US = 1_000_000
_DAY_S = 86_400

_IndexedItem = tuple[bytes, bytes, bytes, int]  # index key, key, item, bytes in the index


class Version(NamedTuple):
    """An item from one change to the next; no item if it did not exist."""

    since_us: int
    item: bytes | None
    by_service: bool = False  # deleted by expiry, not by a caller


def table_at_position(
    table: StoredTable, log: ChangeLog, position: int, histories: HistoryCache | None = None
) -> StoredTable:
    """Return a table with the rows that it had after a change of its log; `histories` caches its indexes."""
    past = copy(table)
    past.rows = AsOfTableStore(table, log, position, histories)
    past.vectors = tuple(copy(vector) for vector in table.vectors)
    for vector in past.vectors:
        vector.copy = None  # the in-memory copy holds the current vectors
    return past


def window_of(table: StoredTable, time: StoreTime) -> tuple[int, int]:
    """Return the earliest and latest times at which the table's past can be read, in microseconds.

    If the clock was set back, the log continues from its latest time, and so does the window. Its earliest time is the
    log time of so many elapsed days ago.
    """
    recovery = table.definition.recovery
    if recovery is None:
        raise PointInTimeRecoveryUnavailableFault.of_table(table.name)
    assert table.journal is not None, "a table with recovery is journalled"
    since_us = int(recovery.enabled_at_s * _SECOND_US)
    latest_us = max(time.log_us(), table.journal.log.span()[2], since_us)
    return max(since_us, time.log_us_ago(recovery.days * _DAY_S)), latest_us


def position_at(table: StoredTable, at_us: int, time: StoreTime) -> int:
    """Return the last change at or before a time; raise InvalidRestoreTimeFault outside the window."""
    earliest_us, latest_us = window_of(table, time)
    if not _is_in_window(at_us, earliest_us, latest_us):
        raise InvalidRestoreTimeFault(
            f"RestoreDateTime '{instant_text(at_us)}' must be within EarliestRestorableDateTime "
            f"'{instant_text(earliest_us)}' and LatestRestorableDateTime '{instant_text(latest_us)}'"
        )
    return _position(table, at_us)


def table_at(
    table: StoredTable, at_us: int, time: StoreTime, begin: Callable[[], None], histories: HistoryCache
) -> StoredTable:
    """Return the table as of a time; raise InvalidRestoreTimeFault outside the window."""
    earliest_us, latest_us = window_of(table, time)
    if not _is_in_window(at_us, earliest_us, latest_us):
        raise InvalidRestoreTimeFault(
            f"Table '{table.name}' can be read as of times from {instant_text(earliest_us)} to "
            f"{instant_text(latest_us)}; {instant_text(at_us)} is outside of this window"
        )
    position = _position(table, at_us)
    assert table.journal is not None, "a table with a window is journalled"
    index_log_if_needed(table.journal.log, position, begin)
    return table_at_position(table, table.journal.log, position, histories)


def _is_in_window(at_us: int, earliest_us: int, latest_us: int) -> bool:
    """Return whether a time is in the window; its whole first second counts, because SDKs truncate times to seconds."""
    return earliest_us // _SECOND_US * _SECOND_US <= at_us <= latest_us


def _position(table: StoredTable, at_us: int) -> int:
    recovery, journal = table.definition.recovery, table.journal
    assert recovery is not None, "a table with a window has recovery"
    assert journal is not None, "a table with recovery is journalled"
    return max(journal.log.id_at(at_us), recovery.since)


def index_log_if_needed(log: ChangeLog, position: int, begin: Callable[[], None]) -> None:
    """Index a log by key if many changes follow a position; a few are found as fast without one.

    Writes therefore do not pay for the index until the past is read. Building it takes about a second for a million changes.
    """
    if log.span()[1] - position > _UNORDERED_CHANGES_MAX and not log.has_key_index:
        begin()
        log.set_key_index(enabled=True)


class AsOfTableStore:
    """The rows of a table as of a position in its log; read-only."""

    def __init__(
        self, table: StoredTable, log: ChangeLog, position: int, histories: HistoryCache | None = None
    ) -> None:
        """Read a table at a position of its log, which must have the old images of all later changes."""
        self._table = table
        self._current: TableStore = table.rows
        self._log = log
        self._position = position
        self._histories = HistoryCache() if histories is None else histories

    def get(self, key: bytes) -> ItemRow | None:
        """Return the item and size of the row with this key."""
        change = self._log.first_change(key, self._position)
        if change is None:
            return self._current.get(key)
        return None if change.old is None else (change.old, item_size(decode_item(change.old)), 0)

    def find(self, key: bytes) -> StoredRow | None:
        """Return the whole row with this key; its id is 0 if it has changed since."""
        change = self._log.first_change(key, self._position)
        if change is None:
            return self._current.find(key)
        if change.old is None:
            return None
        row = self._row_of_image(change.key, change.old)
        return 0, row[1], row[2], row[3], *row[4:]

    def page(
        self, bounds: Bounds, limit: int, budget: int, *, after: bytes | None, reverse: bool
    ) -> ItemPage:
        """Return rows within the bounds in key order, after the key `after`."""
        if after is not None:
            lower, upper = bounds.lower, bounds.upper
            if reverse:
                bounds = Bounds(lower, after if upper is None else min(upper, after))
            else:
                bounds = Bounds(max(lower, after + b"\x00"), upper)
        rows = ((row[2], row[1], row[3]) for row in self._rows_by_key(bounds, reverse, _chunk(limit)))
        return _take_page(rows, limit, budget)

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
        """Return the items and index sizes of rows, ordered by an index column and then by key, after a pair."""
        entries = self._index_entries(column, bounds, _chunk(limit), after, reverse)
        return _take_page(((item, size, 0) for _, _, item, size in entries), limit, budget)

    def rows(self, bounds: Bounds, limit: int, *, reverse: bool = False) -> list[KeyedRow]:
        """Return up to `limit` whole rows within the bounds, in key order."""
        return list(islice(self._rows_by_key(bounds, reverse, _chunk(limit)), limit))

    def index_rows(
        self, column: str, bounds: Bounds, limit: int, *, after: tuple[bytes, bytes] | None, reverse: bool
    ) -> list[KeyedRow]:
        """Return up to `limit` whole rows ordered by an index column and then by key, after the pair `after`."""
        entries = self._index_entries(column, bounds, _chunk(limit), after, reverse)
        return [self._row_of_image(key, item) for _, key, item, _ in islice(entries, limit)]

    def total(self, column: str, size_column: str, bounds: Bounds) -> int:
        """Return the sum of a size column over the rows within bounds of a column."""
        if column == "key":
            return sum(row[1] for row in self._rows_by_key(bounds, False, _CHUNK_ROWS))
        return self.index_page(column, size_column, bounds, -1, _UNLIMITED_BYTES, after=None, reverse=False)[
            1
        ]

    def entries(self, column: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield the key and entry of every row that has an entry in a column."""
        position = 4 + self._table.columns.index(column)
        for row in self._rows_by_key(_EVERYTHING, False, _CHUNK_ROWS):
            entry = row[position]
            if isinstance(entry, bytes):
                yield row[0], entry

    def _refuse(self, *arguments: Any, **keywords: Any) -> NoReturn:
        """Raise: the past is read-only, its rows have no ids to walk by, and nothing in it expires."""
        raise read_only_fault()

    insert = replace = fill = delete = insert_rows = walk = due = _refuse

    def _rows_by_key(self, bounds: Bounds, reverse: bool, chunk: int) -> Iterator[KeyedRow]:
        """Yield the rows as they were, in key order: the current rows with later changes undone.

        Rows and changes are read in chunks and merged up to the end of the chunk that ends first. This way,
        neither a long range without changes nor one whose rows were all deleted is held in memory.
        """
        while True:
            current = self._current.rows(bounds, chunk, reverse=reverse)
            changes = self._log.first_changes(bounds, self._position, chunk, reverse=reverse)
            ends: list[bytes] = []
            if len(current) == chunk:
                ends.append(current[-1][0])
            if len(changes) == chunk:
                ends.append(changes[-1].key)
            end = (max(ends) if reverse else min(ends)) if ends else None
            if end is not None:
                current = [row for row in current if (row[0] >= end if reverse else row[0] <= end)]
                changes = [
                    change for change in changes if (change.key >= end if reverse else change.key <= end)
                ]
            yield from self._undo(current, changes, reverse)
            if end is None:
                return
            bounds = Bounds(bounds.lower, end) if reverse else Bounds(end + b"\x00", bounds.upper)

    def _undo(self, current: list[KeyedRow], changes: list[ChangeLogRow], reverse: bool) -> list[KeyedRow]:
        if not changes:
            return current
        rows = {row[0]: row for row in current}
        for change in changes:
            if change.old is None:
                rows.pop(change.key, None)
            else:
                rows[change.key] = self._row_of_image(change.key, change.old)
        return [rows[key] for key in sorted(rows, reverse=reverse)]

    def _row_of_image(self, key: bytes, old: bytes) -> KeyedRow:
        """Return the row of an old image, with entries for the current indexes."""
        item = decode_item(old)
        entries: list[Entry] = []
        for index in every_index(self._table):
            entries += entry_of(index, item)
        if self._table.expiry is not None:
            entries.append(expiry_of(item.get(self._table.expiry)))
        return key, item_size(item), old, 0, *entries

    def _index_entries(
        self, column: str, bounds: Bounds, chunk: int, after: tuple[bytes, bytes] | None, reverse: bool
    ) -> Iterator[_IndexedItem]:
        """Yield the entries that an index had then, in order: the unchanged ones merged with those of changed rows."""
        index = next(index for index in self._table.indexes if index.column == column)
        number = self._table.definition.number
        past = self._histories.index_history(
            number, column, self._log, self._position, partial(_entry, index)
        )
        current = self._unchanged_entries(index, past, bounds, after, reverse, chunk)
        undone = self._changed_entries(past, bounds, after, reverse)
        return merge(current, undone, key=itemgetter(0, 1), reverse=reverse)

    def _unchanged_entries(
        self,
        index: StoredIndex,
        past: IndexHistory,
        bounds: Bounds,
        after: tuple[bytes, bytes] | None,
        reverse: bool,
        chunk: int,
    ) -> Iterator[_IndexedItem]:
        """Yield the entries of rows that have not changed since then, in index order."""
        position = 4 + self._table.columns.index(index.column)
        while True:
            rows = self._current.index_rows(index.column, bounds, chunk, after=after, reverse=reverse)
            for row in rows:
                if row[0] not in past.changed:
                    entry, size = row[position], row[1] if index.projected is None else row[position + 1]
                    assert isinstance(entry, bytes), "a row of an index has an entry"
                    assert isinstance(size, int), "an entry has a size"
                    yield entry, row[0], row[2], size
            if len(rows) < chunk:
                return
            last: Any = rows[-1][position]
            after = (last, rows[-1][0])

    def _changed_entries(
        self, past: IndexHistory, bounds: Bounds, after: tuple[bytes, bytes] | None, reverse: bool
    ) -> Iterator[_IndexedItem]:
        """Yield the entries that changed rows had then, with their items."""
        for entry, key, size, change in past.between(bounds, after, reverse=reverse):
            image = self._log.read(change - 1, change, 1)[0].old
            assert image is not None, "every past entry comes from an old image"
            yield entry, key, image, size


def _entry(index: StoredIndex, image: bytes) -> tuple[bytes, int] | None:
    """Return the entry of an image in an index, and its size there."""
    item = decode_item(image)
    entry, *sized = entry_of(index, item)
    if not isinstance(entry, bytes):
        return None
    size = item_size(item) if index.projected is None else sized[0]
    assert isinstance(size, int), "an entry has a size"
    return entry, size


def read_only_fault() -> ValidationFault:
    """Return the fault for a write to the past."""
    return ValidationFault(
        "A request as of a past time cannot write; send it without the time to change the current data"
    )


def versions(table: StoredTable, key: bytes, after: int, limit: int) -> tuple[list[Version], int | None]:
    """Return the versions of an item after each change that follows a log position, and the position to continue from.

    The earliest first, at most `limit` versions and about a megabyte; the position is None after the last page.
    """
    journal = table.journal
    assert journal is not None, "only a table with a journal has a past"
    changes: list[ChangeLogRow] = []
    total = 0
    has_more = True
    while has_more and len(changes) <= limit and total < PAGE_BYTES_MAX:
        count = min(_VERSIONS_READ, limit + 1 - len(changes))
        chunk = journal.log.changes_of(key, changes[-1].id if changes else after, count)
        total += sum(len(change.old or b"") for change in chunk)
        changes += chunk
        has_more = len(chunk) == count
    # The version after a change is the old image of the next one; after the last one it is the current item.
    images = [change.old for change in changes[1:]]
    if not has_more:
        current = table.rows.get(key)
        images.append(None if current is None else current[0])
    item_versions = [
        Version(change.at_us, image, bool(change.mark & BY_SERVICE))
        for change, image in zip(changes, images, strict=False)
    ]
    return item_versions, changes[len(item_versions) - 1].id if has_more else None


def _chunk(limit: int) -> int:
    return _CHUNK_ROWS if limit < 0 else max(16, min(limit + 1, 1024))


def _take_page(candidates: Iterator[ItemRow], limit: int, budget: int) -> ItemPage:
    """Return rows up to the limit, or up to the one that brings the sum of sizes to the budget."""
    rows: list[ItemRow] = []
    total = 0
    if limit == 0:
        return rows, total
    for row in candidates:
        rows.append(row)
        total += row[1]
        if total >= budget or len(rows) == limit:
            break
    return rows, total
