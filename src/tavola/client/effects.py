"""Programs and their effects: every client operation is written once and runs with or without an event loop.

An operation is a generator, a *program*. It yields an *effect*, which describes I/O it wants done, and is resumed with the
result; what fails is raised inside it, at the `yield`:

    def read_title(key) -> Program[str]:              Driver (threads)        AsyncDriver (event loop)
        response = yield Call("GetItem", {...})   ──►  backend.call(...)        await backend.call(...)
        yield Sleep(0.1)                          ──►  time.sleep(0.1)          await asyncio.sleep(0.1)
        return response["Item"]["title"]["S"]

So programs know nothing of sockets, threads or event loops, and tests can run them with a function that makes responses up.
Programs compose with `yield from`. `run_program` and `run_program_async` resume a program until it returns; they take
the function that performs its effects. A driver is such a function on a backend, with retries.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

from tavola.client.backend import AsyncBackend, AsyncGathering, Backend, Gathering
from tavola.client.errors import specific_error
from tavola.client.metering import record_consumption, request_capacity
from tavola.client.retries import RetryPolicy
from tavola.errors import TavolaError

R = TypeVar("R")

CONCURRENT_CALLS_MAX = 32  # calls in flight of one `CallGroup`, where the backend sets no limit of its own


class Call(NamedTuple):
    """Call one operation; the result is its response."""

    operation: str
    request: dict[str, Any]


class CallGroup(NamedTuple):
    """Call several independent operations; the result is a list of responses and errors in the same order."""

    calls: tuple[Call, ...]


class Sleep(NamedTuple):
    """Wait for some time; the result is None."""

    seconds: float


class RunBlocking(NamedTuple):
    """Call a function that does I/O of its own, in a thread if there is an event loop; the result is what it returns."""

    function: Callable[[], Any]


Effect: TypeAlias = Call | CallGroup | Sleep | RunBlocking
Program: TypeAlias = Generator[Effect, Any, R]


def run_program(program: Generator[Any, Any, R], perform: Callable[[Any], Any]) -> R:
    """Return what a program returns; `perform` carries out each effect and returns its result."""
    try:
        effect = next(program)
        while True:
            try:
                result = perform(effect)
            except BaseException as error:  # noqa: BLE001 - the program decides what to undo
                effect = program.throw(error)
            else:
                effect = program.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # StopIteration is not generic
    finally:
        program.close()


async def run_program_async(program: Generator[Any, Any, R], perform: Callable[[Any], Awaitable[Any]]) -> R:
    """Return what a program returns; `perform` is awaited for each effect. A cancellation is raised in the program too."""
    try:
        effect = next(program)
        while True:
            try:
                result = await perform(effect)
            except GeneratorExit:  # this coroutine is being closed: the program may not ask for more
                raise
            except BaseException as error:  # noqa: BLE001 - the program decides what to undo
                effect = program.throw(error)
            else:
                effect = program.send(result)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # StopIteration is not generic
    finally:
        program.close()


class Driver:
    """Performs effects on a backend, blocking the thread, and repeats calls as the retry policy says."""

    def __init__(self, backend: Backend, retry_policy: RetryPolicy, sleep: Callable[[float], object]) -> None:
        self._backend = backend
        self._retry_policy = retry_policy
        self._sleep = sleep

    def run(self, program: Program[R]) -> R:
        """Return what a program returns."""
        return run_program(program, self.perform)

    def perform(self, effect: Effect) -> Any:
        """Return the result of an effect."""
        if type(effect) is Call:
            return self._call(effect)
        if type(effect) is CallGroup:
            return self._call_group(effect.calls)
        if type(effect) is Sleep:
            return self._sleep(effect.seconds)
        assert type(effect) is RunBlocking, f"{effect!r} is no effect"
        return effect.function()

    def _call(self, call: Call, attempts: int = 0) -> dict[str, Any]:
        """Return the response to a call; `attempts` were made before."""
        operation, request = call.operation, request_capacity(call.operation, call.request)
        while True:
            try:
                response = self._backend.call(operation, request)
            except TavolaError as error:
                attempts += 1
                delay_s = self._retry_policy.wait_s(operation, request, error, attempts)
                if delay_s is None:
                    specific = specific_error(request, error)
                    if specific is error:
                        raise
                    raise specific from error
                self._sleep(delay_s)
            else:
                record_consumption(operation, response)
                return response

    def _call_group(self, calls: tuple[Call, ...]) -> list[dict[str, Any] | TavolaError]:
        if not isinstance(self._backend, Gathering) or len(calls) == 1:
            return [self._response_or_error(call) for call in calls]
        requests = [(call.operation, request_capacity(call.operation, call.request)) for call in calls]
        results: list[dict[str, Any] | TavolaError] = []
        for call, result in zip(calls, self._backend.call_all(requests), strict=True):
            if not isinstance(result, TavolaError):
                record_consumption(call.operation, result)
            else:
                result = self._retry(call, result)
            results.append(result)
        return results

    def _retry(self, call: Call, error: TavolaError) -> dict[str, Any] | TavolaError:
        """Return the outcome of a call that failed once, after further attempts if the policy allows any."""
        delay_s = self._retry_policy.wait_s(call.operation, call.request, error, 1)
        if delay_s is None:
            return _specific(call.request, error)
        self._sleep(delay_s)
        return self._response_or_error(call, 1)

    def _response_or_error(self, call: Call, attempts: int = 0) -> dict[str, Any] | TavolaError:
        try:
            return self._call(call, attempts)
        except TavolaError as error:
            return error


class AsyncDriver:
    """Performs effects on a backend from an event loop, and repeats calls as the retry policy says."""

    def __init__(self, backend: AsyncBackend, retry_policy: RetryPolicy) -> None:
        self._backend = backend
        self._retry_policy = retry_policy

    async def run(self, program: Program[R]) -> R:
        """Return what a program returns."""
        return await run_program_async(program, self.perform)

    async def perform(self, effect: Effect) -> Any:
        """Return the result of an effect."""
        if type(effect) is Call:
            return await self._call(effect)
        if type(effect) is CallGroup:
            return await self._call_group(effect.calls)
        if type(effect) is Sleep:
            return await _sleep(effect.seconds)
        assert type(effect) is RunBlocking, f"{effect!r} is no effect"
        import asyncio  # noqa: PLC0415 - takes 30 ms to load, and a program without an event loop needs none

        return await asyncio.to_thread(effect.function)

    async def _call(self, call: Call, attempts: int = 0) -> dict[str, Any]:
        """Return the response to a call; `attempts` were made before."""
        operation, request = call.operation, request_capacity(call.operation, call.request)
        while True:
            try:
                response = await self._backend.call(operation, request)
            except TavolaError as error:
                attempts += 1
                delay_s = self._retry_policy.wait_s(operation, request, error, attempts)
                if delay_s is None:
                    specific = specific_error(request, error)
                    if specific is error:
                        raise
                    raise specific from error
                await _sleep(delay_s)
            else:
                record_consumption(operation, response)
                return response

    async def _call_group(self, calls: tuple[Call, ...]) -> list[dict[str, Any] | TavolaError]:
        """Return the outcome of each call; a backend with `call_all` decides how many are in flight."""
        if not isinstance(self._backend, AsyncGathering) or len(calls) == 1:
            return await _gather([self._response_or_error(call) for call in calls])
        requests = [(call.operation, request_capacity(call.operation, call.request)) for call in calls]
        results = await self._backend.call_all(requests)
        errors: dict[int, TavolaError] = {}
        for position, (call, result) in enumerate(zip(calls, results, strict=True)):
            if isinstance(result, TavolaError):
                errors[position] = result
            else:
                record_consumption(call.operation, result)
        retried = await _gather([self._retry(calls[position], error) for position, error in errors.items()])
        for position, result in zip(errors, retried, strict=True):
            results[position] = result
        return results

    async def _retry(self, call: Call, error: TavolaError) -> dict[str, Any] | TavolaError:
        """Return the outcome of a call that failed once, after further attempts if the policy allows any."""
        delay_s = self._retry_policy.wait_s(call.operation, call.request, error, 1)
        if delay_s is None:
            return _specific(call.request, error)
        await _sleep(delay_s)
        return await self._response_or_error(call, 1)

    async def _response_or_error(self, call: Call, attempts: int = 0) -> dict[str, Any] | TavolaError:
        try:
            return await self._call(call, attempts)
        except TavolaError as error:
            return error


def _specific(request: dict[str, Any], error: TavolaError) -> TavolaError:
    """Return the more specific error that stands for a backend's, caused by it; or the error itself."""
    specific = specific_error(request, error)
    if specific is not error:
        specific.__cause__ = error
    return specific


async def _gather(coroutines: list[Coroutine[Any, Any, R]]) -> list[R]:
    """Return the results of all; no more than `CONCURRENT_CALLS_MAX` run at a time."""
    import asyncio  # noqa: PLC0415 - as above

    slots = asyncio.Semaphore(CONCURRENT_CALLS_MAX)

    async def run_in_slot(coroutine: Coroutine[Any, Any, R]) -> R:
        async with slots:
            return await coroutine

    return await asyncio.gather(*map(run_in_slot, coroutines))


async def _sleep(seconds: float) -> None:
    import asyncio  # noqa: PLC0415 - as above

    await asyncio.sleep(seconds)
