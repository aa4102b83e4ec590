"""EmbeddedBackend: an engine in this process, as one account in one region sees it; with a shell for event loops.

No answer tells of what could still be lost. An engine may be gathering writes for a server that serves it on the same
loop; whoever asks it beside makes them durable first, or waits with the others until they are.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from itertools import islice
from types import coroutine
from typing import Any

import msgspec

from tavola.client.backend import encode_request
from tavola.clock import monotonic
from tavola.engine import Engine, RequestContext, StoreError
from tavola.errors import TavolaError
from tavola.protocol.accounts import DEFAULT_SCOPE
from tavola.protocol.arns import Scope
from tavola.protocol.faults import InternalServerFault

TURN_S = 0.002
"""After so long the loop gets a turn, so that a task that only asks does not keep out the others."""

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
        self._visit = None if as_of_us is None else RequestContext(as_of_us=as_of_us)

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the engine's response; raise the fault that AWS would answer."""
        try:
            return self.ask(operation, request)
        finally:
            if self.engine.dirty:  # it gathers writes for others, and this may be one of them
                self.engine.commit_pending()

    def ask(self, operation: str, request: Mapping[str, Any], by: object = None) -> dict[str, Any]:
        """Return the response as `call` does, for one who sees to it that it is durable: `by` that name."""
        body = encode_request(operation, request)
        return _decode(self.engine.execute(operation, body, self.scope, self._visit, participant=by))

    def call_all(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any] | TavolaError]:
        """Return each call's response or error, in order: one after another, because the engine does one at a time."""
        return [_answer_or_error(self, operation, request, None) for operation, request in calls]

    def as_of(self, at_us: int) -> EmbeddedBackend:
        """Return a backend of the same tables as they were at a moment, for reading alone."""
        return EmbeddedBackend(self.engine, self.scope, owned=False, as_of_us=at_us)

    def close(self) -> None:
        """Close the engine if it is this backend's own."""
        if self._owned:
            self.engine.close()


class AsyncEmbeddedBackend:
    """Answers from an engine on the event loop itself: a call takes microseconds, and a thread would cost more.

    Of a file that syncs, the writes of all tasks that were ready in one turn of the loop share a sync of the disk.
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
        self._group = _Group(engine) if engine.syncs else None
        self._turned_s = monotonic()  # when the loop had its last turn that we know of

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the engine's response; raise the fault that AWS would answer."""
        if self._overdue():
            await self._turn()
        group = self._group
        if group is None:
            return self.backend.call(operation, request)
        name = object()
        try:
            return self.backend.ask(operation, request, name)
        finally:
            if group.waits():
                await group.durable(name)

    async def call_all(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> list[dict[str, Any] | TavolaError]:
        """Return each call's response or error, in order, one after another."""
        told: list[dict[str, Any] | TavolaError] = []
        while len(told) < len(calls):
            if self._overdue():
                await self._turn()
            told += await self._some(calls, len(told))
        return told

    async def _some(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]], start: int
    ) -> list[dict[str, Any] | TavolaError]:
        """Return what comes of the calls from there on, as far as they get until the loop is due a turn."""
        group = self._group
        told: list[dict[str, Any] | TavolaError] = []
        names: list[object] = []  # one for each call, by which the engine knows it
        try:
            for operation, request in islice(calls, start, None):
                names.append(None if group is None else object())
                told.append(_answer_or_error(self.backend, operation, request, names[-1]))
                if self._overdue():
                    break
        finally:
            if group is not None and group.waits():
                for at, synced in enumerate([group.durable(name) for name in names]):
                    try:
                        await synced
                    except TavolaError as error:
                        told[at] = error
        return told

    def _overdue(self) -> bool:
        return monotonic() - self._turned_s > TURN_S

    async def _turn(self) -> None:
        """Give the loop a turn; tasks that come to it meanwhile have their time too."""
        self._turned_s = monotonic()
        await _yielded()
        self._turned_s = monotonic()

    async def as_of(self, at_us: int) -> AsyncEmbeddedBackend:
        """Return a backend of the same tables as they were at a moment, for reading alone."""
        return AsyncEmbeddedBackend(self.backend.engine, self.backend.scope, owned=False, as_of_us=at_us)

    async def close(self) -> None:
        """Close the engine if it is this backend's own."""
        if self._group is not None:
            self._group.finish()
        self.backend.close()


class _Group:
    """The answers of one connection that wait for their sync.

    It comes when the loop has come to every task that is ready now. Others may gather in the same engine meanwhile,
    and whoever commits first does it for all.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._loop: Any = None  # where `finish` is due; None: nowhere
        self._waiters: list[tuple[object, Any]] = []  # a name, and the future of a task that waits

    def waits(self) -> bool:
        """Whether what was answered just now could still be lost."""
        return self._engine.dirty

    def durable(self, name: object) -> Any:
        """Return the sync of the call by this name, to be waited for; it raises where it failed, and nothing was kept."""
        from asyncio import get_running_loop  # noqa: PLC0415 - who is here has a loop; others need not load it

        loop = get_running_loop()
        if self._loop is not loop:  # a loop that ended before it was done is not waited for
            self._loop = loop
            loop.call_soon(self.finish)
        waiter = loop.create_future()
        self._waiters.append((name, waiter))
        return waiter

    def finish(self) -> None:
        """Make the group durable, and tell those who wait."""
        self._loop = None
        waiters, self._waiters = self._waiters, []
        interrupted: BaseException | None = None
        for name, waiter in waiters:
            failed: TavolaError | None = None
            try:
                self._engine.commit(name)
            except StoreError as error:  # of an engine that was closed, it is of no use to ask again
                failed = StoreError(str(error)) if self._engine.closed else InternalServerFault(str(error))
            except BaseException as error:  # noqa: BLE001 - whatever it was, nobody may be told that it was kept
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


def _answer_or_error(
    backend: EmbeddedBackend, operation: str, request: Mapping[str, Any], by: object
) -> dict[str, Any] | TavolaError:
    try:
        return backend.call(operation, request) if by is None else backend.ask(operation, request, by)
    except TavolaError as error:
        return error


@coroutine
def _yielded() -> Generator[None, None, None]:
    """Give the loop a turn; `asyncio.sleep(0)` is this, and asyncio need not be imported for it."""
    yield
