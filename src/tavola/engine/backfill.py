"""Backfill: fills a new index from existing rows, a slice at a time, between requests.

Writes maintain the index from the moment it exists. The backfill walks the older rows by their ids and stores the id it
reached in the transaction of each slice, so it continues after a restart. A row that does not fit the index is skipped,
as on AWS.
"""

from __future__ import annotations

import msgspec

from tavola.engine.catalog import Catalog, StoredIndex, StoredTable
from tavola.engine.storage import Entry
from tavola.engine.vectors import Vector
from tavola.engine.writes import entry_of
from tavola.values import Item, decode_item

_SLICE_ROWS = 256


def next_unfilled(catalog: Catalog) -> tuple[StoredTable, StoredIndex | Vector] | None:
    """Return a table and an index of it that is not complete yet."""
    for table in catalog.tables():
        indexes: tuple[StoredIndex | Vector, ...] = (*table.indexes, *table.vectors)
        for index in indexes:
            if index.definition.filled_to is not None:
                return table, index
    return None


def fill_slice(catalog: Catalog, table: StoredTable, index: StoredIndex | Vector) -> None:
    """Fill the next rows of an index; when there are none left, it is complete."""
    filled_to = index.definition.filled_to
    assert filled_to is not None, "only an index that is not complete is filled"
    rows = table.rows.walk(filled_to, _SLICE_ROWS)
    counts = table.counts
    slot = index.definition.slot
    for row in rows:
        entries = _with_entry(table, index, decode_item(row[2]), row[4:])
        if entries != row[4:]:
            table.rows.fill(row[0], entries)
            size = entries[_column(table, index) + 1] if index.projected is not None else row[1]
            assert isinstance(size, int), "a new entry has a size"
            counts.index_items[slot] = counts.index_items.get(slot, 0) + 1
            counts.index_bytes[slot] = counts.index_bytes.get(slot, 0) + size
    reached = rows[-1][0] if len(rows) == _SLICE_ROWS else None
    definition = table.definition
    if isinstance(index, Vector):
        filled = msgspec.structs.replace(index.definition, filled_to=reached)
        vectors = tuple(filled if vector.slot == slot else vector for vector in definition.vectors)
        catalog.change(table, msgspec.structs.replace(definition, vectors=vectors))
        return
    changed = msgspec.structs.replace(index.definition, filled_to=reached)
    indexes = tuple(changed if index.slot == slot else index for index in definition.indexes)
    catalog.change(table, msgspec.structs.replace(definition, indexes=indexes))


def _with_entry(
    table: StoredTable, index: StoredIndex | Vector, item: Item, entries: tuple[Entry, ...]
) -> tuple[Entry, ...]:
    column = _column(table, index)
    if entries[column] is not None:
        return entries  # written since the index was created
    index_entry = entry_of(index, item)
    if index_entry[0] is None:
        return entries
    return entries[:column] + index_entry + entries[column + len(index_entry) :]


def _column(table: StoredTable, index: StoredIndex | Vector) -> int:
    return table.columns.index(index.column)
