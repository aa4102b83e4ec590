"""Programs and their effects: every client operation is written once and runs with or without an event loop.

An operation is a generator, a *program*. It yields an *effect*, which describes I/O it wants done, and is resumed with the
result; a failure is raised inside it, at the `yield`:

    def read_title(key) -> Program[str]:              Driver (threads)        AsyncDriver (event loop)
        response = yield Call("GetItem", {...})   ──►  backend.call(...)        await backend.call(...)
        yield Sleep(0.1)                          ──►  time.sleep(0.1)          await asyncio.sleep(0.1)
        return response["Item"]["title"]["S"]

So programs do not depend on sockets, threads or event loops, and tests can run them with made-up responses.
Programs compose with `yield from`. `run_program` and `run_program_async` resume a program until it returns; they take
the function that performs its effects. A driver is such a function on a backend, with retries.

`Connection` and `AsyncConnection` get their methods from programs:

    def put(context: Context, entity: E, *, when: Condition[E] | None = None) -> Program[E]: ...

    class Connection:
        put = blocking_method(put)          # db.put(ticket) -> Ticket
    class AsyncConnection:
        put = async_method(put)             # await db.put(ticket) -> Ticket

The class provides `context`, which the program gets as its first argument, and `run`, which runs it. Type checkers derive
parameters, overloads and results from the program; `help()` and `inspect.signature()` show the same, because each method
carries a copy of the program's signature with `self` first and the result in place of `Program[result]`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from functools import partial
from types import FunctionType
from typing import (
    Any,
    Concatenate,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    get_overloads,
    overload,
)

from tavola.client.backend import AsyncBackend, AsyncConcurrentBackend, Backend, ConcurrentBackend
from tavola.client.consumption import METERS, record_consumption, request_capacity
from tavola.client.errors import specific_error
from tavola.client.retries import RetryPolicy
from tavola.errors import TavolaError

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

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


def call_concurrently(calls: Sequence[Call]) -> Program[list[dict[str, Any] | TavolaError]]:
    """Make independent calls, and return each one's response or error."""
    if len(calls) > 1:
        return (yield CallGroup(tuple(calls)))  # type: ignore[no-any-return]  # the result of a CallGroup
    try:
        return [(yield calls[0])]
    except TavolaError as error:
        return [error]


def responses_to(calls: Sequence[Call]) -> Program[list[dict[str, Any]]]:
    """Make independent calls, and return their responses; raise the first error."""
    responses: list[dict[str, Any]] = []
    for response in (yield from call_concurrently(calls)):
        if isinstance(response, TavolaError):
            raise response
        responses.append(response)
    return responses


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


class _BaseDriver:
    """What `Driver` and `AsyncDriver` share."""

    _retry_policy: RetryPolicy

    def _delay_s(self, call: Call, error: TavolaError, attempts: int) -> float:
        """Return the pause before a failed call is repeated; raise its error if it must not be."""
        delay_s = self._retry_policy.wait_s(call.operation, call.request, error, attempts)
        if delay_s is not None:
            return delay_s
        specific = specific_error(call.request, error)
        if specific is error:
            raise error
        raise specific from error


class Driver(_BaseDriver):
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
        assert type(effect) is RunBlocking, f"{effect!r} is not an effect"
        return effect.function()

    def _call(self, call: Call, attempts: int = 0) -> dict[str, Any]:
        """Return the response to a call; `attempts` were made before."""
        is_measured = bool(METERS.get())
        operation, request = request_capacity(*call) if is_measured else call
        while True:
            try:
                response = self._backend.call(operation, request)
            except TavolaError as error:
                attempts += 1
                self._sleep(self._delay_s(call, error, attempts))
            else:
                if is_measured:
                    record_consumption(operation, response)
                return response

    def _call_group(self, calls: tuple[Call, ...]) -> list[dict[str, Any] | TavolaError]:
        if not isinstance(self._backend, ConcurrentBackend) or len(calls) == 1:
            return [self._response_or_error(call) for call in calls]
        is_measured = bool(METERS.get())
        requests = [request_capacity(*call) for call in calls] if is_measured else calls
        results: list[dict[str, Any] | TavolaError] = []
        for call, result in zip(calls, self._backend.call_all(requests), strict=True):
            if isinstance(result, TavolaError):
                result = self._retry(call, result)
            elif is_measured:
                record_consumption(call.operation, result)
            results.append(result)
        return results

    def _retry(self, call: Call, error: TavolaError) -> dict[str, Any] | TavolaError:
        """Return the outcome of a call that failed once, after further attempts if the policy allows any."""
        try:
            self._sleep(self._delay_s(call, error, 1))
            return self._call(call, 1)
        except TavolaError as last_error:
            return last_error

    def _response_or_error(self, call: Call) -> dict[str, Any] | TavolaError:
        try:
            return self._call(call)
        except TavolaError as error:
            return error


class AsyncDriver(_BaseDriver):
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
        assert type(effect) is RunBlocking, f"{effect!r} is not an effect"
        import asyncio  # noqa: PLC0415 - takes 30 ms to load, and a program without an event loop needs none

        return await asyncio.to_thread(effect.function)

    async def _call(self, call: Call, attempts: int = 0) -> dict[str, Any]:
        """Return the response to a call; `attempts` were made before."""
        is_measured = bool(METERS.get())
        operation, request = request_capacity(*call) if is_measured else call
        while True:
            try:
                response = await self._backend.call(operation, request)
            except TavolaError as error:
                attempts += 1
                await _sleep(self._delay_s(call, error, attempts))
            else:
                if is_measured:
                    record_consumption(operation, response)
                return response

    async def _call_group(self, calls: tuple[Call, ...]) -> list[dict[str, Any] | TavolaError]:
        """Return the outcome of each call; a backend with `call_all` decides how many are in flight."""
        if not isinstance(self._backend, AsyncConcurrentBackend) or len(calls) == 1:
            return await _gather([partial(self._response_or_error, call) for call in calls])
        is_measured = bool(METERS.get())
        requests = [request_capacity(*call) for call in calls] if is_measured else calls
        results = await self._backend.call_all(requests)
        errors: dict[int, TavolaError] = {}
        for position, (call, result) in enumerate(zip(calls, results, strict=True)):
            if isinstance(result, TavolaError):
                errors[position] = result
            elif is_measured:
                record_consumption(call.operation, result)
        if errors:
            retries = [partial(self._retry, calls[position], error) for position, error in errors.items()]
            for position, result in zip(errors, await _gather(retries), strict=True):
                results[position] = result
        return results

    async def _retry(self, call: Call, error: TavolaError) -> dict[str, Any] | TavolaError:
        """Return the outcome of a call that failed once, after further attempts if the policy allows any."""
        try:
            await _sleep(self._delay_s(call, error, 1))
            return await self._call(call, 1)
        except TavolaError as last_error:
            return last_error

    async def _response_or_error(self, call: Call) -> dict[str, Any] | TavolaError:
        try:
            return await self._call(call)
        except TavolaError as error:
            return error


async def _gather(functions: Sequence[Callable[[], Awaitable[R]]]) -> list[R]:
    """Return the results of all; no more than `CONCURRENT_CALLS_MAX` run at a time.

    Functions and not coroutines: a coroutine that waits when the caller is cancelled would never be awaited.
    """
    import asyncio  # noqa: PLC0415 - as above

    slots = asyncio.Semaphore(CONCURRENT_CALLS_MAX)

    async def run_in_slot(function: Callable[[], Awaitable[R]]) -> R:
        async with slots:
            return await function()

    return await asyncio.gather(*map(run_in_slot, functions))


async def _sleep(seconds: float) -> None:
    import asyncio  # noqa: PLC0415 - as above

    await asyncio.sleep(seconds)


class Run(Protocol):
    """Runs a program and returns its result."""

    def __call__(self, program: Program[R], /) -> R: ...


class RunAsync(Protocol):
    """Runs a program on an event loop."""

    def __call__(self, program: Program[R], /) -> Awaitable[R]: ...


def blocking_method(
    program: Callable[Concatenate[S, P], Program[R]],
) -> Callable[Concatenate[Any, P], R]:
    """Return a method that runs a program and returns its result."""

    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self.run(program(self.context, *args, **kwargs))

    return _Method(method, program)  # type: ignore[return-value]  # it becomes `method` in its class


def async_method(
    program: Callable[Concatenate[S, P], Program[R]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """Return a coroutine method that runs a program and returns its result."""

    async def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return await self.run(program(self.context, *args, **kwargs))

    return _Method(method, program)  # type: ignore[return-value]  # it becomes `method` in its class


def describe_method(method: Any, program: Any, result: Callable[[str], str] = str) -> Any:
    """Return a class attribute that becomes `method`, with the name, docstring and signature of a program.

    `result` rewrites the annotation of the result where the method returns something else than the program.
    """
    return _Method(method, program, result)


class _Method:
    """Replaces itself by a documented function once the class that holds it is known."""

    def __init__(self, method: Any, program: Any, result: Callable[[str], str] = str) -> None:
        self._method = method
        self._program = program
        self._result = result

    def __set_name__(self, owner: type, name: str) -> None:
        method, program = self._method, self._program
        method.__module__, method.__name__ = owner.__module__, name
        method.__qualname__ = f"{owner.__qualname__}.{name}"
        method.__doc__ = program.__doc__
        method.__wrapped__ = self._signature_of(program, method)
        for signature in get_overloads(program):
            overload(self._signature_of(signature, method))  # so that get_overloads(method) finds it
        setattr(owner, name, method)

    def _signature_of(self, program: Any, method: Any) -> FunctionType:
        """Return a copy of a program's function that is never called: it carries the signature of the method."""
        code = program.__code__
        first, *others = code.co_varnames
        copy = FunctionType(
            code.replace(co_varnames=("self", *others)), program.__globals__, method.__name__,
            program.__defaults__, program.__closure__,
        )  # fmt: skip
        copy.__kwdefaults__ = program.__kwdefaults__
        annotations = {key: text for key, text in program.__annotations__.items() if key != first}
        annotations["return"] = self._result(str(annotations["return"]).removeprefix("Program[")[:-1])
        copy.__annotations__ = annotations
        copy.__module__, copy.__qualname__ = method.__module__, method.__qualname__
        return copy
