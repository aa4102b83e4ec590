"""Build a `Design` from the table, entity and collection classes that declare it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import ModuleType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

from annotated_types import MaxLen
from pydantic.fields import FieldInfo

from tavola.keys import Template
from tavola.model.attributes import AttrOptions
from tavola.model.design import (
    Choice,
    CollectionDesign,
    Design,
    EntityDesign,
    FieldDesign,
    IndexDesign,
    KeyDesign,
    MemberDesign,
    Membership,
    PatternDesign,
    SourceDesign,
    TableDesign,
)
from tavola.model.entity import Entity, entities_of, key_types, result_entity, shape_of
from tavola.model.needs import needs_in
from tavola.model.relations import Collection, members_of
from tavola.model.shapes import EntityShape, FieldShape, KeyShape, KeySource, Pattern
from tavola.model.tables import Index, KeyTag, Table
from tavola.values import Value

Declaration = ModuleType | type[Table] | type[Entity] | type[Collection]


def design_of(*declarations: Declaration) -> Design:
    """Return the design that modules or classes declare.

    A module contributes the tables, entities and collections in it; a table contributes its entities, and the
    collections declared in the same modules. Views are included through the patterns that return them.
    """
    tables: dict[type[Table], None] = {}
    collections: dict[type[Collection], None] = {}
    views: dict[type[Entity], None] = {}
    for declaration in declarations:
        for declared in (
            _declarations_in(declaration) if isinstance(declaration, ModuleType) else (declaration,)
        ):
            if issubclass(declared, Table):
                tables[declared] = None
            elif issubclass(declared, Collection):
                collections[declared] = None
                tables[_table_of_collection(declared)] = None
            else:
                shape = shape_of(declared)
                (views if shape.table is None else tables)[cast(Any, shape.table or declared)] = None
    given_modules = [declaration for declaration in declarations if isinstance(declaration, ModuleType)]
    modules = {module: None for table in tables for module in _modules(table)}
    for module in modules:
        collections |= {
            declared: None
            for declared in _declarations_in(module)
            if issubclass(declared, Collection) and _table_of_collection(declared) in tables
        }
    for table in tables:
        for entity in entities_of(table):
            views |= dict.fromkeys(_views(entity))
    return Design(
        tuple(
            _table(
                table, [collection for collection in collections if _table_of_collection(collection) is table]
            )
            for table in tables
        ),
        tuple(sorted(map(_entity, views), key=lambda view: view.name)),
        tuple(
            need for module in dict.fromkeys((*given_modules, *modules)) for need in needs_in(vars(module))
        ),
    )


def _declarations_in(module: ModuleType) -> Iterator[type[Table] | type[Entity] | type[Collection]]:
    """Yield the classes that a module declares itself, in order; imported ones are left out."""
    for value in vars(module).values():
        declares = isinstance(value, type) and issubclass(value, Table | Entity | Collection)
        if declares and value.__module__ == module.__name__ and value not in (Table, Entity, Collection):
            if issubclass(value, Entity) and not value.model_fields:
                continue  # a base that only names the table
            yield value


def _modules(table: type[Table]) -> Iterator[ModuleType]:
    for cls in (table, *entities_of(table)):
        module = sys.modules.get(cls.__module__)
        if module is not None:
            yield module


def _table_of_collection(collection: type[Collection]) -> type[Table]:
    return shape_of(members_of(collection)[0].entity).home


def _views(entity: type[Entity]) -> Iterator[type[Entity]]:
    for pattern in shape_of(entity).patterns.values():
        result = result_entity(pattern)
        if shape_of(result).table is None:
            yield result


def _table(table: type[Table], collections: list[type[Collection]]) -> TableDesign:
    return TableDesign(
        table.__name__,
        table.settings,
        key_types(table),
        tuple(
            IndexDesign(
                index.name, index.label, index.local, index.hash, index.range, index.projection, index.native
            )
            for index in table.indexes
        ),
        tuple(_entity(entity) for entity in entities_of(table)),
        tuple(_collection(collection) for collection in collections),
        _description(table),
        table.consumers,
    )


def _entity(entity: type[Entity]) -> EntityDesign:
    shape = shape_of(entity)
    fields = tuple(_field(field, entity.model_fields[name]) for name, field in shape.fields.items())
    items = entity.__options__.get("items")
    if shape.key is None:
        return EntityDesign(
            entity.__name__,
            shape.name,
            fields,
            writes=shape.writes,
            description=_description(entity),
            immutable=shape.immutable,
            items=items,
        )
    return EntityDesign(
        entity.__name__,
        shape.name,
        fields,
        _key(shape, shape.key.key),
        tuple(_key(shape, key) for key in shape.keys),
        _pattern(shape.key),
        tuple(map(_pattern, shape.patterns.values())),
        shape.writes,
        shape.version,
        "refuse" if shape.policy == "refuse" else "read",
        _description(entity),
        shape.immutable,
        items,
    )


def _field(field_shape: FieldShape, info: FieldInfo) -> FieldDesign:
    converter = field_shape.converter
    options = next(
        (metadatum for metadatum in info.metadata if isinstance(metadatum, AttrOptions)), AttrOptions()
    )
    return FieldDesign(
        field_shape.name,
        field_shape.attribute,
        converter.word,
        tuple(sorted(converter.tags)),
        field_shape.required,
        field_shape.nullable,
        converter.key_kind,
        _choices(converter.choices),
        field_shape.lock,
        field_shape.unique,
        field_shape.within,
        inspect.cleandoc(info.description or ""),
        options.distinct,
        options.typical_bytes,
        _length_max((info.annotation, *info.metadata)),
        options.tenant,
    )


def _length_max(metadata: tuple[Any, ...]) -> int | None:
    """Return the maximum length of values by the constraints of a type, also inside unions; None if unlimited."""
    for constraint in metadata:
        if isinstance(constraint, FieldInfo):
            length = _length_max(tuple(constraint.metadata))
        elif isinstance(constraint, MaxLen):
            return constraint.max_length
        elif get_origin(constraint) in (Union, UnionType, Annotated):
            length = _length_max(get_args(constraint))
        else:
            continue
        if length is not None:
            return length
    return None


def _choices(choices: tuple[Any, ...] | None) -> tuple[Choice, ...] | None:
    """Return the choices if JSON can represent all of them, else None: bytes are described by the field's type only."""
    if choices is None or not all(isinstance(choice, str | int) for choice in choices):
        return None
    return choices


def _key(shape: EntityShape, key: KeyShape) -> KeyDesign:
    return KeyDesign(
        None if key.index is None else key.index.name,
        tuple(map(_source, key.hash)),
        tuple(map(_source, key.range)),
        key.sparse,
        tuple(
            Membership(name, tuple(_encode_choice(shape.fields[name], value) for value in allowed))
            for name, allowed in key.members
        ),
        key.shards,
    )


def _encode_choice(field_shape: FieldShape, value: Any) -> Value | None:
    return None if value is None else field_shape.encode(value)


def _source(source: KeySource) -> SourceDesign:
    template = source.template
    return SourceDesign(
        source.attribute,
        cast(KeyTag, source.tag),
        None if source.field is None else source.field.name,
        None if template is None else Template.parse(template.source, template.delimiter),
    )


def _pattern(pattern: Pattern) -> PatternDesign:
    index = pattern.key.index
    return PatternDesign(
        pattern.name,
        None if index is None else index.name,
        pattern.partition,
        pattern.sorts,
        pattern.result,
        pattern.hydrate,
        pattern.access,
    )


def _collection(collection: type[Collection]) -> CollectionDesign:
    members = members_of(collection)
    table = _table_of_collection(collection)
    source = members[0].key.hash[0]
    text = collection.__pk__ or (
        f"{{{source.fields[0]}}}" if source.template is None else source.template.source
    )
    on = collection.__on__
    return CollectionDesign(
        collection.__name__,
        on.name if isinstance(on, Index) else None,
        Template.parse(text, table.settings.delimiter),
        collection.__sk__,
        collection.__parts__,
        tuple(MemberDesign(member.name, member.entity.__name__, member.many) for member in members),
        collection.__access__,
        _description(collection),
    )


def _description(cls: type) -> str:
    """Return a class's own docstring, not an inherited one."""
    return inspect.cleandoc(cls.__dict__.get("__doc__") or "")
