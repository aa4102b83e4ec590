"""One item's read-check-write; every write passes here.

A write is *staged* first: the row that stands is read, the new image made and measured against key, index
and size rules, and whatever can be refused is refused. Applying a staged change refuses nothing any more, so a
transaction stages all of its writes, then applies all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zlib import adler32

from tavola.engine.catalog import Catalog, Table
from tavola.engine.indexes import entries_of, recount, sizes_of
from tavola.engine.journal import INSERT, MODIFY, REMOVE, Journal
from tavola.engine.storage import Entry, Found
from tavola.keys import KeyRefused, bounds_around
from tavola.limits import ITEM_BYTES_MAX, ITEM_COLLECTION_BYTES_MAX
from tavola.protocol.faults import ItemCollectionSizeLimitExceededFault, ValidationFault
from tavola.values import TOO_LARGE, Item, decode_item, encode_item, equal

UPDATE_TOO_LARGE = "Item size to update has exceeded the maximum allowed size"
KEY_MISMATCH = "The provided key element does not match the schema"


@dataclass(slots=True)
class CurrentItem:
    """The row that a write meets: decoded at the first look inside, and never if nobody looks."""

    table: Table
    key: bytes
    row: Found | None
    _item: Item | None = None

    @property
    def item(self) -> Item | None:
        """Return the item that stands, None if there is none."""
        if self._item is None and self.row is not None:
            self._item = decode_item(self.row[2])
        return self._item

    @property
    def data(self) -> bytes | None:
        """Return the item that stands as the bytes it is stored in."""
        return None if self.row is None else self.row[2]

    @property
    def size(self) -> int:
        """Return the bytes that the item counts for, 0 if there is none."""
        return 0 if self.row is None else self.row[1]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Return the row's index columns, all None if there is no row."""
        return (None,) * len(self.table.columns) if self.row is None else self.row[4:]


@dataclass(slots=True)
class ItemWrite:
    """A write that nothing stands in the way of: what stood, and what shall stand (None: nothing)."""

    current: CurrentItem
    item: Item | None
    data: bytes
    size: int
    entries: tuple[Entry, ...]

    @property
    def table(self) -> Table:
        """Return the table it changes."""
        return self.current.table


def key_of_item(table: Table, item: Mapping[str, Any]) -> bytes:
    """Return the key of an item to be put; refuse it in the words of PutItem."""
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
    """Return the key that a request names; refuse what is not exactly the schema's attributes."""
    try:
        if len(key) == len(table.schema.names):
            return table.schema.key_of(key)
    except KeyRefused as refused:
        raise ValidationFault(str(refused)) from refused
    raise ValidationFault(KEY_MISMATCH)


def find_current(table: Table, key: bytes) -> CurrentItem:
    """Return what stands under a key."""
    return CurrentItem(table, key, table.rack.find(key))


def prepare_put(current: CurrentItem, item: Item, size: int) -> ItemWrite:
    """Return the change that puts an admitted item in the place of what stands."""
    entries = entries_of(current.table, item)
    _check_size(current, size, entries, TOO_LARGE)
    return ItemWrite(current, item, encode_item(item), size, entries)


def prepare_replacement(current: CurrentItem, item: Item, size: int, written: frozenset[str]) -> ItemWrite:
    """Return the change that puts an item, updated in some attributes, in the place of what stands."""
    table = current.table
    if current.row is not None and table.indexed.isdisjoint(written):
        entries = current.entries
    else:
        entries = entries_of(table, item, updating=True, written=written)
    _check_size(current, size, entries, UPDATE_TOO_LARGE)
    return ItemWrite(current, item, encode_item(item), size, entries)


def prepare_delete(current: CurrentItem) -> ItemWrite:
    """Return the change that removes what stands."""
    return ItemWrite(current, None, b"", 0, (None,) * len(current.table.columns))


def apply_write(catalog: Catalog, write: ItemWrite, mark: int = 0) -> None:
    """Write a staged change: the row, its index columns, the table's counts, its line in the journal."""
    current = write.current
    table = current.table
    row = current.row
    journal = table.journal
    if write.item is None:
        if row is not None:
            table.rack.delete(row[0])
            recount(table, row[1], row[4:], 0, None)
            catalog.touch(table)
            if journal is not None:
                item = current.item if journal.keys_alone else None
                journal.note(current.key, REMOVE, row[2], None, item, mark)
    elif row is None:
        table.rack.insert(current.key, write.size, write.data, write.entries)
        recount(table, 0, None, write.size, write.entries)
        catalog.touch(table)
        if journal is not None:
            journal.note(current.key, INSERT, None, write.data, write.item, mark)
    elif row[2] != write.data:
        table.rack.replace(row[0], write.size, write.data, row[4:], write.entries)
        if row[1] != write.size or row[4:] != write.entries:
            recount(table, row[1], row[4:], write.size, write.entries)
            catalog.touch(table)
        if journal is not None:
            _log_modification(journal, write, row[2], mark)
    for vector in table.vectors:
        old = None if row is None else row[4:]
        vector.follow(current.key, old, None if write.item is None else write.entries)


def _log_modification(journal: Journal, write: ItemWrite, old: bytes, mark: int) -> None:
    """Note a change of an item; one whose members only moved about is none."""
    new = write.data
    current = write.current
    if certainly_differ(old, new) or not equal({"M": current.item}, {"M": write.item}):
        journal.note(current.key, MODIFY, old, new, write.item, mark)


def certainly_differ(old: bytes, new: bytes) -> bool:
    """Tell, without a look inside, that two stored items are not one with its members moved about.

    Moving members about changes neither how many bytes there are, nor their sum, which is the lower half of
    an Adler checksum, nor how often a digit is among them; so most need no closer look.
    """
    return (
        len(old) != len(new)
        or (adler32(old) ^ adler32(new)) & 0xFFFF != 0
        or any(old.count(digit) != new.count(digit) for digit in b"0123456789")
    )


def collection_bytes(table: Table, key: bytes) -> int:
    """Return the bytes of an item collection: its items and their entries in local indexes."""
    bounds = bounds_around(table.schema, key)
    total = table.rack.total("key", "size", bounds)
    for index in table.indexes:
        if not index.is_global:
            total += table.rack.total(index.column, index.size_column, bounds)
    return total


def _check_size(current: CurrentItem, size: int, entries: tuple[Entry, ...], message: str) -> None:
    """Refuse an item that is too large, counted with its entries in local indexes.

    Collections are summed only where the whole table is large enough to hold one that is too large.
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
