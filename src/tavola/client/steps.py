"""Steps: what the client wants done, one ask at a time; and two drivers that do it.

Every operation is a generator that yields an ask and is sent the answer, so it is written once and knows
nothing of sockets, threads or loops. A fault is thrown into it where the answer would come.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

from tavola.client.backend import AsyncBackend, AsyncGathering, Backend, Gathering
from tavola.client.errors import recognised
from tavola.client.metering import enriched, noted
from tavola.client.retries import Patience
from tavola.errors import TavolaError

R = TypeVar("R")

AT_ONCE_MAX = 32  # calls that a loop has under way at once where the backend has no say in it


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

    def _call(self, call: Call, attempt: int = 0) -> dict[str, Any]:
        """Return the answer to a call that was made so many times already."""
        operation, request = call.operation, enriched(call.operation, call.request)
        while True:
            try:
                answer = self._backend.call(operation, request)
            except TavolaError as error:
                attempt += 1
                wait_s = self._patience.wait_s(operation, request, error, attempt)
                if wait_s is None:
                    told = recognised(request, error)
                    if told is error:
                        raise
                    raise told from error
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
                if wait_s is None:
                    answer = _told(call.request, answer)
                else:
                    self._sleep(wait_s)
                    answer = self._answer(call, 1)
            else:
                noted(call.operation, answer)
            answers.append(answer)
        return answers

    def _answer(self, call: Call, attempt: int = 0) -> dict[str, Any] | TavolaError:
        try:
            return self._call(call, attempt)
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
                        answer = await self._together(ask.calls)
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

    async def _call(self, call: Call, attempt: int = 0) -> dict[str, Any]:
        """Return the answer to a call that was made so many times already."""
        operation, request = call.operation, enriched(call.operation, call.request)
        while True:
            try:
                answer = await self._backend.call(operation, request)
            except TavolaError as error:
                attempt += 1
                wait_s = self._patience.wait_s(operation, request, error, attempt)
                if wait_s is None:
                    told = recognised(request, error)
                    if told is error:
                        raise
                    raise told from error
                await _slept(wait_s)
            else:
                noted(operation, answer)
                return answer

    async def _together(self, calls: tuple[Call, ...]) -> list[dict[str, Any] | TavolaError]:
        """Return what came of each; the backend says how many are under way at once, if it can have several."""
        if not isinstance(self._backend, AsyncGathering) or len(calls) == 1:
            return await _gathered([self._answer(call) for call in calls])
        asked = [(call.operation, enriched(call.operation, call.request)) for call in calls]
        answers = await self._backend.call_all(asked)
        for call, answer in zip(calls, answers, strict=True):
            if not isinstance(answer, TavolaError):
                noted(call.operation, answer)
        failed = {at: answer for at, answer in enumerate(answers) if isinstance(answer, TavolaError)}
        told = await _gathered([self._again(calls[at], error) for at, error in failed.items()])
        for at, answer in zip(failed, told, strict=True):
            answers[at] = answer
        return answers

    async def _again(self, call: Call, error: TavolaError) -> dict[str, Any] | TavolaError:
        """Return what comes of a call that was made once, if it is of use to make it again."""
        wait_s = self._patience.wait_s(call.operation, call.request, error, 1)
        if wait_s is None:
            return _told(call.request, error)
        await _slept(wait_s)
        return await self._answer(call, 1)

    async def _answer(self, call: Call, attempt: int = 0) -> dict[str, Any] | TavolaError:
        try:
            return await self._call(call, attempt)
        except TavolaError as error:
            return error


def _told(request: dict[str, Any], error: TavolaError) -> TavolaError:
    """Return an error of a call among several as one of a call by itself is raised."""
    told = recognised(request, error)
    if told is not error:
        told.__cause__ = error
    return told


async def _gathered(answers: list[Coroutine[Any, Any, R]]) -> list[R]:
    """Return what some waits come to, with no more than so many under way at once."""
    import asyncio  # noqa: PLC0415 - dear to load, and a program without a loop needs none

    free = asyncio.Semaphore(AT_ONCE_MAX)

    async def taken(answer: Coroutine[Any, Any, R]) -> R:
        async with free:
            return await answer

    return await asyncio.gather(*map(taken, answers))


async def _slept(seconds: float) -> None:
    import asyncio  # noqa: PLC0415 - as above

    await asyncio.sleep(seconds)
