"""Read awslabs' `schema.json`: tables, entities with key templates, and access patterns.

Access patterns that read become needs, each with the route that the file gives it; those that write become writes of
their entities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from tavola.iac.formats.entity_builder import EntityBuilder
from tavola.iac.formats.import_result import ImportReport, ImportResult
from tavola.iac.formats.source_values import (
    TrackedMapping,
    ValueReader,
    as_plain_data,
    as_text,
    python_label,
    report_unread,
    require_name,
    show_value,
)
from tavola.iac.formats.table_definitions import DELIMITER, give_tables_unique_names, key_schema, read_table
from tavola.model.document import (
    AccessPattern,
    Design,
    EntityDesign,
    Given,
    KeyDesign,
    Need,
    Route,
    SourceDesign,
    TableDesign,
    WritePattern,
)

READS = {
    "getitem": "get",
    "query": "query",
    "scan": "scan",
    "batchgetitem": "batch_get",
    "transactgetitems": "batch_get",
}
WRITES = {
    "putitem": "put",
    "updateitem": "update",
    "deleteitem": "delete",
    "batchwriteitem": "put",
    "transactwriteitems": "put",
}
RANGES = ("begins_with", "between", ">=", "<=", ">", "<", "=")
_FILTERS = {
    **{name: name for name in RANGES},
    "in": "in",
    "contains": "contains",
    "attribute_exists": "exists",
}


@dataclass(frozen=True, slots=True)
class SchemaPattern:
    """An access pattern of a file, with its entity."""

    title: str
    raw: Mapping[str, Any]
    table: TableDesign
    entity: EntityDesign

    @property
    def operation(self) -> str:
        """The operation's name in lower case without underscores."""
        return (as_text(self.raw.get("operation")) or "").replace("_", "").lower()

    @property
    def description(self) -> str:
        """The pattern's description, or its title."""
        return as_text(self.raw.get("description")) or self.title


def list_parameters(raw: Mapping[str, Any], read: ValueReader, place: str) -> Iterator[tuple[str, bool]]:
    """Yield the parameters of a pattern, and whether each is a whole entity."""
    for entry in read.objects(raw.get("parameters"), place):
        name = as_text(entry.get("name"))
        if name:
            yield name, as_text(entry.get("type")) == "entity" or "entity_type" in entry


def read_need(pattern: SchemaPattern, report: ImportReport) -> Need | None:
    """Return the need of a pattern that reads; None for one that writes or is unknown."""
    place = f"{pattern.entity.name}.{pattern.title}"
    operation = READS.get(pattern.operation)
    if operation is None:
        if pattern.operation not in WRITES:
            report.add(place, f"unknown operation {show_value(pattern.raw.get('operation'))}; not imported")
        return None
    index = as_text(pattern.raw.get("index_name"))
    key = pattern.entity.key_on(index)
    if key is None:
        report.add(place, f"{pattern.entity.name} has no key in index {index}; not imported")
        return None
    read = ValueReader(report)
    list(list_parameters(pattern.raw, read, place))  # marks them as read: the key determines what it needs
    filters, unsupported, used = _filters(pattern, read, place)
    known = {field.name for field in pattern.entity.fields}
    for filter_ in filters:
        if filter_.field not in known:
            report.add(place, f"the filter uses {filter_.field}, which is not a field; not imported")
    filters = [filter_ for filter_ in filters if filter_.field in known]
    if unsupported:
        report.add(
            place,
            f"filter conditions with {', '.join(unsupported)} have no equivalent in a design; not imported",
        )
    conditions: list[Given] = []
    keys: list[Given] = []
    order: tuple[str, ...] = ()
    if operation != "scan":
        conditions, keys, order = _conditions(pattern, key, operation, used, read, place)
    conditions += [filter_ for filter_ in filters if filter_.field not in {one.field for one in conditions}]
    attributes = {field.name: field.attribute for field in pattern.entity.fields}
    route = Route(
        cast(Any, operation),
        index,
        tuple(keys),
        tuple(Given(attributes.get(filter_.field, filter_.field), filter_.operator) for filter_ in filters),
    )
    access = AccessPattern(
        pattern.description,
        consistent=read.flag(pattern.raw.get("consistent_read"), f"{place}.consistent_read"),
        filters=tuple(filter_.field for filter_ in filters),
        descending=pattern.raw.get("scan_index_forward", True) is False,
    )
    single = as_text(pattern.raw.get("return_type")) == "single_entity"
    return Need(
        pattern.title, _entities(pattern, key), tuple(conditions), order, access, single=single, route=route
    )


def _entities(pattern: SchemaPattern, key: KeyDesign) -> tuple[str, ...]:
    """Return the entities of the result; for mixed_data, all that share the partition key."""
    if as_text(pattern.raw.get("return_type")) != "mixed_data":
        return (pattern.entity.name,)
    partition = [source.template and source.template.source for source in key.hash]
    names = [pattern.entity.name]
    for other in pattern.table.entities:
        other_key = other.key_on(key.index)
        if (
            other_key is not None
            and [source.template and source.template.source for source in other_key.hash] == partition
        ):
            names.append(other.name)
    return tuple(dict.fromkeys(names))


def _conditions(
    pattern: SchemaPattern, key: KeyDesign, operation: str, used: set[str], read: ValueReader, place: str
) -> tuple[list[Given], list[Given], tuple[str, ...]]:
    """Return the conditions by field, the conditions by key attribute, and the fields that sort the result."""
    partition = list(dict.fromkeys(name for source in key.hash for name in source.fields))
    sorts = [name for source in key.range for name in source.fields if name not in partition]
    sorts = list(dict.fromkeys(sorts))
    conditions = [Given(name) for name in partition]
    keys = [Given(source.attribute) for source in key.hash]
    if operation != "query":
        keys += [Given(source.attribute) for source in key.range]
        return [*conditions, *(Given(name) for name in sorts)], keys, ()
    range_operator = as_text(pattern.raw.get("range_condition"))
    if range_operator is not None and range_operator not in RANGES:
        read.report.add(place, f"unknown range_condition {show_value(range_operator)}; not imported")
        range_operator = None
    parameters = [name for name, whole in list_parameters(pattern.raw, read, place) if not whole]
    extra = [name for name in parameters if name not in partition and name not in used]
    if range_operator is None:
        equal = [name for name in sorts if name in extra]
        fixed = len(equal) if equal == sorts[: len(equal)] else 0
        conditions += [Given(name) for name in equal]
    else:
        fixed = max(0, len(extra) - (2 if range_operator == "between" else 1))
        fixed = min(fixed, max(0, len(sorts) - 1))
        conditions += [Given(name) for name in sorts[:fixed]]
        if sorts:
            conditions.append(Given(sorts[fixed], cast(Any, range_operator)))
    keys += _range_keys(key, sorts[:fixed], range_operator)
    if range_operator is None and as_text(pattern.raw.get("return_type")) == "mixed_data":
        return conditions, keys[: len(key.hash)], ()
    return conditions, keys, tuple(sorts[fixed:])


def _range_keys(key: KeyDesign, fixed: list[str], operator: str | None) -> Iterator[Given]:
    """Yield the conditions on sort attributes: equality while all fields are given, then the comparison."""
    for source in key.range:
        if source.fields and all(name in fixed for name in source.fields):
            yield Given(source.attribute)
            continue
        if operator is not None:
            yield Given(source.attribute, cast(Any, operator))
        elif source.template is not None and (fixed or isinstance(source.template.segments[0], str)):
            yield Given(source.attribute, "begins_with" if source.fields else "=")
        return


def _filters(
    pattern: SchemaPattern, read: ValueReader, place: str
) -> tuple[list[Given], list[str], set[str]]:
    """Return the conditions of a filter, its unsupported operators, and the parameters they use."""
    raw = pattern.raw.get("filter_expression")
    if raw is None:
        return [], [], set()
    if isinstance(raw, str):
        read.report.add(place, f"filter {raw!r} is text instead of an object; not imported")
        return [], [], set()
    filters: list[Given] = []
    unsupported: list[str] = []
    used: set[str] = set()
    expression = read.object(raw, place)
    logical_operator = as_text(expression.get("logical_operator")) or "AND"
    conditions = read.objects(expression.get("conditions"), place)
    if logical_operator.upper() != "AND" and len(conditions) > 1:
        as_plain_data(expression)  # marks every member as read
        read.report.add(
            place, f"a filter joined by {logical_operator} has no equivalent in a design; not imported"
        )
        return [], [], {name for condition in conditions for name in _parameters(condition, read, place)}
    for condition in conditions:
        field = as_text(condition.get("field")) or ""
        operator_name = as_text(condition.get("operator")) or as_text(condition.get("function")) or "="
        used |= set(_parameters(condition, read, place))
        operator = _FILTERS.get(operator_name)
        if operator is None or condition.get("function") == "size":
            unsupported.append(operator_name)
        elif field:
            filters.append(Given(field, cast(Any, operator)))
    return filters, unsupported, used


def _parameters(condition: Mapping[str, Any], read: ValueReader, place: str) -> Iterator[str]:
    for name in ("param", "param2", "params"):
        yield from read.texts(condition.get(name), place)


def read_write(pattern: SchemaPattern, report: ImportReport) -> WritePattern | None:
    """Return the write of a pattern; None for one that reads."""
    kind = WRITES.get(pattern.operation)
    if kind is None:
        return None
    key = pattern.entity.key
    assert key is not None, "an entity of a table has a key"
    names = [
        name for name, whole in list_parameters(pattern.raw, ValueReader(report), pattern.title) if not whole
    ]
    fields = {field.name for field in pattern.entity.fields}
    changed = [name for name in names if name in fields and name not in key.fields]
    return WritePattern(
        pattern.description,
        cast(Any, kind),
        tuple(changed) if kind == "update" else (),
        transactional=pattern.operation == "transactwriteitems",
        conditional=bool(pattern.raw.get("condition_expression")),
    )


FORMAT = "mcp-schema"
_TYPES = {
    "string": ("S", "text"),
    "integer": ("N", "int"),
    "decimal": ("N", "decimal"),
    "float": ("N", "float"),
    "number": ("N", "decimal"),
    "boolean": ("BOOL", "bool"),
    "array": ("L", "list[any]"),
    "object": ("M", "map[text, any]"),
    "uuid": ("S", "uuid"),
}
_NOT_DESIGN = frozenset(  # follows from the keys or the operation
    (*("pattern_id", "return_type", "consistent_read", "action"), *("type", "entity_type", "required"))
)
_ITEMS = {"string": "text", "integer": "int", "decimal": "decimal", "boolean": "bool", "uuid": "uuid"}


def is_mcp_schema(raw: Any) -> bool:
    """Return whether data is such a schema: tables that have a table_config."""
    tables = raw.get("tables") if isinstance(raw, Mapping) else None
    return isinstance(tables, list) and any(
        isinstance(table, Mapping) and "table_config" in table for table in tables
    )


def read_mcp_schema(raw: Mapping[str, Any]) -> ImportResult:
    """Return the design of a schema, with its access patterns as needs."""
    report = ImportReport()
    read = ValueReader(report)
    raw = TrackedMapping(raw)
    tables: list[TableDesign] = []
    needs: list[Need] = []
    used_names: set[str] = set()
    for position, entry in enumerate(read.objects(raw.get("tables"), "tables")):
        table, table_needs = _SchemaTableReader(entry, f"tables[{position}]", report, used_names).table()
        used_names |= {entity.name for entity in table.entities}
        tables.append(table)
        needs += table_needs
    unique_tables = give_tables_unique_names(tables, report)
    known = {entity.name for table in unique_tables for entity in table.entities}
    needs = [need for need in needs if set(need.entities) <= known]
    cross_table = read.objects(raw.get("cross_table_access_patterns"), "cross_table_access_patterns")
    unique_tables, cross_table_needs = _read_cross_table_patterns(cross_table, unique_tables, report)
    report_unread(raw, "", report, ignore=_NOT_DESIGN)
    if not needs and not cross_table_needs:
        report.add("", "The schema has no access pattern that reads, so the design has no needs.")
    return ImportResult(Design(unique_tables, needs=(*needs, *cross_table_needs)), report.notes, FORMAT)


class _SchemaTableReader:
    """One table of a schema."""

    def __init__(self, raw: Mapping[str, Any], place: str, report: ImportReport, taken: set[str]) -> None:
        self.raw = raw
        self.report = report
        self.read = ValueReader(report)
        config = self.read.object(raw.get("table_config"), f"{place}.table_config")
        self.name = require_name(config, "table_name", f"{place}.table_config")
        self.hash = require_name(
            config, "partition_key", f"{place}.table_config", what="the name of an attribute"
        )
        self.range = as_text(config.get("sort_key"))
        self.place = self.name
        self.taken = taken
        self.tags: set[str] = set()
        self.indexes = {
            require_name(entry, "name", f"{self.place}.gsi_list[{position}]"): entry
            for position, entry in enumerate(self.read.objects(raw.get("gsi_list"), f"{self.place}.gsi_list"))
        }

    def table(self) -> tuple[TableDesign, list[Need]]:
        entities = self.raw.get("entities")
        declared: list[tuple[str, Mapping[str, Any]]] = []
        for name, raw_entity in entities.items() if isinstance(entities, Mapping) else ():
            if isinstance(raw_entity, Mapping):
                declared.append((name, raw_entity))
            else:
                self.report.add(
                    f"{self.place}.{name}", f"ignored {show_value(raw_entity)}: expected an entity"
                )
        schemas = {name: self._schema(name) for name in self.indexes}
        numeric = self._numeric([raw_entity for _, raw_entity in declared], schemas)
        names = [self.hash, *([self.range] if self.range else [])]
        names += [attribute for hash_, range_ in schemas.values() for attribute in (*hash_, *range_)]
        body = {
            "TableName": self.name,
            "KeySchema": key_schema((self.hash,), (self.range,) if self.range else ()),
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": "N" if name in numeric else "S"}
                for name in dict.fromkeys(names)
            ],
            "GlobalSecondaryIndexes": [
                {
                    "IndexName": name,
                    "KeySchema": key_schema(*schemas[name]),
                    "Projection": {
                        "ProjectionType": as_text(raw.get("projection")) or "ALL",
                        "NonKeyAttributes": raw.get("included_attributes"),
                    },
                }
                for name, raw in self.indexes.items()
            ],
            "BillingMode": "PAY_PER_REQUEST",
        }
        table = read_table(body, self.place, self.report)
        read_entities = [self._entity(table, name, raw_entity) for name, raw_entity in declared]
        table = replace(table, entities=tuple(read_entities))
        needs: list[Need] = []
        entities_done: list[EntityDesign] = []
        for entity, (_, raw_entity) in zip(read_entities, declared, strict=True):
            writes: list[WritePattern] = []
            for pattern in self._patterns(table, entity, raw_entity):
                need, write = read_need(pattern, self.report), read_write(pattern, self.report)
                needs += [need] if need is not None else []
                writes += [write] if write is not None else []
            entities_done.append(replace(entity, writes=tuple(writes)))
        return replace(table, entities=tuple(entities_done)), needs

    def _schema(self, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        raw = self.indexes[name]
        hash_ = self.read.texts(raw.get("partition_key"), f"{name}.partition_key")
        return hash_, self.read.texts(raw.get("sort_key"), f"{name}.sort_key")

    def _numeric(
        self,
        entities: list[Mapping[str, Any]],
        schemas: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]],
    ) -> set[str]:
        """Return the numeric key attributes: in every entity the template is one number field."""
        votes: dict[str, set[bool]] = {}
        for raw in entities:
            numbers = {
                f"{{{entry.get('name')}}}"
                for entry in self.read.objects(raw.get("fields"), self.place)
                if _TYPES.get(as_text(entry.get("type")) or "", ("S", ""))[0] == "N"
            }
            for attribute, template in self._templates(raw, schemas):
                votes.setdefault(attribute, set()).add(template in numbers)
        return {attribute for attribute, is_number in votes.items() if is_number == {True}}

    def _templates(
        self, raw: Mapping[str, Any], schemas: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
    ) -> Iterator[tuple[str, str]]:
        for attribute, template in (
            (self.hash, raw.get("pk_template")),
            (self.range, raw.get("sk_template")),
        ):
            if attribute and (template_text := as_text(template)) is not None:
                yield attribute, template_text
        for mapping in self.read.objects(raw.get("gsi_mappings"), self.place):
            hash_, range_ = schemas.get(as_text(mapping.get("name")) or "", ((), ()))
            yield from zip(hash_, self.read.texts(mapping.get("pk_template"), self.place), strict=False)
            yield from zip(range_, self.read.texts(mapping.get("sk_template"), self.place), strict=False)

    def _entity(self, table: TableDesign, name: str, raw: Mapping[str, Any]) -> EntityDesign:
        label = python_label(name, "Entity")
        while label in self.taken:
            label += "_"
        self.taken.add(label)
        tag = as_text(raw.get("entity_type")) or name
        if tag in self.tags:
            self.report.add(name, f"an earlier entity has entity_type {tag!r} too; using {name}")
            tag = name
        self.tags.add(tag)
        builder = EntityBuilder(label, tag, DELIMITER, name, self.report)
        for entry in self.read.objects(raw.get("fields"), f"{name}.fields"):
            self._field(builder, entry, name)
        templates = dict(self._templates(raw, {}))
        names = table.settings.key_names
        sources = [
            builder.source(
                attribute, table.key_types[attribute], templates.get(attribute), f"{name}.{attribute}"
            )
            for attribute in names
        ]
        keys: dict[str | None, KeyDesign] = {}
        for mapping in self.read.objects(raw.get("gsi_mappings"), f"{name}.gsi_mappings"):
            key = self._key(table, builder, mapping, name)
            if key is not None and key.index in keys:
                self.report.add(
                    f"{name}.gsi_mappings", f"two mappings for index {key.index}; using the first"
                )
            elif key is not None:
                keys[key.index] = key
        return builder.entity(KeyDesign(None, (sources[0],), tuple(sources[1:])), keys.values())

    def _field(self, builder: EntityBuilder, raw: Mapping[str, Any], place: str) -> None:
        attribute = require_name(raw, "name", f"{place}.fields")
        kind = as_text(raw.get("type")) or "string"
        if kind not in _TYPES:
            self.report.add(f"{place}.{attribute}", f"unknown type {show_value(kind)}; using string")
        tag, word = _TYPES.get(kind, ("S", "text"))
        if kind == "array" and as_text(raw.get("item_type")) in _ITEMS:
            word = f"list[{_ITEMS[str(raw['item_type'])]}]"
        required = raw.get("required", True) is not False
        if builder.find(attribute) is not None:
            self.report.add(f"{place}.{attribute}", "declared twice; using the first")
            return
        builder.field(attribute, tag, type=word, required=required, nullable=not required)

    def _key(
        self, table: TableDesign, builder: EntityBuilder, mapping: Mapping[str, Any], place: str
    ) -> KeyDesign | None:
        name = as_text(mapping.get("name")) or ""
        index = next((index for index in table.indexes if index.name == name), None)
        if index is None:
            self.report.add(f"{place}.gsi_mappings", f"gsi_list has no index {name!r}; not imported")
            return None
        ends: list[tuple[SourceDesign, ...]] = []
        for attributes, member in ((index.hash, "pk_template"), (index.range, "sk_template")):
            texts = self.read.texts(mapping.get(member), f"{place}.{name}.{member}")
            if len(texts) != len(attributes):
                self.report.add(
                    f"{place}.{name}",
                    f"{member} has {len(texts)} parts, but the index key has {len(attributes)} attributes",
                )
            templates = dict(zip(attributes, texts, strict=False))
            ends.append(
                tuple(
                    builder.source(
                        attribute,
                        table.key_types[attribute],
                        templates.get(attribute),
                        f"{place}.{name}.{attribute}",
                    )
                    for attribute in attributes
                )
            )
        fields = [builder.find(field) for end in ends for source in end for field in source.fields]
        return KeyDesign(
            name, ends[0], ends[1], any(field is not None and field.nullable for field in fields)
        )

    def _patterns(
        self, table: TableDesign, entity: EntityDesign, raw: Mapping[str, Any]
    ) -> Iterator[SchemaPattern]:
        raw_patterns = self.read.objects(raw.get("access_patterns"), f"{entity.name}.access_patterns")
        for position, pattern in enumerate(raw_patterns):
            title = as_text(pattern.get("name")) or f"pattern {pattern.get('pattern_id', position + 1)}"
            yield SchemaPattern(title, pattern, table, entity)


def _read_cross_table_patterns(
    patterns: list[Mapping[str, Any]], tables: tuple[TableDesign, ...], report: ImportReport
) -> tuple[tuple[TableDesign, ...], list[Need]]:
    """Return the tables with the writes of cross-table transactions, and the needs of those that read."""
    read = ValueReader(report)
    homes = {(table.name, entity.name): entity for table in tables for entity in table.entities}
    writes: dict[str, list[WritePattern]] = {}
    needs: list[Need] = []
    for position, pattern in enumerate(patterns):
        title = as_text(pattern.get("name")) or f"cross_table_access_patterns[{position}]"
        description = as_text(pattern.get("description")) or title
        involved = [
            (
                homes.get(
                    (as_text(entry.get("table")) or "", python_label(as_text(entry.get("entity")) or ""))
                ),
                entry,
            )
            for entry in read.objects(pattern.get("entities_involved"), title)
        ]
        for entity, step in involved:
            if entity is None:
                report.add(
                    title,
                    f"table {show_value(step.get('table'))} has no entity {show_value(step.get('entity'))}",
                )
        steps = [(entity, step) for entity, step in involved if entity is not None]
        if as_text(pattern.get("operation")) in ("TransactGet", "TransactGetItems"):
            entities = tuple(dict.fromkeys(entity.name for entity, _ in steps))
            if entities:
                parameter_names = {name for name, _ in list_parameters(pattern, read, title)}
                fields = {field.name for entity, _ in steps for field in entity.fields}
                where = tuple(sorted(parameter_names & fields))
                access = AccessPattern(description, items=len(steps), transactional=True, consistent=True)
                needs.append(Need(title, entities, where, access=access, route=Route("batch_get")))
            continue
        for entity, step in steps:
            action = (as_text(step.get("action")) or "").lower()
            if action in ("put", "update", "delete"):
                write = WritePattern(
                    description,
                    cast(Any, action),
                    transactional=True,
                    together=title,
                    conditional=bool(step.get("condition")),
                )
                writes.setdefault(entity.name, []).append(write)
            else:
                report.add(
                    title, f"action {step.get('action')} on {entity.name} writes nothing; not imported"
                )
    done = tuple(
        replace(
            table,
            entities=tuple(
                replace(entity, writes=(*entity.writes, *writes.get(entity.name, ())))
                for entity in table.entities
            ),
        )
        for table in tables
    )
    return done, needs
