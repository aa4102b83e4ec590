"""`mock`: code that uses boto3 runs against an engine in this process, for a block or a function.

`backends.mocking` redirects botocore's requests.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, Unpack, overload

from tavola.backends.embedded import EmbeddedBackend
from tavola.backends.errors import MockRefused, extra_missing
from tavola.connections import (
    ENGINE_SETTINGS,
    ConnectionRefused,
    EngineSettings,
    check_scope,
    check_settings,
    engine_options,
    scope_of,
)
from tavola.engine import Engine
from tavola.handles import Connection
from tavola.protocol.arns import Scope

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Mocked:
    """What is behind boto3 inside a mock: its engine, and a connection to look at the same tables."""

    def __init__(self, opened: Callable[[], Engine], scope: Scope, *, owned: bool, renewable: bool) -> None:
        self._opened = opened
        self._scope = scope
        self._owned = owned
        self._renewable = renewable
        self._closed = False
        self._open()

    @property
    def engine(self) -> Engine:
        """The engine that answers now."""
        return self._engine

    @property
    def connection(self) -> Connection:
        """A connection to the mock's own account and region."""
        return self._connection

    def reset(self) -> None:
        """Take an empty engine in the place of the one so far; only for the mock's own in memory."""
        if not self._renewable:
            raise MockRefused(
                "reset() empties an engine in memory that mock() opened itself; "
                "of a file or an engine of yours, delete the tables"
            )
        old = self._connection
        self._open()
        old.close()

    def execute(self, operation: str, body: bytes, scope: Scope) -> bytes:
        """Return the answer of the engine that is there now."""
        if self._closed:
            raise MockRefused("the mock ended before this request was answered; wait for threads inside it")
        try:
            return self._engine.execute(operation, body, scope)
        finally:
            if self._engine.dirty:  # it gathers writes for others, and this may be one of them
                self._engine.commit_pending()

    def close(self) -> None:
        """Close the connection, and the engine if it is the mock's own."""
        self._closed = True
        self._connection.close()

    def _open(self) -> None:
        self._engine = self._opened()
        self._connection = Connection(
            EmbeddedBackend(self._engine, self._scope, owned=self._owned), "the engine of a mock"
        )


class Mock:
    """A block, or a decorated function, inside which boto3 and botocore talk to an engine in this process.

    Each time it is entered it opens what it was told to: without an engine or a path, a new one in memory.
    """

    def __init__(self, made: Callable[[], Mocked], scope: Scope, region: str | None) -> None:
        self._made = made
        self._scope = scope
        self._region = region  # as it was asked for; None: what boto3 finds configured
        self._entered: list[tuple[Mocked, Callable[[], None]]] = []

    def __enter__(self) -> Mocked:
        try:
            from tavola.backends import mocking  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            raise extra_missing(error, "mock()") from error
        mocked = self._made()
        stage = mocking.Stage(mocked.execute, self._scope, self._region)
        mocking.enter(stage)
        self._entered.append((mocked, functools.partial(mocking.leave, stage)))
        return mocked

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        mocked, leave = self._entered.pop()
        leave()
        mocked.close()

    def start(self) -> Mocked:
        """Enter the mock, for a `setUp`; `stop` leaves it."""
        return self.__enter__()

    def stop(self) -> None:
        """Leave the mock that `start` entered."""
        self.__exit__(None, None, None)

    def __call__(self, function: Decorated) -> Decorated:
        """Return a function that runs inside the mock, from its call to its end."""
        if inspect.isclass(function) or inspect.isasyncgenfunction(function) or not callable(function):
            raise MockRefused(
                f"mock() decorates functions and not {function!r}; decorate its tests, enter "
                "`with tavola.mock():` inside, or call start() and stop() in setUp and tearDown"
            )
        wrapped: Any
        if inspect.iscoroutinefunction(function):

            async def wrapped(*args: Any, **kwargs: Any) -> Any:
                with self._again():
                    return await function(*args, **kwargs)

        elif inspect.isgeneratorfunction(function):

            def wrapped(*args: Any, **kwargs: Any) -> Any:
                with self._again():
                    return (yield from function(*args, **kwargs))

        else:

            def wrapped(*args: Any, **kwargs: Any) -> Any:
                with self._again():
                    return function(*args, **kwargs)

        decorated: Any = functools.wraps(function)(wrapped)
        return decorated  # type: ignore[no-any-return]  # it is called as the function is

    def _again(self) -> Mock:
        """Return a mock like this one: calls that overlap each leave their own."""
        return Mock(self._made, self._scope, self._region)


@overload
def mock(function: Decorated, /) -> Decorated: ...
@overload
def mock(
    *,
    engine: Engine | None = None,
    path: str | os.PathLike[str] | None = None,
    region: str | None = None,
    account: str | None = None,
    **settings: Unpack[EngineSettings],
) -> Mock: ...
def mock(
    function: Any = None,
    /,
    *,
    engine: Engine | None = None,
    path: str | os.PathLike[str] | None = None,
    region: str | None = None,
    account: str | None = None,
    **settings: Unpack[EngineSettings],
) -> Any:
    """Return a context manager and decorator that runs boto3 code against an engine in this process.

    Every client and resource of DynamoDB and its streams is answered, whatever its endpoint and whether it
    was made before or inside; other services are left alone. Without credentials and region, boto3 gets dummy
    ones. Requests are told apart by region and by account, the latter read from the access key if
    that is twelve digits or one of AWS's. `region` goes before what the environment or a profile configures,
    and after what the code itself gives a client; `account` counts where the key names none.
    `engine` is used and left open; `path` is a file; the other settings go to the engine that is opened.
    """
    check_scope(region, account)
    check_settings("mock()", settings, ENGINE_SETTINGS)
    scope = scope_of(region, account)
    if engine is not None:
        if path is not None or settings:
            told = ", ".join(sorted(settings)) or "path"
            raise ConnectionRefused(
                f"{told} does not apply to an engine that is open already; give one of them"
            )
        handle = functools.partial(Mocked, lambda: engine, scope, owned=False, renewable=False)
    else:
        opened = functools.partial(Engine.open, path, **engine_options(settings))
        handle = functools.partial(Mocked, opened, scope, owned=True, renewable=path is None)
    made = Mock(handle, scope, region)
    return made if function is None else made(function)
