"""Proposals: a complete layout as data, before it is written as a design.

A table proposal has the keys of each entity and, for each index, which entity's key is in it, what it projects, and which questions fetch
whole items from the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tavola.design.solver.candidates import EntityProposal, IndexKey
from tavola.model.document import TableDesign

Projection = Literal["ALL", "KEYS_ONLY"] | tuple[str, ...]
Style = Literal["native", "overloaded", "auto"]
STYLES: tuple[Style, ...] = ("native", "overloaded", "auto")


@dataclass(frozen=True, slots=True)
class IndexProposal:
    """An index: its keys, at most one per entity, and how it is written."""

    blocks: tuple[IndexKey, ...]
    projection: Projection
    hydrated: frozenset[tuple[str, str]] = frozenset()  # entity and question whose answers are fetched whole
    native: bool = False  # its key is made of the items' own attributes
    shards: Mapping[str, int] = field(default_factory=dict)  # of entities whose partition is too hot for one

    @property
    def local(self) -> bool:
        """Whether it shares the table's partitions and can be read consistently."""
        return any(block.local for block in self.blocks)

    def block(self, entity: str) -> IndexKey | None:
        """Return an entity's key in this index, or None."""
        return next((block for block in self.blocks if block.entity == entity), None)


@dataclass(frozen=True, slots=True)
class TableProposal:
    """A table: the settings it takes over, the keys of its entities, and its indexes."""

    label: str
    home: TableDesign | None  # the table that its settings come from
    entities: tuple[EntityProposal, ...]
    indexes: tuple[IndexProposal, ...] = ()
    plain: bool = False  # its key is made of the one entity's own attributes
    base_shards: Mapping[str, int] = field(default_factory=dict)

    def entity(self, name: str) -> EntityProposal:
        """Return an entity's plan."""
        return next(found for found in self.entities if found.entity == name)
