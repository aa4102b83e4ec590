"""A stream has too many consumers, or a consumer has settings that Lambda rejects.

Why: At most two consumers should read a shard of a DynamoDB stream at the same time, and one for a global
table, because replication reads the stream too. With more, all of them are throttled and fall behind, and
records expire after 24 hours. An event source mapping with a batch size, window or filter out of range is
rejected at deployment.

Example: Four functions on one stream: search, metrics, mail and audit.

Instead: Use one function that forwards changes to EventBridge or SNS, or send changes to Kinesis Data
Streams, which supports more consumers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from tavola.design.lint.rule import Defect, LintContext
from tavola.limits import TRIGGER_FILTERS_MAX, TRIGGER_PATTERN_CHARACTERS_MAX
from tavola.model.document import Consumer, consumer_limit_errors

SEVERITY = "error"

READERS_MAX = 2
READERS_OF_REPLICATED_MAX = 1


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the tables with too many consumers, and the consumers with invalid settings."""
    for table in context.design.tables:
        most = READERS_OF_REPLICATED_MAX if table.settings.replicas else READERS_MAX
        if len(table.consumers) > most:
            why = " of a global table" if table.settings.replicas else ""
            yield Defect(
                context.table_place(table),
                f"{len(table.consumers)} consumers read the stream ({', '.join(consumer.name for consumer in table.consumers)}); a shard{why} supports "
                f"{most}, and more are throttled",
                "Forward changes from one consumer to the others, or use Kinesis Data Streams",
                severity="warning",
            )
        for consumer in table.consumers:
            for problem in _invalid_settings(consumer):
                yield Defect(
                    context.consumer_place(table, consumer),
                    f"{problem}: Lambda rejects the event source mapping",
                    "Use a value that Lambda accepts",
                )


def _invalid_settings(consumer: Consumer) -> Iterator[str]:
    yield from consumer_limit_errors(consumer)
    if len(consumer.filters) > TRIGGER_FILTERS_MAX:
        yield f"{len(consumer.filters)} filters exceed the limit of {TRIGGER_FILTERS_MAX}"
    for filter_ in consumer.filters:
        length = len(json.dumps(filter_, default=str))
        if length > TRIGGER_PATTERN_CHARACTERS_MAX:
            yield f"A filter of {length:,} characters exceeds the limit of {TRIGGER_PATTERN_CHARACTERS_MAX:,}"
