"""Serve an application on a port, from opening the socket to the last response.

`serve` is for a program that does nothing else, `serving` for one whose loop is already running. The socket is opened before
the application starts, so that a taken port is reported at once; the application is closed after its last response.
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

DRAIN_S = 10  # how long answers under way may take once it is asked to stop
CANCEL_ON_DISCONNECT = "tavola.may_leave"
_BACKLOG = 1024


class AddressTaken(TavolaError):
    """An address that cannot be listened on: another program does, or it is not this machine's."""

    kind = ErrorKind.IN_USE

    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        super().__init__(f"Cannot listen on port {port} of {host}: {reason}.")


@dataclass(frozen=True, slots=True)
class Address:
    """Where an application listens."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The URL for a browser; what listens on every address is reached on this machine's own."""
        host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


class RunningServer:
    """An application that is being served."""

    def __init__(self, address: Address, server: uvicorn.Server) -> None:
        self.address = address
        self._server = server

    @property
    def url(self) -> str:
        """The URL for a browser."""
        return self.address.url

    def stop_now(self) -> None:
        """Stop, and do not wait for slow clients: their connections are cut."""
        self._server.should_exit = True
        self._server.force_exit = True
        for connection in list(self._server.server_state.connections):
            with suppress(AttributeError):  # one that was never made whole
                connection.transport.abort()


def serve(
    application: Starlette,
    host: str = "127.0.0.1",
    port: int = 8001,
    *,
    ready: Callable[[Address], None] = lambda _: None,
) -> None:
    """Answer until the process is asked to end (SIGTERM or SIGINT); then finish what is under way.

    `ready` is called once the application answers. A second signal does not wait for slow clients.
    """
    factory = uvicorn.Config(application).get_loop_factory()
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(_serve(application, host, port, ready))


async def _serve(application: Starlette, host: str, port: int, ready: Callable[[Address], None]) -> None:
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    under_way: list[RunningServer] = []

    def end() -> None:
        for each in under_way if asked.is_set() else ():
            each.stop_now()
        asked.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    async with running_server(application, host, port) as served:
        under_way.append(served)
        ready(served.address)
        await asked.wait()


@asynccontextmanager
async def running_server(
    application: Starlette, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[RunningServer]:
    """Serve on the running loop while the block runs; port 0 takes a free one. Signals are left to the caller.

    What the application raises while it starts is raised here.
    """
    sockets = open_sockets(host, port)
    try:
        ending = asyncio.Event()
        server = _Server(_uvicorn_config(_DisconnectOnShutdown(application, ending)))
        async with application.router.lifespan_context(application):
            task = asyncio.create_task(server.serve(sockets=sockets), name="serving")
            try:
                await server.answering.wait()
                yield RunningServer(Address(host, sockets[0].getsockname()[1]), server)
            finally:
                ending.set()
                server.should_exit = True
                await task
    finally:
        for each in sockets:
            each.close()


class _DisconnectOnShutdown:
    """ASGI: tells a stream of events that its client is gone once serving ends, for it would go on for ever.

    It tells the same to whoever put `MAY_LEAVE` into the scope: its answer is not worth waiting for.
    """

    def __init__(self, app: ASGIApp, ending: asyncio.Event) -> None:
        self.app = app
        self.ending = ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        events = open_ = False

        async def sent(message: Message) -> None:
            nonlocal events, open_
            if message["type"] == "http.response.start":
                events = _is_event_stream(message)
            open_ = message["type"] == "http.response.start" or bool(message.get("more_body"))
            await send(message)

        async def received() -> Message:
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

        await self.app(scope, received, sent)
        if events and open_ and self.ending.is_set():
            await send({"type": "http.response.body", "body": b""})  # else uvicorn takes it for a mistake


def _is_event_stream(start: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in start.get("headers", ())
    )


def _uvicorn_config(application: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http="httptools",
        lifespan="off",  # it is entered here, so that its errors are not lost in a log
        log_config=None,
        access_log=False,  # a query string may hold what nobody should read in a log
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=DRAIN_S,
    )


class _Server(uvicorn.Server):
    """uvicorn's server, which leaves signals alone and tells when it answers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answering = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take none: who runs the loop decides when it ends."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        try:
            await super().startup(sockets)
        finally:
            self.answering.set()


def open_sockets(host: str, port: int) -> list[socket.socket]:
    """Return listening sockets on every address of a host, all on one port; port 0 takes a free one."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError, OverflowError) as error:
        raise AddressTaken(host, port, getattr(error, "strerror", None) or str(error)) from error
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            listening = socket.socket(family, kind, protocol)
            sockets.append(listening)
            listening.setblocking(False)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:  # else `::` would take the IPv4 port too
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            chosen = sockets[0].getsockname()[1] if port == 0 and len(sockets) > 1 else port
            listening.bind((address[0], chosen, *address[2:]))
            listening.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        for opened in sockets:
            opened.close()
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            reason = "another program does; stop that one, or choose another port (0 takes a free one)"
            raise AddressTaken(host, port, reason) from error
        raise AddressTaken(host, port, getattr(error, "strerror", None) or str(error)) from error
    return sockets
