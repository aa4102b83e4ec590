"""A range condition comes before an equality condition in a sort key.

Why: A query selects one contiguous range of sort keys. After an attribute with a range condition, the
remaining attributes are not ordered, so DynamoDB rejects conditions on them and only a filter can apply them.

Example: An index sorted by (`created_at`, `status`), queried for one status in a date range.

Instead: Put attributes with `=` first and the range last: (`status`, `created_at`).
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import RANGE_OPERATORS
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the needs whose route has the range first, and those whose best key has."""
    for routed in context.routed_queries():
        given = {each.field: each.operator for each in routed.route.keys}
        compared = [name for name in routed.sort_attributes if name in given]
        early = [name for name in compared[:-1] if given[name] in RANGE_OPERATORS]
        if early:
            later = compared[compared.index(early[0]) + 1 :]
            yield Defect(
                context.need_place(routed.need),
                f"Uses {early[0]} {given[early[0]]} before a condition on {join_names(later)} in the sort key of {routed.target_name}; DynamoDB rejects the query",
                f"Add an index sorted by {', '.join([*later, early[0]])}",
            )
    for need, best, _ in context.best_paths():
        if best.operation == "filter" and best.obstacle == "early-range":
            first, *later = best.obstacle_fields
            yield Defect(
                context.need_place(need),
                f"{first} is a range and comes before {join_names(later)} in the sort key of {best.target_name}, so {join_names(later)} needs a filter",
                f"Sort by {', '.join([*later, first])}",
                severity="warning",
            )
