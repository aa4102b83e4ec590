"""Fill in a pattern's parameters from an item of the live table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tavola.client.connection import AsyncConnection
from tavola.model import SHARD
from tavola.model.document import EntityDesign, KeyDesign, TableDesign
from tavola.studio.access_patterns.catalogue import PatternEntry, field_of_attribute
from tavola.studio.access_patterns.input_values import attribute_text
from tavola.studio.access_patterns.requests import Clause, render_conditions
from tavola.studio.key_text import format_value
from tavola.studio.recognition import Recogniser, designed_keys
from tavola.studio.types import Item

_PAGE = 100
_PAGES_MAX = 5  # searched for an item of the entity


@dataclass(frozen=True, slots=True)
class PatternExample:
    """Parameter values from one item, as a form shows them."""

    pattern: str
    values: Mapping[str, str]  # by parameter
    found: bool
    read: int  # items read to find it
    note: str


async def find_example(db: AsyncConnection, entry: PatternEntry) -> PatternExample:
    """Return parameter values from an item of the pattern's entity; reads a few hundred items at most."""
    summary, table, entity = entry.summary, entry.table, entry.entity
    if table is None or entity is None or not summary.runnable:
        return PatternExample(summary.id, {}, found=False, read=0, note=summary.reason)
    if not summary.parameters:
        return PatternExample(summary.id, {}, found=True, read=0, note="This pattern has no parameters.")
    item, read = await _find_item(db, table, entity, summary.index, entry.key)
    if item is None:
        where = table.name if summary.index is None else summary.index
        return PatternExample(
            summary.id,
            {},
            found=False,
            read=read,
            note=f"The first {read} items of {where} contain no {entity.name}; enter the values yourself.",
        )
    values: dict[str, str] = {}
    parts = {} if entry.key is None else _fields_from_keys(entity, entry.key, item)
    for parameter in summary.parameters:
        field = field_of_attribute(table, entity, parameter.attribute)
        stored = item.get(parameter.attribute)
        text = parts.get(field.name) if stored is None else attribute_text(field, stored)
        if text:
            values[parameter.name] = text
    return PatternExample(
        summary.id, values, found=True, read=read, note=f"Filled in from an existing {entity.name}."
    )


async def _find_item(
    db: AsyncConnection, table: TableDesign, entity: EntityDesign, index: str | None, key: KeyDesign | None
) -> tuple[Item | None, int]:
    """Return an item of an entity from the table or an index, and the number of items read."""
    recogniser = Recogniser(designed_keys(table), table)
    body: dict[str, Any] = {"TableName": table.name, "Limit": _PAGE}
    if index is not None:
        body["IndexName"] = index
    operation = "Scan"
    constant = None if key is None else _constant_partition(entity, key)
    if constant is not None:  # all items are in one partition, so no scan is needed
        operation, body = "Query", body | render_conditions(constant, ())
    read = 0
    for _ in range(_PAGES_MAX):
        answer = await db.call(operation, body)
        read += answer.get("ScannedCount", 0)
        for item in answer["Items"]:
            if recogniser.recognise(item).entity == entity.name:
                return item, read
        if "LastEvaluatedKey" not in answer:
            break
        body = {**body, "ExclusiveStartKey": answer["LastEvaluatedKey"]}
    return None, read


def _constant_partition(entity: EntityDesign, key: KeyDesign) -> list[Clause] | None:
    """Return the condition for the partition that all items share (its first shard); None if there are several."""
    clauses: list[Clause] = []
    for source in key.hash:
        bound = None if source.fields else entity.bind_template(source)
        if bound is None or (key.shards is not None and key.shards.by == "time"):
            return None
        clauses.append(Clause(source.attribute, "=", ({"S": bound.render({SHARD: 0})},)))
    return clauses


def _fields_from_keys(entity: EntityDesign, key: KeyDesign, item: Item) -> dict[str, str]:
    """Return the fields that can be parsed from an item's keys; an index may project nothing else."""
    values: dict[str, str] = {}
    for entity_key in (key, entity.key):
        for source in () if entity_key is None else entity_key.sources:
            bound, text = entity.bind_template(source), item.get(source.attribute, {}).get("S")
            read = None if bound is None or text is None else bound.read(text)
            values |= {
                name: format_value(value) for name, value in (read or {}).items() if name not in values
            }
    return values
