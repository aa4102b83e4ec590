"""awslabs' `dynamodb_data_model.json`: bodies of CreateTable, sample items, and access patterns as AWS CLI commands.

The entities are those of the items, as of a Workbench model without facets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from tavola.iac.formats.import_result import ImportReport, ImportResult, SampleItem
from tavola.iac.formats.mcp_commands import CliCommand, typed_values
from tavola.iac.formats.mcp_patterns import READS, WRITES
from tavola.iac.formats.sample_items import key_text, read_item, select_storable
from tavola.iac.formats.table_definitions import give_tables_unique_names, read_table
from tavola.iac.formats.tracked_mapping import TrackedMapping, report_unread
from tavola.iac.formats.unresolved import as_text
from tavola.iac.formats.value_reader import ValueReader, show_value
from tavola.iac.formats.workbench_entities import EntitiesReader
from tavola.keys import BoundTemplate
from tavola.model.document import (
    AccessPattern,
    Design,
    EntityDesign,
    Given,
    KeyDesign,
    Need,
    Route,
    TableDesign,
    WritePattern,
)
from tavola.values import Item

FORMAT = "mcp-data-model"
_BESIDE = frozenset(("reason", "notes", "frequency"))  # words for people


def is_mcp_data_model(raw: Any) -> bool:
    """Tell whether data is such a model: bodies of CreateTable with items or access patterns beside them."""
    tables = raw.get("tables") if isinstance(raw, Mapping) else None
    if not isinstance(tables, list) or not ("items" in raw or "access_patterns" in raw):
        return False
    return any(isinstance(each, Mapping) and "KeySchema" in each for each in tables)


def read_mcp_data_model(raw: Mapping[str, Any]) -> ImportResult:
    """Return the design of a model, with its access patterns as needs and writes."""
    report = ImportReport()
    read = ValueReader(report)
    raw = TrackedMapping(raw)
    bodies = read.objects(raw.get("tables"), "tables")
    tables = list(
        give_tables_unique_names(
            [read_table(each, f"tables[{at}]", report) for at, each in enumerate(bodies)], report
        )
    )
    samples: list[SampleItem] = []
    taken: set[str] = set()
    items = read.object(raw.get("items"), "items")
    for name in items:
        if name not in {table.name for table in tables}:
            report.add(f"items.{name}", "there is no table of that name, so its items are left out")
    for at, table in enumerate(tables):
        found = list(_items(items.get(table.name), table, report))
        types = {
            name: next(iter(value))
            for each in found
            for name, value in each.item.items()
            if name not in table.settings.key_names
        }
        reader = EntitiesReader(table, types, report, taken)
        entities, owned = reader.entities([], found, {})
        tables[at] = replace(table, settings=reader.settings, entities=entities)
        taken |= {entity.name for entity in entities}
        samples += owned
    patterns = _Patterns(tables, report)
    for at, each in enumerate(read.objects(raw.get("access_patterns"), "access_patterns")):
        patterns.take(each, f"access_patterns[{at}]")
    report_unread(raw, "", report, ignore=_BESIDE)
    return ImportResult(
        Design(tuple(patterns.tables), needs=tuple(patterns.needs)), report.notes, FORMAT, tuple(samples)
    )


def _items(raw: Any, table: TableDesign, report: ImportReport) -> Iterator[SampleItem]:
    read: list[tuple[str, Item]] = []
    for at, each in enumerate(ValueReader(report).objects(raw, f"items.{table.name}")):
        place = f"items.{table.name}[{at}]"
        put = each.get("PutRequest")
        item = read_item(put.get("Item") if isinstance(put, Mapping) else each, place, report)
        if item is not None:
            read.append((place, item))
    for item in select_storable(read, table, report):
        yield SampleItem(table.name, item)


class _Patterns:
    """Takes access patterns one by one, and keeps what they make."""

    def __init__(self, tables: list[TableDesign], report: ImportReport) -> None:
        self.tables = tables
        self.report = report
        self.needs: list[Need] = []

    def take(self, raw: Mapping[str, Any], place: str) -> None:
        title = as_text(raw.get("description")) or as_text(raw.get("pattern")) or place
        name = as_text(raw.get("pattern")) or title
        table = next((each for each in self.tables if each.name == raw.get("table")), None)
        if table is None or not table.entities:
            self.report.add(
                place, f"there is no item of {show_value(raw.get('table'))} to tell what it gives; left out"
            )
            return
        operation = (as_text(raw.get("dynamodb_operation")) or "").replace("-", "").lower()
        command = CliCommand.parse(as_text(raw.get("implementation")) or "", place, self.report)
        index = as_text(raw.get("index")) or command.options.get("--index-name")
        if operation in READS:
            self._need(name, title, READS[operation], index or None, command, table, place)
        elif operation in WRITES:
            self._write(title, WRITES[operation], command, table, place)
        else:
            self.report.add(
                place, f"{show_value(raw.get('dynamodb_operation'))} is no operation that is known; left out"
            )

    def _need(
        self,
        name: str,
        title: str,
        operation: str,
        index: str | None,
        command: CliCommand,
        table: TableDesign,
        place: str,
    ) -> None:
        told = [(Given(each), key_text(value)) for each, value in typed_values(command.data("--key"))]
        told += command.conditions("--key-condition-expression")
        filters = [given for given, _ in command.conditions("--filter-expression")]
        entities = _matching_entities(
            table, index, {given.field: text for given, text in told if text is not None}
        )
        if not entities:
            self.report.add(place, f"no entity of {table.name} has a key in {index}; it is left out")
            return
        key = entities[0].key_on(index)
        where: list[Given] = []
        for given, text in told:
            if (
                given.operator == "begins_with"
                and text is not None
                and _is_entity_prefix(entities[0], key, given.field, text)
            ):
                continue  # it asks for the entity alone
            for field in _fields_of(key, given.field):
                if field not in {each.field for each in where}:
                    where.append(Given(field, given.operator))
        fields = {each.attribute: each.name for entity in entities for each in entity.fields}
        seen = {each.field for each in where}
        where += [
            Given(fields[each.field], each.operator)
            for each in filters
            if each.field in fields and fields[each.field] not in seen
        ]
        access = AccessPattern(
            title,
            consistent="--consistent-read" in command.options,
            filters=tuple(fields[each.field] for each in filters if each.field in fields),
        )
        route = Route(cast(Any, operation), index, tuple(given for given, _ in told), tuple(filters))
        self.needs.append(
            Need(
                name,
                tuple(entity.name for entity in entities),
                tuple(where),
                access=access,
                single=operation == "get",
                route=route,
            )
        )

    def _write(self, title: str, kind: str, command: CliCommand, table: TableDesign, place: str) -> None:
        key = command.data("--key") or command.data("--item")
        texts = {name: text for name, value in typed_values(key) if (text := key_text(value)) is not None}
        entities = _matching_entities(
            table, None, {name: texts[name] for name in table.settings.key_names if name in texts}
        )
        if len(entities) != 1:
            self.report.add(place, "which entity it writes cannot be told, so it is left out")
            return
        write = WritePattern(title, cast(Any, kind), conditional="--condition-expression" in command.options)
        at = self.tables.index(table)
        self.tables[at] = replace(
            table,
            entities=tuple(
                replace(each, writes=(*each.writes, write)) if each.name == entities[0].name else each
                for each in table.entities
            ),
        )


def _fields_of(key: KeyDesign | None, attribute: str) -> tuple[str, ...]:
    sources = () if key is None else key.sources
    return next((source.fields for source in sources if source.attribute == attribute), ())


def _matching_entities(table: TableDesign, index: str | None, texts: Mapping[str, str]) -> list[EntityDesign]:
    """Return the entities that have a key in an index and could have made these values; all with one if none could."""
    having = [entity for entity in table.entities if entity.key_on(index) is not None]
    fitting: list[EntityDesign] = []
    for entity in having:
        key = entity.key_on(index)
        bound = {
            source.attribute: entity.bind_template(source) for source in (() if key is None else key.sources)
        }
        templates = {name: each for name, each in bound.items() if each is not None and name in texts}
        if all(_may_render(each, texts[name]) for name, each in templates.items()):
            fitting.append(entity)
    return fitting or having


def _may_render(template: BoundTemplate, text: str) -> bool:
    start = template.literal_prefix
    if template.constant is not None:
        return template.constant.startswith(text)
    return text.startswith(start) or start.startswith(text)


def _is_entity_prefix(entity: EntityDesign, key: KeyDesign | None, attribute: str, text: str) -> bool:
    """Tell whether a text is only what all keys of an entity begin with."""
    for source in () if key is None else key.sources:
        bound = entity.bind_template(source)
        if source.attribute == attribute and bound is not None:
            return bound.literal_prefix.startswith(text)
    return False
