"""HttpBackend: a DynamoDB endpoint over HTTP, for programs that block.

Bodies are sent and received as JSON over pooled connections, and signed here. A request is not repeated because of its
response: that is the client's decision (`client.retries`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

from tavola.backends.configuration import READ_TIMEOUT_S, Configuration, LocalConfiguration, is_local
from tavola.backends.http_parser import Transport
from tavola.backends.mock_state import current_mock
from tavola.backends.remote import OperationRoute, Remote
from tavola.backends.responses import parse_response
from tavola.backends.sockets import SocketTransport
from tavola.client.backend import AsOfUnsupported, encode_request
from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.errors import TavolaError
from tavola.protocol.faults import Fault, UnknownOperationFault
from tavola.protocol.operations import Operation

__all__ = ["CONCURRENT_CALLS_MAX", "HttpBackend", "LocalConfiguration", "is_local"]

CONCURRENT_CALLS_MAX = 8
"""Calls of one `call_all` that are in flight at once."""


class HttpBackend:
    """Calls an endpoint; threads may share it."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        timeout_s: float = READ_TIMEOUT_S,
        as_of_us: int | None = None,
        concurrent_calls_max: int = CONCURRENT_CALLS_MAX,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Create a backend; `as_of_us` reads the tables of a Tavola server as they were at that time."""
        self._remote: Remote[Transport] = Remote(
            configuration, timeout_s=timeout_s, as_of_us=as_of_us, clock=clock
        )
        self._key = configuration.key
        self._concurrent_calls_max = concurrent_calls_max
        # With the process id, because a fork does not copy threads.
        self._workers: tuple[int, ThreadPoolExecutor] | None = None
        self._lock = Lock()

    @property
    def region(self) -> str:
        """The region of the endpoint."""
        return self._remote.configuration.region

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the endpoint's response; raise its fault, or an error if there is no response."""
        body = encode_request(operation, request)
        mock = current_mock()
        if mock is not None:
            return self._remote.call_mock(mock, operation, body)
        route = self._remote.routes.get(operation) or self._route(self._remote.find_operation(operation))
        message = route.signer.sign(self._key(), route.target, body)
        status, response, checksum = route.transport.send(message, repeatable=route.repeatable)
        return parse_response(route.url, status, response, checksum)

    def call_all(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any] | TavolaError]:
        """Return each call's response or error, in order; several are in flight at once, on threads of this backend."""
        if len(calls) < 2:
            return [self._response_or_error(operation, request) for operation, request in calls]
        workers = self._thread_pool()
        futures = [
            workers.submit(self._response_or_error, operation, request) for operation, request in calls
        ]
        return [future.result() for future in futures]

    def as_of(self, at_us: int) -> HttpBackend:
        """Return a read-only backend of the same tables as they were at a time.

        Only a Tavola server supports this. Another server would return current items, so it is probed first with an
        operation that only Tavola has.
        """
        endpoint = self._remote.check_as_of_support()
        try:
            self.call("ListItemVersions", {})
        except UnknownOperationFault as error:
            raise AsOfUnsupported(endpoint) from error
        except Fault:
            pass  # the operation is known; the probe lacks its members
        return HttpBackend(
            self._remote.configuration,
            timeout_s=self._remote.timeout_s,
            as_of_us=at_us,
            concurrent_calls_max=self._concurrent_calls_max,
            clock=self._remote.clock,
        )

    def close(self) -> None:
        """Close connections and threads."""
        with self._lock:
            workers, self._workers = self._workers, None
            transports = [transport for _, _, transport in self._remote.services.values()]
            self._remote.services.clear()
            self._remote.routes.clear()
        if workers is not None and workers[0] == os.getpid():
            workers[1].shutdown()
        for transport in transports:
            transport.close()

    def _response_or_error(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any] | TavolaError:
        try:
            return self.call(operation, request)
        except TavolaError as error:
            return error

    def _route(self, operation: Operation) -> OperationRoute[Transport]:
        """Return the route of an operation; its service is resolved once."""
        remote = self._remote
        with self._lock:
            route = remote.route(operation)
            if route is None:
                endpoint = remote.configuration.resolve(operation.service)
                transport: Transport = (
                    SocketTransport(endpoint, timeout_s=remote.timeout_s)
                    if endpoint.forward is None
                    else endpoint.forward(remote.timeout_s)
                )
                address = endpoint.address
                remote.services[operation.service] = (address.url, remote.signer(address), transport)
                route = remote.route(operation)
        assert route is not None
        return route

    def _thread_pool(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._workers is None or self._workers[0] != os.getpid():
                pool = ThreadPoolExecutor(self._concurrent_calls_max, thread_name_prefix="tavola-call")
                self._workers = (os.getpid(), pool)
            return self._workers[1]
