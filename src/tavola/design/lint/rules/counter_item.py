"""A counter item is incremented more often than one partition allows.

Why: All writes of an item go to one partition, which takes 1,000 write units a second, and no capacity that is bought
changes that. Beyond it, updates are throttled and retried, and every caller waits.

Example: `WritePattern("count a view", "update", adds=("views",), per_second=2_500)` on an item whose key is `STATS`.

Instead: Spread the counter over shards that are added up when it is read (`tavola.patterns.Counters`), or count from
the stream, where many changes become one update.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rates import PLANNED_SHARE, busiest_item_rate
from tavola.design.lint.rule import LintContext
from tavola.limits import PARTITION_WRITES_PER_S
from tavola.model.sizes import item_bytes
from tavola.values import transact_write_units, write_units

SEVERITY: Severity = "warning"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the writes that increment one item too often."""
    for table, entity, write in context.all_writes():
        rate = busiest_item_rate(entity, write)
        if rate is None or not write.adds:
            continue
        size = write.item_bytes or item_bytes(table, entity)
        transacted = write.transactional or bool(write.together)
        units = rate * (transact_write_units(size, size) if transacted else write_units(size, size))
        if units < PLANNED_SHARE * PARTITION_WRITES_PER_S:
            continue
        yield Finding(
            "counter-item",
            SEVERITY,
            context.write_place(table, entity, write),
            f"{', '.join(write.adds)} of one item is counted up {rate:,.0f} times a second at its peak, {units:,.0f} write units, and the "
            f"partition of an item takes {PARTITION_WRITES_PER_S:,}",
            "spread the counter over shards (tavola.patterns.Counters), or count from the stream, many changes in one update",
        )
