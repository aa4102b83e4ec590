"""A key does not return items in the requested order.

Why: A query returns items in the order of the whole sort key: by its first attribute, then by the second. In
another order, the first page contains the wrong items, and sorting that page does not bring in the missing
ones.

Example: "A customer's tickets, newest first" with the sort key `STATUS#{status}#{created_at}`: newest first
holds within one status only.

Instead: Add a key that starts with the requested order, `{created_at}`. Queries by status keep the existing
key.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import AccessPath, key_parts
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import describe_key_for, join_names

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the needs whose best key, or the key of their route, has another order."""
    for need in context.design.needs:
        paths = context.access_paths(need)
        if not need.order or not paths:
            continue
        best = paths[0]
        used: AccessPath | None = best
        if need.route is not None:
            is_query = need.route.operation == "query"
            used = next((path for path in paths if is_query and path.key.index == need.route.index), None)
        if used is not None and used.operation != "scan" and not used.ordered:
            better = best.serves and best.ordered
            yield Defect(
                context.need_place(need),
                f"Needs items ordered by {join_names(need.order)}, but {used.target_name} sorts by {_first_sort_field(used)} first",
                f"Query {best.target_name}" if better else f"Add {describe_key_for(need)}",
            )


def _first_sort_field(path: AccessPath) -> str:
    parts = key_parts(path.key.range)
    return parts[0].field if parts else "nothing"
