"""Functions: a handler as Lambda would run it: its name, its context, its event in and its response out.

What goes in and what comes out is JSON, as in Lambda: a response that JSON cannot hold is a failure of the
function, and so is whatever it raises, `SystemExit` too. One thing cannot be done in a process of one's own:
a handler that runs past its timeout is not stopped, but its batch counts as failed.
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
from tavola.triggers.outcomes import Failed, Outcome, Succeeded, read_response

Handler: TypeAlias = Callable[[dict[str, Any], Any], Any]

_log = logging.getLogger("tavola.triggers")


class LambdaContext:
    """What a handler is told of its invocation; the names are those of Lambda's Python runtime."""

    def __init__(self, function: Function, function_arn: str, request_id: str, clock: Clock) -> None:
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
        """Return how long the invocation may still take."""
        return max(0, int((self._deadline_s - self._clock.now()) * 1000))


@dataclass(frozen=True, slots=True)
class Function:
    """A handler and what Lambda would know of it."""

    handler: Handler
    name: str
    timeout_s: float = TRIGGER_TIMEOUT_S_MAX
    memory_mb: int = 128

    def __post_init__(self) -> None:
        if not callable(self.handler):
            raise HandlerRefused(f"{self.handler!r} is no handler; give a function of an event and a context")
        if inspect.iscoroutinefunction(self.handler):
            raise HandlerRefused(
                f"{self.name} is a coroutine function, which Lambda's Python runtime does not run; give a plain "
                f"function that calls asyncio.run"
            )
        if not 0 < self.timeout_s <= TRIGGER_TIMEOUT_S_MAX:
            raise MappingRefused("timeout_s", self.timeout_s, f"give up to {TRIGGER_TIMEOUT_S_MAX} seconds")

    @classmethod
    def of(cls, handler: Handler, *, name: str | None = None, timeout_s: float | None = None) -> Function:
        """Return a function for a handler, named as the handler is unless a name is given."""
        found = name or getattr(handler, "__name__", None) or type(handler).__name__
        return cls(handler, found, TRIGGER_TIMEOUT_S_MAX if timeout_s is None else timeout_s)

    def arn(self, stream_arn: str) -> str:
        """Return the ARN that the function would have beside its stream."""
        parts = [*stream_arn.split(":"), "", "", "", ""]
        return f"arn:{parts[1] or 'aws'}:lambda:{parts[3]}:{parts[4]}:function:{self.name}"


@dataclass(frozen=True, slots=True)
class Invocation:
    """One event, and how its response is to be read."""

    event: dict[str, Any]
    sequences: tuple[str, ...]
    reports_failures: bool
    stateful: bool


def invoke(
    function: Function, invocation: Invocation, *, stream_arn: str, clock: Clock, entropy: Entropy
) -> Outcome:
    """Run the handler once, and return what it means for the records; nothing it raises gets out.

    Only `KeyboardInterrupt` does: it is the person's at the terminal, and the batch is not done.
    """
    context = LambdaContext(function, function.arn(stream_arn), entropy.uuid(), clock)
    begun_s = clock.now()
    try:
        returned = function.handler(invocation.event, context)
        response = json.loads(json.dumps(returned, default=_plain))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a handler raises fails its batch
        told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        _log.warning("%s failed: %s", function.name, told, exc_info=error)
        return Failed(told)
    took_s = clock.now() - begun_s
    if took_s > function.timeout_s:
        told = f"Task timed out after {function.timeout_s:.2f} seconds"
        _log.warning("%s failed: %s (it took %.2f s)", function.name, told, took_s)
        return Failed(told)
    outcome = read_response(
        response,
        invocation.sequences,
        reports_failures=invocation.reports_failures,
        stateful=invocation.stateful,
    )
    if not isinstance(outcome, Succeeded):
        _log.warning("%s failed: %s", function.name, outcome.reason)
    return outcome


def _plain(returned: object) -> float:
    """Return a Decimal as JSON holds it, as Lambda's Python runtime does; refuse what it refuses."""
    if isinstance(returned, Decimal):
        return float(returned)
    raise TypeError(f"the response holds {returned!r}, which JSON cannot")
