"""Altered designs: a design with one change, to compute what the change would cost.

Declared sizes are adjusted: if an index projects less, the declared entry size shrinks in proportion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import ceil, floor
from string import ascii_lowercase, digits

from tavola.keys import Template
from tavola.model.document import (
    AccessPattern,
    CollectionDesign,
    Design,
    EntityDesign,
    FieldDesign,
    IndexDesign,
    KeyDesign,
    MemberDesign,
    Need,
    PatternDesign,
    Shards,
    TableDesign,
    WritePattern,
)
from tavola.model.sizes import item_bytes, item_size, modelled_entry_bytes, projected_names

_SHORT = 2  # characters of a short name


def with_table(design: Design, table: TableDesign) -> Design:
    """Return a design with the table of the same name replaced."""
    tables = tuple(table if each.name == table.name else each for each in design.tables)
    return replace(design, tables=tables)


def with_entity(table: TableDesign, entity: EntityDesign) -> TableDesign:
    """Return a table with the entity of the same name replaced."""
    return replace(
        table, entities=tuple(entity if each.name == entity.name else each for each in table.entities)
    )


def with_index(table: TableDesign, index: IndexDesign) -> TableDesign:
    """Return a table with the index of the same name replaced."""
    return replace(table, indexes=tuple(index if each.name == index.name else each for each in table.indexes))


def with_patterns(entity: EntityDesign, change: Callable[[PatternDesign], PatternDesign]) -> EntityDesign:
    """Return an entity with `change` applied to each pattern, including its key."""
    primary = None if entity.primary is None else change(entity.primary)
    return replace(entity, primary=primary, patterns=tuple(map(change, entity.patterns)))


def without_fixed_units(design: Design) -> Design:
    """Return a design without fixed capacity: provisioned tables follow their traffic."""
    tables = tuple(
        table
        if table.settings.scaling is not None
        or (table.settings.read_units is None and table.settings.write_units is None)
        else replace(table, settings=replace(table.settings, read_units=None, write_units=None))
        for table in design.tables
    )
    return design if tables == design.tables else replace(design, tables=tables)


def needed_attributes(design: Design, table: TableDesign, index: IndexDesign) -> frozenset[str] | None:
    """Return the attributes that are read from index entries; None if nothing reads the index."""
    is_read = False
    needed: set[str] = set()
    views = {view.name: view for view in design.views}
    for entity in table.entities:
        for pattern in entity.patterns:
            if pattern.index != index.name:
                continue
            is_read = True
            if not pattern.hydrate:
                needed |= {field.attribute for field in read_fields(entity, pattern, views)}
    for collection in table.collections:
        if collection.index == index.name:
            is_read = True
            for member in collection.members:
                needed |= {field.attribute for field in table.entity(member.entity).fields}
    for need in design.needs:
        if need.route is not None and need.route.index == index.name:
            is_read = True
            reads = () if need.access is None else need.access.reads
            for entity in table.entities:
                if entity.name in need.entities:
                    needed |= {field.attribute for field in entity.fields if not reads or field.name in reads}
            needed |= {given.field for given in need.route.filters}
    return frozenset(needed) if is_read else None


def read_fields(
    entity: EntityDesign, pattern: PatternDesign, views: dict[str, EntityDesign]
) -> tuple[FieldDesign, ...]:
    """Return the fields that a pattern uses: those it names, else those of its result."""
    access = pattern.access
    if access is not None and access.reads:
        used = {*access.reads, *access.filters}
        return tuple(field for field in entity.fields if field.name in used)
    return views.get(pattern.result, entity).fields


def with_narrow_projection(
    table: TableDesign, index: IndexDesign, needed: frozenset[str]
) -> TableDesign | None:
    """Return a table whose index projects only `needed`, the tag and the TTL; None if it already does."""
    settings = table.settings
    keys = {*settings.key_names, *index.attributes}
    kept = needed | {name for name in (settings.tag, settings.ttl) if name is not None}
    present = {
        name: None
        for entity in table.entities
        if entity.key_on(index.name) is not None
        for name in item_size(table, entity).attributes
    }
    projected = [name for name in projected_names(table, index, present) if name not in keys]
    narrow = tuple(name for name in projected if name in kept)
    if len(narrow) == len(projected):
        return None
    thin = replace(index, projection=narrow or "KEYS_ONLY")
    changed = with_index(table, thin)
    for entity in table.entities:
        if entity.key_on(index.name) is None:
            continue
        before = modelled_entry_bytes(table, entity, index)
        after = modelled_entry_bytes(changed, entity, thin)

        def thinner(pattern: PatternDesign, before: int = before, after: int = after) -> PatternDesign:
            if pattern.index != index.name or pattern.hydrate:
                return pattern
            return _resize_pattern(pattern, lambda size: size * after / before)

        changed = with_entity(changed, with_patterns(entity, thinner))
    return changed


def with_hydrated_queries(design: Design, table: TableDesign, index: IndexDesign) -> TableDesign | None:
    """Return a table whose index projects only keys and whose queries fetch the items; None if impossible or already so.

    Collections use what the index has, and needs have their own routes.
    """
    in_collection = any(collection.index == index.name for collection in table.collections)
    routed = any(need.route is not None and need.route.index == index.name for need in design.needs)
    if index.projection == "KEYS_ONLY" or in_collection or routed:
        return None
    thin = replace(index, projection="KEYS_ONLY")
    changed = with_index(table, thin)
    is_changed = False
    for entity in table.entities:

        def whole(pattern: PatternDesign, name: str = entity.name) -> PatternDesign:
            if pattern.index != index.name or pattern.hydrate:
                return pattern
            access = pattern.access
            if access is not None and index.projection != "ALL":
                access = replace(access, item_bytes=None)  # it was the size of an index entry
            return replace(pattern, hydrate=True, result=name, access=access)

        hydrated = with_patterns(entity, whole)
        is_changed = is_changed or hydrated != entity
        changed = with_entity(changed, hydrated)
    return changed if is_changed else None


def without_index(table: TableDesign, index: IndexDesign) -> TableDesign:
    """Return a table without an index."""
    return replace(
        table,
        indexes=tuple(each for each in table.indexes if each.name != index.name),
        entities=tuple(
            replace(entity, keys=tuple(key for key in entity.keys if key.index != index.name))
            for entity in table.entities
        ),
    )


def with_eventual_reads(table: TableDesign, entity: EntityDesign, target: PatternDesign) -> TableDesign:
    """Return a table with one pattern read with eventual consistency."""

    def change(pattern: PatternDesign) -> PatternDesign:
        if pattern != target or pattern.access is None:
            return pattern
        return replace(pattern, access=replace(pattern.access, consistent=False))

    return with_entity(table, with_patterns(entity, change))


def with_eventual_collection(table: TableDesign, collection: CollectionDesign) -> TableDesign:
    """Return a table with one collection read with eventual consistency."""
    assert collection.access is not None, "the caller checks it"
    changed = replace(collection, access=replace(collection.access, consistent=False))
    return replace(
        table, collections=tuple(changed if each == collection else each for each in table.collections)
    )


def with_shards(table: TableDesign, entity: EntityDesign, key: KeyDesign, count: int) -> TableDesign:
    """Return `table` with one key resharded; `count=1` removes sharding."""
    return with_entity(table, reshard_entity(entity, key, count))


def reshard_entity(entity: EntityDesign, key: KeyDesign, count: int) -> EntityDesign:
    """Return `entity` with `count` shards for one of its keys; `count=1` removes sharding."""
    spread = reshard_key(key, count)
    return replace(
        entity,
        key=spread if key == entity.key else entity.key,
        keys=tuple(spread if each == key else each for each in entity.keys),
    )


def reshard_key(key: KeyDesign, count: int) -> KeyDesign:
    """Return a key with `count` shards that are chosen as before, else by hash."""
    by, of = ("hash", ()) if key.shards is None else (key.shards.by, key.shards.of)
    return replace(key, shards=Shards(count, by, of) if count > 1 else None)


def with_short_names(table: TableDesign) -> TableDesign:
    """Return a table with two-letter attribute names, except for keys."""
    names: dict[str, str] = {}
    codes = ("".join(pair) for pair in product(ascii_lowercase, ascii_lowercase + digits))
    for entity in table.entities:
        for field in entity.fields:
            name = field.attribute
            if name not in names and name not in table.key_types and len(name) > _SHORT:
                names[name] = next(codes, name)
    tag = table.settings.tag
    if tag is not None and len(tag) > _SHORT:
        names.setdefault(tag, next(codes, tag))
    indexes = tuple(
        index
        if isinstance(index.projection, str)
        else replace(index, projection=tuple(names.get(name, name) for name in index.projection))
        for index in table.indexes
    )
    settings = replace(table.settings, tag=None if tag is None else names.get(tag, tag))
    changed = replace(table, indexes=indexes, settings=settings)
    for entity in table.entities:
        changed = with_entity(changed, _with_short_attributes(table, entity, names))
    return changed


def _with_short_attributes(table: TableDesign, entity: EntityDesign, names: dict[str, str]) -> EntityDesign:
    present = item_size(table, entity).attributes
    saved = {old: len(old.encode()) - len(new) for old, new in names.items() if old in present}
    whole = sum(saved.values())

    def shorter(pattern: PatternDesign) -> PatternDesign:
        less = whole
        if pattern.index is not None and not pattern.hydrate:
            less = sum(saved[name] for name in projected_names(table, table.index(pattern.index), saved))
        return _resize_pattern(pattern, lambda size: size - less)

    fields = tuple(
        replace(field, attribute=names.get(field.attribute, field.attribute)) for field in entity.fields
    )
    writes = tuple(_resize_write(write, lambda size: size - whole) for write in entity.writes)
    return with_patterns(replace(entity, fields=fields, writes=writes), shorter)


def with_split_entity(
    design: Design, table: TableDesign, entity: EntityDesign, moved: frozenset[str]
) -> TableDesign | None:
    """Return a table in which some fields of an entity move to a separate item under the same partition key.

    Reads of both parts query two items; writes of both use a transaction. None if a key needs such a field, an index projects
    it, a need reads both parts, or the item cannot do without it.
    """
    keyed = keyed_fields(entity)
    known = {field.name for field in entity.fields}
    if not moved or not moved <= known or moved & (keyed | bound_fields(table, entity)):
        return None
    if not known - moved - keyed or _is_returned_elsewhere(design, table, entity, moved):
        return None
    views = {view.name: view for view in design.views}
    size = item_size(table, entity)
    attributes = {entity.field(name).attribute for name in moved}
    share = sum(size.attributes.get(name, 0.0) for name in attributes) / size.total
    own = [*table.settings.key_names, *([table.settings.tag] if table.settings.tag else [])]
    key_bytes = sum(size.attributes.get(name, 0.0) for name in own)

    together: list[AccessPattern] = []

    def read(pattern: PatternDesign) -> PatternDesign:
        if pattern.index is not None:
            return (
                _resize_pattern(pattern, lambda whole: whole * (1 - share))
                if _reads_whole_items(table, pattern)
                else pattern
            )
        access = pattern.access
        if access is None:
            return pattern
        if {field.name for field in read_fields(entity, pattern, views)} & moved:
            together.append(_read_both_parts(access, size.total + key_bytes, alone=pattern == entity.primary))
            return replace(pattern, access=None)
        return _resize_pattern(_with_size(pattern, size.total), lambda whole: whole * (1 - share))

    locked = any(field.lock for field in entity.fields)  # the lock counts every change of either part
    rest: list[WritePattern] = []
    parts: list[WritePattern] = []
    for write in entity.writes:
        sized = replace(write, item_bytes=write.item_bytes or size.total)
        part = _resize_write(sized, lambda whole: whole * share + key_bytes)
        changed = {*write.changes, *write.adds}
        if write.kind == "update" and changed and changed <= moved and not locked:
            parts.append(part)
        elif write.kind == "update" and changed and not changed & moved:
            rest.append(_resize_write(sized, lambda whole: whole * (1 - share)))
        else:
            rest.append(replace(_resize_write(sized, lambda whole: whole * (1 - share)), transactional=True))
            parts.append(replace(part, transactional=True))
    fields = tuple(field for field in entity.fields if field.name not in moved)
    kept = with_patterns(replace(entity, fields=fields, writes=tuple(rest)), read)
    key = entity.key
    key_fields = () if key is None else key.fields
    beside = EntityDesign(
        f"{entity.name} (split)",
        entity.tag,
        tuple(field for field in entity.fields if field.name in moved or field.name in key_fields),
        key,
        writes=tuple(parts),
        items=entity.items,
    )
    members = (MemberDesign("first", kept.name, many=True), MemberDesign("second", beside.name, many=True))
    collections = tuple(
        CollectionDesign(access.title, None, Template.parse("both"), "", (), members, access)
        for access in together
    )
    changed_table = with_entity(table, kept)
    return replace(
        changed_table,
        entities=(*changed_table.entities, beside),
        collections=(
            *(_with_split_items(table, each, entity, key_bytes) for each in table.collections),
            *collections,
        ),
    )


def keyed_fields(entity: EntityDesign) -> frozenset[str]:
    """Return the fields that any key of an entity uses."""
    return frozenset(name for key in entity.all_keys for name in key.fields)


def bound_fields(table: TableDesign, entity: EntityDesign) -> frozenset[str]:
    """Return the fields that must stay in the item: TTL, lock, tenant and unique fields."""
    bound: set[str] = set()
    for field in entity.fields:
        if field.lock or field.tenant or field.unique or field.attribute == table.settings.ttl:
            bound |= {field.name, *field.within}
    return frozenset(bound)


def _is_returned_elsewhere(
    design: Design, table: TableDesign, entity: EntityDesign, moved: frozenset[str]
) -> bool:
    """Return whether an index or a route returns fields that would move to another item."""
    views = {view.name: view for view in design.views}

    def is_projected(index: str | None, names: frozenset[str]) -> bool:
        attributes = {entity.field(name).attribute for name in names}
        return index is None or bool(attributes & set(projected_names(table, table.index(index), attributes)))

    for pattern in entity.patterns:
        if pattern.index is not None and not pattern.hydrate:
            reads = {field.name for field in read_fields(entity, pattern, views)}
            if is_projected(pattern.index, moved & reads):
                return True
    for collection in table.collections:
        member = any(each.entity == entity.name for each in collection.members)
        if member and collection.index is not None and is_projected(collection.index, moved):
            return True
    names = {each.name for each in table.indexes}
    for need in design.needs:
        if need.route is None or entity.name not in need.entities or need.route.index not in {None, *names}:
            continue
        access = need.access
        filtered = {field.name for field in entity.fields if field.attribute in _attributes_of(need)}
        reads = (
            {*access.reads, *access.filters} | filtered if access is not None and access.reads else set(moved)
        )
        by_key = need.route.operation in ("get", "batch_get") or need.route.index is not None
        if not by_key or (moved & reads and is_projected(need.route.index, moved & frozenset(reads))):
            return True
    return False


def _attributes_of(need: Need) -> set[str]:
    return set() if need.route is None else {given.field for given in need.route.filters}


def _with_split_items(
    table: TableDesign, collection: CollectionDesign, entity: EntityDesign, key_bytes: float
) -> CollectionDesign:
    """Return a collection that reads the split-off items as well, with one more key each."""
    if collection.index is not None or all(each.entity != entity.name for each in collection.members):
        return collection
    access = collection.access or AccessPattern(collection.name)
    sizes = [item_bytes(table, table.entity(each.entity)) for each in collection.members]
    size = access.item_bytes or ceil(sum(sizes) / len(sizes))
    items = len(collection.members) if access.items is None else access.items
    return replace(collection, access=replace(access, items=items, item_bytes=ceil(size + key_bytes)))


def _read_both_parts(access: AccessPattern, whole: float, *, alone: bool) -> AccessPattern:
    """Return an access whose items became two each, read by one query; for keys, one query per key."""
    size = max(1, ceil((access.item_bytes or whole) / 2))
    items = 1 if access.items is None else access.items
    if alone:
        rate, peak = access.per_second, access.peak_per_second
        times = max(1, items)
        return replace(
            access,
            items=2,
            item_bytes=size,
            per_second=None if rate is None else rate * times,
            peak_per_second=None if peak is None else peak * times,
            transactional=False,
            consistent=access.consistent or access.transactional,
        )
    return replace(access, items=2 * items, item_bytes=size)


def _reads_whole_items(table: TableDesign, pattern: PatternDesign) -> bool:
    """Return whether a pattern reads whole items from an index."""
    assert pattern.index is not None, "the caller checks it"
    return table.index(pattern.index).projection == "ALL"


def _with_size(pattern: PatternDesign, size: int) -> PatternDesign:
    access = pattern.access
    if access is None or access.item_bytes is not None:
        return pattern
    return replace(pattern, access=replace(access, item_bytes=size))


def _resize_pattern(pattern: PatternDesign, change: Callable[[int], float]) -> PatternDesign:
    """Return a pattern with its declared item size changed, if it has one."""
    access = pattern.access
    if access is None or access.item_bytes is None:
        return pattern
    return replace(pattern, access=replace(access, item_bytes=max(1, floor(change(access.item_bytes)))))


def _resize_write(write: WritePattern, change: Callable[[int], float]) -> WritePattern:
    if write.item_bytes is None:
        return write
    return replace(write, item_bytes=max(1, floor(change(write.item_bytes))))
