"""Access patterns do not declare how often they run or how much they read.

Why: Hot partitions, monthly cost and shard counts are computed from rates and sizes. Without them these rules
report nothing, which does not mean that nothing is wrong.

Example: `AccessPattern("tickets by status")`.

Instead: `AccessPattern("tickets by status", per_second=10, items=20, item_bytes=450)`. Estimates are fine;
the order of magnitude matters. An item size declared on any pattern or key of an entity applies to all of its
patterns. If a busy key consists of a status, a type or the like, declare how many values it has:
`attr(distinct=5)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.cost.capacity import write_pattern_units
from tavola.design.findings import DesignPath
from tavola.design.lint.naming import FEW_VALUED_NAMES, split_words
from tavola.design.lint.rates import peak_rate
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import format_rate, join_names, list_first
from tavola.limits import PARTITION_WRITES_PER_S
from tavola.model.document import AccessPattern, TableDesign, WritePattern
from tavola.model.sizes import item_size

SEVERITY = "advice"


def find(context: LintContext) -> Iterator[Defect]:
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
            continue  # reported by table-without-entities
        if not declared:
            yield _undeclared_defect(context, table)
            continue
        same_patterns = unrated == unsized
        gaps = [
            (
                unrated,
                "per_second=",
                "neither rate nor item size" if same_patterns else "no rate",
                "hot partitions and cost cannot be computed",
            ),
            (
                [] if same_patterns else unsized,
                "item_bytes=",
                "no item size",
                "it is estimated from the field types",
            ),
        ]
        parts = [
            f"{len(names)} of {len(declared):,} access patterns and writes {'has' if len(names) == 1 else 'have'} {what} "
            f"({list_first(names)}): {effect}"
            for names, _, what, effect in gaps
            if names
        ]
        parameters = (
            ["per_second=", "item_bytes="]
            if same_patterns
            else [parameter for names, parameter, _, _ in gaps if names]
        )
        yield Defect(
            context.table_place(table),
            "; ".join(parts),
            f"Add {' and '.join(parameters)} to each; estimates are fine",
        )


def _undeclared_defect(context: LintContext, table: TableDesign) -> Defect:
    """Return the defect of a table that declares no access pattern, with one of its queries as an example."""
    queries = [f"{entity.name}.{query.name}" for entity in table.entities for query in entity.patterns]
    keys = [f"{entity.name}.{entity.primary.name}" for entity in table.entities if entity.primary]
    example = next(iter((*queries, *keys)), None)
    return Defect(
        context.table_place(table),
        f"No query or write declares a rate{'' if example is None else f', for example {example}'}: "
        "hot partitions and cost cannot be computed",
        f'Add access=AccessPattern("…", per_second=…, item_bytes=…) to {example or "each query"}, and '
        f'writes=(WritePattern("…", per_second=…),) to {table.entities[0].name}; estimates are fine',
    )


def _find_uncounted_fields(context: LintContext) -> Iterator[Defect]:
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
            rate * unit.write
            for write in entity.writes
            if (rate := peak_rate(write)) is not None
            for unit in write_pattern_units(table, entity, write)
            if unit.index == key.index
        )
        place = context.field_place(table, entity, fields[0])
        if units <= PARTITION_WRITES_PER_S or place in seen:
            continue
        seen.add(place)
        yield Defect(
            place,
            f"{key.index or 'The table'} is partitioned by {join_names(field.name for field in fields)} and receives {format_rate(units)} write units per second; "
            f"a partition supports {PARTITION_WRITES_PER_S:,}, and the number of distinct values is not declared",
            f"Declare the number of distinct values: {fields[0].name} = attr(distinct=…)",
        )


def _declared_patterns(table: TableDesign) -> Iterator[tuple[str, AccessPattern | WritePattern, bool]]:
    """Yield the patterns and writes of a table, and whether the item size is known without them."""
    size_declared = {entity.name: item_size(table, entity).declared for entity in table.entities}
    for entity in table.entities:
        for pattern in entity.all_patterns:
            if pattern.access is not None:
                yield f"{entity.name}.{pattern.name}", pattern.access, size_declared[entity.name]
        for write in entity.writes:
            yield f"{entity.name}: {write.title}", write, size_declared[entity.name]
    for collection in table.collections:
        if collection.access is not None:
            sized = all(size_declared[member.entity] for member in collection.members)
            yield collection.name, collection.access, sized
