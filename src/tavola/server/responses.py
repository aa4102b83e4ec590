"""ResponseQueue: holds responses back until what they reveal is durable.

All writes that the event loop finds ready in one turn share a transaction of the engine (see
`tavola.engine.commit_group`, which owns its states). The server is one participant of it: it opens the group before the
first write of a turn and commits at the end of the turn. Responses made in between wait here: those of writes, and
those of reads and refusals that follow a write, since they may reveal it. The responses of one connection keep the
order of its requests.
"""

from __future__ import annotations

import logging
import re
from asyncio import AbstractEventLoop
from typing import Protocol

from tavola.protocol.faults import InternalServerFault
from tavola.server.access_log import AccessLog
from tavola.server.served_engine import ServedEngine
from tavola.server.wire import CONTINUE, JSON, Payload, Wire

_log = logging.getLogger("tavola.server")

_REQUEST_ID = re.compile(rb"\r\nx-amzn-RequestId: (\w+)")


class Client(Protocol):
    """A connection that waits for a response."""

    def send(self, payload: Payload, close: bool) -> None:
        """Send a response, and end the connection if it is the last one."""
        ...


class ResponseQueue:
    """The responses that wait for the commit at the end of the loop's turn."""

    __slots__ = ("_engine", "_log", "_loop", "_waiting", "_wire", "group_is_open", "response_count")

    def __init__(
        self, engine: ServedEngine, wire: Wire, loop: AbstractEventLoop, log: AccessLog | None = None
    ) -> None:
        self._engine = engine
        self._wire = wire
        self._loop = loop
        self._log = log
        self._waiting: list[tuple[Client, Payload, bool]] = []
        self.group_is_open = False  # `commit_and_send` is scheduled; until then writes may be lost
        self.response_count = 0  # delivered so far; the listener sees by it whether clients are active

    def open_group(self) -> None:
        """Collect writes until every socket that is ready has been read; does nothing if that is so already."""
        if not self.group_is_open:
            self.group_is_open = True
            self._engine.collect_writes()
            self._loop.call_soon(self.commit_and_send)

    def deliver(self, client: Client, payload: Payload, close: bool) -> None:
        """Send a response now, or after the commit if something is not yet durable."""
        self.response_count += 1
        if self._engine.dirty:
            self.open_group()  # already open, unless the writes came from outside a request
            self._waiting.append((client, payload, close))
        else:
            client.send(payload, close)

    def commit_and_send(self) -> None:
        """Commit the group and send the responses that wait for it; if the commit fails, all become errors."""
        if not self.group_is_open:
            return
        self.group_is_open = False
        waiting, self._waiting = self._waiting, []
        try:
            self._engine.commit()
        except Exception:  # noqa: BLE001 - whatever it was, no client may believe that its write was kept
            _log.exception("The commit of %d answers failed; each is answered with an error.", len(waiting))
            if self._log is not None:
                self._log.failed({_request_id(payload) for _, payload, _ in waiting})
            waiting = [(client, self._error(payload, close), close) for client, payload, close in waiting]
        for client, payload, close in waiting:
            client.send(payload, close)

    def _error(self, payload: Payload, close: bool) -> Payload:
        """Return the error that replaces a response whose writes were rolled back."""
        if not payload or payload is CONTINUE:  # reveals nothing of the engine
            return payload
        fault = InternalServerFault()
        return self._wire.answer(fault.status, JSON, fault.body(), close, _request_id(payload) or None)


def _request_id(payload: Payload) -> bytes:
    """Return the request id in a response's head; empty if it has none."""
    match = _REQUEST_ID.search(payload if isinstance(payload, bytes) else payload[0])
    return b"" if match is None else match[1]
