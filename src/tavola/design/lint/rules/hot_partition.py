"""The partition key has too few distinct values for the traffic it receives.

Why: A partition supports 1,000 write units and 3,000 read units per second, and all items with one partition
key value share it. An index on a status with five values has the throughput of five partitions, however large
the table is. A throttled global secondary index also throttles writes to the table.

Example: `pk="STATUS#{status}"` with 5 statuses and 8,000 new tickets per second.

Instead: For writes, shard the key (`shards=…`; Tavola queries all shards and merges the results), or use a
key with more values. Shards do not help queries that read all of them: replicate the data under several keys,
cache it, or use a more granular key.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import key_parts
from tavola.design.lint.heat import (
    count_active_partitions,
    count_shards,
    describe_neighbours,
    has_write_rates,
    partition_heat,
    time_bucket,
)
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names

SEVERITY = "warning"

_FEW = 16  # values; with so few, one value usually has most of the items


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the keys whose partitions receive more than the limit; without rates, keys with very few values."""
    for table, entity, key in context.all_keys():
        fields = [slot.field for slot in key_parts(key.hash)]
        if not fields or count_shards(key) > 1 or time_bucket(entity, key) is not None:
            continue
        found, count = (
            partition_heat(context, table, entity, key),
            count_active_partitions(context, table, entity, key),
        )
        if found is None or count is None:
            continue
        over = found.overload
        place = context.key_place(table, entity, key)
        name = key.index or table.name
        if over is not None and found.busiest_entity == entity.name:
            yield Defect(
                place,
                f"{name} is partitioned by {join_names(fields)} ({count:,} values), and the busiest partition of {entity.name}{describe_neighbours(found, entity)} receives {over}",
                found.describe_remedy("add an attribute with more values to the partition key"),
            )
        elif (
            over is None
            and count <= _FEW
            and key.index is not None
            and key.shards is None
            and not has_write_rates(entity)
        ):
            yield Defect(
                place,
                f"{name} is partitioned by {join_names(fields)} ({count} values), which limits {entity.name} to {count * 1_000:,} write units per second",
                "Declare the peak write rate (peak_per_second), or shard the key",
                severity="advice",
            )
