"""A read does not provide all attributes of a partition key.

Why: The partition is found by hashing all partition key attributes together. If one is missing, DynamoDB
rejects the query, and a key template cannot be rendered.

Example: An index with the partition key (`tenant`, `region`) is queried by tenant for all regions.

Instead: Query once per value of the missing attribute if it has few values, or move it from the partition key
to the first sort key attribute, where it is optional.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names

SEVERITY = "error"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the needs that omit a part of the key of their route, or of the only key that would otherwise serve."""
    for routed in context.routed_queries():
        given = {each.field for each in routed.route.keys}
        missing = [name for name in routed.partition_attributes if name not in given]
        if missing and routed.route.keys:
            yield Defect(
                context.need_place(routed.need),
                f"Does not provide {join_names(missing)}, part of the partition key of {routed.target_name} ({', '.join(routed.partition_attributes)}); DynamoDB rejects the query",
                f"Provide {join_names(missing)} with =, or move it to the sort key",
            )
    for need, best, paths in context.best_paths():
        if best.operation != "scan" or any(path.obstacle == "partition-range" for path in paths):
            continue
        near = next((path for path in paths if path.obstacle == "partial"), None)
        if near is not None:
            yield Defect(
                context.need_place(need),
                f"Does not provide {join_names(near.obstacle_fields)}, part of the partition key of {near.target_name}",
                f"Provide {join_names(near.obstacle_fields)} as well, or make it the first sort key attribute",
            )
