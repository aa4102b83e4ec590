"""Serve an application on a port, from opening the socket to the last response.

`serve` is for a program that does nothing else, `running_server` for one with a running event loop. The socket is opened before
the application starts, so that a port in use is reported at once; the application is closed after its last response.
"""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tavola.errors import ErrorKind, TavolaError

DRAIN_S = 10  # for requests in progress when the server stops
CANCEL_ON_DISCONNECT = "tavola.cancel_on_disconnect"  # scope key: end this request when the server stops
_BACKLOG = 1024


class AddressTaken(TavolaError):
    """The server cannot listen on this address: it is in use, or not an address of this machine."""

    def __init__(self, host: str, port: int, reason: str, *, in_use: bool = False) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        self.kind = ErrorKind.IN_USE if in_use else ErrorKind.UNAVAILABLE
        self.remedy = (
            "Choose another port with --port; 0 picks a free port."
            if in_use
            else "Choose an address of this machine with --host, or another --port."
        )
        super().__init__(f"Cannot listen on port {port} of {host}: {reason}.")


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where an application listens."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The URL for a browser; a wildcard address becomes the loopback address."""
        host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


class RunningServer:
    """An application that is being served."""

    def __init__(self, address: ListenAddress, server: uvicorn.Server) -> None:
        self.address = address
        self._server = server

    @property
    def url(self) -> str:
        """The URL for a browser."""
        return self.address.url

    def stop_now(self) -> None:
        """Stop at once: connections of slow clients are aborted."""
        self._server.should_exit = True
        self._server.force_exit = True
        for connection in list(self._server.server_state.connections):
            with suppress(AttributeError):  # a connection without a transport yet
                connection.transport.abort()


def serve(
    application: Starlette,
    host: str = "127.0.0.1",
    port: int = 8001,
    *,
    ready: Callable[[ListenAddress], None] = lambda _: None,
) -> None:
    """Serve until SIGTERM or SIGINT, then finish the requests in progress.

    `ready` is called once the application accepts requests. A second signal aborts slow clients.
    """
    factory = uvicorn.Config(application).get_loop_factory()
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(_serve(application, host, port, ready))


async def _serve(
    application: Starlette, host: str, port: int, ready: Callable[[ListenAddress], None]
) -> None:
    loop = asyncio.get_running_loop()
    stop_requested = asyncio.Event()
    running: list[RunningServer] = []

    def end() -> None:
        for server in running if stop_requested.is_set() else ():
            server.stop_now()
        stop_requested.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    async with running_server(application, host, port) as served:
        running.append(served)
        ready(served.address)
        await stop_requested.wait()


@asynccontextmanager
async def running_server(
    application: Starlette, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[RunningServer]:
    """Serve on the running loop while the block runs; port 0 takes a free one. Signals are left to the caller.

    Exceptions of the application's startup are raised here.
    """
    sockets = open_sockets(host, port)
    try:
        ending = asyncio.Event()
        server = _Server(_uvicorn_config(_DisconnectOnShutdown(application, ending)))
        async with application.router.lifespan_context(application):
            task = asyncio.create_task(server.serve(sockets=sockets), name="serving")
            try:
                await server.answering.wait()
                yield RunningServer(ListenAddress(host, sockets[0].getsockname()[1]), server)
            finally:
                ending.set()
                server.should_exit = True
                await task
    finally:
        for listener in sockets:
            listener.close()


class _DisconnectOnShutdown:
    """ASGI middleware: reports a disconnect to event streams when the server stops, because they would never end.

    Requests with `CANCEL_ON_DISCONNECT` in their scope are ended in the same way.
    """

    def __init__(self, app: ASGIApp, ending: asyncio.Event) -> None:
        self.app = app
        self.ending = ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        events = open_ = False

        async def send_and_note(message: Message) -> None:
            nonlocal events, open_
            if message["type"] == "http.response.start":
                events = _is_event_stream(message)
            open_ = message["type"] == "http.response.start" or bool(message.get("more_body"))
            await send(message)

        async def receive_or_disconnect() -> Message:
            waiting = asyncio.ensure_future(receive())
            ended = asyncio.ensure_future(self.ending.wait())
            try:
                await asyncio.wait({waiting, ended}, return_when=asyncio.FIRST_COMPLETED)
                if not waiting.done() and (events or scope.get(CANCEL_ON_DISCONNECT)):
                    return {"type": "http.disconnect"}
                return await waiting
            finally:
                waiting.cancel()
                ended.cancel()

        await self.app(scope, receive_or_disconnect, send_and_note)
        if events and open_ and self.ending.is_set():
            # Otherwise uvicorn reports an incomplete response
            await send({"type": "http.response.body", "body": b""})


def _is_event_stream(start: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in start.get("headers", ())
    )


def _uvicorn_config(application: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http="httptools",
        lifespan="off",  # entered by running_server, so that startup errors are raised
        log_config=None,
        access_log=False,  # query strings may hold personal data
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=DRAIN_S,
    )


class _Server(uvicorn.Server):
    """uvicorn's server without signal handlers; `answering` is set once it accepts requests."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answering = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and set `answering`."""
        try:
            await super().startup(sockets)
        finally:
            self.answering.set()


def open_sockets(host: str, port: int) -> list[socket.socket]:
    """Return listening sockets on every address of a host, all on one port; port 0 takes a free one."""
    try:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError, OverflowError) as error:
        raise AddressTaken(host, port, getattr(error, "strerror", None) or str(error)) from error
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(addresses):
            listening = socket.socket(family, kind, protocol)
            sockets.append(listening)
            listening.setblocking(False)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:  # otherwise `::` would also take the IPv4 port
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            chosen = sockets[0].getsockname()[1] if port == 0 and len(sockets) > 1 else port
            listening.bind((address[0], chosen, *address[2:]))
            listening.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        for opened in sockets:
            opened.close()
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise AddressTaken(host, port, "another program is using it", in_use=True) from error
        raise AddressTaken(host, port, getattr(error, "strerror", None) or str(error)) from error
    return sockets
