"""A query requests a strongly consistent read from a global secondary index.

Why: Global secondary indexes are updated asynchronously and support eventually consistent reads only.
DynamoDB rejects `ConsistentRead` on a GSI.

Example: `AccessPattern("whether a request was processed", consistent=True)` on a query of a GSI.

Instead: Read the table by its primary key, or use a local secondary index. If a slightly stale read is
acceptable, drop `consistent=True` and guard the write with a condition expression.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import DesignPath
from tavola.design.lint.rule import Defect, LintContext

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
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


def _check_index(context: LintContext, table: str, name: str | None, place: DesignPath) -> Iterator[Defect]:
    index = context.find_index(context.design.table(table), name)
    if index is not None and not index.local:
        yield Defect(
            place,
            f"Requests a strongly consistent read from {index.name}, a global secondary index; DynamoDB rejects it",
            "Read the table by its primary key, or remove consistent=True",
        )
