"""The partition key has too few distinct values for its traffic.

Why: A partition takes 1,000 write units and 3,000 read units a second. All items that share a partition key are in one place, so an
index by a status of five values takes five partitions' traffic and no more, however large the table is; and a global index that
cannot keep up throttles the writes of the table.

Example: `pk="STATUS#{status}"` with 5 statuses and 8,000 tickets opened a second.

Instead: For writes, shard the key (`shards=…` in a design of Tavola, read as one), or key by something with more values. Shards do not help
reads that ask all of them: keep copies of what is read under several keys, cache it, or key by something finer.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import key_parts
from tavola.design.findings import Finding, Severity
from tavola.design.lint.heat import (
    count_active_partitions,
    count_shards,
    describe_neighbours,
    has_write_rates,
    partition_heat,
    time_bucket,
)
from tavola.design.lint.rule import LintContext
from tavola.design.text import join_names

SEVERITY: Severity = "warning"

_FEW = 16  # values that a person could count, of which one is usually most items'


def find(context: LintContext) -> Iterator[Finding]:
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
            yield Finding(
                "few-partitions",
                SEVERITY,
                place,
                f"{entity.name} has {count:,} partitions in {name} by {join_names(fields)}{describe_neighbours(found, entity)}, and the busiest gets {over}",
                found.describe_remedy("add a field with more values to its partition key"),
            )
        elif (
            over is None
            and count <= _FEW
            and key.index is not None
            and key.shards is None
            and not has_write_rates(entity)
        ):
            yield Finding(
                "few-partitions",
                "advice",
                place,
                f"{name} has {count} partitions by {join_names(fields)}: {count * 1_000:,} writes a second at most for all of {entity.name}",
                "declare how often it is written (peak_per_second), or shard it",
            )
