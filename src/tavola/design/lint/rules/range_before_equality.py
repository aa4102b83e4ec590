"""A range comes before an equality in a sort key.

Why: A sort key decides one stretch. After the first part that is a stretch itself, the parts behind it are in no order: DynamoDB refuses
a condition on them, and only a filter can apply it.

Example: An index sorted by (`created_at`, `status`) asked for one status in a range of dates.

Instead: Let what is given with `=` come first and the stretch last: (`status`, `created_at`).
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import RANGE_OPERATORS
from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.design.text import join_names

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the needs whose route has the range first, and those whose best key has."""
    for routed in context.routed_needs():
        given = {each.field: each.operator for each in routed.route.keys}
        compared = [name for name in routed.sort_attributes if name in given]
        early = [name for name in compared[:-1] if given[name] in RANGE_OPERATORS]
        if routed.route.operation == "query" and routed.index_exists and early:
            later = compared[compared.index(early[0]) + 1 :]
            yield Finding(
                "range-before-equality",
                SEVERITY,
                context.need_place(routed.need),
                f"it asks {early[0]} {given[early[0]]} and then {join_names(later)}, behind it in {routed.target_name}'s sort key: DynamoDB refuses it",
                f"add an index sorted by {', '.join([*later, early[0]])}",
            )
    for need in context.design.needs:
        paths = context.access_paths(need) if need.route is None else ()
        if paths and paths[0].operation == "filter" and paths[0].obstacle == "early-range":
            first, *later = paths[0].obstacle_fields
            yield Finding(
                "range-before-equality",
                "warning",
                context.need_place(need),
                f"{first} is a stretch and stands before {join_names(later)} in the sort key of "
                f"{paths[0].key.index or paths[0].table.name}: only a filter finds {join_names(later)}",
                f"sort by {', '.join([*later, first])}",
            )
