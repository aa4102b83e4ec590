"""Consumer: what reads a table's stream, and how records are handed to it.

The names are ours, the settings are those of Lambda's event source mapping; the linter judges them and the
infrastructure is written from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

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
    report_failures: bool = False
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
