"""Design: all tables of an application as data, without the user's classes.

The linter, the cost planner, the simulator and the studio read it, whether it comes from classes (`design_of`) or from a document.
Everything is a tuple in the order of declaration. Functions and computed defaults are left out or represented by their name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tavola.keys import BoundTemplate, Part, Template, part_for
from tavola.model.access import AccessPattern, WritePattern
from tavola.model.consumers import Consumer
from tavola.model.key_types import KeyTag
from tavola.model.needs import Need
from tavola.model.shapes import SHARD
from tavola.model.tables import Projection, Shards, TableSettings
from tavola.values import Value

Choice = str | int | bool
Numbering = Literal["count", "last", "counter"]


@dataclass(frozen=True, slots=True)
class FieldDesign:
    """A field of an entity, and the attribute that it is stored as."""

    name: str
    attribute: str
    type: str  # in words, such as `list[text]`
    tags: tuple[str, ...]  # the DynamoDB types that it may have
    required: bool = True  # it has no default
    nullable: bool = False  # it may be None, and is absent then
    key_kind: str | None = None  # what a template calls it; None: it cannot stand in one
    choices: tuple[Choice, ...] | None = None  # all the values there can be
    lock: bool = False
    unique: bool = False
    within: tuple[str, ...] = ()
    description: str = ""
    distinct: int | None = None  # how many values there are, where somebody said it
    typical_bytes: int | None = None  # of a value as it is stored
    length_max: int | None = None  # characters of a text, elements of a list
    tenant: bool = False  # it says whose the item is
    numbered: Numbering | None = (
        None  # how the number of a new item is found: counted, after the last, by a counter
    )

    @property
    def values(self) -> int | None:
        """How many values there are, by its choices or as it was said; None: nobody knows."""
        return len(self.choices) if self.choices is not None else self.distinct

    @property
    def part(self) -> Part | None:
        """How it is written in a key, None if it cannot be."""
        return None if self.key_kind is None else part_for(self.key_kind, choices=self.choices)


@dataclass(frozen=True, slots=True)
class SourceDesign:
    """One key attribute of an entity: a field's own attribute, or made by a template."""

    attribute: str
    tag: KeyTag
    field: str | None = None
    template: Template | None = None
    guessed: bool = False  # an import made the template of a few samples, or of text for display

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it is made of; a shard's number is none."""
        if self.template is None:
            return () if self.field is None else (self.field,)
        return tuple(name for name in self.template.fields if name != SHARD)


@dataclass(frozen=True, slots=True)
class Membership:
    """A field whose value decides whether an item is in an index: one of these, None meaning absent."""

    field: str
    values: tuple[Value | None, ...]


@dataclass(frozen=True, slots=True)
class KeyDesign:
    """The key of an entity in its table or in an index, and when it has one."""

    index: str | None  # None: the table's own
    hash: tuple[SourceDesign, ...]
    range: tuple[SourceDesign, ...] = ()
    sparse: bool = False  # an item that lacks a part is not in the index
    members: tuple[Membership, ...] = ()
    shards: Shards | None = None

    @property
    def sources(self) -> tuple[SourceDesign, ...]:
        """Its attributes in order."""
        return self.hash + self.range

    @property
    def fields(self) -> tuple[str, ...]:
        """Every field that decides about it, each once."""
        names = [name for source in self.sources for name in source.fields]
        names += [member.field for member in self.members]
        return tuple(dict.fromkeys([*names, *(self.shards.of if self.shards else ())]))


@dataclass(frozen=True, slots=True)
class PatternDesign:
    """A key or query class: what it is asked with, where, and what it gives."""

    name: str
    index: str | None  # None: on the table itself
    partition: tuple[str, ...]
    sorts: tuple[str, ...] = ()
    result: str = ""  # the entity or view that comes back
    hydrate: bool = False
    access: AccessPattern | None = None


@dataclass(frozen=True, slots=True)
class EntityDesign:
    """An entity of a table; or a view, which has fields only."""

    name: str
    tag: str
    fields: tuple[FieldDesign, ...]
    key: KeyDesign | None = None  # None: it is a view
    keys: tuple[KeyDesign, ...] = ()  # of the indexes that it may be in, each once
    primary: PatternDesign | None = None
    patterns: tuple[PatternDesign, ...] = ()
    writes: tuple[WritePattern, ...] = ()
    version: int = 1
    stale: Literal["read", "refuse"] = "read"
    description: str = ""
    immutable: bool = False  # its items are created, and never written again
    items: int | None = None  # how many there are

    def field(self, name: str) -> FieldDesign:
        """Return a field by its name."""
        return next(found for found in self.fields if found.name == name)

    def key_on(self, index: str | None) -> KeyDesign | None:
        """Return its key in an index, or in the table; None if it is not there."""
        return next((key for key in (self.key, *self.keys) if key is not None and key.index == index), None)

    def bind_template(self, source: SourceDesign) -> BoundTemplate | None:
        """Return a key attribute's template ready to render and to compare, None if it is a field's own."""
        if source.template is None:
            return None
        parts = {name: part for name in source.fields if (part := self.field(name).part) is not None}
        return source.template.bind(parts | {SHARD: part_for("int")})


@dataclass(frozen=True, slots=True)
class IndexDesign:
    """A secondary index, by the name that DynamoDB knows and by its label in the class."""

    name: str
    label: str
    local: bool
    hash: tuple[str, ...]
    range: tuple[str, ...]
    projection: Projection
    native: bool = False  # its key is made of entities' own attributes

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of its key."""
        return self.hash + self.range


@dataclass(frozen=True, slots=True)
class MemberDesign:
    """One attribute of a collection."""

    name: str
    entity: str
    many: bool


@dataclass(frozen=True, slots=True)
class CollectionDesign:
    """Several entities that one query fetches together."""

    name: str
    index: str | None
    partition: Template
    prefix: str  # of the sort keys, empty for all
    parts: tuple[str, ...]
    members: tuple[MemberDesign, ...]
    access: AccessPattern | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class TableDesign:
    """A table with all its settings, and what lives in it."""

    label: str
    settings: TableSettings
    key_types: Mapping[str, KeyTag]  # of every attribute of a key, of the table or an index
    indexes: tuple[IndexDesign, ...] = ()
    entities: tuple[EntityDesign, ...] = ()
    collections: tuple[CollectionDesign, ...] = ()
    description: str = ""
    consumers: tuple[Consumer, ...] = ()
    foreign: bool = False  # other code writes its keys: neither escaped nor padded nor kept current

    @property
    def name(self) -> str:
        """Its name in DynamoDB."""
        return self.settings.name

    def index(self, name: str) -> IndexDesign:
        """Return an index by the name that DynamoDB knows."""
        return next(found for found in self.indexes if found.name == name)

    def entity(self, name: str) -> EntityDesign:
        """Return an entity by its name."""
        return next(found for found in self.entities if found.name == name)

    def projected_attributes(self, index: IndexDesign) -> frozenset[str] | None:
        """Return the attributes that the entries of an index can have; None: all attributes of the item."""
        if index.projection == "ALL":
            return None
        included = () if index.projection == "KEYS_ONLY" else index.projection
        return frozenset((*self.settings.key_names, *index.attributes, *included))


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy that somebody has who uses the tables."""

    name: str
    document: Mapping[str, Any]
    tables: tuple[str, ...] = ()  # that it is about; none: all


@dataclass(frozen=True, slots=True)
class Ignore:
    """A finding that somebody has looked at and lets stand."""

    rule: str
    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Design:
    """A whole design: several tables, the views that patterns give, and what is to be asked beside these patterns.

    A view that no pattern gives is an entity without a key, of a design that is still to be found.
    """

    tables: tuple[TableDesign, ...] = ()
    views: tuple[EntityDesign, ...] = ()
    needs: tuple[Need, ...] = ()
    policies: tuple[Policy, ...] = ()
    ignores: tuple[Ignore, ...] = ()

    def table(self, name: str) -> TableDesign:
        """Return a table by its name in DynamoDB."""
        return next(found for found in self.tables if found.name == name)

    def patterns(self) -> Iterator[tuple[TableDesign, EntityDesign, PatternDesign]]:
        """Give every way in which the design is read: each key, then each query, in order."""
        for table in self.tables:
            for entity in table.entities:
                for pattern in (entity.primary, *entity.patterns):
                    if pattern is not None:
                        yield table, entity, pattern
