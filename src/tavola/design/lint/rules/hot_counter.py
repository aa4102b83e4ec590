"""A counter item is incremented more often than one partition supports.

Why: All writes to an item go to one partition, which supports 1,000 write units per second regardless of the
table's capacity. Beyond that, updates are throttled and retried, and callers wait.

Example: `WritePattern("count a view", "update", adds=("views",), per_second=2_500)` on an item with the key
`STATS`.

Instead: Shard the counter and sum the shards when reading (`tavola.patterns.Counters`), or aggregate from the
stream, where many changes become one update.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rates import PLANNED_SHARE, busiest_item_rate
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names
from tavola.limits import PARTITION_WRITES_PER_S
from tavola.model.sizes import item_bytes
from tavola.values import transact_write_units, write_units

SEVERITY = "warning"


def find(context: LintContext) -> Iterator[Defect]:
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
        yield Defect(
            context.write_place(table, entity, write),
            f"Increments {join_names(write.adds)} of one item {rate:,.0f} times per second at peak: {units:,.0f} write units per second, "
            f"{units / PARTITION_WRITES_PER_S:.0%} of the {PARTITION_WRITES_PER_S:,} that a partition supports",
            "Shard the counter (tavola.patterns.Counters), or aggregate changes from the stream",
        )
