"""Give a design names that Python classes and arguments can have; stored attributes keep theirs.

Designs of other tools contain names such as `user-id`, `class` and `_ttl`. Every reference follows its renamed target.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from keyword import iskeyword

from tavola.design.solver.wording import find_free_name
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
    """Return a design that can be declared in Python, and a sentence for each name that had to change."""
    entities = [*design.views, *(each for table in design.tables for each in table.entities)]
    classes = _renamed((entity.name for entity in entities), lambda name: name.isidentifier(), "Entity")
    fields = {
        entity.name: _renamed((found.name for found in entity.fields), _is_field, "field")
        for entity in entities
    }
    notes = [f"{old} is called {new}" for old, new in classes.items() if old != new]
    notes += [
        f"{entity}.{old} is called {new}"
        for entity, names in fields.items()
        for old, new in names.items()
        if old != new
    ]
    if not notes:
        return design, ()
    views = tuple(_entity(view, classes, fields[view.name]) for view in design.views)
    tables = tuple(_table(table, classes, fields) for table in design.tables)
    return replace(design, tables=tables, views=views), tuple(notes)


def _is_field(name: str) -> bool:
    return name.isidentifier() and not name.startswith("_") and not hasattr(Entity, name)


def _renamed(names: Iterable[str], fits: object, word: str) -> dict[str, str]:
    assert callable(fits)
    told = list(names)
    found: dict[str, str] = {name: name for name in told if fits(name) and not iskeyword(name)}
    for name in told:
        if name not in found:
            plain = re.sub(r"\W", "_", name).strip("_") or word
            plain = f"{word}_{plain}" if plain[0].isdigit() else plain
            if iskeyword(plain) or not fits(plain):
                plain += "_"
            found[name] = find_free_name(plain, found.values())
    return {name: found[name] for name in told}


def _table(table: TableDesign, classes: Names, fields: Mapping[str, Names]) -> TableDesign:
    return replace(
        table,
        entities=tuple(_entity(entity, classes, fields[entity.name]) for entity in table.entities),
        collections=tuple(_collection(each, classes, fields) for each in table.collections),
        consumers=tuple(
            replace(each, writes=tuple(classes.get(name, name) for name in each.writes))
            for each in table.consumers
        ),
    )


def _entity(entity: EntityDesign, classes: Names, names: Names) -> EntityDesign:
    return replace(
        entity,
        name=classes[entity.name],
        fields=tuple(
            replace(found, name=names[found.name], within=_each(found.within, names))
            for found in entity.fields
        ),
        key=None if entity.key is None else _key(entity.key, names),
        keys=tuple(_key(key, names) for key in entity.keys),
        primary=None if entity.primary is None else _pattern(entity.primary, classes, names),
        patterns=tuple(_pattern(pattern, classes, names) for pattern in entity.patterns),
        writes=tuple(_write(write, names) for write in entity.writes),
    )


def _each(told: tuple[str, ...], names: Names) -> tuple[str, ...]:
    return tuple(names.get(name, name) for name in told)


def _key(key: KeyDesign, names: Names) -> KeyDesign:
    return replace(
        key,
        hash=tuple(_source(source, names) for source in key.hash),
        range=tuple(_source(source, names) for source in key.range),
        members=tuple(replace(each, field=names.get(each.field, each.field)) for each in key.members),
        shards=None if key.shards is None else replace(key.shards, of=_each(key.shards.of, names)),
    )


def _source(source: SourceDesign, names: Names) -> SourceDesign:
    field = None if source.field is None else names.get(source.field, source.field)
    template = None if source.template is None else _template(source.template, names)
    return replace(source, field=field, template=template)


def _template(template: Template, names: Names) -> Template:
    text = re.sub(
        r"\{([^{}:]+)", lambda found: "{" + names.get(found.group(1), found.group(1)), template.source
    )
    return Template.parse(text, template.delimiter)


def _pattern(pattern: PatternDesign, classes: Names, names: Names) -> PatternDesign:
    return replace(
        pattern,
        partition=_each(pattern.partition, names),
        sorts=_each(pattern.sorts, names),
        result=classes.get(pattern.result, pattern.result),
        access=_access(pattern.access, names),
    )


def _access(access: AccessPattern | None, names: Names) -> AccessPattern | None:
    if access is None:
        return None
    return replace(access, reads=_each(access.reads, names), filters=_each(access.filters, names))


def _write(write: WritePattern, names: Names) -> WritePattern:
    return replace(write, changes=_each(write.changes, names), adds=_each(write.adds, names))


def _collection(
    collection: CollectionDesign, classes: Names, fields: Mapping[str, Names]
) -> CollectionDesign:
    names = fields[collection.members[0].entity]
    return replace(
        collection,
        partition=_template(collection.partition, names),
        parts=_each(collection.parts, names),
        members=tuple(replace(each, entity=classes[each.entity]) for each in collection.members),
        access=_access(collection.access, names),
    )
