"""Commits: writes that arrive together commit together, and only then are they answered.

All writes that the loop finds ready in one turn share a transaction of the engine, and with it one sync
of the disk. The answers wait for it: those of writes, and those of reads and refusals that came after a
write in the same turn, since they may tell of it. So no answer reveals what could still be lost, and the
answers on one connection keep the order of its requests.
"""

from __future__ import annotations

import logging
import re
from asyncio import AbstractEventLoop
from typing import Protocol

from tavola.protocol.faults import InternalServerFault
from tavola.server.access_log import AccessLog
from tavola.server.port import Served
from tavola.server.wire import CONTINUE, JSON, Payload, Wire

_log = logging.getLogger("tavola.server")

_REQUEST_ID = re.compile(rb"\r\nx-amzn-RequestId: (\w+)")


class Client(Protocol):
    """Somebody who waits for an answer."""

    def send(self, payload: Payload, close: bool) -> None:
        """Send an answer, and end the connection if it is the last one."""
        ...


class Commits:
    """The open group of writes, and the answers that wait for it."""

    __slots__ = ("_engine", "_held", "_log", "_loop", "_open", "_wire", "delivered")

    def __init__(
        self, engine: Served, wire: Wire, loop: AbstractEventLoop, log: AccessLog | None = None
    ) -> None:
        self._engine = engine
        self._wire = wire
        self._loop = loop
        self._log = log
        self._open = False
        self.delivered = 0  # answers so far, for whoever wants to know whether anybody asks
        self._held: list[tuple[Client, Payload, bool]] = []

    def begin(self) -> None:
        """Open a group, unless one is open; it ends when every socket that is ready has been read."""
        if not self._open:
            self._open = True
            self._engine.hold()
            self._loop.call_soon(self.finish)

    @property
    def open(self) -> bool:
        """Whether a group is open, so that what it wrote may still be lost."""
        return self._open

    def deliver(self, client: Client, payload: Payload, close: bool) -> None:
        """Send an answer now, or after the commit if something is not yet durable."""
        self.delivered += 1
        if self._engine.dirty:
            self.begin()  # a no-op but for what was written outside a request
            self._held.append((client, payload, close))
        else:
            client.send(payload, close)

    def finish(self) -> None:
        """Commit the group and send what waits for it; if that fails, all of them failed."""
        if not self._open:
            return
        self._open = False
        held, self._held = self._held, []
        try:
            self._engine.commit()
        except Exception:  # noqa: BLE001 - whatever it was, nobody may be told that the write was kept
            _log.exception("The commit of %d answers failed; each is answered with an error.", len(held))
            if self._log is not None:
                self._log.failed({_request_id(payload) for _, payload, _ in held})
            held = [self._failed(*entry) for entry in held]
        for client, payload, close in held:
            client.send(payload, close)

    def _failed(self, client: Client, payload: Payload, close: bool) -> tuple[Client, Payload, bool]:
        if not payload or payload is CONTINUE:  # tells nothing of the engine
            return client, payload, close
        fault = InternalServerFault()
        request_id = _request_id(payload) or None
        return client, self._wire.answer(fault.status, JSON, fault.body(), close, request_id), close


def _request_id(payload: Payload) -> bytes:
    """Return the id that an answer carries; nothing if it carries none."""
    found = _REQUEST_ID.search(payload if isinstance(payload, bytes) else payload[0])
    return b"" if found is None else found[1]
