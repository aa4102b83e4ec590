"""A key does not return items in the requested order.

Why: A query answers in the order of its sort key, whole: by its first part, and by the second among equal first ones. The first page of
another order is made of the wrong items, and sorting a page afterwards does not bring in those that are missing.

Example: "a customer's tickets, newest first" on a sort key `STATUS#{status}#{created_at}`: newest first holds within a status alone.

Instead: Give the order a key of its own, with what it is ordered by first: `{created_at}`. The question with a status keeps the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import AccessPath, key_parts
from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.design.text import describe_key_for, join_names

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the needs whose best key, or the key of their route, has another order."""
    for need in context.design.needs:
        paths = context.access_paths(need)
        if not need.order or not paths:
            continue
        best = paths[0]
        if need.route is None:
            wrong = best.operation != "scan" and not best.ordered
            used = best
        else:
            by_index = {path.key.index: path for path in paths}
            if need.route.operation != "query" or need.route.index not in by_index:
                continue
            used = by_index[need.route.index]
            wrong = used.operation != "scan" and not used.ordered
        if wrong:
            better = best.serves and best.ordered
            yield Finding(
                "wrong-order",
                SEVERITY,
                context.need_place(need),
                f"it wants {join_names(need.order)} in order, and {_name(used)} sorts by {_sorts(used)} first",
                f"ask {_name(best)}" if better else f"add {describe_key_for(need)}",
            )


def _name(path: AccessPath) -> str:
    return path.key.index or path.table.name


def _sorts(path: AccessPath) -> str:
    found = key_parts(path.key.range)
    return found[0].field if found else "nothing"
