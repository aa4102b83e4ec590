"""A design as a diagram: entities, their key templates, and the indexes those keys belong to.

Node ids depend on names only, so findings, links and tests can refer to a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tavola.design.cost import item_bytes
from tavola.design.findings import DesignPath
from tavola.keys import Placeholder
from tavola.model import SHARD
from tavola.model.document import (
    AccessPattern,
    Design,
    EntityDesign,
    FieldDesign,
    IndexDesign,
    KeyDesign,
    SourceDesign,
    TableDesign,
)


@dataclass(frozen=True, slots=True)
class FieldPicture:
    """A field of an entity."""

    name: str
    attribute: str
    type: str
    required: bool
    nullable: bool
    in_keys: bool
    marks: tuple[str, ...]  # lock, unique, tenant, …
    choices: tuple[str, ...]
    description: str


@dataclass(frozen=True, slots=True)
class WritePicture:
    """A way in which an entity is written."""

    title: str
    kind: Literal["put", "update", "delete"]
    per_second: float | None
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntityPicture:
    """An entity: a node of the first column."""

    id: str
    name: str
    description: str
    immutable: bool
    items: int | None
    item_bytes: int
    fields: tuple[FieldPicture, ...]
    writes: tuple[WritePicture, ...]


@dataclass(frozen=True, slots=True)
class PartPicture:
    """A part of a key's template: a literal, or a field."""

    text: str
    field: str | None


@dataclass(frozen=True, slots=True)
class SourcePicture:
    """A key attribute, and what it is made of."""

    attribute: str
    type: str
    template: str
    parts: tuple[PartPicture, ...]


@dataclass(frozen=True, slots=True)
class KeyPicture:
    """The key of an entity in its table or in an index: a node of the second column."""

    id: str
    entity: str  # the id of its entity
    index: str  # the id of its index
    hash: tuple[SourcePicture, ...]
    range: tuple[SourcePicture, ...]
    sparse: bool
    members: tuple[str, ...]  # which items are in it, a clause each
    shards: str  # over how many and by what; empty: it is not spread


@dataclass(frozen=True, slots=True)
class PatternPicture:
    """A question that is asked on an index."""

    id: str
    name: str
    title: str
    entity: str
    asked_with: tuple[str, ...]
    then: tuple[str, ...]
    per_second: float | None
    consistent: bool
    hydrate: bool


@dataclass(frozen=True, slots=True)
class IndexPicture:
    """The table's own key, or an index: a node of the third column."""

    id: str
    name: str
    label: str
    kind: Literal["table", "global", "local"]
    hash: tuple[str, ...]
    range: tuple[str, ...]
    projection: str
    projected: tuple[str, ...]
    native: bool
    patterns: tuple[PatternPicture, ...]


@dataclass(frozen=True, slots=True)
class ConsumerPicture:
    """What reads the table's stream."""

    id: str
    name: str
    events: tuple[str, ...]
    writes: tuple[str, ...]
    failures: str


@dataclass(frozen=True, slots=True)
class SettingPicture:
    """A setting of the table, in words."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class TablePicture:
    """A table of a design, drawn by itself."""

    id: str
    name: str
    label: str
    description: str
    foreign: bool
    settings: tuple[SettingPicture, ...]
    entities: tuple[EntityPicture, ...]
    keys: tuple[KeyPicture, ...]
    indexes: tuple[IndexPicture, ...]
    consumers: tuple[ConsumerPicture, ...]


def table_id(table: str) -> str:
    """Return the id of a table's node; of no table, that of the whole design."""
    return f"table:{table}" if table else "design"


def entity_id(table: str, entity: str) -> str:
    """Return the id of an entity's node."""
    return f"entity:{table}/{entity}"


def index_id(table: str, index: str | None) -> str:
    """Return the id of an index's node, or of the table's own key."""
    return f"index:{table}/{index or ''}"


def key_id(table: str, entity: str, index: str | None) -> str:
    """Return the id of the node of an entity's key."""
    return f"key:{table}/{entity}/{index or ''}"


def draw_tables(design: Design) -> tuple[TablePicture, ...]:
    """Return the tables of a design as they are drawn."""
    return tuple(_table(design, table) for table in design.tables)


def node_id(design: Design, place: DesignPath) -> str:
    """Return the id of the node that a place is shown on: its own, or that of what it belongs to."""
    table = next((each for each in design.tables if each.name == place.table), None)
    if table is None:
        return table_id("")
    if place.kind == "index":
        for index in table.indexes:
            if place.name in (f"{table.label}.{index.label}", index.name):
                return index_id(table.name, index.name)
    if place.kind == "need":
        need = next((each for each in design.needs if each.name == place.name), None)
        names = () if need is None else need.entities
        if any(entity.name in names for entity in table.entities):
            return entity_id(table.name, next(e.name for e in table.entities if e.name in names))
    for entity in sorted(table.entities, key=lambda each: -len(each.name)):
        if place.name == entity.name or place.name.startswith((f"{entity.name}.", f"{entity.name}: ")):
            return _of_entity(table, entity, place)
    return table_id(table.name)


def _of_entity(table: TableDesign, entity: EntityDesign, place: DesignPath) -> str:
    if place.kind == "pattern":
        for pattern in (entity.primary, *entity.patterns):
            if pattern is not None and f"{entity.name}.{pattern.name}" == place.name:
                if entity.key_on(pattern.index) is not None:
                    return key_id(table.name, entity.name, pattern.index)
                return index_id(table.name, pattern.index)
    return entity_id(table.name, entity.name)


def _table(design: Design, table: TableDesign) -> TablePicture:
    keys = [
        _key(table, entity, key)
        for entity in table.entities
        for key in (entity.key, *entity.keys)
        if key is not None
    ]
    own = IndexDesign(
        table.name,
        "table",
        local=False,
        hash=(table.settings.hash,),
        range=() if table.settings.range is None else (table.settings.range,),
        projection="ALL",
    )
    return TablePicture(
        id=table_id(table.name),
        name=table.name,
        label=table.label,
        description=table.description,
        foreign=table.foreign,
        settings=tuple(_settings(table)),
        entities=tuple(_entity(table, entity) for entity in table.entities),
        keys=tuple(keys),
        indexes=(
            _index(design, table, own, None),
            *(_index(design, table, each, each.name) for each in table.indexes),
        ),
        consumers=tuple(
            ConsumerPicture(
                f"consumer:{table.name}/{each.name}", each.name, each.events, each.writes, each.failures or ""
            )
            for each in table.consumers
        ),
    )


def _settings(table: TableDesign) -> list[SettingPicture]:
    settings = table.settings
    units = (
        "on demand"
        if settings.read_units is None
        else f"{settings.read_units:,} read and {settings.write_units:,} write units"
    )
    if settings.scaling is not None:
        units += f", scaling to {settings.scaling.read_max:,} and {settings.scaling.write_max:,}"
    rows = (
        ("Capacity", units),
        ("Time to live", settings.ttl or ""),
        ("Stream", settings.stream or ""),
        ("Recovery", f"{settings.recovery_days} days" if settings.recovery else ""),
        ("Encryption", settings.encryption or ""),
        ("Class", "" if settings.table_class == "STANDARD" else "infrequent access"),
        ("Deletion protection", "on" if settings.deletion_protection else ""),
        ("Replicas", ", ".join(settings.replicas)),
        ("Tags", ", ".join(f"{name}={value}" for name, value in settings.tags.items())),
        ("Not known", ", ".join(settings.unknown)),
    )
    return [SettingPicture(name, value) for name, value in rows if value]


def _entity(table: TableDesign, entity: EntityDesign) -> EntityPicture:
    keyed = {name for key in (entity.key, *entity.keys) if key is not None for name in key.fields}
    return EntityPicture(
        id=entity_id(table.name, entity.name),
        name=entity.name,
        description=entity.description,
        immutable=entity.immutable,
        items=entity.items,
        item_bytes=item_bytes(table, entity),
        fields=tuple(_field(field, in_keys=field.name in keyed) for field in entity.fields),
        writes=tuple(
            WritePicture(each.title, each.kind, each.per_second, (*each.changes, *each.adds))
            for each in entity.writes
        ),
    )


def _field(field: FieldDesign, *, in_keys: bool) -> FieldPicture:
    marks = [
        word for word, on in (("lock", field.lock), ("unique", field.unique), ("tenant", field.tenant)) if on
    ]
    return FieldPicture(
        field.name,
        field.attribute,
        field.type,
        field.required,
        field.nullable,
        in_keys,
        tuple(marks),
        tuple(str(each) for each in field.choices or ()),
        field.description,
    )


def _key(table: TableDesign, entity: EntityDesign, key: KeyDesign) -> KeyPicture:
    spread = "" if key.shards is None else f"{key.shards.count} by {key.shards.by}"
    if key.shards is not None and key.shards.by == "time":
        spread = f"by {key.shards.bucket} of {key.shards.of[0]}"
    members = [
        f"{member.field} is "
        + " or ".join("absent" if each is None else str(next(iter(each.values()))) for each in member.values)
        for member in key.members
    ]
    return KeyPicture(
        id=key_id(table.name, entity.name, key.index),
        entity=entity_id(table.name, entity.name),
        index=index_id(table.name, key.index),
        hash=tuple(map(_source, key.hash)),
        range=tuple(map(_source, key.range)),
        sparse=key.sparse,
        members=tuple(members),
        shards=spread,
    )


def _source(source: SourceDesign) -> SourcePicture:
    if source.template is None:
        name = source.field or source.attribute
        return SourcePicture(source.attribute, source.tag, f"{{{name}}}", (PartPicture(name, name),))
    parts = [
        PartPicture(_shown(segment), segment.field if segment.field != SHARD else "shard")
        if isinstance(segment, Placeholder)
        else PartPicture(segment, None)
        for segment in source.template.segments
    ]
    text = source.template.source.replace(f"{{{SHARD}:04}}", "{shard}")
    return SourcePicture(source.attribute, source.tag, text, tuple(parts))


def _shown(segment: Placeholder) -> str:
    if segment.field == SHARD:
        return "shard"
    return f"{segment.field}:{segment.spec}" if segment.spec else segment.field


def _index(design: Design, table: TableDesign, index: IndexDesign, name: str | None) -> IndexPicture:
    projection = (
        index.projection
        if isinstance(index.projection, str)
        else f"{len(index.projection)} attribute{'' if len(index.projection) == 1 else 's'}"
    )
    return IndexPicture(
        id=index_id(table.name, name),
        name=index.name,
        label=index.label,
        kind="table" if name is None else "local" if index.local else "global",
        hash=index.hash,
        range=index.range,
        projection={"ALL": "all attributes", "KEYS_ONLY": "keys only"}.get(projection, projection),
        projected=() if isinstance(index.projection, str) else index.projection,
        native=index.native,
        patterns=tuple(_patterns(design, table, name)),
    )


def _patterns(design: Design, table: TableDesign, index: str | None) -> list[PatternPicture]:
    pictures = [
        PatternPicture(
            f"pattern:{table.name}/{entity.name}.{pattern.name}",
            pattern.name,
            pattern.access.title if pattern.access else f"{entity.name}.{pattern.name}",
            entity.name,
            pattern.partition,
            pattern.sorts,
            *_often(pattern.access),
            pattern.hydrate,
        )
        for entity in table.entities
        for pattern in (entity.primary, *entity.patterns)
        if pattern is not None and pattern.index == index
    ]
    pictures += [
        PatternPicture(
            f"pattern:{table.name}/{each.name}",
            each.name,
            each.access.title if each.access else each.name,
            ", ".join(member.entity for member in each.members),
            each.parts,
            (),
            *_often(each.access),
            hydrate=False,
        )
        for each in table.collections
        if each.index == index
    ]
    names = {entity.name for entity in table.entities}
    pictures += [
        PatternPicture(
            f"need:{need.name}",
            need.name,
            need.title,
            ", ".join(need.entities),
            tuple(condition.field for condition in need.where),
            need.order,
            *_often(need.access),
            hydrate=False,
        )
        for need in design.needs
        if need.route is not None and need.route.index == index and names & set(need.entities)
    ]
    return pictures


def _often(access: AccessPattern | None) -> tuple[float | None, bool]:
    return (None, False) if access is None else (access.per_second, access.consistent)
