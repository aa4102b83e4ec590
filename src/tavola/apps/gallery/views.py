"""Views: what a page shows of a sample: its keys, and its items as the table and each index hold them.

The items are read where they stand, with a scan of the table or of the index, so that an index shows what is in it and nothing
else: sparse ones are short, projections lack attributes, shards are apart. Samples are small; a table of real size is asked, not shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest
from typing import Any

from tavola import AsyncConnection, Entity, KeyUse, Table, design_of, key_uses
from tavola.apps.gallery.showing import Told

ITEMS_READ_MAX = 500  # of one place
PARTITIONS_MAX = 6  # that a page shows of one place
ITEMS_MAX = 4  # that a page shows of one partition
ROWS_MAX = 20  # that a page shows of one answer
TEXT_MAX = 48  # characters of a value


@dataclass(frozen=True, slots=True)
class EntityKeys:
    """An entity, and its key in the table and in each index: a template for each attribute, none where it is not."""

    entity: str
    description: str
    keys: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """An item as a place holds it."""

    sort: str
    entity: str
    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Partition:
    """The items under one partition key, the first of them."""

    key: str
    rows: tuple[Row, ...]
    items: int


@dataclass(frozen=True, slots=True)
class Place:
    """A table, or an index of it, with what is in it."""

    name: str
    index: bool
    attributes: tuple[str, ...]
    uses: tuple[KeyUse, ...]
    partitions: tuple[Partition, ...]
    partition_count: int
    items: int

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The uses as the cells of a table."""
        return [(use.entity, use.pattern, use.asked_with, use.members, use.title or "—") for use in self.uses]


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a demonstration, ready to be shown."""

    told: Told
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    count: int
    cost: str


def places_of(table: type[Table]) -> tuple[str, ...]:
    """Return the table and its indexes by name, the table first."""
    return (table.settings.name, *(index.name for index in design_of(table).tables[0].indexes))


def entity_keys(table: type[Table]) -> tuple[EntityKeys, ...]:
    """Return the entities of a table with their keys in each place."""
    design = design_of(table).tables[0]
    places = (None, *(index.name for index in design.indexes))
    found = []
    for entity in design.entities:
        keys = []
        for place in places:
            use = next((use for use in key_uses(design, place) if use.entity == entity.name), None)
            keys.append(() if use is None else use.partition + use.sort)
        found.append(EntityKeys(entity.name, entity.description, tuple(keys)))
    return tuple(found)


async def places(db: AsyncConnection, table: type[Table]) -> tuple[Place, ...]:
    """Return a table and its indexes with the items that are in them now."""
    design = design_of(table).tables[0]
    hidden = {design.settings.tag, *design.key_types}
    settings = design.settings
    own = (settings.hash,) if settings.range is None else (settings.hash, settings.range)
    keys: list[tuple[str | None, tuple[str, ...], tuple[str, ...]]] = [(None, own[:1], own[1:])]
    keys += [(index.name, index.hash, index.range) for index in design.indexes]
    found = []
    for index, hashed, ranged in keys:
        items = await _scanned(db, table, index)
        parts: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
        for item in items:
            parts.setdefault(tuple(plain(item[name]) for name in hashed), []).append(item)
        shown = [
            Partition(
                " + ".join(key),
                tuple(_row(item, ranged, settings.tag, hidden) for item in parts[key][:ITEMS_MAX]),
                len(parts[key]),
            )
            for key in _some(parts, settings.tag)
        ]
        found.append(
            Place(
                settings.name if index is None else index,
                index is not None,
                hashed + ranged,
                key_uses(design, index),
                tuple(shown),
                len(parts),
                len(items),
            )
        )
    return tuple(found)


def _some(parts: Mapping[tuple[str, ...], list[Mapping[str, Any]]], tag: str | None) -> list[tuple[str, ...]]:
    """Return the keys of some partitions, in order, of each kind of item alike."""
    kinds: dict[str, list[tuple[str, ...]]] = {}
    for key in sorted(parts):
        kinds.setdefault(_entity(parts[key][0], tag), []).append(key)
    turns = zip_longest(*kinds.values())
    taken = [key for turn in turns for key in turn if key is not None]
    return sorted(taken[:PARTITIONS_MAX])


async def _scanned(db: AsyncConnection, table: type[Table], index: str | None) -> list[Mapping[str, Any]]:
    request: dict[str, Any] = {"TableName": db.context.name_of(table), "Limit": ITEMS_READ_MAX}
    if index is not None:
        request["IndexName"] = index
    items: list[Mapping[str, Any]] = (await db.call("Scan", request))["Items"]
    return items


def _row(item: Mapping[str, Any], ranged: tuple[str, ...], tag: str | None, hidden: set[str | None]) -> Row:
    """Return an item; keys of other places are left out, but what an item has in its own name is told."""
    attributes = tuple(
        (name, cut(plain(value))) for name, value in sorted(item.items()) if name not in hidden
    )
    return Row(" + ".join(plain(item[name]) for name in ranged), _entity(item, tag), attributes)


def _entity(item: Mapping[str, Any], tag: str | None) -> str:
    return "" if tag is None or tag not in item else plain(item[tag])


def plain(value: Mapping[str, Any]) -> str:
    """Return an attribute value as text: S and N as they are, the rest as JSON."""
    [(kind, held)] = value.items()
    return str(held) if kind in ("S", "N") else json.dumps(held)


def cut(text: str) -> str:
    """Return a text that fits a cell."""
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}… ({len(text):,} characters)"


def steps_of(told: Iterable[Told]) -> tuple[Step, ...]:
    """Return the steps of a demonstration for a page."""
    return tuple(_step(each) for each in told)


def _step(told: Told) -> Step:
    shown = told.found[:ROWS_MAX]
    kinds = {type(each) for each in shown}
    columns: tuple[str, ...] = ()
    rows: list[tuple[str, ...]]
    if len(kinds) == 1 and isinstance(shown[0], Entity):
        columns = tuple(type(shown[0]).model_fields)
        rows = [tuple(_cell(getattr(each, name)) for name in columns) for each in shown]
    elif any(isinstance(each, Entity) for each in shown):
        columns = ("entity", "what it holds")
        rows = [(type(each).__name__, _fields(each)) for each in shown]
    else:
        rows = [tuple(map(_cell, each)) if isinstance(each, tuple) else (_cell(each),) for each in shown]
    return Step(told, columns, tuple(rows), len(told.found), _cost(told))


def _fields(entity: Any) -> str:
    return ", ".join(f"{name} {_cell(getattr(entity, name))}" for name in type(entity).model_fields)


def _cell(value: Any) -> str:
    if value is None:
        return "—"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return cut(value.isoformat() if hasattr(value, "isoformat") else str(value))


def _cost(told: Told) -> str:
    """Return what a step took, in one line; empty if nothing was asked of DynamoDB."""
    if told.usd_per_million is None and not told.reads and not told.writes:
        return ""
    parts = []
    if told.scanned is not None:
        parts.append(f"{told.scanned} read, {len(told.found)} returned")
    if told.reads:
        parts.append(f"{told.reads:g} read units")
    if told.writes:
        parts.append(f"{told.writes:g} write units")
    if told.usd_per_million is not None:
        parts.append(f"{told.usd_per_million.normalize():f} USD for a million")
    return ", ".join(parts)
