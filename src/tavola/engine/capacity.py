"""Consumed capacity: the units that a call costs, by table and index.

Reads count bytes before filter and projection; writes count the larger of the old and the new image. An index that a
write does not change costs nothing. `tavola.values` computes units from sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tavola.engine.catalog import StoredIndex, StoredTable
from tavola.engine.storage import Entry
from tavola.engine.vectors import write_bytes
from tavola.engine.writes import ItemWrite, certainly_differ, keys_of, project_entry, sizes_of
from tavola.values import Item, equal, index_units, write_units


def index_write_units(
    table: StoredTable,
    old: tuple[Item, int, tuple[Entry, ...]] | None,
    new: tuple[Item, int, tuple[Entry, ...]] | None,
) -> dict[str, float]:
    """Return the units that a write costs on each index it changes, from the item's two images."""
    none: list[Any] = [None] * len(table.indexes)
    old_keys, new_keys = (keys_of(table, image[2]) if image else none for image in (old, new))
    old_sizes, new_sizes = (sizes_of(table, image[1], image[2]) if image else none for image in (old, new))
    units: dict[str, float] = {}
    for position, index in enumerate(table.indexes):
        before, after = old_sizes[position], new_sizes[position]
        if before is None or after is None or old_keys[position] != new_keys[position]:
            cost = index_units(before, after, moved=True)
        else:
            assert old is not None
            assert new is not None
            cost = index_units(before, after, same=_same_entry(index, old[0], new[0]))
        if cost:
            units[index.name] = cost
    return units


def vector_write_bytes(
    table: StoredTable,
    old: tuple[Item, tuple[Entry, ...]] | None,
    new: tuple[Item, tuple[Entry, ...]] | None,
) -> dict[str, int]:
    """Return the bytes that a write costs on each vector index it changes, from the item's two images."""
    costs: dict[str, int] = {}
    for vector in table.vectors:
        images = [None if image is None or image[1][vector.place] is None else image for image in (old, new)]
        before, after = images
        if before is not None and after is not None:
            same = before[1][vector.place] == after[1][vector.place]
            old_part, new_part = vector.projection_of(before[0]), vector.projection_of(after[0])
            if same and equal({"M": old_part}, {"M": new_part}):
                continue
        cost = write_bytes(vector, before and before[0], after and after[0])
        if cost:
            costs[vector.name] = cost
    return costs


def _same_entry(index: StoredIndex, old: Item, new: Item) -> bool:
    return equal({"M": project_entry(index, old)}, {"M": project_entry(index, new)})


@dataclass(slots=True)
class CapacityUsage:
    """The capacity that one call consumed on one table."""

    table: StoredTable
    table_name: str  # the name or ARN in the request
    reads: float = 0.0
    writes: float = 0.0
    index_reads: dict[str, float] = field(default_factory=dict)
    index_writes: dict[str, float] = field(default_factory=dict)
    vector_bytes: dict[str, int] = field(default_factory=dict)  # written to each vector index

    def add_index_writes(self, units: dict[str, float]) -> None:
        """Add the units of one write's indexes."""
        for name, cost in units.items():
            self.index_writes[name] = self.index_writes.get(name, 0.0) + cost

    def add_vector_writes(self, costs: dict[str, int]) -> None:
        """Add the bytes of one write's vector indexes."""
        for name, cost in costs.items():
            self.vector_bytes[name] = self.vector_bytes.get(name, 0) + cost

    def render(self, mode: str, *, split: bool = False) -> dict[str, Any]:
        """Return ConsumedCapacity for a response; with `split`, also by reads and writes."""
        indexes = sum(self.index_reads.values()) + sum(self.index_writes.values())
        members: dict[str, Any] = {
            "TableName": self.table_name,
            "CapacityUnits": self.reads + self.writes + indexes,
        }
        if split:
            reads = self.reads + sum(self.index_reads.values())
            writes = self.writes + sum(self.index_writes.values())
            members |= _split_units(reads, writes)
        if mode == "INDEXES":
            members["Table"] = {"CapacityUnits": self.reads + self.writes}
            if split:
                members["Table"] |= _split_units(self.reads, self.writes)
            if self.vector_bytes:
                members["VectorIndexes"] = {
                    name: {"VectorWriteRequestBytes": float(bytes_)}
                    for name, bytes_ in self.vector_bytes.items()
                }
            for is_global, member in ((False, "LocalSecondaryIndexes"), (True, "GlobalSecondaryIndexes")):
                indexes_of_kind = self._render_indexes(is_global, split)
                if indexes_of_kind:
                    members[member] = indexes_of_kind
        return members

    def _render_indexes(self, is_global: bool, split: bool) -> dict[str, Any]:
        rendered: dict[str, Any] = {}
        for index in self.table.indexes:
            accessed = index.name in self.index_reads or index.name in self.index_writes
            if index.is_global == is_global and accessed:
                reads = self.index_reads.get(index.name, 0.0)
                writes = self.index_writes.get(index.name, 0.0)
                rendered[index.name] = {"CapacityUnits": reads + writes}
                if split:
                    rendered[index.name] |= _split_units(reads, writes)
        return rendered


def _split_units(reads: float, writes: float) -> dict[str, float]:
    units = {"ReadCapacityUnits": reads, "WriteCapacityUnits": writes}
    return {name: amount for name, amount in units.items() if amount}


def add_write_units(usage: CapacityUsage, write: ItemWrite, factor: float = 1.0) -> None:
    """Add the units of a write to `usage`; `factor` applies to the table, not to its indexes."""
    current = write.current
    usage.writes += factor * write_units(current.size, write.size)
    if write.table.indexes:
        old = None if current.item is None else (current.item, current.size, current.entries)
        new = None if write.item is None else (write.item, write.size, write.entries)
        usage.add_index_writes(index_write_units(write.table, old, new))
    if write.table.vectors:
        was = None if current.item is None else (current.item, current.entries)
        now = None if write.item is None else (write.item, write.entries)
        usage.add_vector_writes(vector_write_bytes(write.table, was, now))


def index_entry_units(write: ItemWrite) -> list[tuple[str, float, bytes | None]]:
    """Return (index, units, entry key) for each index entry written; a moved entry is a put and a delete."""
    units = index_units_of(write)
    if not units:
        return []
    table, current = write.table, write.current
    old_keys = None if current.data is None else keys_of(table, current.entries)
    new_keys = None if write.item is None else keys_of(table, write.entries)
    entries: list[tuple[str, float, bytes | None]] = []
    for position, index in enumerate(table.indexes):
        cost = units.get(index.name)
        if cost is None:
            continue
        before = None if old_keys is None else old_keys[position]
        after = None if new_keys is None else new_keys[position]
        if isinstance(before, bytes) and isinstance(after, bytes) and before != after:
            size = sizes_of(table, write.size, write.entries)[position]
            put = write_units(0, size or 0)
            entries.append((index.name, put, index.schema.without_tie(after)))
            entries.append((index.name, cost - put, index.schema.without_tie(before)))
        else:
            entry = before if after is None else after
            plain = index.schema.without_tie(entry) if isinstance(entry, bytes) else None
            entries.append((index.name, cost, plain))
    return entries


def index_units_of(write: ItemWrite) -> dict[str, float]:
    """Return the units a write costs on each index, mostly without decoding the old item.

    If no index key changes and each index projects whole items, every entry is rewritten exactly when the
    item's bytes differ in more than member order.
    """
    table, current = write.table, write.current
    if not table.indexes:
        return {}
    old = current.data
    if old is not None and write.item is not None and current.entries == write.entries:
        if old == write.data:
            return {}
        if certainly_differ(old, write.data):
            cost = write_units(current.size, write.size)
            units = {}
            # An index that projects whole items has one column, so the two lists pair up until the first other.
            for index, entry in zip(table.indexes, write.entries, strict=False):
                if index.projected is not None:
                    break
                if entry is not None:
                    units[index.name] = cost
            else:
                return units
    usage = CapacityUsage(table, table.name)
    add_write_units(usage, write)
    return usage.index_writes
