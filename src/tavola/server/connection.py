"""Connection: executes the requests of one client and sends the responses in the order of the requests.

Parsing (`request_reader`) and execution are separate: complete requests wait in a backlog, which is processed a limited number at a time, so
that one client's pipeline does not delay the others. While a client does not read its responses, nothing more is read
from it or executed for it. Deadlines cost nothing per request: a connection only notes when something began, and
`sweep` checks all connections periodically.
"""

from __future__ import annotations

import asyncio
from typing import cast

import httptools

from tavola.clock import monotonic
from tavola.server.callers import Peer, peer_of
from tavola.server.codings import COMPRESSED_BYTES_MIN
from tavola.server.heads import HEADERS_MAX
from tavola.server.memory import COUNTED_BYTES_MIN
from tavola.server.request_reader import BODY, CLOSING, HEAD, IDLE, ReadyResponse, Request, RequestReader
from tavola.server.responses import Response, response_size
from tavola.server.service import Service
from tavola.server.stages import StagedResponse

# What a request in a backlog takes besides its body: its objects, and those of each header.
_ENTRY_BYTES = 512
_HEADER_BYTES = 192

_LARGE_READ_BYTES = 64 * 1024
_LARGE_READ_S = 0.0002  # to read as much of a body as the loop reads at once, and to copy it


class ClientConnection(RequestReader):
    """Speaks HTTP/1.1 and 1.0 with one client."""

    __slots__ = (
        "_budget",
        "_closing_idle",
        "_computing_bytes",
        "_deliver",
        "_dispatch",
        "_heavy_s",
        "_is_computing",
        "_is_waiting",
        "_peer",
        "_reading",
        "_served_s",
        "_swept_request_count",
        "_transport",
        "_unread_bytes",
        "_write_deadline_s",
        "held_bytes",
        "idle_since_s",
        "is_heavy",
    )

    _transport: asyncio.Transport

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self._dispatch = service.dispatch.answer  # bound methods, used by every request
        self._deliver = service.responses.deliver
        self._budget = service.budget
        self._is_computing = False  # a response is computed in slices; later requests wait in the backlog
        self._computing_bytes = 0  # held by that response
        self._heavy_s = service.limits.heavy_s
        self.is_heavy = False  # its last request was expensive, see `turns`
        self._is_waiting = False  # for its turn
        self._served_s = 0.0  # when its last expensive request began
        self._unread_bytes = 0  # of responses passed to the transport since the client stopped reading
        self.held_bytes = 0  # counted in the server's `MemoryBudget`
        self._reading = True
        self._closing_idle = False
        self._peer = Peer()
        self._write_deadline_s = 0.0  # until when the client may leave responses unread; 0: it reads them
        self._swept_request_count = 0  # `_request_count` at the last sweep
        self.idle_since_s = service.loop.time()

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection, or respond 503 if the limit is reached."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is compatible but not a subclass
        self._peer = peer_of(self._transport)
        if self._service.stopping:  # accepted while the server was stopping
            self._stage = CLOSING
            self._transport.abort()
        elif self._service.admit_connection():
            self._service.connections.add(self)
        else:
            self._stage = CLOSING
            self.send(self._error_response(503, "Too many connections; try again later."), True)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the client and its unanswered requests."""
        self._stage = CLOSING
        self._release_memory()
        self._service.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        """Parse the data, process complete requests, and set the deadline for an incomplete one."""
        before = self._stage
        if before == CLOSING:
            return
        begun = self._request_count
        try:
            if before != BODY and self._head_bytes + len(data) > self._head_bytes_max:
                self._feed_within_head_limit(memoryview(data), begun + (before == IDLE))
            else:
                self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as stop:
            self._decline_upgrade(memoryview(data)[stop.args[0] :])
        except httptools.HttpParserError as error:
            self._reject_malformed(error)
        backlog = self._backlog
        if self.is_heavy and backlog and self._service.turns.is_spent:
            self._wait_for_turn()
        elif len(backlog) == 1 and not self._write_deadline_s and not self._is_computing:  # the usual case
            began_s = monotonic()
            self._process(backlog.popleft())
            took_s = monotonic() - began_s
            if took_s > self._heavy_s:
                self._note_cost(took_s)
            else:
                self.is_heavy = False
        elif backlog:
            self._process_backlog()
        stage = self._stage
        if stage == HEAD:
            # All of these bytes belong to the head only if no other request preceded it in this read.
            self._receive_head(len(data), is_whole=self._request_count == begun + (before == IDLE))
        elif stage == BODY:
            self._receive_body(len(data))
        if stage != IDLE or backlog or self.held_bytes:
            self._count_held()
            if self.held_bytes >= COUNTED_BYTES_MIN:
                self._refuse_beyond_budget()

    def _receive_head(self, size: int, *, is_whole: bool) -> None:
        """Note the size of an incomplete head, and set its deadline; `is_whole`: all of this read belongs to it."""
        self._head_bytes = self._head_bytes + size if is_whole else 0
        if not self._deadline_s:
            self._deadline_s = self._service.loop.time() + self._service.limits.head_s
        if len(self._received) > HEADERS_MAX:
            self._refuse_last(400, f"The request has more than {HEADERS_MAX} headers.")

    def _receive_body(self, size: int) -> None:
        """Store what has been received of a body, set its deadline, and refuse it if it is too large."""
        self._silent_bytes = 0 if self._parts else self._silent_bytes + size
        self._join_body()
        if size >= _LARGE_READ_BYTES:
            self.is_heavy = True
            self._wait_for_turn()
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
        is_receiving = self._stage == BODY or bool(self._backlog)
        if is_receiving and not self._budget.admit_large(0, self._service.limits.pressed_s):
            self.make_way(self._budget.sentence)

    def eof_received(self) -> bool:
        """Respond to the requests that came before the client closed its side, then close ours."""
        if self._stage == CLOSING:  # stay open while the last response is pending
            return not self._deadline_s and not self._peer.secure
        if self._stage == IDLE:
            self._backlog.append((b"", True))
        else:
            self._backlog.append((self._error_response(400, "The request is incomplete."), True))
        self._stage = CLOSING
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
            self._stage == CLOSING and self._deadline_s and now_s >= self._deadline_s
        ):
            self._transport.abort()
        elif self._deadline_s and now_s >= self._deadline_s:
            self._refuse_last(408, "The request took too long to arrive.")
        elif (
            self._request_count != self._swept_request_count
            or self._stage != IDLE
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
            self._stage == IDLE
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
        if self._deadline_s and self._stage in {HEAD, BODY}:
            return self._deadline_s - (limits.head_s if self._stage == HEAD else limits.body_s)
        if self._deadline_s:  # closing: refused, or the last response is not read
            return self._deadline_s - (limits.linger_s if self._linger else limits.response_s)
        return 0.0

    def make_way(self, sentence: str) -> None:
        """Close the connection because its place or memory is needed; an unfinished request gets a 503."""
        if self._write_deadline_s or self._stage == CLOSING:
            self._release_memory()
            self._transport.abort()
        elif self._stage == IDLE and not self._backlog:
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
        if self._stage == IDLE:
            self._stage = CLOSING
            self._closing_idle = True
            self._backlog.append((b"", True))
            self._process_backlog()

    def abort(self) -> None:
        """Close immediately."""
        self._transport.abort()

    # Processing.

    def _process_backlog(self) -> None:
        """Process the backlog until it is empty, the turn's limits are reached or the client stops reading."""
        service = self._service
        backlog = self._backlog
        requests_left = service.limits.turn_requests_max
        bytes_left = service.limits.turn_response_bytes_max
        began_s = monotonic()
        until_s = began_s + service.limits.turn_s
        while backlog and not self._write_deadline_s and not self._is_computing:
            bytes_left -= response_size(self._process(backlog.popleft()))
            requests_left -= 1
            if backlog and (requests_left == 0 or bytes_left <= 0 or monotonic() > until_s):
                self._wait_for_turn()
                break
        took_s = monotonic() - began_s
        if took_s > self._heavy_s:
            self.is_heavy = True
            self._served_s = began_s
            service.turns.add_cost(took_s)
        self._set_reading(
            not backlog and not self._write_deadline_s and not self._is_computing and not self._is_waiting
        )
        if backlog or self.held_bytes:
            self._count_held()

    def _note_cost(self, took_s: float) -> None:
        """Note an expensive request, and read no more from this client until the others have been served.

        libuv reads from a connection up to 32 times in a row while there is data. A client that sends expensive requests
        as fast as they are answered would be served 32 times before anyone else.
        """
        self.is_heavy = True
        self._served_s = monotonic()
        self._service.turns.add_cost(took_s)
        if not self._transport.is_closing():
            self._wait_for_turn()

    def _wait_for_turn(self) -> None:
        """Continue in one of the next turns, after the clients that were served longer ago."""
        if not self._is_waiting:
            self._is_waiting = True
            self._set_reading(False)
            self._service.turns.wait(self, self._served_s)

    def process_waiting(self) -> None:
        """Process the backlog, or read more of a body, in a later turn."""
        self._is_waiting = False
        if self._stage == BODY:
            self._service.turns.add_cost(_LARGE_READ_S)
        self._process_backlog()

    def _process(self, entry: Request | ReadyResponse) -> Response:
        """Process one entry of the backlog and return the response."""
        if len(entry) == 5:
            method, url, fields, body, last = entry
            budget = self._budget
            if budget.held_bytes > budget.bytes_max and not budget.admit_any():
                response: Response = self._service.stages.refuse_for_memory(last)
            elif b"content-encoding" in fields or b"origin" in fields:
                response = self._service.stages.begin(method, url, fields, body, last, self._peer)
                self._is_computing = not isinstance(response, bytes | tuple)
            else:
                response = self._dispatch(method, url, fields, body, last, self._peer)
                if type(response) is not bytes or len(response) >= COMPRESSED_BYTES_MIN:
                    response = self._service.stages.finish(response, fields, body, last)
                    self._is_computing = not isinstance(response, bytes | tuple)
        else:
            response, last = entry
        if last:
            self._stage = CLOSING
            self._backlog.clear()
        self._deliver(self, response, last)
        return response

    def _set_reading(self, enabled: bool) -> None:
        if enabled == self._reading or self._transport.is_closing():
            return
        self._reading = enabled
        if enabled:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    # Memory.

    def _count_held(self) -> None:
        """Count what this connection holds in the server's budget."""
        held_bytes = len(self._body) + self._unread_bytes + self._computing_bytes
        if self._stage == HEAD:
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

    def _refuse_last(self, status: int, sentence: str) -> None:
        """Respond with an error after the earlier requests, and close."""
        self._respond_last(self._error_response(status, sentence))
        self._process_backlog()

    def _finish(self) -> None:
        """Close after the last response is sent, or a moment later if the client is still sending.

        Closing at once would reset the connection of a client that sends, and it could lose the response.
        """
        limits = self._service.limits
        self._stage = CLOSING
        self._deadline_s = self._service.loop.time() + (
            limits.linger_s if self._linger else limits.response_s
        )
        if self._linger:
            if self._transport.can_write_eof():  # TLS cannot; its client sees `Connection: close`
                self._transport.write_eof()
            self._set_reading(True)
        else:
            self._transport.close()
