"""Loops: connections to one endpoint that are kept and used again by the tasks of an event loop.

The rules are those of `sockets`: one request at a time on a connection, a look before it is used again, nothing sent
twice that may have been carried out. A call that is cancelled or late closes its connection, because what is left of
the answer would be read as the answer to another. At most so many connections are open; who comes then waits its turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import cast

from tavola.backends.configuration import CONNECT_TIMEOUT_S, Way
from tavola.backends.errors import EndpointUnreachable
from tavola.backends.replies import Reply, ReplyReader, too_late, unanswered
from tavola.backends.sockets import IDLE_S_MAX, Quiet, refused, watching

CONNECTIONS_MAX = 64


class _Lost(Exception):
    """A connection that was used before ended, and no byte of the answer had come."""

    def __init__(self, sent: bool) -> None:
        self.sent = sent


class LoopTransport:
    """Brings requests to an endpoint over kept connections, as `Transport` does, without holding up the loop.

    It belongs to the loop that asks. Asked from another one, as by a second `asyncio.run`, it begins anew there.
    """

    def __init__(self, way: Way, *, timeout_s: float, connections_max: int = CONNECTIONS_MAX) -> None:
        self._way = way
        self._timeout_s = timeout_s
        self._connections_max = connections_max
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: list[_Line] = []  # the last used comes first
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False

    async def ask(self, message: bytes, *, repeatable: bool) -> Reply:
        """Return the reply to a request."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._begin(loop)
        if self._busy >= self._connections_max:
            await self._turn(loop)
        else:
            self._busy += 1
        try:
            line = self._kept()
            if line is not None:
                try:
                    return await self._exchange(line, message)
                except _Lost as lost:
                    if lost.sent and not repeatable:
                        raise unanswered(self._way.address.url, begun=False) from lost.__cause__
            return await self._exchange(await self._connected(loop), message)
        finally:
            self._make_way(loop)

    async def close(self) -> None:
        """Close the idle connections; those in use close when they are answered."""
        self._closed = True
        lines, self._idle = self._idle, []
        for line in lines:
            line.abort()
        if self._loop is asyncio.get_running_loop():
            await asyncio.gather(*(line.gone for line in lines))

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        for line in self._idle:
            line.abort()
        self._loop, self._idle, self._busy, self._waiting = loop, [], 0, deque()

    async def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait until a call that is over leaves its place to this one."""
        mine: asyncio.Future[None] = loop.create_future()
        self._waiting.append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if not mine.cancelled():  # the place had been given: it goes on to the next
                self._make_way(loop)
            raise  # otherwise it is passed over when its turn comes

    def _make_way(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop is not self._loop:
            return
        while self._waiting:
            next_one = self._waiting.popleft()
            if not next_one.done():
                next_one.set_result(None)
                return
        self._busy -= 1

    def _kept(self) -> _Line | None:
        """Return a connection that was used before and is open still."""
        while self._idle:
            line = self._idle.pop()
            if line.usable():
                return line
            line.abort()
        return None

    async def _connected(self, loop: asyncio.AbstractEventLoop) -> _Line:
        address = self._way.address
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                _, line = await loop.create_connection(
                    lambda: _Line(loop, address.url, self._timeout_s),
                    address.host,
                    address.port,
                    ssl=self._way.trust,
                    server_hostname=address.host if self._way.trust is not None else None,
                )
        except (OSError, UnicodeError) as error:
            raise refused(address, error) from error
        return line

    async def _exchange(self, line: _Line, message: bytes) -> Reply:
        try:
            reply = await line.exchange(message)
        except BaseException:  # cancelled, late or spoilt: half an answer may be left in it
            line.abort()
            raise
        if line.reusable and not self._closed and line.loop is self._loop:
            self._idle.append(line)
        else:
            line.abort()
        return reply


class _Line(asyncio.Protocol):
    """One connection."""

    __slots__ = (
        "_idle_since_s",
        "_quiet",
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
    _quiet: Quiet

    def __init__(self, loop: asyncio.AbstractEventLoop, url: str, timeout_s: float) -> None:
        self.loop = loop
        self._url = url
        self._timeout_s = timeout_s
        self._reader = ReplyReader()
        self._waiter: asyncio.Future[Reply] | None = None
        self._used = False
        self._idle_since_s = 0.0
        self.gone: asyncio.Future[None] = loop.create_future()

    @property
    def reusable(self) -> bool:
        """Whether it can be asked again after what came last."""
        transport = self._transport  # an answer may come before all of the request is sent
        return self._reader.reusable and not transport.is_closing() and not transport.get_write_buffer_size()

    def usable(self) -> bool:
        """Tell whether it is open still; the loop may not have got to reading what says that it is not."""
        return (
            not self._transport.is_closing()
            and self.loop.time() - self._idle_since_s < IDLE_S_MAX
            and not self._quiet.poll(0)
        )

    async def exchange(self, message: bytes) -> Reply:
        """Send a request and return its reply."""
        waiter: asyncio.Future[Reply] = self.loop.create_future()
        self._waiter = waiter
        late = self.loop.call_later(self._timeout_s, self._late)
        try:
            self._transport.write(message)
            if self._transport.is_closing():  # it could not even be written
                raise self._ended(None, sent=False)
            reply = await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled():
                waiter.exception()  # it is known, or nobody wants to know it any more
            raise
        finally:
            late.cancel()
            self._waiter = None
        self._used = True
        self._idle_since_s = self.loop.time()
        return reply

    def abort(self) -> None:
        """Close it at once."""
        if not self.loop.is_closed():
            self._transport.abort()

    def _late(self) -> None:
        self._fail(too_late(self._url, self._timeout_s))

    def _ended(self, error: Exception | None, *, sent: bool) -> Exception:
        """Return what a call is told whose connection ended."""
        if self._used and not self._reader.begun:
            return _Lost(sent)
        if error is not None:
            return EndpointUnreachable(self._url, str(error), sent=sent)
        return unanswered(self._url, begun=self._reader.begun, sent=sent)

    def _fail(self, error: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self._quiet = watching(transport.get_extra_info("socket").fileno())

    def data_received(self, data: bytes) -> None:
        """Read on in the answer; what was not asked for ends the connection."""
        waiter = self._waiter
        if waiter is None or waiter.done():
            self._transport.abort()
            return
        try:
            if self._reader.feed(self._url, data):
                waiter.set_result(self._reader.take())
        except Exception as error:  # noqa: BLE001 - it belongs to the call that waits, whatever it is
            waiter.set_exception(error)

    def eof_received(self) -> None:
        """Take what the end makes whole; the loop closes its side too."""
        waiter = self._waiter
        if waiter is not None and not waiter.done() and self._reader.end():
            waiter.set_result(self._reader.take())

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the call that waits."""
        self._fail(self._ended(exc, sent=True))
        if not self.gone.done():
            self.gone.set_result(None)
