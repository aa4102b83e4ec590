"""EmbeddedBackend: an engine in this process, as one account in one region sees it; with a shell for event loops."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from types import coroutine
from typing import Any

import msgspec

from tavola.client import encode_request
from tavola.engine import Engine, Visit
from tavola.errors import TavolaError
from tavola.protocol import DEFAULT_SCOPE, Scope

CALLS_A_TURN = 32
"""After so many calls in a row the loop gets a turn, so that a task that only asks does not keep out the others."""

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class EmbeddedBackend:
    """Answers from an engine; closing it closes the engine, unless the engine belongs to somebody else."""

    def __init__(
        self,
        engine: Engine,
        scope: Scope = DEFAULT_SCOPE,
        *,
        owned: bool = True,
        as_of_us: int | None = None,
    ) -> None:
        """Answer for a scope; with `as_of_us`, a moment in microseconds, from the tables as they were then."""
        self.engine = engine
        self.scope = scope
        self._owned = owned
        self._visit = None if as_of_us is None else Visit(as_of_us=as_of_us)

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the engine's response; raise the fault that AWS would answer."""
        body = encode_request(operation, request)
        return _decode(self.engine.execute(operation, body, self.scope, self._visit))

    def call_all(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any] | TavolaError]:
        """Return each call's response or error, in order: one after another, because the engine does one at a time."""
        told: list[dict[str, Any] | TavolaError] = []
        for operation, request in calls:
            try:
                told.append(self.call(operation, request))
            except TavolaError as error:
                told.append(error)
        return told

    def as_of(self, at_us: int) -> EmbeddedBackend:
        """Return a backend of the same tables as they were at a moment, for reading alone."""
        return EmbeddedBackend(self.engine, self.scope, owned=False, as_of_us=at_us)

    def close(self) -> None:
        """Close the engine if it is this backend's own."""
        if self._owned:
            self.engine.close()


class AsyncEmbeddedBackend:
    """Answers from an engine on the event loop itself: a call takes microseconds, and a thread would cost more.

    The exception is a file that syncs each write: then the loop waits for the disk, as the engine does.
    """

    def __init__(
        self,
        engine: Engine,
        scope: Scope = DEFAULT_SCOPE,
        *,
        owned: bool = True,
        as_of_us: int | None = None,
    ) -> None:
        """Answer for a scope; with `as_of_us`, a moment in microseconds, from the tables as they were then."""
        self.backend = EmbeddedBackend(engine, scope, owned=owned, as_of_us=as_of_us)
        self._calls = 0

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the engine's response; raise the fault that AWS would answer."""
        self._calls += 1
        if self._calls % CALLS_A_TURN == 0:
            await _turn()
        return self.backend.call(operation, request)

    async def call_all(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> list[dict[str, Any] | TavolaError]:
        """Return each call's response or error, in order, one after another."""
        told: list[dict[str, Any] | TavolaError] = []
        for operation, request in calls:
            try:
                told.append(await self.call(operation, request))
            except TavolaError as error:
                told.append(error)
        return told

    async def as_of(self, at_us: int) -> AsyncEmbeddedBackend:
        """Return a backend of the same tables as they were at a moment, for reading alone."""
        return AsyncEmbeddedBackend(self.backend.engine, self.backend.scope, owned=False, as_of_us=at_us)

    async def close(self) -> None:
        """Close the engine if it is this backend's own."""
        self.backend.close()


@coroutine
def _turn() -> Generator[None, None, None]:
    """Give the loop a turn; `asyncio.sleep(0)` is this, and asyncio need not be imported for it."""
    yield
