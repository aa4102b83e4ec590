"""A global index is read with strong consistency, which it does not offer.

Why: A global index follows the table a little later; there is no read of it that sees every write before. DynamoDB refuses
`ConsistentRead` on one.

Example: `AccessPattern("whether a request was done", consistent=True)` on a query of a global index.

Instead: Ask by the table's own key, or a local index; or live with what is a moment old, and decide by a condition in the write.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import DesignPath, Finding, Severity
from tavola.design.lint.rule import LintContext

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield consistent reads on a global index."""
    for table, entity, pattern in context.design.patterns():
        if pattern.access is not None and pattern.access.consistent and not pattern.hydrate:
            yield from _check_index(
                context, table.name, pattern.index, context.pattern_place(table, entity, pattern)
            )
    for table in context.design.tables:
        for collection in table.collections:
            if collection.access is not None and collection.access.consistent:
                yield from _check_index(
                    context, table.name, collection.index, context.collection_place(table, collection)
                )
    for routed in context.routed_needs():
        if routed.need.access is not None and routed.need.access.consistent:
            yield from _check_index(
                context, routed.table.name, routed.route.index, context.need_place(routed.need)
            )


def _check_index(context: LintContext, table: str, name: str | None, place: DesignPath) -> Iterator[Finding]:
    index = context.find_index(context.design.table(table), name)
    if index is not None and not index.local:
        yield Finding(
            "consistent-index-read",
            SEVERITY,
            place,
            f"it asks {index.name}, a global index, for a consistent read: DynamoDB refuses it",
            "read the table by its key, or do without consistent=True",
        )
