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
"""Yields proposals for a finding, the simplest first; none if it needs a decision by a person."""


def table_at(design: Design, finding: Finding) -> TableDesign | None:
    """Return the table of a finding."""
    return next((table for table in design.tables if table.name == finding.place.table), None)


def index_at(design: Design, finding: Finding) -> tuple[TableDesign, IndexDesign] | None:
    """Return the index of a finding, with its table."""
    table = table_at(design, finding)
    for index in () if table is None else table.indexes:
        if table is not None and f"{table.label}.{index.label}" == finding.place.name:
            return table, index
    return None


def entity_at(design: Design, finding: Finding) -> tuple[TableDesign, EntityDesign] | None:
    """Return the entity of a finding, or of its field, pattern or write."""
    table, name = table_at(design, finding), finding.place.name
    if table is None:
        return None
    for entity in sorted(table.entities, key=lambda each: -len(each.name)):
        if name == entity.name or name.startswith((f"{entity.name}.", f"{entity.name}: ")):
            return table, entity
    return None


def field_at(design: Design, finding: Finding) -> tuple[TableDesign, EntityDesign, FieldDesign] | None:
    """Return the field of a finding."""
    home = entity_at(design, finding)
    for field in () if home is None else home[1].fields:
        if home is not None and f"{home[1].name}.{field.name}" == finding.place.name:
            return *home, field
    return None


def pattern_at(design: Design, finding: Finding) -> tuple[TableDesign, EntityDesign, PatternDesign] | None:
    """Return the key or query class of a finding."""
    home = entity_at(design, finding)
    if home is None:
        return None
    for pattern in (home[1].primary, *home[1].patterns):
        if pattern is not None and f"{home[1].name}.{pattern.name}" == finding.place.name:
            return *home, pattern
    return None


def write_at(design: Design, finding: Finding) -> tuple[TableDesign, EntityDesign, WritePattern] | None:
    """Return the write pattern of a finding."""
    home = entity_at(design, finding)
    for write in () if home is None else home[1].writes:
        if home is not None and f"{home[1].name}: {write.title}" == finding.place.name:
            return *home, write
    return None


def consumer_at(design: Design, finding: Finding) -> tuple[TableDesign, Consumer] | None:
    """Return the consumer of a finding."""
    table = table_at(design, finding)
    for consumer in () if table is None else table.consumers:
        if table is not None and consumer.name == finding.place.name:
            return table, consumer
    return None


def need_at(design: Design, finding: Finding) -> Need | None:
    """Return the need of a finding."""
    if finding.place.kind != "need":
        return None
    return next((need for need in design.needs if need.name == finding.place.name), None)


def keys_at(design: Design, finding: Finding) -> Iterator[tuple[TableDesign, EntityDesign, KeyDesign]]:
    """Yield the keys that a finding may be about: that of its pattern, or those of its entity without a pattern."""
    asked = pattern_at(design, finding)
    if asked is not None:
        table, entity, pattern = asked
        key = entity.key_on(pattern.index)
        if key is not None:
            yield table, entity, key
        return
    home = entity_at(design, finding)
    if home is not None:
        for key in (home[1].key, *home[1].keys):
            if key is not None:
                yield *home, key


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
