"""Server loop: run an event loop that serves until a signal stops it."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from tavola.errors import TavolaError

if TYPE_CHECKING:
    from tavola.engine import Engine

TEND_SLICE_MS = 5.0
TEND_AGAIN_S = 0.005  # while there is more to do
TEND_LATER_S = 0.1
TEND_LATEST_S = 60.0  # after it failed again and again
HURRIED_S = 1.0  # how long the end may take when it is hurried

T = TypeVar("T")

_log = logging.getLogger("tavola.apps")


class StoppedBeforeServing(TavolaError):
    """The process was stopped while it was starting."""

    def __init__(self) -> None:
        super().__init__("Stopped before it served")


class ShutdownRequest:
    """What signals have requested: the first to stop, the second to stop at once; during start-up the first does both."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.hurried = asyncio.Event()
        self.ready = False
        self._hurry: list[Callable[[], None]] = []

    def on_hurry(self, hurry: Callable[[], None]) -> None:
        """Register a callback for a second signal, which asks to stop at once."""
        self._hurry.append(hurry)

    def handle_signal(self) -> None:
        """Handle a signal; after the second, slow clients are not waited for."""
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
    """Serve until SIGTERM or SIGINT, then finish the requests under way.

    `ready` is called with the context's value once it serves.
    """
    from tavola.server.listener import new_loop

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve_until_signal(serving, ready))


async def _serve_until_signal(
    serving: Callable[[ShutdownRequest], AbstractAsyncContextManager[T]], ready: Callable[[T], None]
) -> None:
    stopping = ShutdownRequest()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.handle_signal)

    async def serve() -> None:
        async with serving(stopping) as what:
            gc.collect()
            gc.freeze()  # objects that exist now live until the end, so the collector need not visit them
            stopping.ready = True
            ready(what)
            await stopping.requested.wait()

    served = asyncio.ensure_future(serve())
    hurried = asyncio.ensure_future(stopping.hurried.wait())
    await asyncio.wait({served, hurried}, return_when=asyncio.FIRST_COMPLETED)
    hurried.cancel()
    if not served.done():
        await asyncio.wait({served}, timeout=HURRIED_S if stopping.ready else 0)
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

    async def tend() -> None:
        failures = 0
        while True:
            more = False
            try:
                more = engine.run_background_work(TEND_SLICE_MS)
                failures = 0
            except Exception as error:  # noqa: BLE001 - clients are served whatever becomes of the background work
                failures += 1
                plain = isinstance(error, Fault | OSError)  # whose sentence holds nothing that was sent
                cause = f"{type(error).__name__}: {error}" if plain else describe_frames(error)
                _log.error("Background work failed and is tried again: %s", cause)
                await asyncio.sleep(min(TEND_LATER_S * 2**failures, TEND_LATEST_S))
            await asyncio.sleep(TEND_AGAIN_S if more else TEND_LATER_S)

    tending = asyncio.ensure_future(tend())
    try:
        yield
    finally:
        tending.cancel()
        with suppress(asyncio.CancelledError):
            await tending
