"""Estimates of item and index entry sizes, from what a design declares.

The only estimator: cost, lint, simulation, solver and deployment plans all use it. A declared size comes first: `item_bytes` of
a pattern or a write, then `typical_bytes` of a field. Everything else is guessed from the field's type, as if every optional
field were present. If the item's total is declared and its parts are not, the fields of unknown size share what the
others leave, so that the entries of an index never add up to more than the item they are projected from.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import ceil, inf
from typing import Any
from uuid import UUID

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
from tavola.model.identity_cache import IdentityCache
from tavola.values import text_size

VERSION_ATTRIBUTE = "_version"  # written to items whose entity has a schema version above 1

_TEXT_BYTES = 20
_ELEMENTS = 5  # assumed length of a list, a set or a map
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
_ELASTIC = frozenset({"S", "B", "M", "L", "SS", "NS", "BS"})  # types without a typical size
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
    """The estimated size of an item, and of each attribute with its name."""

    total: int
    attributes: Mapping[str, float]
    declared: bool  # the total is declared in the design, not guessed


def value_bytes(field: FieldDesign) -> int:
    """Return the size of a field's value: as declared, else typical for its type."""
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
    """Return the estimated size of an entity's item.

    `item_bytes` overrides the total that the design declares, for one read or write pattern.
    """
    # Only the settings of the table matter, so the cache survives changes to its other entities.
    return _item_sizes.get_or_compute(
        (table.settings, entity), item_bytes, lambda: _estimate_item(table.settings, entity, item_bytes)
    )


_item_sizes: IdentityCache[ItemSize] = IdentityCache(4096)


def _estimate_item(settings: TableSettings, entity: EntityDesign, item_bytes: int | None) -> ItemSize:
    declared_total = declared_item_bytes(entity) if item_bytes is None else item_bytes
    fixed, elastic = _attribute_bytes(settings, entity)
    guess = sum(fixed.values()) + sum(elastic.values())
    if declared_total is None:
        return ItemSize(min(ITEM_BYTES_MAX, ceil(guess)), fixed | elastic, declared=False)
    least = {name: min(size, text_size(name) + 1.0) for name, size in elastic.items()}
    bound = sum(fixed.values()) + sum(least.values())
    if declared_total >= bound:
        parts = _distribute_rest(entity, elastic, least, declared_total - sum(fixed.values()))
        return ItemSize(declared_total, fixed | parts, declared=True)
    share = (
        declared_total / bound
    )  # the declared total is below the sum of the guesses: scale every part down
    return ItemSize(
        declared_total, {name: size * share for name, size in (fixed | least).items()}, declared=True
    )


def item_bytes(table: TableDesign, entity: EntityDesign) -> int:
    """Return the size of an entity's item, as capacity units are counted from it."""
    return item_size(table, entity).total


def declared_item_bytes(entity: EntityDesign) -> int | None:
    """Return the largest item size that the design declares for an entity; None if it declares none."""
    sizes = [write.item_bytes for write in entity.writes]
    sizes += [
        pattern.access.item_bytes
        for pattern in (entity.primary, *entity.patterns)
        if pattern is not None and pattern.index is None and pattern.access is not None
    ]
    return max((size for size in sizes if size is not None), default=None)


def projected_names(table: TableDesign, index: IndexDesign, names: Iterable[str]) -> tuple[str, ...]:
    """Return the attributes that an index holds: its key, the table's key, and the projected ones."""
    held = table.projected_attributes(index)
    return tuple(name for name in names if held is None or name in held)


def entry_bytes(
    table: TableDesign, entity: EntityDesign, index: IndexDesign, item_bytes: int | None = None
) -> int:
    """Return the size of an entity's entry in an index.

    Unless the index projects all attributes, a size declared by a pattern on the index takes precedence.
    """
    if index.projection != "ALL":
        sizes = [
            pattern.access.item_bytes
            for pattern in entity.patterns
            if pattern.index == index.name and pattern.access is not None and not pattern.hydrate
        ]
        declared = max((size for size in sizes if size is not None), default=None)
        if declared is not None:
            return declared
    return modelled_entry_bytes(table, entity, index, item_bytes)


def modelled_entry_bytes(
    table: TableDesign, entity: EntityDesign, index: IndexDesign, item_bytes: int | None = None
) -> int:
    """Return the size of an index entry computed from its projected attributes, ignoring sizes declared by patterns."""
    size = item_size(table, entity, item_bytes)
    if index.projection == "ALL":
        return size.total
    held = projected_names(table, index, size.attributes)
    return max(1, ceil(round(sum(size.attributes[name] for name in held), 6)))


def stored_item_bytes(table: TableDesign, entity: EntityDesign) -> int:
    """Return the billed storage of an item, including DynamoDB's overhead."""
    replica_bytes = REPLICA_OVERHEAD_BYTES if table.settings.replicas else 0
    return item_bytes(table, entity) + STORAGE_OVERHEAD_BYTES + replica_bytes


def stored_entry_bytes(table: TableDesign, entity: EntityDesign, index: IndexDesign) -> int:
    """Return the billed storage of an index entry."""
    return entry_bytes(table, entity, index) + STORAGE_OVERHEAD_BYTES


def _attribute_bytes(
    settings: TableSettings, entity: EntityDesign
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the size of each attribute in two groups: of fixed size, and elastic (of any size)."""
    fixed: dict[str, float] = {}
    elastic: dict[str, float] = {}
    for field in entity.fields:
        size = text_size(field.attribute) + value_bytes(field)
        known = field.typical_bytes is not None or field.choices or field.key_kind not in (None, "text")
        is_elastic = not known and bool(_ELASTIC & set(field.tags)) and field.type not in _BYTES_OF_TYPE
        (elastic if is_elastic else fixed)[field.attribute] = size
    keyed = {name for key in (entity.key, *entity.keys) if key is not None for name in key.fields}
    short = {field.attribute for field in entity.fields if field.name in keyed and field.attribute in elastic}
    if short < elastic.keys():  # key fields are short; the others make an item large
        fixed |= {name: elastic.pop(name) for name in sorted(short)}
    for key in (entity.key, *entity.keys):
        for source in key.sources if key is not None else ():
            if source.template is not None:
                fixed[source.attribute] = text_size(source.attribute) + _template_bytes(entity, source)
                elastic.pop(source.attribute, None)
    if settings.tag is not None and settings.tag not in fixed and settings.tag not in elastic:
        fixed[settings.tag] = text_size(settings.tag) + text_size(entity.tag)
    if entity.version > 1:
        fixed[VERSION_ATTRIBUTE] = text_size(VERSION_ATTRIBUTE) + 2
    return fixed, elastic


def _distribute_rest(
    entity: EntityDesign, elastic: Mapping[str, float], least: Mapping[str, float], left: float
) -> dict[str, float]:
    """Return the elastic attributes with `left` bytes distributed among them, in proportion to their typical sizes.

    A field used in a key, or with a maximum length, takes no more than it can hold while another can take the rest.
    A larger `left` never makes an attribute smaller; otherwise a larger item could cost less.
    """
    usual = sum(elastic.values())
    if left < usual:
        above = (left - sum(least.values())) / (usual - sum(least.values()))
        return {name: least[name] + (size - least[name]) * above for name, size in elastic.items()}
    keyed = {name for key in (entity.key, *entity.keys) if key is not None for name in key.fields}
    limits = {
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
    beyond = left - sum(limits.values())
    if beyond > 0:  # more than all of them can hold
        return {name: limits[name] + beyond * size / usual for name, size in elastic.items()}
    full_sizes: dict[str, float] = {}
    rest = dict(elastic)
    while rest:
        share = left / sum(rest.values())
        full = {name for name in rest if rest[name] * share > limits[name]}
        if not full:
            break
        full_sizes |= {name: limits[name] for name in full}
        left -= sum(limits[name] for name in full)
        rest = {name: size for name, size in rest.items() if name not in full}
    return full_sizes | {name: size * share for name, size in rest.items()}


def _template_bytes(entity: EntityDesign, source: SourceDesign) -> int:
    """Return the size of a key rendered from a template."""
    assert source.template is not None
    known = {field.name: field for field in entity.fields}
    size = 0
    for segment in source.template.segments:
        if isinstance(segment, str):
            size += text_size(segment)
        elif segment.field in known:
            size += _part_bytes(known[segment.field], segment.spec)
        else:
            size += 2  # a shard number
    return size


def _part_bytes(field: FieldDesign, spec: str) -> int:
    """Return the size of a field's value inside a key, where numbers and times are text."""
    sample = _SAMPLES.get(field.key_kind or "")
    if sample is None or field.choices:
        return value_bytes(field)
    try:
        return text_size(part_for(field.key_kind or "text", spec).encode(sample))
    except TavolaError:  # the format does not fit the sample
        return value_bytes(field)
