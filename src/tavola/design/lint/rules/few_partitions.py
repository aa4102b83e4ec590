"""A partition key has too few values for its traffic.

Why: A partition takes 1,000 write units and 3,000 read units a second. All items that share a partition key are in one place, so an
index by a status of five values takes five partitions' traffic and no more, however large the table is; and a global index that
cannot keep up throttles the writes of the table.

Example: `pk="STATUS#{status}"` with 5 statuses and 8,000 tickets opened a second.

Instead: For writes, shard the key (`shards=…` in a design of Tavola, read as one), or key by something with more values. Shards do not help
reads that ask all of them: keep copies of what is read under several keys, cache it, or key by something finer.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.access_paths import key_parts
from tavola.design.findings import Finding, Severity
from tavola.design.lint.heat import bucket_of, crowd, heat, shards_of, told_rates, values_of
from tavola.design.lint.rule import Subject
from tavola.design.lint.telling import joined

SEVERITY: Severity = "warning"

_FEW = 16  # values that a person could count, of which one is usually most items'


def find(subject: Subject) -> Iterator[Finding]:
    """Give the keys whose partitions, all alike, would get more than they take; without rates those of very few values."""
    for table, entity, key in subject.keyed():
        fields = [slot.field for slot in key_parts(key.hash)]
        if not fields or shards_of(key) > 1 or bucket_of(entity, key) is not None:
            continue
        found, count = heat(subject, table, entity, key), values_of(subject, table, entity, key)
        if found is None or count is None:
            continue
        over = found.over
        place = subject.key_place(table, entity, key)
        name = key.index or table.name
        if over is not None and found.main == entity.name:
            yield Finding(
                "few-partitions",
                SEVERITY,
                place,
                f"{entity.name} has {count:,} partitions in {name} by {joined(fields)}{crowd(found, entity)}, and the busiest gets {over}",
                found.remedy("add a field with more values to its partition key"),
            )
        elif (
            over is None
            and count <= _FEW
            and key.index is not None
            and key.shards is None
            and not told_rates(entity)
        ):
            yield Finding(
                "few-partitions",
                "advice",
                place,
                f"{name} has {count} partitions by {joined(fields)}: {count * 1_000:,} writes a second at most for all of {entity.name}",
                "declare how often it is written (peak_per_second), or shard it",
            )
