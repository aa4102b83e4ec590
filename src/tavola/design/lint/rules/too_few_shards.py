"""A key is sharded, and its traffic still exceeds what its shards allow.

Why: Each shard is one partition key, and a partition takes 1,000 write units and 3,000 read units a second. Shards that are too few
throttle as one key would, only later; in an index they hold up the table's own writes. A query asks every shard, so reads are not
divided by them: each shard gets all of them.

Example: `pk="STATUS#{status}", shards=4` with five states, written 40,000 times a second.

Instead: Give more shards: `tavola.patterns.shards_for(writes_per_second=…, item_bytes=…)` says how many, and `shard_change`
how to get there while the application runs. For reads keep copies of what is read under several keys and ask any one, cache the answer, or key
by something finer.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import key_parts
from tavola.design.findings import Finding, Severity
from tavola.design.lint.heat import count_shards, describe_neighbours, partition_heat, time_bucket
from tavola.design.lint.rule import LintContext

SEVERITY: Severity = "warning"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the sharded keys whose busiest shard exceeds the limit, where the number of partitions is known."""
    for table, entity, key in context.all_keys():
        if key.shards is None or key.shards.by == "time" or time_bucket(entity, key) is not None:
            continue
        found = partition_heat(context, table, entity, key)
        over = None if found is None else found.overload
        if found is not None and over is not None and found.busiest_entity == entity.name:
            what = "its busiest key" if key_parts(key.hash) else "its key"
            yield Finding(
                "too-few-shards",
                SEVERITY,
                context.key_place(table, entity, key),
                f"{what} has {count_shards(key)} shards{describe_neighbours(found, entity)}, and each gets {over}",
                found.describe_remedy("key by something with more values"),
            )
