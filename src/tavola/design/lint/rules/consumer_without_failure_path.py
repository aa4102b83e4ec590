"""One record that a consumer cannot handle blocks its shard, or is lost without a trace.

Why: Lambda repeats a failing batch for ever unless it is told otherwise: one bad record then holds back every later one of
its shard until it is 24 hours old, and with it all the others are gone that waited behind it. With a number of retries but
no destination, the batch is dropped and nobody learns which records were in it.

Example: `Consumer("metrics")`, which has the defaults: retries for ever, no bisecting, no destination.

Instead: Give `retries` (or `max_age_s`), `failures` (a queue that somebody looks at), and `bisect=True` or
`report_failures=True`, so that one bad record does not take a whole batch with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import DesignPath, Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.limits import STREAM_RETENTION_S
from tavola.model.document import Consumer

SEVERITY: Severity = "warning"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the consumers that retry without end, or have no destination for failed records."""
    for table in context.design.tables:
        for consumer in table.consumers:
            wrong = _problem(consumer)
            if wrong is not None:
                severity, message, remedy = wrong
                place = DesignPath(kind="consumer", table=table.name, name=consumer.name)
                yield Finding("consumer-without-failure-path", severity, place, message, remedy)


def _problem(consumer: Consumer) -> tuple[Severity, str, str] | None:
    if consumer.retries < 0 and not 0 < consumer.max_age_s < STREAM_RETENTION_S:
        return (
            "warning",
            f"a record that it cannot handle is tried again for ever: its shard stands still for {STREAM_RETENTION_S // 3600} hours",
            "give retries= and failures=, and bisect=True",
        )
    if consumer.failures is None:
        return (
            "warning",
            f"after {_end(consumer)} a batch of up to {consumer.batch_size:,} records is dropped, and nobody learns which",
            'name a destination for what failed: failures="sqs"',
        )
    if consumer.batch_size > 1 and not (consumer.bisect or consumer.report_failures):
        return (
            "advice",
            f"one bad record takes a batch of up to {consumer.batch_size:,} with it to {consumer.failures}",
            "set bisect=True, or report_failures=True and name the records that failed",
        )
    return None


def _end(consumer: Consumer) -> str:
    if consumer.retries >= 0:
        return "its first failure" if consumer.retries == 0 else f"{consumer.retries:,} retries"
    return f"{consumer.max_age_s:,} seconds"
