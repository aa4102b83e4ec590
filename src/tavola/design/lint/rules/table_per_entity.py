"""Entities that are read together are stored in different tables.

Why: DynamoDB has no joins. Reading from two tables takes two requests, often one after the other, and the
results may be from different points in time. In one table, under one partition key, it is a single query.

Example: Tables `Users` and `Orders`, and the access pattern "a user with all orders".

Instead: Store entities that are read together in one table under one partition key: `USER#{user_id}` with the
sort keys `PROFILE` and `ORDER#{order_id}`. Declare a Collection of both.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import format_rate, join_names

SEVERITY = "warning"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the needs whose entities are in several tables."""
    for need in context.needs:
        homes = {
            name: context.entities_by_name[name][0]
            for name in need.entities
            if name in context.entities_by_name
        }
        tables = list(dict.fromkeys(table.name for table in homes.values()))
        if len(tables) < 2:
            continue
        reads = join_names(f"{name} from {table.label}" for name, table in homes.items())
        rate = None if need.access is None else need.access.per_second
        often = "" if not rate else f" ({format_rate(rate * len(tables))} per second)"
        yield Defect(
            context.need_place(need),
            f"Reads {reads}: at least {len(tables)} requests{often}, without a consistent snapshot",
            "Store them in one table under one partition key, and read them as a Collection",
        )
