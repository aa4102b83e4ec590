"""A sort attribute is given without one that comes before it.

Why: The parts of a sort key are compared from the left, like the letters of a word. A part can be given only where all before it are, so
DynamoDB refuses a gap; a filter in its place reads everything to the left of it.

Example: An index sorted by (`round`, `bracket`) asked for a bracket in any round.

Instead: Put the part that is always known first, or add an index in the other order.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.design.text import join_names

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the needs whose route has a gap, and those that need a filter because of one."""
    for routed in context.routed_needs():
        given = {each.field for each in routed.route.keys}
        last = max((at for at, name in enumerate(routed.sort_attributes) if name in given), default=-1)
        missing = [name for name in routed.sort_attributes[: last + 1] if name not in given]
        if routed.route.operation == "query" and routed.index_exists and missing:
            yield Finding(
                "sort-key-gap",
                SEVERITY,
                context.need_place(routed.need),
                f"it gives {routed.sort_attributes[last]} without {join_names(missing)}, before it in {routed.target_name}'s sort key: DynamoDB refuses it",
                f"give {join_names(missing)} with =, or add an index with {routed.sort_attributes[last]} first",
            )
    for need in context.design.needs:
        paths = context.access_paths(need) if need.route is None else ()
        if paths and paths[0].operation == "filter" and paths[0].obstacle == "gap":
            near = paths[0]
            later = join_names(each.field for each in near.filtered)
            yield Finding(
                "sort-key-gap",
                "warning",
                context.need_place(need),
                f"{later} stands behind {join_names(near.obstacle_fields)} in the sort key of {near.key.index or near.table.name}, "
                f"and that is not given: only a filter finds it",
                f"give {join_names(near.obstacle_fields)} too, or add an index with {later} first",
            )
