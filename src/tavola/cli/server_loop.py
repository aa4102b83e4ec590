"""Server loop: run an event loop that serves until a signal stops the process."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from tavola.errors import TavolaError

if TYPE_CHECKING:
    from tavola.engine import Engine

_SLICE_MS = 5.0
_PAUSE_BUSY_S = 0.005  # while background work remains
_PAUSE_IDLE_S = 0.1
_PAUSE_FAILED_S_MAX = 60.0
_HURRIED_STOP_S = 1.0  # how long stopping may take after a second signal

T = TypeVar("T")

_log = logging.getLogger("tavola.apps")


class StoppedBeforeServing(TavolaError):
    """The process was stopped while it was starting."""

    def __init__(self) -> None:
        super().__init__("Stopped while starting")


class ShutdownRequest:
    """A stop requested by signals: the first stops gracefully, the second at once; during start-up the first stops at once."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.hurried = asyncio.Event()
        self.ready = False
        self._hurry: list[Callable[[], None]] = []

    def on_hurry(self, hurry: Callable[[], None]) -> None:
        """Register a callback for a request to stop at once."""
        self._hurry.append(hurry)

    def handle_signal(self) -> None:
        """Handle a signal; after the second, slow clients are disconnected."""
        if not self.requested.is_set():
            self.requested.set()
            if self.ready:
                return
        self.hurried.set()
        for hurry in self._hurry:
            hurry()

    async def run_unless_hurried(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work that may take long; cancel it on a second signal."""
        working = asyncio.ensure_future(work)
        hurried = asyncio.ensure_future(self.hurried.wait())
        await asyncio.wait({working, hurried}, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


def run_until_signal(
    serving: Callable[[ShutdownRequest], AbstractAsyncContextManager[T]], ready: Callable[[T], None]
) -> None:
    """Serve until SIGTERM or SIGINT, then finish the requests in progress.

    `ready` is called with the context's value once it serves.
    """
    from tavola.server.listener import new_loop

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve_until_signal(serving, ready))


async def _serve_until_signal(
    serving: Callable[[ShutdownRequest], AbstractAsyncContextManager[T]], ready: Callable[[T], None]
) -> None:
    from tavola.server.listener import avoid_full_collections

    stopping = ShutdownRequest()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.handle_signal)

    async def serve() -> None:
        async with serving(stopping) as value:
            avoid_full_collections()
            stopping.ready = True
            ready(value)
            await stopping.requested.wait()

    served = asyncio.ensure_future(serve())
    hurried = asyncio.ensure_future(stopping.hurried.wait())
    await asyncio.wait({served, hurried}, return_when=asyncio.FIRST_COMPLETED)
    hurried.cancel()
    if not served.done():
        await asyncio.wait({served}, timeout=_HURRIED_STOP_S if stopping.ready else 0)
        served.cancel()
    with suppress(asyncio.CancelledError):
        await served
    if not stopping.ready:
        raise StoppedBeforeServing


@asynccontextmanager
async def running_background_work(engine: Engine | None) -> AsyncIterator[None]:
    """Run an engine's background work in slices while the block runs; for engines without a server."""
    if engine is None:
        yield
        return

    from tavola.protocol.faults import Fault
    from tavola.web import describe_frames

    async def work() -> None:
        failures = 0
        while True:
            has_more = False
            try:
                has_more = engine.run_background_work(_SLICE_MS)
                failures = 0
            except Exception as error:  # noqa: BLE001 - a failure of background work must not stop the server
                failures += 1
                # Other messages may contain client data
                has_safe_message = isinstance(error, Fault | OSError)
                cause = f"{type(error).__name__}: {error}" if has_safe_message else describe_frames(error)
                _log.error("Background work failed and will be retried: %s", cause)
                await asyncio.sleep(min(_PAUSE_IDLE_S * 2**failures, _PAUSE_FAILED_S_MAX))
            await asyncio.sleep(_PAUSE_BUSY_S if has_more else _PAUSE_IDLE_S)

    working = asyncio.ensure_future(work())
    try:
        yield
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
