"""Two entities can have the same key, or a query for one returns items of the other.

Why: If the primary keys of two entities can be equal, a write of one replaces the other. If the sort key
prefix that a query uses is also a prefix of another entity's keys, the query returns both. In an index, where
keys need not be unique, this happens for any two entities with the same key format.

Example: `ORDER#{order_id}` for both orders and their details; a query for `USER#` next to items with
`USER#SETTINGS#…`; reviews and findings both indexed as `STACK#{stack_id}`, `CREATED#{created_at}`, so that
"the latest review" returns a finding.

Instead: Give each entity its own prefix that ends with the delimiter and is not the start of another:
`ORDER#…`, `DETAIL#…`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tavola.design.access_paths import key_parts
from tavola.design.lint.item_keys import can_render, literal_prefix, may_collide
from tavola.design.lint.rule import Defect, LintContext
from tavola.model.document import EntityDesign, KeyDesign, Need, SourceDesign, TableDesign

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the entities whose keys collide, and the queries that find other entities. Tavola refuses such declarations itself."""
    for table in context.design.tables:
        if not table.foreign:
            continue
        for one, two in combinations(table.entities, 2):
            if one.key is not None and two.key is not None and _keys_may_collide(one, one.key, two, two.key):
                yield Defect(
                    context.entity_place(table, two),
                    f"Its key ({_describe_key(two.key)}) can be equal to a key of {one.name} ({_describe_key(one.key)})",
                    f"Use different key prefixes for {one.name} and {two.name}",
                )
        yield from _find_mixed_queries(context, table)


def _find_mixed_queries(context: LintContext, table: TableDesign) -> Iterator[Defect]:
    """Yield the queries that find other entities, once for each key and other entity."""
    reported: set[tuple[str, str | None, str]] = set()
    for entity in table.entities:
        for need in context.needs_by_entity.get(entity.name, ()):
            read = None if need.single else _key_and_prefix(context, table, entity, need)
            if read is None:
                continue
            key, begins = read
            for other, theirs in context.keys_by_index.get((table.name, key.index), ()):
                if other.name in need.entities or (entity.name, key.index, other.name) in reported:
                    continue
                if not theirs.range or not literal_prefix(theirs.range[0]).startswith(begins):
                    continue
                if not _same_partition(entity, key, other, theirs) or not _value_of(need, other, theirs):
                    continue
                if key.index is None and _keys_may_collide(entity, key, other, theirs):
                    continue  # already reported for the two entities
                reported.add((entity.name, key.index, other.name))
                how = f"with the prefix {begins}" if begins else "by partition key only"
                yield Defect(
                    context.key_place(table, entity, key),
                    f"A query {how} also returns {other.name}, which has the sort key {_text(theirs.range[0])}",
                    f"Give {entity.name} a sort key prefix that no other entity has",
                    severity="warning",
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
    if any(condition.field == table.settings.tag for condition in route.filters):
        return None
    by_sort = next((condition for condition in route.keys if condition.field == key.range[0].attribute), None)
    if by_sort is None or by_sort.value is None:
        return (
            None if by_sort is not None and by_sort.operator == "=" else (key, literal_prefix(key.range[0]))
        )
    begins = by_sort.value.get("S")
    return (key, begins) if by_sort.operator == "begins_with" and isinstance(begins, str) else None


def _same_partition(one: EntityDesign, mine: KeyDesign, two: EntityDesign, its: KeyDesign) -> bool:
    pairs = tuple(zip(mine.hash, its.hash, strict=False))
    near = all(_prefixes_overlap(literal_prefix(left), literal_prefix(right)) for left, right in pairs)
    return near and all(may_collide(one, left, two, right) for left, right in pairs)


def _prefixes_overlap(one: str, two: str) -> bool:
    return one.startswith(two) or two.startswith(one)


def _value_of(need: Need, other: EntityDesign, theirs: KeyDesign) -> bool:
    """Return whether the need's constant partition, if it has one, can be another entity's."""
    named = (
        {condition.field: condition.value for condition in need.route.keys} if need.route is not None else {}
    )
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


def _describe_key(key: KeyDesign) -> str:
    return ", ".join(map(_text, key.sources))


def _text(source: SourceDesign) -> str:
    return source.field or "" if source.template is None else source.template.source
