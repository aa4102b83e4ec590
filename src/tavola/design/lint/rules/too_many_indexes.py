"""A table has more indexes than DynamoDB allows, or so many that they cost more than the table.

Why: A table has 20 global and 5 local indexes at most, the first by a quota that AWS raises on request. And each index is
paid like a table of its own: an item that stands in ten indexes is written eleven times.

Example: one index for each attribute that somebody may filter by.

Instead: Let several entities and questions share an index (overloading), serve questions of one entity by one index with a
longer sort key, and read seldom asked ones from an export.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.monthly_costs import format_monthly_with_book, monthly_cost
from tavola.design.lint.rule import LintContext
from tavola.limits import GLOBAL_INDEXES_MAX, LOCAL_INDEXES_MAX

SEVERITY: Severity = "error"

_MANY = 8  # indexes that one write goes to
_DOLLARS = 10


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the tables with too many indexes, and the writes that touch very many of them."""
    for table in context.design.tables:
        for local, most in ((False, GLOBAL_INDEXES_MAX), (True, LOCAL_INDEXES_MAX)):
            count = sum(index.local is local for index in table.indexes)
            if count > most:
                word = "local" if local else "global"
                yield Finding(
                    "too-many-indexes",
                    "error",
                    context.table_place(table),
                    f"it has {count} {word} indexes and a table has {most} at most",
                    "let several questions share an index, with keys that begin differently",
                )
    for table, entity, write in context.all_writes():
        touched = [effect for effect in context.index_effects(table, entity, write) if effect.units]
        if len(touched) < _MANY or write.per_second is None:
            continue
        units = sum(effect.units for effect in touched) * write.items
        dollars = monthly_cost(writes=units * write.per_second)
        if dollars >= _DOLLARS:
            yield Finding(
                "too-many-indexes",
                "advice",
                context.write_place(table, entity, write),
                f"each goes to {len(touched)} indexes, {units:g} write units beside the table's: {format_monthly_with_book(dollars)}",
                "let several questions share an index, project less into each, or keep items out of those they need not be in",
            )
