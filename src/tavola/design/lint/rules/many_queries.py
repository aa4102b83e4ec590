"""One read takes many queries.

Why: Each query is a round trip and half a unit at least, whatever it finds. A query for each day is fine for a month; for ten years it is 3,650
of them, one after another.

Example: A risk trend that asks the index of each day, for as many days as the chart shows.

Instead: Keep the sums: an item a day, written by a stream or with the change, so that a month of them is one query. Or take a coarser
partition, a month instead of a day.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.monthly_costs import format_monthly_with_book, format_per_million, monthly_cost
from tavola.design.lint.rule import LintContext
from tavola.design.text import format_rate
from tavola.values import read_units

SEVERITY: Severity = "warning"

_MANY = 31  # a query a day, for a month


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the needs that take more queries than a month has days."""
    for routed in context.routed_needs():
        count, access = routed.route.queries, routed.need.access
        if count <= _MANY:
            continue
        least = count * read_units(1, consistent=bool(access and access.consistent))
        often = access.per_second if access else None
        cost = format_per_million(least, "read")
        if often:
            cost += f", at {format_rate(often)} a second {format_monthly_with_book(monthly_cost(reads=least * often))}"
        yield Finding(
            "many-queries",
            SEVERITY,
            context.need_place(routed.need),
            f"one question is {count:,} queries of {routed.target_name}, {least:g} units at least even if they find nothing: {cost}",
            "keep the numbers that it adds up in items of their own, or let a partition hold a longer stretch",
        )
