"""A partition holds a stretch of time, so all that is written now goes to one.

Why: Whatever the number of days, today's partition takes today's writes alone: 1,000 units a second. The others are cold, and capacity for
them is paid for nothing.

Example: `pk="{created_at:day}"` with 3,000 readings a second.

Instead: Let what the readings are of come first (`SENSOR#{sensor_id}#{at:day}`), or add shards to the day,
which help its writes. Reads that ask every shard they do not help: keep copies, or cache the present.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Finding, Severity
from tavola.design.lint.heat import bucket_of, crowd, heat, shards_of, told_rates
from tavola.design.lint.rule import Subject

SEVERITY: Severity = "warning"


def find(subject: Subject) -> Iterator[Finding]:
    """Give the keys by a stretch of time whose present one gets more than it takes."""
    for table, entity, key in subject.keyed():
        bucket = bucket_of(entity, key)
        if bucket is None:
            continue
        found = heat(subject, table, entity, key)
        over = None if found is None else found.over
        name = key.index or table.name
        if found is not None and over is not None:
            if found.main != entity.name:
                continue
            yield Finding(
                "time-ordered-partition",
                SEVERITY,
                subject.key_place(table, entity, key),
                f"{name} has a partition for each {bucket}{crowd(found, entity)}, and the present one gets {over}",
                found.remedy("let the partition key begin with what they are of"),
            )
        elif not told_rates(entity) and shards_of(key) == 1 and not table.foreign:
            yield Finding(
                "time-ordered-partition",
                "advice",
                subject.key_place(table, entity, key),
                f"{name} has a partition for each {bucket}: 1,000 writes a second at most, for all of {entity.name}",
                "declare how often it is written (peak_per_second)",
            )
