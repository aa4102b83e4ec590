"""All items share one partition key, which receives more than one partition allows.

Why: A constant key is one partition: 1,000 write units and 3,000 read units a second for everything in it. No capacity of the table
helps, and a global index that throttles makes the writes of the table fail.

Example: `pk="TICKETS"` on an index of all tickets, 1,500 of them opened a second.

Instead: For writes, give it shards: `shards=4` spreads the items over four keys, and Tavola reads them back in order as one. Reads ask every
shard, so that none gets fewer of them: for these, keep copies under several keys and ask any one, cache the answer, or key by something finer.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import key_parts
from tavola.design.findings import Finding, Severity
from tavola.design.lint.heat import describe_neighbours, partition_heat
from tavola.design.lint.rule import LintContext

SEVERITY: Severity = "warning"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the constant keys without shards that receive more than a partition allows."""
    for table, entity, key in context.all_keys():
        if not context.has_constant_partition(key) or key.shards is not None:
            continue
        if not key_parts(key.range) and any(write.adds for write in entity.writes):
            continue  # one item that is counted on: no shards of a key help it, and another rule says what does
        found = partition_heat(context, table, entity, key)
        over = None if found is None else found.overload
        if found is not None and over is not None and found.busiest_entity == entity.name:
            yield Finding(
                "single-partition",
                SEVERITY,
                context.key_place(table, entity, key),
                f"every {entity.name} is in one partition of {key.index or table.name}{describe_neighbours(found, entity)}, which gets {over}",
                found.describe_remedy("key by a field, so that there are several"),
            )
