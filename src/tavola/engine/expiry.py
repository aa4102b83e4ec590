"""Expiry: deletes items whose time to live is over.

A table with time to live has an ordered column with the second at which each item expires, so a sweep reads only the
items that are due, however large the table is. An item whose expiry was extended before the sweep is not due any more.
"""

from __future__ import annotations

import msgspec

from tavola.engine.catalog import Catalog, StoredTable, TimeToLive
from tavola.engine.journal import BY_SERVICE
from tavola.engine.storage import Entry
from tavola.engine.writes import apply_write, expiry_of, find_current, prepare_delete
from tavola.limits import TTL_PAST_S_MAX
from tavola.values import decode_item

_SLICE_ROWS = 256


def enable_expiry(catalog: Catalog, table: StoredTable, attribute: str, changed_at_s: float) -> StoredTable:
    """Turn expiry on: add the column, which is then filled from the existing rows a slice at a time."""
    definition = table.definition
    slot = definition.slots + 1
    column = f"t{slot}"
    catalog.add_column(definition.number, column)
    ttl = TimeToLive(attribute, True, changed_at_s, column, filled_to=0)
    return catalog.change(table, msgspec.structs.replace(definition, ttl=ttl, slots=slot))


def disable_expiry(catalog: Catalog, table: StoredTable, changed_at_s: float) -> StoredTable:
    """Turn expiry off and drop its column."""
    definition = table.definition
    ttl = definition.ttl
    assert ttl is not None, "expiry is on"
    if ttl.column is not None:
        catalog.drop_column(definition.number, ttl.column)
    off = TimeToLive(ttl.attribute, False, changed_at_s)
    return catalog.change(table, msgspec.structs.replace(definition, ttl=off))


def next_unfilled(catalog: Catalog) -> StoredTable | None:
    """Return a table whose expiry column is not complete yet."""
    for table in catalog.tables():
        ttl = table.definition.ttl
        if table.expiry is not None and ttl is not None and ttl.filled_to is not None:
            return table
    return None


def fill_slice(catalog: Catalog, table: StoredTable) -> None:
    """Fill the next rows of an expiry column; when there are none left, it is complete."""
    ttl = table.definition.ttl
    assert ttl is not None, "a column that is filled belongs to a setting"
    assert ttl.filled_to is not None, "only a column that is not complete is filled"
    rows = table.rows.walk(ttl.filled_to, _SLICE_ROWS)
    for row in rows:
        expires = expiry_of(decode_item(row[2]).get(ttl.attribute))
        current: tuple[Entry, ...] = row[4:]
        entries = (*current[:-1], expires)  # the column is the last
        if entries != current:
            table.rows.fill(row[0], entries)
    reached = rows[-1][0] if len(rows) == _SLICE_ROWS else None
    changed = msgspec.structs.replace(ttl, filled_to=reached)
    catalog.change(table, msgspec.structs.replace(table.definition, ttl=changed))


def tables_with_expiry(catalog: Catalog) -> list[StoredTable]:
    """Return the tables whose items expire."""
    return [table for table in catalog.tables() if table.expiry is not None]


def delete_expired_slice(catalog: Catalog, table: StoredTable, now_s: float, delay_s: float = 0.0) -> int:
    """Delete some of the expired items, the oldest first, and return how many.

    As on AWS, a time more than five years ago does not count: it is more likely a mistake.
    """
    ttl = table.definition.ttl
    if ttl is None or ttl.column is None:
        return 0
    upto = int(now_s - delay_s)
    keys = table.rows.due(ttl.column, int(now_s) - TTL_PAST_S_MAX, upto, _SLICE_ROWS)
    for key in keys:
        apply_write(catalog, prepare_delete(find_current(table, key)), BY_SERVICE)
    return len(keys)
