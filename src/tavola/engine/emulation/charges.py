"""Charges: what a request takes from which table or global index, and at which key.

A local index has no throughput of its own: what it costs is its table's. A global index that changes an
entry's key is charged at both keys, for they may lie in different partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tavola.engine.capacity import index_write_units
from tavola.engine.catalog import StoredIndex, StoredTable
from tavola.engine.reads import ReadRange
from tavola.engine.storage import Entry
from tavola.engine.writes import CurrentItem, ItemWrite, keys_of, sizes_of
from tavola.values import write_units

Access = Literal["Read", "Write"]
Reach = Literal["item", "partition", "scan"]  # what the key stands for


@dataclass(frozen=True, slots=True)
class Charge:
    """Units of one kind, on a table or on a global index of it, at one key."""

    table: StoredTable
    index: StoredIndex | None
    access: Access
    key: bytes  # ordered; of a page, where it begins
    units: float
    reach: Reach = "item"


def write_charges(change: ItemWrite, factor: float = 1.0) -> list[Charge]:
    """Return what a staged change takes: of its table `factor` times the units, of its indexes the units."""
    standing = change.current
    table = standing.table
    own = factor * write_units(standing.size, change.size)
    if not table.indexes:
        return [Charge(table, None, "Write", standing.key, own)]
    old = None if standing.item is None else (standing.item, standing.size, standing.entries)
    new = None if change.item is None else (change.item, change.size, change.entries)
    units = index_write_units(table, old, new)
    charges: list[Charge] = []
    if units:
        before, after = _entries(table, old), _entries(table, new)
        for place, index in enumerate(table.indexes):
            cost = units.get(index.name)
            if cost is None:
                continue
            if not index.is_global:
                own += cost
                continue
            (old_key, old_size), (new_key, new_size) = before[place], after[place]
            if old_key == new_key and isinstance(old_key, bytes):
                charges.append(Charge(table, index, "Write", old_key, cost))
                continue
            for key, size in ((old_key, old_size), (new_key, new_size)):
                if isinstance(key, bytes):
                    charges.append(Charge(table, index, "Write", key, write_units(size or 0, 0)))
    return [Charge(table, None, "Write", standing.key, own), *charges]


def check_charges(standing: CurrentItem, factor: float = 1.0) -> list[Charge]:
    """Return what a condition that is only looked at takes: a write's units of what stands."""
    units = factor * write_units(standing.size, 0)
    return [Charge(standing.table, None, "Write", standing.key, units)]


def page_charge(span: ReadRange, units: float) -> Charge:
    """Return what a page of a query or scan takes, at the place where it begins.

    Charging each row where it lies would need every row's key; a page is small beside a partition.
    """
    index = span.index
    if span.after is not None:
        key = span.after[0] or span.after[1]
    else:
        key = span.bounds.lower
    owner = index if index is not None and index.is_global else None
    return Charge(span.table, owner, "Read", key, units, "scan" if span.partition is None else "partition")


def _entries(
    table: StoredTable, image: tuple[object, int, tuple[Entry, ...]] | None
) -> list[tuple[Entry, int | None]]:
    if image is None:
        return [(None, None)] * len(table.indexes)
    return list(zip(keys_of(table, image[2]), sizes_of(table, image[1], image[2]), strict=True))
