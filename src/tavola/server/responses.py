"""Responses: their bytes, and the queue in which they wait until what they reveal is durable.

`ResponseEncoder` makes the bytes, with the headers that AWS sends and the checksum that SDKs verify. The unchanging parts
are prepared: a head is made once a second for each status and content type, and request ids are cut from one block of
random bytes for many requests. A small body is joined to its head; a large one is passed on beside it, because copying a
megabyte costs more than a second write.

`ResponseQueue` holds responses back. All writes that the event loop finds ready in one turn share a transaction of the
engine (see `tavola.engine.commit_group`, which owns its states). The server is one participant of it: it opens the group
before the first write of a turn and commits at the end of the turn. Responses made in between wait here: those of writes,
and those of reads and refusals that follow a write, since they may reveal it. The responses of one connection keep the
order of its requests.

`PendingWork` computes what takes long, such as a scan with a filter over many items or the items of a large body: one slice in
each turn of the loop, so that a request of another client waits for at most one slice.
"""

from __future__ import annotations

import logging
import re
from asyncio import AbstractEventLoop
from collections import deque
from email.utils import formatdate
from http import HTTPStatus
from typing import Protocol

from tavola.clock import Clock
from tavola.engine import PendingCall, RequestContext, StoreError
from tavola.entropy import Entropy
from tavola.protocol.arns import Scope
from tavola.protocol.faults import Fault, InternalServerFault
from tavola.server.access_log import AccessLog
from tavola.server.failure_log import FailureLog
from tavola.server.memory import MemoryBudget

try:  # twelve times as fast as zlib's for a large page, with the same result
    from isal.isal_zlib import crc32
except ImportError:  # pragma: no cover - the extra is installed wherever the tests run
    from zlib import crc32

Payload = bytes | tuple[bytes, bytes]
"""The response to one request: its bytes, or its head and its body."""


class PendingPayload(Protocol):
    """A response that takes longer than a slice of time; it is computed in slices, between those of other requests."""

    @property
    def request_id(self) -> bytes:
        """The id of the request."""
        ...

    def resume(self) -> Payload | None:
        """Compute for one slice of time; return the response, or None if it is still unfinished."""
        ...

    def abandon(self, fault: Fault | None) -> None:
        """End the computation without a response; the call is logged with this fault."""
        ...


Response = Payload | PendingPayload

JSON = b"application/x-amz-json-1.0"
PLAIN_JSON = b"application/json"
TEXT = b"text/plain"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

REQUEST_ID_CHARACTERS = 52
JOINED_BODY_BYTES_MAX = 8 * 1024

_log = logging.getLogger("tavola.server")
_REQUEST_ID = re.compile(rb"\r\nx-amzn-RequestId: (\w+)")

_ALPHABET = b"0123456789ABCDEFGHIJKLMNOPQRSTUV"
_ID_LETTERS = bytes(_ALPHABET[number % 32] for number in range(256))  # 256 is a multiple of 32: no bias
_IDS_AT_ONCE = 256


class ResponseEncoder:
    """Encodes responses; `refresh_date` must be called once a second."""

    __slots__ = ("_clock", "_date", "_entropy", "_heads", "_ids")

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy
        self._ids: list[bytes] = []
        self._heads: dict[tuple[int, bytes, bool], bytes] = {}
        self._date = formatdate(clock.now(), usegmt=True)

    def refresh_date(self) -> None:
        """Set the Date header to the current second."""
        date = formatdate(self._clock.now(), usegmt=True)
        if date != self._date:
            self._date = date
            self._heads.clear()

    def new_request_id(self) -> bytes:
        """Return a random request id in AWS's form."""
        if not self._ids:
            self._ids = self._make_request_ids()
        return self._ids.pop()

    def encode(
        self, status: int, content_type: bytes, body: bytes, close: bool, request_id: bytes | None = None
    ) -> Payload:
        """Return a complete response; `close` announces that the connection ends after it."""
        head = self._heads.get((status, content_type, close)) or self._make_head(status, content_type, close)
        if request_id is None:
            ids = self._ids
            request_id = ids.pop() if ids else self.new_request_id()
        size = len(body)
        if size <= JOINED_BODY_BYTES_MAX:
            return b"%b%b\r\nx-amz-crc32: %d\r\nContent-Length: %d\r\n\r\n%b" % (
                head,
                request_id,
                crc32(body),
                size,
                body,
            )
        return b"%b%b\r\nx-amz-crc32: %d\r\nContent-Length: %d\r\n\r\n" % (
            head,
            request_id,
            crc32(body),
            size,
        ), body

    def encode_without_body(
        self, status: int, content_type: bytes, body: bytes, close: bool, request_id: bytes | None = None
    ) -> bytes:
        """Return the response to a HEAD request: the headers of `body` without it."""
        payload = self.encode(status, content_type, body, close, request_id)
        return payload[: len(payload) - len(body)] if isinstance(payload, bytes) else payload[0]

    def _make_head(self, status: int, content_type: bytes, close: bool) -> bytes:
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
            f"Server: Server\r\nDate: {self._date}\r\nContent-Type: {content_type.decode('latin-1')}\r\n"
            f"Connection: {'close' if close else 'keep-alive'}\r\nx-amzn-RequestId: "
        ).encode("latin-1")
        self._heads[status, content_type, close] = head
        return head

    def _make_request_ids(self) -> list[bytes]:
        size = REQUEST_ID_CHARACTERS
        letters = self._entropy.bytes(size * _IDS_AT_ONCE).translate(_ID_LETTERS)
        return [letters[start : start + size] for start in range(0, len(letters), size)]


def split_payload(payload: Payload) -> tuple[bytes, bytes]:
    """Return the head of a response, with the empty line, and its body."""
    if isinstance(payload, tuple):
        return payload
    end = payload.index(b"\r\n\r\n") + 4
    return payload[:end], payload[end:]


def replace_body(payload: Payload, coding: bytes, body: bytes) -> Payload:
    """Return a response with its body in a content coding; the checksum is over the bytes that are sent."""
    head = split_payload(payload)[0]
    head = head[: head.rindex(b"\r\nx-amz-crc32: ")]
    line = b"\r\nContent-Encoding: %b\r\nx-amz-crc32: %d\r\nContent-Length: %d\r\n\r\n"
    return head + line % (coding, crc32(body), len(body)), body


def add_headers(payload: Payload, lines: bytes) -> Payload:
    """Return a response with further headers, each line with its end."""
    head, body = split_payload(payload)
    return head[:-2] + lines + b"\r\n", body


def request_id_of(response: Response) -> bytes:
    """Return the request id in a response's head; empty if it has none."""
    if not isinstance(response, bytes | tuple):
        return response.request_id
    match = _REQUEST_ID.search(response if isinstance(response, bytes) else response[0])
    return b"" if match is None else match[1]


def response_size(response: Response) -> int:
    """Return the number of bytes of a response; 0 while it is pending."""
    if isinstance(response, bytes):
        return len(response)
    return len(response[0]) + len(response[1]) if isinstance(response, tuple) else 0


class ServedEngine(Protocol):
    """The methods of an engine that the server uses; the tests' stand-in has them too."""

    def execute(
        self,
        operation: str,
        body: bytes,
        scope: Scope,
        context: RequestContext | None = None,
        *,
        slice_s: float | None,
    ) -> bytes | PendingCall:
        """Return the JSON response to a JSON request, or a call that takes longer than a slice; or raise a Fault."""
        ...

    def resume(self, pending: PendingCall, slice_s: float) -> bytes | None:
        """Continue a call for one slice of time; return the response, or None if it is still unfinished."""
        ...

    def collect_writes(self) -> None:
        """Let the writes of this thread share one transaction until `commit`."""
        ...

    @property
    def dirty(self) -> bool:
        """Whether some writes are not yet durable."""
        ...

    def commit(self) -> None:
        """Make the collected writes durable, or raise with none of them applied."""
        ...

    def run_background_work(self, budget_ms: float) -> bool:
        """Do background work for about `budget_ms`; return whether there is more."""
        ...

    @property
    def unready_reason(self) -> str | None:
        """Why writes are refused now; None while they are accepted."""
        ...


class Client(Protocol):
    """A connection that waits for a response."""

    def send(self, response: Response, close: bool) -> None:
        """Send a response, or have it computed further; end the connection if it is the last one."""
        ...


class WaitingClient(Client, Protocol):
    """A connection whose response is being computed."""

    @property
    def is_lost(self) -> bool:
        """Whether the connection was reset or closed, so that its response is not needed."""
        ...

    def abort(self) -> None:
        """Close the connection immediately."""
        ...


PendingTurn = tuple[
    WaitingClient, PendingPayload, bool
]  # a response, its client, and whether it is the last one


class ResponseQueue:
    """The responses that wait for the commit at the end of the loop's turn."""

    __slots__ = (
        "_encoder",
        "_engine",
        "_failures",
        "_log",
        "_loop",
        "_waiting",
        "budget",
        "group_is_open",
        "response_count",
    )

    def __init__(
        self,
        engine: ServedEngine,
        encoder: ResponseEncoder,
        loop: AbstractEventLoop,
        log: AccessLog | None = None,
        failures: FailureLog | None = None,
        budget: MemoryBudget | None = None,
    ) -> None:
        self._engine = engine
        self._encoder = encoder
        self._loop = loop
        self._log = log
        self._failures = failures or FailureLog()
        self.budget = budget or MemoryBudget()  # of which the waiting responses are a part
        self._waiting: list[tuple[Client, Response, bool]] = []
        self.group_is_open = False  # `commit_and_send` is scheduled; until then writes may be lost
        self.response_count = (
            0  # responses and slices so far; the listener sees by it whether clients are active
        )

    def open_group(self) -> None:
        """Collect writes until the event loop has read every ready socket; does nothing if a group is open."""
        if not self.group_is_open:
            self.group_is_open = True
            self._engine.collect_writes()
            self._loop.call_soon(self.commit_and_send)

    def deliver(self, client: Client, response: Response, close: bool) -> None:
        """Send a response now, or after the commit if something is not yet durable.

        A pending response comes here after each of its slices, since each may have read what is not yet durable.
        """
        self.response_count += 1
        if self._engine.dirty:
            self.open_group()  # already open, unless the writes came from outside a request
            self._waiting.append((client, response, close))
            if type(response) is tuple:
                self.budget.held_bytes += len(response[1])
        else:
            client.send(response, close)

    def commit_and_send(self) -> None:
        """Commit the group and send the responses that wait for it; if the commit fails, all become errors."""
        if not self.group_is_open:
            return
        self.group_is_open = False
        waiting, self._waiting = self._waiting, []
        self.budget.held_bytes -= sum(
            len(response[1]) for _, response, _ in waiting if type(response) is tuple
        )
        try:
            self._engine.commit()
        except Exception as error:  # noqa: BLE001 - after any failure, no client may believe that its write was kept
            fault = InternalServerFault()
            reason = self._engine.unready_reason
            if isinstance(error, StoreError) and reason is not None:
                fault = InternalServerFault(str(error))
                self._failures.count_refusals(reason, len(waiting))
            else:
                _log.exception(
                    "A group commit failed; %d responses are replaced with an error.", len(waiting)
                )
            request_ids = {request_id_of(response) for _, response, _ in waiting}
            waiting = [
                (client, self._error(response, close, fault), close) for client, response, close in waiting
            ]
            if self._log is not None:
                self._log.mark_failed(request_ids)
        for client, response, close in waiting:
            client.send(response, close)

    def _error(self, response: Response, close: bool, fault: InternalServerFault) -> Payload:
        """Return the error that replaces a response whose writes were rolled back."""
        if response == b"" or response is CONTINUE:  # reveals nothing of the engine
            return response
        if not isinstance(response, bytes | tuple):
            response.abandon(fault)
        return self._encoder.encode(fault.status, JSON, fault.body(), close, request_id_of(response) or None)


class PendingWork:
    """The responses that are computed in slices: one slice of one response in each turn of the loop, round robin.

    A response in progress holds its page or its request, several megabytes. So only `pending_max` of them take turns; the others have had
    their first slice and wait in the order of their arrival.
    """

    __slots__ = ("_active", "_is_scheduled", "_loop", "_pending_max", "_queued", "_responses", "_turns")

    def __init__(self, loop: AbstractEventLoop, responses: ResponseQueue, pending_max: int) -> None:
        self._loop = loop
        self._responses = responses
        self._pending_max = pending_max
        self._active: set[WaitingClient] = set()  # those that take turns
        self._turns: deque[PendingTurn] = deque()
        self._queued: deque[PendingTurn] = deque()
        self._is_scheduled = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing is computed in slices."""
        return not self._active

    def add(self, client: WaitingClient, response: PendingPayload, close: bool) -> None:
        """Continue a response in one of the next turns of the loop, or when another one has ended."""
        if client in self._active or len(self._active) < self._pending_max:
            self._active.add(client)
            self._turns.append((client, response, close))
            self._schedule()
        else:
            self._queued.append((client, response, close))

    def release(self, client: WaitingClient) -> None:
        """Let the next response take turns: this client's has ended."""
        self._active.discard(client)
        if self._queued and len(self._active) < self._pending_max:
            self.add(*self._queued.popleft())

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._run_slice)

    def _run_slice(self) -> None:
        self._is_scheduled = False
        if not self._turns:
            return
        client, response, close = self._turns.popleft()
        try:
            if client.is_lost:
                response.abandon(None)
                self.release(client)
            else:
                payload = response.resume()
                self._responses.deliver(client, response if payload is None else payload, close)
        except Exception:  # noqa: BLE001 - one response must not stop the others
            _log.exception("Request %s failed unexpectedly.", response.request_id.decode())
            self.release(client)
            client.abort()
        if self._turns:
            self._schedule()
