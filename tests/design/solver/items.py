"""Items: what is written of a solved design, made from its fields and keyed by its keys."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID
from zlib import crc32

from tavola.model.converters import converter_for
from tavola.model.document import EntityDesign, FieldDesign, KeyDesign, SourceDesign, TableDesign
from tavola.model.shapes import SHARD
from tavola.values import Item, Value

_ITEMS = 24
_MOMENT = dt.datetime(2026, 8, 1, 12, 0, 0, 250_000, tzinfo=dt.UTC)
TYPES: dict[str, Any] = {
    "text": str, "int": int, "decimal": Decimal, "datetime": dt.datetime, "date": dt.date, "bool": bool, "uuid": UUID,
}  # fmt: skip
_BY_TAG: dict[str, Value] = {
    "S": {"S": "other"}, "N": {"N": "1893456000"}, "B": {"B": "AAEC"}, "BOOL": {"BOOL": True}, "L": {"L": [{"N": "1"}]},
    "M": {"M": {"a": {"S": "b"}}}, "SS": {"SS": ["a", "b"]}, "NS": {"NS": ["1", "2"]}, "BS": {"BS": ["AAEC"]},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """An item of an entity: its fields as Python has them, and as it is stored."""

    entity: str
    values: Mapping[str, Any]
    item: Item


def rows_of(table: TableDesign, entity: EntityDesign) -> list[Row]:
    assert entity.primary is not None
    identity = entity.primary.partition
    rows: dict[tuple[Any, ...], Row] = {}
    for number in range(_ITEMS):
        values: dict[str, Any] = {}
        for at, field in enumerate(entity.fields):
            alone = field.name == identity[-1] or (len(identity) == 1 and field.name in identity)
            step = number if alone else (number * (at + 1) + number // 3) % 4
            values[field.name] = (
                None if field.nullable and (number + at) % 3 == 0 else value_of(field, step)[0]
            )
        told = tuple(values[name] for name in identity)
        if told not in rows:
            rows[told] = Row(entity.name, values, item_of(table, entity, values))
    return list(rows.values())


def item_of(
    table: TableDesign,
    entity: EntityDesign,
    values: Mapping[str, Any],
) -> Item:
    item: Item = {}
    assert entity.primary is not None
    identity = str([values[name] for name in entity.primary.partition])
    keyed = {name for key in (entity.key, *entity.keys) if key is not None for name in key.fields}
    for field in entity.fields:
        value = values[field.name]
        if value is not None:
            stored = stored_of(field, value)
            if "S" in stored and field.type == "text" and field.name not in keyed and not field.choices:
                stored = {"S": stored["S"] + "x" * (150 * (crc32(identity.encode()) % 4))}
            item[field.attribute] = stored
    if table.settings.tag is not None:
        item[table.settings.tag] = {"S": entity.tag}
    assert entity.key is not None
    for source in entity.key.sources:
        item[source.attribute] = rendered(entity, source, values, entity.key)
    for key in entity.keys:
        if any(values[name] is None for name in key.fields if not any(m.field == name for m in key.members)):
            continue
        if all(is_one_of(entity, values, m.field, m.values) for m in key.members):
            for source in key.sources:
                item[source.attribute] = rendered(entity, source, values, key)
    return item


def is_one_of(
    entity: EntityDesign, values: Mapping[str, Any], name: str, allowed: tuple[Value | None, ...]
) -> bool:
    value = values[name]
    return (None if value is None else stored_of(entity.field(name), value)) in allowed


def rendered(
    entity: EntityDesign,
    source: SourceDesign,
    values: Mapping[str, Any],
    key: KeyDesign,
) -> Value:
    if source.template is None:
        assert source.field is not None
        return stored_of(entity.field(source.field), values[source.field])
    bound = entity.bind_template(source)
    assert bound is not None
    if key.shards is not None and SHARD not in values:
        assert entity.primary is not None
        told = "".join(str(values[name]) for name in entity.primary.partition)
        values = {**values, SHARD: crc32(told.encode()) % key.shards.count}
    return {"S": bound.render(values)}


def value_of(field: FieldDesign, step: int) -> tuple[Any, Value]:
    value: Any
    if field.choices:
        value = field.choices[step % len(field.choices)]
    elif field.key_kind is None and field.type not in ("datetime",):
        value = _Other(_BY_TAG[field.tags[0]])
    else:
        value = {
            "text": f"{field.name}#{step:03}", "int": step * 7, "decimal": Decimal(step) / 4, "bool": step % 2 == 0,
            "datetime": _MOMENT + dt.timedelta(hours=step), "date": _MOMENT.date() + dt.timedelta(days=step),
            "uuid": UUID(int=step),
        }.get(field.key_kind or "", _Other(_BY_TAG[field.tags[0]]))  # fmt: skip
    return value, stored_of(field, value)


@dataclass(frozen=True, slots=True)
class _Other:
    """A value that no key holds, as it is stored."""

    stored: Value


def stored_of(field: FieldDesign, value: Any) -> Value:
    if isinstance(value, _Other):
        return value.stored
    if field.choices:
        return {"S": value} if isinstance(value, str) else {"N": str(value)}
    if field.key_kind == "datetime" and field.tags == ("N",):
        return {"N": str(int(value.timestamp()))}
    return converter_for(TYPES[field.key_kind or field.type]).encode(value)
