"""Sizes: the bytes of an entity's items and of their index entries, as far as a design says them.

Whatever a design declares counts first: `item_bytes` of a pattern or a write, then a field's `typical_bytes`; what
nobody said is guessed from the field's type, as if every field were there. Where the whole is declared and the
parts are not, the parts whose size nobody knows share what is left, so that index entries fit the item they come from.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import ceil, inf
from typing import Any
from uuid import UUID

from tavola.design.cost.kept import Kept
from tavola.errors import TavolaError
from tavola.keys import part_for
from tavola.limits import ITEM_BYTES_MAX, REPLICA_OVERHEAD_BYTES, STORAGE_OVERHEAD_BYTES
from tavola.model.document import (
    EntityDesign,
    FieldDesign,
    IndexDesign,
    SourceDesign,
    TableDesign,
    TableSettings,
)
from tavola.values import text_size

VERSION_ATTRIBUTE = "_version"  # of an item whose entity's schema is past its first version

_TEXT_BYTES = 20
_ELEMENTS = 5  # of a list, a set or a map that nobody measured
_BYTES_OF_TYPE = {
    "int": 3,
    "decimal": 5,
    "float": 10,
    "bool": 1,
    "datetime": 27,
    "date": 10,
    "uuid": 36,
    "bytes": 200,
}
_BYTES_OF_TAG = {"N": 6, "BOOL": 1, "NULL": 1, "B": 200, "S": _TEXT_BYTES}
_ELASTIC = frozenset({"S", "B", "M", "L", "SS", "NS", "BS"})  # what may be of any size
_SAMPLES: dict[str, Any] = {
    "int": 1,
    "decimal": Decimal("0.5"),
    "datetime": datetime.datetime(2026, 8, 1, 12, 30, 15, 250_000, tzinfo=datetime.UTC),
    "date": datetime.date(2026, 8, 1),
    "bool": True,
    "uuid": UUID(int=0),
}


@dataclass(frozen=True, slots=True)
class ItemSize:
    """What an item of an entity weighs, and which attribute how much of it, its name included."""

    total: int
    attributes: Mapping[str, float]
    declared: bool  # somebody said the total; it is no guess


def value_bytes(field: FieldDesign) -> int:
    """Return the bytes of a field's value: as declared, else what its type usually takes."""
    if field.typical_bytes is not None:
        return field.typical_bytes
    if field.choices:
        return ceil(sum(text_size(str(choice)) for choice in field.choices) / len(field.choices))
    if field.tags == ("N",):
        return _BYTES_OF_TAG["N"] if field.type == "datetime" else _BYTES_OF_TYPE.get(field.type, 6)
    if field.type in _BYTES_OF_TYPE:
        return _BYTES_OF_TYPE[field.type]
    tag = field.tags[0] if field.tags else "S"
    most = field.length_max
    if tag in ("L", "M", "SS", "NS", "BS"):
        elements = _ELEMENTS if most is None else min(_ELEMENTS, most)
        return 3 + elements * (1 + _TEXT_BYTES + (8 if tag == "M" else 0))
    size = _BYTES_OF_TAG.get(tag, _TEXT_BYTES)
    return size if most is None else min(size, most)


def item_size(table: TableDesign, entity: EntityDesign, item_bytes: int | None = None) -> ItemSize:
    """Return what an item of an entity weighs in its table.

    `item_bytes` says the whole for one write or read; without it, what the design declares for the entity's items.
    """
    # Of the table the settings decide alone, which stay where an entity of it is changed.
    return _sizes.of(
        (table.settings, entity), item_bytes, lambda: _weighed(table.settings, entity, item_bytes)
    )


_sizes: Kept[ItemSize] = Kept(4096)


def _weighed(settings: TableSettings, entity: EntityDesign, item_bytes: int | None) -> ItemSize:
    whole = declared_bytes(entity) if item_bytes is None else item_bytes
    fixed, elastic = _attributes(settings, entity)
    guess = sum(fixed.values()) + sum(elastic.values())
    if whole is None:
        return ItemSize(min(ITEM_BYTES_MAX, ceil(guess)), fixed | elastic, declared=False)
    least = {name: min(size, text_size(name) + 1.0) for name, size in elastic.items()}
    bound = sum(fixed.values()) + sum(least.values())
    if whole >= bound:
        parts = _shared(entity, elastic, least, whole - sum(fixed.values()))
        return ItemSize(whole, fixed | parts, declared=True)
    share = whole / bound  # less than its parts would have: all of them are smaller than they were taken for
    return ItemSize(whole, {name: size * share for name, size in (fixed | least).items()}, declared=True)


def item_bytes(table: TableDesign, entity: EntityDesign) -> int:
    """Return the bytes of an entity's item, as requests count them."""
    return item_size(table, entity).total


def declared_bytes(entity: EntityDesign) -> int | None:
    """Return the item size that a design declares for an entity, the largest that it says; None if none."""
    told = [write.item_bytes for write in entity.writes]
    told += [
        pattern.access.item_bytes
        for pattern in (entity.primary, *entity.patterns)
        if pattern is not None and pattern.index is None and pattern.access is not None
    ]
    return max((each for each in told if each is not None), default=None)


def projected(table: TableDesign, index: IndexDesign, names: Iterable[str]) -> tuple[str, ...]:
    """Return which of these attributes stand in an index's entries: its key, the table's, and what it projects."""
    held = table.projected_attributes(index)
    return tuple(name for name in names if held is None or name in held)


def entry_bytes(
    table: TableDesign, entity: EntityDesign, index: IndexDesign, item_bytes: int | None = None
) -> int:
    """Return the bytes of an entity's entry in an index, as reads and writes of the index count them.

    A pattern on the index that says how large its items are is believed, unless the index holds whole items.
    """
    if index.projection != "ALL":
        told = [
            pattern.access.item_bytes
            for pattern in entity.patterns
            if pattern.index == index.name and pattern.access is not None and not pattern.hydrate
        ]
        declared = max((each for each in told if each is not None), default=None)
        if declared is not None:
            return declared
    return modelled_entry_bytes(table, entity, index, item_bytes)


def modelled_entry_bytes(
    table: TableDesign, entity: EntityDesign, index: IndexDesign, item_bytes: int | None = None
) -> int:
    """Return the same from the attributes that the index projects, whatever a pattern says of its size."""
    size = item_size(table, entity, item_bytes)
    if index.projection == "ALL":
        return size.total
    held = projected(table, index, size.attributes)
    return max(1, ceil(round(sum(size.attributes[name] for name in held), 6)))


def stored_item_bytes(table: TableDesign, entity: EntityDesign) -> int:
    """Return what an item is billed for as storage: itself and what DynamoDB adds."""
    more = REPLICA_OVERHEAD_BYTES if table.settings.replicas else 0
    return item_bytes(table, entity) + STORAGE_OVERHEAD_BYTES + more


def stored_entry_bytes(table: TableDesign, entity: EntityDesign, index: IndexDesign) -> int:
    """Return what an index entry is billed for as storage."""
    return entry_bytes(table, entity, index) + STORAGE_OVERHEAD_BYTES


def _attributes(settings: TableSettings, entity: EntityDesign) -> tuple[dict[str, float], dict[str, float]]:
    """Return the attributes of an item with their bytes: those that are of one size, and those of any."""
    fixed: dict[str, float] = {}
    elastic: dict[str, float] = {}
    for field in entity.fields:
        size = text_size(field.attribute) + value_bytes(field)
        known = field.typical_bytes is not None or field.choices or field.key_kind not in (None, "text")
        stretches = not known and bool(_ELASTIC & set(field.tags)) and field.type not in _BYTES_OF_TYPE
        (elastic if stretches else fixed)[field.attribute] = size
    keyed = {name for key in (entity.key, *entity.keys) if key is not None for name in key.fields}
    short = {field.attribute for field in entity.fields if field.name in keyed and field.attribute in elastic}
    if short < elastic.keys():  # what stands in a key is short, and the rest is what makes an item large
        fixed |= {name: elastic.pop(name) for name in sorted(short)}
    for key in (entity.key, *entity.keys):
        for source in key.sources if key is not None else ():
            if source.template is not None:
                fixed[source.attribute] = text_size(source.attribute) + _rendered_bytes(entity, source)
                elastic.pop(source.attribute, None)
    if settings.tag is not None and settings.tag not in fixed and settings.tag not in elastic:
        fixed[settings.tag] = text_size(settings.tag) + text_size(entity.tag)
    if entity.version > 1:
        fixed[VERSION_ATTRIBUTE] = text_size(VERSION_ATTRIBUTE) + 2
    return fixed, elastic


def _shared(
    entity: EntityDesign, elastic: Mapping[str, float], least: Mapping[str, float], left: float
) -> dict[str, float]:
    """Return what is left of an item, shared among the attributes whose size nobody knows, in proportion.

    A text that a key is made of is short, and so is one whose length is bounded: they take no more than they can hold
    while another can take it. With more to share, none becomes smaller: that a larger item costs less cannot be.
    """
    usual = sum(elastic.values())
    if left < usual:
        above = (left - sum(least.values())) / (usual - sum(least.values()))
        return {name: least[name] + (size - least[name]) * above for name, size in elastic.items()}
    keyed = {name for key in (entity.key, *entity.keys) if key is not None for name in key.fields}
    most = {
        field.attribute: (
            elastic[field.attribute]
            if field.name in keyed
            else float(text_size(field.attribute) + field.length_max)
            if field.length_max is not None and field.tags == ("S",)
            else inf
        )
        for field in entity.fields
        if field.attribute in elastic
    }
    beyond = left - sum(most.values())
    if beyond > 0:  # than all of them can hold
        return {name: most[name] + beyond * size / usual for name, size in elastic.items()}
    told: dict[str, float] = {}
    rest = dict(elastic)
    while rest:
        share = left / sum(rest.values())
        full = {name for name in rest if rest[name] * share > most[name]}
        if not full:
            break
        told |= {name: most[name] for name in full}
        left -= sum(most[name] for name in full)
        rest = {name: size for name, size in rest.items() if name not in full}
    return told | {name: size * share for name, size in rest.items()}


def _rendered_bytes(entity: EntityDesign, source: SourceDesign) -> int:
    """Return the bytes of a key that a template makes."""
    assert source.template is not None
    known = {field.name: field for field in entity.fields}
    size = 0
    for segment in source.template.segments:
        if isinstance(segment, str):
            size += text_size(segment)
        elif segment.field in known:
            size += _part_bytes(known[segment.field], segment.spec)
        else:
            size += 2  # a shard's number
    return size


def _part_bytes(field: FieldDesign, spec: str) -> int:
    """Return the bytes of a field's value as a key has it: numbers and times are written out there."""
    sample = _SAMPLES.get(field.key_kind or "")
    if sample is None or field.choices:
        return value_bytes(field)
    try:
        return text_size(part_for(field.key_kind or "text", spec).encode(sample))
    except TavolaError:  # a place that the sample does not fit
        return value_bytes(field)
