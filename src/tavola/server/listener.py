"""Server: opens the port, serves an engine on it, and shuts down.

The engine is called on the event loop itself, one request at a time. Timers of the same loop check deadlines, update the
Date header and run background work.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future

from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.server.connection import ClientConnection
from tavola.server.dispatch import Dispatch
from tavola.server.endpoint import ServerEndpoint
from tavola.server.errors import AddressInUse, AddressUnusable
from tavola.server.failure_log import FailureLog
from tavola.server.hosts import Hosts
from tavola.server.memory import MemoryBudget
from tavola.server.responses import PendingWork, ResponseEncoder, ResponseQueue, ServedEngine
from tavola.server.safeguards import NO_SAFEGUARDS, Safeguards, ServerLimits
from tavola.server.service import Service
from tavola.server.turns import TurnQueue

new_loop: Callable[[], asyncio.AbstractEventLoop]
try:  # a third faster than the loop of the standard library, which is used where uvloop is missing
    import uvloop

    new_loop = uvloop.new_event_loop
except ImportError:  # pragma: no cover - Windows and PyPy
    new_loop = asyncio.new_event_loop

if sys.platform != "win32":
    import resource

_log = logging.getLogger("tavola.server")

BACKGROUND_SLICE_MS = 5.0
BACKGROUND_BUSY_SLICE_MS = 0.5  # while clients are active, so that none waits long
BACKGROUND_BUSY_DELAY_S = 0.001  # with work left and clients active: they get at least half of the time
BACKGROUND_IDLE_DELAY_S = 0.1
_COLLECTION_INTERVAL_S = 30.0
_GC_THRESHOLDS = (700, 10, 20_000)
_BACKLOG = 1024
_OTHER_FILES = 64  # open files of the process other than its connections
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
        self._failures = FailureLog()
        self._limits = limits
        self._safeguards = safeguards
        self._hosts = Hosts(
            host, safeguards.hosts, verified=safeguards.callers is not None, origins=safeguards.origins
        )
        self._sockets = open_sockets(host, port)
        secure = safeguards.tls is not None
        self.endpoint = ServerEndpoint(host, self._sockets[0].getsockname()[1], secure)
        self._servers: list[asyncio.Server] = []
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._seen_response_count = 0  # at the last background work
        self._clients_active = False  # between the last two rounds of background work

    async def start(self) -> None:
        """Start accepting connections."""
        loop = asyncio.get_running_loop()
        safeguards = self._safeguards
        budget = MemoryBudget(self._limits.buffer_bytes_max)
        responses = ResponseQueue(self._engine, self._encoder, loop, safeguards.log, self._failures, budget)
        dispatch = Dispatch(
            self._engine,
            self._encoder,
            responses.open_group,
            hosts=self._hosts,
            callers=safeguards.callers,
            log=safeguards.log,
            failures=self._failures,
            clock=self._clock,
        )
        if safeguards.log is not None:
            safeguards.log.attach(loop, lambda: responses.group_is_open)
        work = PendingWork(loop, responses, self._limits.pending_max)
        turns = TurnQueue(loop, self._limits.turn_s)
        service = self._service = Service(loop, self._encoder, dispatch, responses, work, turns, self._limits)
        for listening in self._sockets:
            self._servers.append(
                await loop.create_server(
                    lambda: ClientConnection(service),
                    sock=listening,
                    backlog=_BACKLOG,
                    ssl=safeguards.tls,
                    ssl_handshake_timeout=None if safeguards.tls is None else self._limits.head_s,
                    ssl_shutdown_timeout=None if safeguards.tls is None else self._limits.response_s,
                )
            )
        self._swept_s = self._collected_s = loop.time()
        self._sweep()
        self._run_background_work()

    async def stop(self) -> None:
        """Accept no more connections, finish requests in progress within `stop_s`, and cancel the timers."""
        service = self._service
        service.stopping = True
        for server in self._servers:
            server.close()
        for connection in tuple(service.connections):
            connection.close_when_idle()
        deadline_s = service.loop.time() + self._limits.stop_s
        while service.connections and service.loop.time() < deadline_s:
            await asyncio.sleep(0.01)
        for connection in tuple(service.connections):
            connection.abort()
        for timer in self._timers.values():
            timer.cancel()
        service.responses.commit_and_send()
        await asyncio.sleep(0)  # let the aborted transports call `connection_lost`

    def close(self) -> None:
        """Close the port of a server that was never started."""
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
        if late:  # the loop was busy, and data that clients sent meanwhile is still unread
            return
        for connection in tuple(service.connections):
            connection.sweep(now_s)
        if (
            gc.get_threshold() == _GC_THRESHOLDS  # this process avoids full collections otherwise
            and service.work.is_idle
            and now_s - self._collected_s >= _COLLECTION_INTERVAL_S
        ):
            self._collected_s = now_s
            gc.collect()

    def _run_background_work(self) -> None:
        service = self._service
        has_more = False
        try:
            slice_ms = BACKGROUND_BUSY_SLICE_MS if self._clients_active else BACKGROUND_SLICE_MS
            has_more = self._engine.run_background_work(slice_ms)
        except Exception:  # noqa: BLE001 - the server goes on even if background work fails
            _log.exception("Background work failed; it will be retried.")
        self._failures.update(self._engine.unready_reason)
        clients_active = self._clients_active = service.responses.response_count != self._seen_response_count
        self._seen_response_count = service.responses.response_count
        delay_s = BACKGROUND_IDLE_DELAY_S
        if has_more:
            delay_s = BACKGROUND_BUSY_DELAY_S if clients_active else 0.0
        self._timers["background"] = service.loop.call_later(delay_s, self._run_background_work)


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
    """Serve until SIGTERM or SIGINT, then finish the requests in progress.

    `ready` is called once the port is open. A second signal stops without waiting for slow clients. The caller closes
    the engine.
    """
    server = Server(
        engine, host=host, port=port, limits=limits, safeguards=safeguards, clock=clock, entropy=entropy
    )
    allow_files(limits.connections_max + _OTHER_FILES)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve(server, ready))


async def _serve(server: Server, ready: Callable[[ServerEndpoint], None]) -> None:
    loop = asyncio.get_running_loop()
    signalled = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled.set)
    await server.start()
    avoid_full_collections()
    ready(server.endpoint)
    await signalled.wait()
    signalled.clear()
    stopping = asyncio.ensure_future(server.stop())
    second_signal = asyncio.ensure_future(signalled.wait())
    await asyncio.wait({stopping, second_signal}, return_when=asyncio.FIRST_COMPLETED)
    second_signal.cancel()


def avoid_full_collections() -> None:
    """Make full garbage collections rare in a process that only serves; the server makes them while it is idle.

    One takes 25 ms with the objects of the program itself, which live until the end, and 50 ms more while a large request is
    processed. Requests leave no cycles, and what a closed connection leaves can wait.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


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
    """Serve from a background thread while the block runs: for tests, and for programs with an engine of their own."""
    server = Server(
        engine, host=host, port=port, limits=limits, safeguards=safeguards, clock=clock, entropy=entropy
    )
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve_until_end() -> None:
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
            runner.run(serve_until_end())

    thread = threading.Thread(target=main, name="tavola-server", daemon=True)
    thread.start()
    loop, end = started.result()
    try:
        yield server.endpoint
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()


def open_sockets(host: str, port: int) -> list[socket.socket]:
    """Return listening sockets on every address of a host, all on one port; port 0 picks a free one."""
    try:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError, OverflowError) as error:
        raise AddressUnusable(host, port, getattr(error, "strerror", None) or str(error)) from error
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(addresses):
            listening = socket.socket(family, kind, protocol)
            sockets.append(listening)
            listening.setblocking(False)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:  # otherwise `::` takes the IPv4 port too, and the next bind fails
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


def allow_files(count: int) -> None:
    """Raise this process's limit on open files to `count`, or as far as the hard limit allows."""
    if sys.platform == "win32":  # has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
