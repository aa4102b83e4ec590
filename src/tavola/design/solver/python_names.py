"""Rename entities and fields to valid Python identifiers; stored attribute names do not change.

Designs from other tools contain names such as `user-id`, `class` and `_ttl`. References to renamed classes and fields are
updated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from keyword import iskeyword

from tavola.design.solver.names import find_free_name
from tavola.keys import Template
from tavola.model import Entity
from tavola.model.document import (
    AccessPattern,
    CollectionDesign,
    Design,
    EntityDesign,
    KeyDesign,
    PatternDesign,
    SourceDesign,
    TableDesign,
    WritePattern,
)

Names = Mapping[str, str]


def make_python_names(design: Design) -> tuple[Design, tuple[str, ...]]:
    """Return a design that can be declared in Python, and a note for each name that had to change."""
    entities = [*design.views, *(entity for table in design.tables for entity in table.entities)]
    classes = _valid_names((entity.name for entity in entities), str.isidentifier, "Entity")
    fields = {
        entity.name: _valid_names((field.name for field in entity.fields), _is_valid_field, "field")
        for entity in entities
    }
    notes = [f"{old} is now {new}" for old, new in classes.items() if old != new]
    notes += [
        f"{entity}.{old} is now {new}"
        for entity, names in fields.items()
        for old, new in names.items()
        if old != new
    ]
    if not notes:
        return design, ()
    views = tuple(_entity(view, classes, fields[view.name]) for view in design.views)
    tables = tuple(_table(table, classes, fields) for table in design.tables)
    return replace(design, tables=tables, views=views), tuple(notes)


def _is_valid_field(name: str) -> bool:
    return name.isidentifier() and not name.startswith("_") and not hasattr(Entity, name)


def _valid_names(names: Iterable[str], is_valid: Callable[[str], bool], fallback: str) -> dict[str, str]:
    """Return a valid, unique name for each of `names`; `fallback` replaces a name without valid characters."""
    originals = list(names)
    valid = {name: name for name in originals if is_valid(name) and not iskeyword(name)}
    for name in originals:
        if name not in valid:
            plain = re.sub(r"\W", "_", name).strip("_") or fallback
            plain = f"{fallback}_{plain}" if plain[0].isdigit() else plain
            if iskeyword(plain) or not is_valid(plain):
                plain += "_"
            valid[name] = find_free_name(plain, valid.values())
    return {name: valid[name] for name in originals}


def _table(table: TableDesign, classes: Names, fields: Mapping[str, Names]) -> TableDesign:
    return replace(
        table,
        entities=tuple(_entity(entity, classes, fields[entity.name]) for entity in table.entities),
        collections=tuple(_collection(collection, classes, fields) for collection in table.collections),
        consumers=tuple(
            replace(consumer, writes=tuple(classes.get(name, name) for name in consumer.writes))
            for consumer in table.consumers
        ),
    )


def _entity(entity: EntityDesign, classes: Names, names: Names) -> EntityDesign:
    return replace(
        entity,
        name=classes[entity.name],
        fields=tuple(
            replace(field, name=names[field.name], within=_map_names(field.within, names))
            for field in entity.fields
        ),
        key=None if entity.key is None else _key(entity.key, names),
        keys=tuple(_key(key, names) for key in entity.keys),
        primary=None if entity.primary is None else _pattern(entity.primary, classes, names),
        patterns=tuple(_pattern(pattern, classes, names) for pattern in entity.patterns),
        writes=tuple(_write(write, names) for write in entity.writes),
    )


def _map_names(originals: tuple[str, ...], names: Names) -> tuple[str, ...]:
    return tuple(names.get(name, name) for name in originals)


def _key(key: KeyDesign, names: Names) -> KeyDesign:
    return replace(
        key,
        hash=tuple(_source(source, names) for source in key.hash),
        range=tuple(_source(source, names) for source in key.range),
        members=tuple(replace(member, field=names.get(member.field, member.field)) for member in key.members),
        shards=None if key.shards is None else replace(key.shards, of=_map_names(key.shards.of, names)),
    )


def _source(source: SourceDesign, names: Names) -> SourceDesign:
    field = None if source.field is None else names.get(source.field, source.field)
    template = None if source.template is None else _template(source.template, names)
    return replace(source, field=field, template=template)


def _template(template: Template, names: Names) -> Template:
    text = re.sub(
        r"\{([^{}:]+)", lambda match: "{" + names.get(match.group(1), match.group(1)), template.source
    )
    return Template.parse(text, template.delimiter)


def _pattern(pattern: PatternDesign, classes: Names, names: Names) -> PatternDesign:
    return replace(
        pattern,
        partition=_map_names(pattern.partition, names),
        sorts=_map_names(pattern.sorts, names),
        result=classes.get(pattern.result, pattern.result),
        access=_access(pattern.access, names),
    )


def _access(access: AccessPattern | None, names: Names) -> AccessPattern | None:
    if access is None:
        return None
    return replace(access, reads=_map_names(access.reads, names), filters=_map_names(access.filters, names))


def _write(write: WritePattern, names: Names) -> WritePattern:
    return replace(write, changes=_map_names(write.changes, names), adds=_map_names(write.adds, names))


def _collection(
    collection: CollectionDesign, classes: Names, fields: Mapping[str, Names]
) -> CollectionDesign:
    names = fields[collection.members[0].entity]
    return replace(
        collection,
        partition=_template(collection.partition, names),
        parts=_map_names(collection.parts, names),
        members=tuple(replace(member, entity=classes[member.entity]) for member in collection.members),
        access=_access(collection.access, names),
    )
