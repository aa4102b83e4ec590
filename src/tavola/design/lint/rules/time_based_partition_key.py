"""The partition key is a time bucket, so all current writes go to one partition.

Why: However many days there are, today's partition receives all of today's writes, and it supports 1,000
write units per second. The other partitions are idle.

Example: `pk="{created_at:day}"` with 3,000 readings per second.

Instead: Put the source of the data first (`SENSOR#{sensor_id}#{at:day}`), or shard the bucket, which helps
writes. Shards do not help queries that read all of them: replicate or cache the current bucket.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.heat import (
    count_shards,
    describe_neighbours,
    has_write_rates,
    partition_heat,
    time_bucket,
)
from tavola.design.lint.rule import Defect, LintContext

SEVERITY = "warning"


def find(context: LintContext) -> Iterator[Defect]:
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
            yield Defect(
                context.key_place(table, entity, key),
                f"{name} has one partition per {bucket}{describe_neighbours(found, entity)}, and the current one receives {over}",
                found.describe_remedy("begin the partition key with the source of the data"),
            )
        elif not has_write_rates(entity) and count_shards(key) == 1 and not table.foreign:
            yield Defect(
                context.key_place(table, entity, key),
                f"{name} has one partition per {bucket}, which limits {entity.name} to 1,000 write units per second",
                "Declare the peak write rate (peak_per_second)",
                severity="advice",
            )
