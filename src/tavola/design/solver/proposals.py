"""Proposals: candidate layouts as data, before they are written as a design.

A table proposal has the keys of each entity and, for each index, which entity's key is in it, what it projects, and which
questions fetch whole items from the table:

    TableProposal ─┬─ EntityProposal ── KeyProposal (table key), IndexKey …
                   └─ IndexProposal ─── IndexKey (at most one per entity), projection, shards
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tavola.design.solver.questions import SolverQuestion
from tavola.model.document import Membership, TableDesign

Projection = Literal["ALL", "KEYS_ONLY"] | tuple[str, ...]
Style = Literal["native", "overloaded", "auto"]
STYLES: tuple[Style, ...] = ("native", "overloaded", "auto")


@dataclass(frozen=True, slots=True)
class KeyProposal:
    """A key in an entity's fields: its partition, its sort order, and which items have it."""

    partition: tuple[str, ...]  # empty: all items share one partition
    sorts: tuple[str, ...] = ()
    members: tuple[Membership, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the key."""
        return self.partition + self.sorts

    @property
    def text(self) -> str:
        """A text that identifies the key; the values of members cannot be hashed."""
        return f"{self.partition}{self.sorts}{self.members}"


@dataclass(frozen=True, slots=True)
class IndexKey:
    """An index key of one entity, with the questions that it serves."""

    entity: str
    key: KeyProposal
    questions: tuple[SolverQuestion, ...]
    local: bool = False

    @property
    def shared_questions(self) -> tuple[SolverQuestion, ...]:
        """The questions that several entities answer together."""
        return tuple(question for question in self.questions if question.has_several_entities)


@dataclass(frozen=True, slots=True)
class EntityProposal:
    """The keys of an entity: in its table, and its index keys."""

    entity: str
    base: KeyProposal
    served: tuple[SolverQuestion, ...]  # the questions that the table itself answers
    index_keys: tuple[IndexKey, ...]


@dataclass(frozen=True, slots=True)
class IndexProposal:
    """An index: its keys, at most one per entity, and how it is written."""

    keys: tuple[IndexKey, ...]
    projection: Projection
    # (entity, question) whose items are fetched whole from the table
    hydrated: frozenset[tuple[str, str]] = frozenset()
    native: bool = False  # its key consists of the items' own attributes
    # Shard counts of entities whose partition would be too hot
    shards: Mapping[str, int] = field(default_factory=dict)

    @property
    def local(self) -> bool:
        """Whether it shares the table's partitions and can be read consistently."""
        return any(block.local for block in self.keys)

    def key_of(self, entity: str) -> IndexKey | None:
        """Return an entity's key in this index, or None."""
        return next((block for block in self.keys if block.entity == entity), None)


@dataclass(frozen=True, slots=True)
class TableProposal:
    """A table: the settings it takes over, the keys of its entities, and its indexes."""

    label: str
    home: TableDesign | None  # the present table, whose settings are kept
    entities: tuple[EntityProposal, ...]
    indexes: tuple[IndexProposal, ...] = ()
    native: bool = False  # its key consists of its only entity's own attributes
    base_shards: Mapping[str, int] = field(default_factory=dict)

    def entity(self, name: str) -> EntityProposal:
        """Return an entity's proposal."""
        return next(proposal for proposal in self.entities if proposal.entity == name)
