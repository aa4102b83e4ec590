"""RecordingBackend: any backend, with its calls and their capacity written down.

For tests and for judging an access pattern: what was asked, what came back, what it consumed and how long
it took. Everything is kept until it is cleared, so it is no log for a program that runs for days.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from tavola.backends.errors import PastUnavailable
from tavola.client.backend import AsyncBackend, AsyncRemembering, Backend, Remembering, encode_request
from tavola.clock import monotonic
from tavola.errors import TavolaError

_decode = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call: a response, or the fault or error that came instead."""

    operation: str
    request: dict[str, Any]  # as it went through the port: bytes are base64 text already
    response: dict[str, Any] | None
    error: TavolaError | None
    consumed: tuple[dict[str, Any], ...]  # ConsumedCapacity for each table; empty unless the request asked
    latency_s: float


class RecordingBackend:
    """Passes calls on and keeps a copy of each; what the caller does with its own changes nothing here."""

    def __init__(self, backend: Backend, *, timer: Callable[[], float] = monotonic) -> None:
        self.backend = backend
        self._book = _Book(timer)

    @property
    def calls(self) -> tuple[RecordedCall, ...]:
        """The calls so far, in the order in which they were answered."""
        return tuple(self._book.calls)

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the backend behind answers, or raise what it raises."""
        with self._book.writing(operation, request) as line:
            line.response = self.backend.call(operation, request)
        return line.response

    def as_of(self, at_us: int) -> Backend:
        """Return the backend behind as it was at a moment; what is asked of that is not written down."""
        if not isinstance(self.backend, Remembering):
            raise PastUnavailable("The backend that is recorded")
        return self.backend.as_of(at_us)

    def clear(self) -> None:
        """Forget the calls so far."""
        self._book.calls.clear()

    def close(self) -> None:
        """Close the backend behind; the calls can still be read."""
        self.backend.close()


class AsyncRecordingBackend:
    """The same for a backend on an event loop."""

    def __init__(self, backend: AsyncBackend, *, timer: Callable[[], float] = monotonic) -> None:
        self.backend = backend
        self._book = _Book(timer)

    @property
    def calls(self) -> tuple[RecordedCall, ...]:
        """The calls so far, in the order in which they were answered."""
        return tuple(self._book.calls)

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the backend behind answers, or raise what it raises."""
        with self._book.writing(operation, request) as line:
            line.response = await self.backend.call(operation, request)
        return line.response

    async def as_of(self, at_us: int) -> AsyncBackend:
        """Return the backend behind as it was at a moment; what is asked of that is not written down."""
        if not isinstance(self.backend, AsyncRemembering):
            raise PastUnavailable("The backend that is recorded")
        return await self.backend.as_of(at_us)

    def clear(self) -> None:
        """Forget the calls so far."""
        self._book.calls.clear()

    async def close(self) -> None:
        """Close the backend behind; the calls can still be read."""
        await self.backend.close()


@dataclass(slots=True)
class _Line:
    """A call under way."""

    response: dict[str, Any]


class _Book:
    """Where calls are written down, whichever way they are waited for."""

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer
        self.calls: list[RecordedCall] = []

    @contextmanager
    def writing(self, operation: str, request: Mapping[str, Any]) -> Iterator[_Line]:
        """Write down a call that is made inside, with what came of it."""
        asked = _decode(encode_request(operation, request))
        start_s = self._timer()
        line = _Line({})
        try:
            yield line
        except TavolaError as error:
            latency_s = self._timer() - start_s
            self.calls.append(RecordedCall(operation, asked, None, error, (), latency_s))
            raise
        latency_s = self._timer() - start_s
        told = _decode(msgspec.json.encode(line.response))
        self.calls.append(RecordedCall(operation, asked, told, None, _consumed(told), latency_s))


def _consumed(response: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the capacity of a response: batches and transactions give a list, the others one."""
    told = response.get("ConsumedCapacity", [])
    return (told,) if isinstance(told, dict) else tuple(told)
