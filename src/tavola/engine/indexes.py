"""The index entries that an item makes, and what changes in them.

An item is in an index if it has every key attribute of it. Its entry is the ordered key, and for an
index that does not project everything also the bytes of what it projects; both are columns of the
item's row, so an index can never disagree with its table.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from tavola.engine.catalog import Counts, Index, Table
from tavola.engine.storage import Entry
from tavola.engine.vectors import Vector
from tavola.keys import KeyRefused
from tavola.protocol.faults import ValidationFault
from tavola.values import Item, Value, text_size, value_size

_EXPIRY_S_MAX = 2**53
_EMPTY = "The AttributeValue for a key attribute cannot contain an empty {} value."
_NOT_VALID = "One or more parameter values are not valid. "


def entries_of(
    table: Table, item: Item, *, updating: bool = False, written: frozenset[str] | None = None
) -> tuple[Entry, ...]:
    """Return an item's entry for each index column; refuse an item that an index cannot take.

    `written` is what an update has written: a vector index looks at that alone.
    """
    entries: list[Entry] = []
    sizes: dict[str, int] = {}  # of the attributes, once for all projections
    for index in table.indexes:
        try:
            key = index.schema.entry_of(item)
        except KeyRefused as refused:
            raise _refusal(index, refused, updating) from refused
        entries.append(key)
        if index.projected is not None:
            if key is not None and not sizes:
                sizes = {name: text_size(name) + value_size(value) for name, value in item.items()}
            entries.append(
                None if key is None else sum([sizes[name] for name in index.projected if name in sizes])
            )
    for vector in table.vectors:
        entries.extend(vector.entries_of(item, updating=updating, written=written))
    if table.expiry is not None:
        entries.append(expiry_of(item.get(table.expiry)))
    return tuple(entries)


def every_index(table: Table) -> tuple[Index | Vector, ...]:
    """Return the indexes of a table, the vector indexes after the others, as their columns stand."""
    return (*table.indexes, *table.vectors)


def entry_of(index: Index | Vector, item: Item) -> tuple[Entry, ...]:
    """Return an item's entry for each column of one index; none where the index cannot take it.

    For an item that is there already, and was not written under this index: AWS passes it over.
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
    """Return the epoch second at which an attribute's value lets an item expire; None where it never does.

    Only a number does, and only one that can be a time: anything else AWS ignores.
    """
    if value is None or "N" not in value:
        return None
    try:
        seconds = int(Decimal(value["N"]))
    except (ValueError, OverflowError):
        return None
    return seconds if 0 < seconds < _EXPIRY_S_MAX else None


def projected_size(projected: frozenset[str], item: Item) -> int:
    """Return the bytes that the projected part of an item counts for."""
    return sum(text_size(name) + value_size(item[name]) for name in projected if name in item)


def project_entry(index: Index, item: Item) -> Item:
    """Return what an index holds of an item."""
    if index.projected is None:
        return item
    return {name: value for name, value in item.items() if name in index.projected}


def sizes_of(table: Table, size: int, entries: Sequence[Entry]) -> list[int | None]:
    """Return for each index the bytes of a row's entry, None where it has none."""
    sizes: list[int | None] = []
    place = 0
    for index in table.indexes:
        if index.projected is None:
            sizes.append(None if entries[place] is None else size)
            place += 1
        else:
            own = entries[place + 1]
            assert own is None or isinstance(own, int), "the second column of a projection is its size"
            sizes.append(own)
            place += 2
    return sizes


def keys_of(table: Table, entries: Sequence[Entry]) -> list[Entry]:
    """Return for each index the ordered key of a row's entry, None where it has none."""
    keys: list[Entry] = []
    place = 0
    for index in table.indexes:
        keys.append(entries[place])
        place += len(index.columns)
    return keys


def recount(
    table: Table,
    old_size: int,
    old: Sequence[Entry] | None,
    new_size: int,
    new: Sequence[Entry] | None,
) -> None:
    """Bring a table's counts in line with a row that came, changed or went (None: no row)."""
    counts: Counts = table.counts
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


def _recount(counts: Counts, slot: int, was: int | None, now: int | None) -> None:
    if was != now:
        moved = (now is not None) - (was is not None)
        counts.index_items[slot] = counts.index_items.get(slot, 0) + moved
        counts.index_bytes[slot] = counts.index_bytes.get(slot, 0) + (now or 0) - (was or 0)


def _refusal(index: Index, refused: KeyRefused, updating: bool) -> ValidationFault:
    match refused.reason:
        case "type":
            if updating and refused.actual in ("M", "L"):
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
