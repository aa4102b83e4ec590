"""Plans: a whole proposal as data, before it is written down as a design.

A table plan has a plan for each entity's own keys, and a plan for each index: which block of which entity is in it,
what it projects, and which questions fetch the rest from the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tavola.design.solver.candidates import Block, EntityPlan
from tavola.model.document import TableDesign

Projection = Literal["ALL", "KEYS_ONLY"] | tuple[str, ...]
Style = Literal["native", "overloaded", "auto"]
STYLES: tuple[Style, ...] = ("native", "overloaded", "auto")


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """An index: the blocks in it, one of each entity at most, and how it is written."""

    blocks: tuple[Block, ...]
    projection: Projection
    hydrated: frozenset[tuple[str, str]] = frozenset()  # entity and question whose answers are fetched whole
    native: bool = False  # its key is made of the items' own attributes
    shards: Mapping[str, int] = field(default_factory=dict)  # of entities whose partition is too hot for one

    @property
    def local(self) -> bool:
        """Whether it shares the table's partitions, and can be read consistently."""
        return any(block.local for block in self.blocks)

    def block(self, entity: str) -> Block | None:
        """Return an entity's block, None if it has none here."""
        return next((block for block in self.blocks if block.entity == entity), None)


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A table: whose settings it takes over, the keys of its entities, and its indexes."""

    label: str
    home: TableDesign | None  # the table that its settings come from
    entities: tuple[EntityPlan, ...]
    indexes: tuple[IndexPlan, ...] = ()
    plain: bool = False  # its key is made of the one entity's own attributes
    base_shards: Mapping[str, int] = field(default_factory=dict)

    def entity(self, name: str) -> EntityPlan:
        """Return an entity's plan."""
        return next(found for found in self.entities if found.entity == name)
