"""Studio beside a server: `tavola serve --studio` serves the endpoint and the studio in one process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tavola.cli.errors import renaming_option
from tavola.cli.settings import PORT, STUDIO_PORT
from tavola.cli.studio_options import (
    StudioTarget,
    access_log_reader,
    allowed_host_names,
    directory_reader,
    load_declared_designs,
    merge_designs,
    open_studio,
)

if TYPE_CHECKING:
    from tavola.cli.server_loop import ShutdownRequest
    from tavola.engine import Engine
    from tavola.server.endpoint import ServerEndpoint
    from tavola.server.safeguards import Safeguards

FILES_RESERVED = 128  # open files besides the connections of the endpoint


@dataclass(frozen=True, slots=True)
class StudioSettings:
    """The studio beside an endpoint: where it listens, its designs, and the region of its tables."""

    host: str
    port: int
    designs: tuple[str, ...]
    region: str


def studio_target(
    settings: StudioSettings, engine: Engine, file: Path | None, access_log: Path | None, iam: Path | None
) -> StudioTarget:
    """Return the tables of the endpoint's engine as the target of a studio."""
    from tavola.protocol.arns import DEFAULT_SCOPE
    from tavola.studio import TablesLocation

    declared = load_declared_designs(settings.designs)
    account = DEFAULT_SCOPE.account
    return StudioTarget(
        engine,
        TablesLocation("memory", "in memory", settings.region, account)
        if file is None
        else TablesLocation("file", str(file.absolute()), settings.region, account),
        settings.region,
        account,
        declared=declared,
        design=merge_designs(declared),
        log=None if access_log is None else access_log_reader(access_log),
        directory=None if iam is None else directory_reader(iam),
    )


@asynccontextmanager
async def serve_both(
    engine: Engine,
    host: str,
    port: int,
    safeguards: Safeguards,
    settings: StudioSettings,
    target: StudioTarget,
    stopping: ShutdownRequest,
) -> AsyncIterator[tuple[ServerEndpoint, str]]:
    """Serve the endpoint and the studio until the block ends; the studio stops first."""
    from tavola.server.listener import Server, allow_files
    from tavola.server.safeguards import ServerLimits
    from tavola.studio import create
    from tavola.web import running_server

    server = Server(engine, host=host, port=port, safeguards=safeguards)
    allow_files(ServerLimits().connections_max + FILES_RESERVED)
    await server.start()
    try:
        where = replace(target.where, endpoint=server.endpoint.url)
        async with open_studio(replace(target, where=where)) as studio:
            asgi_app = create(studio, hosts=allowed_host_names(settings.host, safeguards.hosts))
            with renaming_option(PORT.flag, STUDIO_PORT.flag):
                async with running_server(asgi_app, settings.host, settings.port) as studio_server:
                    stopping.on_hurry(studio_server.stop_now)
                    yield server.endpoint, f"{studio_server.url}/"
    finally:
        await stopping.run_unless_hurried(server.stop())
