"""Design: all tables of an application as data, without the user's classes.

The linter, the cost planner, the simulator and the studio read it, whether it comes from classes (`design_of`) or from a document.
Everything is a tuple in the order of declaration. Functions and computed defaults are left out or represented by their name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from tavola.keys import BoundTemplate, Part, Template, part_for
from tavola.model.access import AccessPattern, WritePattern
from tavola.model.consumers import Consumer
from tavola.model.needs import Given, Need
from tavola.model.shapes import SHARD
from tavola.model.tables import KeyTag, Projection, Shards, TableSettings
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
    distinct: int | None = None  # number of distinct values, if declared
    typical_bytes: int | None = None  # of a value as it is stored
    length_max: int | None = None  # characters of a text, elements of a list
    tenant: bool = False  # it says whose the item is
    numbered: Numbering | None = (
        None  # how the number of a new item is found: counted, after the last, by a counter
    )

    @property
    def values(self) -> int | None:
        """The number of distinct values, from its choices or as declared; None: unknown."""
        return len(self.choices) if self.choices is not None else self.distinct

    @property
    def part(self) -> Part | None:
        """How it is written in a key, None if it cannot be."""
        return None if self.key_kind is None else part_for(self.key_kind, choices=self.choices)


@dataclass(frozen=True, slots=True)
class SourceDesign:
    """One key attribute of an entity: a field's own attribute, or the text of a template."""

    attribute: str
    tag: KeyTag
    field: str | None = None
    template: Template | None = None
    guessed: bool = False  # an import made the template of a few samples, or of text for display

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it is made of, without the shard number."""
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
        """Every field that it depends on, each once."""
        names = [name for source in self.sources for name in source.fields]
        names += [member.field for member in self.members]
        return tuple(dict.fromkeys([*names, *(self.shards.of if self.shards else ())]))


@dataclass(frozen=True, slots=True)
class PatternDesign:
    """A key or query class: its arguments, its index, and the entity or view it returns."""

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

    @property
    def all_keys(self) -> tuple[KeyDesign, ...]:
        """Its keys, in the table and in indexes."""
        return self.keys if self.key is None else (self.key, *self.keys)

    @property
    def all_patterns(self) -> tuple[PatternDesign, ...]:
        """Its key class, then its queries."""
        return self.patterns if self.primary is None else (self.primary, *self.patterns)

    def field(self, name: str) -> FieldDesign:
        """Return a field by its name."""
        return next(field for field in self.fields if field.name == name)

    def key_on(self, index: str | None) -> KeyDesign | None:
        """Return its key in an index, or in the table; None if it is not there."""
        return next((key for key in self.all_keys if key.index == index), None)

    def bind_template(self, source: SourceDesign) -> BoundTemplate | None:
        """Return a key attribute's template bound to the fields' encodings; None if the attribute is a field's own."""
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
    """A table with its settings, indexes, entities and collections."""

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
        return next(index for index in self.indexes if index.name == name)

    def entity(self, name: str) -> EntityDesign:
        """Return an entity by its name."""
        return next(entity for entity in self.entities if entity.name == name)

    def projected_attributes(self, index: IndexDesign) -> frozenset[str] | None:
        """Return the attributes that the entries of an index can have; None: all attributes of the item."""
        if index.projection == "ALL":
            return None
        included = () if index.projection == "KEYS_ONLY" else index.projection
        return frozenset((*self.settings.key_names, *index.attributes, *included))


@dataclass(frozen=True, slots=True)
class Policy:
    """An IAM policy of a user of the tables."""

    name: str
    document: Mapping[str, Any]
    tables: tuple[str, ...] = ()  # that it is about; none: all


@dataclass(frozen=True, slots=True)
class Ignore:
    """A finding that is suppressed, with the reason."""

    rule: str
    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Design:
    """A complete design: tables, the views that patterns return, and needs that no pattern covers yet.

    A view that no pattern returns is an entity without a key; the solver proposes one.
    """

    tables: tuple[TableDesign, ...] = ()
    views: tuple[EntityDesign, ...] = ()
    needs: tuple[Need, ...] = ()
    policies: tuple[Policy, ...] = ()
    ignores: tuple[Ignore, ...] = ()

    def table(self, name: str) -> TableDesign:
        """Return a table by its name in DynamoDB."""
        return next(table for table in self.tables if table.name == name)

    def patterns(self) -> Iterator[tuple[TableDesign, EntityDesign, PatternDesign]]:
        """Yield every pattern of the design with its table and entity: each key, then each query, in order."""
        for table in self.tables:
            for entity in table.entities:
                for pattern in entity.all_patterns:
                    yield table, entity, pattern


def needs_of(design: Design) -> tuple[Need, ...]:
    """Return the needs of a design: the declared ones, then those of its patterns, table by table.

    The need of a pattern has the pattern's name (`Ticket.ByCustomer`), that of a collection the collection's.
    """
    needs = list(design.needs)
    views = {view.name: view for view in design.views}
    for table in design.tables:
        for entity in table.entities:
            if entity.primary is not None:
                needs.append(need_of(entity, entity.primary, views))
            needs += [need_of(entity, pattern, views) for pattern in entity.patterns]
        needs += [need_of_collection(collection) for collection in table.collections]
    return tuple(needs)


def need_of(entity: EntityDesign, pattern: PatternDesign, views: Mapping[str, EntityDesign]) -> Need:
    """Return the need that a pattern serves, in terms of the entity's fields; for a view, only the view's fields are read."""
    key = entity.key_on(pattern.index)
    single = pattern is entity.primary
    conditions = [Given(name) for name in pattern.partition]
    if single:
        conditions += [Given(name) for name in pattern.sorts]
    if key is not None:
        conditions += [member for member in _membership(entity, key) if member.field not in pattern.partition]
    access, view = pattern.access, views.get(pattern.result)
    if view is not None:
        access = access or AccessPattern(f"{entity.name}.{pattern.name}")
        access = replace(access, reads=access.reads or tuple(field.name for field in view.fields))
    return Need(
        f"{entity.name}.{pattern.name}",
        (entity.name,),
        tuple(conditions),
        () if single else pattern.sorts,
        access,
        single=single,
    )


def need_of_collection(collection: CollectionDesign) -> Need:
    """Return the need that a collection serves: several entities at once, by the fields of their partition key."""
    return Need(
        collection.name,
        tuple(dict.fromkeys(member.entity for member in collection.members)),
        tuple(Given(part) for part in collection.parts),
        (),
        collection.access,
    )


def _membership(entity: EntityDesign, key: KeyDesign) -> Iterator[Given]:
    """Yield the conditions under which an item is in an index."""
    for member in key.members:
        values: list[Value] = [{"NULL": True} if value is None else value for value in member.values]
        yield (
            Given(member.field, "=", values[0])
            if len(values) == 1
            else Given(member.field, "in", {"L": values})
        )
    if key.sparse:
        for name in dict.fromkeys(name for source in key.sources for name in source.fields):
            if entity.field(name).nullable:
                yield Given(name, "exists")
