"""Sockets: connections to one endpoint that are kept and used again, by any number of threads.

HTTP/1.1 with one request at a time on a connection, written at once. A connection that has been idle is looked at
before it is used: if the endpoint closed it, or said something unasked, another is taken, and nothing was sent. What
can still happen is that it closes while the request is on its way. Then the rules of `Transport.ask` hold: an endpoint
acts on whole requests alone, so one that could not be sent whole is sent again; one that was sent whole may have been
carried out, so it is sent again only if it just reads.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import weakref
from typing import Protocol

from tavola.backends.configuration import CONNECT_TIMEOUT_S, Address, Way
from tavola.backends.errors import EndpointUnreachable, EndpointUntrusted
from tavola.backends.replies import Reply, ReplyReader, too_late, unanswered
from tavola.clock import monotonic

IDLE_CONNECTIONS_MAX = 64
IDLE_S_MAX = 50.0
"""How long a connection may be idle and still be used: what stands between forgets connections without a word."""

_RECEIVE_BYTES = 1 << 16


class _Lost(Exception):
    """A connection that was used before ended, and no byte of the answer had come."""

    def __init__(self, sent: bool) -> None:
        self.sent = sent


class Quiet(Protocol):
    """Looks at a socket without waiting."""

    def poll(self, timeout: float, /) -> object:
        """Return something if there is something to read, be it the end."""
        ...


class SocketTransport:
    """Brings requests to an endpoint over kept connections; see `Transport`."""

    def __init__(self, way: Way, *, timeout_s: float) -> None:
        self._way = way
        self._timeout_s = timeout_s
        self._idle: list[_Line] = []  # the last used comes first; append and pop are one step for threads
        self._closed = False
        self._process = os.getpid()
        weakref.finalize(self, _close_all, self._idle)  # who forgets to close leaves nothing open

    def ask(self, message: bytes, *, repeatable: bool) -> Reply:
        """Return the reply to a request."""
        line = self._kept()
        if line is not None:
            try:
                return self._exchange(line, message)
            except _Lost as lost:
                if lost.sent and not repeatable:
                    raise unanswered(self._way.address.url, begun=False) from lost.__cause__
        return self._exchange(_Line.open(self._way, self._timeout_s), message)

    def close(self) -> None:
        """Close the idle connections; those in use close when they are answered."""
        self._closed = True
        _close_all(self._idle)

    def _kept(self) -> _Line | None:
        """Return a connection that was used before and is open still."""
        if self._process != os.getpid():  # a fork: the parent goes on with these
            self._process = os.getpid()
            _close_all(self._idle)
        while True:
            try:
                line = self._idle.pop()
            except IndexError:
                return None
            if line.usable():
                return line
            line.close()

    def _exchange(self, line: _Line, message: bytes) -> Reply:
        try:
            reply = line.exchange(message)
        except BaseException:  # half an answer may be left in it, whatever stopped us
            line.close()
            raise
        if line.reusable and not self._closed and len(self._idle) < IDLE_CONNECTIONS_MAX:
            self._idle.append(line)
        else:
            line.close()
        return reply


class _Line:
    """One connection."""

    __slots__ = ("_address", "_idle_since_s", "_quiet", "_reader", "_socket", "_timeout_s", "_used")

    def __init__(self, address: Address, connected: socket.socket, timeout_s: float) -> None:
        self._address = address
        self._socket = connected
        self._timeout_s = timeout_s
        self._reader = ReplyReader()
        self._quiet = watching(connected.fileno())
        self._used = False
        self._idle_since_s = 0.0

    @classmethod
    def open(cls, way: Way, timeout_s: float) -> _Line:
        """Connect; raise the error that tells why it cannot be."""
        address = way.address
        connected: socket.socket | None = None
        try:
            connected = socket.create_connection((address.host, address.port), CONNECT_TIMEOUT_S)
            # Large requests take several packets; the last must not wait for the others' acknowledgement.
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if way.trust is not None:
                connected = way.trust.wrap_socket(connected, server_hostname=address.host)
            connected.settimeout(timeout_s)
            return cls(address, connected, timeout_s)
        except BaseException as error:
            if connected is not None:
                connected.close()
            if isinstance(error, OSError | UnicodeError):
                raise refused(address, error) from error
            raise

    @property
    def reusable(self) -> bool:
        """Whether it can be asked again after what came last."""
        return self._reader.reusable

    def usable(self) -> bool:
        """Tell whether it is open still, as far as can be seen from here."""
        return monotonic() - self._idle_since_s < IDLE_S_MAX and not self._quiet.poll(0)

    def exchange(self, message: bytes) -> Reply:
        """Send a request and return its reply."""
        reader = self._reader
        url = self._address.url
        sent = True
        try:
            self._socket.sendall(message)
        except OSError as error:
            if self._used:
                raise _Lost(sent=False) from error
            if isinstance(error, TimeoutError):
                raise EndpointUnreachable(url, "it does not take the request", sent=False) from error
            sent = False  # it may have refused early, and said why
        start_s = monotonic()
        try:
            while True:
                data = self._socket.recv(_RECEIVE_BYTES)
                if not data:
                    if reader.end():
                        break
                    if self._used and not reader.begun:
                        raise _Lost(sent=True)
                    raise unanswered(url, begun=reader.begun, sent=sent)
                if reader.feed(url, data):
                    break
                left_s = start_s + self._timeout_s - monotonic()
                if left_s <= 0:
                    raise too_late(url, self._timeout_s)
                self._socket.settimeout(left_s)
        except TimeoutError as error:
            raise too_late(url, self._timeout_s) from error
        except OSError as error:
            if self._used and not reader.begun:
                raise _Lost(sent=True) from error
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


def _close_all(lines: list[_Line]) -> None:
    while lines:
        lines.pop().close()


class _Selecting:
    """What `select.poll` does, where there is none."""

    def __init__(self, number: int) -> None:
        self._numbers = [number]

    def poll(self, timeout: float, /) -> object:
        """Return the socket if there is something to read."""
        return select.select(self._numbers, (), (), timeout)[0]


def watching(number: int) -> Quiet:
    """Return what looks at a socket by its number."""
    if not hasattr(select, "poll"):
        return _Selecting(number)
    polling = select.poll()
    polling.register(number, select.POLLIN)
    return polling


def refused(address: Address, error: OSError | UnicodeError) -> EndpointUnreachable | EndpointUntrusted:
    """Return the error for an endpoint that could not be connected to; nothing was sent."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return EndpointUntrusted(address.url, error.verify_message)
    if isinstance(error, ssl.SSLError):
        told = f"{error.reason or error}; does it speak plain http://?"
        return EndpointUnreachable(address.url, told, sent=False)
    if isinstance(error, TimeoutError):
        return EndpointUnreachable(address.url, f"no connection within {CONNECT_TIMEOUT_S:g} s", sent=False)
    return EndpointUnreachable(address.url, str(error), sent=False)
