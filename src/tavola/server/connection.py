"""Connection: parses the requests of one client and sends the responses in the order of the requests.

Parsing and execution are separate: complete requests wait in a backlog, which is processed a limited number at a time, so
that one client's pipeline does not delay the others. While a client does not read its responses, nothing more is read
from it or executed for it. Deadlines cost nothing per request: a connection only notes when something began, and
`sweep` checks all connections periodically.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import cast

import httptools

from tavola.server.callers import Peer
from tavola.server.dispatch import Dispatch
from tavola.server.responses import CONTINUE, TEXT, Payload, ResponseEncoder, ResponseQueue, payload_size
from tavola.server.safeguards import ServerLimits

# The state of a connection. Plain integers, because they are compared several times per request.
_IDLE, _HEAD, _BODY, _CLOSING = range(4)

_Request = tuple[bytes, bytes, dict[bytes, bytes], bytes, bool]  # method, URL, headers, body, last request
_ReadyResponse = tuple[Payload, bool]  # a finished response, and whether it is the last

_HOP_BY_HOP = frozenset({b"connection", b"upgrade", b"http2-settings"})


@dataclass(slots=True)
class Service:
    """The state that all connections of a server share."""

    loop: asyncio.AbstractEventLoop
    encoder: ResponseEncoder
    dispatch: Dispatch
    responses: ResponseQueue
    limits: ServerLimits
    connections: set[ClientConnection] = field(default_factory=set)
    waiting_bytes: int = 0  # of incomplete bodies, all connections together
    stopping: bool = False

    def make_room(self) -> bool:
        """Return whether a new connection fits; at the limit, close the connection that has been idle longest."""
        if len(self.connections) < self.limits.connections_max:
            return True
        since_s = self.loop.time() - self.limits.idle_evictable_s
        idle = [connection for connection in self.connections if connection.idle_before(since_s)]
        if not idle:
            return False
        min(idle, key=lambda connection: connection.idle_since_s).close_when_idle()
        return True


class ClientConnection(asyncio.Protocol):
    """Speaks HTTP/1.1 and 1.0 with one client."""

    __slots__ = (
        "_backlog",
        "_body",
        "_closing_idle",
        "_deadline_s",
        "_deliver",
        "_dispatch",
        "_fields",
        "_head_bytes",
        "_head_bytes_max",
        "_linger",
        "_parser",
        "_parts",
        "_peer",
        "_reading",
        "_received",
        "_refusal",
        "_request_count",
        "_service",
        "_stage",
        "_swept_request_count",
        "_transport",
        "_upgrading",
        "_url",
        "_write_deadline_s",
        "idle_since_s",
    )

    _transport: asyncio.Transport

    def __init__(self, service: Service) -> None:
        self._service = service
        self._dispatch = service.dispatch.answer  # bound methods, used by every request
        self._deliver = service.responses.deliver
        self._head_bytes_max = service.limits.head_bytes_max
        self._parser = httptools.HttpRequestParser(self)
        self._stage = _IDLE
        self._request_count = 0  # requests begun
        self._url = b""
        self._received: dict[bytes, bytes] = {}  # headers received so far; also trailers, which are ignored
        self._fields: dict[bytes, bytes] = {}  # the headers of the request whose body is being received
        self._parts: list[bytes] = []  # parts of the body from this read
        self._body = bytearray()  # the body from earlier reads
        self._head_bytes = 0  # bytes received of the unfinished request head
        self._upgrading = False
        self._refusal: Payload | None = None  # the response to a request that a parser callback rejected
        self._backlog: deque[_Request | _ReadyResponse] = deque()
        self._reading = True
        self._linger = False
        self._closing_idle = False
        self._peer = Peer()
        self._deadline_s = 0.0  # of the head, body or close in progress; 0: none
        self._write_deadline_s = 0.0  # until when the client may leave responses unread; 0: it reads them
        self._swept_request_count = 0  # `_request_count` at the last sweep
        self.idle_since_s = service.loop.time()

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection, or respond 503 if the limit is reached."""
        self._transport = cast(
            asyncio.Transport, transport
        )  # uvloop's transport is compatible but not a subclass
        self._peer = peer_of(self._transport)
        if self._service.stopping:  # accepted while the server was stopping
            self._stage = _CLOSING
            self._transport.abort()
        elif self._service.make_room():
            self._service.connections.add(self)
        else:
            self._stage = _CLOSING
            self.send(self._error_response(503, "Too many connections; try again later."), True)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the client and its unanswered requests."""
        self._stage = _CLOSING
        self._backlog.clear()
        self._discard_body()
        self._service.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        """Parse the data, process complete requests, and set the deadline for an incomplete one."""
        before = self._stage
        if before == _CLOSING:
            return
        begun = self._request_count
        try:
            if before != _BODY and self._head_bytes + len(data) > self._head_bytes_max:
                self._feed_within_head_limit(memoryview(data), begun + (before == _IDLE))
            else:
                self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as stop:
            self._decline_upgrade(memoryview(data)[stop.args[0] :])
        except httptools.HttpParserError:
            self._reject_malformed()
        backlog = self._backlog
        if len(backlog) == 1 and not self._write_deadline_s:  # the usual case
            self._process(backlog.popleft())
        elif backlog:
            self._process_backlog()
        if self._stage == _HEAD:
            # All of these bytes belong to the head only if no other request preceded it in this read.
            alone = self._request_count == begun + (before == _IDLE)
            self._head_bytes = self._head_bytes + len(data) if alone else 0
            if not self._deadline_s:
                self._deadline_s = self._service.loop.time() + self._service.limits.head_s
        elif self._stage == _BODY:
            self._join_body()
            if len(self._body) > self._body_bytes_max:
                self._respond_last(self._too_large_response())
                self._process_backlog()
            elif self._service.waiting_bytes > self._service.limits.waiting_bytes_max:
                self._respond_last(
                    self._error_response(503, "Too many large requests at once; try again later.")
                )
                self._process_backlog()
            elif not self._deadline_s:
                self._deadline_s = self._service.loop.time() + self._service.limits.body_s

    def eof_received(self) -> bool:
        """Respond to the requests that came before the client closed its side, then close ours."""
        if self._stage == _CLOSING:  # stay open while the last response is pending
            return not self._deadline_s and not self._peer.secure
        if self._stage == _IDLE:
            self._backlog.append((b"", True))
        else:
            self._backlog.append((self._error_response(400, "The request ends before its end."), True))
        self._stage = _CLOSING
        self._deadline_s = 0.0
        self._process_backlog()
        return not self._peer.secure  # TLS has no half-open connection

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read its responses."""
        self._write_deadline_s = self._service.loop.time() + self._service.limits.response_s
        self._set_reading(False)

    def resume_writing(self) -> None:
        """Resume processing."""
        self._write_deadline_s = 0.0
        self._process_backlog()

    # Called by the parser.

    def on_message_begin(self) -> None:
        """Start a request."""
        self._stage = _HEAD
        self._request_count += 1

    def on_url(self, url: bytes) -> None:
        """Append to the URL."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; the last one of a name counts."""
        self._received[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Refuse a body that is declared too large; respond 100 Continue if the client expects it."""
        self._stage = _BODY
        self._deadline_s = 0.0
        self._head_bytes = 0
        fields = self._fields = self._received
        self._received = {}
        length = fields.get(b"content-length")
        if length is not None and len(length) > 4 and int(length.lstrip(b"0") or b"0") > self._body_bytes_max:
            self._refuse_large()
        if b"upgrade" in fields:
            self._upgrading = self._parser.should_upgrade()
        if b"expect" in fields and fields[b"expect"].lower() == b"100-continue":
            self._backlog.append((CONTINUE, False))

    def on_body(self, body: bytes) -> None:
        """Add a part of the body."""
        self._parts.append(body)

    def on_message_complete(self) -> None:
        """Add the complete request to the backlog."""
        if self._upgrading:
            return
        parts = self._parts
        if len(parts) == 1 and not self._body:
            body = parts[0]
        else:
            self._join_body()
            if len(self._body) > self._body_bytes_max:
                self._refuse_large()
            body = bytes(self._body)
            self._discard_body()
        self._parts = []
        parser = self._parser
        last = not parser.should_keep_alive() or self._service.stopping
        self._backlog.append((parser.get_method(), self._url, self._fields, body, last))
        self._stage = _IDLE
        self._deadline_s = 0.0
        self._url = b""
        if self._received:
            self._received = {}

    # Called by the server.

    def send(self, payload: Payload, close: bool) -> None:
        """Send a response, and end the connection if it is the last one."""
        transport = self._transport
        if transport.is_closing():
            return
        if isinstance(payload, bytes):
            transport.write(payload)
        else:
            transport.writelines(payload)
        if close and self._closing_idle and self._peer.secure and not transport.get_write_buffer_size():
            transport.abort()  # a TLS shutdown waits for the peer's, which an idle client does not send
        elif close:
            self._finish()

    def sweep(self, now_s: float) -> None:
        """Close the connection, or refuse the request, if a deadline has passed."""
        if (self._write_deadline_s and now_s >= self._write_deadline_s) or (
            self._stage == _CLOSING and self._deadline_s and now_s >= self._deadline_s
        ):
            self._transport.abort()
        elif self._deadline_s and now_s >= self._deadline_s:
            self._respond_last(self._error_response(408, "The request took too long to arrive."))
            self._process_backlog()
        elif self._request_count != self._swept_request_count or self._stage != _IDLE or self._backlog:
            self._swept_request_count = self._request_count
            self.idle_since_s = now_s
        elif now_s - self.idle_since_s >= self._service.limits.idle_s:
            self.close_when_idle()

    def idle_before(self, since_s: float) -> bool:
        """Return whether the connection has been idle since a time, as of the last sweep."""
        quiet = (
            self._stage == _IDLE and self._request_count == self._swept_request_count and not self._backlog
        )
        return quiet and self.idle_since_s <= since_s

    def close_when_idle(self) -> None:
        """Close an idle connection; one with a request in progress closes after it, see `Service.stopping`."""
        if self._stage == _IDLE:
            self._stage = _CLOSING
            self._closing_idle = True
            self._backlog.append((b"", True))
            self._process_backlog()

    def abort(self) -> None:
        """Close immediately."""
        self._transport.abort()

    # Processing.

    @property
    def _body_bytes_max(self) -> int:
        return self._service.limits.body_bytes_max

    def _process_backlog(self) -> None:
        """Process the backlog until it is empty, the turn's limits are reached or the client stops reading."""
        service = self._service
        backlog = self._backlog
        requests_left = service.limits.turn_requests_max
        bytes_left = service.limits.turn_response_bytes_max
        while backlog and not self._write_deadline_s:
            if requests_left == 0 or bytes_left <= 0:
                service.loop.call_soon(self._process_backlog)
                break
            bytes_left -= self._process(backlog.popleft())
            requests_left -= 1
        self._set_reading(not backlog and not self._write_deadline_s)

    def _process(self, entry: _Request | _ReadyResponse) -> int:
        """Process one entry of the backlog and return the size of the response."""
        if len(entry) == 5:
            payload: Payload = self._dispatch(*entry, self._peer)
            last = entry[4]
        else:
            payload, last = entry
        if last:
            self._stage = _CLOSING
            self._backlog.clear()
        self._deliver(self, payload, last)
        return payload_size(payload)

    def _set_reading(self, wanted: bool) -> None:
        if wanted == self._reading or self._transport.is_closing():
            return
        self._reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _join_body(self) -> None:
        """Join the parts of a body after each read; many tiny chunks would take much memory."""
        before = len(self._body)
        self._body += b"".join(self._parts)
        self._parts = []
        self._service.waiting_bytes += len(self._body) - before

    def _discard_body(self) -> None:
        """Drop the body received so far."""
        self._service.waiting_bytes -= len(self._body)
        self._body = bytearray()
        self._parts = []

    def _feed_within_head_limit(self, data: memoryview, begun: int) -> None:
        """Parse data that may contain a head over the limit: first only as many bytes as a head may have."""
        allowed = self._head_bytes_max - self._head_bytes
        for part in (data[:allowed], data[allowed:]):
            try:
                self._parser.feed_data(part)
            except httptools.HttpParserUpgrade as stop:
                self._decline_upgrade(part[stop.args[0] :])
            if self._stage == _CLOSING:
                return
            if self._stage == _HEAD and self._request_count == begun:
                told = f"The headers are larger than {self._head_bytes_max} bytes."
                self._respond_last(self._error_response(400, told))
                return

    def _decline_upgrade(self, rest: memoryview) -> None:
        """Go on in HTTP/1.1 with a client that offered another protocol, as it must allow.

        The parser stops at such a request without its body. So another parser gets the same head, but for
        the offer, and what followed it.
        """
        if not self._upgrading:  # it was CONNECT, which asks for a tunnel and is in the backlog already
            self._backlog.pop()
            self._reject_malformed()
            return
        kept = [(name, value) for name, value in self._fields.items() if name not in _HOP_BY_HOP]
        if b"close" in self._fields.get(b"connection", b"").lower():
            kept.append((b"connection", b"close"))
        request_line = b"%b %b HTTP/1.1" % (self._parser.get_method(), self._url)
        head = [request_line, *(b"%b: %b" % pair for pair in kept), b"", b""]
        while self._backlog and self._backlog[-1][0] is CONTINUE:  # it is said again
            self._backlog.pop()
        self._parser = httptools.HttpRequestParser(self)
        self._stage = _IDLE
        self._upgrading = False
        self._url = b""
        self._received = {}
        try:
            self._parser.feed_data(b"\r\n".join(head))
            self._parser.feed_data(rest)
        except httptools.HttpParserError:  # a second offer behind the first is no client's habit
            self._reject_malformed()

    def _refuse_large(self) -> None:
        """Stop the parser at a body that is too large."""
        self._refusal = self._too_large_response()
        raise ValueError("the body is too large")

    def _reject_malformed(self) -> None:
        """Refuse what cannot be parsed, or what a callback refused."""
        self._respond_last(self._refusal or self._error_response(400, "The request is not well-formed HTTP."))

    def _respond_last(self, payload: Payload) -> None:
        """Answer this after what was asked before, listen to nothing more, and close without haste."""
        self._backlog.append((payload, True))
        self._stage = _CLOSING
        self._linger = True
        self._deadline_s = 0.0
        self._discard_body()

    def _finish(self) -> None:
        """Close when the last answer is out, or soon after if the client is still sending.

        To close on a client that sends would reset the connection, and with it the answer on its way.
        """
        limits = self._service.limits
        self._stage = _CLOSING
        self._deadline_s = self._service.loop.time() + (
            limits.linger_s if self._linger else limits.response_s
        )
        if self._linger:
            if self._transport.can_write_eof():  # TLS cannot; there the client goes by the answer's headers
                self._transport.write_eof()
            self._set_reading(True)
        else:
            self._transport.close()

    def _too_large_response(self) -> Payload:
        return self._error_response(413, f"The body is larger than {self._body_bytes_max} bytes.")

    def _error_response(self, status: int, sentence: str) -> Payload:
        return self._service.encoder.encode(status, TEXT, f"{sentence}\n".encode(), True)


def peer_of(transport: asyncio.Transport) -> Peer:
    """Return the other end of a connection, as far as the system tells."""
    place = transport.get_extra_info("peername")
    address = place[0] if isinstance(place, tuple) and place else ""
    return Peer(str(address).partition("%")[0], transport.get_extra_info("sslcontext") is not None)
