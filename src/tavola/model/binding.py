"""Binding: compile an entity's declarations to its shape, and refuse declarations that cannot work.

    bind ──► field_shapes      each field, and how its values are written
         ──► key_binding       the primary key and the queries
         ──► register_entity   checks against the other entities of the table

Everything is checked that can be known without an item: that templates name fields, that what may be absent
feeds only sparse indexes, that what a pattern gives is in its index, that no two entities of a table can meet
on one key. Each refusal names the class, the part and the remedy.

The field that is the table's time to live is written as whole epoch seconds, which is all that DynamoDB looks at. A datetime there
is cut to the second when the entity is validated, so that what is put is what is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from pydantic import AfterValidator
from pydantic.fields import FieldInfo

from tavola.model.attributes import AttrOptions
from tavola.model.converters import (
    EPOCH_SECONDS,
    EXPIRY,
    Converter,
    field_converter,
    whole_second,
    with_place,
)
from tavola.model.errors import ModelError, ValueNotStorable
from tavola.model.key_binding import KeyBinder, bind_primary, bind_query
from tavola.model.queries import PrimaryKey, Query
from tavola.model.shapes import (
    SHARD,
    VERSION_ATTRIBUTE,
    EntityBase,
    EntityShape,
    FieldShape,
    KeyShape,
    KeySource,
    Pattern,
)
from tavola.model.tables import Table
from tavola.model.uniques import bind_uniques, check_guard_keys
from tavola.model.views import check_whole_entities

if TYPE_CHECKING:
    from tavola.model.access import WritePattern

_CUT = AfterValidator(whole_second)


def bind(
    cls: type[EntityBase],
    table: type[Table] | None,
    nested: Mapping[str, type],
    *,
    tag: str,
    version: int,
    upgrades: Mapping[int, Callable[..., Any]],
    policy: str,
    writes: tuple[WritePattern, ...],
    immutable: bool = False,
) -> EntityShape:
    """Return the shape of an entity, and register the entity with its table."""
    fields = field_shapes(cls, table)
    shape = EntityShape(
        tag, cls, table, fields, None, {}, version, dict(upgrades), policy, writes, immutable=immutable
    )
    shape.by_attribute = {field.attribute: field for field in fields.values()}
    shape.absent_values = tuple(
        (field.name, field.absent)
        for field in fields.values()
        if field.absent is not None or (field.nullable and field.required)
    )
    shape.lock = next((field for field in fields.values() if field.lock), None)
    keys = [
        (name, nested_class) for name, nested_class in nested.items() if issubclass(nested_class, PrimaryKey)
    ]
    if len(keys) > 1:
        raise ModelError(cls.__name__, f"{keys[0][0]} and {keys[1][0]} are both a PrimaryKey; remove one")
    if not keys:
        if nested:
            raise ModelError(
                cls.__name__, "the entity has queries but no Key; declare class Key(PrimaryKey[…], pk=…)"
            )
        if writes and table is not None:
            raise ModelError(
                cls.__name__,
                "the entity has a table and writes= but no Key, so it cannot be written; declare a Key, "
                "or remove the table until its key is known",
            )
        shape.table = None
        return shape
    assert table is not None
    name, key = keys[0]
    shape.key = key.__pattern__ = bind_primary(KeyBinder(cls, table, fields, name), key.__declared__)
    for name, nested_class in nested.items():
        if issubclass(nested_class, Query):
            pattern = bind_query(
                KeyBinder(cls, table, fields, name), nested_class.__declared__, shape.key, key
            )
            shape.patterns[name] = nested_class.__pattern__ = pattern
            if pattern.result == cls.__name__:
                check_whole_entities(pattern, shape)
    shape.keys = distinct_keys(cls, shape.patterns)
    shape.fields_in_keys = _fields_in_keys(shape)
    bind_uniques(shape)
    register_entity(shape)
    return shape


def _fields_in_keys(shape: EntityShape) -> tuple[tuple[str, tuple[KeySource, ...]], ...]:
    """Return the fields that can be read from keys, for items that other programs wrote without them.

    Of index keys only required fields are read: an optional field may be absent on purpose.
    """
    assert shape.key is not None
    primary = shape.key.key.sources
    sources: dict[str, tuple[KeySource, ...]] = {}
    for source in (*primary, *(source for key in shape.keys for source in key.written)):
        if source.template is None:
            continue
        for name in source.fields:
            if name == SHARD or name in source.template.lossy_fields:
                continue
            if source in primary or shape.fields[name].is_required:
                sources[name] = (*sources.get(name, ()), source)
    return tuple(sources.items())


def field_shapes(cls: type[EntityBase], table: type[Table] | None) -> dict[str, FieldShape]:
    """Return the shapes of an entity's fields, by name; the table's TTL field is stored as epoch seconds."""
    if cls.model_config.get("extra") == "allow":
        raise ModelError(
            cls.__name__,
            'extra="allow" accepts values that no field stores, so they would be lost; remove it and '
            "declare a field for them, such as more: Attr[dict[str, Any]]",
        )
    ttl = None if table is None else table.settings.ttl
    shapes: dict[str, FieldShape] = {}
    for name, info in cls.__dict__["__pydantic_fields__"].items():
        shape = _field_shape(f"{cls.__name__}.{name}", name, info, ttl)
        if shape.lock and (other := next((o.name for o in shapes.values() if o.lock), None)):
            raise ModelError(f"{cls.__name__}.{name}", f"{other} is already the lock; an entity has only one")
        shapes[name] = shape
    attributes: dict[str, str] = {}
    for shape in shapes.values():
        if shape.attribute in attributes:
            other = attributes[shape.attribute]
            raise ModelError(
                f"{cls.__name__}.{shape.name}",
                f"{other} is also stored as {shape.attribute!r}; use attr(name=…) on one of them",
            )
        attributes[shape.attribute] = shape.name
    return shapes


def _field_shape(place: str, name: str, info: FieldInfo, ttl: str | None) -> FieldShape:
    options = next((m for m in info.metadata if isinstance(m, AttrOptions)), AttrOptions())
    attribute = options.name or name
    try:
        converter = field_converter(info)
    except ValueNotStorable as error:
        raise with_place(error, place) from None
    if attribute == ttl:
        converter = _expiry_converter(place, converter)
    if converter.nullable and not info.is_required() and (info.default_factory or info.default is not None):
        raise ModelError(
            place,
            "None is stored as a missing attribute, which would be read as the default; make the "
            "default None, or remove None from the type",
        )
    if options.lock:
        _check_lock(place, info, converter)
    return FieldShape(
        name,
        attribute,
        info.annotation,
        converter,
        required=info.is_required(),
        lock=options.lock,
        unique=options.unique,
        within=options.within,
        default=None if info.is_required() or info.default_factory is not None else info.default,
    )


def _check_lock(place: str, info: FieldInfo, converter: Converter) -> None:
    if converter.key_kind != "int":
        raise ModelError(place, "lock=True needs an int field, which counts the writes of an item")
    if converter.nullable:
        raise ModelError(place, "lock=True counts the writes of an item and cannot be None; use int")
    if info.is_required():
        raise ModelError(place, "lock=True needs default=0, for an item that has not been written yet")


def _expiry_converter(place: str, converter: Converter) -> Converter:
    """Return the converter of the TTL field; refuse types that cannot be stored as whole epoch seconds."""
    if converter.kind == "int" or converter.word == EPOCH_SECONDS.word:
        return converter
    if converter.kind != "datetime":
        raise ModelError(
            place, "this is the table's TTL attribute; its type must be datetime, or int for epoch seconds"
        )
    return replace(EXPIRY, nullable=converter.nullable)


def truncate_ttl(cls: type[EntityBase], fields: dict[str, FieldShape]) -> bool:
    """Make pydantic truncate the TTL field as storing does; return whether the model must be rebuilt."""
    must_rebuild = False
    infos: dict[str, Any] = cls.__dict__["__pydantic_fields__"]
    for name, shape in fields.items():
        if shape.converter.kind == EXPIRY.kind and _CUT not in infos[name].metadata:
            infos[name].metadata.append(_CUT)
            must_rebuild = True
    return must_rebuild


def register_entity(shape: EntityShape) -> None:
    """Register an entity with its table; refuse one that conflicts with the table."""
    _check_attributes(shape)
    _check_writes(shape)
    _add_to_table(shape, shape.home)


def distinct_keys(cls: type, patterns: Mapping[str, Pattern]) -> tuple[KeyShape, ...]:
    """Return one key per index; patterns on the same index must declare the same key."""
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
                f"an item has one key in {index.label}, but {other} defines a different one; use a second index, or "
                "declare the same pk, sk, shards, sparse and members",
            )
    _check_writers(cls, keys)
    return tuple(key for _, key in keys.values())


def _check_writers(cls: type, keys: Mapping[str, tuple[str, KeyShape]]) -> None:
    """Refuse two indexes that share a key attribute but write different values to it, or under different conditions."""
    writers: dict[str, tuple[str, Any]] = {}
    for name, key in keys.values():
        for source in key.written:
            assert source.template is not None
            written_form = (source.template.source, key.members, key.sparse, key.shards)
            other, known = writers.setdefault(source.attribute, (name, written_form))
            if known != written_form:
                raise ModelError(
                    f"{cls.__name__}.{name}",
                    f"{other} also writes {source.attribute!r}, with other values; use two "
                    "attributes, or both patterns the same template, shards, sparse and members",
                )


def _written_form(key: KeyShape) -> tuple[Any, ...]:
    texts = tuple((s.attribute, s.fields, s.template and s.template.source) for s in key.sources)
    return texts, key.members, key.sparse, key.shards


def _check_attributes(shape: EntityShape) -> None:
    """Refuse fields whose attribute a key template or the tag would overwrite."""
    assert shape.table is not None
    settings = shape.table.settings
    reserved = {settings.tag: "the table's tag"} if settings.tag else {}
    if shape.version > 1:
        reserved[VERSION_ATTRIBUTE] = "the schema's version"
    for key in (shape.key.key, *shape.keys) if shape.key else ():
        for source in key.sources:
            if source.field is None:
                reserved[source.attribute] = "a key"
    for field in shape.fields.values():
        if field.attribute in reserved:
            raise ModelError(
                f"{shape.entity.__name__}.{field.name}",
                f"{field.attribute!r} is {reserved[field.attribute]}; store the field under another name (attr(name=…))",
            )


def _check_writes(shape: EntityShape) -> None:
    """Refuse declared write patterns that the entity cannot make."""
    for write in shape.writes:
        place = f"{shape.entity.__name__} {write.title!r}"
        write.check(shape.entity.__name__)
        changes = tuple(dict.fromkeys((*write.changes, *write.adds)))
        if (write.kind == "update" and not changes) or (write.kind == "delete" and changes):
            problem = "lists no changed field" if write.kind == "update" else "has fields in changes="
            raise ModelError(
                place,
                f"a {write.kind} write {problem}; use changes=(…) for an update, or for a put that replaces an item",
            )
        if changes and shape.immutable:
            raise ModelError(
                place,
                "it changes items, but the entity is immutable; remove the write pattern or immutable=True",
            )
        for name in changes:
            if name not in shape.fields:
                raise ModelError(
                    place,
                    f"it changes {name!r}, which is not a field; the fields are {', '.join(shape.fields)}",
                )
            if name in shape.key_fields:
                raise ModelError(
                    place,
                    f"it changes {name}, which is part of the primary key and cannot change; put a new item and "
                    "delete the old one",
                )
            if shape.fields[name].lock:
                raise ModelError(
                    place,
                    f"it changes {name}, the lock field, which every write increments; remove it from changes",
                )


def _add_to_table(shape: EntityShape, table: type[Table]) -> None:
    """Add an entity to its table; refuse it if another entity there could have the same key or tag."""
    assert shape.key is not None
    for name, other in table.entities.items():
        if _same_class(other, shape.entity):
            continue
        if name == shape.name:
            raise ModelError(
                shape.entity.__name__,
                f"{table.__name__} already has an entity with the tag {name!r}; set tag=…",
            )
        other_shape = other.__shape__
        assert other_shape.key is not None
        pairs = list(zip(shape.key.key.sources, other_shape.key.key.sources, strict=False))
        if all(_may_meet(mine, its) for mine, its in pairs):
            raise ModelError(
                f"{shape.entity.__name__}.{shape.key.name}",
                f"its items could have the same key as items of {other.__name__} and overwrite them; use a different "
                "constant prefix in one of the templates",
            )
        _check_types(shape, other_shape)
        check_guard_keys(shape, other_shape)
        check_guard_keys(other_shape, shape)
    table.entities[shape.name] = shape.entity


def _same_class(one: type, other: type) -> bool:
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def _may_meet(mine: KeySource, its: KeySource) -> bool:
    if mine.tag != its.tag:
        return False
    if mine.template is None or its.template is None:
        return True
    return mine.template.may_meet(its.template)


def _check_types(shape: EntityShape, other: EntityShape) -> None:
    """Refuse a key attribute that two entities write with different types: a table declares one type per attribute."""
    assert shape.key is not None
    assert other.key is not None
    theirs = {s.attribute: s for key in (other.key.key, *other.keys) for s in key.sources}
    for key in (shape.key.key, *shape.keys):
        for source in key.sources:
            its = theirs.get(source.attribute)
            if its is not None and its.tag != source.tag:
                raise ModelError(
                    shape.entity.__name__,
                    f"the key attribute {source.attribute!r} would have type {source.tag}, but {other.entity.__name__} uses type {its.tag}; a key attribute has "
                    "one type, so use the same type in both",
                )
