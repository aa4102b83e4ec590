"""Entities that are read together are in different tables.

Why: DynamoDB joins nothing. What stands in two tables is read with two requests, one after the other where the second
needs the answer of the first, and the two answers are of different moments. In one table, under one partition key, it is
one query.

Example: `Users` and `Orders`, and "a user with the orders" asked of both.

Instead: Put what is read together into one table under one partition key: `USER#{user_id}` with the sort keys `PROFILE` and
`ORDER#{order_id}`, and declare a Collection of both.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext

SEVERITY: Severity = "warning"


def find(context: LintContext) -> Iterator[Finding]:
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
        tables_text = ", ".join(f"{name} of {table.label}" for name, table in homes.items())
        rate = None if need.access is None else need.access.per_second
        often = "" if not rate else f", {rate * len(tables):g} requests a second for {rate:g} answers"
        yield Finding(
            "table-per-entity",
            SEVERITY,
            context.need_place(need),
            f"it wants {tables_text}: {len(tables)} tables, so a request to each at least{often}, and nothing joins them at one moment",
            "put what is read together into one table under one partition key, and read it as a Collection",
        )
