"""A key has far more shards than its writes need, and every query reads all of them.

Why: A query on a sharded key sends one request per shard and takes as long as the slowest. Each request costs at
least half a read unit, and with a sort order each reads as many items as the whole result, because any shard may
hold all of them. Shards that writes do not need add cost and latency only.

Example: 64 shards for 20 writes per second, queried 100 times per second for 20 items of 300 bytes: each query
costs 64 read units instead of 1.

Instead: Use as many shards as peak writes need, `tavola.patterns.shards_for(…)`, and add more when traffic
grows. `shard_change` describes how to change the number while the application runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import key_parts, shards_to_read
from tavola.design.cost.alterations import reshard_entity
from tavola.design.cost.capacity import pattern_units
from tavola.design.lint.heat import partition_heat
from tavola.design.lint.monthly_costs import format_monthly_with_book, monthly_cost
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import format_count, format_rate, join_names
from tavola.model.document import EntityDesign, KeyDesign, PatternDesign, TableDesign

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
            if shards < _TIMES * needed:
                continue
            idle = rate * _extra_read_units(table, entity, key, pattern, needed)
            if idle >= _UNITS_PER_S:
                values = join_names(part.field for part in key_parts(key.hash))
                yield Defect(
                    context.pattern_place(table, entity, pattern),
                    f"{rate:g} queries per second read {shards} shards each. At {format_rate(units)} write units per second"
                    f"{f' per {values}' if values else ''}, {format_count(needed, 'shard')} {'is' if needed == 1 else 'are'} enough. "
                    f"The other {shards - needed:,} cost {format_monthly_with_book(monthly_cost(reads=idle))}",
                    f"Reduce to {format_count(needed, 'shard')} (see tavola.patterns.shard_change)",
                )


def _extra_read_units(
    table: TableDesign, entity: EntityDesign, key: KeyDesign, pattern: PatternDesign, needed: int
) -> float:
    """Return the read units that one query costs more than with `needed` shards, counted as `tavola cost` counts them."""
    fewer = reshard_entity(entity, key, needed)
    now, then = (sum(units.read for units in pattern_units(table, each, pattern)) for each in (entity, fewer))
    return now - then
