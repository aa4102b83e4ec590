"""A read does not give all attributes of a partition key.

Why: The partition is the hash of all its attributes together. With one of them missing there is nothing to hash: DynamoDB refuses the
query, and a template cannot be made.

Example: An index keyed by (`tenant`, `region`) asked for a tenant in all regions.

Instead: Ask once for each value of the missing attribute, if they are few; or take it out of the partition key and make it the first
sort attribute, where it may be left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.design.text import join_names

SEVERITY: Severity = "error"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the needs that omit a part of the key of their route, or of the only key that nearly serves."""
    for routed in context.routed_needs():
        given = {each.field for each in routed.route.keys}
        missing = [name for name in routed.partition_attributes if name not in given]
        if routed.route.operation == "query" and routed.index_exists and missing and routed.route.keys:
            yield Finding(
                "partial-partition-key",
                SEVERITY,
                context.need_place(routed.need),
                f"it leaves out {join_names(missing)} of {routed.target_name}'s partition key ({', '.join(routed.partition_attributes)}): DynamoDB refuses it",
                f"give {join_names(missing)} with =, or make it a sort attribute",
            )
    for need in context.design.needs:
        paths = context.access_paths(need) if need.route is None else ()
        if not paths or paths[0].operation != "scan" or any(path.obstacle == "stretch" for path in paths):
            continue
        near = next((path for path in paths if path.obstacle == "partial"), None)
        if near is not None:
            yield Finding(
                "partial-partition-key",
                SEVERITY,
                context.need_place(need),
                f"it leaves out {join_names(near.obstacle_fields)} of the partition key of {near.key.index or near.table.name}",
                f"give {join_names(near.obstacle_fields)} too, or make it the first sort attribute",
            )
