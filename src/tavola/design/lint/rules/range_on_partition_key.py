"""A query uses a range condition on a partition key.

Why: DynamoDB finds items by the hash of the partition key, so partition keys have no order. It rejects every
condition on a partition key except equality.

Example: A sparse index with the partition key `escalated_at`, queried with `escalated_at >= :since`.

Instead: Make the ordered attribute the sort key, under a partition key that the query knows: the owner of the
items, or a constant, sharded if it is written often.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import RANGE_OPERATORS
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import describe_key_for, join_names

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the needs with a range on the partition key of their route, or of the best key if they have no route."""
    for routed in context.routed_queries():
        ranges = {each.field: each.operator for each in routed.route.keys if each.operator in RANGE_OPERATORS}
        wrong = [name for name in routed.partition_attributes if name in ranges]
        if wrong:
            yield Defect(
                context.need_place(routed.need),
                f"Uses {join_names(f'{name} {ranges[name]}' for name in wrong)} on the partition key of {routed.target_name}; DynamoDB allows only =",
                f"Make {join_names(wrong)} a sort key: {describe_key_for(routed.need)}",
            )
    for need, best, paths in context.best_paths():
        near = next((path for path in paths if path.obstacle == "partition-range"), None)
        if best.operation == "scan" and near is not None:
            yield Defect(
                context.need_place(need),
                f"Uses a range condition on {join_names(near.obstacle_fields)}, the partition key of {near.target_name}; DynamoDB allows only =",
                f"Make {join_names(near.obstacle_fields)} a sort key: {describe_key_for(need)}",
            )
