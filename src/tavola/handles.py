"""Handles: a connection to DynamoDB, wherever it is, in the two ways that programs wait.

A handle is the client over one backend, with the operations themselves beside it. `connections` makes them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, TypeVar

from tavola.backends.errors import PastUnavailable
from tavola.client.backend import AsyncBackend, AsyncRemembering, Backend, Remembering
from tavola.client.context import Context
from tavola.client.db import AsyncDb, Db
from tavola.client.effects import AsyncDriver, Driver, Program, run_program, run_program_async
from tavola.client.versions import ItemVersion, async_item_versions, item_versions
from tavola.clock import pause
from tavola.errors import TavolaError
from tavola.protocol.instants import instant_of, instant_text

R = TypeVar("R")


class ConnectionClosed(TavolaError):
    """A connection that was asked after it was closed."""

    def __init__(self, target: str) -> None:
        self.target = target
        super().__init__(f"The connection to {target} is closed; connect again")


class Connection(Db):
    """A handle on DynamoDB, wherever it is; closing it closes the backend."""

    def __init__(self, backend: Backend, target: str = "a backend", context: Context | None = None) -> None:
        self.backend = backend
        self.target = target
        self._closed = False
        self.context = context or Context()
        self._perform = Driver(backend, self.context.retry_policy, pause).perform

    def run(self, program: Program[R]) -> R:
        """Return the result of a client program, for code built on the client."""
        if self._closed:
            raise ConnectionClosed(self.target)
        return run_program(program, self._perform)

    def call(self, operation: str, request: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the response to an operation, both in DynamoDB JSON; raise the fault that AWS answers.

        Bytes in the request stand for a B; in the response a B is base64 text.
        """
        if self._closed:
            raise ConnectionClosed(self.target)
        return self.backend.call(operation, {} if request is None else request)

    def as_of(self, moment: datetime | float | str) -> Connection:
        """Return a connection to the same tables as they were at a moment, for reading alone.

        The moment is a `datetime` with a zone, epoch seconds or ISO 8601 text (without a zone: UTC). It goes as
        far back as point-in-time recovery of the table read does. Closing it leaves this one open.
        """
        if self._closed:
            raise ConnectionClosed(self.target)
        if not isinstance(self.backend, Remembering):
            raise PastUnavailable(self.target)
        at_us = instant_of(moment)
        return Connection(
            self.backend.as_of(at_us), f"{self.target} as of {instant_text(at_us)}", self.context
        )

    def history(self, table: str, key: Mapping[str, Any]) -> Iterator[ItemVersion]:
        """Yield what an item was, from the beginning of what its table keeps of the past to now.

        The key is DynamoDB JSON. The first version tells what stood at that beginning, the last what stands.
        """
        if self._closed:
            raise ConnectionClosed(self.target)
        return item_versions(self.backend, table, key)

    def close(self) -> None:
        """Let the backend go; a second time does nothing."""
        if not self._closed:
            self._closed = True
            self.backend.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Connection to {self.target}{', closed' if self._closed else ''}>"


class AsyncConnection(AsyncDb):
    """A handle on DynamoDB, wherever it is, for a program on an event loop; closing it closes the backend."""

    def __init__(
        self, backend: AsyncBackend, target: str = "a backend", context: Context | None = None
    ) -> None:
        self.backend = backend
        self.target = target
        self._closed = False
        self.context = context or Context()
        self._perform = AsyncDriver(backend, self.context.retry_policy).perform

    async def run(self, program: Program[R]) -> R:
        """Return the result of a client program, for code built on the client."""
        if self._closed:
            raise ConnectionClosed(self.target)
        return await run_program_async(program, self._perform)

    async def call(self, operation: str, request: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the response to an operation, both in DynamoDB JSON; raise the fault that AWS answers."""
        if self._closed:
            raise ConnectionClosed(self.target)
        return await self.backend.call(operation, {} if request is None else request)

    async def as_of(self, moment: datetime | float | str) -> AsyncConnection:
        """Return a connection to the same tables as they were at a moment, as `Connection.as_of` does."""
        if self._closed:
            raise ConnectionClosed(self.target)
        if not isinstance(self.backend, AsyncRemembering):
            raise PastUnavailable(self.target)
        at_us = instant_of(moment)
        return AsyncConnection(
            await self.backend.as_of(at_us), f"{self.target} as of {instant_text(at_us)}", self.context
        )

    def history(self, table: str, key: Mapping[str, Any]) -> AsyncIterator[ItemVersion]:
        """Yield what an item was, as `Connection.history` does."""
        if self._closed:
            raise ConnectionClosed(self.target)
        return async_item_versions(self.backend, table, key)

    async def close(self) -> None:
        """Let the backend go; a second time does nothing."""
        if not self._closed:
            self._closed = True
            await self.backend.close()

    async def __aenter__(self) -> AsyncConnection:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncConnection to {self.target}{', closed' if self._closed else ''}>"
