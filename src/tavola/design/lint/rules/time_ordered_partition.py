"""A partition holds a period of time, so all current writes go to one partition.

Why: Whatever the number of days, today's partition takes today's writes alone: 1,000 units a second. The others are cold, and capacity for
them is paid for nothing.

Example: `pk="{created_at:day}"` with 3,000 readings a second.

Instead: Let what the readings are of come first (`SENSOR#{sensor_id}#{at:day}`), or add shards to the day,
which help its writes. Reads that ask every shard they do not help: keep copies, or cache the present.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.heat import (
    count_shards,
    describe_neighbours,
    has_write_rates,
    partition_heat,
    time_bucket,
)
from tavola.design.lint.rule import LintContext

SEVERITY: Severity = "warning"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the keys by a period of time whose current partition receives more than it allows."""
    for table, entity, key in context.all_keys():
        bucket = time_bucket(entity, key)
        if bucket is None:
            continue
        found = partition_heat(context, table, entity, key)
        over = None if found is None else found.overload
        name = key.index or table.name
        if found is not None and over is not None:
            if found.busiest_entity != entity.name:
                continue
            yield Finding(
                "time-ordered-partition",
                SEVERITY,
                context.key_place(table, entity, key),
                f"{name} has a partition for each {bucket}{describe_neighbours(found, entity)}, and the present one gets {over}",
                found.describe_remedy("let the partition key begin with what they are of"),
            )
        elif not has_write_rates(entity) and count_shards(key) == 1 and not table.foreign:
            yield Finding(
                "time-ordered-partition",
                "advice",
                context.key_place(table, entity, key),
                f"{name} has a partition for each {bucket}: 1,000 writes a second at most, for all of {entity.name}",
                "declare how often it is written (peak_per_second)",
            )
