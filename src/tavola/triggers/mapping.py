"""The settings of an event source mapping, with AWS's names, defaults and limits.

It rejects what Lambda rejects when a mapping is created, with its own messages. `FunctionResponseTypes` has one possible
member and is a boolean here, with the name that it has in a `Consumer` and on the command line. One rule of AWS's API reference is
omitted: that a batch size above 10 needs a batching window of at lowest one second. AWS's own defaults for DynamoDB, 100 and 0,
violate it, and Lambda accepts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tavola.limits import (
    TRIGGER_BATCH_RECORDS_MAX,
    TRIGGER_BATCHING_WINDOW_S_MAX,
    TRIGGER_PARALLELIZATION_MAX,
    TRIGGER_RECORD_AGE_S_MAX,
    TRIGGER_RECORD_AGE_S_MIN,
    TRIGGER_RETRIES_MAX,
    TRIGGER_TUMBLING_WINDOW_S_MAX,
)
from tavola.model.consumers import REPORT_BATCH_ITEM_FAILURES, Consumer
from tavola.triggers.errors import MappingRefused
from tavola.triggers.filters import FilterCriteria, parse_criteria

StartingPosition: TypeAlias = Literal["TRIM_HORIZON", "LATEST"]

# Members of CreateEventSourceMapping that do not affect how records are delivered.
_IGNORED = frozenset(
    {"DestinationConfig", "Enabled", "EventSourceArn", "FunctionName", "KMSKeyArn", "MetricsConfig", "Tags"}
)
_MEMBERS = {
    "BatchSize": "batch_size",
    "MaximumBatchingWindowInSeconds": "maximum_batching_window_in_seconds",
    "StartingPosition": "starting_position",
    "ParallelizationFactor": "parallelization_factor",
    "MaximumRetryAttempts": "maximum_retry_attempts",
    "MaximumRecordAgeInSeconds": "maximum_record_age_in_seconds",
    "BisectBatchOnFunctionError": "bisect_batch_on_function_error",
    "TumblingWindowInSeconds": "tumbling_window_in_seconds",
    "FunctionResponseTypes": "report_batch_item_failures",
    "FilterCriteria": "filter_criteria",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSourceMapping:
    """How records are delivered to a handler; see AWS's CreateEventSourceMapping for each setting.

    `filter_criteria` takes AWS's shape or plain patterns; `filters` holds them parsed.
    """

    batch_size: int = 100
    maximum_batching_window_in_seconds: int = 0
    starting_position: StartingPosition = "TRIM_HORIZON"
    parallelization_factor: int = 1
    maximum_retry_attempts: int = -1  # -1: no limit
    maximum_record_age_in_seconds: int = -1  # -1: any age
    bisect_batch_on_function_error: bool = False
    tumbling_window_in_seconds: int = 0  # 0: no windows, no state
    report_batch_item_failures: bool = False
    filter_criteria: Any = None
    filters: FilterCriteria = field(init=False, repr=False, compare=False, default_factory=FilterCriteria)

    def __post_init__(self) -> None:
        for name, lowest, highest in _RANGES:
            _check_range(name, getattr(self, name), lowest, highest)
        age_s = self.maximum_record_age_in_seconds
        if -1 < age_s < TRIGGER_RECORD_AGE_S_MIN:
            raise MappingRefused(
                "maximum_record_age_in_seconds",
                age_s,
                f"use -1 for any age, or {TRIGGER_RECORD_AGE_S_MIN} to {TRIGGER_RECORD_AGE_S_MAX}",
            )
        if self.starting_position not in ("TRIM_HORIZON", "LATEST"):
            raise MappingRefused(
                "starting_position",
                self.starting_position,
                "use TRIM_HORIZON (the oldest record) or LATEST (only new records)",
            )
        for name in ("bisect_batch_on_function_error", "report_batch_item_failures"):
            if not isinstance(getattr(self, name), bool):
                raise MappingRefused(name, getattr(self, name), "use True or False")
        object.__setattr__(self, "filters", parse_criteria(self.filter_criteria))

    @classmethod
    def from_request(cls, request: Mapping[str, Any]) -> EventSourceMapping:
        """Return the mapping that a CreateEventSourceMapping request describes, in AWS's own names."""
        settings: dict[str, Any] = {}
        for name, value in request.items():
            if name in _MEMBERS:
                settings[_MEMBERS[name]] = value
            elif name not in _IGNORED:
                raise MappingRefused(
                    name,
                    value,
                    f"it does not apply to DynamoDB streams; use {', '.join(_MEMBERS)}",
                )
        if "report_batch_item_failures" in settings:
            settings["report_batch_item_failures"] = _reads_failures(settings["report_batch_item_failures"])
        return cls(**settings)

    @classmethod
    def from_consumer(cls, consumer: Consumer) -> EventSourceMapping:
        """Return the mapping of a design's consumer, with the settings that its infrastructure has."""
        return cls(
            batch_size=consumer.batch_size,
            maximum_batching_window_in_seconds=consumer.window_s,
            starting_position=consumer.starting,
            parallelization_factor=consumer.parallelization,
            maximum_retry_attempts=consumer.retries,
            maximum_record_age_in_seconds=consumer.max_age_s,
            bisect_batch_on_function_error=consumer.bisect,
            report_batch_item_failures=consumer.report_batch_item_failures,
            filter_criteria=consumer.patterns,
        )


_RANGES = (
    ("batch_size", 1, TRIGGER_BATCH_RECORDS_MAX),
    ("maximum_batching_window_in_seconds", 0, TRIGGER_BATCHING_WINDOW_S_MAX),
    ("parallelization_factor", 1, TRIGGER_PARALLELIZATION_MAX),
    ("maximum_retry_attempts", -1, TRIGGER_RETRIES_MAX),
    ("maximum_record_age_in_seconds", -1, TRIGGER_RECORD_AGE_S_MAX),
    ("tumbling_window_in_seconds", 0, TRIGGER_TUMBLING_WINDOW_S_MAX),
)


def _reads_failures(response_types: object) -> bool:
    """Return whether FunctionResponseTypes makes Lambda read item failures from the response."""
    if response_types in (None, [], ()):
        return False
    if response_types in ([REPORT_BATCH_ITEM_FAILURES], (REPORT_BATCH_ITEM_FAILURES,)):
        return True
    raise MappingRefused(
        "FunctionResponseTypes", response_types, f"the only response type is [{REPORT_BATCH_ITEM_FAILURES!r}]"
    )


def _check_range(name: str, value: object, lowest: int, highest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise MappingRefused(name, value, f"use a whole number from {lowest} to {highest}")
