"""Verification: a store's file gone through whole, and everything told that is not as it should be.

Three things are held against each other: the file's pages, as SQLite fits them together; each row of a table or a
backup, whose sum, size, key and index entries all follow from its item; and what is kept about all rows, the counts
and the logs.
Whatever cannot be read is told and passed by, so one spoilt place does not hide the next.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.engine.backups import Backup, Backups, kept_tables
from tavola.engine.catalog import Catalog, StoredIndex, StoredTable, TableCounts
from tavola.engine.journal import DIFFERS, new_image
from tavola.engine.storage import (
    ChangeLog,
    ChangeLogRow,
    Entry,
    KeyedRow,
    Store,
    StoreDamaged,
    StoreError,
    StoreLocked,
    form_of,
)
from tavola.engine.vectors import Vector
from tavola.engine.writes import entry_of, expiry_of
from tavola.keys import Bounds, KeyRefused
from tavola.protocol.faults import ValidationFault
from tavola.values import Item, decode_item, item_size

_SLICE_ROWS = 512
_CACHE_MB = 256
_LISTED_MAX = 100
_EVERYTHING = Bounds(b"", None)
PROBLEMS_MAX = 1_000  # more of them tell no more
Progress = Callable[[int], None]

_TREE = re.compile(r"\b(?:sqlite_autoindex_)?(rack|log)([0-9]+)(?:_([a-z0-9]+))?\b")


@dataclass(frozen=True, slots=True)
class StoreProblem:
    """One thing that is wrong, and where."""

    place: str
    what: str


@dataclass(slots=True)
class VerificationReport:
    """What was gone through, and what was wrong with it."""

    tables: int = 0
    backups: int = 0
    items: int = 0  # of both
    changes: int = 0  # in the logs
    problems: list[StoreProblem] = field(default_factory=list)
    untold: int = 0  # problems beyond those that are listed

    def add(self, place: str, what: str) -> None:
        """Note a problem."""
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(StoreProblem(place, what))
        else:
            self.untold += 1


def verify(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    clock: Clock = SYSTEM_CLOCK,
    progress: Progress | None = None,
) -> VerificationReport:
    """Go through a store's file; nothing of it is changed, and nobody else may have it open meanwhile."""
    _check_form(path, key)
    report = VerificationReport()
    try:
        store = Store.open(path, sync="full", cache_mb=_CACHE_MB, key=key, check_pages=False)
    except StoreDamaged as error:
        report.add("file", str(error))
        return report
    try:
        _verify_store(store, clock, report, progress)
    finally:
        with suppress(StoreError):
            store.rollback()
            store.close()
    return report


def _check_form(path: str | os.PathLike[str], key: str | None) -> None:
    """Refuse a file that was never a store, or is locked, rather than call it damaged; make none of an empty file."""
    if not os.path.getsize(path):
        raise StoreError(f"{path} is empty: it is no Tavola store yet")
    form = form_of(path)
    if form == "other":
        raise StoreError(f"{path} is no Tavola store: neither its beginning nor its size is that of one")
    if form == "encrypted" and key is None:
        raise StoreLocked(f"{path} is encrypted, and no key was given")


def _verify_store(store: Store, clock: Clock, report: VerificationReport, progress: Progress | None) -> None:
    spoilt = store.problems(_LISTED_MAX)  # before a transaction, which a page that cannot be read would end
    checks: list[_TableVerification] = []
    logs: dict[int, ChangeLog] = {}
    unreadable: list[StoreProblem] = []
    try:
        store.begin()  # so that what reading makes on its way is undone
        checks += [
            _TableVerification(store, table, report, progress) for table in Catalog(store, clock).tables()
        ]
        logs = {number: store.log(number) for number in store.log_numbers()}
        checks += _check_kept_tables(store, report, progress)
    except StoreError as error:
        unreadable.append(StoreProblem("catalog", str(error)))
    except msgspec.DecodeError as error:
        unreadable.append(StoreProblem("catalog", f"what is kept of a backup cannot be read: {error}"))
    owners = {check.table.definition.number: check for check in checks}
    for page, tree, what in spoilt:
        place = "file" if page is None else f"file, page {page}"
        told = place if tree is None else f"{place}, of {_owner(tree, owners)}"
        report.add(told, _TREE.sub(lambda found: _owner(found[0], owners), what))
    for problem in unreadable:
        report.add(problem.place, problem.what)
    for check in checks:
        check.run()
    names = {number: check.table.name for number, check in owners.items() if check.kept_as == "table"}
    for number, log in logs.items():
        _verify_log(log, f"log of {names.get(number, f'table {number}, which is gone')}", report)


def _check_kept_tables(
    store: Store, report: VerificationReport, progress: Progress | None
) -> list[_TableVerification]:
    """Return the checks of backups, and of the rows of deleted tables that a running copy still needs."""
    checks = [
        _TableVerification(store, Backups(store).table(backup), report, progress, backup)
        for backup in Backups(store)
    ]
    numbers = {check.table.definition.number for check in checks}
    rests = (table for table in kept_tables(store) if table.definition.number not in numbers)
    return checks + [_TableVerification(store, table, report, progress, kept_as="rest") for table in rests]


def _owner(tree: str, owners: dict[int, _TableVerification]) -> str:
    """Return what a table or index of SQLite's is to us."""
    found = _TREE.fullmatch(tree)
    if found is None:
        return "the catalog"
    kind, number, part = found[1], int(found[2]), found[3]
    check = owners.get(number)
    name = f"table {number}" if check is None else check.name
    if kind == "log":
        return f"the log of {name}"
    if check is not None and part is not None:
        index = next((each.name for each in _indexes(check.table) if part in each.columns), None)
        return f"the order by key of {name}" if index is None else f"index {index} of {name}"
    return name


class _TableVerification:
    """One table or backup: its rows one by one, then what is counted over them."""

    def __init__(
        self,
        store: Store,
        table: StoredTable,
        report: VerificationReport,
        progress: Progress | None,
        backup: Backup | None = None,
        kept_as: Literal["table", "backup", "rest"] = "table",
    ) -> None:
        definition = table.definition
        self.rack = store.table(definition.number, table.columns)
        self.table = table
        self.report = report
        self.progress = progress
        self.kept_as = kept_as if backup is None else "backup"
        self.name = f"table {definition.name} of {definition.account} in {definition.region}"
        if backup is not None:
            self.name = f"backup {backup.name} ({backup.id}) of {self.name}"
        elif kept_as == "rest":
            self.name = f"what a copy still needs of {self.name}"
        self.counted = TableCounts()
        self.whole = True  # every row could be read, so that they can be counted

    def run(self) -> None:
        """Note every problem of the table."""
        self.report.tables += self.kept_as == "table"
        self.report.backups += self.kept_as == "backup"
        row = 0
        while True:
            try:
                found = self.rack.inspect(row, _SLICE_ROWS)
            except StoreError as error:
                self.report.add(self.name, f"the rows past row {row} cannot be read: {error}")
                self.whole = False
                break
            for row, sound, line in found:
                self._verify_row(row, sound, line)
            self.report.items += len(found)
            if self.progress is not None:
                self.progress(self.report.items)
            if len(found) < _SLICE_ROWS:
                break
        if self.whole:
            self._verify_counts()

    def _verify_row(self, row: int, sound: bool, line: KeyedRow) -> None:
        key, size, data, entries = line[0], line[1], line[2], line[4:]
        place = f"{self.name}, row {row}"
        if not _is_row(line):
            self.report.add(place, "the row is of another form than the rows of a table")
            self.whole = False
            return
        self._count(size, entries)
        if not sound:
            self.report.add(place, "the item is not as it was written: its checksum does not fit it")
            return
        try:
            item = decode_item(data)
            own = self.table.schema.key_of(item)
        except (msgspec.DecodeError, KeyRefused, KeyError, TypeError, AttributeError) as error:
            self.report.add(place, f"the item cannot be read: {error}")
            return
        named = msgspec.json.encode({name: item[name] for name in self.table.schema.names}).decode()
        place = f"{place}, item {named}"
        if own != key:
            self.report.add(place, "the row lies under another key than its item has")
        if item_size(item) != size:
            self.report.add(
                place, f"the row says that it counts {size} bytes, and its item {item_size(item)}"
            )
        self._verify_entries(row, place, item, entries)

    def _verify_entries(self, row: int, place: str, item: Item, entries: Sequence[Entry]) -> None:
        at = 0
        for index in _indexes(self.table):
            width = len(index.columns)
            kept, expected = tuple(entries[at : at + width]), _expected_entries(index, item)
            at += width
            if kept == expected or _is_unfilled(index.definition.filled_to, row, kept):
                continue
            self.report.add(place, f"its entry in index {index.name} is not the one that the item makes")
        ttl = self.table.definition.ttl
        if self.table.expiry is not None and ttl is not None:
            kept = (entries[at],)
            wanted = (expiry_of(item.get(self.table.expiry)),)
            if kept != wanted and not _is_unfilled(ttl.filled_to, row, kept):
                self.report.add(
                    place, f"the row says that it expires at {kept[0]!r}, and its item {wanted[0]!r}"
                )

    def _count(self, size: int, entries: Sequence[Entry]) -> None:
        counted = self.counted
        counted.items += 1
        counted.bytes += size
        at = 0
        for index in _indexes(self.table):
            bytes_ = size if index.projected is None else entries[at + 1]
            if entries[at] is not None and isinstance(bytes_, int):
                slot = index.definition.slot
                counted.index_items[slot] = counted.index_items.get(slot, 0) + 1
                counted.index_bytes[slot] = counted.index_bytes.get(slot, 0) + bytes_
            at += len(index.columns)

    def _verify_counts(self) -> None:
        kept, counted = self.table.counts, self.counted
        if self.kept_as == "rest":
            return  # of a table that is gone no count is kept
        if (kept.items, kept.bytes) != (counted.items, counted.bytes):
            self.report.add(
                self.name,
                f"{kept.items} items of {kept.bytes} bytes are kept as its count; there are {counted.items} of "
                f"{counted.bytes}",
            )
        for index in _indexes(self.table) if self.kept_as == "table" else ():
            slot = index.definition.slot
            said = (kept.index_items.get(slot, 0), kept.index_bytes.get(slot, 0))
            found = (counted.index_items.get(slot, 0), counted.index_bytes.get(slot, 0))
            if said != found:
                self.report.add(
                    f"{self.name}, index {index.name}",
                    f"{said[0]} entries of {said[1]} bytes are kept as its count; there are {found[0]} of "
                    f"{found[1]}",
                )


def _indexes(table: StoredTable) -> tuple[StoredIndex | Vector, ...]:
    """Return a table's indexes of every kind, in the order of their columns."""
    return (*table.indexes, *table.vectors)


def _is_row(line: KeyedRow) -> bool:
    """Tell whether a row's parts are of the types that rows have; a page from elsewhere has others."""
    parts: tuple[Any, ...] = line
    key, size, data, _, *entries = parts
    whole = isinstance(key, bytes) and isinstance(size, int) and isinstance(data, bytes)
    return whole and all(entry is None or isinstance(entry, bytes | int) for entry in entries)


def _expected_entries(index: StoredIndex | Vector, item: Item) -> tuple[Entry, ...]:
    """Return the entries that an item makes in an index; none where the index cannot take it."""
    if isinstance(index, StoredIndex):
        return entry_of(index, item)
    try:
        return index.entries_of(item)
    except ValidationFault:
        return (None,) * len(index.columns)


def _is_unfilled(filled_to: int | None, row: int, kept: Sequence[Entry]) -> bool:
    """Tell whether a row's entry may still be missing, because filling has not come to it."""
    return filled_to is not None and row > filled_to and all(entry is None for entry in kept)


def _verify_log(log: ChangeLog, place: str, report: VerificationReport) -> None:
    """Note where a log's changes do not follow each other, or an image in it cannot be read."""
    try:
        first, last, _ = log.span()
        before: ChangeLogRow | None = None
        after = first - 1
        while after < last:
            found = log.read(after, last, _EVERYTHING, _SLICE_ROWS)
            for change in found:
                _verify_change(change, before, place, report)
                if isinstance(change.at_us, int):
                    before = change
            report.changes += len(found)
            if not found:
                break
            after = found[-1].id
    except StoreError as error:
        report.add(place, f"it cannot be read to its end: {error}")


def _verify_change(
    change: ChangeLogRow, before: ChangeLogRow | None, place: str, report: VerificationReport
) -> None:
    parts: tuple[Any, ...] = change
    if not (isinstance(parts[1], int) and isinstance(parts[2], bytes) and isinstance(parts[3], int)):
        report.add(place, f"change {change.id} is of another form than changes are")
        return
    if before is not None:
        if change.id != before.id + 1:
            report.add(place, f"change {change.id} follows change {before.id}: those between are gone")
        if change.at_us < before.at_us:
            report.add(place, f"change {change.id} is dated before change {before.id}")
    try:
        if change.old is not None:
            decode_item(change.old)
        if not change.mark & DIFFERS or change.old is not None:
            new = new_image(change)
            if new is not None:
                decode_item(new)
        else:
            report.add(place, f"change {change.id} differs from an image that is not there")
    except (msgspec.DecodeError, ValueError) as error:
        report.add(place, f"an image of change {change.id} cannot be read: {error}")
