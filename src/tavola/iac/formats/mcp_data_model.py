"""Read awslabs' `dynamodb_data_model.json`: CreateTable bodies, sample items, and access patterns as AWS CLI commands.

Entities come from the sample items, as for a Workbench model without facets.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from tavola.expressions.errors import ExpressionError
from tavola.expressions.nodes import (
    And,
    Between,
    Comparison,
    ConditionNode,
    FunctionCall,
    InList,
    Path,
    ValueRef,
)
from tavola.expressions.parser import parse_condition
from tavola.iac.formats.import_result import ImportReport, ImportResult, SampleItem
from tavola.iac.formats.mcp_schema import READS, WRITES
from tavola.iac.formats.sample_items import key_text, read_item, select_storable
from tavola.iac.formats.source_values import TrackedMapping, ValueReader, as_text, report_unread, show_value
from tavola.iac.formats.table_definitions import give_tables_unique_names, read_table
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

COMMAND_MAX = 20_000  # characters
_CALLS = {"begins_with": "begins_with", "contains": "contains", "attribute_exists": "exists"}


@dataclass(frozen=True, slots=True)
class CliCommand:
    """The options of an AWS CLI command."""

    options: Mapping[str, str]
    place: str
    report: ImportReport

    @classmethod
    def parse(cls, text: str, place: str, report: ImportReport) -> CliCommand:
        """Parse a command; one that cannot be parsed is noted and has no options."""
        words: list[str] = []
        if len(text) > COMMAND_MAX:
            report.add(place, f"the command is longer than {COMMAND_MAX:,} characters; not imported")
        else:
            try:
                words = shlex.split(text)
            except ValueError as error:
                report.add(place, f"the command cannot be parsed ({error}); not imported")
        options: dict[str, str] = {}
        for position, word in enumerate(words):
            if word.startswith("--"):
                name, _, value = word.partition("=")
                following = words[position + 1] if position + 1 < len(words) else ""
                options[name] = value or ("" if following.startswith("--") else following)
        return cls(options, place, report)

    def data(self, option: str) -> Mapping[str, Any]:
        """Return an option's JSON object; an empty one, with a note, if it is not an object."""
        text = self.options.get(option, "{}")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, Mapping):
            self.report.add(self.place, f"ignored {option}: {show_value(text)} is not a JSON object")
            return {}
        return value

    def conditions(self, option: str) -> list[tuple[Given, str | None]]:
        """Return the conditions of an expression, each with its value as text if the command gives one."""
        text = self.options.get(option)
        if not text:
            return []
        try:
            tree = parse_condition(text).tree
        except ExpressionError as error:
            self.report.add(self.place, f"ignored {option}: {error}")
            return []
        conditions: list[tuple[Given, str | None]] = []
        for part in tree.parts if isinstance(tree, And) else (tree,):
            condition = self._read_condition(part)
            if condition is None:
                self.report.add(
                    self.place, f"a condition of {option} has no equivalent in a design; not imported"
                )
            else:
                conditions.append(condition)
        return conditions

    def _read_condition(self, node: ConditionNode) -> tuple[Given, str | None] | None:
        match node:
            case Comparison("=" | "<" | "<=" | ">" | ">=" as operator, Path() as path, right):
                return self._build_condition(path, operator, right)
            case Between(Path() as path, _, _):
                return self._build_condition(path, "between", None)
            case InList(Path() as path, _):
                return self._build_condition(path, "in", None)
            case FunctionCall(name, (Path() as path, *rest)) if name in _CALLS:
                return self._build_condition(path, _CALLS[name], rest[0] if rest else None)
            case _:
                return None

    def _build_condition(self, path: Path, operator: str, value: Any) -> tuple[Given, str | None] | None:
        if len(path.steps) != 1 or isinstance(path.steps[0], int):
            return None
        step = path.steps[0]
        name = step if isinstance(step, str) else self._name(step.name)
        operand = (
            self.data("--expression-attribute-values").get(value.name)
            if isinstance(value, ValueRef)
            else None
        )
        text = key_text(cast(Any, operand)) if isinstance(operand, Mapping) and len(operand) == 1 else None
        return Given(name, cast(Any, operator)), text

    def _name(self, placeholder: str) -> str:
        return as_text(self.data("--expression-attribute-names").get(placeholder)) or placeholder


def typed_values(raw: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of a key or an item that have one type descriptor."""
    for name, value in raw.items():
        if isinstance(value, Mapping) and len(value) == 1:
            yield name, value


FORMAT = "mcp-data-model"
_NOT_DESIGN = frozenset(("reason", "notes", "frequency"))  # prose


def is_mcp_data_model(raw: Any) -> bool:
    """Return whether data is such a model: CreateTable bodies with items or access patterns."""
    tables = raw.get("tables") if isinstance(raw, Mapping) else None
    if not isinstance(tables, list) or not ("items" in raw or "access_patterns" in raw):
        return False
    return any(isinstance(table, Mapping) and "KeySchema" in table for table in tables)


def read_mcp_data_model(raw: Mapping[str, Any]) -> ImportResult:
    """Return the design of a model, with its access patterns as needs and writes."""
    report = ImportReport()
    read = ValueReader(report)
    raw = TrackedMapping(raw)
    bodies = read.objects(raw.get("tables"), "tables")
    tables = list(
        give_tables_unique_names(
            [read_table(body, f"tables[{position}]", report) for position, body in enumerate(bodies)], report
        )
    )
    samples: list[SampleItem] = []
    used_names: set[str] = set()
    items = read.object(raw.get("items"), "items")
    for name in items:
        if name not in {table.name for table in tables}:
            report.add(f"items.{name}", "no table with this name; its items are not imported")
    for position, table in enumerate(tables):
        sample_items = list(_items(items.get(table.name), table, report))
        types = {
            name: next(iter(value))
            for sample_item in sample_items
            for name, value in sample_item.item.items()
            if name not in table.settings.key_names
        }
        reader = EntitiesReader(table, types, report, used_names)
        entities, entity_samples = reader.entities([], sample_items, {})
        tables[position] = replace(table, settings=reader.settings, entities=entities)
        used_names |= {entity.name for entity in entities}
        samples += entity_samples
    patterns = _Patterns(tables, report)
    for position, entry in enumerate(read.objects(raw.get("access_patterns"), "access_patterns")):
        patterns.add(entry, f"access_patterns[{position}]")
    report_unread(raw, "", report, ignore=_NOT_DESIGN)
    return ImportResult(
        Design(tuple(patterns.tables), needs=tuple(patterns.needs)), report.notes, FORMAT, tuple(samples)
    )


def _items(raw: Any, table: TableDesign, report: ImportReport) -> Iterator[SampleItem]:
    read: list[tuple[str, Item]] = []
    for position, entry in enumerate(ValueReader(report).objects(raw, f"items.{table.name}")):
        place = f"items.{table.name}[{position}]"
        put = entry.get("PutRequest")
        item = read_item(put.get("Item") if isinstance(put, Mapping) else entry, place, report)
        if item is not None:
            read.append((place, item))
    for item in select_storable(read, table, report):
        yield SampleItem(table.name, item)


class _Patterns:
    """Collects the needs and writes of access patterns."""

    def __init__(self, tables: list[TableDesign], report: ImportReport) -> None:
        self.tables = tables
        self.report = report
        self.needs: list[Need] = []

    def add(self, raw: Mapping[str, Any], place: str) -> None:
        title = as_text(raw.get("description")) or as_text(raw.get("pattern")) or place
        name = as_text(raw.get("pattern")) or title
        table = next((table for table in self.tables if table.name == raw.get("table")), None)
        if table is None or not table.entities:
            self.report.add(
                place,
                f"table {show_value(raw.get('table'))} has no sample items that show its entities; not imported",
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
                place, f"unknown dynamodb_operation {show_value(raw.get('dynamodb_operation'))}; not imported"
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
        key_conditions = [
            (Given(attribute), key_text(value)) for attribute, value in typed_values(command.data("--key"))
        ]
        key_conditions += command.conditions("--key-condition-expression")
        filters = [condition for condition, _ in command.conditions("--filter-expression")]
        entities = _matching_entities(
            table, index, {condition.field: text for condition, text in key_conditions if text is not None}
        )
        if not entities:
            self.report.add(place, f"no entity of {table.name} has a key in index {index}; not imported")
            return
        key = entities[0].key_on(index)
        field_conditions: list[Given] = []
        for condition, text in key_conditions:
            if (
                condition.operator == "begins_with"
                and text is not None
                and _is_entity_prefix(entities[0], key, condition.field, text)
            ):
                continue  # the prefix only selects the entity
            for field in _fields_of(key, condition.field):
                if field not in {field_condition.field for field_condition in field_conditions}:
                    field_conditions.append(Given(field, condition.operator))
        fields = {field.attribute: field.name for entity in entities for field in entity.fields}
        field_names = {field_condition.field for field_condition in field_conditions}
        field_conditions += [
            Given(fields[filter_.field], filter_.operator)
            for filter_ in filters
            if filter_.field in fields and fields[filter_.field] not in field_names
        ]
        access = AccessPattern(
            title,
            consistent="--consistent-read" in command.options,
            filters=tuple(fields[filter_.field] for filter_ in filters if filter_.field in fields),
        )
        route = Route(
            cast(Any, operation), index, tuple(condition for condition, _ in key_conditions), tuple(filters)
        )
        self.needs.append(
            Need(
                name,
                tuple(entity.name for entity in entities),
                tuple(field_conditions),
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
            self.report.add(place, "cannot determine which entity it writes; not imported")
            return
        write = WritePattern(title, cast(Any, kind), conditional="--condition-expression" in command.options)
        at = self.tables.index(table)
        self.tables[at] = replace(
            table,
            entities=tuple(
                replace(entity, writes=(*entity.writes, write)) if entity.name == entities[0].name else entity
                for entity in table.entities
            ),
        )


def _fields_of(key: KeyDesign | None, attribute: str) -> tuple[str, ...]:
    sources = () if key is None else key.sources
    return next((source.fields for source in sources if source.attribute == attribute), ())


def _matching_entities(table: TableDesign, index: str | None, texts: Mapping[str, str]) -> list[EntityDesign]:
    """Return the entities whose keys in an index fit these values; all with a key in it if none fits."""
    with_key = [entity for entity in table.entities if entity.key_on(index) is not None]
    matching: list[EntityDesign] = []
    for entity in with_key:
        key = entity.key_on(index)
        bound = {
            source.attribute: entity.bind_template(source) for source in (() if key is None else key.sources)
        }
        templates = {
            name: template for name, template in bound.items() if template is not None and name in texts
        }
        if all(_may_render(template, texts[name]) for name, template in templates.items()):
            matching.append(entity)
    return matching or with_key


def _may_render(template: BoundTemplate, text: str) -> bool:
    start = template.literal_prefix
    if template.constant is not None:
        return template.constant.startswith(text)
    return text.startswith(start) or start.startswith(text)


def _is_entity_prefix(entity: EntityDesign, key: KeyDesign | None, attribute: str, text: str) -> bool:
    """Return whether a text is part of the literal prefix of an entity's keys."""
    for source in () if key is None else key.sources:
        bound = entity.bind_template(source)
        if source.attribute == attribute and bound is not None:
            return bound.literal_prefix.startswith(text)
    return False
