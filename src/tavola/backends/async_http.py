"""AsyncHttpBackend: a DynamoDB endpoint over HTTP, for programs on an event loop, asyncio's own or uvloop.

Requests, signatures and responses are those of `http`. What botocore does blocking (finding and refreshing credentials,
resolving the endpoint, sending through a proxy) runs on a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from tavola.backends.configuration import READ_TIMEOUT_S, Configuration, ServiceEndpoint
from tavola.backends.http_parser import HttpReply, Transport
from tavola.backends.loop_transport import CONNECTIONS_MAX, LoopTransport
from tavola.backends.mock_state import current_mock
from tavola.backends.remote import OperationRoute, Remote
from tavola.backends.responses import parse_response
from tavola.backends.signatures import SigningKey
from tavola.client.backend import AsOfUnsupported, encode_request
from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.errors import TavolaError
from tavola.protocol.faults import Fault, UnknownOperationFault
from tavola.protocol.operations import Operation

CONCURRENT_CALLS_MAX = 32
"""Calls of one `call_all` that are in flight at once."""


class AsyncTransport(Protocol):
    """`Transport` for an event loop."""

    async def send(self, message: bytes, *, repeatable: bool) -> HttpReply:
        """Send a request and return the reply."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class AsyncHttpBackend:
    """Calls an endpoint; the tasks of one loop share it."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        timeout_s: float = READ_TIMEOUT_S,
        as_of_us: int | None = None,
        concurrent_calls_max: int = CONCURRENT_CALLS_MAX,
        connections_max: int = CONNECTIONS_MAX,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Create a backend; `as_of_us` reads the tables of a Tavola server as they were at that time."""
        self._remote: Remote[AsyncTransport] = Remote(
            configuration, timeout_s=timeout_s, as_of_us=as_of_us, clock=clock
        )
        self._cached_key = configuration.cached_key
        self._concurrent_calls_max = concurrent_calls_max
        self._connections_max = connections_max
        self._thread_tasks: dict[str, asyncio.Task[Any]] = {}

    @property
    def region(self) -> str:
        """The region of the endpoint."""
        return self._remote.configuration.region

    async def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the endpoint's response; raise its fault, or an error if there is no response."""
        body = encode_request(operation, request)
        mock = current_mock()
        if mock is not None:
            return self._remote.call_mock(mock, operation, body)
        route = self._remote.routes.get(operation) or await self._route(
            self._remote.find_operation(operation)
        )
        key: SigningKey = self._cached_key() or await self._run_on_thread(
            "key", self._remote.configuration.key
        )
        message = route.signer.sign(key, route.target, body)
        status, response, checksum = await route.transport.send(message, repeatable=route.repeatable)
        return parse_response(route.url, status, response, checksum)

    async def call_all(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> list[dict[str, Any] | TavolaError]:
        """Return each call's response or error, in order; several are in flight at once."""
        results: list[dict[str, Any] | TavolaError] = [{}] * len(calls)
        remaining = iter(enumerate(calls))
        workers = min(self._concurrent_calls_max, len(calls))
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._call_remaining(remaining, results))
        return results

    async def as_of(self, at_us: int) -> AsyncHttpBackend:
        """Return a read-only backend of the same tables as they were at a time; see `HttpBackend.as_of`."""
        endpoint = self._remote.check_as_of_support()
        try:
            await self.call("ListItemVersions", {})
        except UnknownOperationFault as error:
            raise AsOfUnsupported(endpoint) from error
        except Fault:
            pass  # the operation is known; the probe lacks its members
        return AsyncHttpBackend(
            self._remote.configuration,
            timeout_s=self._remote.timeout_s,
            as_of_us=at_us,
            concurrent_calls_max=self._concurrent_calls_max,
            connections_max=self._connections_max,
            clock=self._remote.clock,
        )

    async def close(self) -> None:
        """Close the connections."""
        transports = [transport for _, _, transport in self._remote.services.values()]
        self._remote.services.clear()
        self._remote.routes.clear()
        for transport in transports:
            await transport.close()

    async def _call_remaining(
        self,
        remaining: Iterator[tuple[int, tuple[str, Mapping[str, Any]]]],
        results: list[dict[str, Any] | TavolaError],
    ) -> None:
        """Make calls, one after the other, that no other worker has taken."""
        for at, (operation, request) in remaining:
            try:
                results[at] = await self.call(operation, request)
            except TavolaError as error:
                results[at] = error

    async def _route(self, operation: Operation) -> OperationRoute[AsyncTransport]:
        """Return the route of an operation; its service is resolved once, on a thread."""
        remote = self._remote
        route = remote.route(operation)
        if route is None:
            service = operation.service
            endpoint: ServiceEndpoint = await self._run_on_thread(
                f"endpoint of {service}", lambda: remote.configuration.resolve(service)
            )
            if service not in remote.services:  # another task may have been faster
                address = endpoint.address
                transport = self._transport(endpoint)
                remote.services[service] = (address.url, remote.signer(address), transport)
            route = remote.route(operation)
        assert route is not None
        return route

    def _transport(self, endpoint: ServiceEndpoint) -> AsyncTransport:
        timeout_s = self._remote.timeout_s
        if endpoint.forward is not None:
            return _ThreadTransport(endpoint.forward(timeout_s))
        return LoopTransport(endpoint, timeout_s=timeout_s, connections_max=self._connections_max)

    async def _run_on_thread(self, name: str, function: Callable[[], Any]) -> Any:
        """Return the result of a blocking function; concurrent calls for the same name share one run."""
        task = self._thread_tasks.get(name)
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = self._thread_tasks[name] = asyncio.create_task(asyncio.to_thread(function))
        return await asyncio.shield(task)  # cancelling one call does not stop it for the others


class _ThreadTransport:
    """Runs a blocking transport on threads."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(self, message: bytes, *, repeatable: bool) -> HttpReply:
        """Send a request and return the reply."""
        return await asyncio.to_thread(self._transport.send, message, repeatable=repeatable)

    async def close(self) -> None:
        """Close the connections."""
        self._transport.close()
