"""awslabs' `schema.json`: tables, entities with key templates, and access patterns, as its code generator reads them.

The nearest of the formats to ours: it says entities, keys and questions. Its access patterns become needs, each
with the route that the file gives it; what it writes becomes writes of its entities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from tavola.iac.formats.entity_builder import EntityBuilder
from tavola.iac.formats.import_result import ImportReport, ImportResult
from tavola.iac.formats.mcp_patterns import SchemaPattern, list_parameters, read_need, read_write
from tavola.iac.formats.source_values import (
    TrackedMapping,
    ValueReader,
    as_text,
    python_label,
    report_unread,
    require_name,
    show_value,
)
from tavola.iac.formats.table_definitions import DELIMITER, give_tables_unique_names, read_table
from tavola.model.document import (
    AccessPattern,
    Design,
    EntityDesign,
    KeyDesign,
    Need,
    Route,
    SourceDesign,
    TableDesign,
    WritePattern,
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
_NOT_DESIGN = frozenset(  # what follows from a key, or from the operation
    (
        *("pattern_id", "return_type", "consistent_read", "action"),
        *("type", "entity_type", "required"),
    )
)
_ITEMS = {"string": "text", "integer": "int", "decimal": "decimal", "boolean": "bool", "uuid": "uuid"}


def is_mcp_schema(raw: Any) -> bool:
    """Tell whether data is such a schema: tables that have a table_config."""
    tables = raw.get("tables") if isinstance(raw, Mapping) else None
    return isinstance(tables, list) and any(
        isinstance(each, Mapping) and "table_config" in each for each in tables
    )


def read_mcp_schema(raw: Mapping[str, Any]) -> ImportResult:
    """Return the design of a schema, with its access patterns as needs."""
    report = ImportReport()
    read = ValueReader(report)
    raw = TrackedMapping(raw)
    tables: list[TableDesign] = []
    needs: list[Need] = []
    used_names: set[str] = set()
    for at, each in enumerate(read.objects(raw.get("tables"), "tables")):
        table, table_needs = _TableReader(each, f"tables[{at}]", report, used_names).table()
        used_names |= {entity.name for entity in table.entities}
        tables.append(table)
        needs += table_needs
    unique_tables = give_tables_unique_names(tables, report)
    known = {entity.name for table in unique_tables for entity in table.entities}
    needs = [need for need in needs if set(need.entities) <= known]
    cross_table = read.objects(raw.get("cross_table_access_patterns"), "cross_table_access_patterns")
    unique_tables, more = _read_cross_table_patterns(cross_table, unique_tables, report)
    report_unread(raw, "", report, ignore=_NOT_DESIGN)
    if not needs and not more:
        report.add("", "it says no access pattern that reads, so the design has no need")
    return ImportResult(Design(unique_tables, needs=(*needs, *more)), report.notes, FORMAT)


class _TableReader:
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
            require_name(each, "name", f"{self.place}.gsi_list[{at}]"): each
            for at, each in enumerate(self.read.objects(raw.get("gsi_list"), f"{self.place}.gsi_list"))
        }

    def table(self) -> tuple[TableDesign, list[Need]]:
        entities = self.raw.get("entities")
        declared: list[tuple[str, Mapping[str, Any]]] = []
        for name, each in entities.items() if isinstance(entities, Mapping) else ():
            if isinstance(each, Mapping):
                declared.append((name, each))
            else:
                self.report.add(f"{self.place}.{name}", f"{show_value(each)} is no entity, so it is left out")
        schemas = {name: self._schema(name) for name in self.indexes}
        numeric = self._numeric([each for _, each in declared], schemas)
        names = [self.hash, *([self.range] if self.range else [])]
        names += [attribute for hash_, range_ in schemas.values() for attribute in (*hash_, *range_)]
        body = {
            "TableName": self.name,
            "KeySchema": _elements((self.hash,), (self.range,) if self.range else ()),
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": "N" if name in numeric else "S"}
                for name in dict.fromkeys(names)
            ],
            "GlobalSecondaryIndexes": [
                {
                    "IndexName": name,
                    "KeySchema": _elements(*schemas[name]),
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
        read_entities = [self._entity(table, name, each) for name, each in declared]
        table = replace(table, entities=tuple(read_entities))
        needs: list[Need] = []
        entities_done: list[EntityDesign] = []
        for entity, (_, each) in zip(read_entities, declared, strict=True):
            writes: list[WritePattern] = []
            for pattern in self._patterns(table, entity, each):
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
        """Return the key attributes that are numbers: those that are a number field alone, in every entity."""
        votes: dict[str, set[bool]] = {}
        for raw in entities:
            numbers = {
                f"{{{each.get('name')}}}"
                for each in self.read.objects(raw.get("fields"), self.place)
                if _TYPES.get(as_text(each.get("type")) or "", ("S", ""))[0] == "N"
            }
            for attribute, template in self._templates(raw, schemas):
                votes.setdefault(attribute, set()).add(template in numbers)
        return {attribute for attribute, answers in votes.items() if answers == {True}}

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
            self.report.add(name, f"an entity before it has the entity_type {tag!r} too; {name} is taken")
            tag = name
        self.tags.add(tag)
        builder = EntityBuilder(label, tag, DELIMITER, name, self.report)
        for each in self.read.objects(raw.get("fields"), f"{name}.fields"):
            self._field(builder, each, name)
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
                    f"{name}.gsi_mappings", f"it has a key in {key.index} already; the second is left out"
                )
            elif key is not None:
                keys[key.index] = key
        return builder.entity(KeyDesign(None, (sources[0],), tuple(sources[1:])), keys.values())

    def _field(self, builder: EntityBuilder, raw: Mapping[str, Any], place: str) -> None:
        attribute = require_name(raw, "name", f"{place}.fields")
        kind = as_text(raw.get("type")) or "string"
        if kind not in _TYPES:
            self.report.add(
                f"{place}.{attribute}", f"{show_value(kind)} is no type that is known; string is taken"
            )
        tag, word = _TYPES.get(kind, ("S", "text"))
        if kind == "array" and as_text(raw.get("item_type")) in _ITEMS:
            word = f"list[{_ITEMS[str(raw['item_type'])]}]"
        required = raw.get("required", True) is not False
        if builder.find(attribute) is not None:
            self.report.add(f"{place}.{attribute}", "it is declared twice; the first is taken")
            return
        builder.field(attribute, tag, type=word, required=required, nullable=not required)

    def _key(
        self, table: TableDesign, builder: EntityBuilder, mapping: Mapping[str, Any], place: str
    ) -> KeyDesign | None:
        name = as_text(mapping.get("name")) or ""
        index = next((each for each in table.indexes if each.name == name), None)
        if index is None:
            self.report.add(
                f"{place}.gsi_mappings", f"there is no index {name!r} in gsi_list; it is left out"
            )
            return None
        ends: list[tuple[SourceDesign, ...]] = []
        for attributes, member in ((index.hash, "pk_template"), (index.range, "sk_template")):
            texts = self.read.texts(mapping.get(member), f"{place}.{name}.{member}")
            if len(texts) != len(attributes):
                self.report.add(
                    f"{place}.{name}", f"{member} has {len(texts)} parts for {len(attributes)} attributes"
                )
            templates = dict(zip(attributes, texts, strict=False))
            ends.append(
                tuple(
                    builder.source(each, table.key_types[each], templates.get(each), f"{place}.{name}.{each}")
                    for each in attributes
                )
            )
        fields = [builder.find(each) for end in ends for source in end for each in source.fields]
        return KeyDesign(name, ends[0], ends[1], any(each is not None and each.nullable for each in fields))

    def _patterns(
        self, table: TableDesign, entity: EntityDesign, raw: Mapping[str, Any]
    ) -> Iterator[SchemaPattern]:
        several = self.read.objects(raw.get("access_patterns"), f"{entity.name}.access_patterns")
        for at, pattern in enumerate(several):
            title = as_text(pattern.get("name")) or f"pattern {pattern.get('pattern_id', at + 1)}"
            yield SchemaPattern(title, pattern, table, entity)


def _elements(hash_: tuple[str, ...], range_: tuple[str, ...]) -> list[dict[str, str]]:
    return [
        *({"AttributeName": name, "KeyType": "HASH"} for name in hash_),
        *({"AttributeName": name, "KeyType": "RANGE"} for name in range_),
    ]


def _read_cross_table_patterns(
    patterns: list[Mapping[str, Any]], tables: tuple[TableDesign, ...], report: ImportReport
) -> tuple[tuple[TableDesign, ...], list[Need]]:
    """Return the tables with the writes of transactions over several, and the needs of those that read."""
    read = ValueReader(report)
    homes = {(table.name, entity.name): entity for table in tables for entity in table.entities}
    writes: dict[str, list[WritePattern]] = {}
    needs: list[Need] = []
    for at, pattern in enumerate(patterns):
        title = as_text(pattern.get("name")) or f"cross_table_access_patterns[{at}]"
        told = as_text(pattern.get("description")) or title
        involved = [
            (
                homes.get(
                    (as_text(each.get("table")) or "", python_label(as_text(each.get("entity")) or ""))
                ),
                each,
            )
            for each in read.objects(pattern.get("entities_involved"), title)
        ]
        for entity, each in involved:
            if entity is None:
                report.add(
                    title,
                    f"there is no entity {show_value(each.get('entity'))} in {show_value(each.get('table'))}",
                )
        found = [(entity, each) for entity, each in involved if entity is not None]
        if as_text(pattern.get("operation")) in ("TransactGet", "TransactGetItems"):
            entities = tuple(dict.fromkeys(entity.name for entity, _ in found))
            if entities:
                given = {name for name, _ in list_parameters(pattern, read, title)}
                fields = {each.name for entity, _ in found for each in entity.fields}
                where = tuple(sorted(given & fields))
                access = AccessPattern(told, items=len(found), transactional=True, consistent=True)
                needs.append(Need(title, entities, where, access=access, route=Route("batch_get")))
            continue
        for entity, each in found:
            action = (as_text(each.get("action")) or "").lower()
            if action in ("put", "update", "delete"):
                write = WritePattern(
                    told,
                    cast(Any, action),
                    transactional=True,
                    together=title,
                    conditional=bool(each.get("condition")),
                )
                writes.setdefault(entity.name, []).append(write)
            else:
                report.add(title, f"{each.get('action')} of {entity.name} writes nothing, so it is left out")
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
