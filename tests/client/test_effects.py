"""The drivers: calls that need not wait for each other, how many are under way, and how often each is tried."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tavola import RetryPolicy
from tavola.client.effects import CONCURRENT_CALLS_MAX, AsyncDriver, Call, CallGroup, Driver, Program
from tavola.errors import TavolaError
from tavola.protocol.faults import ThrottlingFault

PATIENCE = RetryPolicy(attempts_max=3, base_s=0.0)


def call_group(count: int) -> Program[list[Any]]:
    """Yield a group of `count` calls."""
    return (yield CallGroup(tuple(Call("GetItem", {"number": n}) for n in range(count))))  # type: ignore[no-any-return]


class Counting:
    """A backend that echoes requests, or always fails, and counts calls."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.tries: dict[int, int] = {}
        self.now = self.most = 0

    def respond(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response to a request."""
        number = request["number"]
        self.tries[number] = self.tries.get(number, 0) + 1
        if self.fails and number:
            raise ThrottlingFault("too much")
        return {"number": number}


class Waiting(Counting):
    """The same for a loop."""

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer, a moment later."""
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return self.respond(request)

    async def close(self) -> None:
        """Nothing is held."""


class WaitingTogether(Waiting):
    """One that has several under way by itself."""

    groups = 0

    async def call_all(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> list[dict[str, Any] | TavolaError]:
        """Return what came of each."""
        self.groups += 1
        answers: list[dict[str, Any] | TavolaError] = []
        for operation, request in calls:
            try:
                answers.append(await self.call(operation, request))
            except TavolaError as error:
                answers.append(error)
        return answers


class Gathered(Counting):
    """One that has several under way by itself, without a loop."""

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer."""
        return self.respond(request)

    def call_all(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any] | TavolaError]:
        """Return what came of each."""
        answers: list[dict[str, Any] | TavolaError] = []
        for operation, request in calls:
            try:
                answers.append(self.call(operation, request))
            except TavolaError as error:
                answers.append(error)
        return answers

    def close(self) -> None:
        """Nothing is held."""


def test_a_backend_with_a_group_method_is_called_once() -> None:
    """Both drivers leave it to such a backend how many calls run at once."""
    backend = WaitingTogether()

    found = asyncio.run(AsyncDriver(backend, PATIENCE).run(call_group(50)))

    assert [each["number"] for each in found] == list(range(50))
    assert (backend.groups, backend.most) == (1, 1)


def test_concurrent_calls_are_bounded() -> None:
    """A backend without a group method does not receive hundreds of calls at once."""
    backend = Waiting()

    found = asyncio.run(AsyncDriver(backend, PATIENCE).run(call_group(200)))

    assert [each["number"] for each in found] == list(range(200))
    assert backend.most == CONCURRENT_CALLS_MAX


def test_a_group_that_is_cancelled_leaves_no_coroutine_behind() -> None:
    """Calls that have not started when the caller is cancelled never start, and no warning is raised."""

    async def story() -> None:
        task = asyncio.create_task(AsyncDriver(backend, PATIENCE).run(call_group(200)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    backend = Waiting()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        asyncio.run(story())
        gc.collect()

    assert [str(each.message) for each in said] == []
    assert len(backend.tries) < 200


@pytest.mark.parametrize("backend", [Waiting, WaitingTogether])
def test_each_call_has_its_tries_on_a_loop(backend: type[Waiting]) -> None:
    """Each call of a group has the retry policy's number of attempts, and fails alone."""
    made = backend(fails=True)

    found = asyncio.run(AsyncDriver(made, PATIENCE).run(call_group(3)))

    assert [isinstance(each, ThrottlingFault) for each in found] == [False, True, True]
    assert made.tries == {0: 1, 1: 3, 2: 3}


def test_each_call_has_its_tries() -> None:
    """The same without a loop."""
    made = Gathered(fails=True)

    found = Driver(made, PATIENCE, lambda seconds: None).run(call_group(3))

    assert [isinstance(each, ThrottlingFault) for each in found] == [False, True, True]
    assert made.tries == {0: 1, 1: 3, 2: 3}
