"""`mock`: run code that uses boto3 against an engine in this process, for a block or a function.

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
from tavola.client.connection import Connection
from tavola.connections import (
    ENGINE_SETTINGS,
    EngineSettings,
    InvalidConnectionTarget,
    check_scope,
    check_settings,
    engine_options,
    scope_of,
)
from tavola.engine import Engine
from tavola.protocol.arns import Scope

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Mocked:
    """The engine behind boto3 inside a mock, and a connection to the same tables."""

    def __init__(
        self, open_engine: Callable[[], Engine], scope: Scope, *, owned: bool, resettable: bool
    ) -> None:
        self._open_engine = open_engine
        self._scope = scope
        self._owned = owned
        self._resettable = resettable
        self._closed = False
        self._open()

    @property
    def engine(self) -> Engine:
        """The current engine."""
        return self._engine

    @property
    def connection(self) -> Connection:
        """A connection to the mock's own account and region."""
        return self._connection

    def reset(self) -> None:
        """Replace the engine with an empty one; only for an in-memory engine that mock() opened."""
        if not self._resettable:
            raise MockRefused(
                "reset() works only for an engine in memory that mock() opened itself; "
                "delete the tables of a file or of your own engine"
            )
        old = self._connection
        self._open()
        old.close()

    def execute(self, operation: str, body: bytes, scope: Scope) -> bytes:
        """Return the response of the current engine."""
        if self._closed:
            raise MockRefused(
                "the mock ended before this request was executed; wait for your threads inside the mock"
            )
        try:
            return self._engine.execute(operation, body, scope)
        finally:
            if self._engine.dirty:  # an open commit group may contain this write
                self._engine.commit_pending()

    def close(self) -> None:
        """Close the connection, and the engine if the mock opened it."""
        self._closed = True
        self._connection.close()

    def _open(self) -> None:
        self._engine = self._open_engine()
        self._connection = Connection(
            EmbeddedBackend(self._engine, self._scope, owned=self._owned), "the engine of a mock"
        )


class Mock:
    """A context manager and decorator inside which boto3 and botocore use an engine in this process.

    Entering it opens the file at `path`, or a new engine in memory if neither `engine` nor `path` was given.
    """

    def __init__(self, make_mocked: Callable[[], Mocked], scope: Scope, region: str | None) -> None:
        self._make_mocked = make_mocked
        self._scope = scope
        self._region = region  # None: what boto3 finds configured
        self._entered: list[tuple[Mocked, Callable[[], None]]] = []

    def __enter__(self) -> Mocked:
        try:
            from tavola.backends import mocking  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            raise extra_missing(error, "mock()") from error
        mocked = self._make_mocked()
        target = mocking.MockTarget(mocked.execute, self._scope, self._region)
        mocking.enter(target)
        self._entered.append((mocked, functools.partial(mocking.leave, target)))
        return mocked

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        mocked, leave = self._entered.pop()
        leave()
        mocked.close()

    def start(self) -> Mocked:
        """Enter the mock, as in `setUp`; `stop` exits it."""
        return self.__enter__()

    def stop(self) -> None:
        """Exit the mock that `start` entered."""
        self.__exit__(None, None, None)

    def __call__(self, function: Decorated) -> Decorated:
        """Return `function` wrapped so that each call runs inside a mock of its own."""
        if inspect.isclass(function) or inspect.isasyncgenfunction(function) or not callable(function):
            raise MockRefused(
                f"mock() decorates functions, not {function!r}; decorate its tests, use "
                "`with tavola.mock():` inside, or call start() and stop() in setUp and tearDown"
            )
        wrapper: Any
        if inspect.iscoroutinefunction(function):

            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self._copy():
                    return await function(*args, **kwargs)

        elif inspect.isgeneratorfunction(function):

            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self._copy():
                    return (yield from function(*args, **kwargs))

        else:

            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self._copy():
                    return function(*args, **kwargs)

        decorated: Any = functools.wraps(function)(wrapper)
        return decorated  # type: ignore[no-any-return]  # it has the function's signature

    def _copy(self) -> Mock:
        """Return a copy, so that overlapping calls each have their own."""
        return Mock(self._make_mocked, self._scope, self._region)


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

    It applies to every client and resource of DynamoDB and its streams, whatever its endpoint, whether created before or inside;
    other services are not affected. Without credentials and region, boto3 gets dummy ones. Tables are separated by region and
    account; the account is read from the access key if that is twelve digits or a real AWS key. `region` overrides the environment
    and the profile, but not what the code passes to a client; `account` is used if the key contains none. `engine` is used and
    left open; `path` is a file; the other settings are for the engine that is opened.
    """
    check_scope(region, account)
    check_settings("mock()", settings, ENGINE_SETTINGS)
    scope = scope_of(region, account)
    if engine is not None:
        if path is not None or settings:
            names = ", ".join(sorted(settings)) or "path"
            raise InvalidConnectionTarget(f"{names} does not apply to an open engine; use one of them")
        make_mocked = functools.partial(Mocked, lambda: engine, scope, owned=False, resettable=False)
    else:
        open_engine = functools.partial(Engine.open, path, **engine_options(settings))
        make_mocked = functools.partial(Mocked, open_engine, scope, owned=True, resettable=path is None)
    decorator = Mock(make_mocked, scope, region)
    return decorator if function is None else decorator(function)
