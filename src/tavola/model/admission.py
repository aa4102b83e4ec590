"""Checks of an entity against its table: distinct keys and tags, consistent attribute types, declared writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tavola.model.errors import ModelError
from tavola.model.shapes import VERSION_ATTRIBUTE, KeyShape, KeySource, Pattern, Shape
from tavola.model.tables import Table
from tavola.model.uniques import check_guard_keys


def register_entity(shape: Shape) -> None:
    """Make an entity known to its table; refuse one that cannot be in it."""
    _check_attributes(shape)
    _check_writes(shape)
    _add_to_table(shape, shape.home)


def distinct_keys(cls: type, patterns: Mapping[str, Pattern]) -> tuple[KeyShape, ...]:
    """Return the key of each index once; patterns that share an index must agree on what is written."""
    keys: dict[str, tuple[str, KeyShape]] = {}
    for name, pattern in patterns.items():
        index = pattern.key.index
        if index is None:
            continue
        if index.name not in keys:
            keys[index.name] = (name, pattern.key)
            continue
        other, known = keys[index.name]
        if _written_form(known) != _written_form(pattern.key):
            raise ModelError(
                f"{cls.__name__}.{name}",
                f"an item has one key in {index.label}, and {other} makes another; use a second index, or say "
                "the same pk, sk, shards, sparse and members",
            )
    _check_writers(cls, keys)
    return tuple(key for _, key in keys.values())


def _check_writers(cls: type, keys: Mapping[str, tuple[str, KeyShape]]) -> None:
    """Refuse two indexes that share an attribute and would have something else in it, or at other times."""
    writers: dict[str, tuple[str, Any]] = {}
    for name, key in keys.values():
        for source in key.written:
            assert source.template is not None
            written_form = (source.template.source, key.members, key.sparse, key.shards)
            other, known = writers.setdefault(source.attribute, (name, written_form))
            if known != written_form:
                raise ModelError(
                    f"{cls.__name__}.{name}",
                    f"{other} writes {source.attribute!r} too, and not the same at the same times; give the indexes two "
                    "attributes, or both patterns the same template, shards, sparse and members",
                )


def _written_form(key: KeyShape) -> tuple[Any, ...]:
    texts = tuple((s.attribute, s.fields, s.template and s.template.source) for s in key.sources)
    return texts, key.members, key.sparse, key.shards


def _check_attributes(shape: Shape) -> None:
    """Refuse fields that would be overwritten by a key of another template, or by the tag."""
    assert shape.table is not None
    settings = shape.table.settings
    reserved = {settings.tag: "the table's tag"} if settings.tag else {}
    if shape.version > 1:
        reserved[VERSION_ATTRIBUTE] = "the schema's version"
    for key in (shape.key.key, *shape.keys) if shape.key else ():
        for source in key.sources:
            if source.field is None:
                reserved[source.attribute] = "a key"
    for found in shape.fields.values():
        if found.attribute in reserved:
            raise ModelError(
                f"{shape.entity.__name__}.{found.name}",
                f"{found.attribute!r} is {reserved[found.attribute]}; store the field under another name (attr(name=…))",
            )


def _check_writes(shape: Shape) -> None:
    """Refuse ways of writing that no write of the entity can be."""
    for write in shape.writes:
        place = f"{shape.entity.__name__} {write.title!r}"
        write.check(shape.entity.__name__)
        changes = tuple(dict.fromkeys((*write.changes, *write.adds)))
        if (write.kind == "update" and not changes) or (write.kind == "delete" and changes):
            problem = (
                "names no field that it changes" if write.kind == "update" else "names fields in changes="
            )
            raise ModelError(
                place,
                f"it is of kind {write.kind}, and {problem}; say changes=(…) of an update, or of a put in the place of "
                "an item",
            )
        if changes and shape.immutable:
            raise ModelError(
                place,
                "it changes items, and the entity is immutable: its items are put once; leave one of them out",
            )
        for name in changes:
            if name not in shape.fields:
                raise ModelError(
                    place, f"it changes {name!r}, which is no field; there are {', '.join(shape.fields)}"
                )
            if name in shape.key_fields:
                raise ModelError(
                    place,
                    f"it changes {name}, which is part of the key and stays; put a new item, and delete the old",
                )
            if shape.fields[name].lock:
                raise ModelError(
                    place, f"it changes {name}, the lock, which every write raises; leave it out"
                )


def _add_to_table(shape: Shape, table: type[Table]) -> None:
    """Put an entity into its table, unless another of the table could have the same key or tag."""
    assert shape.key is not None
    for name, other in table.entities.items():
        if _same_class(other, shape.entity):
            continue
        if name == shape.name:
            raise ModelError(
                shape.entity.__name__, f"{table.__name__} has an entity tagged {name!r}; give it tag=…"
            )
        there = other.__shape__
        assert there.key is not None
        pairs = list(zip(shape.key.key.sources, there.key.key.sources, strict=False))
        if all(_may_meet(mine, its) for mine, its in pairs):
            raise ModelError(
                f"{shape.entity.__name__}.{shape.key.name}",
                f"an item of it and one of {other.__name__} could have one key, and overwrite each other; "
                "tell them apart by a word in a template",
            )
        _check_types(shape, there)
        check_guard_keys(shape, there)
        check_guard_keys(there, shape)
    table.entities[shape.name] = shape.entity


def _same_class(one: type, other: type) -> bool:
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def _may_meet(mine: KeySource, its: KeySource) -> bool:
    if mine.tag != its.tag:
        return False
    if mine.template is None or its.template is None:
        return True
    return mine.template.may_meet(its.template)


def _check_types(shape: Shape, other: Shape) -> None:
    """Refuse a key attribute that two entities write with two types: a table has one for each."""
    assert shape.key is not None
    assert other.key is not None
    theirs = {s.attribute: s for key in (other.key.key, *other.keys) for s in key.sources}
    for key in (shape.key.key, *shape.keys):
        for source in key.sources:
            its = theirs.get(source.attribute)
            if its is not None and its.tag != source.tag:
                raise ModelError(
                    shape.entity.__name__,
                    f"the key attribute {source.attribute!r} would be {source.tag}, and for "
                    f"{other.entity.__name__} it is {its.tag}; a key attribute has one type, so "
                    "give both the same",
                )
