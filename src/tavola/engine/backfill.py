"""Backfill: a new index is filled a slice at a time, between the requests of others.

Writes maintain the index from the moment it exists; the backfill walks the rows that were there before, by
their ids, and keeps how far it has come with the slice it has done, so it goes on after a restart. A row
that the index cannot take is passed over, as AWS does.
"""

from __future__ import annotations

import msgspec

from tavola.engine.catalog import Catalog, StoredIndex, StoredTable
from tavola.engine.storage import Entry
from tavola.engine.vectors import Vector
from tavola.engine.writes import projected_size
from tavola.keys import KeyRefused
from tavola.protocol.faults import ValidationFault
from tavola.values import Item, decode_item

_SLICE_ROWS = 256


def next_unfilled(catalog: Catalog) -> tuple[StoredTable, StoredIndex | Vector] | None:
    """Return a table and an index of it that is not complete yet."""
    for table in catalog.tables():
        each: tuple[StoredIndex | Vector, ...] = (*table.indexes, *table.vectors)
        for index in each:
            if index.definition.filled_to is not None:
                return table, index
    return None


def fill_slice(catalog: Catalog, table: StoredTable, index: StoredIndex | Vector) -> None:
    """Fill the next rows of an index; when there are none left, it is complete."""
    filled_to = index.definition.filled_to
    assert filled_to is not None, "only an index that is not complete is filled"
    found = table.rows.walk(filled_to, _SLICE_ROWS)
    counts = table.counts
    slot = index.definition.slot
    for row in found:
        entries = _with_entry(table, index, decode_item(row[2]), row[4:])
        if entries != row[4:]:
            table.rows.fill(row[0], entries)
            size = entries[_place(table, index) + 1] if index.projected is not None else row[1]
            assert isinstance(size, int), "an entry that was made has a size"
            counts.index_items[slot] = counts.index_items.get(slot, 0) + 1
            counts.index_bytes[slot] = counts.index_bytes.get(slot, 0) + size
    reached = found[-1][0] if len(found) == _SLICE_ROWS else None
    definition = table.definition
    if isinstance(index, Vector):
        filled = msgspec.structs.replace(index.definition, filled_to=reached)
        vectors = tuple(filled if each.slot == slot else each for each in definition.vectors)
        catalog.change(table, msgspec.structs.replace(definition, vectors=vectors))
        return
    changed = msgspec.structs.replace(index.definition, filled_to=reached)
    indexes = tuple(changed if each.slot == slot else each for each in definition.indexes)
    catalog.change(table, msgspec.structs.replace(definition, indexes=indexes))


def _with_entry(
    table: StoredTable, index: StoredIndex | Vector, item: Item, entries: tuple[Entry, ...]
) -> tuple[Entry, ...]:
    place = _place(table, index)
    if entries[place] is not None:
        return entries  # written since the index was made
    own = _own_entries(index, item)
    if own[0] is None:
        return entries
    return entries[:place] + own + entries[place + len(own) :]


def _own_entries(index: StoredIndex | Vector, item: Item) -> tuple[Entry, ...]:
    try:
        if isinstance(index, Vector):
            return index.entries_of(item)
        key = index.schema.entry_of(item)
    except (KeyRefused, ValidationFault):
        return (None,)
    if key is None or index.projected is None:
        return (key,)
    return key, projected_size(index.projected, item)


def _place(table: StoredTable, index: StoredIndex | Vector) -> int:
    return table.columns.index(index.column)
