"""Express a query in terms of the design's access patterns.

Each pattern's templates parse the key values of the query. If they match, the parsed fields become the pattern's
arguments. A query that no pattern expresses (a range inside a template, a filter on something other than a plain field)
has no such code.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from tavola.keys import BoundTemplate
from tavola.model import SHARD, Entity, KeyShape, KeySource, Pattern, declared_tables, entities_of, shape_of
from tavola.studio.queries.conditions import QueryCondition
from tavola.studio.queries.planner import ItemQuery, QueryPlan
from tavola.studio.studio import TablesLocation
from tavola.studio.types import AttributeValue, Item

_METHODS = {
    "=": "eq",
    "<": "lt",
    "<=": "lte",
    ">": "gt",
    ">=": "gte",
    "between": "between",
    "begins_with": "begins_with",
}
_FILTERS = {
    "=": "eq", "<>": "ne", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte", "between": "between",
    "begins_with": "begins_with", "contains": "contains", "in": "is_in", "exists": "exists", "not_exists": "not_exists",
}  # fmt: skip
DEFAULT_ENDPOINT = "http://127.0.0.1:8000"
"""The default address of `tavola serve`."""
_PLAIN = frozenset({"text", "int", "decimal", "bool"})


@dataclass(slots=True)
class PythonWriter:
    """Renders Python values and collects the imports they need."""

    imports: set[str] = field(default_factory=set)

    def value(self, value: Any) -> str:
        """Return a value as a Python expression."""
        match value:
            case Enum():
                return repr(value.value)
            case bool() | int() | str() | bytes():
                return repr(value)
            case Decimal():
                self.imports.add("from decimal import Decimal")
                return f'Decimal("{value}")'
            case datetime() | date():
                name = type(value).__name__
                self.imports.add(f"from datetime import {name}")
                return f'{name}.fromisoformat("{value.isoformat()}")'
            case UUID():
                self.imports.add("from uuid import UUID")
                return f'UUID("{value}")'
            case _:
                raise NotExpressible

    def arguments(self, values: Mapping[str, Any]) -> str:
        """Return keyword arguments."""
        return ", ".join(f"{name}={self.value(value)}" for name, value in values.items())


class NotExpressible(Exception):
    """A query that no pattern expresses, or a value without a short Python expression."""


def query_code(question: ItemQuery, planned: QueryPlan, where: TablesLocation) -> str | None:
    """Return a query as a program with the design's classes; None if no pattern expresses it."""
    operation, index = planned.route.operation, planned.route.target.index
    if operation == "Scan" or planned.route.positions("studio"):
        return None
    conditions = [question.conditions[position] for position in planned.route.positions("key")]
    filters = [question.conditions[position] for position in planned.route.positions("filter")]
    for entity in _entities(question.table):
        shape = shape_of(entity)
        assert shape.key is not None, "a stored entity has a key"
        patterns = [shape.key] if operation == "GetItem" else list(shape.patterns.values())
        for pattern in patterns:
            at = None if pattern.key.index is None else pattern.key.index.name
            if at != index:
                continue
            writer = PythonWriter()
            try:
                call = _pattern_call(entity, pattern, conditions, writer)
                if operation == "Query":
                    _check_only_entity(entity, pattern, conditions)
                call += "".join(f".where({_filter_call(entity, filter_, writer)})" for filter_ in filters)
            except NotExpressible:
                continue
            if operation == "GetItem":
                return client_program(entity, writer, where, f"print(db.get({call}))")
            arguments = ", newest_first=True" if question.descending else ""
            arguments += ", consistent=True" if planned.consistent else ""
            line = f"for entity in db.query({call}{arguments}):\n        print(entity)"
            return client_program(entity, writer, where, line)
    return None


def item_code(table: str, key: Item, where: TablesLocation) -> str | None:
    """Return a program that gets an item by its entity's key; None if no entity has such a key."""
    conditions = [QueryCondition(name, "=", (value,)) for name, value in key.items()]
    for entity in _entities(table):
        pattern = shape_of(entity).key
        assert pattern is not None, "a stored entity has a key"
        writer = PythonWriter()
        try:
            call = _pattern_call(entity, pattern, conditions, writer)
        except NotExpressible:
            continue
        return client_program(entity, writer, where, f"print(db.get({call}))")
    return None


def connection_target(where: TablesLocation) -> str:
    """Return the argument for `connect`: the address where other programs reach the tables, if known."""
    if where.endpoint is not None:
        return where.endpoint
    match where.kind:
        case "memory":
            return "memory:"
        case "file":
            return f"file:{where.text.removeprefix('file:')}"
        case "aws":
            return f"aws:{where.region}"
        case "http":
            return where.text


def endpoint_url(where: TablesLocation) -> str | None:
    """Return the endpoint URL for other clients; None for AWS."""
    if where.kind == "aws":
        return None
    return where.endpoint or (where.text if where.kind == "http" else DEFAULT_ENDPOINT)


def setup_comment(where: TablesLocation, sign: str = "#") -> str:
    """Return a comment about what to do before the code can reach the tables; empty if nothing."""
    if where.endpoint is not None or where.kind in ("aws", "http"):
        return ""
    if where.kind == "memory":
        comment = "These tables are in the studio's memory; other programs cannot reach them."
        return f"{sign} {comment}\n{sign} `tavola serve --studio` serves tables in memory at {DEFAULT_ENDPOINT}, with the studio.\n"
    file = where.text.removeprefix("file:")
    comment = f"The studio has {file} open, and only one process can: stop the studio first."
    return f"{sign} {comment}\n{sign} `tavola serve {shlex.quote(file)} --studio` serves it at {DEFAULT_ENDPOINT}, with the studio.\n"


def _entities(table: str) -> list[type[Entity]]:
    return [
        entity
        for declared_table in declared_tables()
        if declared_table.settings.name == table
        for entity in entities_of(declared_table)
    ]


def client_program(
    entity: type[Entity], writer: PythonWriter, where: TablesLocation, line: str, name: str = ""
) -> str:
    """Return a program that imports an entity, or another name of its module, and runs a line with a connection."""
    target = connection_target(where)
    region = "" if where.kind == "aws" else f", region={where.region!r}"
    imports = "".join(f"{statement}\n" for statement in sorted(writer.imports))
    name = name or entity.__qualname__.split(".")[0]
    return (
        f"{imports}{chr(10) if imports else ''}from tavola import connect\nfrom {entity.__module__} import {name}\n\n"
        f"{setup_comment(where)}with connect({target!r}{region}) as db:\n    {line}\n"
    )


def _pattern_call(
    entity: type[Entity], pattern: Pattern, conditions: list[QueryCondition], writer: PythonWriter
) -> str:
    by_attribute = {condition.name: condition for condition in conditions}
    if len(by_attribute) < len(conditions):
        raise NotExpressible  # two conditions on one sort attribute
    values: dict[str, Any] = {}
    for source in pattern.key.hash:
        values |= _parse_source(source, _equality_value(by_attribute, source.attribute))
    if SHARD in values:
        raise NotExpressible  # a pattern queries all shards, this query only one
    fixed: dict[str, Any] = {}
    ranged = ""
    for source in pattern.key.range:
        condition = by_attribute.get(source.attribute)
        if condition is None:
            break
        if condition.operator == "=":
            fixed |= _parse_source(source, condition.values[0])
        elif source.template is None:
            operands = ", ".join(writer.value(_decode(source, value)) for value in condition.values)
            ranged = f".{source.fields[0]}.{_METHODS[condition.operator]}({operands})"
        elif condition.operator == "begins_with":
            fixed |= _parse_prefix(source.template, str(condition.values[0].get("S")))
        else:
            raise NotExpressible
    sorts = {name: value for name, value in fixed.items() if name not in values}
    if pattern.sorts or not pattern.partition:
        _check_sorts(pattern, values, sorts, ranged)
    else:
        values |= sorts  # a primary key, or a query whose arguments include the sort key
        sorts = {}
    arguments = {name: values[name] for name in pattern.partition if name in values}
    if len(arguments) < len(pattern.partition) or len(arguments) < len(values):
        raise NotExpressible
    steps = "".join(f".{name}.eq({writer.value(value)})" for name, value in sorts.items())
    return f"{entity.__qualname__}.{pattern.name}({writer.arguments(arguments)}){steps}{ranged}"


def _check_only_entity(entity: type[Entity], pattern: Pattern, conditions: list[QueryCondition]) -> None:
    """Reject a pattern if the query may also return other entities, which the pattern would leave out."""
    by_attribute = {condition.name: condition for condition in conditions}
    table = shape_of(entity).table
    assert table is not None, "a stored entity has a table"
    for other in entities_of(table):
        if other is entity:
            continue
        shape = shape_of(other)
        primary_keys = () if shape.key is None else (shape.key.key,)
        if any(
            key.index is pattern.key.index and _may_hold(key, by_attribute)
            for key in (*primary_keys, *shape.keys)
        ):
            raise NotExpressible


def _may_hold(key: KeyShape, by_attribute: Mapping[str | None, QueryCondition]) -> bool:
    """Return whether items with such a key may match the conditions."""
    for source in key.sources:
        condition = by_attribute.get(source.attribute)
        if condition is None or source.template is None:
            continue
        text = str(condition.values[0].get("S", ""))
        if condition.operator == "=" and source.template.read(text) is None:
            return False
        first = source.template.prefix({}, 0)
        if condition.operator == "begins_with" and not (text.startswith(first) or first.startswith(text)):
            return False
    return True


def _check_sorts(pattern: Pattern, values: Mapping[str, Any], sorts: Mapping[str, Any], ranged: str) -> None:
    if tuple(sorts) != pattern.sorts[: len(sorts)]:
        raise NotExpressible
    if ranged and ranged.split(".")[1] not in pattern.sorts:
        raise NotExpressible
    if not set(values) <= set(pattern.partition):
        raise NotExpressible


def _equality_value(by_attribute: Mapping[str | None, QueryCondition], name: str) -> AttributeValue:
    condition = by_attribute.get(name)
    if condition is None or condition.operator != "=":
        raise NotExpressible
    return condition.values[0]


def _parse_source(source: KeySource, value: AttributeValue) -> dict[str, Any]:
    if source.template is None:
        return {source.fields[0]: _decode(source, value)}
    values = source.template.read(str(value.get("S", "")))
    if values is None:
        raise NotExpressible
    return values


def _decode(source: KeySource, value: AttributeValue) -> Any:
    if source.field is None or source.tag not in value:
        raise NotExpressible
    return source.field.decode(dict(value))


def _parse_prefix(template: BoundTemplate, text: str) -> dict[str, Any]:
    """Return the leading fields of a template whose values a prefix contains exactly."""
    for upto in range(len(template.fields), -1, -1):
        steps = template.steps[:upto]
        closing = template.steps[upto].literal if upto < len(template.steps) else template.tail
        pattern = "".join(f"{re.escape(step.literal)}({step.part.pattern})" for step in steps) + re.escape(
            closing
        )
        match = re.fullmatch(pattern, text, re.DOTALL)
        if match is None:
            continue
        values = {step.field: step.part.decode(match[position]) for position, step in enumerate(steps, 1)}
        if template.prefix(values, upto) == text:
            return values
    raise NotExpressible


def _filter_call(entity: type[Entity], condition: QueryCondition, writer: PythonWriter) -> str:
    shape = shape_of(entity)
    field = shape.by_attribute.get(condition.name or "")
    method = _FILTERS.get(condition.operator)
    if field is None or method is None or field.converter.word not in _PLAIN:
        raise NotExpressible
    if not all(set(value) <= field.converter.tags for value in condition.values):
        raise NotExpressible
    operands = ", ".join(writer.value(field.decode(dict(value))) for value in condition.values)
    return f"{entity.__qualname__}.{field.name}.{method}({operands})"
