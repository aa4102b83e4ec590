"""A handler is run as Lambda's Python runtime would run it."""

from __future__ import annotations

import logging
from decimal import Decimal
from typing import Any

import pytest

from tavola.clock import ManualClock
from tavola.entropy import SeededEntropy
from tavola.triggers import HandlerRefused, LambdaContext, MappingRefused
from tavola.triggers.functions import Handler, HandlerFunction, Invocation, invoke
from tavola.triggers.outcomes import Failed, FailedFrom, Outcome, Succeeded
from tests.triggers.fake import ARN


def run(handler: Handler, *, clock: ManualClock | None = None, timeout_s: float = 3, **how: bool) -> Outcome:
    settings = {"report_batch_item_failures": False, "stateful": False, **how}
    return invoke(
        HandlerFunction.of(handler, timeout_s=timeout_s),
        Invocation({"Records": []}, ("1", "2"), **settings),
        stream_arn=ARN,
        clock=clock or ManualClock(),
        entropy=SeededEntropy(1),
    )


def test_the_context_is_that_of_lambda() -> None:
    """A handler may ask its context what Lambda's would answer, and how long it has left."""
    clock = ManualClock()
    seen: list[Any] = []

    def projector(event: dict[str, Any], context: LambdaContext) -> None:
        clock.advance(1)
        seen.extend([context.function_name, context.invoked_function_arn, context.function_version])
        seen.extend([context.memory_limit_in_mb, context.get_remaining_time_in_millis()])
        assert context.aws_request_id
        assert context.log_group_name == "/aws/lambda/projector"

    assert run(projector, clock=clock) == Succeeded()
    assert seen == [
        "projector",
        "arn:aws:lambda:eu-south-1:123456789012:function:projector",
        "$LATEST",
        "128",
        2000,
    ]


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(1), RecursionError()])
def test_whatever_it_raises_fails_the_batch(error: BaseException) -> None:
    """An exception never gets out of an invocation, and leaving the process is one of them."""

    def handler(event: dict[str, Any], context: object) -> None:
        raise error

    outcome = run(handler)
    assert isinstance(outcome, Failed)
    assert type(error).__name__ in outcome.reason


def test_the_person_at_the_terminal_is_heard() -> None:
    """An interrupt is no failure of the handler."""

    def handler(event: dict[str, Any], context: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(handler)


@pytest.mark.parametrize("response", [object(), {"a": b"bytes"}, {"a": {1, 2}}])
def test_a_response_that_json_cannot_hold_fails(response: object) -> None:
    """Lambda writes the response as JSON, and cannot."""
    assert isinstance(run(lambda event, context: response), Failed)


def test_a_decimal_is_a_number() -> None:
    """boto3 gives decimals, and the runtime writes them."""
    outcome = run(lambda event, context: {"state": {"n": Decimal("1.5")}}, stateful=True)

    assert outcome == Succeeded(b'{"n":1.5}')


def test_a_report_is_read() -> None:
    """A response may name what failed."""
    outcome = run(
        lambda event, context: {"batchItemFailures": [{"itemIdentifier": "2"}]},
        report_batch_item_failures=True,
    )

    assert isinstance(outcome, FailedFrom)
    assert outcome.index == 1


def test_a_handler_past_its_time_has_failed() -> None:
    """Lambda would have stopped it; here it is not believed."""
    clock = ManualClock()
    outcome = run(lambda event, context: clock.advance(3.5), clock=clock)

    assert outcome == Failed("Task timed out after 3.00 seconds")


async def _coroutine(event: object, context: object) -> None: ...


@pytest.mark.parametrize("handler", ["handler", _coroutine])
def test_what_is_no_handler_is_refused(handler: Any) -> None:
    """A name or a coroutine function cannot be called as Lambda calls."""
    with pytest.raises(HandlerRefused):
        HandlerFunction.of(handler)


def test_a_timeout_has_the_bounds_of_lambda() -> None:
    """A function runs for fifteen minutes at most."""
    with pytest.raises(MappingRefused, match="timeout_s"):
        HandlerFunction.of(lambda event, context: None, timeout_s=901)


def test_an_object_can_be_a_handler() -> None:
    """What can be called with two arguments is a handler; its class names it."""

    class Projector:
        def __call__(self, event: object, context: object) -> None: ...

    assert HandlerFunction.of(Projector()).name == "Projector"


def test_reported_failures_are_logged_with_their_numbers(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever looks at the log sees which records come again."""
    with caplog.at_level(logging.WARNING, "tavola.triggers"):
        outcome = run(
            lambda event, context: {"batchItemFailures": [{"itemIdentifier": "2"}, {"itemIdentifier": "1"}]},
            report_batch_item_failures=True,
        )

    assert isinstance(outcome, FailedFrom)
    assert outcome.index == 0
    assert "the handler reported 2 records as failed: 1, 2" in caplog.text
