"""Fixes that change how items are read: by an existing key, by a new index, in smaller batches, or by another projection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tavola.design.access_paths import RANGE_OPERATORS, AccessPath
from tavola.design.cost.alterations import (
    needed_attributes,
    with_entity,
    with_eventual_collection,
    with_eventual_reads,
    with_index,
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
    home_of,
    index_at,
    need_at,
    pattern_at,
    put_entity,
    put_need,
    table_at,
)
from tavola.design.lint.rule import LintContext
from tavola.design.text import join_names
from tavola.keys import Template
from tavola.limits import BATCH_GET_KEYS_MAX, MULTI_KEY_ATTRIBUTES_MAX
from tavola.model import SHARD
from tavola.model.document import (
    AccessPattern,
    Design,
    EntityDesign,
    FieldDesign,
    Given,
    IndexDesign,
    KeyDesign,
    Need,
    Route,
    Shards,
    SourceDesign,
    TableDesign,
)

_SHARDS = (1, 4, 16)  # numbers of shards to try for a constant partition key
_KEY_TAGS = ("S", "N", "B")


@dataclass(frozen=True, slots=True)
class NewIndex:
    """The key of an index to add: partition fields, then sort fields."""

    partition: tuple[str, ...]
    sorts: tuple[str, ...]
    access: AccessPattern | None = None
    shards: int = 1


def with_new_index(
    design: Design, table: TableDesign, entity: EntityDesign, new: NewIndex
) -> tuple[Design, IndexDesign] | None:
    """Return a design with one more index for an entity; None if the fields cannot form a key.

    The key uses the items' own attributes, so that nothing is stored twice. Without a partition field, templates make a constant
    partition key, sharded if requested.
    """
    known = {field.name: field for field in entity.fields}
    fields = [known.get(name) for name in (*new.partition, *new.sorts)]
    if any(field is None or len(field.tags) != 1 or field.tags[0] not in _KEY_TAGS for field in fields):
        return None
    if max(len(new.partition), len(new.sorts)) > MULTI_KEY_ATTRIBUTES_MAX:
        return None
    found = [field for field in fields if field is not None]
    words = ("by", *(new.partition or new.sorts)) if fields else ("all", entity.name.lower())
    name = _unused_name("_".join(words), [each.name for each in table.indexes])
    own = found[: len(new.partition)], found[len(new.partition) :]
    key = (
        _own_key(name, *own)
        if new.partition
        else _templated_key(table, entity, name, new, any(field.nullable for field in found))
    )
    hash_, range_ = (tuple(source.attribute for source in half) for half in (key.hash, key.range))
    index = IndexDesign(
        name,
        name,
        local=False,
        hash=hash_,
        range=range_,
        projection=_projection_for(table, entity, (*hash_, *range_), new.access),
        native=bool(new.partition),
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
    table: TableDesign, entity: EntityDesign, name: str, new: NewIndex, sparse: bool
) -> KeyDesign:
    mark = table.settings.delimiter
    number = 1 + sum(1 for index in table.indexes if not index.local)
    while f"GSI{number}PK" in table.key_types:
        number += 1
    constant = (entity.tag or entity.name).upper()
    text = f"{constant}{mark}{{{SHARD}:04}}" if new.shards > 1 else constant
    sort = mark.join(f"{{{field}}}" for field in new.sorts)
    return KeyDesign(
        name,
        (SourceDesign(f"GSI{number}PK", "S", template=Template.parse(text, mark)),),
        (SourceDesign(f"GSI{number}SK", "S", template=Template.parse(sort, mark)),) if sort else (),
        sparse=sparse,
        shards=Shards(new.shards) if new.shards > 1 else None,
    )


def _projection_for(
    table: TableDesign, entity: EntityDesign, keys: Sequence[str], access: AccessPattern | None
) -> tuple[str, ...] | Literal["ALL", "KEYS_ONLY"]:
    """Return the attributes that a need uses, if it declares them; else ALL."""
    if access is None or not access.reads:
        return "ALL"
    read = {*access.reads, *access.filters}
    in_keys = {*keys, *table.settings.key_names}
    names = [
        field.attribute for field in entity.fields if field.name in read and field.attribute not in in_keys
    ]
    tag = table.settings.tag
    return tuple(dict.fromkeys([*([tag] if tag else []), *names])) or "KEYS_ONLY"


def _unused_name(name: str, taken: Sequence[str]) -> str:
    number, found = 2, name
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def _drop_index(design: Design, finding: Finding) -> Iterator[Proposal]:
    for table, index in index_at(design, finding):
        rest = without_index(table, index)
        used = {*table.settings.key_names, *(name for each in rest.indexes for name in each.attributes)}
        types = {name: tag for name, tag in table.key_types.items() if name in used}
        yield Proposal(
            with_table(design, replace(rest, key_types=types)),
            f"Removes {index.name}, so writes no longer pay for it; DynamoDB can delete it from an existing table",
        )


def _narrow_projection(design: Design, finding: Finding) -> Iterator[Proposal]:
    for table, index in index_at(design, finding):
        needed = needed_attributes(design, table, index)
        thin = None if needed is None else with_narrow_projection(table, index, needed)
        if thin is not None:
            yield Proposal(
                with_table(design, thin),
                f"Projects into {index.name} only what is read; a projection cannot be changed, so the index is recreated",
            )


def _widen_projection(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield the index with the attributes that a need reads and the index lacks."""
    for table, entity, pattern in pattern_at(design, finding):
        yield from _with_projected(design, table, entity, pattern.index, pattern.access, pattern.result)
    for need in need_at(design, finding):
        home = next(
            (
                (table, each)
                for table in design.tables
                for each in table.entities
                if each.name in need.entities
            ),
            None,
        )
        if need.route is not None and home is not None:
            yield from _with_projected(design, *home, need.route.index, need.access, "")


def _with_projected(
    design: Design,
    table: TableDesign,
    entity: EntityDesign,
    name: str | None,
    access: AccessPattern | None,
    result: str,
) -> Iterator[Proposal]:
    """Yield the table whose index projects everything that an access reads; `result` is the view that it returns."""
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
    yield Proposal(
        with_table(design, with_index(table, replace(index, projection=(*before, *lacking)))),
        f"Projects {join_names(lacking)} into {index.name} as well; a projection cannot be changed, so the index is recreated",
    )


def _shorten_names(design: Design, finding: Finding) -> Iterator[Proposal]:
    for table, _ in entity_at(design, finding):
        yield Proposal(
            with_table(design, with_short_names(table)),
            "Uses two-letter attribute names in the table and keeps the field names in code; rewrite existing items",
        )


def _route_by_key(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield the need with a route by the best existing key, then by a new index."""
    if finding.place.kind != "need":
        yield from _move_to_index(design, finding)
    for need in need_at(design, finding):
        yield from _route_need(design, need)


def _route_need(design: Design, need: Need) -> Iterator[Proposal]:
    if need.route is not None:
        for path in LintContext(design).access_paths(need):
            if path.serves and path.ordered:
                yield Proposal(
                    put_need(design, need, _with_route(need, path)),
                    f"Queries {path.target_name}, which has a key for it",
                )
    home = home_of(design, need)
    if home is None:
        return
    equal = tuple(dict.fromkeys(given.field for given in need.where if given.operator in ("=", "in")))
    ranges = tuple(dict.fromkeys(given.field for given in need.where if given.operator in RANGE_OPERATORS))
    ordered = need.order and (not ranges or need.order[0] in ranges)
    sorts = tuple(name for name in (need.order if ordered else ranges[:1]) if name not in equal)
    ways = [(sorts, shards) for shards in ((1,) if equal else _SHARDS)]
    if not sorts:
        ways += [(order, 1) for order in _companions(design, need, equal)]
    for sorts, shards in ways:
        made = with_new_index(design, *home, NewIndex(equal, sorts, need.access, shards))
        if made is None:
            return
        changed, index = made
        spread = f" over {shards} shards" if shards > 1 else ""
        summary = (
            f"Adds {index.name}, which finds {home[1].name} by {join_names(equal) if equal else 'a constant key'}{spread}"
            + (f", sorted by {', '.join(sorts)}" if sorts else "")
            + "; declare the query on it"
        )
        if need.route is not None:
            found = [each for each in LintContext(changed).access_paths(need) if each.key.index == index.name]
            if not found:
                continue  # the index does not contain all requested items
            changed = put_need(changed, need, _with_route(need, found[0]))
        yield Proposal(changed, summary)


def _companions(design: Design, need: Need, equal: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the orders in which other needs read the same items, so that one index can serve all."""
    for other in design.needs:
        same = {given.field for given in other.where if given.operator in ("=", "in")} == set(equal)
        if other is not need and other.entities == need.entities and same and other.order:
            yield tuple(name for name in other.order if name not in equal)


def _with_route(need: Need, path: AccessPath) -> Need:
    """Return a need with a route by an access path."""
    given = {each.field: each for each in need.where}
    keys: list[Given] = []
    for source in path.key.sources:
        names = source.fields
        if not names:
            keys.append(Given(source.attribute, "="))
        elif source.field is not None and source.field in given:
            keys.append(Given(source.attribute, given[source.field].operator, given[source.field].value))
        elif source.template is not None and names[0] in given:
            whole = all(name in given and given[name].operator == "=" for name in names)
            keys.append(Given(source.attribute, "=" if whole else "begins_with"))
        else:
            break
    filters = tuple(
        Given(path.entity.field(each.field).attribute, each.operator, each.value) for each in path.filtered
    )
    single = path.operation == "get" and all(each.operator == "=" for each in keys)
    route = Route("get" if single else "query", path.key.index, tuple(keys), filters, path.shards)
    return replace(need, access=_without_filters(need), route=route)


def _without_filters(need: Need) -> AccessPattern | None:
    access = need.access
    if access is None or access.returned is None:
        return access
    return replace(access, items=access.returned, returned=None, filters=())


def _move_to_index(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield a filtered query on an index that has the filtered fields in its key."""
    for table, entity, pattern in pattern_at(design, finding):
        access = pattern.access
        if access is None or pattern not in entity.patterns:
            continue
        partition = tuple(dict.fromkeys((*pattern.partition, *access.filters)))
        kept = replace(access, filters=(), items=access.returned or access.items, returned=None)
        made = with_new_index(design, table, entity, NewIndex(partition, pattern.sorts, kept))
        if made is None:
            continue
        changed, index = made
        moved = replace(pattern, index=index.name, partition=partition, access=kept, hydrate=False)
        again = changed.table(table.name).entity(entity.name)
        patterns = tuple(moved if each is pattern else each for each in again.patterns)
        yield Proposal(
            put_entity(changed, changed.table(table.name), replace(again, patterns=patterns)),
            f"{entity.name}.{pattern.name} queries {index.name}, which has {join_names(access.filters)} in its key, and reads only what it returns",
        )


def _read_eventually(design: Design, finding: Finding) -> Iterator[Proposal]:
    summary = "Makes the read eventually consistent; reads that must see the latest write need the table's primary key"
    for table, entity, pattern in pattern_at(design, finding):
        yield Proposal(with_table(design, with_eventual_reads(table, entity, pattern)), summary)
    for need in need_at(design, finding):
        if need.access is not None:
            eventual = replace(need, access=replace(need.access, consistent=False))
            yield Proposal(put_need(design, need, eventual), summary)
    for table in table_at(design, finding):
        for each in table.collections:
            if each.name == finding.place.name and each.access is not None:
                yield Proposal(with_table(design, with_eventual_collection(table, each)), summary)


def _read_in_batches(design: Design, finding: Finding) -> Iterator[Proposal]:
    for need in need_at(design, finding):
        if need.route is None:
            continue
        items = need.access.items if need.access is not None and need.access.items else 1
        batches = replace(need.route, queries=max(need.route.queries, -(-items // BATCH_GET_KEYS_MAX)))
        yield Proposal(
            put_need(design, need, replace(need, route=batches)),
            f"Requests {BATCH_GET_KEYS_MAX} keys at a time, in {batches.queries} requests, and retries UnprocessedKeys",
        )
        yield Proposal(
            put_need(design, need, replace(need, route=replace(need.route, operation="query"))),
            "Queries by the partition key, which needs no sort key",
        )


FIXERS: dict[str, Fixer] = {
    "attribute-not-projected": _widen_projection,
    "consistent-read-on-gsi": _read_eventually,
    "excessive-projection": _narrow_projection,
    "frequent-scan": _route_by_key,
    "incomplete-partition-key": _route_by_key,
    "inefficient-filter": _route_by_key,
    "invalid-batch-get": _read_in_batches,
    "key-never-written": _route_by_key,
    "long-attribute-names": _shorten_names,
    "missing-inverted-index": _route_by_key,
    "range-before-equality": _route_by_key,
    "range-on-partition-key": _route_by_key,
    "sort-key-gap": _route_by_key,
    "unserved-pattern": _route_by_key,
    "unused-index": _drop_index,
    "wrong-sort-order": _route_by_key,
}
