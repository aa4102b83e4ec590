"""Own: the studio's own calls, marked, so that whoever watches an engine tells them from the program's.

A page reads what it shows through the same engine that it watches. Counted, that would be a program nobody runs: so each
of these calls is made under a mark, which the watch sees, and leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tavola.backends import PastUnavailable
from tavola.client import AsyncBackend, AsyncGathering, AsyncRemembering
from tavola.connections import AsyncConnection
from tavola.errors import TavolaError

_own: ContextVar[bool] = ContextVar("tavola_studio_own", default=False)
_counted: ContextVar[bool] = ContextVar("tavola_studio_counted", default=False)


def is_own() -> bool:
    """Whether the call that is made here and now is the studio's."""
    return _own.get()


@contextmanager
def counted() -> Iterator[None]:
    """Have the studio's calls counted as a program's: they are made to be seen."""
    before = _counted.set(True)
    try:
        yield
    finally:
        _counted.reset(before)


@contextmanager
def _marked() -> Iterator[None]:
    before = _own.set(not _counted.get())
    try:
        yield
    finally:
        _own.reset(before)


def owned(connection: AsyncConnection) -> AsyncConnection:
    """Return the same connection, whose calls are marked as the studio's."""
    context = connection.context
    return AsyncConnection(_own_backend(connection.backend), connection.target, context)


def _own_backend(backend: AsyncBackend) -> OwnBackend:
    return _OwnGathering(backend) if isinstance(backend, AsyncGathering) else OwnBackend(backend)


class OwnBackend:
    """Passes calls on under the mark."""

    def __init__(self, backend: AsyncBackend) -> None:
        self.backend = backend

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the backend behind answers."""
        with _marked():
            return await self.backend.call(operation, request)

    async def as_of(self, at_us: int) -> AsyncBackend:
        """Return the tables as they were."""
        if not isinstance(self.backend, AsyncRemembering):
            raise PastUnavailable("The endpoint")
        return _own_backend(await self.backend.as_of(at_us))

    async def close(self) -> None:
        """Close the backend behind."""
        await self.backend.close()


class _OwnGathering(OwnBackend):
    """The same of a backend that takes several calls at once."""

    async def call_all(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> list[dict[str, Any] | TavolaError]:
        """Return what the backend behind makes of each call."""
        assert isinstance(self.backend, AsyncGathering), "it was chosen for that"
        with _marked():
            return await self.backend.call_all(calls)
