"""A record that a stream consumer cannot process blocks its shard or is lost.

Why: By default, Lambda retries a failing batch until it expires. One bad record then blocks its shard for up
to 24 hours, and records waiting behind it expire too. With a retry limit but no on-failure destination, the
batch is discarded without a trace.

Example: `Consumer("metrics")` with the defaults: unlimited retries, no bisecting, no destination.

Instead: Set `retries` (or `max_age_s`), `failures` (an SQS queue or SNS topic with an alarm), and
`bisect=True` to isolate the bad record. A handler that returns `batchItemFailures` saves the records before the
bad one from repetition, but without bisecting those after it are discarded together with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.findings import Severity
from tavola.design.lint.rule import Defect, LintContext
from tavola.limits import STREAM_RETENTION_S
from tavola.model.document import Consumer

SEVERITY = "warning"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the consumers that retry without end, or have no destination for failed records."""
    for table in context.design.tables:
        for consumer in table.consumers:
            wrong = _problem(consumer)
            if wrong is not None:
                severity, message, remedy = wrong
                place = context.consumer_place(table, consumer)
                yield Defect(place, message, remedy, severity=severity)


def _problem(consumer: Consumer) -> tuple[Severity, str, str] | None:
    if consumer.retries < 0 and not 0 < consumer.max_age_s < STREAM_RETENTION_S:
        return (
            "warning",
            f"Retries a failing record without limit, which blocks its shard for up to {STREAM_RETENTION_S // 3600} hours",
            "Set retries=, failures= and bisect=True",
        )
    if consumer.failures is None:
        return (
            "warning",
            f"Discards a batch of up to {consumer.batch_size:,} records after {_retry_limit(consumer)}, without an on-failure destination",
            'Add an on-failure destination: failures="sqs"',
        )
    if consumer.batch_size > 1 and not consumer.bisect:
        return (
            "advice",
            f"One bad record sends the others of its batch, up to {consumer.batch_size:,} records, to {consumer.failures} as well",
            "Set bisect=True",
        )
    return None


def _retry_limit(consumer: Consumer) -> str:
    if consumer.retries >= 0:
        return "the first failure" if consumer.retries == 0 else f"{consumer.retries:,} retries"
    return f"{consumer.max_age_s:,} seconds"
