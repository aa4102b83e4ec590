"""Loop transport: a pool of connections to one endpoint, shared by the tasks of an event loop.

The rules are those of `sockets`: one request at a time on a connection, a check before it is used again, and nothing is sent
twice that may have been executed. A call that is cancelled or times out closes its connection, because the rest of its reply
would be taken for the reply to the next request. The number of connections is limited; further calls wait in a queue.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import cast

from tavola.backends.configuration import CONNECT_TIMEOUT_S, ServiceEndpoint
from tavola.backends.errors import EndpointUnreachable
from tavola.backends.http_parser import HttpReply, ReplyReader, connection_ended, timed_out
from tavola.backends.sockets import (
    IDLE_S_MAX,
    Poller,
    ReusedConnectionLost,
    connection_error,
    make_poller,
)

CONNECTIONS_MAX = 64


class LoopTransport:
    """Sends requests to an endpoint over pooled connections, as `Transport` does, without blocking the loop.

    It belongs to the running loop. If it is used from another one, as by a second `asyncio.run`, it starts over there.
    """

    def __init__(
        self, endpoint: ServiceEndpoint, *, timeout_s: float, connections_max: int = CONNECTIONS_MAX
    ) -> None:
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._connections_max = connections_max
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: list[_LoopConnection] = []  # the last used comes first
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False

    async def send(self, message: bytes, *, repeatable: bool) -> HttpReply:
        """Send a request and return the reply."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._start(loop)
        if self._busy >= self._connections_max:
            await self._wait_for_slot(loop)
        else:
            self._busy += 1
        try:
            connection = self._take_idle()
            if connection is not None:
                try:
                    return await self._exchange(connection, message)
                except ReusedConnectionLost as lost:
                    if lost.sent and not repeatable:
                        raise connection_ended(
                            self._endpoint.address.url, has_bytes=False
                        ) from lost.__cause__
            return await self._exchange(await self._connect(loop), message)
        finally:
            self._release_slot(loop)

    async def close(self) -> None:
        """Close the idle connections; those in use are closed after their reply."""
        self._closed = True
        connections, self._idle = self._idle, []
        for connection in connections:
            connection.abort()
        if self._loop is asyncio.get_running_loop():
            await asyncio.gather(*(connection.gone for connection in connections))

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        for connection in self._idle:
            connection.abort()
        self._loop, self._idle, self._busy, self._waiting = loop, [], 0, deque()

    async def _wait_for_slot(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait until another call passes on its slot."""
        slot: asyncio.Future[None] = loop.create_future()
        self._waiting.append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if not slot.cancelled():  # the slot was assigned already: pass it on
                self._release_slot(loop)
            raise  # a cancelled future is skipped by `_release_slot`

    def _release_slot(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop is not self._loop:
            return
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._busy -= 1

    def _take_idle(self) -> _LoopConnection | None:
        """Return an idle connection that is still open, if there is one."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open():
                return connection
            connection.abort()
        return None

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> _LoopConnection:
        address = self._endpoint.address
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                _, connection = await loop.create_connection(
                    lambda: _LoopConnection(loop, address.url, self._timeout_s),
                    address.host,
                    address.port,
                    ssl=self._endpoint.tls,
                    server_hostname=address.host if self._endpoint.tls is not None else None,
                )
        except (OSError, UnicodeError) as error:
            raise connection_error(address, error) from error
        return connection

    async def _exchange(self, connection: _LoopConnection, message: bytes) -> HttpReply:
        try:
            reply = await connection.exchange(message)
        except BaseException:  # part of a reply may be left in it
            connection.abort()
            raise
        if connection.reusable and not self._closed and connection.loop is self._loop:
            self._idle.append(connection)
        else:
            connection.abort()
        return reply


class _LoopConnection(asyncio.Protocol):
    """One connection."""

    __slots__ = (
        "_idle_since_s",
        "_poller",
        "_reader",
        "_timeout_s",
        "_transport",
        "_url",
        "_used",
        "_waiter",
        "gone",
        "loop",
    )

    _transport: asyncio.Transport
    _poller: Poller

    def __init__(self, loop: asyncio.AbstractEventLoop, url: str, timeout_s: float) -> None:
        self.loop = loop
        self._url = url
        self._timeout_s = timeout_s
        self._reader = ReplyReader()
        self._waiter: asyncio.Future[HttpReply] | None = None
        self._used = False
        self._idle_since_s = 0.0
        self.gone: asyncio.Future[None] = loop.create_future()

    @property
    def reusable(self) -> bool:
        """Whether it can be used again after the last reply."""
        transport = self._transport  # a reply may arrive before the request is sent completely
        return self._reader.reusable and not transport.is_closing() and not transport.get_write_buffer_size()

    def is_open(self) -> bool:
        """Return whether it is still open; also checks for an end that the loop has not read yet."""
        return (
            not self._transport.is_closing()
            and self.loop.time() - self._idle_since_s < IDLE_S_MAX
            and not self._poller.poll(0)
        )

    async def exchange(self, message: bytes) -> HttpReply:
        """Send a request and return its reply."""
        waiter: asyncio.Future[HttpReply] = self.loop.create_future()
        self._waiter = waiter
        timeout = self.loop.call_later(self._timeout_s, self._time_out)
        try:
            self._transport.write(message)
            if self._transport.is_closing():  # the request could not be written
                raise self._end_error(None, sent=False)
            reply = await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled():
                waiter.exception()  # marks the exception as retrieved
            raise
        finally:
            timeout.cancel()
            self._waiter = None
        self._used = True
        self._idle_since_s = self.loop.time()
        return reply

    def abort(self) -> None:
        """Close it at once."""
        if not self.loop.is_closed():
            self._transport.abort()

    def _time_out(self) -> None:
        self._fail(timed_out(self._url, self._timeout_s))

    def _end_error(self, error: Exception | None, *, sent: bool) -> Exception:
        """Return the error of a call whose connection ended."""
        if self._used and not self._reader.has_bytes:
            return ReusedConnectionLost(sent)
        if error is not None:
            return EndpointUnreachable(self._url, str(error), sent=sent)
        return connection_ended(self._url, has_bytes=self._reader.has_bytes, sent=sent)

    def _fail(self, error: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    # Called by the loop:

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is not a subclass
        self._poller = make_poller(transport.get_extra_info("socket").fileno())

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; unexpected ones end the connection."""
        waiter = self._waiter
        if waiter is None or waiter.done():
            self._transport.abort()
            return
        try:
            if self._reader.feed(self._url, data):
                waiter.set_result(self._reader.take())
        except Exception as error:  # noqa: BLE001 - any error belongs to the waiting call
            waiter.set_exception(error)

    def eof_received(self) -> None:
        """Complete a reply that ends with the connection; the loop closes its side too."""
        waiter = self._waiter
        if waiter is not None and not waiter.done() and self._reader.end():
            waiter.set_result(self._reader.take())

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the waiting call."""
        self._fail(self._end_error(exc, sent=True))
        if not self.gone.done():
            self.gone.set_result(None)
