"""Two entities can have the same key, or a query for one finds the other's items.

Why: Where the keys of two entities in a table can be equal, a write of one replaces the other. Where the beginning by which one entity is
asked for is also the beginning of another's keys, its query returns both; in an index, where keys need not differ, that is so of two entities
that are keyed alike.

Example: `ORDER#{order_id}` and `ORDER#{order_id}` with the details of it; `USER#` asked for, and `USER#SETTINGS#…` beside it. Reviews and findings are both
in an index as `STACK#{stack_id}`, `CREATED#{created_at}`, and "the latest review of a stack" is a finding.

Instead: Give each entity a beginning of its own that is not the start of another's: `ORDER#…`, `DETAIL#…`, ended by the delimiter.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tavola.design.access_paths import key_parts
from tavola.design.findings import Finding, Severity
from tavola.design.lint.key_texts import can_render, literal_prefix, may_collide
from tavola.design.lint.rule import LintContext
from tavola.model.document import EntityDesign, KeyDesign, Need, SourceDesign, TableDesign

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the entities whose keys collide, and the queries that find other entities. Tavola refuses such declarations itself."""
    for table in context.design.tables:
        if not table.foreign:
            continue
        for one, two in combinations(table.entities, 2):
            if one.key is not None and two.key is not None and _keys_may_collide(one, one.key, two, two.key):
                yield Finding(
                    "template-overlap",
                    SEVERITY,
                    context.entity_place(table, two),
                    f"its key, {_shown(two.key)}, can be that of {one.name}, {_shown(one.key)}",
                    f"let the keys of {one.name} and {two.name} begin differently",
                )
        yield from _find_mixed_queries(context, table)


def _find_mixed_queries(context: LintContext, table: TableDesign) -> Iterator[Finding]:
    """Yield the queries that find other entities, once for each key and other entity."""
    reported: set[tuple[str, str | None, str]] = set()
    for entity in table.entities:
        for need in context.needs_by_entity.get(entity.name, ()):
            asked = None if need.single else _key_and_prefix(context, table, entity, need)
            if asked is None:
                continue
            key, begins = asked
            for other, theirs in context.keys_by_index.get((table.name, key.index), ()):
                if other.name in need.entities or (entity.name, key.index, other.name) in reported:
                    continue
                if not theirs.range or not _starts(theirs.range[0], begins):
                    continue
                if not _same_partition(entity, key, other, theirs) or not _value_of(need, other, theirs):
                    continue
                if key.index is None and _keys_may_collide(entity, key, other, theirs):
                    continue  # which is reported of the two entities
                reported.add((entity.name, key.index, other.name))
                how = f"beginning with {begins}" if begins else "by its partition alone"
                yield Finding(
                    "template-overlap",
                    "warning",
                    context.key_place(table, entity, key),
                    f"what is asked {how} finds {other.name} too, whose sort key is {_text(theirs.range[0])}",
                    f"give {entity.name} a beginning that no other sort key has",
                )


def _key_and_prefix(
    context: LintContext, table: TableDesign, entity: EntityDesign, need: Need
) -> tuple[KeyDesign, str] | None:
    """Return the key by which a need reads several items and the prefix of their sort keys; None if it does not.

    A reader that filters by entity gets no other items, and only pays for them.
    """
    route = need.route
    if route is None:
        best = next(iter(context.access_paths(need)), None)
        key = None if best is None else entity.key_on(best.key.index)
        if best is None or best.operation not in ("query", "filter") or key is None or not key.range:
            return None
        fixed = any(slot.field in need.equal_fields for slot in key_parts(key.range))
        return None if fixed else (key, literal_prefix(key.range[0]))
    key = entity.key_on(route.index)
    if route.operation != "query" or key is None or not key.range:
        return None
    if any(given.field == table.settings.tag for given in route.filters):
        return None
    by_sort = next((given for given in route.keys if given.field == key.range[0].attribute), None)
    if by_sort is None or by_sort.value is None:
        return (
            None if by_sort is not None and by_sort.operator == "=" else (key, literal_prefix(key.range[0]))
        )
    begins = by_sort.value.get("S")
    return (key, begins) if by_sort.operator == "begins_with" and isinstance(begins, str) else None


def _starts(source: SourceDesign, begins: str) -> bool:
    return literal_prefix(source).startswith(begins)


def _same_partition(one: EntityDesign, mine: KeyDesign, two: EntityDesign, its: KeyDesign) -> bool:
    pairs = tuple(zip(mine.hash, its.hash, strict=False))
    near = all(_prefixes_overlap(literal_prefix(left), literal_prefix(right)) for left, right in pairs)
    return near and all(may_collide(one, left, two, right) for left, right in pairs)


def _prefixes_overlap(one: str, two: str) -> bool:
    return one.startswith(two) or two.startswith(one)


def _value_of(need: Need, other: EntityDesign, theirs: KeyDesign) -> bool:
    """Return whether the need's constant partition, if it has one, can be another entity's."""
    named = {given.field: given.value for given in need.route.keys} if need.route is not None else {}
    return all(
        (value := named.get(source.attribute)) is None or can_render(other, source, value)
        for source in theirs.hash
    )


def _keys_may_collide(one: EntityDesign, mine: KeyDesign, two: EntityDesign, its: KeyDesign) -> bool:
    if len(mine.sources) != len(its.sources):
        return False
    pairs = tuple(zip(mine.sources, its.sources, strict=True))
    near = all(_prefixes_overlap(literal_prefix(left), literal_prefix(right)) for left, right in pairs)
    return near and all(may_collide(one, left, two, right) for left, right in pairs)


def _shown(key: KeyDesign) -> str:
    return " with ".join(map(_text, key.sources))


def _text(source: SourceDesign) -> str:
    return source.field or "" if source.template is None else source.template.source
