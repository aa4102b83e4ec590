"""A key has far more shards than its writes need, and every read pays for each shard.

Why: A query of a sharded key asks every shard: that many requests at once, of half a read unit each at least, and the
slowest of them is how long it takes. Shards that no write needs buy nothing.

Example: 64 shards for 20 writes a second, asked 100 times a second: 3,150 read units a second for nothing.

Instead: Take as many as the peak of the writes wants, `tavola.patterns.shards_for(…)`, and more when it grows: `shard_change`
says how while the application runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import shards_to_read
from tavola.design.findings import Finding, Severity
from tavola.design.lint.heat import partition_heat
from tavola.design.lint.monthly_costs import format_monthly_with_book, monthly_cost
from tavola.design.lint.rule import LintContext

SEVERITY: Severity = "advice"

_TIMES = 8  # as many as are needed: room to grow is no defect
_UNITS_PER_S = 10


def find(context: LintContext) -> Iterator[Finding]:
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
                yield Finding(
                    "too-many-shards",
                    SEVERITY,
                    context.pattern_place(table, entity, pattern),
                    f"each of its {rate:g} questions a second asks {shards} shards, and {units:,.0f} write units a second need "
                    f"{needed}: {idle:,.0f} read units a second, {format_monthly_with_book(monthly_cost(reads=idle))}, for nothing",
                    f"go down to {needed} or a few more (tavola.patterns.shard_change says how)",
                )
