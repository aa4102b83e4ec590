"""A stream consumer increments counters, so a record that is delivered twice is counted twice.

Why: Streams deliver records at least once. If a batch fails half way, or its response is lost, Lambda
delivers the whole batch again, and ADD counts the same records a second time. Nothing fails; the totals
drift.

Example: `Consumer("metrics", writes=("Metric",))`, where `Metric` has `WritePattern("count", "update",
adds=("count",))`.

Instead: Write each increment together with a marker for its record, in one transaction that fails the second
time (`tavola.patterns.Projector` does this), or set values computed from the images instead of adding. Then
declare `Consumer(…, idempotent=True)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import join_names

SEVERITY = "warning"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the consumers that add to counters and do not declare that they count each record once."""
    for table, consumer in context.all_consumers():
        if consumer.idempotent:
            continue
        added = [
            f"{name}.{write.adds[0]}"
            for name in consumer.writes
            if name in context.entities_by_name
            for write in context.entities_by_name[name][1].writes
            if write.adds
        ]
        if added:
            yield Defect(
                context.consumer_place(table, consumer),
                f"Increments {join_names(added)}, so a batch that Lambda delivers twice is counted twice",
                "Write each increment with a marker for its record in one transaction (tavola.patterns.Projector), and declare idempotent=True",
            )
