"""Binding: from an entity's declarations to its shape, refusing what cannot work.

Everything is checked that can be known without an item: that templates name fields, that what may be absent
feeds only sparse indexes, that what a pattern gives is in its index, that no two entities of a table can meet
on one key. Each refusal names the class, the part and the remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tavola.model.admission import distinct_keys, register_entity
from tavola.model.base import EntityBase
from tavola.model.errors import ModelError
from tavola.model.fields import field_shapes
from tavola.model.index_keys import bind_query
from tavola.model.key_sources import KeyBinder
from tavola.model.primary_keys import bind_primary
from tavola.model.queries import PrimaryKey, Query
from tavola.model.shapes import SHARD, KeySource, Shape
from tavola.model.tables import Table
from tavola.model.uniques import bind_uniques
from tavola.model.views import check_whole_entities

if TYPE_CHECKING:
    from tavola.model.access import WritePattern


def bind(
    cls: type[EntityBase],
    table: type[Table] | None,
    nested: Mapping[str, type],
    *,
    tag: str,
    version: int,
    upgrades: Mapping[int, Callable[..., Any]],
    policy: str,
    writes: tuple[WritePattern, ...],
    immutable: bool = False,
) -> Shape:
    """Return the shape of an entity, and make it known to its table."""
    fields = field_shapes(cls, table)
    shape = Shape(
        tag, cls, table, fields, None, {}, version, dict(upgrades), policy, writes, immutable=immutable
    )
    shape.by_attribute = {found.attribute: found for found in fields.values()}
    shape.absences = tuple(
        (found.name, found.absent)
        for found in fields.values()
        if found.absent is not None or (found.nullable and found.required)
    )
    shape.lock = next((found for found in fields.values() if found.lock), None)
    keys = [(name, found) for name, found in nested.items() if issubclass(found, PrimaryKey)]
    if len(keys) > 1:
        raise ModelError(cls.__name__, f"{keys[0][0]} and {keys[1][0]} are both a PrimaryKey; leave one out")
    if not keys:
        if nested:
            raise ModelError(
                cls.__name__, "it has patterns and no Key; declare class Key(PrimaryKey[…], pk=…)"
            )
        if writes and table is not None:
            raise ModelError(
                cls.__name__,
                "it has a table, writes= and no Key, so nothing is written as it; declare one, or leave the table "
                "out until its key is found",
            )
        shape.table = None
        return shape
    assert table is not None
    name, key = keys[0]
    shape.key = key.__pattern__ = bind_primary(KeyBinder(cls, table, fields, name), key.__declared__)
    for name, found in nested.items():
        if issubclass(found, Query):
            pattern = bind_query(KeyBinder(cls, table, fields, name), found.__declared__, shape.key, key)
            shape.patterns[name] = found.__pattern__ = pattern
            if pattern.result == cls.__name__:
                check_whole_entities(pattern, shape)
    shape.keys = distinct_keys(cls, shape.patterns)
    shape.told_by_keys = _fields_in_keys(shape)
    bind_uniques(shape)
    register_entity(shape)
    return shape


def _fields_in_keys(shape: Shape) -> tuple[tuple[str, tuple[KeySource, ...]], ...]:
    """Return the fields that can be read back out of keys, for items of others who did not store them again.

    A key of an index tells only what no item can be without: of anything else, absence may be what is meant.
    """
    assert shape.key is not None
    primary = shape.key.key.sources
    sources: dict[str, tuple[KeySource, ...]] = {}
    for source in (*primary, *(source for key in shape.keys for source in key.written)):
        if source.template is None:
            continue
        for name in source.fields:
            if name == SHARD or name in source.template.lossy_fields:
                continue
            if source in primary or shape.fields[name].is_required:
                sources[name] = (*sources.get(name, ()), source)
    return tuple(sources.items())
