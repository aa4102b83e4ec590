"""Copies: the rows of one table into another's rack, a slice at a time.

Backups and restores are copies. What is the same on both sides is taken over as it is, index entries too:
an item is looked into only where an index of the target is not one of the source. A slice is a transaction
of its own, so its size is bound by rows and by bytes, and the place it reached is kept with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class CopyPosition:
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


def copy_slice(source: StoredTable, target: StoredTable, place: CopyPosition) -> CopyPosition | None:
    """Copy the rows after a position and count them; return the next position, or None at the end."""
    bounds = Bounds(place.after + b"\x00" if place.after else b"", None)
    found = source.rows.rows(bounds, place.rows)
    if found:
        rows = _with_entries(source, target, found)
        target.rows.insert_rows(rows)
        _count(target, rows)
    if len(found) < place.rows:
        return None
    rows_next = next_rows(
        place.rows,
        sum(row[1] for row in found),
        slice_bytes=_SLICE_BYTES,
        rows_min=_SLICE_ROWS_MIN,
        rows_max=SLICE_ROWS_MAX,
    )
    return CopyPosition(found[-1][0], rows_next)


def check_complete(target: StoredTable, items: int, bytes_: int) -> None:
    """Raise CopyIncomplete if a finished copy has other counts than expected."""
    counts = target.counts
    if (counts.items, counts.bytes) != (items, bytes_):
        raise CopyIncomplete(
            f"it should hold {items:,} items of {bytes_:,} bytes, and {counts.items:,} of {counts.bytes:,} bytes "
            "are there; `tavola verify` tells what is wrong with the store's file"
        )


def _with_entries(source: StoredTable, target: StoredTable, rows: list[KeyedRow]) -> list[KeyedRow]:
    """Return rows with the target's entries in place of the source's."""
    taken = [(index, _reusable_columns(source, index)) for index in every_index(target)]
    if any(places is None for _, places in taken):
        return [_with_computed_entries(row, taken) for row in rows]
    if source.columns == target.columns:
        return rows
    kept = [place for _, places in taken if places is not None for place in places]
    return [(row[0], row[1], row[2], row[3], *(row[place] for place in kept)) for row in rows]


def _with_computed_entries(
    row: KeyedRow, taken: Sequence[tuple[StoredIndex | Vector, range | None]]
) -> KeyedRow:
    item = decode_item(row[2])
    entries: list[Entry] = []
    for index, places in taken:
        entries += entry_of(index, item) if places is None else row[places.start : places.stop]
    return row[0], row[1], row[2], row[3], *entries


def _reusable_columns(source: StoredTable, index: StoredIndex | Vector) -> range | None:
    """Return where in a source's row the entries of an index are; None if it has no such index, complete."""
    for own in every_index(source):
        if own.name == index.name and own.definition.filled_to is None and _are_alike(own, index):
            start = 4 + source.columns.index(own.column)
            return range(start, start + len(own.columns))
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
        place = 4 + target.columns.index(index.column)
        sized = 1 if index.projected is None else place + 1
        sizes = [row[sized] for row in rows if row[place] is not None]
        slot = index.definition.slot
        counts.index_items[slot] = counts.index_items.get(slot, 0) + len(sizes)
        counts.index_bytes[slot] = counts.index_bytes.get(slot, 0) + sum(
            size for size in sizes if isinstance(size, int)
        )
