"""Writes of single items; every write to a table passes through here.

A write has two phases. `prepare_*` reads the current row, builds the new one and checks it against the rules for keys,
indexes and sizes; everything that can be refused is refused there. `apply_write` then stores the row and cannot fail a
validation any more. So a transaction prepares all of its writes before it applies the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from zlib import adler32

import msgspec

from tavola.engine.catalog import Catalog, StoredIndex, StoredTable, TableCounts
from tavola.engine.journal import INSERT, MODIFY, REMOVE, Journal
from tavola.engine.storage import Entry, StoredRow
from tavola.engine.vectors import Vector
from tavola.expressions.conditions import CompiledCondition, Values, evaluate, evaluate_in_steps
from tavola.expressions.updates import UPDATE_TOO_LARGE, AppliedUpdate
from tavola.keys import KeyRefused, bounds_around
from tavola.limits import ITEM_BYTES_MAX, ITEM_COLLECTION_BYTES_MAX
from tavola.protocol.faults import (
    ConditionalCheckFailedFault,
    ItemCollectionSizeLimitExceededFault,
    ValidationFault,
)
from tavola.values import (
    LARGE_ITEM_BYTES,
    TOO_LARGE,
    AdmittedMap,
    Item,
    Steps,
    Value,
    decode_item,
    decode_item_in_steps,
    encode_item,
    equal,
    release_in_steps,
    text_size,
    value_size,
)

ATTEMPTS_MAX = 3
"""How often a write of large items is prepared in steps; if they changed each time meanwhile, it is then prepared in one."""

_EXPIRY_S_MAX = 2**53
_COMPARED_BYTES_MAX = 64 * 1024
_EMPTY = "The AttributeValue for a key attribute cannot contain an empty {} value."
_NOT_VALID = "One or more parameter values are not valid. "
KEY_MISMATCH = "The provided key element does not match the schema"


@dataclass(slots=True)
class CurrentItem:
    """The stored row that a write replaces.

    The item is decoded on first access: most writes need only its size and index columns, which are stored beside it.
    """

    table: StoredTable
    key: bytes
    row: StoredRow | None
    _item: Item | None = None
    _is_met: bool | None = None  # the write's condition, if it was evaluated in steps

    @property
    def item(self) -> Item | None:
        """The current item, None if there is none."""
        if self._item is None and self.row is not None:
            self._item = decode_item(self.row[2])
        return self._item

    @property
    def is_large(self) -> bool:
        """Whether decoding the item takes long enough to be done in steps."""
        return self.row is not None and len(self.row[2]) >= LARGE_ITEM_BYTES

    def set_item(self, item: Item, is_met: bool | None) -> None:
        """Set what the stored item decodes to and whether it meets the write's condition, so that neither is done again."""
        self._item = item
        self._is_met = is_met

    def meets(self, condition: CompiledCondition, values: Values) -> bool:
        """Return whether the current item meets the condition of its write."""
        return evaluate(condition, self.item, values) if self._is_met is None else self._is_met

    def release(self) -> Steps[None]:
        """Free a large item in steps; it and what was made of it must not be used any more."""
        if self.is_large and self._item is not None:
            yield from release_in_steps(self._item)

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
    def table(self) -> StoredTable:
        """The table written to."""
        return self.current.table


def key_of_item(table: StoredTable, item: Mapping[str, Any]) -> bytes:
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


def key_of_request(table: StoredTable, key: Mapping[str, Any]) -> bytes:
    """Return the encoded form of a request's Key, which must have exactly the key attributes."""
    try:
        if len(key) == len(table.schema.names):
            return table.schema.key_of(key)
    except KeyRefused as refused:
        raise ValidationFault(str(refused)) from refused
    raise ValidationFault(KEY_MISMATCH)


def find_current(table: StoredTable, key: bytes) -> CurrentItem:
    """Return the current item with a key."""
    return CurrentItem(table, key, table.rows.find(key))


def decode_in_steps(
    data: bytes, condition: CompiledCondition | None, values: Values
) -> Steps[tuple[Item, bool | None]]:
    """Return a large item, and whether it meets a condition, None without one; pauses within both."""
    item = yield from decode_item_in_steps(data)
    if condition is None:
        return item, None
    return item, (yield from evaluate_in_steps(condition.tree, item, values))


def condition_failure(current: CurrentItem, show: str | None) -> ConditionalCheckFailedFault:
    """Return the fault of a failed condition; `show="ALL_OLD"` puts the current item on it."""
    item = current.data if show == "ALL_OLD" else None
    return ConditionalCheckFailedFault(None if item is None else msgspec.Raw(item))


def prepare_put(current: CurrentItem, item: Item, size: int) -> ItemWrite:
    """Return the write that replaces the current item with `item`, whose values are already checked."""
    entries = entries_of(current.table, item)
    _check_size(current, size, entries, TOO_LARGE)
    data = encode_item(item) if type(item) is not AdmittedMap else item.data
    return ItemWrite(current, item, data, size, entries)


def prepare_replacement(
    current: CurrentItem,
    item: Item,
    size: int,
    written: frozenset[str],
    copied: frozenset[str] = frozenset(),
) -> ItemWrite:
    """Return the write of an updated item, in which only the attributes `written` differ from the current one.

    `copied` are those of them that were set to the value of another attribute.
    """
    table = current.table
    if current.row is not None and table.indexed.isdisjoint(written):
        entries = current.entries
    else:
        entries = entries_of(table, item, updating=True, written=written, copied=copied)
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
    """Log a modification, unless the two images differ only in the order of members.

    Large images are not compared any further, because that would take long: in another order, they count as modified.
    """
    new = write.data
    current = write.current
    if (
        len(new) > _COMPARED_BYTES_MAX
        or certainly_differ(old, new)
        or not equal({"M": current.item}, {"M": write.item})
    ):
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


def collection_bytes(table: StoredTable, key: bytes) -> int:
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
        index_sizes or 0
        for index, index_sizes in zip(table.indexes, sizes_of(table, size, entries), strict=True)
        if not index.is_global
    ]
    if size + sum(locally) > ITEM_BYTES_MAX:
        raise ValidationFault(message)
    shares = 1 + len(locally)
    if size <= current.size or (table.counts.bytes + size) * shares <= ITEM_COLLECTION_BYTES_MAX:
        return
    if collection_bytes(table, current.key) + size - current.size > ITEM_COLLECTION_BYTES_MAX:
        raise ItemCollectionSizeLimitExceededFault()


# Index entries


def entries_of(
    table: StoredTable,
    item: Item,
    *,
    updating: bool = False,
    written: frozenset[str] | None = None,
    copied: frozenset[str] = frozenset(),
) -> tuple[Entry, ...]:
    """Return an item's entry for each index column; refuse an item that an index cannot take.

    `written` has the attributes that an update wrote: a vector index checks only those. `copied` are those that it set
    to the value of another attribute, which are refused in other words.
    """
    entries: list[Entry] = []
    sizes: dict[str, int] = {}  # of the attributes, once for all projections
    for index in table.indexes:
        try:
            key = index.schema.entry_of(item)
        except KeyRefused as refused:
            raise _refusal(index, refused, updating, copied) from refused
        entries.append(key)
        if index.projected is not None:
            if key is not None:
                for name in index.projected:
                    if name not in sizes and name in item:
                        sizes[name] = text_size(name) + value_size(item[name])
            entries.append(
                None if key is None else sum([sizes[name] for name in index.projected if name in sizes])
            )
    for vector in table.vectors:
        entries.extend(vector.entries_of(item, updating=updating, written=written))
    if table.expiry is not None:
        entries.append(expiry_of(item.get(table.expiry)))
    return tuple(entries)


def every_index(table: StoredTable) -> tuple[StoredIndex | Vector, ...]:
    """Return the indexes of a table in the order of their columns: vector indexes after the others."""
    return (*table.indexes, *table.vectors)


def entry_of(index: StoredIndex | Vector, item: Item) -> tuple[Entry, ...]:
    """Return an item's entry for each column of one index; None if the index cannot take the item.

    For items that existed before the index; AWS skips those that do not fit.
    """
    if isinstance(index, Vector):
        return index.entries_of(item, written=frozenset())
    try:
        key = index.schema.entry_of(item)
    except KeyRefused:
        key = None
    if index.projected is None:
        return (key,)
    return key, None if key is None else projected_size(index.projected, item)


def expiry_of(value: Value | None) -> int | None:
    """Return the expiry time in an attribute value, in epoch seconds; None if the item does not expire.

    AWS ignores everything but a number that can be a time.
    """
    if value is None or "N" not in value:
        return None
    try:
        seconds = int(Decimal(value["N"]))
    except (ValueError, OverflowError):
        return None
    return seconds if 0 < seconds < _EXPIRY_S_MAX else None


def projected_size(projected: frozenset[str], item: Item) -> int:
    """Return the size of the projected part of an item."""
    return sum(text_size(name) + value_size(item[name]) for name in projected if name in item)


def project_entry(index: StoredIndex, item: Item) -> Item:
    """Return the part of an item that an index projects."""
    if index.projected is None:
        return item
    return {name: value for name, value in item.items() if name in index.projected}


def sizes_of(table: StoredTable, size: int, entries: Sequence[Entry]) -> list[int | None]:
    """Return for each index the size of a row's entry, None if it has no entry."""
    sizes: list[int | None] = []
    position = 0
    for index in table.indexes:
        if index.projected is None:
            sizes.append(None if entries[position] is None else size)
            position += 1
        else:
            entry = entries[position + 1]
            assert entry is None or isinstance(entry, int), "the second column of a projection is its size"
            sizes.append(entry)
            position += 2
    return sizes


def keys_of(table: StoredTable, entries: Sequence[Entry]) -> list[Entry]:
    """Return for each index the ordered key of a row's entry, None if it has no entry."""
    keys: list[Entry] = []
    position = 0
    for index in table.indexes:
        keys.append(entries[position])
        position += len(index.columns)
    return keys


def recount(
    table: StoredTable,
    old_size: int,
    old: Sequence[Entry] | None,
    new_size: int,
    new: Sequence[Entry] | None,
) -> None:
    """Update a table's counts for a row that was added, changed or deleted (None: no row)."""
    counts: TableCounts = table.counts
    counts.items += (new is not None) - (old is not None)
    counts.bytes += new_size - old_size
    for vector in table.vectors:
        was = None if old is None else vector.counted_size(old_size, old)
        now = None if new is None else vector.counted_size(new_size, new)
        _recount(counts, vector.definition.slot, was, now)
    if not table.indexes:
        return
    before = sizes_of(table, old_size, old) if old is not None else [None] * len(table.indexes)
    after = sizes_of(table, new_size, new) if new is not None else [None] * len(table.indexes)
    if before == after:
        return
    for index, was, now in zip(table.indexes, before, after, strict=True):
        _recount(counts, index.definition.slot, was, now)


def _recount(counts: TableCounts, slot: int, was: int | None, now: int | None) -> None:
    if was != now:
        moved = (now is not None) - (was is not None)
        counts.index_items[slot] = counts.index_items.get(slot, 0) + moved
        counts.index_bytes[slot] = counts.index_bytes.get(slot, 0) + (now or 0) - (was or 0)


def _refusal(
    index: StoredIndex, refused: KeyRefused, updating: bool, copied: frozenset[str]
) -> ValidationFault:
    match refused.reason:
        case "type":
            if refused.name in copied:
                return ValidationFault(
                    "The update expression attempted to update the secondary index key to unsupported type"
                )
            return ValidationFault(
                f"One or more parameter values were invalid: Type mismatch for Index Key {refused.name} "
                f"Expected: {refused.expected} Actual: {refused.actual} IndexName: {index.name}"
            )
        case "empty":
            empty = _EMPTY.format(refused.type_word)
            if updating:
                return ValidationFault(
                    f"{_NOT_VALID}The update expression attempted to update a secondary index key to a "
                    f"value that is not supported. {empty}"
                )
            return ValidationFault(
                f"{_NOT_VALID}A value specified for a secondary index key is not supported. {empty} "
                f"IndexName: {index.name}, IndexKey: {refused.name}"
            )
        case _ if updating:
            return ValidationFault(
                "The update expression attempted to update the secondary index key beyond allowed size limits"
            )
        case _:
            return ValidationFault(str(refused))
