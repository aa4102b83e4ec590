"""Functions: run a handler as Lambda does: its name, its context, its event and its response.

Event and response are JSON, as in Lambda: a response that JSON cannot represent is a failure of the function, and so is
anything it raises, including `SystemExit`. One difference: a handler that exceeds its timeout cannot be stopped within one
process, so it runs on, but its batch counts as failed.
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from tavola.clock import Clock
from tavola.entropy import Entropy
from tavola.limits import TRIGGER_TIMEOUT_S_MAX
from tavola.triggers.errors import HandlerRefused, MappingRefused
from tavola.triggers.outcomes import UNREAD_REMEDY, Failed, FailedFrom, Outcome, Succeeded, read_response

Handler: TypeAlias = Callable[[dict[str, Any], Any], Any]

_log = logging.getLogger("tavola.triggers")


class LambdaContext:
    """The context argument of a handler, with the names of Lambda's Python runtime."""

    def __init__(self, function: HandlerFunction, function_arn: str, request_id: str, clock: Clock) -> None:
        self.function_name = function.name
        self.function_version = "$LATEST"
        self.invoked_function_arn = function_arn
        self.memory_limit_in_mb = str(function.memory_mb)
        self.aws_request_id = request_id
        self.log_group_name = f"/aws/lambda/{function.name}"
        self.log_stream_name = f"local/[$LATEST]{request_id}"
        self.identity = None
        self.client_context = None
        self._clock = clock
        self._deadline_s = clock.now() + function.timeout_s

    def get_remaining_time_in_millis(self) -> int:
        """Return the time left for the invocation."""
        return max(0, int((self._deadline_s - self._clock.now()) * 1000))


@dataclass(frozen=True, slots=True)
class HandlerFunction:
    """A handler and its Lambda settings."""

    handler: Handler
    name: str
    timeout_s: float = TRIGGER_TIMEOUT_S_MAX
    memory_mb: int = 128

    def __post_init__(self) -> None:
        if not callable(self.handler):
            raise HandlerRefused(
                f"{self.handler!r} is not callable; give a function that takes an event and a context"
            )
        if inspect.iscoroutinefunction(self.handler):
            raise HandlerRefused(
                f"{self.name} is a coroutine function, which Lambda's Python runtime does not run; use a plain "
                f"function that calls asyncio.run"
            )
        if not 0 < self.timeout_s <= TRIGGER_TIMEOUT_S_MAX:
            raise MappingRefused("timeout_s", self.timeout_s, f"use up to {TRIGGER_TIMEOUT_S_MAX} seconds")

    @classmethod
    def of(
        cls, handler: Handler, *, name: str | None = None, timeout_s: float | None = None
    ) -> HandlerFunction:
        """Return a function for a handler, named after it unless `name` is given."""
        function_name = name or getattr(handler, "__name__", None) or type(handler).__name__
        return cls(handler, function_name, TRIGGER_TIMEOUT_S_MAX if timeout_s is None else timeout_s)

    def arn(self, stream_arn: str) -> str:
        """Return the ARN that the function would have in the stream's account and region."""
        parts = [*stream_arn.split(":"), "", "", "", ""]
        return f"arn:{parts[1] or 'aws'}:lambda:{parts[3]}:{parts[4]}:function:{self.name}"


@dataclass(frozen=True, slots=True)
class Invocation:
    """One event, and how to read its response."""

    event: dict[str, Any]
    sequences: tuple[str, ...]
    report_batch_item_failures: bool
    stateful: bool


def invoke(
    function: HandlerFunction, invocation: Invocation, *, stream_arn: str, clock: Clock, entropy: Entropy
) -> Outcome:
    """Run the handler once and return the outcome for its records; catch everything it raises.

    Except `KeyboardInterrupt`: the user stops the program, and the batch is not handled.
    """
    context = LambdaContext(function, function.arn(stream_arn), entropy.uuid(), clock)
    begun_s = clock.now()
    try:
        returned = function.handler(invocation.event, context)
        response = json.loads(json.dumps(returned, default=_plain))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - anything a handler raises fails its batch
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        _log.warning("%s failed: %s", function.name, reason, exc_info=error)
        return Failed(reason)
    took_s = clock.now() - begun_s
    if took_s > function.timeout_s:
        reason = f"Task timed out after {function.timeout_s:.2f} seconds"
        _log.warning("%s failed: %s (it took %.2f s)", function.name, reason, took_s)
        return Failed(reason)
    outcome = read_response(
        response,
        invocation.sequences,
        report_batch_item_failures=invocation.report_batch_item_failures,
        stateful=invocation.stateful,
    )
    match outcome:
        case Failed(reason, unread=True):
            _log.error("%s failed: %s. %s", function.name, reason, UNREAD_REMEDY)
        case Failed(reason) | FailedFrom(_, reason):
            _log.warning("%s failed: %s", function.name, reason)
        case Succeeded():
            pass
    return outcome


def _plain(returned: object) -> float:
    """Return a Decimal as a JSON number, as Lambda's Python runtime does; refuse other types."""
    if isinstance(returned, Decimal):
        return float(returned)
    raise TypeError(f"the response contains {returned!r}, which JSON cannot represent")
