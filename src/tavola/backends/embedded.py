"""EmbeddedBackend: an engine in this process, for one account and region, blocking or for an event loop.

No response reveals a write that could still be lost. An engine may be collecting writes of a server on the same loop in an open
commit group; a call made beside that server commits the group first, or waits until it is committed.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from itertools import islice
from types import coroutine
from typing import Any, Protocol

from tavola.client.backend import decode_response, encode_request
from tavola.clock import monotonic
from tavola.engine import RequestContext, StoreError
from tavola.errors import TavolaError
from tavola.protocol.arns import DEFAULT_SCOPE, Scope
from tavola.protocol.faults import InternalServerFault

TURN_S = 0.002
"""The loop gets a turn after this time, so that a task that only makes calls does not starve the others."""


class EmbeddedEngine(Protocol):
    """The methods of an engine that its backends use; a caller inside a strict server has them too."""

    @property
    def closed(self) -> bool:
        """Whether the engine was closed."""
        ...

    @property
    def syncs(self) -> bool:
        """Whether a commit waits for the disk."""
        ...

    @property
    def dirty(self) -> bool:
        """Whether some writes are not durable yet."""
        ...

    def execute(
        self,
        operation: str,
        body: bytes,
        scope: Scope = ...,
        context: RequestContext | None = None,
        *,
        participant: object = None,
    ) -> bytes:
        """Return the response to a request, or raise a fault."""
        ...

    def commit(self, participant: object) -> None:
        """Commit the group of a participant."""
        ...

    def commit_pending(self) -> None:
        """Commit the collected writes now."""
        ...

    def close(self) -> None:
        """Close the engine."""
        ...


class EmbeddedBackend:
    """Calls an engine; closing it closes the engine if it is `owned`."""

    def __init__(
        self,
        engine: EmbeddedEngine,
        scope: Scope = DEFAULT_SCOPE,
        *,
        owned: bool = True,
        as_of_us: int | None = None,
    ) -> None:
        """Create a backend for a scope; `as_of_us` (epoch microseconds) reads the tables as they were then."""
        self.engine = engine
        self.scope = scope
        self._owned = owned
        self._request_context = None if as_of_us is None else RequestContext(as_of_us=as_of_us)

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the engine's response; raise the fault that AWS would return."""
        try:
            return self.execute(operation, request)
        finally:
            if self.engine.dirty:  # an open commit group may contain this write
                self.engine.commit_pending()

    def execute(
        self, operation: str, request: Mapping[str, Any], participant: object = None
    ) -> dict[str, Any]:
        """Return the response as `call` does; the caller makes it durable, as this participant of the commit group."""
        body = encode_request(operation, request)
        response = self.engine.execute(
            operation, body, self.scope, self._request_context, participant=participant
        )
        return decode_response(response)

    def call_all(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any] | TavolaError]:
        """Return each call's response or error, in order, one after the other."""
        return [_response_or_error(self, operation, request, None) for operation, request in calls]

    def as_of(self, at_us: int) -> EmbeddedBackend:
        """Return a read-only backend of the same tables as they were at a time."""
        return EmbeddedBackend(self.engine, self.scope, owned=False, as_of_us=at_us)

    def close(self) -> None:
        """Close the engine if this backend owns it."""
        if self._owned:
            self.engine.close()


class AsyncEmbeddedBackend:
    """Calls an engine on the event loop itself: a call takes microseconds, less than a thread would cost.

    With a durable file, the writes of all tasks that were ready in one turn of the loop share one fsync.
    """

    def __init__(
        self,
        engine: EmbeddedEngine,
        scope: Scope = DEFAULT_SCOPE,
        *,
        owned: bool = True,
        as_of_us: int | None = None,
    ) -> None:
        """Create a backend for a scope; `as_of_us` (epoch microseconds) reads the tables as they were then."""
        self.backend = EmbeddedBackend(engine, scope, owned=owned, as_of_us=as_of_us)
        self._group = _SharedCommit(engine) if engine.syncs else None
        self._last_turn_s = monotonic()  # when the loop last had a turn

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the engine's response; raise the fault that AWS would return."""
        if self._turn_is_due():
            await self._yield_to_loop()
        group = self._group
        if group is None:
            return self.backend.call(operation, request)
        participant = object()
        try:
            return self.backend.execute(operation, request, participant)
        finally:
            if group.is_pending:
                await group.wait_durable(participant)

    async def call_all(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> list[dict[str, Any] | TavolaError]:
        """Return each call's response or error, in order, one after another."""
        results: list[dict[str, Any] | TavolaError] = []
        while len(results) < len(calls):
            if self._turn_is_due():
                await self._yield_to_loop()
            results += await self._call_until_turn(calls, len(results))
        return results

    async def _call_until_turn(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]], start: int
    ) -> list[dict[str, Any] | TavolaError]:
        """Return the results of calls from `start` on, until the loop is due for a turn."""
        group = self._group
        results: list[dict[str, Any] | TavolaError] = []
        participants: list[object] = []  # one for each call
        try:
            for operation, request in islice(calls, start, None):
                participants.append(None if group is None else object())
                results.append(_response_or_error(self.backend, operation, request, participants[-1]))
                if self._turn_is_due():
                    break
        finally:
            if group is not None and group.is_pending:
                for position, synced in enumerate(
                    [group.wait_durable(participant) for participant in participants]
                ):
                    try:
                        await synced
                    except TavolaError as error:
                        results[position] = error
        return results

    def _turn_is_due(self) -> bool:
        return monotonic() - self._last_turn_s > TURN_S

    async def _yield_to_loop(self) -> None:
        """Let other tasks run once."""
        self._last_turn_s = monotonic()
        await _yield_once()
        self._last_turn_s = monotonic()

    async def as_of(self, at_us: int) -> AsyncEmbeddedBackend:
        """Return a read-only backend of the same tables as they were at a time."""
        return AsyncEmbeddedBackend(self.backend.engine, self.backend.scope, owned=False, as_of_us=at_us)

    async def close(self) -> None:
        """Close the engine if this backend owns it."""
        if self._group is not None:
            self._group.finish()
        self.backend.close()


class _SharedCommit:
    """Calls of one connection that wait for their commit.

    The commit is made when all tasks that are ready now have run. Other users of the engine may share the commit group, and
    whichever commits first commits for all.
    """

    def __init__(self, engine: EmbeddedEngine) -> None:
        self._engine = engine
        self._loop: Any = None  # the loop on which `finish` is scheduled, if any
        self._waiters: list[tuple[object, Any]] = []  # a participant, and the future that it waits for

    @property
    def is_pending(self) -> bool:
        """Whether there are writes that are not durable yet."""
        return self._engine.dirty

    def wait_durable(self, participant: object) -> Any:
        """Return a future that ends when the participant's writes are durable, or fails if they were not committed."""
        from asyncio import get_running_loop  # noqa: PLC0415 - loaded already if there is a loop

        loop = get_running_loop()
        if self._loop is not loop:  # the former loop may have ended before it called `finish`
            self._loop = loop
            loop.call_soon(self.finish)
        waiter = loop.create_future()
        self._waiters.append((participant, waiter))
        return waiter

    def finish(self) -> None:
        """Commit, and resume the waiting calls."""
        self._loop = None
        waiters, self._waiters = self._waiters, []
        interrupted: BaseException | None = None
        for participant, waiter in waiters:
            failed: TavolaError | None = None
            try:
                self._engine.commit(participant)
            except StoreError as error:  # retrying on a closed engine is useless
                failed = StoreError(str(error)) if self._engine.closed else InternalServerFault(str(error))
            except BaseException as error:  # noqa: BLE001 - no call may succeed whose write was not committed
                failed = InternalServerFault(str(error))
                interrupted = interrupted or error
            if waiter.done() or waiter.get_loop().is_closed():
                continue
            if failed is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(failed)
        if interrupted is not None and not isinstance(interrupted, Exception):
            raise interrupted


def _response_or_error(
    backend: EmbeddedBackend, operation: str, request: Mapping[str, Any], participant: object
) -> dict[str, Any] | TavolaError:
    try:
        if participant is None:
            return backend.call(operation, request)
        return backend.execute(operation, request, participant)
    except TavolaError as error:
        return error


@coroutine
def _yield_once() -> Generator[None, None, None]:
    """Do what `asyncio.sleep(0)` does, without importing asyncio."""
    yield
