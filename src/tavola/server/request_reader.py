"""RequestReader: parses what one client sends into complete requests.

The parser calls `on_…` for each part of a request. A complete request is put into the backlog; `ClientConnection`, which
derives from this class, executes it. A request that cannot be read puts its error response there instead, as the last entry:
it is sent after the responses to the requests before it. The rules for heads are in `heads`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

import httptools

from tavola.server.heads import FIRST_COUNTS, HEADERS_MAX, head_problem, repetition_problem, target_problem
from tavola.server.responses import CONTINUE, TEXT, Payload
from tavola.server.service import Service

# The stage of a connection. Plain integers, because they are compared several times per request.
IDLE: Final = 0
HEAD: Final = 1
BODY: Final = 2
CLOSING: Final = 3

Request = tuple[bytes, bytes, dict[bytes, bytes], bytes, bool]  # method, URL, headers, body, last request
ReadyResponse = tuple[Payload, bool]  # a finished response, and whether it is the last

_HOP_BY_HOP = frozenset({b"connection", b"upgrade", b"http2-settings"})


class RequestReader(asyncio.Protocol):
    """The part of a connection that reads."""

    __slots__ = (
        "_backlog",
        "_body",
        "_deadline_s",
        "_fields",
        "_head_bytes",
        "_head_bytes_max",
        "_linger",
        "_parser",
        "_parts",
        "_received",
        "_refusal",
        "_request_count",
        "_service",
        "_silent_bytes",
        "_stage",
        "_upgrading",
        "_url",
    )

    def __init__(self, service: Service) -> None:
        self._service = service
        self._head_bytes_max = service.limits.head_bytes_max
        self._parser = httptools.HttpRequestParser(self)
        self._stage = IDLE
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
        self._backlog: deque[Request | ReadyResponse] = deque()
        self._linger = False
        self._deadline_s = 0.0  # of the head, body or close in progress; 0: none

    def on_message_begin(self) -> None:
        """Start a request."""
        self._stage = HEAD
        self._request_count += 1

    def on_url(self, url: bytes) -> None:
        """Append to the URL."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; of one that is sent twice the last counts, with the exceptions in `heads`."""
        received = self._received
        if (name := name.lower()) in received and self._stage == HEAD:
            if name in FIRST_COUNTS:
                return
            self._refuse_head(repetition_problem(name))
        received[name] = value

    def on_headers_complete(self) -> None:
        """Refuse an ambiguous head and a body that is declared too large; respond 100 Continue if the client expects it."""
        self._stage = BODY
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
        self._stage = IDLE
        self._deadline_s = 0.0
        self._url = b""
        if self._received:
            self._received = {}

    def _feed_within_head_limit(self, data: memoryview, begun: int) -> None:
        """Parse data that may contain a head over the limit: first only as many bytes as a head may have."""
        allowed = self._head_bytes_max - self._head_bytes
        for part in (data[:allowed], data[allowed:]):
            try:
                self._parser.feed_data(part)
            except httptools.HttpParserUpgrade as stop:
                self._decline_upgrade(part[stop.args[0] :])
            if self._stage == CLOSING:
                return
            if self._stage == HEAD and self._request_count == begun:
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
        self._stage = IDLE
        self._upgrading = False
        self._url = b""
        self._received = {}
        try:
            self._parser.feed_data(b"\r\n".join(head))
            self._parser.feed_data(rest)
        except httptools.HttpParserError as error:  # or a second upgrade, which no real client sends
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

    def _respond_last(self, payload: Payload) -> None:
        """Respond after the earlier requests, read no more requests, and close after a delay (`linger_s`)."""
        self._backlog.append((payload, True))
        self._stage = CLOSING
        self._linger = True
        self._deadline_s = 0.0
        self._discard_body()

    def _join_body(self) -> None:
        """Join the parts of a body after each read; many tiny chunks would take much memory."""
        self._body += b"".join(self._parts)
        self._parts = []

    def _discard_body(self) -> None:
        """Drop the body received so far."""
        self._body = bytearray()
        self._parts = []

    @property
    def _body_bytes_max(self) -> int:
        return self._service.limits.body_bytes_max

    def _too_large_response(self) -> Payload:
        return self._error_response(413, f"The body is larger than {self._body_bytes_max} bytes.")

    def _error_response(self, status: int, sentence: str) -> Payload:
        return self._service.encoder.encode(status, TEXT, f"{sentence}\n".encode(), True)
