"""Steps: what the client wants done, one ask at a time; and two drivers that do it.

Every operation is a generator that yields an ask and is sent the answer, so it is written once and knows
nothing of sockets, threads or loops. A fault is thrown into it where the answer would come.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

from tavola.client.backend import AsyncBackend, Backend, Gathering
from tavola.client.metering import enriched, noted
from tavola.client.retries import Patience
from tavola.errors import TavolaError

R = TypeVar("R")


class Call(NamedTuple):
    """One operation; answered with its response."""

    operation: str
    request: dict[str, Any]


class Together(NamedTuple):
    """Several operations that need not wait for each other; answered with a list of responses and errors."""

    calls: tuple[Call, ...]


class Wait(NamedTuple):
    """Some time; answered when it is over."""

    seconds: float


Ask: TypeAlias = Call | Together | Wait
Steps: TypeAlias = Generator[Ask, Any, R]


class Driver:
    """Does the steps on a backend, trying again what passes by itself."""

    def __init__(self, backend: Backend, patience: Patience, sleep: Callable[[float], object]) -> None:
        self._backend = backend
        self._patience = patience
        self._sleep = sleep

    def run(self, steps: Steps[R]) -> R:
        """Return what the steps come to."""
        answer: Any = None
        try:
            ask = next(steps)
            while True:
                try:
                    if type(ask) is Call:
                        answer = self._call(ask)
                    elif type(ask) is Together:
                        answer = self._together(ask.calls)
                    else:
                        assert type(ask) is Wait
                        answer = self._sleep(ask.seconds)
                except TavolaError as error:
                    ask = steps.throw(error)
                else:
                    ask = steps.send(answer)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # StopIteration is not generic

    def _call(self, call: Call) -> dict[str, Any]:
        operation, request = call.operation, enriched(call.operation, call.request)
        attempt = 0
        while True:
            try:
                answer = self._backend.call(operation, request)
            except TavolaError as error:
                attempt += 1
                wait_s = self._patience.wait_s(operation, request, error, attempt)
                if wait_s is None:
                    raise
                self._sleep(wait_s)
            else:
                noted(operation, answer)
                return answer

    def _together(self, calls: tuple[Call, ...]) -> list[dict[str, Any] | TavolaError]:
        if not isinstance(self._backend, Gathering) or len(calls) == 1:
            return [self._answer(call) for call in calls]
        asked = [(call.operation, enriched(call.operation, call.request)) for call in calls]
        answers: list[dict[str, Any] | TavolaError] = []
        for call, answer in zip(calls, self._backend.call_all(asked), strict=True):
            if isinstance(answer, TavolaError):
                wait_s = self._patience.wait_s(call.operation, call.request, answer, 1)
                if wait_s is not None:
                    self._sleep(wait_s)
                    answer = self._answer(call)
            else:
                noted(call.operation, answer)
            answers.append(answer)
        return answers

    def _answer(self, call: Call) -> dict[str, Any] | TavolaError:
        try:
            return self._call(call)
        except TavolaError as error:
            return error


class AsyncDriver:
    """The same on a loop."""

    def __init__(self, backend: AsyncBackend, patience: Patience) -> None:
        self._backend = backend
        self._patience = patience

    async def run(self, steps: Steps[R]) -> R:
        """Return what the steps come to."""
        answer: Any = None
        try:
            ask = next(steps)
            while True:
                try:
                    if type(ask) is Call:
                        answer = await self._call(ask)
                    elif type(ask) is Together:
                        answer = await _gathered([self._answer(call) for call in ask.calls])
                    else:
                        assert type(ask) is Wait
                        await _slept(ask.seconds)
                        answer = None
                except TavolaError as error:
                    ask = steps.throw(error)
                else:
                    ask = steps.send(answer)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # StopIteration is not generic

    async def _call(self, call: Call) -> dict[str, Any]:
        operation, request = call.operation, enriched(call.operation, call.request)
        attempt = 0
        while True:
            try:
                answer = await self._backend.call(operation, request)
            except TavolaError as error:
                attempt += 1
                wait_s = self._patience.wait_s(operation, request, error, attempt)
                if wait_s is None:
                    raise
                await _slept(wait_s)
            else:
                noted(operation, answer)
                return answer

    async def _answer(self, call: Call) -> dict[str, Any] | TavolaError:
        try:
            return await self._call(call)
        except TavolaError as error:
            return error


async def _gathered(answers: list[Coroutine[Any, Any, R]]) -> list[R]:
    import asyncio  # noqa: PLC0415 - dear to load, and a program without a loop needs none

    return await asyncio.gather(*answers)


async def _slept(seconds: float) -> None:
    import asyncio  # noqa: PLC0415 - as above

    await asyncio.sleep(seconds)
