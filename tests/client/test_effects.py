"""The drivers: calls that need not wait for each other, how many are under way, and how often each is tried."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tavola import RetryPolicy
from tavola.client.effects import CONCURRENT_CALLS_MAX, AsyncDriver, Call, CallGroup, Driver, Program
from tavola.errors import TavolaError
from tavola.protocol.faults import ThrottlingFault

PATIENCE = RetryPolicy(attempts_max=3, base_s=0.0)


def asked(count: int) -> Program[list[Any]]:
    """Ask so much at once."""
    return (yield CallGroup(tuple(Call("GetItem", {"number": n}) for n in range(count))))  # type: ignore[no-any-return]


class Counting:
    """A backend that answers with what it was asked, or always fails, and counts."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.tries: dict[int, int] = {}
        self.now = self.most = 0

    def told(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request."""
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
        return self.told(request)

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
        return self.told(request)

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


def test_a_backend_that_can_have_several_under_way_is_asked_once() -> None:
    """A loop's driver leaves it to the backend how many go out at once, as the other driver does."""
    backend = WaitingTogether()

    found = asyncio.run(AsyncDriver(backend, PATIENCE).run(asked(50)))

    assert [each["number"] for each in found] == list(range(50))
    assert (backend.groups, backend.most) == (1, 1)


def test_no_more_than_so_many_are_under_way_at_once() -> None:
    """A backend that has no say in it is not asked for hundreds at once."""
    backend = Waiting()

    found = asyncio.run(AsyncDriver(backend, PATIENCE).run(asked(200)))

    assert [each["number"] for each in found] == list(range(200))
    assert backend.most == CONCURRENT_CALLS_MAX


@pytest.mark.parametrize("backend", [Waiting, WaitingTogether])
def test_each_call_has_its_tries_on_a_loop(backend: type[Waiting]) -> None:
    """Of calls that go out together each is tried as often as patience says, and what fails fails alone."""
    made = backend(fails=True)

    found = asyncio.run(AsyncDriver(made, PATIENCE).run(asked(3)))

    assert [isinstance(each, ThrottlingFault) for each in found] == [False, True, True]
    assert made.tries == {0: 1, 1: 3, 2: 3}


def test_each_call_has_its_tries() -> None:
    """The same without a loop."""
    made = Gathered(fails=True)

    found = Driver(made, PATIENCE, lambda seconds: None).run(asked(3))

    assert [isinstance(each, ThrottlingFault) for each in found] == [False, True, True]
    assert made.tries == {0: 1, 1: 3, 2: 3}
