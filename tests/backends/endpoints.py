"""Endpoints for tests of backends: a fixed response, a scripted behaviour, a port without a listener.

And three kinds of backend: blocking, on asyncio's loop and on uvloop's.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import zlib
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Protocol, TypeVar

import uvloop

from tavola.backends.async_http import AsyncHttpBackend
from tavola.backends.configuration import Configuration, LocalConfiguration
from tavola.backends.http import HttpBackend
from tavola.errors import TavolaError

PATIENCE_S = 10.0  # after which what does not come is a failure

T = TypeVar("T")


@dataclass
class FixedEndpoint:
    """An endpoint with one response to every request; it records the requests."""

    url: str = ""
    status: int = 200
    body: bytes = b"{}"
    checksum: str | None = None  # None: the right one
    requests: list[tuple[Message, bytes]] = field(default_factory=list)


@contextmanager
def serve_fixed(**response: object) -> Iterator[FixedEndpoint]:
    """Serve one fixed response on a free port of this machine."""
    answer = FixedEndpoint(**response)  # type: ignore[arg-type]  # the dataclass names its own fields

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer.requests.append((self.headers, body))
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(answer.body)))
            self.send_header("x-amz-crc32", answer.checksum or str(zlib.crc32(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        answer.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield answer
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def deserted() -> Iterator[str]:
    """Yield a URL of this machine whose port is bound without a listener."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@dataclass
class Scripted:
    """An endpoint that runs a behaviour on each connection; it records complete requests."""

    url: str = ""
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)
    ended: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))  # a behaviour is over

    def bodies(self) -> list[bytes]:
        """Return the bodies of the requests."""
        return [request.partition(b"\r\n\r\n")[2] for request in self.requests]

    def wait(self) -> None:
        """Wait until a behaviour is over, and its connection closed."""
        assert self.ended.acquire(timeout=PATIENCE_S)


class Peer:
    """One connection, as the endpoint sees it."""

    def __init__(self, connected: socket.socket, script: Scripted, number: int) -> None:
        self.socket = connected
        self.number = number  # of the connection, from 0
        self._script = script

    def read(self) -> bytes | None:
        """Read one request and return its body; None: the client has closed."""
        read = b""
        while b"\r\n\r\n" not in read:
            data = self.socket.recv(1 << 16)
            if not data:
                return None
            read += data
        head, _, body = read.partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(body) < size:
            body += self.socket.recv(1 << 16)
        self._script.requests.append(head + b"\r\n\r\n" + body)
        return body

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def answer(self) -> bool:
        """Read a request and answer it with its own body; return whether there was one."""
        body = self.read()
        if body is None:
            return False
        self.send(response(body))
        return True


def response(body: bytes = b"{}", *headers: str) -> bytes:
    """Return an answer as DynamoDB writes it."""
    lines = "".join(f"{line}\r\n" for line in (f"Content-Length: {len(body)}", *headers))
    return f"HTTP/1.1 200 OK\r\n{lines}x-amz-crc32: {zlib.crc32(body)}\r\n\r\n".encode() + body


@contextmanager
def scripted(behave: Callable[[Peer], object]) -> Iterator[Scripted]:
    """Serve on a free port; each connection is passed to a behaviour on a thread, and closed after it."""
    script = Scripted()
    opened: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def run(peer: Peer) -> None:
        with suppress(OSError), peer.socket:
            behave(peer)
        script.ended.release()

    def accept() -> None:
        with suppress(OSError):
            while True:
                connected, _ = listening.accept()
                opened.append(connected)
                peer = Peer(connected, script, script.connections)
                script.connections += 1
                threads.append(threading.Thread(target=run, args=(peer,), daemon=True))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        script.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield script
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for connected in opened:
                with suppress(OSError):
                    connected.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()


def echo(peer: Peer) -> None:
    """Answer every request with its own body until the connection ends."""
    while peer.answer():
        pass


class Shell(Protocol):
    """A backend over HTTP, called in a blocking way whichever kind it is."""

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]: ...

    def call_all(
        self, calls: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> list[dict[str, Any] | TavolaError]: ...

    def close(self) -> None: ...


class OnLoop:
    """An asynchronous backend on a private loop, which runs during each call."""

    def __init__(
        self, backend: AsyncHttpBackend, loop: Callable[[], asyncio.AbstractEventLoop] | None = None
    ) -> None:
        self.backend = backend
        self._runner = asyncio.Runner(loop_factory=loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what comes of a coroutine."""
        return self._runner.run(work)

    def call(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        return self.run(self.backend.call(operation, request))

    def call_all(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any] | TavolaError]:
        return self.run(self.backend.call_all(calls))

    def close(self) -> None:
        self.run(self.backend.close())
        self._runner.close()


SHELLS = ("waiting", "asyncio", "uvloop")


@contextmanager
def open_backend(shell: str, where: str | Configuration, **settings: Any) -> Iterator[Shell]:
    """Yield a backend over HTTP of one of the three kinds, and close it."""
    configuration = LocalConfiguration(where) if isinstance(where, str) else where
    backend: Shell
    match shell:
        case "waiting":
            backend = HttpBackend(configuration, **settings)
        case "asyncio":
            backend = OnLoop(AsyncHttpBackend(configuration, **settings))
        case _:
            backend = OnLoop(AsyncHttpBackend(configuration, **settings), uvloop.new_event_loop)
    try:
        yield backend
    finally:
        backend.close()
