"""Transactions as programs with scripted responses: which requests are retried and which are not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tavola import Fault, RetryPolicy, TransactionCancelled, UpdateContended
from tavola.client.context import Context
from tavola.client.effects import Call, Program, Sleep
from tavola.client.transactions import Intents, commit, get_together
from tavola.protocol.faults import (
    CancellationReason,
    IdempotentParameterMismatchFault,
    TransactionCanceledFault,
)
from tests.client.desk import Event
from tests.client.office import Order

AT = datetime(2026, 9, 1, 12, tzinfo=UTC)


def event() -> Event:
    """Return an event."""
    return Event(ticket_id="t1", at=AT, event_id="e1", kind="opened")


class Scripted:
    """A driver with scripted responses that records requests and waits."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.waits = 0

    def run(self, steps: Program[Any]) -> Any:
        """Return what the steps come to."""
        try:
            effect = next(steps)
            while True:
                if isinstance(effect, Sleep):
                    self.waits += 1
                    effect = steps.send(None)
                    continue
                assert isinstance(effect, Call)
                self.requests.append((effect.operation, effect.request))
                answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                effect = steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
        except StopIteration as done:
            return done.value


def cancelled_for(*codes: str) -> TransactionCanceledFault:
    """Return the fault of a transaction with a reason for each action."""
    return TransactionCanceledFault(
        [CancellationReason(code, None if code == "None" else "…") for code in codes]
    )


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("TransactionConflict", "conflict"),
        ("ThrottlingError", "throttled"),
        ("ProvisionedThroughputExceeded", "throttled"),
    ],
)
def test_pitfall_9_retries_of_a_transient_failure_are_bounded(code: str, kind: str) -> None:
    """Pitfall 9:

    a lasting conflict or throttle ends after the policy's number of attempts, all with one token.
    """
    context = Context(retry_policy=RetryPolicy(attempts_max=5, base_s=0))
    transaction = Intents(context)
    transaction.create(Order(order_id="o1", customer="c"))
    other = transaction.put(event())
    driver = Scripted(cancelled_for("None", code))

    with pytest.raises(TransactionCancelled) as caught:
        driver.run(commit(context, transaction.intents))

    assert caught.value.failed[other].kind == kind
    assert isinstance(caught.value.failed[other].error, Fault)
    assert (len(driver.requests), driver.waits) == (5, 4)
    assert len({request["ClientRequestToken"] for _, request in driver.requests}) == 1


def test_a_failed_condition_is_not_tried_again() -> None:
    """A failed condition is raised at once, also beside a conflict."""
    context = Context()
    transaction = Intents(context)
    transaction.create(Order(order_id="o1", customer="c"))
    transaction.put(event())
    driver = Scripted(cancelled_for("ConditionalCheckFailed", "TransactionConflict"))

    with pytest.raises(TransactionCancelled) as caught:
        driver.run(commit(context, transaction.intents))

    assert [reason and reason.kind for reason in caught.value.reasons] == ["exists", "conflict"]
    assert len(driver.requests) == 1


def test_a_conflict_that_passes_is_no_error() -> None:
    """The same request is retried until it succeeds, and its writes are recorded once."""
    context = Context(retry_policy=RetryPolicy(base_s=0))
    order = Order(order_id="o1", customer="c")
    transaction = Intents(context)
    transaction.create(order)
    driver = Scripted(cancelled_for("TransactionConflict"), cancelled_for("ThrottlingError"), {})

    driver.run(commit(context, transaction.intents))

    assert len(driver.requests) == 3
    assert driver.requests[0] == driver.requests[1] == driver.requests[2]
    assert order.revision == 1


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (CancellationReason("ItemCollectionSizeLimitExceeded", "full"), "too_large"),
        (
            CancellationReason(
                "ValidationError", "Item size to update has exceeded the maximum allowed size"
            ),
            "too_large",
        ),
        (CancellationReason("ValidationError", "The provided expression refers to …"), "invalid"),
        (CancellationReason("AccessDenied", "no"), "invalid"),
    ],
)
def test_other_reasons_are_classified(reason: CancellationReason, kind: str) -> None:
    """Other cancellation reasons are classified as too large or invalid, with DynamoDB's message."""
    context = Context()
    transaction = Intents(context)
    intent = transaction.put(event())
    driver = Scripted(TransactionCanceledFault([reason]))

    with pytest.raises(TransactionCancelled) as caught:
        driver.run(commit(context, transaction.intents))

    assert caught.value.failed[intent].kind == kind
    assert str(caught.value.failed[intent].error) == reason.message


def test_a_transaction_that_is_always_overtaken_fails() -> None:
    """A transaction whose items change before every attempt ends with an error, with a new token if needed."""
    context = Context(retry_policy=RetryPolicy(base_s=0))
    transaction = Intents(context)
    transaction.update(Order.Key(order_id="o1"), Order.state.set("paid"))
    item = {
        "pk": {"S": "ORDER#o1"}, "sk": {"S": "ORDER"}, "order_id": {"S": "o1"}, "customer": {"S": "c"},
        "state": {"S": "new"}, "total": {"N": "1"}, "revision": {"N": "1"},
    }  # fmt: skip
    stale = TransactionCanceledFault([CancellationReason("ConditionalCheckFailed", None, item)])  # type: ignore[arg-type]
    driver = Scripted({"Item": item}, stale, IdempotentParameterMismatchFault(), stale)

    with pytest.raises(
        UpdateContended, match="Order order_id='o1' was changed by other writers during all 20 attempts"
    ):
        driver.run(commit(context, transaction.intents))

    tokens = [request["ClientRequestToken"] for operation, request in driver.requests[1:]]
    assert len(tokens) == 21
    assert len(set(tokens)) == 2


def test_reads_that_meet_a_write_are_tried_again() -> None:
    """A conflict of a reading transaction is retried within limits; other reasons are raised at once."""
    context = Context(retry_policy=RetryPolicy(attempts_max=4, base_s=0))
    keys = [Order.Key(order_id="o1")]
    passing = Scripted(cancelled_for("TransactionConflict"), {"Responses": [{}]})
    lasting = Scripted(cancelled_for("TransactionConflict"))
    broken = Scripted(cancelled_for("ValidationError"))

    assert passing.run(get_together(context, keys)) == [None]
    with pytest.raises(TransactionCanceledFault):
        lasting.run(get_together(context, keys))
    with pytest.raises(TransactionCanceledFault):
        broken.run(get_together(context, keys))
    assert (len(passing.requests), len(lasting.requests), len(broken.requests)) == (2, 4, 1)
