"""Studio beside a server: `tavola serve --studio` serves the endpoint and the studio in one process.

Beside a server that verifies its callers, the users of the studio sign in, and this module opens one studio for each session:
over the caller's own rights, account, monitor and part of the access log.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tavola.cli.errors import renaming_option
from tavola.cli.settings import PORT, STUDIO_PORT
from tavola.cli.studio_options import (
    StudioTarget,
    access_log_reader,
    allowed_host_names,
    load_declared_designs,
    merge_designs,
    open_studio,
    price_book,
)

if TYPE_CHECKING:
    from tavola.cli.server_loop import ShutdownRequest
    from tavola.engine import Engine
    from tavola.iam import Directory
    from tavola.server.authorization import StrictCallers
    from tavola.server.endpoint import ServerEndpoint
    from tavola.server.local_callers import LocalCaller
    from tavola.server.safeguards import Safeguards, ServerLimits
    from tavola.studio import AccountMonitors, LogQuery, LogReader, SignedInCaller, Studio, StudioSignIn

STUDIO_SOURCE = "studio"  # in the access log
FILES_RESERVED = 128  # open files besides the connections of the endpoint


@dataclass(frozen=True, slots=True)
class StudioSettings:
    """The studio beside an endpoint: where it listens, its designs, and the region of its tables."""

    host: str
    port: int
    designs: tuple[str, ...]
    region: str


def studio_target(
    settings: StudioSettings, engine: Engine, file: Path | None, access_log: Path | None
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
    )


@asynccontextmanager
async def serve_both(
    engine: Engine,
    host: str,
    port: int,
    limits: ServerLimits,
    safeguards: Safeguards,
    settings: StudioSettings,
    target: StudioTarget,
    stopping: ShutdownRequest,
) -> AsyncIterator[tuple[ServerEndpoint, str]]:
    """Serve the endpoint and the studio until the block ends; the studio stops first."""
    from tavola.server.authorization import StrictCallers
    from tavola.server.listener import Server, allow_files
    from tavola.studio import create
    from tavola.web import running_server

    server = Server(engine, host=host, port=port, limits=limits, safeguards=safeguards)
    allow_files(limits.connections_max + FILES_RESERVED)
    await server.start()
    try:
        where = replace(target.where, endpoint=server.endpoint.url)
        target, callers = replace(target, where=where), safeguards.callers
        opening: AbstractAsyncContextManager[Studio | StudioSignIn] = (
            open_sign_in(target, callers, safeguards)
            if isinstance(callers, StrictCallers)
            else open_studio(target)
        )
        async with opening as studio:
            asgi_app = create(studio, hosts=allowed_host_names(settings.host, safeguards.hosts))
            with renaming_option(PORT.flag, STUDIO_PORT.flag):
                async with running_server(asgi_app, settings.host, settings.port) as studio_server:
                    stopping.on_hurry(studio_server.stop_now)
                    yield server.endpoint, f"{studio_server.url}/"
    finally:
        await stopping.run_unless_hurried(server.stop())


@asynccontextmanager
async def open_sign_in(
    target: StudioTarget, callers: StrictCallers, safeguards: Safeguards
) -> AsyncIterator[StudioSignIn]:
    """Open the sign-in of a studio whose users act with the rights of their own keys."""
    from tavola.clock import SYSTEM_CLOCK
    from tavola.server.local_callers import LocalCaller, LocalCallers
    from tavola.studio import AccountMonitors, StudioSignIn

    engine = target.engine
    assert engine is not None, "a studio beside a server shares its engine"
    local = LocalCallers(
        callers, engine, region=target.where.region, source=STUDIO_SOURCE, log=safeguards.log
    )
    monitors = AccountMonitors(SYSTEM_CLOCK)
    engine.observe(monitors)

    def open_for(caller: SignedInCaller) -> Studio:
        assert isinstance(caller, LocalCaller), "callers come from `local`"
        return studio_of_caller(target, caller, callers, monitors)

    sign_in = StudioSignIn(local, open_for, read_only=target.read_only)
    try:
        yield sign_in
    finally:
        sign_in.end_all()
        engine.observe(None)


def studio_of_caller(
    target: StudioTarget, caller: LocalCaller, callers: StrictCallers, monitors: AccountMonitors
) -> Studio:
    """Return a studio that acts with a caller's rights and shows the caller's account."""
    from tavola.backends.embedded import AsyncEmbeddedBackend
    from tavola.client.connection import AsyncConnection
    from tavola.protocol.arns import Scope
    from tavola.studio import Studio

    account = caller.account
    backend = AsyncEmbeddedBackend(caller, Scope(account, target.where.region), owned=False)
    return Studio(
        db=AsyncConnection(backend, "an engine in this process"),
        where=replace(target.where, account=account),
        design=target.design,
        designs=target.designs,
        declared=target.declared,
        read_only=target.read_only,
        engine=target.engine,
        monitor=monitors.monitor(account),
        log=None if target.log is None else _log_of_account(target.log, account, callers),
        directory=_directory_of_account(account, callers),
        caller=caller,
        book=price_book,
    )


def _log_of_account(reader: LogReader, account: str, callers: StrictCallers) -> LogReader:
    """Return a reader of the calls of one account; of all calls, refused ones too, while there is only that account."""

    def read(query: LogQuery) -> Iterator[Mapping[str, Any]]:
        is_only = len(callers.directory.accounts) == 1
        return reader(replace(query, account=None if is_only else account))

    return read


def _directory_of_account(account: str, callers: StrictCallers) -> Callable[[], Directory]:
    """Return a function that returns the users and roles of one account."""
    from tavola.iam import Directory

    known: dict[Directory, Directory] = {}

    def read() -> Directory:
        whole = callers.directory
        if whole not in known:
            known.clear()
            known[whole] = Directory({account: whole.account(account)})
        return known[whole]

    return read
