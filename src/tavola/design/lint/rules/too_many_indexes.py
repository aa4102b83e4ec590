"""A table has more indexes than DynamoDB allows, or so many that they cost more than the table.

Why: A table supports 20 global secondary indexes by default (a quota that AWS can raise) and 5 local ones.
Each index is charged like a table: an item in ten indexes is written eleven times.

Example: One index for each attribute that a user might filter by.

Instead: Overload indexes: let several entities and access patterns share one, or serve several patterns of an
entity with a longer sort key. Serve rare queries from an export to S3.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.monthly_costs import format_monthly_with_book, monthly_cost
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import format_units
from tavola.limits import GLOBAL_INDEXES_MAX, LOCAL_INDEXES_MAX

SEVERITY = "error"

_MANY = 8  # indexes that one write goes to
_DOLLARS = 10


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the tables with too many indexes, and the writes that touch very many of them."""
    for table in context.design.tables:
        for local, most in ((False, GLOBAL_INDEXES_MAX), (True, LOCAL_INDEXES_MAX)):
            count = sum(index.local is local for index in table.indexes)
            if count > most:
                word = "local" if local else "global"
                yield Defect(
                    context.table_place(table),
                    f"Has {count} {word} secondary indexes; the limit is {most}",
                    "Overload indexes: let several access patterns share one, with different key prefixes",
                    severity="error",
                )
    for table, entity, write in context.all_writes():
        touched = [effect for effect in context.index_effects(table, entity, write) if effect.units]
        if len(touched) < _MANY or write.per_second is None:
            continue
        units = sum(effect.units for effect in touched) * write.items
        dollars = monthly_cost(writes=units * write.per_second)
        if dollars >= _DOLLARS:
            yield Defect(
                context.write_place(table, entity, write),
                f"Each write updates {len(touched)} indexes, {format_units(units)} write units in addition to the table's: {format_monthly_with_book(dollars)}",
                "Overload indexes, project fewer attributes, or make indexes sparse",
                severity="advice",
            )
