"""HTTP parser: the bytes that an endpoint sends, parsed into one reply after the other; it does no I/O."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import httptools

from tavola.backends.errors import EndpointUnreachable, ResponseUnreadable
from tavola.client.backend import BackendError

_INTERIM = 200  # lower status codes precede the reply itself
_TLS_ALERT = b"\x15\x03"


class HttpReply(NamedTuple):
    """Status, body and checksum of a reply."""

    status: int
    body: bytes
    checksum: str | None


class Transport(Protocol):
    """Sends requests to one endpoint and returns its replies; threads may share it."""

    def send(self, message: bytes, *, repeatable: bool) -> HttpReply:
        """Send a complete request, head and body, and return the reply.

        It is sent again only if the endpoint cannot have received all of it; if it is `repeatable`, also if a reused
        connection was closed before the first byte of the reply.
        """
        ...

    def close(self) -> None:
        """Close the idle connections; those in use are closed after their reply."""
        ...


class ReplyReader:
    """Parses the replies of one connection, one at a time; the `on_` methods are called by the parser."""

    __slots__ = (
        "_checksum",
        "_has_bytes",
        "_has_head",
        "_has_length",
        "_is_broken",
        "_is_complete",
        "_parser",
        "_parts",
        "_status",
    )

    _has_bytes: bool  # a byte of the reply was received
    _has_head: bool  # its head was received
    _has_length: bool  # the head says how long the body is
    _is_complete: bool  # the whole reply was received
    _is_broken: bool  # the connection cannot be used for another reply
    _status: int
    _checksum: str | None
    _parts: list[bytes]

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._is_broken = False
        self._reset()

    @property
    def has_bytes(self) -> bool:
        """Whether a byte of the reply was received."""
        return self._has_bytes

    @property
    def reusable(self) -> bool:
        """Whether the connection can be used again after this reply."""
        return not self._is_broken

    def feed(self, endpoint: str, data: bytes) -> bool:
        """Parse bytes; return whether the reply is complete, or raise if it is not HTTP."""
        if not self._has_bytes:
            self._has_bytes = True
            if data.startswith(_TLS_ALERT):
                raise EndpointUnreachable(endpoint, "it responds with TLS; try https://")
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._is_broken = True
            if not self._is_complete:
                raise ResponseUnreadable(endpoint, self._status or None) from error
        return self._is_complete

    def end(self) -> bool:
        """Note the end of the connection; return whether the reply is complete with it."""
        self._is_broken = True
        if self._has_head and not self._has_length:  # the end of the connection ends the body
            self._is_complete = True
        return self._is_complete

    def take(self) -> HttpReply:
        """Return the complete reply, and reset for the next one."""
        parts = self._parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        reply = HttpReply(self._status, body, self._checksum)
        self._reset()
        return reply

    def _reset(self) -> None:
        self._has_bytes = False
        self._has_head = False
        self._is_complete = False
        self._has_length = False
        self._status = 0
        self._checksum = None
        self._parts = []

    # Called by the parser:

    def on_message_begin(self) -> None:
        """Start a reply; a second one was not requested."""
        if self._is_complete:
            self._is_broken = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note the headers that matter."""
        if self._is_complete:
            return
        size = len(name)
        if size == 11:
            if name.lower() == b"x-amz-crc32":
                self._checksum = value.decode("latin-1")
        elif size == 14:
            if name.lower() == b"content-length":
                self._has_length = True
        elif size == 17 and name.lower() == b"transfer-encoding":
            self._has_length = True

    def on_headers_complete(self) -> None:
        """Note the status."""
        if not self._is_complete:
            self._status = self._parser.get_status_code()
            self._has_head = self._status >= _INTERIM

    def on_body(self, body: bytes) -> None:
        """Append a part of the body."""
        if not self._is_complete:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        """Note that the reply is complete, unless it is an interim one."""
        if not self._has_head:
            self._has_length = False
            return
        self._is_complete = True
        if not self._parser.should_keep_alive():
            self._is_broken = True


def connection_ended(endpoint: str, *, has_bytes: bool, sent: bool = True) -> BackendError:
    """Return the error for a connection that was closed before the reply was complete."""
    if has_bytes:
        return EndpointUnreachable(endpoint, "the connection was closed in the middle of the response")
    hint = "; try https://" if endpoint.startswith("http:") else ""
    return EndpointUnreachable(endpoint, f"the connection was closed without a response{hint}", sent=sent)


def timed_out(endpoint: str, timeout_s: float) -> BackendError:
    """Return the error for a reply that took too long."""
    return EndpointUnreachable(endpoint, f"the response was not complete within {timeout_s:g} s")
