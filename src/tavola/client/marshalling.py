"""Marshalling: entities to items and back.

An item holds an entity's fields, its key, the keys of the indexes that it is in, and a tag that names the entity. None is
stored as an absent attribute, never as NULL. Items are validated when they are read, because a table outlives the code that
wrote it.

`resolve_target` and `shape_of_entity` take what callers pass. A type checker finds most wrong arguments; for programs that run
without one, they are refused before anything is sent, with what to pass instead.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from tavola.client.context import Context
from tavola.model import (
    UNIQUE_ATTRIBUTE,
    VERSION_ATTRIBUTE,
    Entity,
    EntityShape,
    ItemUnreadable,
    KeyShape,
    KeySource,
    ModelError,
    PrimaryKey,
    Table,
    ValueNotStorable,
    decode_plain,
    enum_value,
    shape_of,
    with_place,
)
from tavola.values import Item, Value

E = TypeVar("E", bound=Entity)

VERSION = VERSION_ATTRIBUTE


def resolve_target(target: PrimaryKey[E] | E) -> tuple[EntityShape, dict[str, Any], Entity | None]:
    """Return the shape of a key or an entity, the values of its key fields, and the entity if it is one."""
    value: Any = target
    if isinstance(value, Entity):
        shape = shape_of(type(value))
        home = shape.home  # raises for a view, which is stored in no table
        assert shape.key is not None, f"an entity of {home.__name__} has a key"
        return shape, {name: value.__dict__[name] for name in shape.key.partition}, value
    if isinstance(value, PrimaryKey):
        return shape_of(type(value).__get_pattern__().owner), value.__dict__, None
    if isinstance(value, type):
        raise ModelError(
            value.__qualname__, f"this is a class; pass an entity or a key, such as {value.__qualname__}(…)"
        )
    raise ModelError(type(value).__name__, "pass an entity or its key, such as Ticket.Key(ticket_id=…)")


def describe_item(shape: EntityShape, values: Mapping[str, Any]) -> str:
    """Return the name of an item in error messages: its entity and key fields."""
    fields = ", ".join(f"{name}={shape.fields[name].show(value)}" for name, value in values.items())
    return f"{shape.entity.__name__} {fields}"


def shape_of_entity(entity: Any, verb: str) -> EntityShape:
    """Return the shape of an entity that is to be stored; refuse anything else."""
    if not isinstance(entity, Entity):
        raise ModelError(verb, f"it stores entities, such as Ticket(…), not {describe_type(entity)}")
    return shape_of(type(entity))


def describe_type(value: Any) -> str:
    """Return what kind of value was passed, without its contents."""
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    if isinstance(value, PrimaryKey):
        return f"the key {value!r}"
    return f"a {type(value).__name__}"


def item_of(shape: EntityShape, entity: Entity, context: Context) -> Item:
    """Return the item that stores an entity."""
    table = shape.home
    values = entity.__dict__
    primary = shape.primary(values)
    item: Item = dict(primary)
    for name, field in shape.fields.items():
        value = values[name]
        if value is not None:
            try:
                encoded = field.encode(value)
            except ValueNotStorable as error:
                raise with_place(error, f"{shape.entity.__name__}.{name}") from None
            if encoded:
                item[field.attribute] = encoded
    for key in shape.keys:
        attributes = shape.index_attributes(key, values, primary, context.chance)
        if attributes is not None:
            item.update(attributes)
    add_tag_and_version(shape, table, item)
    return item


def add_tag_and_version(shape: EntityShape, table: type[Table], item: Item) -> None:
    """Add the entity's tag and schema version to an item."""
    if table.settings.tag is not None:
        item[table.settings.tag] = {"S": shape.name}
    if shape.version > 1:
        item[VERSION] = {"N": str(shape.version)}


def entity_of(entity: type[E], item: Mapping[str, Value]) -> E:
    """Return the entity that an item stores."""
    shape = shape_of(entity)
    try:
        if (shape.version > 1 or VERSION in item) and version_of(shape, item) != shape.version:
            return _upgrade(shape, entity, item)
        values = shape.read(item)
        if len(values) < len(shape.fields):
            _add_absent_fields(shape, values, item)
        return _validate(entity, values)
    except ItemUnreadable as error:
        raise _with_item_key(error, shape, item) from error.__cause__


def _add_absent_fields(shape: EntityShape, values: dict[str, Any], item: Mapping[str, Value]) -> None:
    """Add fields that only key attributes hold, then the values of absent attributes: an empty set, or None."""
    for name, sources in shape.fields_in_keys:
        if name not in values and (value := _field_in_keys(name, sources, item)) is not None:
            values[name] = value
    for name, make in shape.absent_values:
        if name not in values:
            values[name] = None if make is None else make()


def _field_in_keys(name: str, sources: Iterable[KeySource], item: Mapping[str, Value]) -> Any:
    """Return a field's value from the first key attribute that contains it, None if there is none."""
    values = (fields_in_key(source, item).get(name) for source in sources)
    return next((value for value in values if value is not None), None)


def _validate(entity: type[E], values: dict[str, Any]) -> E:
    try:
        return entity.__pydantic_validator__.validate_python(values, strict=False, by_name=True)  # type: ignore[no-any-return]  # pydantic's validator does not know its class
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3])
        raise ItemUnreadable(
            entity.__name__, f"a stored item does not match its fields: {problems}"
        ) from error


def version_of(shape: EntityShape, item: Mapping[str, Value]) -> int:
    """Return the schema version of an item; an attribute of that name written by another program is ignored."""
    stored = item.get(VERSION)
    if stored is None or "N" not in stored:
        return 1
    if shape.version == 1 and (
        VERSION in shape.by_attribute or shape.table is None or not _has_tag(shape, item)
    ):
        return 1
    return int(stored["N"])


def _has_tag(shape: EntityShape, item: Mapping[str, Value]) -> bool:
    assert shape.table is not None
    tag = shape.table.settings.tag
    return tag is not None and tag in item


def _upgrade(shape: EntityShape, entity: type[E], item: Mapping[str, Value]) -> E:
    values = {n: value for n, value in upgraded_values(shape, item).items() if n in shape.fields}
    _add_absent_fields(shape, values, item)
    return _validate(entity, values)


def upgraded_values(shape: EntityShape, item: Mapping[str, Value]) -> dict[str, Any]:
    """Return an item's values after its upgrades, by field name, or by attribute name if there is no field."""
    version = version_of(shape, item)
    if version > shape.version:
        raise ItemUnreadable(
            shape.entity.__name__,
            f"the item has schema version {version}, and this program supports up to {shape.version}; update the program",
        )
    values = plain_values(shape, item)
    for step in range(version, shape.version):
        try:
            values = shape.upgrades[step](values)
        except Exception as error:
            raise ItemUnreadable(
                shape.entity.__name__, f"@upgrade({step}) failed for a stored item: {error!r}"
            ) from error
    return values


def plain_values(shape: EntityShape, item: Mapping[str, Value]) -> dict[str, Any]:
    """Return an item's attributes as plain Python values, by field name, or by attribute name if there is no field."""
    return {
        (field.name if (field := shape.by_attribute.get(attribute)) else attribute): decode_plain(value)
        for attribute, value in item.items()
    }


def view_of(view: type[E], item: Mapping[str, Value], key: KeyShape, owner: EntityShape) -> E:
    """Return a view from an index entry: the attributes it projects, and fields that its keys contain."""
    shape = shape_of(view)
    values = shape.read(item)
    if len(values) < len(shape.fields):
        assert owner.key is not None
        absent = shape.fields.keys() - values.keys()
        for source in (*owner.key.key.sources, *key.sources):
            if absent.isdisjoint(source.fields):
                continue  # parsing a key is slow, and this one has no field that is needed
            for name, value in fields_in_key(source, item).items():
                if name in shape.fields:
                    values.setdefault(name, value)
        _add_absent_fields(shape, values, item)
    return _validate(view, values)


def view_from(view: type[E], entity: Entity) -> E:
    """Return a view with the fields of a complete entity."""
    values = entity.__dict__
    return _validate(view, {name: values[name] for name in shape_of(view).fields})


def fields_in_key(source: KeySource, item: Mapping[str, Value]) -> dict[str, Any]:
    """Return the fields that a key attribute of an item contains."""
    stored = item.get(source.attribute)
    if stored is None:
        return {}
    if source.field is not None:
        return {source.field.name: source.field.decode(stored)}
    assert source.template is not None
    values = source.template.read(stored.get("S", ""))
    return (
        {} if values is None else {n: v for n, v in values.items() if n not in source.template.lossy_fields}
    )


def identify_entity(table: type[Table], item: Mapping[str, Value]) -> type[Entity] | None:
    """Return the entity class of an item, by its tag or by its key; None if it is of no class in the design."""
    tag = table.settings.tag
    if tag is not None:
        stored = item.get(tag)
        if stored is not None:
            return table.entities.get(stored.get("S", ""))
    for entity in table.entities.values():
        if matches_key(shape_of(entity), item):
            return entity
    return None


def matches_key(shape: EntityShape, item: Mapping[str, Value]) -> bool:
    """Return whether an item's key has the form of an entity's key templates."""
    assert shape.key is not None
    if UNIQUE_ATTRIBUTE in item:
        return False  # the guard of a unique value
    for source in shape.key.key.sources:
        stored = item.get(source.attribute)
        if stored is None:
            return False
        if source.template is not None:
            text = stored.get("S", "")
            # Most keys of other entities have another prefix, and parsing a key is slow.
            if not text.startswith(source.template.literal_prefix) or source.template.read(text) is None:
                return False
    return True


def is_item_of(shape: EntityShape, table: type[Table], item: Mapping[str, Value]) -> bool:
    """Return whether an item is of one entity; faster than `identify_entity`."""
    tag = table.settings.tag
    if tag is not None:
        stored = item.get(tag)
        if stored is not None:
            return stored.get("S") == shape.name
    return matches_key(shape, item)


def values_in(shape: EntityShape, item: Mapping[str, Value], names: frozenset[str]) -> dict[str, Any]:
    """Return fields of an item as Python values, to build keys from."""
    attributes = dict(item)
    try:
        values = {name: enum_value(shape.fields[name].value_in(attributes)) for name in names}
    except ItemUnreadable as error:
        raise _with_item_key(error, shape, item) from error.__cause__
    for name, sources in shape.fields_in_keys:
        if name in names and shape.fields[name].attribute not in item:
            value = _field_in_keys(name, sources, item)
            values[name] = values[name] if value is None else value
    return values


def _with_item_key(error: ItemUnreadable, shape: EntityShape, item: Mapping[str, Value]) -> ItemUnreadable:
    """Return the error with the table and key of the item, if the entity has a table."""
    if shape.table is None:
        return error
    settings = shape.table.settings
    hidden = shape.key is not None and any(shape.fields[name].hidden for name in shape.key_fields)
    key = {name: item[name] for name in settings.key_names if name in item}
    return error.at(settings.name, key, hidden=hidden)


def as_json(item: Mapping[str, Any]) -> Item:
    """Return an item as DynamoDB JSON, with binary values as base64 text instead of botocore's bytes."""
    return {name: _value_as_json(value) for name, value in item.items()}


def _value_as_json(value: Mapping[str, Any]) -> Value:
    ((tag, content),) = value.items()
    match tag:
        case "B" if isinstance(content, bytes):
            content = b64encode(content).decode()
        case "BS":
            content = [
                b64encode(element).decode() if isinstance(element, bytes) else element for element in content
            ]
        case "L":
            content = [_value_as_json(element) for element in content]
        case "M":
            content = as_json(content)
        case _:
            pass
    return {tag: content}
