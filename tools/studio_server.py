"""Serve the studio from a thread of this process, for browser tests, screenshots and benchmarks.

The caller can reach the engine behind the pages: create a hot key, change an item, read what is stored.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tavola.clock import SYSTEM_CLOCK, Clock
from tavola.connections import connect_async
from tavola.engine import Engine
from tavola.model.document import Design
from tavola.protocol.arns import DEFAULT_SCOPE, Scope
from tavola.studio.app import create
from tavola.studio.assets import STATIC, Assets
from tavola.studio.monitoring import Monitor
from tavola.studio.studio import Studio, TablesLocation
from tavola.web import running_server

REGION = "eu-west-1"
SCOPE = Scope(DEFAULT_SCOPE.account, REGION)


ASSETS = Path(os.environ.get("TAVOLA_STUDIO_STATIC") or STATIC)
"""The folder of the built pages; TAVOLA_STUDIO_STATIC names another."""


@dataclass(frozen=True, slots=True)
class ServedStudio:
    """A running studio and the engine it shows."""

    url: str  # of the studio, with its base path
    engine: Engine
    studio: Studio

    def call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """Call the engine directly, past the studio."""
        return self.engine.call(operation, request, SCOPE)


@cache
def demo_declared() -> tuple[Any, ...]:
    """Return the designs of all applications, one by one, as the demo has them."""
    from tavola.cli.applications import APPLICATIONS, designs_of
    from tavola.cli.studio_options import load_declared_designs

    return load_declared_designs(designs_of(APPLICATIONS))


@cache
def demo_design() -> Design:
    """Return the designs of all applications in one."""
    from tavola.cli.studio_options import merge_designs

    design: Design = merge_designs(demo_declared()) or Design()
    return design


@contextmanager
def seeded_engine(tickets: int = 400, reviews: int = 80, clock: Clock = SYSTEM_CLOCK) -> Iterator[Engine]:
    """Give an engine on a new file with a small month of the applications' data."""
    from tavola.cli import samples

    with tempfile.TemporaryDirectory(prefix="tavola-studio-") as folder:
        file = Path(folder) / "demo.db"
        samples.create_file(file, REGION, samples.SampleSize(tickets, reviews, 7))
        with closing(Engine.open(file, sync="off", clock=clock)) as engine:
            yield engine


@contextmanager
def serve_studio(
    engine: Engine, design: Design | None, *, base_path: str = "/studio", **more: Any
) -> Iterator[ServedStudio]:
    """Serve a studio on an engine while the block runs; `more` goes to `Studio`."""
    started = threading.Event()
    ready_values: list[Any] = []
    stop: list[Any] = []

    async def run() -> None:
        stopping = asyncio.Event()
        stop.extend([asyncio.get_running_loop(), stopping])
        monitor = Monitor(engine.clock)
        engine.observe(monitor)
        async with connect_async(engine, region=REGION) as db:
            studio = Studio(
                **{
                    "db": db,
                    "where": TablesLocation("memory", "memory:", REGION, SCOPE.account),
                    "design": design,
                    "designs": () if design is None else ("demo",),
                    "clock": engine.clock,
                    "engine": engine,
                    "monitor": monitor,
                    **more,
                }
            )
            async with running_server(create(studio, base_path=base_path, assets=Assets(ASSETS))) as found:
                ready_values.extend([found.url, studio])
                started.set()
                while not stopping.is_set():
                    engine.run_background_work(5.0)
                    await asyncio.sleep(0.02)
            await studio.close()
        engine.observe(None)

    def live() -> None:
        try:
            asyncio.run(run())
        finally:
            started.set()

    thread = threading.Thread(target=live, name="studio", daemon=True)
    thread.start()
    started.wait(30)
    if not ready_values:
        thread.join(5)
        raise RuntimeError("the studio did not start; its thread says why")
    try:
        yield ServedStudio(ready_values[0] + base_path, engine, ready_values[1])
    finally:
        stop[0].call_soon_threadsafe(stop[1].set)
        thread.join(20)
