"""Not all attributes of a partition key are given.

Why: The partition is the hash of all its attributes together. With one of them missing there is nothing to hash: DynamoDB refuses the
query, and a template cannot be made.

Example: An index keyed by (`tenant`, `region`) asked for a tenant in all regions.

Instead: Ask once for each value of the missing attribute, if they are few; or take it out of the partition key and make it the first
sort attribute, where it may be left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import Subject
from tavola.design.lint.telling import joined

SEVERITY: Severity = "error"


def find(subject: Subject) -> Iterator[Finding]:
    """Give the needs that leave out a part of the key they are asked by, or of the only key that is near."""
    for asked in subject.asked():
        given = {each.field for each in asked.route.keys}
        missing = [name for name in asked.hash if name not in given]
        if asked.route.operation == "query" and asked.known and missing and asked.route.keys:
            yield Finding(
                "partial-partition-key",
                SEVERITY,
                subject.need_place(asked.need),
                f"it leaves out {joined(missing)} of {asked.on}'s partition key ({', '.join(asked.hash)}): DynamoDB refuses it",
                f"give {joined(missing)} with =, or make it a sort attribute",
            )
    for need in subject.design.needs:
        served = subject.access_paths(need) if need.route is None else ()
        if (
            not served
            or served[0].operation != "scan"
            or any(serving.obstacle == "stretch" for serving in served)
        ):
            continue
        near = next((serving for serving in served if serving.obstacle == "partial"), None)
        if near is not None:
            yield Finding(
                "partial-partition-key",
                SEVERITY,
                subject.need_place(need),
                f"it leaves out {joined(near.obstacle_fields)} of the partition key of {near.key.index or near.table.name}",
                f"give {joined(near.obstacle_fields)} too, or make it the first sort attribute",
            )
