"""Copies of a table's rows to another table, a slice at a time; backups and restores are such copies.

Rows are copied as they are, with their index entries. An item is decoded only if the target has an index that the source
does not have. Each slice is a transaction of its own, limited in rows and bytes, and stores the position it reached.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tavola.engine.catalog import StoredIndex, StoredTable
from tavola.engine.jobs import next_rows
from tavola.engine.storage import Entry, KeyedRow
from tavola.engine.vectors import Vector
from tavola.engine.writes import entry_of, every_index
from tavola.errors import TavolaError
from tavola.keys import Bounds
from tavola.values import decode_item

SLICE_ROWS_MAX = 500
_SLICE_ROWS_MIN = 4
_SLICE_BYTES = 512 * 1024


class CopyIncomplete(TavolaError):
    """A finished copy does not have the items of its source."""


class CopyPosition(Struct, frozen=True):
    """The progress of a copy, and the number of rows of its next step."""

    after: bytes = b""  # the last key that is done; empty: none yet
    rows: int = 64

    def encode(self) -> dict[str, str | int]:
        """Return the position in the form that a job stores."""
        return {"after": self.after.hex(), "rows": self.rows}

    @classmethod
    def decode(cls, state: dict[str, str | int]) -> CopyPosition:
        """Return the position that a job has stored."""
        return cls(bytes.fromhex(str(state["after"])), int(state["rows"]))


START = CopyPosition()
"""The position at which a copy begins."""


def copy_slice(source: StoredTable, target: StoredTable, position: CopyPosition) -> CopyPosition | None:
    """Copy the rows after a position and count them; return the next position, or None at the end."""
    bounds = Bounds(position.after + b"\x00" if position.after else b"", None)
    source_rows = source.rows.rows(bounds, position.rows)
    if source_rows:
        rows = _with_entries(source, target, source_rows)
        target.rows.insert_rows(rows)
        _count(target, rows)
    if len(source_rows) < position.rows:
        return None
    rows_next = next_rows(
        position.rows,
        sum(row[1] for row in source_rows),
        slice_bytes=_SLICE_BYTES,
        rows_min=_SLICE_ROWS_MIN,
        rows_max=SLICE_ROWS_MAX,
    )
    return CopyPosition(source_rows[-1][0], rows_next)


def check_complete(target: StoredTable, items: int, bytes_: int) -> None:
    """Raise CopyIncomplete if a finished copy has other counts than expected."""
    counts = target.counts
    if (counts.items, counts.bytes) != (items, bytes_):
        raise CopyIncomplete(
            f"the copy has {counts.items:,} items of {counts.bytes:,} bytes, expected {items:,} of {bytes_:,}; "
            "check the store's file with `tavola verify`"
        )


def _with_entries(source: StoredTable, target: StoredTable, rows: list[KeyedRow]) -> list[KeyedRow]:
    """Return rows with the target's entries in place of the source's."""
    reusable = [(index, _reusable_columns(source, index)) for index in every_index(target)]
    if any(columns is None for _, columns in reusable):
        return [_with_computed_entries(row, reusable) for row in rows]
    if source.columns == target.columns:
        return rows
    columns_copied = [position for _, columns in reusable if columns is not None for position in columns]
    return [(row[0], row[1], row[2], row[3], *(row[position] for position in columns_copied)) for row in rows]


def _with_computed_entries(
    row: KeyedRow, reusable: Sequence[tuple[StoredIndex | Vector, range | None]]
) -> KeyedRow:
    item = decode_item(row[2])
    entries: list[Entry] = []
    for index, columns in reusable:
        entries += entry_of(index, item) if columns is None else row[columns.start : columns.stop]
    return row[0], row[1], row[2], row[3], *entries


def _reusable_columns(source: StoredTable, index: StoredIndex | Vector) -> range | None:
    """Return the positions of an index's entries in a source row; None if the source lacks the index, complete."""
    for source_index in every_index(source):
        if (
            source_index.name == index.name
            and source_index.definition.filled_to is None
            and _are_alike(source_index, index)
        ):
            start = 4 + source.columns.index(source_index.column)
            return range(start, start + len(source_index.columns))
    return None


def _are_alike(one: StoredIndex | Vector, other: StoredIndex | Vector) -> bool:
    """Return whether two indexes have the same entries for every item."""
    if one.projected != other.projected:
        return False
    if isinstance(one, StoredIndex):
        return isinstance(other, StoredIndex) and one.schema == other.schema
    if not isinstance(other, Vector):
        return False
    mine, yours = one.definition, other.definition
    return (mine.attribute, mine.dimensions, mine.schema, one.types) == (
        yours.attribute,
        yours.dimensions,
        yours.schema,
        other.types,
    )


def _count(target: StoredTable, rows: Sequence[KeyedRow]) -> None:
    """Add rows to a table's counts."""
    counts = target.counts
    counts.items += len(rows)
    counts.bytes += sum(row[1] for row in rows)
    for index in every_index(target):
        column = 4 + target.columns.index(index.column)
        size_column = 1 if index.projected is None else column + 1
        sizes = [row[size_column] for row in rows if row[column] is not None]
        slot = index.definition.slot
        counts.index_items[slot] = counts.index_items.get(slot, 0) + len(sizes)
        counts.index_bytes[slot] = counts.index_bytes.get(slot, 0) + sum(
            size for size in sizes if isinstance(size, int)
        )
