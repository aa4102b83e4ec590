"""Fixes that change how a need is read: by an existing key, by a new index, or in smaller batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tavola.design.access_paths import RANGE_OPERATORS, AccessPath
from tavola.design.cost.alterations import with_eventual_collection, with_eventual_reads, with_table
from tavola.design.findings import Finding
from tavola.design.lint.remedies.indexes import Wanted, with_index
from tavola.design.lint.remedies.proposal import (
    Fixer,
    Proposal,
    home_of,
    need_at,
    pattern_at,
    put_entity,
    put_need,
    table_at,
)
from tavola.design.lint.rule import LintContext
from tavola.limits import BATCH_GET_KEYS_MAX
from tavola.model.document import AccessPattern, Design, Given, Need, Route

_SHARDS = (1, 4, 16)  # of a constant partition, as many as the traffic asks for


def _route_by_key(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield the need with a route by the best existing key, then by a new index."""
    need = need_at(design, finding)
    if need is None:
        yield from _move_to_index(design, finding)
        return
    if need.route is not None:
        for path in LintContext(design).access_paths(need):
            if path.serves and path.ordered:
                yield Proposal(
                    put_need(design, need, _with_route(need, path)),
                    f"it asks {path.key.index or path.table.name}, which has a key for it",
                )
    home = home_of(design, need)
    if home is None:
        return
    equal = tuple(dict.fromkeys(given.field for given in need.where if given.operator in ("=", "in")))
    stretches = tuple(dict.fromkeys(given.field for given in need.where if given.operator in RANGE_OPERATORS))
    ordered = need.order and (not stretches or need.order[0] in stretches)
    sorts = tuple(name for name in (need.order if ordered else stretches[:1]) if name not in equal)
    ways = [(sorts, shards) for shards in ((1,) if equal else _SHARDS)]
    if not sorts:
        ways += [(order, 1) for order in _companions(design, need, equal)]
    for sorts, shards in ways:
        made = with_index(design, *home, Wanted(equal, sorts, need.access, shards))
        if made is None:
            return
        changed, index = made
        spread = f" over {shards} shards" if shards > 1 else ""
        summary = (
            f"{index.name} finds {home[1].name} by {' and '.join(equal) if equal else 'one constant key'}{spread}"
            + (f", in the order of {', '.join(sorts)}" if sorts else "")
            + "; declare the query on it"
        )
        if need.route is not None:
            found = [each for each in LintContext(changed).access_paths(need) if each.key.index == index.name]
            if not found:
                continue  # it lacks some of the items that are asked for
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
    return Need(
        need.name,
        need.entities,
        need.where,
        need.order,
        _without_filters(need),
        single=need.single,
        route=route,
    )


def _without_filters(need: Need) -> AccessPattern | None:
    access = need.access
    if access is None or access.returned is None:
        return access
    return replace(access, items=access.returned, returned=None, filters=())


def _move_to_index(design: Design, finding: Finding) -> Iterator[Proposal]:
    """Yield a filtered query on an index that has the filtered fields in its key."""
    found = pattern_at(design, finding)
    if found is None or found[2].access is None:
        return
    table, entity, pattern = found
    access = pattern.access
    assert access is not None, "looked at above"
    partition = tuple(dict.fromkeys((*pattern.partition, *access.filters)))
    kept = replace(access, filters=(), items=access.returned or access.items, returned=None)
    made = with_index(design, table, entity, Wanted(partition, pattern.sorts, kept))
    if made is None:
        return
    changed, index = made
    moved = replace(pattern, index=index.name, partition=partition, access=kept, hydrate=False)
    again = changed.table(table.name).entity(entity.name)
    patterns = tuple(moved if each is pattern else each for each in again.patterns)
    if pattern in again.patterns:
        yield Proposal(
            put_entity(changed, changed.table(table.name), replace(again, patterns=patterns)),
            f"{entity.name}.{pattern.name} asks {index.name}, which has {' and '.join(access.filters)} in its key, and reads what it gives",
        )


def _read_eventually(design: Design, finding: Finding) -> Iterator[Proposal]:
    summary = (
        "it reads what may be a moment old; what must see every write before it asks the table by its key"
    )
    asked, need, table = pattern_at(design, finding), need_at(design, finding), table_at(design, finding)
    if asked is not None:
        yield Proposal(with_table(design, with_eventual_reads(*asked)), summary)
    elif need is not None and need.access is not None:
        calm = Need(
            need.name,
            need.entities,
            need.where,
            need.order,
            replace(need.access, consistent=False),
            single=need.single,
            route=need.route,
        )
        yield Proposal(put_need(design, need, calm), summary)
    elif table is not None:
        for each in table.collections:
            if each.name == finding.place.name and each.access is not None:
                yield Proposal(with_table(design, with_eventual_collection(table, each)), summary)


def _read_in_batches(design: Design, finding: Finding) -> Iterator[Proposal]:
    need = need_at(design, finding)
    if need is None or need.route is None:
        return
    items = need.access.items if need.access is not None and need.access.items else 1
    batches = replace(need.route, queries=max(need.route.queries, -(-items // BATCH_GET_KEYS_MAX)))
    yield Proposal(
        put_need(design, need, _replace_route(need, batches)),
        f"it asks for {BATCH_GET_KEYS_MAX} keys at a time, in {batches.queries} requests, and again for what was not processed",
    )
    yield Proposal(
        put_need(design, need, _replace_route(need, replace(need.route, operation="query"))),
        "it is a query by the partition key, which needs no sort key",
    )


def _replace_route(need: Need, route: Route) -> Need:
    return Need(
        need.name, need.entities, need.where, need.order, need.access, single=need.single, route=route
    )


FIXERS: dict[str, Fixer] = {
    "batch-too-large": _read_in_batches,
    "consistent-index-read": _read_eventually,
    "filtered-pattern": _route_by_key,
    "keyless-pattern": _route_by_key,
    "one-way-relation": _route_by_key,
    "partial-partition-key": _route_by_key,
    "partition-inequality": _route_by_key,
    "range-before-equality": _route_by_key,
    "scanned-pattern": _route_by_key,
    "sort-key-gap": _route_by_key,
    "unserved-pattern": _route_by_key,
    "wrong-order": _route_by_key,
}
