"""Access patterns do not declare how often they run or how much they read.

Why: Whether a key is hot, what a month costs and how many shards are needed follows from rates and sizes. Without them the
rules that judge these say nothing, which is not the same as nothing being wrong.

Example: `AccessPattern("tickets of a status")`.

Instead: `AccessPattern("tickets of a status", per_second=10, items=20, item_bytes=450)`, by estimate if need be: the order of
size is what matters. A size that one write or key of an entity declares counts for all that is asked of it. Where a busy key is made of a status, a kind or the like, say how many values that has: `attr(distinct=5)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.cost.capacity import write_pattern_units
from tavola.design.findings import DesignPath, Finding, Severity
from tavola.design.lint.naming import FEW_VALUED_NAMES, split_words
from tavola.design.lint.rates import peak_rate
from tavola.design.lint.rule import LintContext
from tavola.design.text import format_rate, join_names, list_first
from tavola.limits import PARTITION_WRITES_PER_S
from tavola.model.document import AccessPattern, TableDesign, WritePattern
from tavola.model.sizes import item_size

SEVERITY: Severity = "advice"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the tables with patterns or writes without a rate or a size, and tables that declare none.

    Also the fields of busy keys that probably have few values, if their number is not declared.
    """
    yield from _find_uncounted_fields(context)
    for table in context.design.tables:
        declared = tuple(_declared_patterns(table))
        unrated = [name for name, pattern, _ in declared if pattern.per_second is None]
        unsized = [name for name, pattern, known in declared if pattern.item_bytes is None and not known]
        if declared and not unrated and not unsized:
            continue
        if not table.entities:
            continue  # nothing lives in it; another rule says so
        both = unrated == unsized
        lacks = [
            (
                unrated,
                "per_second=",
                "neither rate nor size" if both else "no rate",
                "heat and cost cannot be judged",
            ),
            ([] if both else unsized, "item_bytes=", "no size", "it is guessed from the types of the fields"),
        ]
        parts = [
            f"{len(names)} of its {len(declared):,} access patterns and writes {'has' if len(names) == 1 else 'have'} {what} "
            f"({list_first(names)}): {so}"
            for names, _, what, so in lacks
            if names
        ]
        wanted = ["per_second=", "item_bytes="] if both else [give for names, give, _, _ in lacks if names]
        yield Finding(
            "missing-amounts",
            SEVERITY,
            context.table_place(table),
            "; ".join(parts)
            if declared
            else "none of its entities says how often it is read or written: heat and cost cannot be judged",
            f"give {' and '.join(wanted)} to each, by estimate if need be",
        )


def _find_uncounted_fields(context: LintContext) -> Iterator[Finding]:
    """Yield fields that probably have few values and form a partition key that receives more writes than one partition allows."""
    seen: set[DesignPath] = set()
    for table, entity, key in context.all_keys():
        fields = [entity.field(name) for source in key.hash for name in source.fields]
        if not fields or key.shards is not None:
            continue
        if any(
            field.values is not None or not FEW_VALUED_NAMES & set(split_words(field.name)[-1:])
            for field in fields
        ):
            continue
        units = sum(
            often * each.write
            for write in entity.writes
            if (often := peak_rate(write)) is not None
            for each in write_pattern_units(table, entity, write)
            if each.index == key.index
        )
        place = context.field_place(table, entity, fields[0])
        if units <= PARTITION_WRITES_PER_S or place in seen:
            continue
        seen.add(place)
        yield Finding(
            "missing-amounts",
            SEVERITY,
            place,
            f"{key.index or 'the table'} is keyed by {join_names(field.name for field in fields)} alone and written {format_rate(units)} units a second, "
            f"of which one partition takes {PARTITION_WRITES_PER_S:,}; how many values it has, nobody says",
            f"say how many there are, {fields[0].name}: attr(distinct=…), and its heat is judged",
        )


def _declared_patterns(table: TableDesign) -> Iterator[tuple[str, AccessPattern | WritePattern, bool]]:
    """Yield the patterns and writes of a table, and whether the item size is known without them."""
    known = {entity.name: item_size(table, entity).declared for entity in table.entities}
    for entity in table.entities:
        for pattern in (*((entity.primary,) if entity.primary else ()), *entity.patterns):
            if pattern.access is not None:
                yield f"{entity.name}.{pattern.name}", pattern.access, known[entity.name]
        for write in entity.writes:
            yield f"{entity.name}: {write.title}", write, known[entity.name]
    for collection in table.collections:
        if collection.access is not None:
            sized = all(known[member.entity] for member in collection.members)
            yield collection.name, collection.access, sized
