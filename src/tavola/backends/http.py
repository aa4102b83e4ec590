"""HttpBackend: an endpoint over HTTP, for a program that waits for its answers.

The body goes out and comes back as the JSON it is, over connections that are kept, signed here. Nothing is tried again
for what an answer says: that is for who knows what a repeat means.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

from tavola.backends.answers import read_answer
from tavola.backends.configuration import READ_TIMEOUT_S, Configuration, LocalConfiguration, is_local
from tavola.backends.errors import PastUnavailable
from tavola.backends.remote import Asking, Remote
from tavola.backends.replies import Transport
from tavola.backends.sockets import SocketTransport
from tavola.backends.stages import current_stage
from tavola.client.backend import encode_request
from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.errors import TavolaError
from tavola.protocol.faults import Fault, UnknownOperationFault
from tavola.protocol.operations import Operation

__all__ = ["AT_ONCE_MAX", "HttpBackend", "LocalConfiguration", "is_local"]

AT_ONCE_MAX = 8
"""How many calls of one `call_all` are under way at a time."""


class HttpBackend:
    """Answers from an endpoint; threads may share it."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        timeout_s: float = READ_TIMEOUT_S,
        as_of_us: int | None = None,
        at_once_max: int = AT_ONCE_MAX,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """Ask as configured; with `as_of_us` a server of Tavola's for its tables as they were then."""
        self._remote: Remote[Transport] = Remote(
            configuration, timeout_s=timeout_s, as_of_us=as_of_us, clock=clock
        )
        self._key = configuration.key
        self._at_once_max = at_once_max
        self._workers: tuple[int, ThreadPoolExecutor] | None = (
            None  # of a process: a fork takes no threads along
        )
        self._lock = Lock()

    @property
    def region(self) -> str:
        """The region that is asked."""
        return self._remote.configuration.region

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the endpoint's response; raise its fault, or an error if no answer could be had."""
        body = encode_request(operation, request)
        stage = current_stage()
        if stage is not None:
            return self._remote.staged(stage, operation, body)
        asking = self._remote.askings.get(operation) or self._asking(self._remote.known(operation))
        message = asking.signer.write(self._key(), asking.target, body)
        status, answer, checksum = asking.transport.ask(message, repeatable=asking.repeatable)
        return read_answer(asking.url, status, answer, checksum)

    def call_all(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any] | TavolaError]:
        """Return each call's response or error, in order; several are under way at once, on threads of this backend."""
        if len(calls) < 2:
            return [self._told(operation, request) for operation, request in calls]
        workers = self._hired()
        waiting = [workers.submit(self._told, operation, request) for operation, request in calls]
        return [each.result() for each in waiting]

    def as_of(self, at_us: int) -> HttpBackend:
        """Return a backend of the same tables as they were at a moment, for reading alone.

        Only a server of Tavola's can be asked so. Another would answer with what is there now, so it is found
        out first: no other knows the operation that tells an item's versions.
        """
        endpoint = self._remote.check_past()
        try:
            self.call("ListItemVersions", {})
        except UnknownOperationFault as error:
            raise PastUnavailable(endpoint) from error
        except Fault:
            pass  # it knows the operation, and misses its members
        return HttpBackend(
            self._remote.configuration,
            timeout_s=self._remote.timeout_s,
            as_of_us=at_us,
            at_once_max=self._at_once_max,
            clock=self._remote.clock,
        )

    def close(self) -> None:
        """Let go of the connections and of the threads."""
        with self._lock:
            workers, self._workers = self._workers, None
            transports = [transport for _, _, transport in self._remote.lines.values()]
            self._remote.lines.clear()
            self._remote.askings.clear()
        if workers is not None and workers[0] == os.getpid():
            workers[1].shutdown()
        for transport in transports:
            transport.close()

    def _told(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any] | TavolaError:
        try:
            return self.call(operation, request)
        except TavolaError as error:
            return error

    def _asking(self, operation: Operation) -> Asking[Transport]:
        """Return how an operation is asked; the way is found once for each service."""
        remote = self._remote
        with self._lock:
            asking = remote.asking(operation)
            if asking is None:
                way = remote.configuration.way(operation.service)
                transport: Transport = (
                    SocketTransport(way, timeout_s=remote.timeout_s)
                    if way.forward is None
                    else way.forward(remote.timeout_s)
                )
                remote.lines[operation.service] = (
                    way.address.url,
                    remote.signer(way.address),
                    transport,
                )
                asking = remote.asking(operation)
        assert asking is not None
        return asking

    def _hired(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._workers is None or self._workers[0] != os.getpid():
                made = ThreadPoolExecutor(self._at_once_max, thread_name_prefix="tavola-call")
                self._workers = (os.getpid(), made)
            return self._workers[1]
