"""Plan the Lambda functions that read streams.

Every function gets a unique name. Settings that Lambda would reject are refused here, naming the consumer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tavola.iac.errors import PlanError
from tavola.iac.grants import Grant, RolePolicy, count_characters
from tavola.iac.identifiers import digest, shorten, snake
from tavola.limits import TRIGGER_PATTERN_CHARACTERS_MAX
from tavola.model.document import Consumer, Design, TableDesign, consumer_limit_errors

FUNCTION_NAME_MAX = 64
FUNCTION_MEMORY_MB = (128, 10_240)
FILTERS_MAX = 10  # the default quota is five; AWS raises it to ten on request
INLINE_CHARACTERS_MAX = 10_240  # for all inline policies of a role (IAM quotas)
_OTHER_STATEMENTS_MAX = 800  # characters of the role's statements for logs and failures
LOG_ACTIONS = ("logs:CreateLogStream", "logs:PutLogEvents")

FailureService = Literal["sqs", "sns", "s3"]
FAILURE_ACTIONS: dict[FailureService, tuple[str, ...]] = {
    "sqs": ("sqs:SendMessage",),
    "sns": ("sns:Publish",),
    "s3": ("s3:ListBucket", "s3:PutObject"),
}


@dataclass(frozen=True, slots=True)
class ConsumerPlan:
    """A function that reads a table's stream, with the permissions of its role."""

    table: str
    settings: Consumer
    function: str
    handler: str
    grants: tuple[Grant, ...]
    patterns: tuple[str, ...] = ()  # of the filter, each as JSON text
    created_destination: FailureService | None = None  # the plan creates one
    destination_arn: str = ""  # an existing one
    existing_function: str = ""  # name or ARN of a function for which only the mapping is created

    @property
    def name(self) -> str:
        """Its name in the design."""
        return self.settings.name

    @property
    def failure_service(self) -> FailureService | None:
        """The service that receives failed records, whether or not the plan creates the destination."""
        return self.created_destination or _service_of(self.destination_arn)


def plan_consumers(design: Design, roles: tuple[RolePolicy, ...]) -> Iterator[ConsumerPlan]:
    """Yield a plan for each consumer; raises `PlanError` for settings that Lambda rejects."""
    grants = {(role.stream, role.consumer): role.grants for role in roles if role.kind == "consumer"}
    taken: set[str] = set()
    for table in design.tables:
        names = [consumer.name for consumer in table.consumers]
        for consumer in table.consumers:
            place = f"{table.name}.{consumer.name}"
            if has_unknown_function(consumer):
                continue
            if names.count(consumer.name) > 1:
                raise PlanError(place, "two consumers of the table have this name; rename one")
            problem = next(_list_problems(consumer), None)
            if problem is not None:
                raise PlanError(place, f"{problem}; Lambda rejects this event source mapping")
            function = _function_name(table.name, consumer.name, taken)
            yield _plan_consumer(table, consumer, function, grants[table.name, consumer.name])


def has_unknown_function(consumer: Consumer) -> bool:
    """Return whether a consumer's function is created elsewhere under an unknown name."""
    return "${" in consumer.function


def _function_name(table: str, consumer: str, taken: set[str]) -> str:
    """Return a unique Lambda name from the table's and the consumer's name, with a digest if that is taken."""
    name = shorten(f"{table}-{snake(consumer)}".replace(".", "-"), FUNCTION_NAME_MAX)
    if snake(name) in taken:
        end = digest(f"{table}\0{consumer}")
        name = f"{name[: FUNCTION_NAME_MAX - len(end) - 1]}-{end}"
    taken.add(snake(name))
    return name


def _list_problems(consumer: Consumer) -> Iterator[str]:
    yield from consumer_limit_errors(consumer)
    least_mb, most_mb = FUNCTION_MEMORY_MB
    if not least_mb <= consumer.memory_mb <= most_mb:
        yield f"memory_mb={consumer.memory_mb:,} is outside {least_mb} to {most_mb:,}"
    if len(consumer.filters) > FILTERS_MAX:
        yield f"{len(consumer.filters)} filters exceed the limit of {FILTERS_MAX}"
    for pattern in _patterns(consumer):
        if pattern == "{}":
            yield "an empty filter matches nothing"
        if len(pattern) > TRIGGER_PATTERN_CHARACTERS_MAX:
            yield f"a filter of {len(pattern):,} characters exceeds the limit of {TRIGGER_PATTERN_CHARACTERS_MAX:,}"


def _patterns(consumer: Consumer) -> tuple[str, ...]:
    """Return its filter patterns as JSON text; records that they drop cost nothing."""
    return tuple(json.dumps(pattern, ensure_ascii=False) for pattern in consumer.patterns)


def _plan_consumer(
    table: TableDesign, consumer: Consumer, function: str, grants: tuple[Grant, ...]
) -> ConsumerPlan:
    place = f"{table.name}.{consumer.name}"
    arn = consumer.failures or ""
    destination: FailureService | None = None
    match consumer.failures:
        case "sqs" | "sns" | "s3":
            destination, arn = consumer.failures, ""
        case str() if _service_of(consumer.failures) is None:
            raise PlanError(
                place,
                f"failures={consumer.failures!r} is not a destination; use sqs, sns, s3 or an ARN of one",
            )
        case _:
            pass
    length = count_characters(grants) + _OTHER_STATEMENTS_MAX
    if length > INLINE_CHARACTERS_MAX:
        raise PlanError(
            place,
            f"the policy of its role has {length:,} characters, the limit is {INLINE_CHARACTERS_MAX:,}; split its writes over "
            "several consumers",
        )
    return ConsumerPlan(
        table=table.name,
        settings=consumer,
        function=function,
        handler=consumer.handler.replace(":", ".") or f"{snake(consumer.name)}_consumer.handler",
        grants=grants,
        patterns=_patterns(consumer),
        created_destination=destination,
        destination_arn=arn,
        existing_function=consumer.function,
    )


def _service_of(arn: str) -> FailureService | None:
    parts = arn.split(":")
    if len(parts) < 6 or parts[0] != "arn":
        return None
    match parts[2]:
        case "sqs" | "sns" | "s3":
            return parts[2]
        case _:
            return None
