"""Transactions as steps: what is asked again and what is not, with every answer told beforehand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tavola import Fault, RetryPolicy, TransactionCancelled, UpdateContended
from tavola.client.context import Context
from tavola.client.effects import Call, Program, Sleep
from tavola.client.intents import Intents
from tavola.client.transactions import commit, get_together
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
    """A driver of steps whose answers are told beforehand; what was asked and waited is written down."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.waits = 0

    def run(self, steps: Program[Any]) -> Any:
        """Return what the steps come to."""
        try:
            ask = next(steps)
            while True:
                if isinstance(ask, Sleep):
                    self.waits += 1
                    ask = steps.send(None)
                    continue
                assert isinstance(ask, Call)
                self.asked.append((ask.operation, ask.request))
                answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                ask = steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
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
def test_pitfall_9_what_passes_by_itself_is_not_tried_for_ever(code: str, kind: str) -> None:
    """Pitfall 9: a conflict or throttle that lasts ends after as many attempts as patience has, all with one token."""
    context = Context(retry_policy=RetryPolicy(attempts_max=5, base_s=0))
    told = Intents(context)
    told.create(Order(order_id="o1", customer="c"))
    other = told.put(event())
    driver = Scripted(cancelled_for("None", code))

    with pytest.raises(TransactionCancelled) as caught:
        driver.run(commit(context, told.intents))

    assert caught.value.failed[other].kind == kind
    assert isinstance(caught.value.failed[other].error, Fault)
    assert (len(driver.asked), driver.waits) == (5, 4)
    assert len({request["ClientRequestToken"] for _, request in driver.asked}) == 1


def test_a_failed_condition_is_not_tried_again() -> None:
    """A condition that does not hold is told at once, also beside a conflict."""
    context = Context()
    told = Intents(context)
    told.create(Order(order_id="o1", customer="c"))
    told.put(event())
    driver = Scripted(cancelled_for("ConditionalCheckFailed", "TransactionConflict"))

    with pytest.raises(TransactionCancelled) as caught:
        driver.run(commit(context, told.intents))

    assert [reason and reason.kind for reason in caught.value.reasons] == ["exists", "conflict"]
    assert len(driver.asked) == 1


def test_a_conflict_that_passes_is_no_error() -> None:
    """The same request is asked again until it is done, and what it wrote is noted once."""
    context = Context(retry_policy=RetryPolicy(base_s=0))
    order = Order(order_id="o1", customer="c")
    told = Intents(context)
    told.create(order)
    driver = Scripted(cancelled_for("TransactionConflict"), cancelled_for("ThrottlingError"), {})

    driver.run(commit(context, told.intents))

    assert len(driver.asked) == 3
    assert driver.asked[0] == driver.asked[1] == driver.asked[2]
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
    """What DynamoDB cannot do to an item is told as too large or as invalid, with its words."""
    context = Context()
    told = Intents(context)
    intent = told.put(event())
    driver = Scripted(TransactionCanceledFault([reason]))

    with pytest.raises(TransactionCancelled) as caught:
        driver.run(commit(context, told.intents))

    assert caught.value.failed[intent].kind == kind
    assert str(caught.value.failed[intent].error) == reason.message


def test_who_is_always_overtaken_gives_up() -> None:
    """A transaction that is overtaken every time ends with an error that says so, with another token if need be."""
    context = Context(retry_policy=RetryPolicy(base_s=0))
    told = Intents(context)
    told.update(Order.Key(order_id="o1"), Order.state.set("paid"))
    item = {
        "pk": {"S": "ORDER#o1"}, "sk": {"S": "ORDER"}, "order_id": {"S": "o1"}, "customer": {"S": "c"},
        "state": {"S": "new"}, "total": {"N": "1"}, "revision": {"N": "1"},
    }  # fmt: skip
    stale = TransactionCanceledFault([CancellationReason("ConditionalCheckFailed", None, item)])  # type: ignore[arg-type]
    driver = Scripted({"Item": item}, stale, IdempotentParameterMismatchFault(), stale)

    with pytest.raises(UpdateContended, match="Order order_id='o1' was changed by others 20 times"):
        driver.run(commit(context, told.intents))

    tokens = [request["ClientRequestToken"] for operation, request in driver.asked[1:]]
    assert len(tokens) == 21
    assert len(set(tokens)) == 2


def test_reads_that_meet_a_write_are_tried_again() -> None:
    """A conflict of a reading transaction is waited out, and not for ever; other reasons are told at once."""
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
    assert (len(passing.asked), len(lasting.asked), len(broken.asked)) == (2, 4, 1)
