"""Marshalling: entity ⇄ item.

An item holds an entity's fields, its key, the keys of the indexes that it is in, and the tag that says which
entity it is. None is absence, never NULL. What is read is validated again: a table outlives the code that wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from tavola.client.context import Context
from tavola.model import (
    UNIQUE_ATTRIBUTE,
    VERSION_ATTRIBUTE,
    Entity,
    ItemUnreadable,
    KeyShape,
    KeySource,
    Shape,
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


def item_of(shape: Shape, entity: Entity, context: Context) -> Item:
    """Return an entity as the item that is stored."""
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
    stamp(shape, table, item)
    return item


def stamp(shape: Shape, table: type[Table], item: Item) -> None:
    """Write into an item which entity it is, and of which schema."""
    if table.settings.tag is not None:
        item[table.settings.tag] = {"S": shape.name}
    if shape.version > 1:
        item[VERSION] = {"N": str(shape.version)}


def entity_of(entity: type[E], item: Mapping[str, Value]) -> E:
    """Return the entity in an item of its own kind."""
    shape = shape_of(entity)
    try:
        if (shape.version > 1 or VERSION in item) and version_of(shape, item) != shape.version:
            return _upgraded(shape, entity, item)
        values = shape.read(item)
        if len(values) < len(shape.fields):
            _fill(shape, values, item)
        return _validated(entity, values)
    except ItemUnreadable as error:
        raise _of_item(error, shape, item) from error.__cause__


def _fill(shape: Shape, values: dict[str, Any], item: Mapping[str, Value]) -> None:
    """Add what stands in the keys alone, then what absence stands for: an empty set, None without a default."""
    for name, sources in shape.told_by_keys:
        if name not in values and (told := _told(name, sources, item)) is not None:
            values[name] = told
    for name, value in shape.absences:
        if name not in values:
            values[name] = None if value is None else value()


def _told(name: str, sources: Iterable[KeySource], item: Mapping[str, Value]) -> Any:
    """Return a field as one of some keys tells it, None where none does."""
    told = (read_source(source, item).get(name) for source in sources)
    return next((value for value in told if value is not None), None)


def _validated(entity: type[E], values: dict[str, Any]) -> E:
    try:
        return entity.__pydantic_validator__.validate_python(values, strict=False, by_name=True)  # type: ignore[no-any-return]  # pydantic's validator does not know its class
    except ValidationError as error:
        told = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3])
        raise ItemUnreadable(entity.__name__, f"a stored item does not fit it: {told}") from error


def version_of(shape: Shape, item: Mapping[str, Value]) -> int:
    """Return the schema version of an item; an attribute of that name that others wrote says nothing."""
    stored = item.get(VERSION)
    if stored is None or "N" not in stored:
        return 1
    if shape.version == 1 and (
        VERSION in shape.by_attribute or shape.table is None or not _tagged(shape, item)
    ):
        return 1
    return int(stored["N"])


def _tagged(shape: Shape, item: Mapping[str, Value]) -> bool:
    assert shape.table is not None
    tag = shape.table.settings.tag
    return tag is not None and tag in item


def _upgraded(shape: Shape, entity: type[E], item: Mapping[str, Value]) -> E:
    values = {n: value for n, value in upgraded_values(shape, item).items() if n in shape.fields}
    _fill(shape, values, item)
    return _validated(entity, values)


def upgraded_values(shape: Shape, item: Mapping[str, Value]) -> dict[str, Any]:
    """Return an item of an older schema as plain values of this one, by field, or attribute where it has no field."""
    version = version_of(shape, item)
    if version > shape.version:
        raise ItemUnreadable(
            shape.entity.__name__,
            f"the item is of schema version {version}, and this program knows {shape.version}; update it",
        )
    values = plain_values(shape, item)
    for step in range(version, shape.version):
        try:
            values = shape.upgrades[step](values)
        except Exception as error:
            raise ItemUnreadable(
                shape.entity.__name__, f"its @upgrade({step}) fails on a stored item: {error!r}"
            ) from error
    return values


def plain_values(shape: Shape, item: Mapping[str, Value]) -> dict[str, Any]:
    """Return an item's attributes as plain Python, by field, or attribute where it has no field."""
    return {
        (found.name if (found := shape.by_attribute.get(attribute)) else attribute): decode_plain(value)
        for attribute, value in item.items()
    }


def view_of(view: type[E], item: Mapping[str, Value], key: KeyShape, owner: Shape) -> E:
    """Return what an index's entry holds of an entity: attributes it projects, and fields out of its keys."""
    shape = shape_of(view)
    values = shape.read(item)
    if len(values) < len(shape.fields):
        assert owner.key is not None
        absent = shape.fields.keys() - values.keys()
        for source in (*owner.key.key.sources, *key.sources):
            if absent.isdisjoint(source.fields):
                continue  # reading a key back is dear, and it tells nothing that is wanted
            for name, value in read_source(source, item).items():
                if name in shape.fields:
                    values.setdefault(name, value)
        _fill(shape, values, item)
    return _validated(view, values)


def view_from(view: type[E], entity: Entity) -> E:
    """Return a view of an entity that is at hand whole."""
    values = entity.__dict__
    return _validated(view, {name: values[name] for name in shape_of(view).fields})


def read_source(source: KeySource, item: Mapping[str, Value]) -> dict[str, Any]:
    """Return the fields that a key attribute of an item tells."""
    stored = item.get(source.attribute)
    if stored is None:
        return {}
    if source.field is not None:
        return {source.field.name: source.field.decode(stored)}
    assert source.template is not None
    found = source.template.read(stored.get("S", ""))
    return {} if found is None else {n: v for n, v in found.items() if n not in source.template.lossy_fields}


def recognised(table: type[Table], item: Mapping[str, Value]) -> type[Entity] | None:
    """Return which entity an item of a table is: by its tag, or by the templates its key fits; None if by neither."""
    tag = table.settings.tag
    if tag is not None:
        told = item.get(tag)
        if told is not None:
            return table.entities.get(told.get("S", ""))
    for entity in table.entities.values():
        if fits(shape_of(entity), item):
            return entity
    return None


def fits(shape: Shape, item: Mapping[str, Value]) -> bool:
    """Return whether an item's key is one that an entity's templates make."""
    assert shape.key is not None
    if UNIQUE_ATTRIBUTE in item:
        return False  # the guard of a unique value, which belongs to an entity and is none
    for source in shape.key.key.sources:
        stored = item.get(source.attribute)
        if stored is None:
            return False
        if source.template is not None:
            text = stored.get("S", "")
            # Most that are of another kind begin otherwise, and reading a key back is dear.
            if not text.startswith(source.template.literal_prefix) or source.template.read(text) is None:
                return False
    return True


def is_kind(shape: Shape, table: type[Table], item: Mapping[str, Value]) -> bool:
    """Return whether an item is of an entity, without asking which else it could be."""
    tag = table.settings.tag
    if tag is not None:
        told = item.get(tag)
        if told is not None:
            return told.get("S") == shape.name
    return fits(shape, item)


def values_in(shape: Shape, item: Mapping[str, Value], names: frozenset[str]) -> dict[str, Any]:
    """Return some fields of an item as Python has them, for making keys of."""
    told = dict(item)
    try:
        values = {name: enum_value(shape.fields[name].value_in(told)) for name in names}
    except ItemUnreadable as error:
        raise _of_item(error, shape, item) from error.__cause__
    for name, sources in shape.told_by_keys:
        if name in names and shape.fields[name].attribute not in item:
            found = _told(name, sources, item)
            values[name] = values[name] if found is None else found
    return values


def _of_item(error: ItemUnreadable, shape: Shape, item: Mapping[str, Value]) -> ItemUnreadable:
    """Return the same with the table and the key of the item, where it is one of a table."""
    if shape.table is None:
        return error
    settings = shape.table.settings
    hidden = shape.key is not None and any(shape.fields[name].hidden for name in shape.key_fields)
    key = {name: item[name] for name in settings.key_names if name in item}
    return error.at(settings.name, key, hidden=hidden)
