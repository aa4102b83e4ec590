"""Commits: writes that arrive together commit together, and only then are they answered.

All writes that the loop finds ready in one turn share a transaction of the engine, and with it one sync
of the disk. The answers wait for it: those of writes, and those of reads and refusals that came after a
write in the same turn, since they may tell of it. So no answer reveals what could still be lost, and the
answers on one connection keep the order of its requests.
"""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop
from typing import Protocol

from tavola.protocol import InternalServerFault
from tavola.server.port import Served
from tavola.server.wire import CONTINUE, JSON, Payload, Wire

_log = logging.getLogger("tavola.server")


class Client(Protocol):
    """Somebody who waits for an answer."""

    def send(self, payload: Payload, close: bool) -> None:
        """Send an answer, and end the connection if it is the last one."""
        ...


class Commits:
    """The open group of writes, and the answers that wait for it."""

    __slots__ = ("_engine", "_held", "_loop", "_open", "_wire")

    def __init__(self, engine: Served, wire: Wire, loop: AbstractEventLoop) -> None:
        self._engine = engine
        self._wire = wire
        self._loop = loop
        self._open = False
        self._held: list[tuple[Client, Payload, bool]] = []

    def begin(self) -> None:
        """Open a group, unless one is open; it ends when every socket that is ready has been read."""
        if not self._open:
            self._open = True
            self._engine.hold()
            self._loop.call_soon(self.finish)

    def deliver(self, client: Client, payload: Payload, close: bool) -> None:
        """Send an answer now, or after the commit if something is not yet durable."""
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
            held = [self._failed(*entry) for entry in held]
        for client, payload, close in held:
            client.send(payload, close)

    def _failed(self, client: Client, payload: Payload, close: bool) -> tuple[Client, Payload, bool]:
        if not payload or payload is CONTINUE:  # tells nothing of the engine
            return client, payload, close
        return client, self._wire.answer(500, JSON, InternalServerFault().body(), close), close
