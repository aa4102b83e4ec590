"""No key serves an access pattern.

Why: DynamoDB finds items by the partition key of the table or of an index, given whole and with equality. A question that gives
no such key can only be answered by reading everything.

Example: `Need("tickets of a product", Ticket, "product")` where no index has `product` as its partition key.

Instead: Add the index that the finding names, or key an index that is there by it as well, for an overloaded one serves several
patterns. Then declare the query on it. Of entities that have no keys yet, `tavola solve` finds keys and indexes for all that is asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.relations import is_reverse_lookup
from tavola.design.lint.rule import LintContext
from tavola.design.text import describe_conditions, describe_key_for, join_names

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the needs without a route that would take a scan."""
    for need in context.design.needs:
        bare = [name for name in need.entities if name in context.unplaced_entities]
        if bare and need.route is None:
            asked = f" by {describe_conditions(need.where)}" if need.where else ""
            yield Finding(
                "unserved-pattern",
                SEVERITY,
                context.need_place(need),
                f"no key finds {join_names(need.entities)}{asked}: {join_names(bare)} {'has' if len(bare) == 1 else 'have'} no keys yet",
                "let `tavola solve` find keys and indexes, or declare a table, a key and the query",
            )
            continue
        homes = {home[0].name for name in need.entities if (home := context.entities_by_name.get(name))}
        if (
            need.route is not None
            or len(homes) != 1
            or any(name not in context.entities_by_name for name in need.entities)
        ):
            continue  # how it is asked, across tables or of what has no key yet, is for other rules
        paths = context.access_paths(need)
        if paths and paths[0].operation != "scan":
            continue
        if any(path.obstacle for path in paths) or is_reverse_lookup(context, need):
            continue  # a key nearly serves it: told by the rule of that defect
        asked = f"by {describe_conditions(need.where)}" if need.where else "as a whole"
        keys = join_names(sorted({name for path in paths for name in path.missing}), "or")
        lacks = f"; the keys there are want {keys}" if keys else ""
        yield Finding(
            "unserved-pattern",
            SEVERITY,
            context.need_place(need),
            f"no key finds {join_names(need.entities)} {asked}{lacks}",
            f"add {describe_key_for(need)}, and declare the query on it",
        )
