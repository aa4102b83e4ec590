"""A sort key attribute is given without the attributes before it.

Why: Sort key attributes are compared from left to right. A condition on one requires equality on all before
it, so DynamoDB rejects a gap. A filter instead reads everything that the attributes before the gap select.

Example: An index sorted by (`round`, `bracket`), queried by bracket for all rounds.

Instead: Put the attribute that is always known first, or add an index with the reverse order.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the needs whose route has a gap, and those that need a filter because of one."""
    for routed in context.routed_queries():
        given = {each.field for each in routed.route.keys}
        last = max((at for at, name in enumerate(routed.sort_attributes) if name in given), default=-1)
        missing = [name for name in routed.sort_attributes[: last + 1] if name not in given]
        if missing:
            yield Defect(
                context.need_place(routed.need),
                f"Provides {routed.sort_attributes[last]} without {join_names(missing)}, which comes before it in the sort key of {routed.target_name}; DynamoDB rejects the query",
                f"Provide {join_names(missing)} with =, or add an index with {routed.sort_attributes[last]} first",
            )
    for need, near, _ in context.best_paths():
        if near.operation == "filter" and near.obstacle == "gap":
            later = join_names(each.field for each in near.filtered)
            yield Defect(
                context.need_place(need),
                f"{later} comes after {join_names(near.obstacle_fields)} in the sort key of {near.target_name}, "
                f"which is not provided, so {later} needs a filter",
                f"Provide {join_names(near.obstacle_fields)} as well, or add an index with {later} first",
                severity="warning",
            )
