"""One read takes many queries.

Why: Each query is a round trip and consumes at least half a read unit, even if it returns nothing. One query
per day is acceptable for a month; for ten years it is 3,650 queries.

Example: A risk trend queries one index partition per day, for every day in the chart.

Instead: Maintain aggregates: one item per day, updated from the stream or with the change, so that one query
reads a month. Or use longer time buckets in the partition key, a month instead of a day.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.monthly_costs import format_monthly_with_book, format_per_million, monthly_cost
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import format_rate, format_units
from tavola.values import read_units

SEVERITY = "warning"

_MANY = 31  # a query a day, for a month


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the needs that take more queries than a month has days."""
    for routed in context.routed_needs():
        count, access = routed.route.queries, routed.need.access
        if count <= _MANY:
            continue
        least = count * read_units(1, consistent=bool(access and access.consistent))
        rate = access.per_second if access else None
        cost = format_per_million(least, "read")
        if rate:
            cost += f", {format_monthly_with_book(monthly_cost(reads=least * rate))} at {format_rate(rate)} per second"
        yield Defect(
            context.need_place(routed.need),
            f"Each read sends {count:,} queries to {routed.target_name}, at least {format_units(least)} read units even without results: {cost}",
            "Maintain aggregates in separate items, or use longer time buckets in the partition key",
        )
