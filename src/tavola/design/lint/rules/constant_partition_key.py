"""All items share one partition key value, which receives more traffic than one partition supports.

Why: A constant key is a single partition: 1,000 write units and 3,000 read units per second in total. More
table capacity does not help, and a throttled global secondary index also throttles writes to the table.

Example: `pk="TICKETS"` on an index of all tickets, with 1,500 new tickets per second.

Instead: For writes, add shards: `shards=4` spreads the items over four partition key values, and Tavola
merges them in order on read. Queries read every shard, so shards do not reduce read load: replicate the data
under several keys, cache the result, or use a more granular key.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import key_parts
from tavola.design.lint.heat import describe_neighbours, overloaded_keys
from tavola.design.lint.rule import Defect, LintContext

SEVERITY = "warning"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the constant keys without shards that receive more than a partition allows."""
    for table, entity, key, heat in overloaded_keys(context):
        if key_parts(key.hash) or key.shards is not None:
            continue
        if not key_parts(key.range) and any(write.adds for write in entity.writes):
            continue  # one counter item, which a sharded key does not help; reported by hot-counter
        yield Defect(
            context.key_place(table, entity, key),
            f"All {entity.name} items share one partition of {key.index or table.name}{describe_neighbours(heat, entity)}, which receives {heat.overload}",
            heat.describe_remedy("add an attribute to the partition key"),
        )
