"""A stream has more readers than it can serve, or a reader has settings that Lambda refuses.

Why: Two readers at most may read a shard of a DynamoDB stream at once, one of a global table's, whose replication reads
too; with more, all of them are throttled and fall behind, and a record is gone after 24 hours. And a mapping whose batch,
window or filters are out of range is refused when it is deployed.

Example: four functions on one table's stream: search, metrics, mail and audit.

Instead: Let one function read and pass on what others want (EventBridge, SNS), or send the changes to a Kinesis stream,
which has more readers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from tavola.design.findings import DesignPath, Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.limits import TRIGGER_FILTERS_MAX, TRIGGER_PATTERN_CHARACTERS_MAX
from tavola.model.document import Consumer, consumer_limit_errors

SEVERITY: Severity = "error"

READERS_MAX = 2
READERS_OF_REPLICATED_MAX = 1


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the tables with too many consumers, and the consumers with invalid settings."""
    for table in context.design.tables:
        most = READERS_OF_REPLICATED_MAX if table.settings.replicas else READERS_MAX
        if len(table.consumers) > most:
            why = " of a global table" if table.settings.replicas else ""
            yield Finding(
                "stream-consumers",
                "warning",
                context.table_place(table),
                f"{len(table.consumers)} consumers read its stream ({', '.join(each.name for each in table.consumers)}), and a shard{why} "
                f"serves {most}: they throttle each other and fall behind",
                "let one consumer pass on what the others want, or send the changes to a Kinesis stream",
            )
        for consumer in table.consumers:
            for wrong in _invalid_settings(consumer):
                yield Finding(
                    "stream-consumers",
                    SEVERITY,
                    DesignPath(kind="consumer", table=table.name, name=consumer.name),
                    f"{wrong}: its event source mapping is refused",
                    "give a value that Lambda takes",
                )


def _invalid_settings(consumer: Consumer) -> Iterator[str]:
    yield from consumer_limit_errors(consumer)
    if len(consumer.filters) > TRIGGER_FILTERS_MAX:
        yield f"it has {len(consumer.filters)} filters, and there may be {TRIGGER_FILTERS_MAX}"
    for each in consumer.filters:
        length = len(json.dumps(each, default=str))
        if length > TRIGGER_PATTERN_CHARACTERS_MAX:
            yield f"a filter of {length:,} characters is longer than {TRIGGER_PATTERN_CHARACTERS_MAX:,}"
