"""A partition key is compared with an inequality.

Why: Items are found by the hash of their partition key, so partitions have no order. DynamoDB refuses any condition on a partition key
but equality.

Example: A sparse index keyed by `escalated_at`, asked with `escalated_at >= :since`.

Instead: Make what has an order the sort key, under a partition key that is known: one constant for all, with shards if it is written
often, or the one whose items they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import RANGE_OPERATORS
from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.design.text import describe_key_for, join_names

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the needs whose route does so, and needs without a route that no key serves otherwise."""
    for routed in context.routed_needs():
        stretches = {
            each.field: each.operator for each in routed.route.keys if each.operator in RANGE_OPERATORS
        }
        wrong = [name for name in routed.partition_attributes if name in stretches]
        if routed.route.operation == "query" and routed.index_exists and wrong:
            yield Finding(
                "partition-inequality",
                SEVERITY,
                context.need_place(routed.need),
                f"it asks {join_names(f'{name} {stretches[name]}' for name in wrong)}, a partition key of {routed.target_name}: DynamoDB refuses it",
                f"let {join_names(wrong)} be a sort key: {describe_key_for(routed.need)}",
            )
    for need in context.design.needs:
        paths = context.access_paths(need) if need.route is None else ()
        if not paths or paths[0].operation != "scan":
            continue
        near = next((path for path in paths if path.obstacle == "stretch"), None)
        if near is not None:
            yield Finding(
                "partition-inequality",
                SEVERITY,
                context.need_place(need),
                f"it asks for a stretch of {join_names(near.obstacle_fields)}, the partition key of {near.key.index or near.table.name}",
                f"let {join_names(near.obstacle_fields)} be a sort key: {describe_key_for(need)}",
            )
