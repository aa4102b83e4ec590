"""Data for the gallery's pages: a sample's keys, the contents of its table and indexes, and the results of demonstrations.

The table and each index are scanned, so that a page shows exactly what an index contains: sparse indexes have fewer items, projections
fewer attributes, and shards are separate partitions. This works only because samples are small.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest
from typing import Any

from tavola import AsyncConnection, Entity, KeyUse, Table, design_of, key_uses
from tavola.apps.gallery.demonstrations import StepResult
from tavola.apps.shell.pages import money, plural

ITEMS_READ_MAX = 500  # per table or index
PARTITIONS_MAX = 6  # shown per table or index
ITEMS_MAX = 4  # shown per partition
ROWS_MAX = 20  # shown per result
TEXT_CHARACTERS_MAX = 48  # per value in a table
SENTENCE_CHARACTERS_MAX = 300  # per value outside of tables


@dataclass(frozen=True, slots=True)
class EntityKeys:
    """The key templates of an entity in the table and each index; empty where it is not indexed."""

    entity: str
    description: str
    keys: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class GalleryItem:
    """An item as stored in a table or index."""

    sort: str
    entity: str
    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PartitionView:
    """The first items of one partition."""

    key: str
    rows: tuple[GalleryItem, ...]
    items: int


@dataclass(frozen=True, slots=True)
class TableView:
    """A table or index with its items."""

    name: str
    index: bool
    attributes: tuple[str, ...]
    uses: tuple[KeyUse, ...]
    partitions: tuple[PartitionView, ...]
    partition_count: int
    items: int

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The access patterns as table rows."""
        return [(use.entity, use.pattern, use.arguments, use.included, use.title or "—") for use in self.uses]


@dataclass(frozen=True, slots=True)
class StepView:
    """A step of a demonstration, formatted for a page."""

    result: StepResult
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    count: int
    cost: str


def table_and_index_names(table: type[Table]) -> tuple[str, ...]:
    """Return the names of a table and its indexes, the table first."""
    return (table.settings.name, *(index.name for index in design_of(table).tables[0].indexes))


def entity_keys(table: type[Table]) -> tuple[EntityKeys, ...]:
    """Return the entities of a table with their keys in the table and each index."""
    design = design_of(table).tables[0]
    indexes = (None, *(index.name for index in design.indexes))
    entities = []
    for entity in design.entities:
        keys = []
        for index_name in indexes:
            use = next((use for use in key_uses(design, index_name) if use.entity == entity.name), None)
            keys.append(() if use is None else use.partition + use.sort)
        entities.append(EntityKeys(entity.name, entity.description, tuple(keys)))
    return tuple(entities)


async def read_contents(db: AsyncConnection, table: type[Table]) -> tuple[TableView, ...]:
    """Return a table and its indexes with their current items."""
    design = design_of(table).tables[0]
    hidden = {design.settings.tag, *design.key_types}
    settings = design.settings
    table_key = (settings.hash,) if settings.range is None else (settings.hash, settings.range)
    keys: list[tuple[str | None, tuple[str, ...], tuple[str, ...]]] = [(None, table_key[:1], table_key[1:])]
    keys += [(index.name, index.hash, index.range) for index in design.indexes]
    views = []
    for index, hashed, ranged in keys:
        items = await _scan(db, table, index)
        parts: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
        for item in items:
            parts.setdefault(tuple(attribute_text(item[name]) for name in hashed), []).append(item)
        shown = [
            PartitionView(
                " + ".join(key),
                tuple(_row(item, ranged, settings.tag, hidden) for item in parts[key][:ITEMS_MAX]),
                len(parts[key]),
            )
            for key in _sample_keys(parts, settings.tag)
        ]
        views.append(
            TableView(
                settings.name if index is None else index,
                index is not None,
                hashed + ranged,
                key_uses(design, index),
                tuple(shown),
                len(parts),
                len(items),
            )
        )
    return tuple(views)


def _sample_keys(
    parts: Mapping[tuple[str, ...], list[Mapping[str, Any]]], tag: str | None
) -> list[tuple[str, ...]]:
    """Return the sorted keys of a few partitions, about equally many for each entity."""
    by_entity: dict[str, list[tuple[str, ...]]] = {}
    for key in sorted(parts):
        by_entity.setdefault(_entity(parts[key][0], tag), []).append(key)
    key_rounds = zip_longest(*by_entity.values())
    keys = [key for key_round in key_rounds for key in key_round if key is not None]
    return sorted(keys[:PARTITIONS_MAX])


async def _scan(db: AsyncConnection, table: type[Table], index: str | None) -> list[Mapping[str, Any]]:
    request: dict[str, Any] = {"TableName": db.context.name_of(table), "Limit": ITEMS_READ_MAX}
    if index is not None:
        request["IndexName"] = index
    items: list[Mapping[str, Any]] = (await db.call("Scan", request))["Items"]
    return items


def _row(
    item: Mapping[str, Any], ranged: tuple[str, ...], tag: str | None, hidden: set[str | None]
) -> GalleryItem:
    """Return an item without the key attributes of other indexes."""
    attributes = tuple(
        (name, shorten(attribute_text(value))) for name, value in sorted(item.items()) if name not in hidden
    )
    return GalleryItem(
        " + ".join(attribute_text(item[name]) for name in ranged), _entity(item, tag), attributes
    )


def _entity(item: Mapping[str, Any], tag: str | None) -> str:
    return "" if tag is None or tag not in item else attribute_text(item[tag])


def attribute_text(value: Mapping[str, Any]) -> str:
    """Return an attribute value as text: S and N unchanged, other types as JSON."""
    [(kind, content)] = value.items()
    return str(content) if kind in ("S", "N") else json.dumps(content)


def shorten(text: str) -> str:
    """Return text shortened to fit a table cell."""
    return (
        text
        if len(text) <= TEXT_CHARACTERS_MAX
        else f"{text[:TEXT_CHARACTERS_MAX]}… ({len(text):,} characters)"
    )


def step_views(results: Iterable[StepResult]) -> tuple[StepView, ...]:
    """Return the steps of a demonstration for a page."""
    return tuple(_step_view(result) for result in results)


def _step_view(result: StepResult) -> StepView:
    shown = result.items[:ROWS_MAX]
    types = {type(value) for value in shown}
    columns: tuple[str, ...] = ()
    rows: list[tuple[str, ...]]
    if len(types) == 1 and isinstance(shown[0], Entity):
        columns = tuple(type(shown[0]).model_fields)
        rows = [tuple(_cell(getattr(value, name)) for name in columns) for value in shown]
    elif any(isinstance(value, Entity) for value in shown):
        columns = ("Entity", "Attributes")
        rows = [(type(value).__name__, _fields(value)) for value in shown]
    else:
        rows = [tuple(map(_cell, value)) if isinstance(value, tuple) else (_value(value),) for value in shown]
    return StepView(result, columns, tuple(rows), len(result.items), _cost(result))


def _fields(entity: Any) -> str:
    return ", ".join(f"{name} {_cell(getattr(entity, name))}" for name in type(entity).model_fields)


def _value(value: Any) -> str:
    """Return a value that has no table around it: a sentence is shown whole."""
    return value if isinstance(value, str) and len(value) <= SENTENCE_CHARACTERS_MAX else _cell(value)


def _cell(value: Any) -> str:
    if value is None:
        return "—"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return shorten(value.isoformat() if hasattr(value, "isoformat") else str(value))


def _cost(result: StepResult) -> str:
    """Return the cost of a step in one line; empty if it sent no request."""
    if result.usd_per_million is None and not result.reads and not result.writes:
        return ""
    parts = []
    if result.scanned is not None:
        parts.append(f"{plural(result.scanned, 'item')} read, {len(result.items):,} returned")
    if result.reads:
        parts.append(f"{result.reads:g} RCU")
    if result.writes:
        parts.append(f"{result.writes:g} WCU")
    if result.usd_per_million is not None:
        parts.append(f"{money(result.usd_per_million)} per million requests")
    return ", ".join(parts)
