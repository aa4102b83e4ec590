"""Capacity: the units of one request, at the table and at each index that it touches.

A read costs units where it reads: in the table, in an index, or in both if items found through an index are fetched. A
write costs units in the table and in each index whose entry it adds, moves, changes or removes. `traffic` multiplies by
the rates. The arithmetic of units is the engine's own (`tavola.values`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from tavola.design.access_paths import shards_to_read
from tavola.model.document import (
    AccessPattern,
    CollectionDesign,
    Design,
    EntityDesign,
    IndexDesign,
    KeyDesign,
    Membership,
    Need,
    PatternDesign,
    TableDesign,
    WritePattern,
)
from tavola.model.sizes import entry_bytes, item_bytes
from tavola.values import (
    Value,
    index_units,
    read_units,
    transact_read_units,
    transact_write_units,
    write_units,
)

EffectKind = Literal["added", "removed", "entered", "moved", "changed", "untouched"]

SPARSE_SHARE = 0.1  # assumed share of an entity's items that are in a sparse index

_GUARD_BYTES = 120  # size of the item that reserves a unique value, without its key


@dataclass(frozen=True, slots=True)
class RequestUnits:
    """The units of one request at one place: a table, or one of its indexes."""

    table: str
    index: str | None  # None: the table itself
    read: float = 0.0
    write: float = 0.0
    transacted: float = 0.0  # the part that a transaction adds
    moved: float = 0.0  # the part for rewriting an index entry whose key changes


@dataclass(frozen=True, slots=True)
class IndexEffect:
    """What one write does to its item's entry in one index."""

    index: str
    kind: EffectKind  # `entered`: the item enters or leaves a sparse index
    entry_bytes: int
    units: float  # mean over all items: not all are in a sparse index
    moved: float = 0.0  # the part for a changed key


def pattern_units(
    table: TableDesign, entity: EntityDesign, pattern: PatternDesign
) -> tuple[RequestUnits, ...]:
    """Return the units of one call of a key or query, for the table and the index separately.

    An undeclared number of items counts as one. Filters save nothing: `items` is what is read.
    """
    access = pattern.access or AccessPattern(pattern.name)
    items = 1 if access.items is None else access.items
    if pattern == entity.primary:
        size = access.item_bytes or item_bytes(table, entity)
        return (_fetch_units(table, size, max(1, items), access),)
    if pattern.index is None:
        size = access.item_bytes or item_bytes(table, entity)
        shards = shards_to_read(entity.key, pattern.partition)
        consistent = access.consistent
        return (
            RequestUnits(
                table.name,
                None,
                read=_sharded_read_units(items, size, shards, pattern, consistent=consistent),
            ),
        )
    index = table.index(pattern.index)
    full_bytes = item_bytes(table, entity)
    entry = entry_bytes(table, entity, index)
    if access.item_bytes is not None and not pattern.hydrate:
        entry = access.item_bytes
    shards = shards_to_read(entity.key_on(index.name), pattern.partition)
    consistent = access.consistent and index.local
    units = [
        RequestUnits(
            table.name,
            index.name,
            read=_sharded_read_units(items, entry, shards, pattern, consistent=consistent),
        )
    ]
    if pattern.hydrate:
        size = access.item_bytes or full_bytes
        units.append(
            RequestUnits(table.name, None, read=items * read_units(size, consistent=access.consistent))
        )
    elif index.local and not _projects_all(table, entity, index, access.reads):
        units.append(
            RequestUnits(table.name, None, read=items * read_units(full_bytes, consistent=consistent))
        )
    return tuple(units)


def collection_units(table: TableDesign, collection: CollectionDesign) -> tuple[RequestUnits, ...]:
    """Return the units of fetching a collection once, with one query."""
    access = collection.access or AccessPattern(collection.name)
    items = len(collection.members) if access.items is None else access.items
    index = None if collection.index is None else table.index(collection.index)
    size = access.item_bytes or _mean(
        item_bytes(table, entity) if index is None else entry_bytes(table, entity, index)
        for entity in (table.entity(member.entity) for member in collection.members)
    )
    consistent = access.consistent and (index is None or index.local)
    return (RequestUnits(table.name, collection.index, read=read_units(items * size, consistent=consistent)),)


def need_units(design: Design, need: Need) -> tuple[RequestUnits, ...]:
    """Return the units of a need by its route; none for a need without a route.

    `items` counts the whole read, however many requests it takes. A scan reads as many items as it declares, else all
    items of the table.
    """
    route = need.route
    owners = [
        (table, entity)
        for table in design.tables
        for entity in table.entities
        if entity.name in need.entities and (route is None or _has_index(table, route.index))
    ]
    if route is None or not owners:
        return ()
    access = need.access or AccessPattern(need.name)
    by_table: list[RequestUnits] = []
    fetched = max(len(owners), access.items or 0, route.queries) / len(owners)  # items of each entity
    for table, entity in owners:
        index = None if route.index is None else table.index(route.index)
        items = 1 if access.items is None else access.items
        size = access.item_bytes or (
            item_bytes(table, entity) if index is None else entry_bytes(table, entity, index)
        )
        if route.operation in ("get", "batch_get"):
            by_table.append(_fetch_units(table, size, fetched, access))
        elif all(
            units.table != table.name for units in by_table
        ):  # one query returns all entities of a table
            if route.operation == "scan" and access.items is None:
                items, size = (
                    1,
                    max(
                        size,
                        sum((entity.items or 0) * item_bytes(table, entity) for entity in table.entities),
                    ),
                )
            consistent = access.consistent and (index is None or index.local)
            share = read_units(-(-items // route.queries) * size, consistent=consistent)
            by_table.append(RequestUnits(table.name, route.index, read=share * route.queries))
    return tuple(by_table)


def write_pattern_units(
    table: TableDesign, entity: EntityDesign, write: WritePattern, *, sparse_share: float = SPARSE_SHARE
) -> tuple[RequestUnits, ...]:
    """Return the units of one request of a write pattern: the table's first, then those of each index it touches.

    A transaction doubles the table's units but not those of indexes. Each unique value has a small guard item, written in the
    same transaction. Some writes read their item first (see `reads_first`). For a sparse index, the units are a mean over all
    items.
    """
    size = write.item_bytes or item_bytes(table, entity)
    guards = _count_guards(entity, write)
    transacted = write.transactional or bool(write.together) or guards > 0
    guarded = guards * transact_write_units(0, _GUARD_BYTES)
    units = (transact_write_units(size, size) if transacted else write_units(size, size)) + guarded
    many = write.items
    by_place = [
        RequestUnits(
            table.name,
            None,
            read=_extra_read_units(table, entity, write, size) * many,
            write=units * many,
            transacted=units * many / 2 if transacted else 0.0,
        )
    ]
    by_place += [
        RequestUnits(table.name, effect.index, write=effect.units * many, moved=effect.moved * many)
        for effect in index_effects(table, entity, write, sparse_share=sparse_share)
        if effect.units
    ]
    return tuple(by_place)


def index_effects(
    table: TableDesign, entity: EntityDesign, write: WritePattern, *, sparse_share: float = SPARSE_SHARE
) -> tuple[IndexEffect, ...]:
    """Return what a write does to each index that the entity may be in, with the units of one item.

    A put without `changes` creates an item; with them it replaces one, like an update. An update without declared changes
    is taken to change something in every index.
    """
    effects = []
    for index in table.indexes:
        key = entity.key_on(index.name)
        if key is None:
            continue
        size = entry_bytes(table, entity, index, write.item_bytes)
        kind = _effect_kind(table, entity, index, key, write)
        units = _effect_units(kind, size)
        decided = changed_fields(entity, write) & deciding_fields(entity, key)
        if kind == "added":
            units *= begins_in(entity, key, sparse_share)
        elif kind == "removed" or not decided:
            units *= share_in(entity, key, sparse_share)  # items outside the index have no entry to change
        else:
            effects.append(_crossing_effect(entity, index, key, decided, kind, size, sparse_share))
            continue
        effects.append(IndexEffect(index.name, kind, size, units, units / 2 if kind == "moved" else 0.0))
    return tuple(effects)


def _crossing_effect(
    entity: EntityDesign,
    index: IndexDesign,
    key: KeyDesign,
    decided: frozenset[str],
    kind: EffectKind,
    size: int,
    sparse_share: float,
) -> IndexEffect:
    """Return the effect of changing fields that decide whether an item is in an index: some items stay, enter or leave.

    `kind` is the effect on the entry of an item that is in the index before and after.
    """
    stay = before = after = 1.0
    for name in sorted(decided):
        stays, leaves, comes = _crossing_shares(entity, key, name, sparse_share)
        stay, before, after = stay * stays, before * (stays + leaves), after * (stays + comes)
    others = share_in(entity, key, sparse_share, of=deciding_fields(entity, key) - decided)
    stay, crossed = stay * others, (before + after - 2 * stay) * others
    staying_units = stay * _effect_units(kind, size)
    units = round(staying_units + crossed * _effect_units("entered", size), 9)
    moved = staying_units / 2 if kind == "moved" else 0.0
    return IndexEffect(index.name, "entered" if crossed > 0 else kind, size, units, moved)


def _crossing_shares(
    entity: EntityDesign, key: KeyDesign, name: str, sparse_share: float
) -> tuple[float, float, float]:
    """Return the shares of changes to a field after which the item stays in the index, leaves it, or enters it.

    Between choices, every change is equally likely. A field that may be absent is set: items that have a value stay.
    """
    members = next((member.values for member in key.members if member.field == name), None)
    choices = entity.field(name).choices
    if members is None:
        return sparse_share, 0.0, 1 - sparse_share
    within = len([value for value in members if value is not None])
    if not choices:
        return (sparse_share, 0.0, 1 - sparse_share) if within > 1 else (0.0, 0.0, 1.0)
    pairs = len(choices) * (len(choices) - 1)
    if not pairs:
        return 1.0, 0.0, 0.0
    across = within * (len(choices) - within) / pairs
    return within * (within - 1) / pairs, across, across


def reads_first(table: TableDesign, entity: EntityDesign, write: WritePattern) -> bool:
    """Return whether a write has to read its item first.

    It has to if something depends on fields that it does not set: an index key of which an update sets one part, or guards of
    unique values. Foreign code reads nothing.
    """
    if table.foreign or entity.key is None:
        return False
    if _changes_guards(table, entity, write):
        return True
    if entity.stale == "refuse" or write.kind != "update":
        return False
    known = {*write.changes, *entity.key.fields}
    fed = (key for key in entity.keys if set(key.fields) & {*write.changes, *write.adds})
    return any(not set(key.fields) <= known for key in fed)


def _extra_read_units(table: TableDesign, entity: EntityDesign, write: WritePattern, size: int) -> float:
    """Return the units of the reads that a write makes of its item: before it, and after an update with guards.

    Reading an item that does not exist costs the minimum. An update outside a transaction returns the new item; the
    transaction that guards need does not, so it is read again.
    """
    if not reads_first(table, entity, write):
        return 0.0
    new = write.kind == "put" and not changed_fields(entity, write)
    first = read_units(1 if new else size, consistent=True)
    is_single = not write.transactional and not write.together
    again = write.kind == "update" and is_single and _changes_guards(table, entity, write)
    return 2 * first if again else first


def _changes_guards(table: TableDesign, entity: EntityDesign, write: WritePattern) -> bool:
    """Return whether a write may add or remove guards of unique values."""
    unique = [field for field in entity.fields if field.unique]
    if write.kind != "update":
        return bool(unique)
    watched = {name for field in unique for name in (field.name, *field.within)}
    watched |= {field.name for field in entity.fields if field.attribute == table.settings.ttl and unique}
    return bool(watched & {*write.changes, *write.adds})


def changed_fields(entity: EntityDesign, write: WritePattern) -> frozenset[str]:
    """Return the fields that a write changes on an existing item; a lock field always changes."""
    changed = {*write.changes, *write.adds}
    return frozenset(changed | {field.name for field in entity.fields if field.lock} if changed else changed)


def _effect_kind(
    table: TableDesign, entity: EntityDesign, index: IndexDesign, key: KeyDesign, write: WritePattern
) -> EffectKind:
    """Return what a write does to an existing entry; for a new item, whether it may get one."""
    if write.kind == "delete":
        return "removed"
    changed = changed_fields(entity, write)
    if write.kind == "put" and not changed:
        return "added" if begins_in(entity, key, 0.5) else "untouched"
    attributes = {entity.field(name).attribute for name in changed if _has_field(entity, name)}
    if table.foreign:
        if set(write.rewrites) & set(index.attributes) or attributes & set(index.attributes):
            return "moved"
    elif changed & _key_fields(key):
        return "moved"
    if not changed or index.projection == "ALL":
        return "changed"
    if index.projection != "KEYS_ONLY" and attributes & set(index.projection):
        return "changed"
    return "untouched"


def _effect_units(kind: EffectKind, size: int) -> float:
    match kind:
        case "untouched":
            return index_units(size, size, same=True)
        case "added" | "entered":
            return index_units(None, size)
        case "removed":
            return index_units(size, None)
        case "moved":
            return index_units(size, size, moved=True)
        case "changed":
            return index_units(size, size)


def deciding_fields(entity: EntityDesign, key: KeyDesign) -> frozenset[str]:
    """Return the fields that decide whether an item is in an index at all."""
    fields = {member.field for member in key.members}
    if key.sparse:
        fields |= {name for name in key.fields if _has_field(entity, name) and entity.field(name).nullable}
    return frozenset(fields)


def _key_fields(key: KeyDesign) -> frozenset[str]:
    """Return the fields that an index key is made of, including those of its shard."""
    fields = {name for source in key.sources for name in source.fields}
    return frozenset(fields | set(key.shards.of if key.shards else ()))


def share_in(
    entity: EntityDesign,
    key: KeyDesign,
    sparse_share: float = SPARSE_SHARE,
    *,
    of: frozenset[str] | None = None,
) -> float:
    """Return the share of items in an index: by the number of choices if they decide, else the assumed share.

    `of` limits the deciding fields to consider.
    """
    decide = deciding_fields(entity, key) if of is None else of
    share = 1.0
    by_choice = set()
    for member in key.members:
        choices = entity.field(member.field).choices
        if choices and member.field in decide:
            share *= _share_of_choices(member, choices)
            by_choice.add(member.field)
    return share * sparse_share if decide - by_choice else share


def begins_in(entity: EntityDesign, key: KeyDesign, sparse_share: float = SPARSE_SHARE) -> float:
    """Return the share of new items that are in an index.

    A nullable field that an update sets later is absent at first; a choice that updates change starts with its first value.
    Fields that no update touches count as in `share_in`.
    """
    set_later = {
        name for write in entity.writes if write.kind == "update" for name in (*write.changes, *write.adds)
    }
    members = {member.field: member for member in key.members}
    share, assumed = 1.0, False
    for name in sorted(deciding_fields(entity, key)):
        field, member = entity.field(name), members.get(name)
        if name in set_later and field.nullable:
            share *= member is not None and None in member.values
        elif member is None or not field.choices:
            assumed = True
        elif name in set_later:
            share *= field.choices[0] in [_plain_value(value) for value in member.values]
        else:
            share *= _share_of_choices(member, field.choices)
    return share * sparse_share if assumed else share


def _share_of_choices(member: Membership, choices: Sequence[object]) -> float:
    return len([value for value in member.values if value is not None]) / len(choices)


def _plain_value(value: Value | None) -> object:
    """Return a member's value as choices have it."""
    if value is None:
        return None
    [(tag, plain)] = value.items()
    return Decimal(plain) if tag == "N" else plain


def _count_guards(entity: EntityDesign, write: WritePattern) -> int:
    """Return the number of guards of unique values that a write adds or removes."""
    unique = [field for field in entity.fields if field.unique]
    changed = changed_fields(entity, write)
    if write.kind == "update" or changed:  # of the old and the new value
        return 2 * len([field for field in unique if changed & {field.name, *field.within}])
    return len(unique)


def _fetch_units(table: TableDesign, size: int, items: float, access: AccessPattern) -> RequestUnits:
    """Return the units of fetching items by key, each rounded up separately."""
    if access.transactional:
        units = items * transact_read_units(size)
        return RequestUnits(table.name, None, read=units, transacted=units / 2)
    return RequestUnits(table.name, None, read=items * read_units(size, consistent=access.consistent))


def _sharded_read_units(
    items: int, size: int, shards: int, pattern: PatternDesign, *, consistent: bool
) -> float:
    """Return the units of a query over all shards, each of which costs at least half a unit.

    A sorted query may read the whole result from any one shard; without an order the shards divide it.
    """
    items_per_shard = items if shards == 1 or pattern.sorts else -(-items // shards)
    return shards * read_units(items_per_shard * size, consistent=consistent)


def _projects_all(
    table: TableDesign, entity: EntityDesign, index: IndexDesign, reads: tuple[str, ...]
) -> bool:
    """Return whether index entries have all fields that are read; without names, all fields."""
    projected = table.projected_attributes(index)
    names = reads or tuple(field.name for field in entity.fields)
    return projected is None or all(
        entity.field(name).attribute in projected for name in names if _has_field(entity, name)
    )


def _has_index(table: TableDesign, index: str | None) -> bool:
    return index is None or any(candidate.name == index for candidate in table.indexes)


def _has_field(entity: EntityDesign, name: str) -> bool:
    return any(field.name == name for field in entity.fields)


def _mean(sizes: Iterable[int]) -> int:
    values = list(sizes)
    return -(-sum(values) // len(values)) if values else 1
