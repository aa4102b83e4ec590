"""List every access pattern of a design with the parameters its form needs.

Primary keys, queries, collections, needs and writes appear in design order. A need runs by its declared route or, without
one, by the key that serves it best; a need that no key serves is listed with the reason and cannot be run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from tavola.design.access_paths import shards_to_read
from tavola.design.lint import LintContext
from tavola.design.text import join_names
from tavola.model import SHARD
from tavola.model.document import (
    AccessPattern,
    CollectionDesign,
    Design,
    EntityDesign,
    FieldDesign,
    Given,
    KeyDesign,
    Need,
    PatternDesign,
    SourceDesign,
    TableDesign,
    WritePattern,
)
from tavola.studio.access_patterns.input_values import InputKind, attribute_text, input_kind
from tavola.studio.key_text import format_value
from tavola.studio.problems import RequestRefused
from tavola.studio.types import AttributeValue

PatternKind = Literal["key", "query", "collection", "need", "write"]
ParameterRole = Literal["partition", "sort", "filter"]

SORT_OPERATORS = ("=", "<", "<=", ">", ">=", "between")
_OPERATIONS = {"get": "GetItem", "batch_get": "BatchGetItem", "query": "Query", "scan": "Scan"}
DEFAULT_LIMIT = 25  # items, if the design does not declare how many a pattern returns
_DESCENDING_TITLES = ("newest first", "latest first", "last first")


@dataclass(frozen=True, slots=True)
class PatternParameter:
    """One parameter of a pattern, as a form shows it."""

    name: str
    kind: InputKind
    role: ParameterRole
    required: bool
    operators: tuple[str, ...]  # allowed comparisons, the usual one first
    choices: tuple[str, ...]  # all possible values; empty: any
    attribute: str
    constant: tuple[str, ...]  # values fixed by the design; empty: the user enters them
    description: str


@dataclass(frozen=True, slots=True)
class DesignedPattern:
    """An access pattern as the design declares it."""

    id: str
    kind: PatternKind
    title: str
    place: str  # its name in `tavola cost` and `tavola lint`
    table: str  # empty: a need whose entities are in no table
    entities: tuple[str, ...]
    index: str | None
    operation: str
    key: tuple[str, ...]  # one entry per attribute, such as `PK = TICKET#{ticket_id}`
    result: str
    parameters: tuple[PatternParameter, ...]
    runnable: bool
    reason: str  # why it cannot be run
    shards: int
    ordered: bool  # whether results can be read in descending order
    consistent: bool
    consistency: bool  # whether it can be read consistently
    descending: bool
    limit: int | None  # the default for a run
    per_second: float | None
    peak_per_second: float | None
    items: int | None
    item_bytes: int | None
    transactional: bool
    description: str


@dataclass(frozen=True, slots=True)
class PatternEntry:
    """A pattern with the parts of the design that planning needs."""

    summary: DesignedPattern
    table: TableDesign | None
    entity: EntityDesign | None = None
    key: KeyDesign | None = None
    pattern: PatternDesign | None = None
    collection: CollectionDesign | None = None
    need: Need | None = None
    write: WritePattern | None = None
    filtered: tuple[Given, ...] = ()  # conditions of a need that need a filter
    bucketed_fields: tuple[str, ...] = ()  # partition fields with a range: one query per time bucket


def list_patterns(design: Design) -> tuple[PatternEntry, ...]:
    """Return every pattern of a design."""
    entries = [pattern for table in design.tables for pattern in _table_patterns(table)]
    entries += [_need_entry(design, need) for need in design.needs]
    return tuple(entries)


def find_pattern(design: Design, id_: str) -> PatternEntry:
    """Return a pattern by id; refuse an unknown one."""
    for pattern in list_patterns(design):
        if pattern.summary.id == id_:
            return pattern
    raise RequestRefused(
        "pattern-unknown",
        "Access pattern not found",
        f"The design has no access pattern {id_}; it may have changed.",
        "Choose one from the list.",
        status=404,
    )


def table_of_need(design: Design, need: Need) -> TableDesign | None:
    """Return the table that has all entities of a need; None if no single table has."""
    for table in design.tables:
        names = {entity.name for entity in table.entities}
        if names.issuperset(need.entities):
            return table
    return None


def has_full_route(need: Need) -> bool:
    """Return whether a need's route defines a whole request; a document may name an operation without keys."""
    return need.route is not None and (need.route.operation == "scan" or bool(need.route.keys))


def single_table_design(design: Design, table: TableDesign | None) -> Design:
    """Return the part of a design that concerns one table; entities of other tables may have the same names."""
    tables = () if table is None else (table,)
    needs = tuple(need for need in design.needs if table_of_need(design, need) is table)
    return Design(tables, design.views, needs)


def _table_patterns(table: TableDesign) -> Iterator[PatternEntry]:
    for entity in table.entities:
        if entity.primary is not None and entity.key is not None:
            yield _pattern_entry(table, entity, entity.key, entity.primary)
        for pattern in entity.patterns:
            key = entity.key_on(pattern.index)
            if key is not None:
                yield _pattern_entry(table, entity, key, pattern)
        for write in entity.writes:
            yield _write_entry(table, entity, write)
    for collection in table.collections:
        yield _collection_entry(table, collection)


def _pattern_entry(
    table: TableDesign, entity: EntityDesign, key: KeyDesign, pattern: PatternDesign
) -> PatternEntry:
    is_primary = pattern is entity.primary
    access = pattern.access or AccessPattern(f"{entity.name}.{pattern.name}")
    parameters = [
        _field_parameter(entity.field(name), "partition", required=True) for name in pattern.partition
    ]
    parameters += [
        _field_parameter(entity.field(name), "partition", required=True)
        for name in pattern.sorts
        if is_primary
    ]
    parameters += [
        _field_parameter(
            entity.field(name), "sort", required=False, operators=_sort_operators(entity.field(name))
        )
        for name in pattern.sorts
        if not is_primary
    ]
    index = None if pattern.index is None else table.index(pattern.index)
    shards = shards_to_read(key)
    get_operation = "TransactGetItems" if access.transactional else "GetItem"
    summary = DesignedPattern(
        id=f"{table.name}/{entity.name}.{pattern.name}",
        kind="key" if is_primary else "query",
        title=access.title,
        place=f"{entity.name}.{pattern.name}",
        table=table.name,
        entities=(entity.name,),
        index=pattern.index,
        operation=get_operation if is_primary else "Query",
        key=describe_key(key),
        result=pattern.result or entity.name,
        parameters=tuple(parameters),
        runnable=True,
        reason="",
        shards=shards,
        ordered=not is_primary and bool(key.range),
        consistent=access.consistent and (index is None or index.local),
        consistency=(index is None or index.local) and not access.transactional,
        descending=_is_descending(access),
        limit=None if is_primary else access.items or DEFAULT_LIMIT,
        **_declared_load(access),
        transactional=access.transactional,
        description="",
    )
    return PatternEntry(summary, table, entity, key, pattern)


def _collection_entry(table: TableDesign, collection: CollectionDesign) -> PatternEntry:
    access = collection.access or AccessPattern(collection.name)
    members = [table.entity(member.entity) for member in collection.members]
    owner = next(
        (member for member in members if {f.name for f in member.fields}.issuperset(collection.parts)),
        members[0],
    )
    key = owner.key_on(collection.index)
    index = None if collection.index is None else table.index(collection.index)
    hash_ = table.settings.hash if index is None else index.hash[0]
    range_ = table.settings.range if index is None else next(iter(index.range), None)
    words = [f"{hash_} = {collection.partition.source}"]
    words += [f"{range_} begins with {collection.prefix}"] if collection.prefix and range_ else []
    summary = DesignedPattern(
        id=f"{table.name}/{collection.name}",
        kind="collection",
        title=access.title,
        place=collection.name,
        table=table.name,
        entities=tuple(dict.fromkeys(member.entity for member in collection.members)),
        index=collection.index,
        operation="Query",
        key=tuple(words),
        result=collection.name,
        parameters=tuple(
            _field_parameter(owner.field(name), "partition", required=True) for name in collection.parts
        ),
        runnable=True,
        reason="",
        shards=1,
        ordered=range_ is not None,
        consistent=access.consistent and (index is None or index.local),
        consistency=index is None or index.local,
        descending=_is_descending(access),
        limit=None,
        **_declared_load(access),
        transactional=False,
        description=collection.description,
    )
    return PatternEntry(summary, table, owner, key, collection=collection)


def _write_entry(table: TableDesign, entity: EntityDesign, write: WritePattern) -> PatternEntry:
    assert entity.key is not None, "a stored entity has a key"
    transactional = write.transactional or bool(write.together)
    verb = {"put": "PutItem", "update": "UpdateItem", "delete": "DeleteItem"}[write.kind]
    summary = DesignedPattern(
        id=f"{table.name}/{entity.name}: {write.title}",
        kind="write",
        title=write.title,
        place=f"{entity.name}: {write.title}",
        table=table.name,
        entities=(entity.name,),
        index=None,
        operation="TransactWriteItems" if transactional else verb if write.items == 1 else "BatchWriteItem",
        key=describe_key(entity.key),
        result=entity.name,
        parameters=(),
        runnable=False,
        reason="Writes can't be run here because they would change data; only their cost is estimated.",
        shards=1,
        ordered=False,
        consistent=False,
        consistency=False,
        descending=False,
        limit=None,
        **_declared_load(write),
        transactional=transactional,
        description=_describe_changes(write),
    )
    return PatternEntry(summary, table, entity, entity.key, write=write)


def _need_entry(design: Design, need: Need) -> PatternEntry:
    """Return a need as a pattern: by its route, or by the key that serves it best."""
    table = table_of_need(design, need)
    entity = None if table is None else table.entity(need.entities[0])
    key, reason, operation, index = None, "", "Query", None
    filtered: tuple[Given, ...] = ()
    bucketed: tuple[str, ...] = ()
    if table is None:
        reason = f"No table contains {join_names(need.entities)}."
    elif need.route is not None and need.route.index not in (None, *(index.name for index in table.indexes)):
        index = need.route.index
        reason = f"The declared route uses the index {index}, which {table.name} does not have."
    elif need.route is not None and has_full_route(need):
        operation, index = _OPERATIONS[need.route.operation], need.route.index
    else:
        paths = LintContext(single_table_design(design, table)).access_paths(need)
        if need.route is not None:  # it names an index but no keys
            paths = tuple(path for path in paths if path.key.index == need.route.index)
        best = next(iter(paths), None)
        if best is None or best.operation == "scan":
            reason = "No key serves this pattern: it would need a Scan of the whole table."
        else:
            key, index = best.key, best.key.index
            operation = "GetItem" if best.operation == "get" else "Query"
            filtered, bucketed = best.filtered, best.partition_ranges
            if best.operation == "get" and any(condition.operator == "in" for condition in need.where):
                operation = "BatchGetItem"
    access = need.access or AccessPattern(need.name)
    index_design = None if table is None or index is None or reason else table.index(index)
    single = operation in ("GetItem", "BatchGetItem")
    summary = DesignedPattern(
        id=f"{'' if table is None else table.name}/{need.name}",
        kind="need",
        title=access.title,
        place=need.name,
        table="" if table is None else table.name,
        entities=need.entities,
        index=index,
        operation=operation if not reason else "",
        key=() if key is None else describe_key(key),
        result=join_names(need.entities),
        parameters=() if table is None or entity is None else tuple(_need_parameters(table, entity, need)),
        runnable=not reason,
        reason=reason,
        shards=shards_to_read(key),
        ordered=operation == "Query",
        consistent=access.consistent and (index_design is None or index_design.local),
        consistency=index_design is None or index_design.local,
        descending=_is_descending(access),
        limit=None if single else access.items or DEFAULT_LIMIT,
        **_declared_load(access),
        transactional=access.transactional,
        description="",
    )
    return PatternEntry(summary, table, entity, key, need=need, filtered=filtered, bucketed_fields=bucketed)


def _need_parameters(table: TableDesign, entity: EntityDesign, need: Need) -> Iterator[PatternParameter]:
    """Yield a parameter for each condition of a need or of its route."""
    for name, field, condition, role in need_conditions(table, entity, need):
        yield replace(_condition_parameter(field, condition, role), name=name)


def need_conditions(
    table: TableDesign, entity: EntityDesign, need: Need
) -> Iterator[tuple[str, FieldDesign, Given, ParameterRole]]:
    """Yield each condition of a need or its route with its parameter name: the field, plus the operator if ambiguous."""
    conditions: list[tuple[FieldDesign, Given, ParameterRole]] = []
    if need.route is None or not has_full_route(need):
        known = {field.name: field for field in entity.fields}
        conditions += [
            (known[condition.field], condition, "partition")
            for condition in need.where
            if condition.field in known
        ]
    else:
        many = need.route.operation == "batch_get"
        for condition in need.route.keys:
            asked_condition = Given(condition.field, "in") if many and condition.value is None else condition
            conditions.append(
                (field_of_attribute(table, entity, condition.field), asked_condition, "partition")
            )
        for condition in need.route.filters:
            conditions.append((field_of_attribute(table, entity, condition.field), condition, "filter"))
    names = [field.name for field, _, _ in conditions]
    taken: dict[str, int] = {}
    for field, condition, role in conditions:
        name = f"{field.name} {condition.operator}" if names.count(field.name) > 1 else field.name
        taken[name] = taken.get(name, 0) + 1
        yield name if taken[name] == 1 else f"{name} {taken[name]}", field, condition, role


def field_of_attribute(table: TableDesign, entity: EntityDesign, attribute: str) -> FieldDesign:
    """Return the field stored in an attribute; for a templated key, a stand-in with the key's type."""
    for field in entity.fields:
        if field.attribute == attribute:
            return field
    tag = table.key_types.get(attribute, "S")
    return FieldDesign(
        attribute, attribute, {"S": "text", "N": "decimal", "B": "bytes"}[tag], (tag,), key_kind="text"
    )


def _condition_parameter(field: FieldDesign, condition: Given, role: ParameterRole) -> PatternParameter:
    values: tuple[AttributeValue, ...] = ()
    if condition.value is not None:
        values = (
            tuple(condition.value["L"]) if condition.operator in ("in", "between") else (condition.value,)
        )
    texts = tuple(attribute_text(field, value) or "" for value in values)
    constant = texts or (("",) if condition.operator == "exists" else ())
    base = _field_parameter(field, role, required=not constant, operators=(condition.operator,))
    return replace(base, constant=constant)


def _field_parameter(
    field: FieldDesign, role: ParameterRole, *, required: bool, operators: tuple[str, ...] = ("=",)
) -> PatternParameter:
    choices = field.choices if field.choices and input_kind(field) == "choice" else ()
    return PatternParameter(
        field.name,
        input_kind(field),
        role,
        required,
        operators,
        tuple(map(format_value, choices)),
        field.attribute,
        (),
        field.description,
    )


def _sort_operators(field: FieldDesign) -> tuple[str, ...]:
    return (*SORT_OPERATORS, "begins_with") if input_kind(field) == "text" else SORT_OPERATORS


def describe_key(key: KeyDesign) -> tuple[str, ...]:
    """Return a key as text, one entry per attribute, with `{shard}` for a shard number."""
    return tuple(f"{source.attribute} = {describe_source(source)}" for source in key.sources)


def describe_source(source: SourceDesign) -> str:
    """Return the template of a key attribute as text."""
    if source.template is None:
        return f"{{{source.field}}}"
    return source.template.source.replace(f"{{{SHARD}:04}}", "{shard}")


def _describe_changes(write: WritePattern) -> str:
    names = join_names((*write.changes, *write.adds))
    return f"Changes {names}." if names else ""


def _declared_load(access: AccessPattern | WritePattern) -> dict[str, Any]:
    return {
        "per_second": access.per_second,
        "peak_per_second": access.peak_per_second,
        "items": access.items,
        "item_bytes": access.item_bytes,
    }


def _is_descending(access: AccessPattern) -> bool:
    """Return whether a pattern reads in descending order, as declared or by its title."""
    return access.descending or any(words in access.title.lower() for words in _DESCENDING_TITLES)
