"""`tavola serve`: an engine and its endpoint, until it is asked to stop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from tavola import __version__
from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.keys import KeyUnusable, StoreKeyOptions
from tavola.cli.output import complain, log_to_terminal, note, own_command, say, say_json
from tavola.cli.parameters import BUNDLE, Argument, Option
from tavola.cli.settings import (
    ACCESS_LOG,
    ACCESS_LOG_FILES,
    ACCESS_LOG_MB,
    ALLOW_HOST,
    AUTH,
    BUCKETS,
    CACHE_MB,
    EMULATE,
    HOST,
    IAM,
    PORT,
    STUDIO_PORT,
    STUDIO_REGION,
    SYNC,
    TABLE_DELAY_MS,
    TLS_CERT,
    TLS_KEY,
    TTL_INTERVAL_S,
    WORDING,
    option,
)
from tavola.cli.studio_options import (
    StudioTarget,
    access_log_reader,
    allowed_host_names,
    directory_reader,
    load_declared_designs,
    merge_designs,
    open_studio,
    reporting_studio_errors,
)

if TYPE_CHECKING:
    from tavola.engine import Engine

Sync = Literal["full", "off"]
Words = Literal["current", "classic", "modern"]
Auth = Literal["open", "strict"]

_FILES_BESIDE = 128  # what the process has open beside the endpoint's connections


def serve(
    file: Annotated[
        Path | None, Argument(help="The file that keeps the data; without one it is in memory.")
    ] = None,
    host: Annotated[str, option(HOST)] = "127.0.0.1",
    port: Annotated[int, option(PORT)] = 8000,
    sync: Annotated[Sync, option(SYNC)] = "full",
    cache_mb: Annotated[int, option(CACHE_MB)] = int(CACHE_MB.default),
    wording: Annotated[Words, option(WORDING)] = "current",
    table_delay_ms: Annotated[int, option(TABLE_DELAY_MS)] = 0,
    emulate: Annotated[str, option(EMULATE)] = "",
    auth: Annotated[Auth, option(AUTH)] = "open",
    iam: Annotated[Path | None, option(IAM)] = None,
    tls_cert: Annotated[Path | None, option(TLS_CERT)] = None,
    tls_key: Annotated[Path | None, option(TLS_KEY)] = None,
    allow_host: Annotated[str, option(ALLOW_HOST)] = "",
    access_log: Annotated[Path | None, option(ACCESS_LOG)] = None,
    access_log_mb: Annotated[int, option(ACCESS_LOG_MB)] = int(ACCESS_LOG_MB.default),
    access_log_files: Annotated[int, option(ACCESS_LOG_FILES)] = int(ACCESS_LOG_FILES.default),
    ttl_interval_s: Annotated[int, option(TTL_INTERVAL_S)] = int(TTL_INTERVAL_S.default),
    buckets: Annotated[Path | None, option(BUCKETS)] = None,
    store_key: StoreKeyOptions = BUNDLE,
    studio: Annotated[
        bool, Option("--studio", help="Serve the studio too, on the same tables, on a port of its own.")
    ] = False,
    studio_port: Annotated[int, option(STUDIO_PORT)] = int(STUDIO_PORT.default),
    studio_design: Annotated[
        list[str] | None,
        Option(metavar="DESIGN", help="A design that the studio knows the tables by, as shop.model."),
    ] = None,
    studio_region: Annotated[str, option(STUDIO_REGION)] = str(STUDIO_REGION.default),
    as_json: Annotated[bool, Option("--json", help="Print where it listens as one JSON line.")] = False,
) -> None:
    """Serve DynamoDB over HTTP, from memory or from FILE."""
    log_to_terminal()
    what = f"Cannot serve {file or 'from memory'} on port {port}."
    if file is not None and not file.parent.is_dir():
        complain(
            f"Cannot serve {file}.",
            f"The folder {file.parent} is not there.",
            "Make the folder, or name a file in another one.",
        )
        raise click.exceptions.Exit(Exit.NOT_FOUND)
    _check_together(what, auth, iam, tls_cert, tls_key)
    if auth == "open" and iam is not None:
        note(f"Warning: {iam} is not looked at, for without --auth strict everybody is let in.")
        iam = None
    beside = None
    if studio:
        alone = auth == "strict" or tls_cert is not None  # the studio does not authenticate
        beside = StudioSettings(
            "127.0.0.1" if alone else host, studio_port, tuple(studio_design or ()), studio_region
        )
    telling = reporting_errors(what) if beside is None else reporting_studio_errors(what, STUDIO_PORT.flag)
    with telling, ExitStack() as opened:
        from tavola.engine import Engine
        from tavola.server.access_log import AccessLog
        from tavola.server.endpoint import ServerEndpoint
        from tavola.server.hosts import is_loopback
        from tavola.server.listener import serve as listen
        from tavola.server.safeguards import Safeguards

        log = None
        if access_log is not None:
            log = AccessLog(
                access_log, file_bytes_max=access_log_mb * 1024 * 1024, files_max=access_log_files
            )
            opened.enter_context(closing(log))
        safeguards = Safeguards(
            tls=_tls(tls_cert, tls_key),
            callers=None if iam is None else _callers(iam),
            log=log,
            hosts=tuple(name.strip() for name in allow_host.split(",") if name.strip()),
        )

        def greet(endpoint: ServerEndpoint, studio_url: str | None = None) -> None:
            if as_json:
                say_json(
                    "tavola.serve/1",
                    {
                        "endpoint": endpoint.url,
                        "host": endpoint.host,
                        "port": endpoint.port,
                        "file": None if file is None else str(file.absolute()),
                        "auth": auth,
                        "access_log": None if access_log is None else str(access_log.absolute()),
                        "studio": studio_url,
                    },
                )
            else:
                _greet(endpoint, is_loopback(host), file, sync, emulate, iam, access_log, studio_url)
            if not is_loopback(host) and iam is None:
                note(
                    f"Warning: other machines can reach {host}, and whoever connects is let in: "
                    f"credentials are not verified. --auth strict verifies them."
                )

        engine = Engine.open(
            file,
            sync=sync,
            wording=wording,
            cache_mb=cache_mb,
            table_delay_ms=table_delay_ms,
            emulate=emulate or None,
            ttl_interval_s=ttl_interval_s,
            key=_key(file, store_key),
            buckets=buckets,
        )
        opened.enter_context(closing(engine))
        if beside is None:
            listen(engine, host=host, port=port, safeguards=safeguards, ready=greet)
            return
        from tavola.cli.server_loop import run_until_signal

        kept = _studio_target(beside, engine, file, access_log, iam)
        run_until_signal(
            lambda stopping: _serve(engine, host, port, safeguards, beside, kept, stopping),
            lambda where: greet(*where),
        )


@dataclass(frozen=True, slots=True)
class StudioSettings:
    """The studio beside an endpoint: where it shall listen, and what it shall show."""

    host: str
    port: int
    designs: tuple[str, ...]
    region: str


def _studio_target(
    beside: StudioSettings, engine: Engine, file: Path | None, access_log: Path | None, iam: Path | None
) -> StudioTarget:
    from tavola.protocol.accounts import DEFAULT_SCOPE
    from tavola.studio import TablesLocation

    declared = load_declared_designs(beside.designs)
    kind, text = ("memory", "in memory") if file is None else ("file", str(file.absolute()))
    return StudioTarget(
        engine,
        TablesLocation(kind, text, beside.region, DEFAULT_SCOPE.account),  # type: ignore[arg-type]  # one of two
        beside.region,
        DEFAULT_SCOPE.account,
        read_only=False,
        declared=declared,
        design=merge_designs(declared),
        log=None if access_log is None else access_log_reader(access_log),
        directory=None if iam is None else directory_reader(iam),
    )


@asynccontextmanager
async def _serve(
    engine: Engine,
    host: str,
    port: int,
    safeguards: Any,
    beside: StudioSettings,
    kept: StudioTarget,
    stopping: Any,
) -> AsyncIterator[tuple[Any, str]]:
    """Serve the endpoint and the studio until the block ends; the studio goes first."""
    from tavola.server.listener import Server, allow_files
    from tavola.server.safeguards import ServerLimits
    from tavola.studio import create
    from tavola.web import running_server

    server = Server(engine, host=host, port=port, safeguards=safeguards)
    allow_files(ServerLimits().connections_max + _FILES_BESIDE)
    await server.start()
    try:
        where = replace(kept.where, endpoint=server.endpoint.url)
        async with open_studio(replace(kept, where=where)) as studio:
            face = create(studio, hosts=allowed_host_names(beside.host, safeguards.hosts))
            async with running_server(face, beside.host, beside.port) as served:
                stopping.on_hurry(served.stop_now)
                yield server.endpoint, f"{served.url}/"
    finally:
        await stopping.run_unless_hurried(server.stop())


def _key(file: Path | None, options: StoreKeyOptions) -> str | None:
    """Return the key of the file; what is in memory needs none, and gets none from the environment."""
    if file is None and options.key_file is None and options.key_command is None:
        return None
    found = options.read()
    if found is not None and file is None:
        raise KeyUnusable("What is in memory is not encrypted; name a FILE, or leave the key out")
    return found


def _check_together(
    what: str, auth: Auth, iam: Path | None, tls_cert: Path | None, tls_key: Path | None
) -> None:
    """Refuse options that only make sense with another."""
    if auth == "strict" and iam is None:
        complain(
            what,
            "--auth strict verifies every caller, and no file says who they are.",
            "Make one with `tavola iam init iam.json`, and name it with --iam iam.json.",
        )
        raise click.exceptions.Exit(Exit.USAGE)
    if (tls_cert is None) != (tls_key is None):
        given, lacking = (TLS_CERT, TLS_KEY) if tls_key is None else (TLS_KEY, TLS_CERT)
        complain(
            what, f"{given.flag} is given without {lacking.flag}.", "Give both, or neither for plain HTTP."
        )
        raise click.exceptions.Exit(Exit.USAGE)


def _tls(certificate: Path | None, key: Path | None) -> Any:
    if certificate is None or key is None:
        return None
    from tavola.server.safeguards import tls_context

    return tls_context(certificate, key)


def _callers(iam: Path) -> Any:
    from tavola.clock import SYSTEM_CLOCK
    from tavola.iam import DirectoryFile
    from tavola.server.authorization import StrictCallers

    return StrictCallers(DirectoryFile(iam), SYSTEM_CLOCK)


def _greet(
    endpoint: Any,
    alone: bool,
    file: Path | None,
    sync: Sync,
    emulate: str,
    iam: Path | None,
    access_log: Path | None,
    studio_url: str | None,
) -> None:
    kept = "each write on the disk before it is answered" if sync == "full" else "writes are not synced"
    where = "in memory, gone when this ends" if file is None else f"{file.absolute()} ({kept})"
    turned = ((HOST, endpoint.host), (PORT, endpoint.port))
    hint = "".join(f" {setting.flag} {value}" for setting, value in turned if value != setting.default)
    hint += " --tls" if endpoint.secure else ""
    reach = "this machine alone can connect" if alone else "and anyone can connect"
    trusted = f"accepted as they come, {reach}; account and region tell tables apart"
    verified = f"verified, and policies hold, as {None if iam is None else iam.absolute()} says"
    say(f"Tavola {__version__} serves DynamoDB at {endpoint.url}")
    say(f"  data:         {where}")
    say(f"  credentials:  {trusted if iam is None else verified}")
    if emulate:
        say(f"  on purpose:   {emulate}")
    if access_log is not None:
        say(f"  access log:   {access_log.absolute()}")
    if studio_url is not None:
        say(f"  studio:       {studio_url}")
    with_key = "" if iam is None else ", and a key that `tavola iam` gave"
    say(f'  use it with:  eval "$({own_command()} env{hint})"{with_key}')
    say("Ctrl-C stops it.")
