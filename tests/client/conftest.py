"""The client's suite on every backend: memory, file, HTTP, asynchronous, and AWS if TAVOLA_TEST_AWS=1."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tavola import Connection, Engine, ManualClock, RetryPolicy, connect, connect_async
from tavola.client.connection import AsyncPage, AsyncTransaction, Page
from tavola.server.listener import running
from tests.client.desk import Desk

NAMES = ["memory", "file", "http", "async", *(["aws"] if os.environ.get("TAVOLA_TEST_AWS") == "1" else [])]
START_S = 2_000_000_000.0  # 2033, so that no server of today takes what lives then for expired


class Awaited:
    """An asynchronous connection whose methods are waited for, so that one test serves both shells."""

    def __init__(self, target: str, **settings: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._db: Any = connect_async(target, **settings)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._db, name)
        if not callable(found) or name == "measured":
            return found
        if name == "transaction":
            return lambda token=None: _Waited(found(token), self._loop)

        def call(*args: Any, **options: Any) -> Any:
            answer = found(*args, **options)
            answer = self._loop.run_until_complete(answer) if asyncio.iscoroutine(answer) else answer
            return _Listed(answer, self._loop) if isinstance(answer, AsyncPage) else answer

        return call

    def close(self) -> None:
        """Close the connection and its loop."""
        self._loop.run_until_complete(self._db.close())
        self._loop.close()


class _Waited:
    """An asynchronous transaction in a `with` that waits for it."""

    def __init__(self, transaction: AsyncTransaction, loop: asyncio.AbstractEventLoop) -> None:
        self._transaction, self._loop = transaction, loop

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)

    def commit(self) -> None:
        """Commit, and wait for it."""
        self._loop.run_until_complete(self._transaction.commit())

    def __enter__(self) -> Any:
        self._loop.run_until_complete(self._transaction.__aenter__())
        return self

    def __exit__(self, *raised: Any) -> None:
        self._loop.run_until_complete(self._transaction.__aexit__(*raised))


class _Listed(Page[Any]):
    """An asynchronous page that is iterated without a loop of one's own."""

    def __init__(self, page: AsyncPage[Any], loop: asyncio.AbstractEventLoop) -> None:
        self.items, self.cursor = page.items, page.cursor
        self.scanned, self.requests = page.scanned, page.requests
        self._page, self._loop = page, loop

    def __iter__(self) -> Iterator[Any]:
        async def everything() -> list[Any]:
            return [item async for item in self._page]

        return iter(self._loop.run_until_complete(everything()))


@pytest.fixture
def clock() -> ManualClock:
    """A stopped clock for the client and its engine."""
    return ManualClock(START_S)


@pytest.fixture(scope="session")
def served() -> Iterator[str]:
    """The address of a server for the whole session; tests use distinct table names."""
    with Engine.open() as engine, running(engine) as address:
        yield address.url


@pytest.fixture(params=NAMES)
def opened(
    request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock
) -> Iterator[Callable[..., Connection]]:
    """Open connections to one backend: the same tables for all that a test opens."""
    made: list[Any] = []
    prefix = f"t{uuid.uuid4().hex[:12]}-"
    settings: dict[str, Any] = {"table_prefix": prefix, "retry_policy": RetryPolicy(base_s=0.0001)}
    engine_settings: dict[str, Any] = {"clock": clock}
    kind = request.param

    def open_(**more: Any) -> Any:
        options = settings | more
        if kind == "http":
            found: Any = connect(request.getfixturevalue("served"), clock=clock, **options)
        elif kind == "async":
            found = Awaited("memory:", **engine_settings, **options)
        elif kind == "aws":
            found = connect("aws:", **options)
        elif kind == "file":
            found = connect(f"file:{tmp_path / 'store.db'}", **engine_settings, **options)
        else:
            found = connect("memory:", **engine_settings, **options)
        made.append(found)
        return found

    yield open_
    for found in made:
        if kind in ("http", "aws"):
            names = found.call("ListTables").get("TableNames", [])
            for name in names:
                if name.startswith(prefix):
                    found.call("DeleteTable", {"TableName": name})
        found.close()


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Connection:
    """A connection with the desk's tables."""
    found = opened()
    found.create_tables(Desk)
    return found
