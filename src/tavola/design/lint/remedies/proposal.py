"""Proposals, and helpers for fixes: find the part of a design that a finding is about, and replace a part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tavola.design.cost.alterations import with_entity, with_table
from tavola.design.findings import Finding
from tavola.model.document import (
    Consumer,
    Design,
    EntityDesign,
    FieldDesign,
    IndexDesign,
    KeyDesign,
    Need,
    PatternDesign,
    TableDesign,
    WritePattern,
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """An altered design, and a sentence about the change and what else it requires."""

    design: Design
    summary: str


Fixer = Callable[[Design, Finding], Iterator[Proposal]]
"""Yields proposals for a finding, the simplest first; none if the fix needs a decision."""


# Each of these yields the part of the design that a finding is about, with what contains it; nothing if it is about another part.


def table_at(design: Design, finding: Finding) -> Iterator[TableDesign]:
    """Yield the table of a finding."""
    return (table for table in design.tables if table.name == finding.place.table)


def index_at(design: Design, finding: Finding) -> Iterator[tuple[TableDesign, IndexDesign]]:
    """Yield the index of a finding."""
    for table in table_at(design, finding):
        for index in table.indexes:
            if f"{table.label}.{index.label}" == finding.place.name:
                yield table, index


def entity_at(design: Design, finding: Finding) -> Iterator[tuple[TableDesign, EntityDesign]]:
    """Yield the entity of a finding, or of its field, pattern or write."""
    name = finding.place.name
    for table in table_at(design, finding):
        named = [
            entity
            for entity in table.entities
            if name == entity.name or name.startswith((f"{entity.name}.", f"{entity.name}: "))
        ]
        if named:
            yield table, max(named, key=lambda entity: len(entity.name))


def field_at(design: Design, finding: Finding) -> Iterator[tuple[TableDesign, EntityDesign, FieldDesign]]:
    """Yield the field of a finding."""
    for table, entity in entity_at(design, finding):
        for field in entity.fields:
            if f"{entity.name}.{field.name}" == finding.place.name:
                yield table, entity, field


def pattern_at(design: Design, finding: Finding) -> Iterator[tuple[TableDesign, EntityDesign, PatternDesign]]:
    """Yield the key or query class of a finding."""
    for table, entity in entity_at(design, finding):
        for pattern in entity.all_patterns:
            if f"{entity.name}.{pattern.name}" == finding.place.name:
                yield table, entity, pattern


def write_at(design: Design, finding: Finding) -> Iterator[tuple[TableDesign, EntityDesign, WritePattern]]:
    """Yield the write pattern of a finding."""
    for table, entity in entity_at(design, finding):
        for write in entity.writes:
            if f"{entity.name}: {write.title}" == finding.place.name:
                yield table, entity, write


def consumer_at(design: Design, finding: Finding) -> Iterator[tuple[TableDesign, Consumer]]:
    """Yield the consumer of a finding."""
    for table in table_at(design, finding):
        for consumer in table.consumers:
            if consumer.name == finding.place.name:
                yield table, consumer


def need_at(design: Design, finding: Finding) -> Iterator[Need]:
    """Yield the need of a finding."""
    is_need = finding.place.kind == "need"
    return (need for need in design.needs if is_need and need.name == finding.place.name)


def keys_at(design: Design, finding: Finding) -> Iterator[tuple[TableDesign, EntityDesign, KeyDesign]]:
    """Yield the keys that a finding may be about: that of its pattern, or those of its entity without a pattern."""
    patterns = list(pattern_at(design, finding))
    for table, entity, pattern in patterns:
        key = entity.key_on(pattern.index)
        if key is not None:
            yield table, entity, key
    for table, entity in () if patterns else entity_at(design, finding):
        for key in entity.all_keys:
            yield table, entity, key


def home_of(design: Design, need: Need) -> tuple[TableDesign, EntityDesign] | None:
    """Return the table and entity of a need; None if it has several entities, or no table yet."""
    if len(need.entities) != 1:
        return None
    for table in design.tables:
        for entity in table.entities:
            if entity.name == need.entities[0]:
                return table, entity
    return None


def put_settings(design: Design, table: TableDesign, **changes: Any) -> Design:
    """Return a design with some settings of a table replaced."""
    unknown = tuple(name for name in table.settings.unknown if name not in changes)
    settings = replace(table.settings, unknown=unknown, **changes)
    return with_table(design, replace(table, settings=settings))


def put_entity(design: Design, table: TableDesign, entity: EntityDesign) -> Design:
    """Return a design with the entity of the same name replaced."""
    return with_table(design, with_entity(table, entity))


def put_field(design: Design, table: TableDesign, entity: EntityDesign, field: FieldDesign) -> Design:
    """Return a design with the field of the same name replaced."""
    fields = tuple(field if each.name == field.name else each for each in entity.fields)
    return put_entity(design, table, replace(entity, fields=fields))


def put_write(
    design: Design, table: TableDesign, entity: EntityDesign, old: WritePattern, new: WritePattern
) -> Design:
    """Return a design with a write pattern replaced."""
    writes = tuple(new if each is old else each for each in entity.writes)
    return put_entity(design, table, replace(entity, writes=writes))


def put_key(
    design: Design, table: TableDesign, entity: EntityDesign, old: KeyDesign, new: KeyDesign
) -> Design:
    """Return a design with a key of an entity replaced."""
    changed = replace(
        entity,
        key=new if entity.key is old else entity.key,
        keys=tuple(new if each is old else each for each in entity.keys),
    )
    return put_entity(design, table, changed)


def put_consumer(design: Design, table: TableDesign, old: Consumer, **changes: Any) -> Design:
    """Return a design with some attributes of a consumer replaced."""
    consumers = tuple(replace(each, **changes) if each is old else each for each in table.consumers)
    return with_table(design, replace(table, consumers=consumers))


def put_need(design: Design, old: Need, new: Need) -> Design:
    """Return a design with a need replaced."""
    return replace(design, needs=tuple(new if each is old else each for each in design.needs))
