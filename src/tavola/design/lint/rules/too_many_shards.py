"""A key has far more shards than its writes need, and every query reads all of them.

Why: A query on a sharded key sends one request per shard, each at least half a read unit, and takes as long
as the slowest. Shards that writes do not need add cost and latency only.

Example: 64 shards for 20 writes per second, queried 100 times per second: 3,150 read units per second wasted.

Instead: Use as many shards as peak writes need, `tavola.patterns.shards_for(…)`, and add more when traffic
grows. `shard_change` describes how to change the number while the application runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import shards_to_read
from tavola.design.lint.heat import partition_heat
from tavola.design.lint.monthly_costs import format_monthly_with_book, monthly_cost
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import format_count

SEVERITY = "advice"

_TIMES = 8  # times the needed number; less is headroom for growth
_UNITS_PER_S = 10


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the sharded queries with many times the shards that their writes need."""
    for table, entity in context.all_entities():
        for pattern in entity.patterns:
            key = entity.key_on(pattern.index)
            shards = shards_to_read(key, pattern.partition)
            if key is None or shards == 1 or pattern.access is None:
                continue
            found, rate = partition_heat(context, table, entity, key), pattern.access.per_second
            units = 0.0 if found is None else found.units_per_second("write", 1)
            needed = None if found is None else found.shards_needed("write")
            if not units or needed is None or rate is None:
                continue
            idle = 0.5 * rate * (shards - needed)
            if shards >= _TIMES * needed and idle >= _UNITS_PER_S:
                yield Defect(
                    context.pattern_place(table, entity, pattern),
                    f"{rate:g} queries per second read {shards} shards each, but {units:,.0f} write units per second need only "
                    f"{needed}: {idle:,.0f} read units per second wasted, {format_monthly_with_book(monthly_cost(reads=idle))}",
                    f"Reduce to {format_count(needed, 'shard')} (see tavola.patterns.shard_change)",
                )
