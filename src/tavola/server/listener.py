"""Server: an engine listening on a port, from its first socket to its last answer.

The engine is called on the loop itself, so one request at a time; deadlines, the date and background work
hang on timers of the same loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future

from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.server.connection import ClientConnection, Service
from tavola.server.dispatch import Dispatch
from tavola.server.endpoint import ServerEndpoint
from tavola.server.errors import AddressInUse, AddressUnusable
from tavola.server.hosts import Hosts
from tavola.server.responses import ResponseEncoder, ResponseQueue, ServedEngine
from tavola.server.safeguards import NO_SAFEGUARDS, Safeguards, ServerLimits

new_loop: Callable[[], asyncio.AbstractEventLoop]
try:  # a third faster; the loop of the standard library does the same where it is missing
    import uvloop

    new_loop = uvloop.new_event_loop
except ImportError:  # pragma: no cover - Windows and PyPy
    new_loop = asyncio.new_event_loop

if sys.platform != "win32":
    import resource

_log = logging.getLogger("tavola.server")

BACKGROUND_SLICE_MS = 5.0
BACKGROUND_BUSY_DELAY_S = 0.005  # while there is more to do and clients ask: half of the time is theirs
BACKGROUND_IDLE_DELAY_S = 0.1
_BACKLOG = 1024
_FILES_BESIDE = 64  # what the process has open beside its connections
_DEFAULT_LIMITS = ServerLimits()


class Server:
    """Serves one engine; start and stop it inside its loop."""

    def __init__(
        self,
        engine: ServedEngine,
        *,
        host: str = "127.0.0.1",
        port: int = 8000,
        limits: ServerLimits = _DEFAULT_LIMITS,
        safeguards: Safeguards = NO_SAFEGUARDS,
        clock: Clock = SYSTEM_CLOCK,
        entropy: Entropy = SYSTEM_ENTROPY,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._encoder = ResponseEncoder(clock, entropy)
        self._limits = limits
        self._safeguards = safeguards
        self._hosts = Hosts(host, safeguards.hosts, verified=safeguards.callers is not None)
        self._sockets = open_sockets(host, port)
        secure = safeguards.tls is not None
        self.endpoint = ServerEndpoint(host, self._sockets[0].getsockname()[1], secure)
        self._servers: list[asyncio.Server] = []
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._answered = 0  # answers when the engine was last tended

    async def start(self) -> None:
        """Begin to answer."""
        loop = asyncio.get_running_loop()
        guarded = self._safeguards
        commits = ResponseQueue(self._engine, self._encoder, loop, guarded.log)
        dispatch = Dispatch(
            self._engine,
            self._encoder,
            commits.open_group,
            hosts=self._hosts,
            callers=guarded.callers,
            log=guarded.log,
            clock=self._clock,
        )
        if guarded.log is not None:
            guarded.log.attach(loop, lambda: commits.group_is_open)
        service = self._service = Service(loop, self._encoder, dispatch, commits, self._limits)
        for listening in self._sockets:
            self._servers.append(
                await loop.create_server(
                    lambda: ClientConnection(service),
                    sock=listening,
                    backlog=_BACKLOG,
                    ssl=guarded.tls,
                    ssl_handshake_timeout=None if guarded.tls is None else self._limits.head_s,
                    ssl_shutdown_timeout=None if guarded.tls is None else self._limits.response_s,
                )
            )
        self._swept_s = loop.time()
        self._sweep()
        self._run_background_work()

    async def stop(self) -> None:
        """Take no more clients, answer what is under way for a few seconds, and let the timers go."""
        service = self._service
        service.stopping = True
        for server in self._servers:
            server.close()
        for connection in tuple(service.connections):
            connection.close_when_idle()
        patience_s = service.loop.time() + self._limits.stop_s
        while service.connections and service.loop.time() < patience_s:
            await asyncio.sleep(0.01)
        for connection in tuple(service.connections):
            connection.abort()
        for timer in self._timers.values():
            timer.cancel()
        service.responses.commit_and_send()
        await asyncio.sleep(0)  # the transports that were cut call back

    def close(self) -> None:
        """Let the port go, of a server that was never started."""
        for listening in self._sockets:
            listening.close()

    def _sweep(self) -> None:
        service = self._service
        self._timers["sweep"] = service.loop.call_later(self._limits.sweep_interval_s, self._sweep)
        self._encoder.refresh_date()
        now_s = service.loop.time()
        late = now_s - self._swept_s > 4 * self._limits.sweep_interval_s
        self._swept_s = now_s
        if self._safeguards.callers is not None:
            self._safeguards.callers.refresh()
        if late:  # the loop itself was busy; what clients sent meanwhile has not been read yet
            return
        for connection in tuple(service.connections):
            connection.sweep(now_s)

    def _run_background_work(self) -> None:
        service = self._service
        more = False
        try:
            more = self._engine.run_background_work(BACKGROUND_SLICE_MS)
        except Exception:  # noqa: BLE001 - clients are served whatever becomes of the background work
            _log.exception("Background work failed; it is tried again.")
        asked, self._answered = (
            service.responses.response_count != self._answered,
            service.responses.response_count,
        )
        delay_s = BACKGROUND_IDLE_DELAY_S
        if more:
            delay_s = BACKGROUND_BUSY_DELAY_S if asked else 0.0
        self._timers["tend"] = service.loop.call_later(delay_s, self._run_background_work)


def serve(
    engine: ServedEngine,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: ServerLimits = _DEFAULT_LIMITS,
    safeguards: Safeguards = NO_SAFEGUARDS,
    clock: Clock = SYSTEM_CLOCK,
    entropy: Entropy = SYSTEM_ENTROPY,
    ready: Callable[[ServerEndpoint], None] = lambda _endpoint: None,
) -> None:
    """Answer until the process is asked to end (SIGTERM or SIGINT); then finish what is under way.

    `ready` is called once the port is open. A second signal does not wait for slow clients. The engine is
    left open: who opened it closes it.
    """
    server = Server(
        engine, host=host, port=port, limits=limits, safeguards=safeguards, clock=clock, entropy=entropy
    )
    allow_files(limits.connections_max + _FILES_BESIDE)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve(server, ready))


async def _serve(server: Server, ready: Callable[[ServerEndpoint], None]) -> None:
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    await server.start()
    ready(server.endpoint)
    await asked.wait()
    asked.clear()
    stopping = asyncio.ensure_future(server.stop())
    hurried = asyncio.ensure_future(asked.wait())
    await asyncio.wait({stopping, hurried}, return_when=asyncio.FIRST_COMPLETED)
    hurried.cancel()


@contextlib.contextmanager
def running(
    engine: ServedEngine,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    limits: ServerLimits = _DEFAULT_LIMITS,
    safeguards: Safeguards = NO_SAFEGUARDS,
    clock: Clock = SYSTEM_CLOCK,
    entropy: Entropy = SYSTEM_ENTROPY,
) -> Iterator[ServerEndpoint]:
    """Serve from a thread of its own while the block runs: for tests, and for a program beside its data."""
    server = Server(
        engine, host=host, port=port, limits=limits, safeguards=safeguards, clock=clock, entropy=entropy
    )
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def live() -> None:
        end = asyncio.Event()
        try:
            await server.start()
        except BaseException as error:
            started.set_exception(error)
            raise
        started.set_result((asyncio.get_running_loop(), end))
        await end.wait()
        await server.stop()

    def main() -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(live())

    thread = threading.Thread(target=main, name="tavola-server", daemon=True)
    thread.start()
    loop, end = started.result()
    try:
        yield server.endpoint
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()


def open_sockets(host: str, port: int) -> list[socket.socket]:
    """Return listening sockets on every address of a host, all on one port; port 0 takes a free one."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError, OverflowError) as error:
        raise AddressUnusable(host, port, getattr(error, "strerror", None) or str(error)) from error
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            listening = socket.socket(family, kind, protocol)
            sockets.append(listening)
            listening.setblocking(False)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:  # else `::` would take the IPv4 port too, and the next bind fail
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            chosen = sockets[0].getsockname()[1] if port == 0 and len(sockets) > 1 else port
            listening.bind((address[0], chosen, *address[2:]))
            listening.listen(_BACKLOG)
    except OSError as error:
        for opened in sockets:
            opened.close()
        if error.errno == errno.EADDRINUSE:
            raise AddressInUse(host, port) from error
        raise AddressUnusable(host, port, error.strerror or str(error)) from error
    return sockets


def allow_files(wanted: int) -> None:
    """Raise the number of files that this process may open, as far as it may do so itself."""
    if sys.platform == "win32":  # it has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
