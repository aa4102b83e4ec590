"""Unkeyed: every way in which a design is read, with its keys taken off again.

Declared needs, and what the keys, queries and collections of a design serve, in one form: what the linter looks
for a server of, and what the solver finds keys for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tavola.model.access import AccessPattern
from tavola.model.design import (
    CollectionDesign,
    Design,
    EntityDesign,
    KeyDesign,
    PatternDesign,
)
from tavola.model.needs import Given, Need
from tavola.values import Value


def needs_of(design: Design) -> tuple[Need, ...]:
    """Return what is asked of a design: its declared needs, then those of its patterns, table by table.

    The need of a pattern is called as the pattern is: `Ticket.ByCustomer`; that of a collection by its own name.
    """
    found = list(design.needs)
    views = {view.name: view for view in design.views}
    for table in design.tables:
        for entity in table.entities:
            if entity.primary is not None:
                found.append(need_of(entity, entity.primary, views))
            found += [need_of(entity, pattern, views) for pattern in entity.patterns]
        found += [need_of_collection(collection) for collection in table.collections]
    return tuple(found)


def need_of(entity: EntityDesign, pattern: PatternDesign, views: Mapping[str, EntityDesign]) -> Need:
    """Return what one pattern serves, in the entity's fields; of a view that it gives, only these are read."""
    key = entity.key_on(pattern.index)
    single = pattern is entity.primary
    given = [Given(name) for name in pattern.partition]
    if single:
        given += [Given(name) for name in pattern.sorts]
    if key is not None:
        given += [each for each in _membership(entity, key) if each.field not in pattern.partition]
    access, view = pattern.access, views.get(pattern.result)
    if view is not None:
        access = access or AccessPattern(f"{entity.name}.{pattern.name}")
        access = replace(access, reads=access.reads or tuple(found.name for found in view.fields))
    return Need(
        f"{entity.name}.{pattern.name}",
        (entity.name,),
        tuple(given),
        () if single else pattern.sorts,
        access,
        single=single,
    )


def need_of_collection(collection: CollectionDesign) -> Need:
    """Return what a collection serves: several entities at once, by what their partition is made of."""
    return Need(
        collection.name,
        tuple(dict.fromkeys(member.entity for member in collection.members)),
        tuple(Given(part) for part in collection.parts),
        (),
        collection.access,
    )


def _membership(entity: EntityDesign, key: KeyDesign) -> Iterator[Given]:
    """Give what an item must be to stand in an index at all."""
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
