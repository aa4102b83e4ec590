"""The observer that the studio sets on an engine, and the mark that excludes the studio's own calls.

`Monitor` passes every call to the request metrics and the heat recorder. Several threads may call the engine, so one lock
guards both; a page takes the same lock while it copies.

A page reads what it shows through the engine it monitors. Those calls would look like traffic, so the studio's connection sets
a context variable around each call and the monitor skips marked calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any

from tavola.backends.errors import PastUnavailable
from tavola.client.backend import AsyncBackend, AsyncGathering, AsyncRemembering
from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.engine import ItemAccess
from tavola.errors import TavolaError
from tavola.handles import AsyncConnection
from tavola.protocol.arns import Scope
from tavola.protocol.faults import Fault
from tavola.studio.monitoring.heat_recorder import HeatRecorder
from tavola.studio.monitoring.request_metrics import RequestMetrics

_own: ContextVar[bool] = ContextVar("tavola_studio_own", default=False)
_counted: ContextVar[bool] = ContextVar("tavola_studio_counted", default=False)


def is_studio_call() -> bool:
    """Whether the call that is made here and now is the studio's."""
    return _own.get()


@contextmanager
def count_own_calls() -> Iterator[None]:
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


def mark_connection(connection: AsyncConnection) -> AsyncConnection:
    """Return the same connection, whose calls are marked as the studio's."""
    context = connection.context
    return AsyncConnection(_mark_backend(connection.backend), connection.target, context)


def _mark_backend(backend: AsyncBackend) -> MarkedBackend:
    return _MarkedBatchBackend(backend) if isinstance(backend, AsyncGathering) else MarkedBackend(backend)


class MarkedBackend:
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
        return _mark_backend(await self.backend.as_of(at_us))

    async def close(self) -> None:
        """Close the backend behind."""
        await self.backend.close()


class _MarkedBatchBackend(MarkedBackend):
    """The same of a backend that takes several calls at once."""

    async def call_all(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> list[dict[str, Any] | TavolaError]:
        """Return what the backend behind makes of each call."""
        assert isinstance(self.backend, AsyncGathering), "it was chosen for that"
        with _marked():
            return await self.backend.call_all(calls)


class Monitor:
    """Keeps what was asked of an engine since it was made; `Engine.observe` takes it."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self.clock = clock
        self.lock = Lock()  # held while a call is noted, and by whoever reads what was noted
        self.began_s = clock.now()
        self.metrics = RequestMetrics(clock)
        self.heat = HeatRecorder(clock)
        self.own_calls = 0  # calls of the studio itself

    def note(
        self,
        operation: str,
        scope: Scope,
        began_s: float,
        took_s: float,
        touches: Sequence[ItemAccess],
        fault: Fault | None,
        body: bytes,
    ) -> None:
        """Take note of a call, unless it is the studio's own."""
        with self.lock:
            if is_studio_call():
                self.own_calls += 1
                return
            self.metrics.note(operation, scope, began_s, took_s, touches, fault, body)
            self.heat.note(operation, scope, began_s, took_s, touches, fault, body)
