"""Connection: parses the requests of one client and sends the responses in the order of the requests.

Parsing and execution are separate: complete requests wait in a backlog, which is processed a limited number at a time, so
that one client's pipeline does not delay the others. While a client does not read its responses, nothing more is read
from it or executed for it. Deadlines cost nothing per request: a connection only notes when something began, and
`sweep` checks all connections periodically.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import cast

import httptools

from tavola.clock import monotonic
from tavola.server.callers import Peer, peer_of
from tavola.server.codings import COMPRESSED_BYTES_MIN
from tavola.server.heads import FIRST_COUNTS, HEADERS_MAX, head_problem, repetition_problem, target_problem
from tavola.server.memory import COUNTED_BYTES_MIN
from tavola.server.responses import (
    CONTINUE,
    TEXT,
    Payload,
    Response,
    response_size,
)
from tavola.server.service import Service
from tavola.server.stages import StagedResponse

# The state of a connection. Plain integers, because they are compared several times per request.
_IDLE, _HEAD, _BODY, _CLOSING = range(4)

_Request = tuple[bytes, bytes, dict[bytes, bytes], bytes, bool]  # method, URL, headers, body, last request
_ReadyResponse = tuple[Payload, bool]  # a finished response, and whether it is the last

# What a request in a backlog takes besides its body: its objects, and those of each header.
_ENTRY_BYTES = 512
_HEADER_BYTES = 192

_HOP_BY_HOP = frozenset({b"connection", b"upgrade", b"http2-settings"})


class ClientConnection(asyncio.Protocol):
    """Speaks HTTP/1.1 and 1.0 with one client."""

    __slots__ = (
        "_backlog",
        "_body",
        "_budget",
        "_closing_idle",
        "_computing_bytes",
        "_deadline_s",
        "_deliver",
        "_dispatch",
        "_fields",
        "_head_bytes",
        "_head_bytes_max",
        "_is_computing",
        "_linger",
        "_parser",
        "_parts",
        "_peer",
        "_reading",
        "_received",
        "_refusal",
        "_request_count",
        "_service",
        "_silent_bytes",
        "_stage",
        "_swept_request_count",
        "_transport",
        "_unread_bytes",
        "_upgrading",
        "_url",
        "_write_deadline_s",
        "held_bytes",
        "idle_since_s",
    )

    _transport: asyncio.Transport

    def __init__(self, service: Service) -> None:
        self._service = service
        self._dispatch = service.dispatch.answer  # bound methods, used by every request
        self._deliver = service.responses.deliver
        self._budget = service.budget
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
        self._silent_bytes = 0  # bytes received without any of the body: chunk headers and trailers
        self._upgrading = False
        self._refusal: Payload | None = None  # the response to a request that a parser callback rejected
        self._backlog: deque[_Request | _ReadyResponse] = deque()
        self._is_computing = False  # a response is computed in slices; later requests wait in the backlog
        self._computing_bytes = 0  # held by that response
        self._unread_bytes = 0  # of responses passed to the transport since the client stopped reading
        self.held_bytes = 0  # counted in the server's `MemoryBudget`
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
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is compatible but not a subclass
        self._peer = peer_of(self._transport)
        if self._service.stopping:  # accepted while the server was stopping
            self._stage = _CLOSING
            self._transport.abort()
        elif self._service.admit_connection():
            self._service.connections.add(self)
        else:
            self._stage = _CLOSING
            self.send(self._error_response(503, "Too many connections; try again later."), True)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the client and its unanswered requests."""
        self._stage = _CLOSING
        self._release_memory()
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
        except httptools.HttpParserError as error:
            self._reject_malformed(error)
        backlog = self._backlog
        if len(backlog) == 1 and not self._write_deadline_s and not self._is_computing:  # the usual case
            began_s = monotonic()
            self._process(backlog.popleft())
            if monotonic() - began_s > self._service.limits.turn_s:
                self._end_turn()
        elif backlog:
            self._process_backlog()
        if self._stage == _HEAD:
            # All of these bytes belong to the head only if no other request preceded it in this read.
            is_only_request = self._request_count == begun + (before == _IDLE)
            self._head_bytes = self._head_bytes + len(data) if is_only_request else 0
            if not self._deadline_s:
                self._deadline_s = self._service.loop.time() + self._service.limits.head_s
            if len(self._received) > HEADERS_MAX:
                self._refuse_last(400, f"The request has more than {HEADERS_MAX} headers.")
        elif self._stage == _BODY:
            self._receive_body(len(data))
        if self._stage != _IDLE or backlog or self.held_bytes:
            self._count_held()
            if self.held_bytes >= COUNTED_BYTES_MIN:
                self._refuse_beyond_budget()

    def _receive_body(self, size: int) -> None:
        """Store what has been received of a body, set its deadline, and refuse it if it is too large."""
        self._silent_bytes = 0 if self._parts else self._silent_bytes + size
        self._join_body()
        if self._received:  # trailers
            self._received.clear()
        if len(self._body) > self._body_bytes_max:
            self._respond_last(self._too_large_response())
            self._process_backlog()
        elif self._silent_bytes > self._head_bytes_max:
            self._refuse_last(
                400, f"The chunk headers or trailers are larger than {self._head_bytes_max} bytes."
            )
        elif not self._deadline_s:
            self._deadline_s = self._service.loop.time() + self._service.limits.body_s

    def _refuse_beyond_budget(self) -> None:
        """Refuse what is being received or waits, if it does not fit into the memory for all clients."""
        is_receiving = self._stage == _BODY or bool(self._backlog)
        if is_receiving and not self._budget.admit_large(0, self._service.limits.pressed_s):
            self.make_way(self._budget.sentence)

    def eof_received(self) -> bool:
        """Respond to the requests that came before the client closed its side, then close ours."""
        if self._stage == _CLOSING:  # stay open while the last response is pending
            return not self._deadline_s and not self._peer.secure
        if self._stage == _IDLE:
            self._backlog.append((b"", True))
        else:
            self._backlog.append((self._error_response(400, "The request is incomplete."), True))
        self._stage = _CLOSING
        self._deadline_s = 0.0
        self._process_backlog()
        return not self._peer.secure  # TLS has no half-open connection

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read its responses."""
        self._write_deadline_s = self._service.loop.time() + self._service.limits.response_s
        self._set_reading(False)
        self._service.loop.call_soon(self._count_unread)  # once the transport has all of the response

    def resume_writing(self) -> None:
        """Resume processing."""
        self._write_deadline_s = 0.0
        self._unread_bytes = 0
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
        """Add a header; of one that is sent twice the last counts, with the exceptions in `heads`."""
        received = self._received
        if (name := name.lower()) in received and self._stage == _HEAD:
            if name in FIRST_COUNTS:
                return
            self._refuse_head(repetition_problem(name))
        received[name] = value

    def on_headers_complete(self) -> None:
        """Refuse an ambiguous head and a body that is declared too large; respond 100 Continue if the client expects it."""
        self._stage = _BODY
        self._deadline_s = 0.0
        self._head_bytes = 0
        fields = self._fields = self._received
        self._received = {}
        self._silent_bytes = 0
        version = self._parser.get_http_version()
        if (
            version != "1.1"
            or b"host" not in fields
            or b"transfer-encoding" in fields
            or self._url != b"/"
            or len(fields) > HEADERS_MAX
        ):
            self._refuse_head(head_problem(version, fields) or target_problem(self._url, fields))
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

    def send(self, response: Response, close: bool) -> None:
        """Send a response, or have it computed further; end the connection if it is the last one."""
        transport = self._transport
        if transport.is_closing():
            if self._is_computing:
                self._service.work.release(self)
            self._computing_bytes = 0
            if not isinstance(response, bytes | tuple):
                response.abandon(None)
            return
        if isinstance(response, bytes):
            transport.write(response)
        elif isinstance(response, tuple):
            transport.writelines(response)
            if self._write_deadline_s:
                self._unread_bytes += len(response[1])
                self._count_held()
        else:
            # Set again, because the response to an earlier request, sent after the same commit, has cleared it.
            self._is_computing = True
            self._computing_bytes = response.held_bytes if isinstance(response, StagedResponse) else 0
            self._count_held()
            self._service.work.add(self, response, close)
            return
        if self._is_computing:
            self._is_computing = False
            self._computing_bytes = 0
            if self.held_bytes:
                self._count_held()
            self._service.work.release(self)
            if not close:
                self._service.loop.call_soon(self._process_backlog)
        if close and self._closing_idle and self._peer.secure and not transport.get_write_buffer_size():
            transport.abort()  # a TLS shutdown waits for the peer's, which an idle client does not send
        elif close:
            self._finish()

    @property
    def is_lost(self) -> bool:
        """Whether the connection was reset or closed, so that a response that is being computed is not needed.

        A client that has closed only its sending side may still read the response.
        """
        return self._transport.is_closing()

    def sweep(self, now_s: float) -> None:
        """Close the connection, or refuse the request, if a deadline has passed."""
        if (self._write_deadline_s and now_s >= self._write_deadline_s) or (
            self._stage == _CLOSING and self._deadline_s and now_s >= self._deadline_s
        ):
            self._transport.abort()
        elif self._deadline_s and now_s >= self._deadline_s:
            self._refuse_last(408, "The request took too long to arrive.")
        elif (
            self._request_count != self._swept_request_count
            or self._stage != _IDLE
            or self._backlog
            or self._is_computing
        ):
            self._swept_request_count = self._request_count
            self.idle_since_s = now_s
        elif now_s - self.idle_since_s >= self._service.limits.idle_s:
            self.close_when_idle()

    def waits_since(self, now_s: float) -> float:
        """Return since when the connection waits for its client, if it may make way for another one; otherwise 0."""
        limits = self._service.limits
        if (
            self._stage == _IDLE
            and not self._write_deadline_s
            and self._request_count == self._swept_request_count  # no request since the last sweep
            and not self._backlog
            and not self._is_computing
        ):
            return self.idle_since_s if now_s - self.idle_since_s >= limits.idle_evictable_s else 0.0
        since_s = self.stalled_since_s
        return since_s if since_s and now_s - since_s >= limits.pressed_s else 0.0

    @property
    def stalled_since_s(self) -> float:
        """Since when the client has been sending a request, or not reading its responses; 0 if neither."""
        limits = self._service.limits
        if self._write_deadline_s:
            return self._write_deadline_s - limits.response_s
        if self._deadline_s and self._stage in {_HEAD, _BODY}:
            return self._deadline_s - (limits.head_s if self._stage == _HEAD else limits.body_s)
        if self._deadline_s:  # closing: refused, or the last response is not read
            return self._deadline_s - (limits.linger_s if self._linger else limits.response_s)
        return 0.0

    def make_way(self, sentence: str) -> None:
        """Close the connection because its place or memory is needed; an unfinished request gets a 503."""
        if self._write_deadline_s or self._stage == _CLOSING:
            self._release_memory()
            self._transport.abort()
        elif self._stage == _IDLE and not self._backlog:
            self.close_when_idle()
        else:
            self._backlog.clear()
            self._respond_last(self._error_response(503, sentence))
            self._linger = False  # its place is needed now
            self._closing_idle = True
            self._process_backlog()
            self._count_held()

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
        until_s = monotonic() + service.limits.turn_s
        while backlog and not self._write_deadline_s and not self._is_computing:
            bytes_left -= self._process(backlog.popleft())
            requests_left -= 1
            if backlog and (requests_left == 0 or bytes_left <= 0 or monotonic() > until_s):
                service.loop.call_soon(self._process_backlog)
                break
        self._set_reading(not backlog and not self._write_deadline_s and not self._is_computing)
        if backlog or self.held_bytes:
            self._count_held()

    def _end_turn(self) -> None:
        """Read no more from this client until the others have been served.

        libuv reads from a connection up to 32 times in a row while there is data. A client that sends expensive requests
        as fast as they are answered would be served 32 times before anyone else.
        """
        if not self._transport.is_closing():
            self._set_reading(False)
            self._service.loop.call_soon(self._process_backlog)

    def _process(self, entry: _Request | _ReadyResponse) -> int:
        """Process one entry of the backlog and return the size of the response."""
        if len(entry) == 5:
            _, _, fields, _, last = entry
            budget = self._budget
            if budget.held_bytes > budget.bytes_max and not budget.admit_any():
                response: Response = self._service.stages.refuse_for_memory(last)
            elif b"content-encoding" in fields or b"origin" in fields:
                response = self._service.stages.begin(*entry, self._peer)
                self._is_computing = not isinstance(response, bytes | tuple)
            else:
                response = self._dispatch(*entry, self._peer)
                if type(response) is not bytes or len(response) >= COMPRESSED_BYTES_MIN:
                    response = self._service.stages.finish(response, fields, entry[3], last)
                    self._is_computing = not isinstance(response, bytes | tuple)
        else:
            response, last = entry
        if last:
            self._stage = _CLOSING
            self._backlog.clear()
        self._deliver(self, response, last)
        return response_size(response)

    def _set_reading(self, enabled: bool) -> None:
        if enabled == self._reading or self._transport.is_closing():
            return
        self._reading = enabled
        if enabled:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _join_body(self) -> None:
        """Join the parts of a body after each read; many tiny chunks would take much memory."""
        self._body += b"".join(self._parts)
        self._parts = []

    def _discard_body(self) -> None:
        """Drop the body received so far."""
        self._body = bytearray()
        self._parts = []

    # Memory.

    def _count_held(self) -> None:
        """Count what this connection holds in the server's budget."""
        held_bytes = len(self._body) + self._unread_bytes + self._computing_bytes
        if self._stage == _HEAD:
            held_bytes += self._head_bytes + _HEADER_BYTES * len(self._received)
        for entry in self._backlog:
            if len(entry) == 5:
                held_bytes += _ENTRY_BYTES + _HEADER_BYTES * len(entry[2]) + len(entry[3])
        self._budget.held_bytes += held_bytes - self.held_bytes
        self.held_bytes = held_bytes

    def _count_unread(self) -> None:
        """Count what the transport holds, if the client still does not read."""
        if self._write_deadline_s and not self._transport.is_closing():
            self._unread_bytes = max(self._unread_bytes, self._transport.get_write_buffer_size())
            self._count_held()

    def _release_memory(self) -> None:
        """Drop the requests, and count nothing any more: the connection is lost, or about to be."""
        self._backlog.clear()
        self._discard_body()
        self._unread_bytes = self._computing_bytes = 0
        self._received = {}
        self._count_held()

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
                sentence = f"The headers are larger than {self._head_bytes_max} bytes."
                self._respond_last(self._error_response(400, sentence))
                return

    def _decline_upgrade(self, rest: memoryview) -> None:
        """Continue in HTTP/1.1 with a client that offered an upgrade; the protocol allows to ignore the offer.

        The parser stops after the head of such a request. A new parser therefore gets the same head without the
        offer, and then the rest of the data.
        """
        if not self._upgrading:  # a CONNECT, which is already in the backlog
            self._backlog.pop()
            self._reject_malformed()
            return
        end_to_end = [(name, value) for name, value in self._fields.items() if name not in _HOP_BY_HOP]
        if b"close" in self._fields.get(b"connection", b"").lower():
            end_to_end.append((b"connection", b"close"))
        request_line = b"%b %b HTTP/1.1" % (self._parser.get_method(), self._url)
        head = [request_line, *(b"%b: %b" % pair for pair in end_to_end), b"", b""]
        while self._backlog and self._backlog[-1][0] is CONTINUE:  # the new parser adds it again
            self._backlog.pop()
        self._parser = httptools.HttpRequestParser(self)
        self._stage = _IDLE
        self._upgrading = False
        self._url = b""
        self._received = {}
        try:
            self._parser.feed_data(b"\r\n".join(head))
            self._parser.feed_data(rest)
        except (
            httptools.HttpParserError
        ) as error:  # malformed, or a second upgrade, which no real client sends
            self._reject_malformed(error)

    def _refuse_large(self) -> None:
        """Stop the parser at a body that is too large."""
        self._refusal = self._too_large_response()
        raise ValueError("the body is too large")

    def _refuse_head(self, problem: str | None) -> None:
        """Stop the parser at a head with a problem."""
        if problem is not None:
            self._refusal = self._error_response(400, problem)
            raise ValueError(problem)

    def _reject_malformed(self, error: httptools.HttpParserError | None = None) -> None:
        """Refuse what cannot be parsed, or what a callback refused."""
        if self._refusal is None and self._parser.get_http_version() == "2.0":  # the preface of HTTP/2
            self._refusal = self._error_response(400, head_problem("2.0", {}) or "")
        reason = f": {error}" if error is not None and str(error) else ""
        self._respond_last(
            self._refusal or self._error_response(400, f"The request is not well-formed HTTP{reason}.")
        )

    def _refuse_last(self, status: int, sentence: str) -> None:
        """Respond with an error after the earlier requests, and close."""
        self._respond_last(self._error_response(status, sentence))
        self._process_backlog()

    def _respond_last(self, payload: Payload) -> None:
        """Respond after the earlier requests, read no more requests, and close after a delay (`linger_s`)."""
        self._backlog.append((payload, True))
        self._stage = _CLOSING
        self._linger = True
        self._deadline_s = 0.0
        self._discard_body()

    def _finish(self) -> None:
        """Close after the last response is sent, or a moment later if the client is still sending.

        Closing at once would reset the connection of a client that sends, and it could lose the response.
        """
        limits = self._service.limits
        self._stage = _CLOSING
        self._deadline_s = self._service.loop.time() + (
            limits.linger_s if self._linger else limits.response_s
        )
        if self._linger:
            if self._transport.can_write_eof():  # TLS cannot; its client sees `Connection: close`
                self._transport.write_eof()
            self._set_reading(True)
        else:
            self._transport.close()

    def _too_large_response(self) -> Payload:
        return self._error_response(413, f"The body is larger than {self._body_bytes_max} bytes.")

    def _error_response(self, status: int, sentence: str) -> Payload:
        return self._service.encoder.encode(status, TEXT, f"{sentence}\n".encode(), True)
