"""A consumer counts by adding, so a record that is delivered twice counts twice.

Why: A stream is delivered at least once. A batch that fails after half of it was written, or whose answer is lost, comes again
as a whole, and an ADD of the same record then counts it a second time. Nothing fails; the numbers grow away from the truth.

Example: `Consumer("numbers", writes=("Metric",))`, and `Metric` is written by `WritePattern("count", "update", adds=("count",))`.

Instead: Write each record's share together with a mark that it was counted, in one transaction that fails on the second time
(`tavola.patterns.Projector` does so), or set numbers that are derived from the images instead of adding. Then say so:
`Consumer(…, idempotent=True)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import DesignPath, Finding, Severity
from tavola.design.lint.rule import LintContext

SEVERITY: Severity = "warning"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the consumers that add to counters and do not declare that they count each record once."""
    for table in context.design.tables:
        for consumer in table.consumers:
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
                yield Finding(
                    "consumer-counts-twice",
                    SEVERITY,
                    DesignPath(kind="consumer", table=table.name, name=consumer.name),
                    f"it adds to {' and '.join(dict.fromkeys(added))}, and a batch that is delivered again is added again",
                    "write a mark of each record with its share, in one transaction, and say idempotent=True",
                )
