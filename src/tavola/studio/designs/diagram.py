"""A design as a diagram: entities, their key templates, and the indexes those keys belong to.

Node ids depend on names only, so findings, links and tests can refer to a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tavola.design.cost import item_bytes
from tavola.design.findings import DesignPath
from tavola.model.document import (
    AccessPattern,
    Consumer,
    Design,
    EntityDesign,
    IndexDesign,
    KeyDesign,
    TableDesign,
)


@dataclass(frozen=True, slots=True)
class EntityPicture:
    """An entity: a node in the first column."""

    id: str
    entity: EntityDesign
    item_bytes: int
    key_fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyPicture:
    """The key of an entity in its table or in an index: a node in the second column."""

    id: str
    entity: str  # the id of its entity
    index: str  # the id of its index
    key: KeyDesign
    members: tuple[str, ...]  # the conditions for an item to be in the index
    shards: str  # such as "8 by hash"; empty: not sharded


@dataclass(frozen=True, slots=True)
class PatternPicture:
    """An access pattern that an index serves."""

    id: str
    name: str
    title: str
    entity: str
    parameters: tuple[str, ...]
    then: tuple[str, ...]
    per_second: float | None
    consistent: bool
    hydrate: bool


@dataclass(frozen=True, slots=True)
class IndexPicture:
    """The table's own key, or an index: a node in the third column."""

    id: str
    kind: Literal["table", "global", "local"]
    index: IndexDesign
    patterns: tuple[PatternPicture, ...]


@dataclass(frozen=True, slots=True)
class TablePicture:
    """A table of a design as a diagram."""

    id: str
    name: str
    description: str
    settings: tuple[tuple[str, str], ...]  # names and values, as text
    entities: tuple[EntityPicture, ...]
    keys: tuple[KeyPicture, ...]
    indexes: tuple[IndexPicture, ...]
    consumers: tuple[Consumer, ...]


def table_id(table: str) -> str:
    """Return the id of a table's node; without a table, of the whole design."""
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
    """Return the tables of a design as diagrams."""
    return tuple(_table(design, table) for table in design.tables)


def node_id(design: Design, place: DesignPath) -> str:
    """Return the id of the node that shows a part of the design: its own node, or its parent's."""
    table = next((table for table in design.tables if table.name == place.table), None)
    if table is None:
        return table_id("")
    if place.kind == "index":
        for index in table.indexes:
            if place.name in (f"{table.label}.{index.label}", index.name):
                return index_id(table.name, index.name)
    if place.kind == "need":
        need = next((need for need in design.needs if need.name == place.name), None)
        names = () if need is None else need.entities
        if any(entity.name in names for entity in table.entities):
            return entity_id(table.name, next(e.name for e in table.entities if e.name in names))
    for entity in sorted(table.entities, key=lambda entity: -len(entity.name)):
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
    primary_index = IndexDesign(
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
        description=table.description,
        settings=tuple(_settings(table)),
        entities=tuple(_entity(table, entity) for entity in table.entities),
        keys=tuple(keys),
        indexes=(
            _index(design, table, primary_index, None),
            *(_index(design, table, index, index.name) for index in table.indexes),
        ),
        consumers=table.consumers,
    )


def _settings(table: TableDesign) -> list[tuple[str, str]]:
    settings = table.settings
    units = (
        "on-demand"
        if settings.read_units is None
        else f"{settings.read_units:,} read and {settings.write_units:,} write units"
    )
    if settings.scaling is not None:
        units += f", scaling to {settings.scaling.read_max:,} and {settings.scaling.write_max:,}"
    rows = (
        ("Capacity", units),
        ("TTL attribute", settings.ttl or ""),
        ("Stream", settings.stream or ""),
        ("Point-in-time recovery", f"{settings.recovery_days} days" if settings.recovery else ""),
        ("Encryption", settings.encryption or ""),
        ("Table class", "" if settings.table_class == "STANDARD" else "Standard-IA"),
        ("Deletion protection", "on" if settings.deletion_protection else ""),
        ("Replicas", ", ".join(settings.replicas)),
        ("Tags", ", ".join(f"{name}={value}" for name, value in settings.tags.items())),
        ("Unknown", ", ".join(settings.unknown)),
    )
    return [row for row in rows if row[1]]


def _entity(table: TableDesign, entity: EntityDesign) -> EntityPicture:
    key_fields = [name for key in (entity.key, *entity.keys) if key is not None for name in key.fields]
    return EntityPicture(
        entity_id(table.name, entity.name),
        entity,
        item_bytes(table, entity),
        tuple(dict.fromkeys(key_fields)),
    )


def _key(table: TableDesign, entity: EntityDesign, key: KeyDesign) -> KeyPicture:
    shards = "" if key.shards is None else f"{key.shards.count} shards by {key.shards.by}"
    if key.shards is not None and key.shards.by == "time":
        shards = f"sharded by {key.shards.bucket} of {key.shards.of[0]}"
    members = [
        f"{member.field} is "
        + " or ".join(
            "absent" if value is None else str(next(iter(value.values()))) for value in member.values
        )
        for member in key.members
    ]
    return KeyPicture(
        id=key_id(table.name, entity.name, key.index),
        entity=entity_id(table.name, entity.name),
        index=index_id(table.name, key.index),
        key=key,
        members=tuple(members),
        shards=shards,
    )


def _index(design: Design, table: TableDesign, index: IndexDesign, name: str | None) -> IndexPicture:
    return IndexPicture(
        id=index_id(table.name, name),
        kind="table" if name is None else "local" if index.local else "global",
        index=index,
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
            *_rate_and_consistency(pattern.access),
            pattern.hydrate,
        )
        for entity in table.entities
        for pattern in (entity.primary, *entity.patterns)
        if pattern is not None and pattern.index == index
    ]
    pictures += [
        PatternPicture(
            f"pattern:{table.name}/{collection.name}",
            collection.name,
            collection.access.title if collection.access else collection.name,
            ", ".join(member.entity for member in collection.members),
            collection.parts,
            (),
            *_rate_and_consistency(collection.access),
            hydrate=False,
        )
        for collection in table.collections
        if collection.index == index
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
            *_rate_and_consistency(need.access),
            hydrate=False,
        )
        for need in design.needs
        if need.route is not None and need.route.index == index and names & set(need.entities)
    ]
    return pictures


def _rate_and_consistency(access: AccessPattern | None) -> tuple[float | None, bool]:
    return (None, False) if access is None else (access.per_second, access.consistent)
