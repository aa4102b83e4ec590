"""Consumed capacity: what a call costs, by table and by index, in DynamoDB's units.

Reads count bytes before filter and projection; writes count the larger of the images. An index that a write
does not change costs nothing. The steps and halves themselves are the values room's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tavola.engine.catalog import Index, Table
from tavola.engine.indexes import keys_of, project_entry, sizes_of
from tavola.engine.storage import Entry
from tavola.engine.vectors import write_bytes
from tavola.values import Item, equal, index_units


def capacity_mode(mode: str | None) -> str | None:
    """Return how a request asks what it consumed, None if it does not."""
    return None if mode == "NONE" else mode


def index_write_units(
    table: Table,
    old: tuple[Item, int, tuple[Entry, ...]] | None,
    new: tuple[Item, int, tuple[Entry, ...]] | None,
) -> dict[str, float]:
    """Return the units that a write costs on each index it changes, from the item's two images."""
    none: list[Any] = [None] * len(table.indexes)
    old_keys, new_keys = (keys_of(table, image[2]) if image else none for image in (old, new))
    old_sizes, new_sizes = (sizes_of(table, image[1], image[2]) if image else none for image in (old, new))
    units: dict[str, float] = {}
    for place, index in enumerate(table.indexes):
        before, after = old_sizes[place], new_sizes[place]
        if before is None or after is None or old_keys[place] != new_keys[place]:
            cost = index_units(before, after, moved=True)
        else:
            assert old is not None
            assert new is not None
            cost = index_units(before, after, same=_same_entry(index, old[0], new[0]))
        if cost:
            units[index.name] = cost
    return units


def vector_write_bytes(
    table: Table,
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
            held = (vector.projection_of(before[0]), vector.projection_of(after[0]))
            if same and equal({"M": held[0]}, {"M": held[1]}):
                continue
        cost = write_bytes(vector, before and before[0], after and after[0])
        if cost:
            costs[vector.name] = cost
    return costs


def _same_entry(index: Index, old: Item, new: Item) -> bool:
    return equal({"M": project_entry(index, old)}, {"M": project_entry(index, new)})


@dataclass(slots=True)
class CapacityUsage:
    """What one call consumed on one table."""

    table: Table
    table_name: str  # the name or ARN by which the caller knows the table
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
        """Return the answer's ConsumedCapacity; `split` tells reads and writes apart too."""
        indexes = sum(self.index_reads.values()) + sum(self.index_writes.values())
        answer: dict[str, Any] = {
            "TableName": self.table_name,
            "CapacityUnits": self.reads + self.writes + indexes,
        }
        if split:
            reads = self.reads + sum(self.index_reads.values())
            writes = self.writes + sum(self.index_writes.values())
            answer |= _split_units(reads, writes)
        if mode == "INDEXES":
            answer["Table"] = {"CapacityUnits": self.reads + self.writes}
            if split:
                answer["Table"] |= _split_units(self.reads, self.writes)
            if self.vector_bytes:
                answer["VectorIndexes"] = {
                    name: {"VectorWriteRequestBytes": float(bytes_)}
                    for name, bytes_ in self.vector_bytes.items()
                }
            for is_global, member in ((False, "LocalSecondaryIndexes"), (True, "GlobalSecondaryIndexes")):
                arms = self._render_indexes(is_global, split)
                if arms:
                    answer[member] = arms
        return answer

    def _render_indexes(self, is_global: bool, split: bool) -> dict[str, Any]:
        arms: dict[str, Any] = {}
        for index in self.table.indexes:
            touched = index.name in self.index_reads or index.name in self.index_writes
            if index.is_global == is_global and touched:
                reads = self.index_reads.get(index.name, 0.0)
                writes = self.index_writes.get(index.name, 0.0)
                arms[index.name] = {"CapacityUnits": reads + writes}
                if split:
                    arms[index.name] |= _split_units(reads, writes)
        return arms


def _split_units(reads: float, writes: float) -> dict[str, float]:
    units = {}
    if reads:
        units["ReadCapacityUnits"] = reads
    if writes:
        units["WriteCapacityUnits"] = writes
    return units
