"""Fixes that drop an index, change its projection, or add one for a need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tavola.design.cost.alterations import (
    needed_attributes,
    with_entity,
    with_narrow_projection,
    with_short_names,
    with_table,
    without_index,
)
from tavola.design.findings import Finding
from tavola.design.lint.remedies.proposal import (
    Fixer,
    Proposal,
    entity_at,
    index_at,
    need_at,
    pattern_at,
)
from tavola.keys import Template
from tavola.limits import MULTI_KEY_ATTRIBUTES_MAX
from tavola.model import SHARD
from tavola.model.document import (
    AccessPattern,
    Design,
    EntityDesign,
    FieldDesign,
    IndexDesign,
    KeyDesign,
    Shards,
    SourceDesign,
    TableDesign,
)

_KEY_TAGS = ("S", "N", "B")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The key of an index to add: partition fields, then sort fields."""

    partition: tuple[str, ...]
    sorts: tuple[str, ...]
    access: AccessPattern | None = None
    shards: int = 1


def with_index(
    design: Design, table: TableDesign, entity: EntityDesign, wanted: Wanted
) -> tuple[Design, IndexDesign] | None:
    """Return a design with one more index for an entity; None if the fields cannot form a key.

    The key uses the items' own attributes, so that nothing is stored twice. Without a partition field, templates make a constant
    partition key, sharded if requested.
    """
    known = {field.name: field for field in entity.fields}
    fields = [known.get(name) for name in (*wanted.partition, *wanted.sorts)]
    if any(field is None or len(field.tags) != 1 or field.tags[0] not in _KEY_TAGS for field in fields):
        return None
    if max(len(wanted.partition), len(wanted.sorts)) > MULTI_KEY_ATTRIBUTES_MAX:
        return None
    found = [field for field in fields if field is not None]
    name = _unused_name(
        "_".join(("by", *(wanted.partition or wanted.sorts))), [each.name for each in table.indexes]
    )
    own = found[: len(wanted.partition)], found[len(wanted.partition) :]
    key = (
        _own_key(name, *own)
        if wanted.partition
        else _templated_key(table, entity, name, wanted, any(field.nullable for field in found))
    )
    hash_, range_ = (tuple(source.attribute for source in half) for half in (key.hash, key.range))
    index = IndexDesign(
        name,
        name,
        local=False,
        hash=hash_,
        range=range_,
        projection=_projection_for(table, entity, (*hash_, *range_), wanted.access),
        native=bool(wanted.partition),
    )
    types = {**table.key_types, **{source.attribute: source.tag for source in key.sources}}
    changed = with_entity(table, replace(entity, keys=(*entity.keys, key)))
    return with_table(design, replace(changed, indexes=(*table.indexes, index), key_types=types)), index


def _own_key(name: str, partition: Sequence[FieldDesign], sorts: Sequence[FieldDesign]) -> KeyDesign:
    def source(field: FieldDesign) -> SourceDesign:
        tag = next(tag for tag in _KEY_TAGS if tag in field.tags)
        return SourceDesign(field.attribute, tag, field=field.name)  # type: ignore[arg-type]  # one of the three

    sparse = any(field.nullable for field in (*partition, *sorts))
    return KeyDesign(name, tuple(map(source, partition)), tuple(map(source, sorts)), sparse=sparse)


def _templated_key(
    table: TableDesign, entity: EntityDesign, name: str, wanted: Wanted, sparse: bool
) -> KeyDesign:
    mark = table.settings.delimiter
    number = 1 + sum(1 for index in table.indexes if not index.local)
    while f"GSI{number}PK" in table.key_types:
        number += 1
    constant = (entity.tag or entity.name).upper()
    text = f"{constant}{mark}{{{SHARD}:04}}" if wanted.shards > 1 else constant
    sort = mark.join(f"{{{field}}}" for field in wanted.sorts)
    return KeyDesign(
        name,
        (SourceDesign(f"GSI{number}PK", "S", template=Template.parse(text, mark)),),
        (SourceDesign(f"GSI{number}SK", "S", template=Template.parse(sort, mark)),) if sort else (),
        sparse=sparse,
        shards=Shards(wanted.shards) if wanted.shards > 1 else None,
    )


def _projection_for(
    table: TableDesign, entity: EntityDesign, keys: Sequence[str], access: AccessPattern | None
) -> tuple[str, ...] | Literal["ALL", "KEYS_ONLY"]:
    """Return the attributes that a need uses, if it declares them; else ALL."""
    if access is None or not access.reads:
        return "ALL"
    wanted = {*access.reads, *access.filters}
    held = {*keys, *table.settings.key_names}
    names = [
        field.attribute for field in entity.fields if field.name in wanted and field.attribute not in held
    ]
    tag = table.settings.tag
    return tuple(dict.fromkeys([*([tag] if tag else []), *names])) or "KEYS_ONLY"


def _unused_name(name: str, taken: Sequence[str]) -> str:
    number, found = 2, name
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def _drop_index(design: Design, finding: Finding) -> Iterator[Proposal]:
    found = index_at(design, finding)
    if found is None:
        return
    table, index = found
    rest = without_index(table, index)
    used = {*table.settings.key_names, *(name for each in rest.indexes for name in each.attributes)}
    types = {name: tag for name, tag in table.key_types.items() if name in used}
    yield Proposal(
        with_table(design, replace(rest, key_types=types)),
        f"{index.name} is gone, and writes no longer pay for it; DynamoDB drops it in place",
    )


def _narrow_projection(design: Design, finding: Finding) -> Iterator[Proposal]:
    found = index_at(design, finding)
    needed = None if found is None else needed_attributes(design, *found)
    if found is None or needed is None:
        return
    thin = with_narrow_projection(*found, needed)
    if thin is not None:
        yield Proposal(
            with_table(design, thin),
            f"{found[1].name} holds what is read of it alone; a projection cannot be changed in place, so the index is built anew",
        )


def _widen_projection(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield the index with the attributes that a need reads and the index lacks."""
    asked, need = pattern_at(design, finding), need_at(design, finding)
    if asked is not None:
        table, entity, pattern = asked
        name, access, result = pattern.index, pattern.access, pattern.result
    elif need is not None and need.route is not None:
        home = next(
            (
                (table, each)
                for table in design.tables
                for each in table.entities
                if each.name in need.entities
            ),
            None,
        )
        if home is None:
            return
        (table, entity), name, access, result = home, need.route.index, need.access, ""
    else:
        return
    index = next((each for each in table.indexes if each.name == name), None)
    held = None if index is None else table.projected_attributes(index)
    if index is None or held is None:
        return
    view = next((view for view in design.views if view.name == result), entity)
    reads = access.reads if access is not None and access.reads else tuple(each.name for each in view.fields)
    before = () if isinstance(index.projection, str) else index.projection
    lacking = [
        field.attribute for field in entity.fields if field.name in reads and field.attribute not in held
    ]
    wide = replace(index, projection=(*before, *lacking))
    indexes = tuple(wide if each.name == index.name else each for each in table.indexes)
    yield Proposal(
        with_table(design, replace(table, indexes=indexes)),
        f"{index.name} holds {' and '.join(lacking)} too; a projection cannot be changed in place, so the index is built anew",
    )


def _shorten_names(design: Design, finding: Finding) -> Iterator[Proposal]:
    home = entity_at(design, finding)
    if home is not None:
        yield Proposal(
            with_table(design, with_short_names(home[0])),
            "attributes have names of two letters in the table and keep their own in the program; items that stand are to be written anew",
        )


FIXERS: dict[str, Fixer] = {
    "long-attribute-names": _shorten_names,
    "projection-carries": _narrow_projection,
    "projection-lacks": _widen_projection,
    "unused-index": _drop_index,
}
