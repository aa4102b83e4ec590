"""All items share one partition key, and it gets more than one partition takes.

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
from tavola.design.lint.heat import crowd, heat
from tavola.design.lint.rule import Subject

SEVERITY: Severity = "warning"


def find(subject: Subject) -> Iterator[Finding]:
    """Give the constant keys without shards that get more than a partition takes."""
    for table, entity, key in subject.keyed():
        if not subject.constant(key) or key.shards is not None:
            continue
        if not key_parts(key.range) and any(write.adds for write in entity.writes):
            continue  # one item that is counted on: no shards of a key help it, and another rule says what does
        found = heat(subject, table, entity, key)
        over = None if found is None else found.over
        if found is not None and over is not None and found.main == entity.name:
            yield Finding(
                "single-partition",
                SEVERITY,
                subject.key_place(table, entity, key),
                f"every {entity.name} is in one partition of {key.index or table.name}{crowd(found, entity)}, which gets {over}",
                found.remedy("key by a field, so that there are several"),
            )
