"""AsyncHttpBackend: an endpoint over HTTP, for a program on an event loop, asyncio's own or uvloop.

The same requests, signatures and answers as `http`; only the waiting differs. What botocore must do in its own time
(looking for credentials, renewing them, finding the endpoint, going through a proxy) it does on a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from tavola.backends.answers import read_answer
from tavola.backends.configuration import READ_TIMEOUT_S, Configuration, Way
from tavola.backends.errors import PastUnavailable
from tavola.backends.loops import CONNECTIONS_MAX, LoopTransport
from tavola.backends.remote import Asking, Remote
from tavola.backends.replies import Reply, Transport
from tavola.backends.signatures import Key
from tavola.backends.stages import current_stage
from tavola.client.backend import encode_request
from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.errors import TavolaError
from tavola.protocol.faults import Fault, UnknownOperationFault
from tavola.protocol.operations import Operation

AT_ONCE_MAX = 32
"""How many calls of one `call_all` are under way at a time."""


class AsyncTransport(Protocol):
    """`Transport` on a loop."""

    async def ask(self, message: bytes, *, repeatable: bool) -> Reply:
        """Return the reply to a request."""
        ...

    async def close(self) -> None:
        """Let the connections go."""
        ...


class AsyncHttpBackend:
    """Answers from an endpoint; the tasks of one loop share it."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        timeout_s: float = READ_TIMEOUT_S,
        as_of_us: int | None = None,
        at_once_max: int = AT_ONCE_MAX,
        connections_max: int = CONNECTIONS_MAX,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Ask as configured; with `as_of_us` a server of Tavola's for its tables as they were then."""
        self._remote: Remote[AsyncTransport] = Remote(
            configuration, timeout_s=timeout_s, as_of_us=as_of_us, clock=clock
        )
        self._key_at_hand = configuration.key_at_hand
        self._at_once_max = at_once_max
        self._connections_max = connections_max
        self._errands: dict[str, asyncio.Task[Any]] = {}

    @property
    def region(self) -> str:
        """The region that is asked."""
        return self._remote.configuration.region

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the endpoint's response; raise its fault, or an error if no answer could be had."""
        body = encode_request(operation, request)
        stage = current_stage()
        if stage is not None:
            return self._remote.staged(stage, operation, body)
        asking = self._remote.askings.get(operation) or await self._asking(self._remote.known(operation))
        key: Key = self._key_at_hand() or await self._on_a_thread("key", self._remote.configuration.key)
        message = asking.signer.write(key, asking.target, body)
        status, answer, checksum = await asking.transport.ask(message, repeatable=asking.repeatable)
        return read_answer(asking.url, status, answer, checksum)

    async def call_all(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> list[dict[str, Any] | TavolaError]:
        """Return each call's response or error, in order; several are under way at once."""
        told: list[dict[str, Any] | TavolaError] = [{}] * len(calls)
        left = iter(enumerate(calls))
        workers = min(self._at_once_max, len(calls))
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._work(left, told))
        return told

    async def as_of(self, at_us: int) -> AsyncHttpBackend:
        """Return a backend of the same tables as they were at a moment, for reading alone; see `HttpBackend.as_of`."""
        endpoint = self._remote.check_past()
        try:
            await self.call("ListItemVersions", {})
        except UnknownOperationFault as error:
            raise PastUnavailable(endpoint) from error
        except Fault:
            pass  # it knows the operation, and misses its members
        return AsyncHttpBackend(
            self._remote.configuration,
            timeout_s=self._remote.timeout_s,
            as_of_us=at_us,
            at_once_max=self._at_once_max,
            connections_max=self._connections_max,
            clock=self._remote.clock,
        )

    async def close(self) -> None:
        """Let go of the connections."""
        transports = [transport for _, _, transport in self._remote.lines.values()]
        self._remote.lines.clear()
        self._remote.askings.clear()
        for transport in transports:
            await transport.close()

    async def _work(
        self,
        left: Iterator[tuple[int, tuple[str, Mapping[str, Any]]]],
        told: list[dict[str, Any] | TavolaError],
    ) -> None:
        """Make one call after another, of those that nobody has begun."""
        for place, (operation, request) in left:
            try:
                told[place] = await self.call(operation, request)
            except TavolaError as error:
                told[place] = error

    async def _asking(self, operation: Operation) -> Asking[AsyncTransport]:
        """Return how an operation is asked; the way is found once for each service, on a thread."""
        remote = self._remote
        asking = remote.asking(operation)
        if asking is None:
            service = operation.service
            way: Way = await self._on_a_thread(f"way to {service}", lambda: remote.configuration.way(service))
            if service not in remote.lines:  # nobody came before us meanwhile
                remote.lines[service] = (
                    way.address.url,
                    remote.signer(way.address),
                    self._transport(way),
                )
            asking = remote.asking(operation)
        assert asking is not None
        return asking

    def _transport(self, way: Way) -> AsyncTransport:
        if way.forward is not None:
            return _OnThreads(way.forward(self._remote.timeout_s))
        return LoopTransport(way, timeout_s=self._remote.timeout_s, connections_max=self._connections_max)

    async def _on_a_thread(self, name: str, errand: Callable[[], Any]) -> Any:
        """Return what an errand brings that must wait; calls that want the same meanwhile wait for the same."""
        task = self._errands.get(name)
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = self._errands[name] = asyncio.create_task(asyncio.to_thread(errand))
        return await asyncio.shield(task)  # one call that is cancelled stops it for none of the others


class _OnThreads:
    """A transport that waits, made one that does not."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def ask(self, message: bytes, *, repeatable: bool) -> Reply:
        """Return the reply to a request."""
        return await asyncio.to_thread(self._transport.ask, message, repeatable=repeatable)

    async def close(self) -> None:
        """Let the connections go."""
        self._transport.close()
