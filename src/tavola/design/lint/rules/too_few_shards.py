"""A key is sharded, but each shard still receives more traffic than a partition supports.

Why: Each shard is one partition key value, limited to 1,000 write units and 3,000 read units per second. An
overloaded shard of an index also throttles writes to the table. A query reads every shard, so shards do not
divide read load.

Example: `pk="STATUS#{status}", shards=4` with five statuses and 40,000 writes per second.

Instead: Add shards: `tavola.patterns.shards_for(writes_per_second=…, item_bytes=…)` computes how many, and
`shard_change` describes how to change the number while the application runs. For reads, replicate the data
under several keys, cache the result, or use a more granular key.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import key_parts
from tavola.design.lint.heat import count_shards, describe_neighbours, overloaded_keys, time_bucket
from tavola.design.lint.rule import Defect, LintContext

SEVERITY = "warning"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the sharded keys whose busiest shard exceeds the limit, where the number of partitions is known."""
    for table, entity, key, heat in overloaded_keys(context):
        if key.shards is None or key.shards.by == "time" or time_bucket(entity, key) is not None:
            continue
        what = "The busiest partition key value" if key_parts(key.hash) else "The partition key"
        yield Defect(
            context.key_place(table, entity, key),
            f"{what} has {count_shards(key)} shards{describe_neighbours(heat, entity)}, and each receives {heat.overload}",
            heat.describe_remedy("use a partition key with more values"),
        )
