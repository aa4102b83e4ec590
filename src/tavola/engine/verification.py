"""Verification: checks a whole store file and reports every inconsistency.

Three things are checked against each other: the pages of the file, as SQLite's integrity check sees them; each row of a
table or backup, whose checksum, size, key and index entries must all follow from its item; and what is stored about all
rows, the counts and the logs. Unreadable parts are reported and skipped, so one damaged place does not hide the next.
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
    StoreForeign,
    StoreLocked,
    form_of,
)
from tavola.engine.storage.store import SQL_TABLE_PREFIX
from tavola.engine.store_time import StoreTime
from tavola.engine.vectors import Vector
from tavola.engine.writes import entry_of, every_index, expiry_of
from tavola.keys import KeyRefused
from tavola.protocol.faults import ValidationFault
from tavola.values import Item, decode_item, item_size

_SLICE_ROWS = 512
_CACHE_MB = 256
_LISTED_MAX = 100
PROBLEMS_MAX = 1_000  # reported; the others are only counted
Progress = Callable[[int], None]

_TREE = re.compile(rf"\b(?:sqlite_autoindex_)?({SQL_TABLE_PREFIX}|log)([0-9]+)(?:_([a-z0-9]+))?\b")


@dataclass(frozen=True, slots=True)
class StoreProblem:
    """One inconsistency, and where it is."""

    place: str
    what: str


@dataclass(slots=True)
class VerificationReport:
    """What was checked, and the problems found."""

    tables: int = 0
    backups: int = 0
    items: int = 0  # of both
    changes: int = 0  # in the logs
    problems: list[StoreProblem] = field(default_factory=list)
    unlisted: int = 0  # problems beyond those that are listed

    def add(self, place: str, what: str) -> None:
        """Add a problem."""
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(StoreProblem(place, what))
        else:
            self.unlisted += 1


def verify(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    clock: Clock = SYSTEM_CLOCK,
    progress: Progress | None = None,
) -> VerificationReport:
    """Check a store's file, without changing it; no other process may have it open meanwhile."""
    _check_form(path, key)
    report = VerificationReport()
    try:
        store = Store.open(path, sync="full", cache_mb=_CACHE_MB, key=key, check_pages=False, upgrade=False)
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
    """Refuse a file that is not a store, or is encrypted, rather than report it as damaged."""
    if not os.path.getsize(path):
        raise StoreForeign(f"{path} is empty; it is not a Tavola database file yet.")
    form = form_of(path)
    if form == "other":
        raise StoreForeign(f"{path} is not a Tavola database file.")
    if form == "encrypted" and key is None:
        raise StoreLocked(f"{path} is encrypted, but no key was passed")


def _verify_store(store: Store, clock: Clock, report: VerificationReport, progress: Progress | None) -> None:
    damaged = store.problems(_LISTED_MAX)  # before the transaction, which an unreadable page would end
    checks: list[_TableVerification] = []
    logs: dict[int, ChangeLog] = {}
    unreadable: list[StoreProblem] = []
    try:
        store.begin(
            will_commit=False
        )  # rolled back at the end, with any log that reading the catalog creates
        store.upgrade_for_now()
        checks += [
            _TableVerification(store, table, report, progress)
            for table in Catalog(store, StoreTime(store, clock)).tables()
        ]
        logs = {number: store.log(number) for number in store.log_numbers()}
        checks += _check_kept_tables(store, report, progress)
    except StoreError as error:
        unreadable.append(StoreProblem("catalog", str(error)))
    except msgspec.DecodeError as error:
        unreadable.append(StoreProblem("catalog", f"the record of a backup cannot be read: {error}"))
    owners = {check.table.definition.number: check for check in checks}
    for page, tree, what in damaged:
        place = "file" if page is None else f"file, page {page}"
        if tree is not None:
            place = f"{place}, of {_owner(tree, owners)}"
        report.add(place, _TREE.sub(lambda match: _owner(match[0], owners), what))
    for problem in unreadable:
        report.add(problem.place, problem.what)
    for check in checks:
        check.run()
    names = {number: check.table.name for number, check in owners.items() if check.kept_as == "table"}
    for number, log in logs.items():
        _verify_log(log, f"log of {names.get(number, f'deleted table {number}')}", report)


def _check_kept_tables(
    store: Store, report: VerificationReport, progress: Progress | None
) -> list[_TableVerification]:
    """Return the checks of backups, and of the rows of deleted tables that a running copy still needs."""
    checks = [
        _TableVerification(store, Backups(store).table(backup), report, progress, backup)
        for backup in Backups(store)
    ]
    numbers = {check.table.definition.number for check in checks}
    deleted = (table for table in kept_tables(store) if table.definition.number not in numbers)
    return checks + [
        _TableVerification(store, table, report, progress, kept_as="deleted table") for table in deleted
    ]


def _owner(tree: str, owners: dict[int, _TableVerification]) -> str:
    """Return the table, index or log that a table or index of SQLite belongs to."""
    match = _TREE.fullmatch(tree)
    if match is None:
        return "the catalog"
    kind, number, part = match[1], int(match[2]), match[3]
    check = owners.get(number)
    name = f"table {number}" if check is None else check.name
    if kind == "log":
        return f"the log of {name}"
    if check is not None and part is not None:
        index = next((index.name for index in every_index(check.table) if part in index.columns), None)
        return f"the key index of {name}" if index is None else f"index {index} of {name}"
    return name


class _TableVerification:
    """The verification of one table or backup: each row, then the counts."""

    def __init__(
        self,
        store: Store,
        table: StoredTable,
        report: VerificationReport,
        progress: Progress | None,
        backup: Backup | None = None,
        kept_as: Literal["table", "backup", "deleted table"] = "table",
    ) -> None:
        definition = table.definition
        self.rows = store.table(definition.number, table.columns)
        self.table = table
        self.report = report
        self.progress = progress
        self.kept_as = kept_as if backup is None else "backup"
        self.name = f"table {definition.name} of {definition.account} in {definition.region}"
        if backup is not None:
            self.name = f"backup {backup.name} ({backup.id}) of {self.name}"
        elif kept_as == "deleted table":
            self.name = f"deleted {self.name}, which is still being copied"
        self.counted = TableCounts()
        self.whole = True  # every row could be read, so the counts can be checked

    def run(self) -> None:
        """Report every problem of the table."""
        self.report.tables += self.kept_as == "table"
        self.report.backups += self.kept_as == "backup"
        row = 0
        while True:
            try:
                rows = self.rows.inspect(row, _SLICE_ROWS)
            except StoreError as error:
                self.report.add(self.name, f"the rows after row {row} cannot be read: {error}")
                self.whole = False
                break
            for row, undamaged, parts in rows:
                self._verify_row(row, undamaged, parts)
            self.report.items += len(rows)
            if self.progress is not None:
                self.progress(self.report.items)
            if len(rows) < _SLICE_ROWS:
                break
        if self.whole:
            self._verify_counts()

    def _verify_row(self, row: int, undamaged: bool, parts: KeyedRow) -> None:
        key, size, data, entries = parts[0], parts[1], parts[2], parts[4:]
        place = f"{self.name}, row {row}"
        if not _is_row(parts):
            self.report.add(place, "the row does not have the form of a table's rows")
            self.whole = False
            return
        self._count(size, entries)
        if not undamaged:
            self.report.add(place, "the checksum of the item does not match")
            return
        try:
            item = decode_item(data)
            item_key = self.table.schema.key_of(item)
        except (msgspec.DecodeError, KeyRefused, KeyError, TypeError, AttributeError) as error:
            self.report.add(place, f"the item cannot be read: {error}")
            return
        named = msgspec.json.encode({name: item[name] for name in self.table.schema.names}).decode()
        place = f"{place}, item {named}"
        if item_key != key:
            self.report.add(place, "the key of the row differs from the key of its item")
        if item_size(item) != size:
            self.report.add(place, f"the stored size is {size} bytes, but the item has {item_size(item)}")
        self._verify_entries(row, place, item, entries)

    def _verify_entries(self, row: int, place: str, item: Item, entries: Sequence[Entry]) -> None:
        at = 0
        for index in every_index(self.table):
            width = len(index.columns)
            stored_entries, expected = tuple(entries[at : at + width]), _expected_entries(index, item)
            at += width
            if stored_entries == expected or _is_unfilled(index.definition.filled_to, row, stored_entries):
                continue
            self.report.add(place, f"its entry in index {index.name} does not follow from the item")
        ttl = self.table.definition.ttl
        if self.table.expiry is not None and ttl is not None:
            stored_entries = (entries[at],)
            expires = expiry_of(item.get(self.table.expiry))
            if stored_entries != (expires,) and not _is_unfilled(ttl.filled_to, row, stored_entries):
                self.report.add(
                    place, f"the stored expiry is {stored_entries[0]!r}, but the item's is {expires!r}"
                )

    def _count(self, size: int, entries: Sequence[Entry]) -> None:
        counted = self.counted
        counted.items += 1
        counted.bytes += size
        at = 0
        for index in every_index(self.table):
            bytes_ = size if index.projected is None else entries[at + 1]
            if entries[at] is not None and isinstance(bytes_, int):
                slot = index.definition.slot
                counted.index_items[slot] = counted.index_items.get(slot, 0) + 1
                counted.index_bytes[slot] = counted.index_bytes.get(slot, 0) + bytes_
            at += len(index.columns)

    def _verify_counts(self) -> None:
        recorded, counted = self.table.counts, self.counted
        if self.kept_as == "deleted table":
            return  # without counts
        if (recorded.items, recorded.bytes) != (counted.items, counted.bytes):
            self.report.add(
                self.name,
                f"the stored count is {recorded.items} items of {recorded.bytes} bytes; there are {counted.items} of "
                f"{counted.bytes}",
            )
        for index in every_index(self.table) if self.kept_as == "table" else ():
            slot = index.definition.slot
            stored = (recorded.index_items.get(slot, 0), recorded.index_bytes.get(slot, 0))
            actual = (counted.index_items.get(slot, 0), counted.index_bytes.get(slot, 0))
            if stored != actual:
                self.report.add(
                    f"{self.name}, index {index.name}",
                    f"the stored count is {stored[0]} entries of {stored[1]} bytes; there are {actual[0]} of "
                    f"{actual[1]}",
                )


def _is_row(row: KeyedRow) -> bool:
    """Return whether the values of a row have the types of a table's rows; those of a misplaced page do not."""
    parts: tuple[Any, ...] = row
    key, size, data, _, *entries = parts
    typed = isinstance(key, bytes) and isinstance(size, int) and isinstance(data, bytes)
    return typed and all(entry is None or isinstance(entry, bytes | int) for entry in entries)


def _expected_entries(index: StoredIndex | Vector, item: Item) -> tuple[Entry, ...]:
    """Return the entries of an item in an index; None if the item does not fit the index."""
    if isinstance(index, StoredIndex):
        return entry_of(index, item)
    try:
        return index.entries_of(item)
    except ValidationFault:
        return (None,) * len(index.columns)


def _is_unfilled(filled_to: int | None, row: int, entries: Sequence[Entry]) -> bool:
    """Return whether a row's entry may be missing, because the backfill has not reached it."""
    return filled_to is not None and row > filled_to and all(entry is None for entry in entries)


def _verify_log(log: ChangeLog, place: str, report: VerificationReport) -> None:
    """Report changes of a log that are missing or out of order, and images that cannot be read."""
    try:
        first, last, _ = log.span()
        before: ChangeLogRow | None = None
        after = first - 1
        while after < last:
            changes = log.read(after, last, _SLICE_ROWS)
            for change in changes:
                _verify_change(change, before, place, report)
                if isinstance(change.at_us, int):
                    before = change
            report.changes += len(changes)
            if not changes:
                break
            after = changes[-1].id
    except StoreError as error:
        report.add(place, f"the log cannot be read to its end: {error}")


def _verify_change(
    change: ChangeLogRow, before: ChangeLogRow | None, place: str, report: VerificationReport
) -> None:
    parts: tuple[Any, ...] = change
    if not (isinstance(parts[1], int) and isinstance(parts[2], bytes) and isinstance(parts[3], int)):
        report.add(place, f"change {change.id} does not have the form of a change")
        return
    if before is not None:
        if change.id != before.id + 1:
            report.add(
                place, f"change {change.id} follows change {before.id}: the changes between are missing"
            )
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
            report.add(place, f"change {change.id} refers to an old image that is missing")
    except (msgspec.DecodeError, ValueError) as error:
        report.add(place, f"an image of change {change.id} cannot be read: {error}")
