"""Consumer: a function that reads a table's stream, and the settings of its event source mapping.

The settings are those of Lambda, under shorter names; the linter checks them, and infrastructure is generated from them. One
default differs from Lambda's: the response is read for records that failed, because a mapping that ignores them drops them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tavola.limits import (
    TRIGGER_BATCH_RECORDS_MAX,
    TRIGGER_BATCHING_WINDOW_S_MAX,
    TRIGGER_PARALLELIZATION_MAX,
    TRIGGER_RECORD_AGE_S_MAX,
    TRIGGER_RECORD_AGE_S_MIN,
    TRIGGER_RETRIES_MAX,
    TRIGGER_TIMEOUT_S_MAX,
)

# The one member that an event source mapping's FunctionResponseTypes may have.
REPORT_BATCH_ITEM_FAILURES = "ReportBatchItemFailures"

RecordKind = Literal["INSERT", "MODIFY", "REMOVE"]
Starting = Literal["TRIM_HORIZON", "LATEST"]


@dataclass(frozen=True, slots=True)
class Consumer:
    """A function that is called with the records of a table's stream."""

    name: str
    handler: str = ""  # such as `desk.counters.handler`
    batch_size: int = 100
    window_s: int = 0
    parallelization: int = 1
    retries: int = -1  # for ever
    max_age_s: int = -1  # of any age
    bisect: bool = False
    report_batch_item_failures: bool = True  # Lambda reads which records failed from the response
    filters: tuple[Mapping[str, Any], ...] = ()  # filter patterns, as Lambda reads them
    failures: str | None = None  # where records go that failed for good: sqs, sns, s3 or an ARN
    timeout_s: int = 60
    memory_mb: int = 256
    starting: Starting = "TRIM_HORIZON"
    events: tuple[RecordKind, ...] = ()  # the kinds that it acts on; none: all of them
    needs_old: bool = False  # it looks at what an item was before
    writes: tuple[str, ...] = ()  # the entities that it writes, by name
    idempotent: bool = False  # a record that comes twice counts once
    function: str = ""  # the name or ARN of a function that is there; none: infrastructure makes one
    returns_batch_item_failures: bool = False  # the handler's response names the records that failed

    @property
    def patterns(self) -> tuple[Mapping[str, Any], ...]:
        """The filter patterns of the mapping; without filters, one for the kinds of records that it acts on."""
        return self.filters or (({"eventName": list(self.events)},) if self.events else ())


def consumer_limit_errors(consumer: Consumer) -> Iterator[str]:
    """Yield a sentence for each setting of a consumer that Lambda would reject; filters are checked by the infrastructure writers."""
    for word, value, least, most in (
        ("batch_size", consumer.batch_size, 1, TRIGGER_BATCH_RECORDS_MAX),
        ("window_s", consumer.window_s, 0, TRIGGER_BATCHING_WINDOW_S_MAX),
        ("parallelization", consumer.parallelization, 1, TRIGGER_PARALLELIZATION_MAX),
        ("retries", consumer.retries, -1, TRIGGER_RETRIES_MAX),
        ("timeout_s", consumer.timeout_s, 1, TRIGGER_TIMEOUT_S_MAX),
    ):
        if not least <= value <= most:
            yield f"{word}={value:,} is outside {least} to {most:,}"
    age = consumer.max_age_s
    if age != -1 and not TRIGGER_RECORD_AGE_S_MIN <= age <= TRIGGER_RECORD_AGE_S_MAX:
        yield f"max_age_s={age:,} is neither -1 nor {TRIGGER_RECORD_AGE_S_MIN} to {TRIGGER_RECORD_AGE_S_MAX:,}"
