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
"""

from __future__ import annotations

import logging
import re
import time
from asyncio import AbstractEventLoop
from http import HTTPStatus
from typing import Protocol

from tavola.clock import Clock
from tavola.engine import RequestContext
from tavola.entropy import Entropy
from tavola.protocol.arns import Scope
from tavola.protocol.faults import InternalServerFault
from tavola.server.access_log import AccessLog

try:  # twelve times as fast as zlib's for a large page, with the same result
    from isal.isal_zlib import crc32
except ImportError:  # pragma: no cover - the extra is installed wherever the tests run
    from zlib import crc32

Payload = bytes | tuple[bytes, bytes]
"""The response to one request: its bytes, or its head and its body."""

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
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class ResponseEncoder:
    """Encodes responses; `refresh_date` must be called once a second."""

    __slots__ = ("_clock", "_date", "_entropy", "_heads", "_ids")

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy
        self._ids: list[bytes] = []
        self._heads: dict[tuple[int, bytes, bool], bytes] = {}
        self._date = http_date(clock.now())

    def refresh_date(self) -> None:
        """Set the Date header to the current second."""
        date = http_date(self._clock.now())
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
        """Return a whole response; `close` tells the client that the connection ends with it."""
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


def http_date(epoch_s: float) -> str:
    """Return a time in the format of the Date header, in English on every machine."""
    t = time.gmtime(epoch_s)
    return (
        f"{_DAYS[t.tm_wday]}, {t.tm_mday:02} {_MONTHS[t.tm_mon - 1]} {t.tm_year} "
        f"{t.tm_hour:02}:{t.tm_min:02}:{t.tm_sec:02} GMT"
    )


def payload_size(payload: Payload) -> int:
    """Return the number of bytes of a response."""
    return len(payload) if isinstance(payload, bytes) else len(payload[0]) + len(payload[1])


class ServedEngine(Protocol):
    """The methods of an engine that the server uses; the tests' stand-in has them too."""

    def execute(
        self, operation: str, body: bytes, scope: Scope, context: RequestContext | None = None
    ) -> bytes:
        """Return the JSON response to a JSON request, or raise a Fault."""
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
    def write_failure(self) -> str | None:
        """Why writes are refused; None while they are accepted."""
        ...


class Client(Protocol):
    """A connection that waits for a response."""

    def send(self, payload: Payload, close: bool) -> None:
        """Send a response, and end the connection if it is the last one."""
        ...


class ResponseQueue:
    """The responses that wait for the commit at the end of the loop's turn."""

    __slots__ = ("_encoder", "_engine", "_log", "_loop", "_waiting", "group_is_open", "response_count")

    def __init__(
        self,
        engine: ServedEngine,
        encoder: ResponseEncoder,
        loop: AbstractEventLoop,
        log: AccessLog | None = None,
    ) -> None:
        self._engine = engine
        self._encoder = encoder
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
        return self._encoder.encode(fault.status, JSON, fault.body(), close, _request_id(payload) or None)


def _request_id(payload: Payload) -> bytes:
    """Return the request id in a response's head; empty if it has none."""
    match = _REQUEST_ID.search(payload if isinstance(payload, bytes) else payload[0])
    return b"" if match is None else match[1]
