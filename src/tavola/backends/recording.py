"""RecordingBackend: wraps a backend and records its calls and their consumed capacity.

For tests, and to evaluate an access pattern. All calls are kept until they are cleared, so it is not a log for programs that
run for days.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from tavola.client.backend import (
    AsOfBackend,
    AsOfUnsupported,
    AsyncAsOfBackend,
    AsyncBackend,
    Backend,
    encode_request,
)
from tavola.clock import monotonic
from tavola.errors import TavolaError

_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call with its response, or its fault or error."""

    operation: str
    request: dict[str, Any]  # as it was sent, with bytes as base64 text
    response: dict[str, Any] | None
    error: TavolaError | None
    consumed: tuple[dict[str, Any], ...]  # ConsumedCapacity of each table; empty unless requested
    latency_s: float


class _CallRecorder:
    """Records calls; the base of the blocking and the asynchronous backend."""

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer
        self._calls: list[RecordedCall] = []

    @property
    def calls(self) -> tuple[RecordedCall, ...]:
        """The calls so far, in the order of their responses."""
        return tuple(self._calls)

    def clear(self) -> None:
        """Forget the calls so far."""
        self._calls.clear()

    @contextmanager
    def _record(self, operation: str, request: Mapping[str, Any]) -> Iterator[_PendingCall]:
        """Record a call that is made inside the block, with copies of its request and response."""
        sent = _decode(encode_request(operation, request))
        start_s = self._timer()
        pending = _PendingCall({})
        try:
            yield pending
        except TavolaError as error:
            self._calls.append(RecordedCall(operation, sent, None, error, (), self._timer() - start_s))
            raise
        latency_s = self._timer() - start_s
        response = _decode(msgspec.json.encode(pending.response))
        capacity = response.get("ConsumedCapacity", [])  # a list for batches and transactions
        consumed = (capacity,) if isinstance(capacity, dict) else tuple(capacity)
        self._calls.append(RecordedCall(operation, sent, response, None, consumed, latency_s))


@dataclass(slots=True)
class _PendingCall:
    response: dict[str, Any]


class RecordingBackend(_CallRecorder):
    """Passes calls to another backend and records them."""

    def __init__(self, backend: Backend, *, timer: Callable[[], float] = monotonic) -> None:
        super().__init__(timer)
        self.backend = backend

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response of the recorded backend, or raise its error."""
        with self._record(operation, request) as pending:
            pending.response = self.backend.call(operation, request)
        return pending.response

    def as_of(self, at_us: int) -> Backend:
        """Return the recorded backend as of a time; its calls are not recorded."""
        if not isinstance(self.backend, AsOfBackend):
            raise AsOfUnsupported("The recorded backend")
        return self.backend.as_of(at_us)

    def close(self) -> None:
        """Close the recorded backend; the calls can still be read."""
        self.backend.close()


class AsyncRecordingBackend(_CallRecorder):
    """The same for a backend on an event loop."""

    def __init__(self, backend: AsyncBackend, *, timer: Callable[[], float] = monotonic) -> None:
        super().__init__(timer)
        self.backend = backend

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response of the recorded backend, or raise its error."""
        with self._record(operation, request) as pending:
            pending.response = await self.backend.call(operation, request)
        return pending.response

    async def as_of(self, at_us: int) -> AsyncBackend:
        """Return the recorded backend as of a time; its calls are not recorded."""
        if not isinstance(self.backend, AsyncAsOfBackend):
            raise AsOfUnsupported("The recorded backend")
        return await self.backend.as_of(at_us)

    async def close(self) -> None:
        """Close the recorded backend; the calls can still be read."""
        await self.backend.close()
