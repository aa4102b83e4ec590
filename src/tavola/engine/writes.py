"""Writes of single items; every write to a table passes through here.

A write has two phases. `prepare_*` reads the current row, builds the new one and checks it against the rules for keys,
indexes and sizes; everything that can be refused is refused there. `apply_write` then stores the row and cannot fail a
validation any more. So a transaction prepares all of its writes before it applies the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zlib import adler32

from tavola.engine.catalog import Catalog, Table
from tavola.engine.indexes import entries_of, recount, sizes_of
from tavola.engine.journal import INSERT, MODIFY, REMOVE, Journal
from tavola.engine.storage import Entry, StoredRow
from tavola.expressions.updates import AppliedUpdate
from tavola.keys import KeyRefused, bounds_around
from tavola.limits import ITEM_BYTES_MAX, ITEM_COLLECTION_BYTES_MAX
from tavola.protocol.faults import ItemCollectionSizeLimitExceededFault, ValidationFault
from tavola.values import TOO_LARGE, Item, decode_item, encode_item, equal

UPDATE_TOO_LARGE = "Item size to update has exceeded the maximum allowed size"
KEY_MISMATCH = "The provided key element does not match the schema"


@dataclass(slots=True)
class CurrentItem:
    """The stored row that a write replaces.

    The item is decoded on first access: most writes need only its size and index columns, which are stored beside it.
    """

    table: Table
    key: bytes
    row: StoredRow | None
    _item: Item | None = None

    @property
    def item(self) -> Item | None:
        """The current item, None if there is none."""
        if self._item is None and self.row is not None:
            self._item = decode_item(self.row[2])
        return self._item

    @property
    def data(self) -> bytes | None:
        """The current item as stored."""
        return None if self.row is None else self.row[2]

    @property
    def size(self) -> int:
        """The item's size in bytes as AWS counts it, 0 if there is none."""
        return 0 if self.row is None else self.row[1]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The row's index columns, all None if there is no row."""
        return (None,) * len(self.table.columns) if self.row is None else self.row[4:]


@dataclass(slots=True)
class ItemWrite:
    """A validated write: the current item and its replacement (None deletes)."""

    current: CurrentItem
    item: Item | None
    data: bytes
    size: int
    entries: tuple[Entry, ...]  # the index columns of the new row
    applied: AppliedUpdate | None = None  # of an update: which paths it wrote

    @property
    def table(self) -> Table:
        """The table written to."""
        return self.current.table


def key_of_item(table: Table, item: Mapping[str, Any]) -> bytes:
    """Return the encoded key of an item; a bad key is refused with PutItem's messages."""
    try:
        return table.schema.key_of(item)
    except KeyRefused as refused:
        match refused.reason:
            case "missing":
                text = (
                    f"One or more parameter values were invalid: Missing the key {refused.name} in the item"
                )
            case "type":
                text = (
                    f"One or more parameter values were invalid: Type mismatch for key {refused.name} "
                    f"expected: {refused.expected} actual: {refused.actual}"
                )
            case _:
                text = str(refused)
        raise ValidationFault(text) from refused


def key_of_request(table: Table, key: Mapping[str, Any]) -> bytes:
    """Return the encoded form of a request's Key, which must have exactly the key attributes."""
    try:
        if len(key) == len(table.schema.names):
            return table.schema.key_of(key)
    except KeyRefused as refused:
        raise ValidationFault(str(refused)) from refused
    raise ValidationFault(KEY_MISMATCH)


def find_current(table: Table, key: bytes) -> CurrentItem:
    """Return the current item with a key."""
    return CurrentItem(table, key, table.rows.find(key))


def prepare_put(current: CurrentItem, item: Item, size: int) -> ItemWrite:
    """Return the write that replaces the current item with `item`, whose values are already checked."""
    entries = entries_of(current.table, item)
    _check_size(current, size, entries, TOO_LARGE)
    return ItemWrite(current, item, encode_item(item), size, entries)


def prepare_replacement(current: CurrentItem, item: Item, size: int, written: frozenset[str]) -> ItemWrite:
    """Return the write of an updated item, in which only the attributes `written` differ from the current one."""
    table = current.table
    if current.row is not None and table.indexed.isdisjoint(written):
        entries = current.entries
    else:
        entries = entries_of(table, item, updating=True, written=written)
    _check_size(current, size, entries, UPDATE_TOO_LARGE)
    return ItemWrite(current, item, encode_item(item), size, entries)


def prepare_delete(current: CurrentItem) -> ItemWrite:
    """Return the write that deletes the current item; deleting nothing is a valid write."""
    return ItemWrite(current, None, b"", 0, (None,) * len(current.table.columns))


def apply_write(catalog: Catalog, write: ItemWrite, mark: int = 0) -> None:
    """Store a prepared write: the row with its index columns, the table's counts, the journal and vectors."""
    current = write.current
    table = current.table
    row = current.row
    journal = table.journal
    if write.item is None:
        if row is not None:
            table.rows.delete(row[0])
            recount(table, row[1], row[4:], 0, None)
            catalog.mark_counts_changed(table)
            if journal is not None:
                item = current.item if journal.keys_alone else None
                journal.note(current.key, REMOVE, row[2], None, item, mark)
    elif row is None:
        table.rows.insert(current.key, write.size, write.data, write.entries)
        recount(table, 0, None, write.size, write.entries)
        catalog.mark_counts_changed(table)
        if journal is not None:
            journal.note(current.key, INSERT, None, write.data, write.item, mark)
    elif row[2] != write.data:
        table.rows.replace(row[0], write.size, write.data, row[4:], write.entries)
        if row[1] != write.size or row[4:] != write.entries:
            recount(table, row[1], row[4:], write.size, write.entries)
            catalog.mark_counts_changed(table)
        if journal is not None:
            _log_modification(journal, write, row[2], mark)
    for vector in table.vectors:
        old = None if row is None else row[4:]
        vector.update_copy(current.key, old, None if write.item is None else write.entries)


def _log_modification(journal: Journal, write: ItemWrite, old: bytes, mark: int) -> None:
    """Log a modification, unless the two images differ only in the order of members."""
    new = write.data
    current = write.current
    if certainly_differ(old, new) or not equal({"M": current.item}, {"M": write.item}):
        journal.note(current.key, MODIFY, old, new, write.item, mark)


def certainly_differ(old: bytes, new: bytes) -> bool:
    """Return True if two encoded items cannot be equal; False means they must be decoded and compared.

    Equal items differ at most in the order of their members, which keeps the number of bytes, their sum (the lower
    half of an Adler checksum) and the count of each digit. Checking these avoids most decoding.
    """
    return (
        len(old) != len(new)
        or (adler32(old) ^ adler32(new)) & 0xFFFF != 0
        or any(old.count(digit) != new.count(digit) for digit in b"0123456789")
    )


def collection_bytes(table: Table, key: bytes) -> int:
    """Return the size of an item collection: its items and their entries in local indexes."""
    bounds = bounds_around(table.schema, key)
    total = table.rows.total("key", "size", bounds)
    for index in table.indexes:
        if not index.is_global:
            total += table.rows.total(index.column, index.size_column, bounds)
    return total


def _check_size(current: CurrentItem, size: int, entries: tuple[Entry, ...], message: str) -> None:
    """Refuse an item, with its local index entries, or an item collection that is too large.

    A collection is summed only if the whole table is large enough to hold one over the limit.
    """
    table = current.table
    if not table.has_local:
        if size > ITEM_BYTES_MAX:
            raise ValidationFault(message)
        return
    locally = [
        own or 0
        for index, own in zip(table.indexes, sizes_of(table, size, entries), strict=True)
        if not index.is_global
    ]
    if size + sum(locally) > ITEM_BYTES_MAX:
        raise ValidationFault(message)
    shares = 1 + len(locally)
    if size <= current.size or (table.counts.bytes + size) * shares <= ITEM_COLLECTION_BYTES_MAX:
        return
    if collection_bytes(table, current.key) + size - current.size > ITEM_COLLECTION_BYTES_MAX:
        raise ItemCollectionSizeLimitExceededFault()
