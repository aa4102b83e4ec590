"""Snapshots: a table as it was, read without restoring it.

The past is read by undoing: the item under a key at a place in the log is the old image of the key's first
change past that place, or what stands now if it has none. `AsOfRack` has the reading half of a rack, so
every read works on it unchanged. A read by key costs what the keys it passes have changed; the first read of an
index goes through every change since then, because no index over the past is kept (see `pasts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple, NoReturn

from tavola.engine.catalog import Index, Table
from tavola.engine.history import HistoryCache, IndexHistory
from tavola.engine.indexes import entry_of, every_index, expiry_of
from tavola.engine.journal import BY_SERVICE
from tavola.engine.storage import ChangeLog, Entry, ItemPage, ItemRow, KeyedRow, LogRow, StoredRow, TableStore
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
_EVERY_BYTE = 1 << 62
_SECOND_US = 1_000_000
_DAY_US = 86_400 * _SECOND_US

_IndexedItem = tuple[bytes, bytes, bytes, int]  # index key, key, item, bytes in the index


class Version(NamedTuple):
    """What an item was from one moment to the next; no item: it was not there."""

    since_us: int
    item: bytes | None
    by_service: bool = False  # it expired: no caller deleted it


def table_at_position(
    table: Table, log: ChangeLog, position: int, pasts: HistoryCache | None = None
) -> Table:
    """Return a table whose rows are those that stood after a change of its log; `pasts` keeps what is undone."""
    past = copy(table)
    past.rows = AsOfTableStore(table, log, position, pasts)
    past.vectors = tuple(copy(vector) for vector in table.vectors)
    for vector in past.vectors:
        vector.copy = None  # what is in memory is of now
    return past


def window_of(table: Table, now_s: float) -> tuple[int, int]:
    """Return the first and the last moment that a table's past can be read at, in microseconds.

    Where the clock was set back, the log goes on from the latest time it had, and so does the window.
    """
    recovery = table.definition.recovery
    if recovery is None:
        raise PointInTimeRecoveryUnavailableFault.of_table(table.name)
    assert table.journal is not None, "a table with recovery is journalled"
    since_us = int(recovery.enabled_at_s * _SECOND_US)
    latest_us = max(int(now_s * _SECOND_US), table.journal.log.span()[2], since_us)
    return max(since_us, latest_us - recovery.days * _DAY_US), latest_us


def position_at(table: Table, at_us: int, now_s: float) -> int:
    """Return the last change of a table at or before a moment; refuse one that it cannot be restored to."""
    earliest_us, latest_us = window_of(table, now_s)
    if not _is_kept(at_us, earliest_us, latest_us):
        raise InvalidRestoreTimeFault(
            f"RestoreDateTime '{instant_text(at_us)}' must be within EarliestRestorableDateTime "
            f"'{instant_text(earliest_us)}' and LatestRestorableDateTime '{instant_text(latest_us)}'"
        )
    return _position(table, at_us)


def table_at(table: Table, at_us: int, now_s: float, begin: Callable[[], None], pasts: HistoryCache) -> Table:
    """Return a table as it was at a moment; refuse one that is not kept."""
    earliest_us, latest_us = window_of(table, now_s)
    if not _is_kept(at_us, earliest_us, latest_us):
        raise InvalidRestoreTimeFault(
            f"The past of table '{table.name}' is kept from {instant_text(earliest_us)} to "
            f"{instant_text(latest_us)}, and {instant_text(at_us)} is outside of that; read as of a time between"
        )
    position = _position(table, at_us)
    assert table.journal is not None, "a table with a window is journalled"
    index_log_if_needed(table.journal.log, position, begin)
    return table_at_position(table, table.journal.log, position, pasts)


def _is_kept(at_us: int, earliest_us: int, latest_us: int) -> bool:
    """Tell whether a moment is in a window; SDKs cut a time to its second, so the whole of its first one is."""
    return earliest_us // _SECOND_US * _SECOND_US <= at_us <= latest_us


def _position(table: Table, at_us: int) -> int:
    recovery, journal = table.definition.recovery, table.journal
    assert recovery is not None, "a table with a window has recovery"
    assert journal is not None, "a table with recovery is journalled"
    return max(journal.log.id_at(at_us), recovery.since)


def index_log_if_needed(log: ChangeLog, position: int, begin: Callable[[], None]) -> None:
    """Give a log its order by key if much has changed past a place; little is found as quickly without.

    Nobody pays for that order until the past is read, and it takes a second or so for a million changes.
    """
    if log.span()[1] - position > _UNORDERED_CHANGES_MAX and not log.has_key_index:
        begin()
        log.set_key_index(enabled=True)


class AsOfTableStore:
    """The rows of a table as they were; it is read and never written."""

    def __init__(
        self, table: Table, log: ChangeLog, position: int, pasts: HistoryCache | None = None
    ) -> None:
        """Read a table at a place in its log, which has the old images of all changes past it."""
        self._table = table
        self._current: TableStore = table.rows
        self._log = log
        self._position = position
        self._pasts = HistoryCache() if pasts is None else pasts

    def get(self, key: bytes) -> ItemRow | None:
        """Return item and size of the row with this key."""
        change = self._log.first_change(key, self._position)
        if change is None:
            return self._current.get(key)
        return None if change.old is None else (change.old, item_size(decode_item(change.old)), 0)

    def find(self, key: bytes) -> StoredRow | None:
        """Return all there is of the row with this key, but for the row's id: it may have none now."""
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
        """Return rows between the bounds by key, past the key `after`."""
        if after is not None:
            lower, upper = bounds.lower, bounds.upper
            if reverse:
                bounds = Bounds(lower, after if upper is None else min(upper, after))
            else:
                bounds = Bounds(max(lower, after + b"\x00"), upper)
        found = ((row[2], row[1], row[3]) for row in self._rows_by_key(bounds, reverse, _chunk(limit)))
        return _take_page(found, limit, budget)

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
        """Return item and size column of rows by an index column and then the key, past a pair."""
        found = self._index_entries(column, bounds, _chunk(limit), after, reverse)
        return _take_page(((item, size, 0) for _, _, item, size in found), limit, budget)

    def rows(self, bounds: Bounds, limit: int, *, reverse: bool = False) -> list[KeyedRow]:
        """Return up to `limit` whole rows between the bounds, by key."""
        return list(islice(self._rows_by_key(bounds, reverse, _chunk(limit)), limit))

    def index_rows(
        self, column: str, bounds: Bounds, limit: int, *, after: tuple[bytes, bytes] | None, reverse: bool
    ) -> list[KeyedRow]:
        """Return up to `limit` whole rows by an index column and then the key, past the pair `after`."""
        found = self._index_entries(column, bounds, _chunk(limit), after, reverse)
        return [self._row_of_image(key, item) for _, key, item, _ in islice(found, limit)]

    def total(self, column: str, size_column: str, bounds: Bounds) -> int:
        """Return the sum of a size column over the rows between bounds of a column."""
        if column == "key":
            return sum(row[1] for row in self._rows_by_key(bounds, False, _CHUNK_ROWS))
        return self.index_page(column, size_column, bounds, -1, _EVERY_BYTE, after=None, reverse=False)[1]

    def entries(self, column: str) -> Iterator[tuple[bytes, bytes]]:
        """Return key and entry of every row that has one in a column."""
        place = 4 + self._table.columns.index(column)
        for row in self._rows_by_key(_EVERYTHING, False, _CHUNK_ROWS):
            entry = row[place]
            if isinstance(entry, bytes):
                yield row[0], entry

    def insert(self, key: bytes, size: int, item: bytes, entries: Sequence[Entry]) -> NoReturn:
        """Refuse."""
        raise read_only_fault()

    def replace(
        self, row: int, size: int, item: bytes, old: Sequence[Entry], entries: Sequence[Entry]
    ) -> NoReturn:
        """Refuse."""
        raise read_only_fault()

    def fill(self, row: int, entries: Sequence[Entry]) -> NoReturn:
        """Refuse."""
        raise read_only_fault()

    def delete(self, row: int) -> NoReturn:
        """Refuse."""
        raise read_only_fault()

    def insert_rows(self, rows: Sequence[KeyedRow]) -> NoReturn:
        """Refuse."""
        raise read_only_fault()

    def walk(self, after_row: int, limit: int) -> NoReturn:
        """Refuse: rows of the past have no ids to walk by; `rows` goes by key."""
        raise read_only_fault()

    def due(self, column: str, after: int, upto: int, limit: int) -> NoReturn:
        """Refuse: nothing of the past expires."""
        raise read_only_fault()

    def _rows_by_key(self, bounds: Bounds, reverse: bool, chunk: int) -> Iterator[KeyedRow]:
        """Yield the rows of then by key: those that stand, with what has changed since undone.

        Both sides come in chunks, and are merged up to the end of the chunk that reaches less far: so neither
        a long stretch without changes nor one of rows that are all gone is held whole.
        """
        while True:
            standing = self._current.rows(bounds, chunk, reverse=reverse)
            changes = self._log.first_changes(bounds, self._position, chunk, reverse=reverse)
            ends: list[bytes] = []
            if len(standing) == chunk:
                ends.append(standing[-1][0])
            if len(changes) == chunk:
                ends.append(changes[-1].key)
            end = (max(ends) if reverse else min(ends)) if ends else None
            if end is not None:
                standing = [row for row in standing if (row[0] >= end if reverse else row[0] <= end)]
                changes = [each for each in changes if (each.key >= end if reverse else each.key <= end)]
            yield from self._undo(standing, changes, reverse)
            if end is None:
                return
            bounds = Bounds(bounds.lower, end) if reverse else Bounds(end + b"\x00", bounds.upper)

    def _undo(self, standing: list[KeyedRow], changes: list[LogRow], reverse: bool) -> list[KeyedRow]:
        if not changes:
            return standing
        rows = {row[0]: row for row in standing}
        for change in changes:
            if change.old is None:
                rows.pop(change.key, None)
            else:
                rows[change.key] = self._row_of_image(change.key, change.old)
        return [rows[key] for key in sorted(rows, reverse=reverse)]

    def _row_of_image(self, key: bytes, old: bytes) -> KeyedRow:
        """Return the row that an old image makes, with entries in the indexes that there are now."""
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
        """Yield what an index held then, in its order: what has not changed, with what was there of the rest."""
        index = next(index for index in self._table.indexes if index.column == column)
        number = self._table.definition.number
        past = self._pasts.index_history(number, column, self._log, self._position, partial(_entry, index))
        standing = self._unchanged_entries(index, past, bounds, after, reverse, chunk)
        undone = self._changed_entries(past, bounds, after, reverse)
        return merge(standing, undone, key=itemgetter(0, 1), reverse=reverse)

    def _unchanged_entries(
        self,
        index: Index,
        past: IndexHistory,
        bounds: Bounds,
        after: tuple[bytes, bytes] | None,
        reverse: bool,
        chunk: int,
    ) -> Iterator[_IndexedItem]:
        """Yield the entries of rows that have not changed since then, in the index's order."""
        place = 4 + self._table.columns.index(index.column)
        while True:
            rows = self._current.index_rows(index.column, bounds, chunk, after=after, reverse=reverse)
            for row in rows:
                if row[0] not in past.changed:
                    entry, size = row[place], row[1] if index.projected is None else row[place + 1]
                    assert isinstance(entry, bytes), "a row of an index has an entry"
                    assert isinstance(size, int), "an entry has a size"
                    yield entry, row[0], row[2], size
            if len(rows) < chunk:
                return
            last: Any = rows[-1][place]
            after = (last, rows[-1][0])

    def _changed_entries(
        self, past: IndexHistory, bounds: Bounds, after: tuple[bytes, bytes] | None, reverse: bool
    ) -> Iterator[_IndexedItem]:
        """Yield the entries of rows that have changed since then, with the items that they had."""
        for entry, key, size, change in past.between(bounds, after, reverse=reverse):
            image = self._log.read(change - 1, change, _EVERYTHING, 1)[0].old
            assert image is not None, "an entry of the past is that of an old image"
            yield entry, key, image, size


def _entry(index: Index, image: bytes) -> tuple[bytes, int] | None:
    """Return the entry of an image in an index, and its size there."""
    item = decode_item(image)
    entry, *sized = entry_of(index, item)
    if not isinstance(entry, bytes):
        return None
    size = item_size(item) if index.projected is None else sized[0]
    assert isinstance(size, int), "an entry has a size"
    return entry, size


def read_only_fault() -> ValidationFault:
    """Return the refusal of a write to the past."""
    return ValidationFault(
        "A request as of a time only reads, and this one would write; ask without the time to change what stands"
    )


def versions(table: Table, key: bytes, after: int, limit: int) -> tuple[list[Version], int | None]:
    """Return what stood under a key after each change past a place in the log, and where to go on.

    The earliest first, at most `limit` of them and about a megabyte; no place to go on from where that was all.
    """
    journal = table.journal
    assert journal is not None, "only a table with a journal has a past"
    changes: list[LogRow] = []
    total = 0
    more = True
    while more and len(changes) <= limit and total < PAGE_BYTES_MAX:
        wanted = min(_VERSIONS_READ, limit + 1 - len(changes))
        chunk = journal.log.changes_of(key, changes[-1].id if changes else after, wanted)
        total += sum(len(change.old or b"") for change in chunk)
        changes += chunk
        more = len(chunk) == wanted
    # What stood after a change is what the next one found; after the last one it is what stands.
    images = [change.old for change in changes[1:]]
    if not more:
        standing = table.rows.get(key)
        images.append(None if standing is None else standing[0])
    found = [
        Version(change.at_us, image, bool(change.mark & BY_SERVICE))
        for change, image in zip(changes, images, strict=False)
    ]
    return found, changes[len(found) - 1].id if more else None


def _chunk(limit: int) -> int:
    return _CHUNK_ROWS if limit < 0 else max(16, min(limit + 1, 1024))


def _take_page(found: Iterator[ItemRow], limit: int, budget: int) -> ItemPage:
    """Return lines up to the limit, or up to the one that brings their sizes to the budget."""
    lines: list[ItemRow] = []
    total = 0
    if limit == 0:
        return lines, total
    for line in found:
        lines.append(line)
        total += line[1]
        if total >= budget or len(lines) == limit:
            break
    return lines, total
