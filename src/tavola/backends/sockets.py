"""Socket transport: a pool of connections to one endpoint, shared by threads.

HTTP/1.1 with one request at a time on a connection, sent in one write. An idle connection is checked before it is used: if the
endpoint has closed it or sent something, another one is used, and nothing was sent. A connection may still be closed while the
request is being sent. Then the rules of `Transport.send` apply: an endpoint acts only on complete requests, so an incomplete one
is sent again; a complete one may have been executed, so it is sent again only if it just reads.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import weakref
from typing import Protocol

from tavola.backends.configuration import CONNECT_TIMEOUT_S, Address, ServiceEndpoint
from tavola.backends.errors import EndpointUnreachable, EndpointUntrusted
from tavola.backends.http_parser import HttpReply, ReplyReader, connection_ended, timed_out
from tavola.clock import monotonic

IDLE_CONNECTIONS_MAX = 64
IDLE_S_MAX = 50.0
"""Idle connections are not used after this time, because firewalls and proxies drop them silently."""

_RECEIVE_BYTES = 1 << 16


class ReusedConnectionLost(Exception):
    """A reused connection was closed before the first byte of the reply."""

    def __init__(self, sent: bool) -> None:
        self.sent = sent


class Poller(Protocol):
    """Checks a socket without blocking."""

    def poll(self, timeout: float, /) -> object:
        """Return a true value if there is something to read, or the connection has ended."""
        ...


class SocketTransport:
    """Sends requests to an endpoint over pooled connections; see `Transport`."""

    def __init__(self, endpoint: ServiceEndpoint, *, timeout_s: float) -> None:
        self._endpoint = endpoint
        self._timeout_s = timeout_s
        self._idle: list[_SocketConnection] = []  # the last used comes first; append and pop are atomic
        self._closed = False
        self._process = os.getpid()
        weakref.finalize(self, _close_all, self._idle)  # closes connections that the caller forgot

    def send(self, message: bytes, *, repeatable: bool) -> HttpReply:
        """Send a request and return the reply."""
        connection = self._take_idle()
        if connection is not None:
            try:
                return self._exchange(connection, message)
            except ReusedConnectionLost as lost:
                if lost.sent and not repeatable:
                    raise connection_ended(self._endpoint.address.url, has_bytes=False) from lost.__cause__
        return self._exchange(_SocketConnection.open(self._endpoint, self._timeout_s), message)

    def close(self) -> None:
        """Close the idle connections; those in use are closed after their reply."""
        self._closed = True
        _close_all(self._idle)

    def _take_idle(self) -> _SocketConnection | None:
        """Return an idle connection that is still open, if there is one."""
        if self._process != os.getpid():  # a fork: these belong to the parent
            self._process = os.getpid()
            _close_all(self._idle)
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.is_open():
                return connection
            connection.close()

    def _exchange(self, connection: _SocketConnection, message: bytes) -> HttpReply:
        try:
            reply = connection.exchange(message)
        except BaseException:  # part of a reply may be left in it
            connection.close()
            raise
        if connection.reusable and not self._closed and len(self._idle) < IDLE_CONNECTIONS_MAX:
            self._idle.append(connection)
        else:
            connection.close()
        return reply


class _SocketConnection:
    """One connection."""

    __slots__ = ("_address", "_idle_since_s", "_poller", "_reader", "_socket", "_timeout_s", "_used")

    def __init__(self, address: Address, connected: socket.socket, timeout_s: float) -> None:
        self._address = address
        self._socket = connected
        self._timeout_s = timeout_s
        self._reader = ReplyReader()
        self._poller = make_poller(connected.fileno())
        self._used = False
        self._idle_since_s = 0.0

    @classmethod
    def open(cls, endpoint: ServiceEndpoint, timeout_s: float) -> _SocketConnection:
        """Connect, or raise an error that says why it failed."""
        address = endpoint.address
        connected: socket.socket | None = None
        try:
            connected = socket.create_connection((address.host, address.port), CONNECT_TIMEOUT_S)
            # Large requests take several packets; the last one must not wait for an acknowledgement of the others.
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if endpoint.tls is not None:
                connected = endpoint.tls.wrap_socket(connected, server_hostname=address.host)
            connected.settimeout(timeout_s)
            return cls(address, connected, timeout_s)
        except BaseException as error:
            if connected is not None:
                connected.close()
            if isinstance(error, OSError | UnicodeError):
                raise connection_error(address, error) from error
            raise

    @property
    def reusable(self) -> bool:
        """Whether it can be used again after the last reply."""
        return self._reader.reusable

    def is_open(self) -> bool:
        """Return whether it is still open, as far as this side knows."""
        return monotonic() - self._idle_since_s < IDLE_S_MAX and not self._poller.poll(0)

    def exchange(self, message: bytes) -> HttpReply:
        """Send a request and return its reply."""
        reader = self._reader
        url = self._address.url
        sent = True
        try:
            self._socket.sendall(message)
        except OSError as error:
            if self._used:
                raise ReusedConnectionLost(sent=False) from error
            if isinstance(error, TimeoutError):
                raise EndpointUnreachable(url, "it does not accept the request", sent=False) from error
            sent = False  # it may have sent an error before it read everything
        start_s = monotonic()
        try:
            while True:
                data = self._socket.recv(_RECEIVE_BYTES)
                if not data:
                    if reader.end():
                        break
                    if self._used and not reader.has_bytes:
                        raise ReusedConnectionLost(sent=True)
                    raise connection_ended(url, has_bytes=reader.has_bytes, sent=sent)
                if reader.feed(url, data):
                    break
                left_s = start_s + self._timeout_s - monotonic()
                if left_s <= 0:
                    raise timed_out(url, self._timeout_s)
                self._socket.settimeout(left_s)
        except TimeoutError as error:
            raise timed_out(url, self._timeout_s) from error
        except OSError as error:
            if self._used and not reader.has_bytes:
                raise ReusedConnectionLost(sent=True) from error
            raise EndpointUnreachable(url, str(error), sent=sent) from error
        if not sent:
            reader.end()
        self._used = True
        self._idle_since_s = monotonic()
        if self._socket.gettimeout() != self._timeout_s:
            self._socket.settimeout(self._timeout_s)
        return reader.take()

    def close(self) -> None:
        """Close it."""
        self._socket.close()


def _close_all(connections: list[_SocketConnection]) -> None:
    while connections:
        connections.pop().close()


class _SelectPoller:
    """Replaces `select.poll` on systems without it."""

    def __init__(self, number: int) -> None:
        self._numbers = [number]

    def poll(self, timeout: float, /) -> object:
        """Return a non-empty list if there is something to read."""
        return select.select(self._numbers, (), (), timeout)[0]


def make_poller(number: int) -> Poller:
    """Return a poller for a socket by its file descriptor."""
    if not hasattr(select, "poll"):
        return _SelectPoller(number)
    poller = select.poll()
    poller.register(number, select.POLLIN)
    return poller


def connection_error(
    address: Address, error: OSError | UnicodeError
) -> EndpointUnreachable | EndpointUntrusted:
    """Return the error for a failed attempt to connect; nothing was sent."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return EndpointUntrusted(address.url, error.verify_message)
    if isinstance(error, ssl.SSLError):
        return EndpointUnreachable(address.url, f"{error.reason or error}; try http://", sent=False)
    if isinstance(error, TimeoutError):
        return EndpointUnreachable(address.url, f"no connection within {CONNECT_TIMEOUT_S:g} s", sent=False)
    return EndpointUnreachable(address.url, str(error), sent=False)
