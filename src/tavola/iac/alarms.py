"""CloudWatch alarms as data.

Throttles are alarmed per table and per global index, because an index that cannot keep up delays and finally throttles the writes of its
table. CloudWatch counts UserErrors per account and region and SystemErrors per operation, so these alarms have other dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tavola.iac.identifiers import shorten

Statistic = Literal["Sum", "Maximum", "Average"]

TABLES = "AWS/DynamoDB"
FUNCTIONS = "AWS/Lambda"
QUEUES = "AWS/SQS"
ALARM_NAME_MAX = 255
# An alarm's expression sums nine metrics: with the sum itself, that is CloudWatch's limit.
OPERATIONS = (
    "GetItem", "BatchGetItem", "Query", "TransactGetItems",
    "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems",
)  # fmt: skip
ITERATOR_AGE_MS = 5 * 60 * 1000  # a stream keeps a day; five minutes behind is late but far from data loss
REPLICATION_MS = 10 * 1000  # a second is usual


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """The metric, threshold and timing that all alarms of one kind share."""

    kind: str  # the end of their names
    namespace: str
    metric: str
    statistic: Statistic
    threshold: int  # a higher value is breaching
    description: str
    period_s: int = 60
    periods: int = 5
    breaching_periods: int = 3
    operations: tuple[str, ...] = ()  # sum the metric over these


@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm; the value of a dimension is the name of a table, function or queue of the plan, or a literal."""

    rule: AlarmRule
    subject: str  # the beginning of its name
    dimensions: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """Its name in CloudWatch."""
        return shorten(f"{self.subject}-{self.rule.kind}", ALARM_NAME_MAX)


@dataclass(frozen=True, slots=True)
class AlarmTargets:
    """The tables, replicas, functions and queues to be watched, by name."""

    tables: tuple[tuple[str, tuple[str, ...]], ...]  # each with its global indexes
    replicas: tuple[tuple[str, str], ...] = ()  # a table and a region
    functions: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()


READS = AlarmRule("read-throttles", TABLES, "ReadThrottleEvents", "Sum", 0, "Reads are throttled.")
WRITES = AlarmRule("write-throttles", TABLES, "WriteThrottleEvents", "Sum", 0, "Writes are throttled.")
BACKFILL = AlarmRule(
    "backfill-throttles", TABLES, "OnlineIndexThrottleEvents", "Sum", 0,
    "The backfill of an index is throttled.",
)  # fmt: skip
SYSTEM = AlarmRule(
    "system-errors",
    TABLES,
    "SystemErrors",
    "Sum",
    0,
    "DynamoDB returns internal errors.",
    operations=OPERATIONS,
)
USER = AlarmRule(
    "user-errors", TABLES, "UserErrors", "Sum", 10,
    "Requests are rejected as invalid, for any table of the account in this Region.", period_s=300, periods=3, breaching_periods=2,
)  # fmt: skip
REPLICATION = AlarmRule(
    "replication-latency",
    TABLES,
    "ReplicationLatency",
    "Average",
    REPLICATION_MS,
    "Replication to a replica is delayed.",
)
BEHIND = AlarmRule(
    "iterator-age", FUNCTIONS, "IteratorAge", "Maximum", ITERATOR_AGE_MS, "A stream consumer is behind."
)
FAILING = AlarmRule("errors", FUNCTIONS, "Errors", "Sum", 0, "A stream consumer fails.")
LEFT = AlarmRule(
    "failed-records", QUEUES, "ApproximateNumberOfMessagesVisible", "Maximum", 0,
    "Failed records wait in the queue.", period_s=300, periods=1, breaching_periods=1,
)  # fmt: skip


def plan_alarms(targets: AlarmTargets) -> tuple[Alarm, ...]:
    """Return the alarms for some targets, grouped by rule."""
    return tuple(_alarms(targets))


def _alarms(targets: AlarmTargets) -> Iterator[Alarm]:
    indexes = [(table, index) for table, names in targets.tables for index in names]
    for rule in (READS, WRITES):
        for table, names in targets.tables:
            yield Alarm(rule, table, (("TableName", table),))
            yield from (_index_alarm(rule, table, index) for index in names)
    yield from (_index_alarm(BACKFILL, table, index) for table, index in indexes)
    yield from (Alarm(SYSTEM, table, (("TableName", table),)) for table, _ in targets.tables)
    yield Alarm(USER, targets.tables[0][0])
    for table, region in targets.replicas:
        yield Alarm(REPLICATION, f"{table}-{region}", (("TableName", table), ("ReceivingRegion", region)))
    for rule in (BEHIND, FAILING):
        yield from (Alarm(rule, name, (("FunctionName", name),)) for name in targets.functions)
    yield from (Alarm(LEFT, name, (("QueueName", name),)) for name in targets.queues)


def _index_alarm(rule: AlarmRule, table: str, index: str) -> Alarm:
    return Alarm(rule, f"{table}-{index}", (("TableName", table), ("GlobalSecondaryIndexName", index)))
