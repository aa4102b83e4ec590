"""Replies: an endpoint's bytes as one answer after another. No socket is known here: bytes come in, a reply goes out."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import httptools

from tavola.backends.errors import AnswerUnreadable, BackendError, EndpointUnreachable

_INTERIM = 200  # a status below it goes before the answer itself
_TLS_ALERT = b"\x15\x03"


class Reply(NamedTuple):
    """What came back, as `read_answer` wants it."""

    status: int
    body: bytes
    checksum: str | None


class Transport(Protocol):
    """Brings requests to one endpoint and its replies back; threads may share it."""

    def ask(self, message: bytes, *, repeatable: bool) -> Reply:
        """Return the reply to a request that is whole, head and body.

        It is sent again only where the endpoint cannot have had all of it; if it is `repeatable`, also where a
        connection that was used before ended without a byte of the answer.
        """
        ...

    def close(self) -> None:
        """Let the connections go that are not in use; those in use follow when they are answered."""
        ...


class ReplyReader:
    """Reads the replies of one connection, one at a time; its public names are also what the parser calls."""

    __slots__ = (
        "_begun",
        "_checksum",
        "_done",
        "_framed",
        "_headed",
        "_parser",
        "_parts",
        "_spoilt",
        "_status",
    )

    _begun: bool  # a byte of the answer has come
    _headed: bool  # its head has come
    _framed: bool  # the head says where it ends
    _done: bool  # all of it has come
    _spoilt: bool  # nothing after it can be made sense of
    _status: int
    _checksum: str | None
    _parts: list[bytes]

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._spoilt = False
        self._forget()

    @property
    def begun(self) -> bool:
        """Whether a byte of the answer has come."""
        return self._begun

    @property
    def reusable(self) -> bool:
        """Whether the connection can be asked again, once the reply is taken."""
        return not self._spoilt

    def feed(self, endpoint: str, data: bytes) -> bool:
        """Take bytes, and tell whether the answer is whole; refuse what is no HTTP."""
        if not self._begun:
            self._begun = True
            if data.startswith(_TLS_ALERT):
                raise EndpointUnreachable(endpoint, "it answers in TLS; does it speak https://?")
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._spoilt = True
            if not self._done:
                raise AnswerUnreadable(endpoint, self._status or None) from error
        return self._done

    def end(self) -> bool:
        """Take the end of the connection, and tell whether the answer is whole with it."""
        self._spoilt = True
        if self._headed and not self._framed:  # its length is told by the end alone
            self._done = True
        return self._done

    def take(self) -> Reply:
        """Return the reply that is whole, and be ready for the next."""
        parts = self._parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        reply = Reply(self._status, body, self._checksum)
        self._forget()
        return reply

    def _forget(self) -> None:
        self._begun = False
        self._headed = False
        self._done = False
        self._framed = False
        self._status = 0
        self._checksum = None
        self._parts = []

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Begin a reply; one that follows the answer was not asked for."""
        if self._done:
            self._spoilt = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, if it is one of those that matter."""
        if self._done:
            return
        size = len(name)
        if size == 11:
            if name.lower() == b"x-amz-crc32":
                self._checksum = value.decode("latin-1")
        elif size == 14:
            if name.lower() == b"content-length":
                self._framed = True
        elif size == 17 and name.lower() == b"transfer-encoding":
            self._framed = True

    def on_headers_complete(self) -> None:
        """Note the status."""
        if not self._done:
            self._status = self._parser.get_status_code()
            self._headed = self._status >= _INTERIM

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        if not self._done:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        """Note that the answer is whole, unless it was only said that it will come."""
        if not self._headed:
            self._framed = False
            return
        self._done = True
        if not self._parser.should_keep_alive():
            self._spoilt = True


def unanswered(endpoint: str, *, begun: bool, sent: bool = True) -> BackendError:
    """Return the error for a connection that ended before the answer was whole."""
    if begun:
        return EndpointUnreachable(endpoint, "the connection was closed in the middle of the answer")
    hint = "; does it speak https://?" if endpoint.startswith("http:") else ""
    return EndpointUnreachable(endpoint, f"the connection was closed without an answer{hint}", sent=sent)


def too_late(endpoint: str, timeout_s: float) -> BackendError:
    """Return the error for an answer that took too long."""
    return EndpointUnreachable(endpoint, f"the answer was not whole within {timeout_s:g} s")
