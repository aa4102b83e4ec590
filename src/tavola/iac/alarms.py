"""Alarms: what somebody should be woken for, as data.

Throttles are counted per table and per global index, because an index that cannot keep up lags behind its table and in the end holds
its writes back. CloudWatch counts UserErrors for the whole account in a region and under no table, and SystemErrors
under each operation; the alarms are as they are counted.
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
# An alarm's expression adds nine of them up: with the sum itself that is all that CloudWatch takes.
OPERATIONS = (
    "GetItem", "BatchGetItem", "Query", "TransactGetItems",
    "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems",
)  # fmt: skip
ITERATOR_AGE_MS = 5 * 60 * 1000  # a stream keeps a day; five minutes behind is late, and far from lost
REPLICATION_MS = 10 * 1000  # a second is usual


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """What is watched and how: all that alarms of one kind have in common."""

    kind: str  # the end of their names
    namespace: str
    metric: str
    statistic: Statistic
    threshold: int  # what is more than this is breaching
    description: str
    period_s: int = 60
    periods: int = 5
    breaching_periods: int = 3
    operations: tuple[str, ...] = ()  # of which the metric is added up


@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm; a dimension's value is the name of a table, function or queue of the plan, or what it says."""

    rule: AlarmRule
    subject: str  # the beginning of its name
    dimensions: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """What CloudWatch calls it."""
        return shorten(f"{self.subject}-{self.rule.kind}", ALARM_NAME_MAX)


@dataclass(frozen=True, slots=True)
class AlarmTargets:
    """What there is to be watched, by name."""

    tables: tuple[tuple[str, tuple[str, ...]], ...]  # each with its global indexes
    replicas: tuple[tuple[str, str], ...] = ()  # a table and a region
    functions: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()


READS = AlarmRule("read-throttles", TABLES, "ReadThrottleEvents", "Sum", 0, "Reads are throttled.")
WRITES = AlarmRule("write-throttles", TABLES, "WriteThrottleEvents", "Sum", 0, "Writes are throttled.")
BACKFILL = AlarmRule(
    "backfill-throttles", TABLES, "OnlineIndexThrottleEvents", "Sum", 0,
    "An index that is being built is throttled, and stays behind its table.",
)  # fmt: skip
SYSTEM = AlarmRule(
    "system-errors",
    TABLES,
    "SystemErrors",
    "Sum",
    0,
    "DynamoDB answers with errors of its own.",
    operations=OPERATIONS,
)
USER = AlarmRule(
    "user-errors", TABLES, "UserErrors", "Sum", 10,
    "Requests are refused as wrong: of any table of the account in this region.", period_s=300, periods=3, breaching_periods=2,
)  # fmt: skip
REPLICATION = AlarmRule(
    "replication-latency", TABLES, "ReplicationLatency", "Average", REPLICATION_MS, "A replica is behind."
)
BEHIND = AlarmRule(
    "iterator-age", FUNCTIONS, "IteratorAge", "Maximum", ITERATOR_AGE_MS, "A stream's consumer is behind."
)
FAILING = AlarmRule("errors", FUNCTIONS, "Errors", "Sum", 0, "A stream's consumer fails.")
LEFT = AlarmRule(
    "failed-records", QUEUES, "ApproximateNumberOfMessagesVisible", "Maximum", 0,
    "Records failed for good, and wait for somebody.", period_s=300, periods=1, breaching_periods=1,
)  # fmt: skip


def plan_alarms(watched: AlarmTargets) -> tuple[Alarm, ...]:
    """Return the alarms of what there is to be watched, kind by kind."""
    return tuple(_alarms(watched))


def _alarms(watched: AlarmTargets) -> Iterator[Alarm]:
    indexes = [(table, index) for table, names in watched.tables for index in names]
    for watch in (READS, WRITES):
        for table, names in watched.tables:
            yield Alarm(watch, table, (("TableName", table),))
            yield from (_index_alarm(watch, table, index) for index in names)
    yield from (_index_alarm(BACKFILL, table, index) for table, index in indexes)
    yield from (Alarm(SYSTEM, table, (("TableName", table),)) for table, _ in watched.tables)
    yield Alarm(USER, watched.tables[0][0])
    for table, region in watched.replicas:
        yield Alarm(REPLICATION, f"{table}-{region}", (("TableName", table), ("ReceivingRegion", region)))
    for watch in (BEHIND, FAILING):
        yield from (Alarm(watch, name, (("FunctionName", name),)) for name in watched.functions)
    yield from (Alarm(LEFT, name, (("QueueName", name),)) for name in watched.queues)


def _index_alarm(watch: AlarmRule, table: str, index: str) -> Alarm:
    return Alarm(watch, f"{table}-{index}", (("TableName", table), ("GlobalSecondaryIndexName", index)))
