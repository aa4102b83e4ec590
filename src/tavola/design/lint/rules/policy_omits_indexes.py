"""A policy allows queries on a table but not on its indexes.

Why: An index is a separate resource, `table/T/index/I`, which `table/T` does not cover. Every query on an
index fails with AccessDeniedException.

Example: `"Action": ["dynamodb:GetItem", "dynamodb:Query"], "Resource": "…table/tickets"`, while tickets are
listed through an index.

Instead: Add the indexes that are used: `"…table/tickets/index/by_customer"`, or `"…table/tickets/index/*"`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.grants import leading_key_conditions, readable_policies
from tavola.design.lint.rule import Defect, LintContext
from tavola.model.document import TableDesign

SEVERITY = "warning"

_QUERY = "dynamodb:query"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the policies that allow Query on a table whose patterns use indexes, and on none of those indexes.

    A policy that allows some of the indexes may be intended.
    """
    for each in readable_policies(context):
        for table in each.tables:
            used = _used_indexes(context, table)
            open_ = [
                found
                for found in each.statements_allowing(_QUERY, table)
                if not leading_key_conditions(found)
            ]
            if not used or not open_:
                continue  # a policy restricted to some keys may exclude indexes on purpose
            if any(each.statements_allowing(_QUERY, table, index) for index in used):
                continue
            yield Defect(
                each.place,
                f"Allows Query on {table.name} but on none of the indexes that access patterns use ({', '.join(used)}): these queries are denied",
                f"Add their ARNs: table/{table.name}/index/{used[0]}, or /index/* for all",
            )


def _used_indexes(context: LintContext, table: TableDesign) -> tuple[str, ...]:
    """Return the indexes that patterns use, in their order."""
    names = {pattern.index for entity in table.entities for pattern in entity.patterns}
    names |= {collection.index for collection in table.collections}
    names |= {
        need.route.index
        for need in context.needs
        if need.route is not None and any(entity.name in need.entities for entity in table.entities)
    }
    return tuple(index.name for index in table.indexes if index.name in names)
