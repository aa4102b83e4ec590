"""`tavola demo`: DynamoDB, the studio and every application in one process, on one file with sample data."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

import click

from tavola import __version__
from tavola.cli.applications import (
    APPLICATIONS,
    AllowHostOption,
    HostOption,
    create,
    designs_of,
    reporting_app_errors,
    state_folder_beside,
    warn_if_public,
)
from tavola.cli.commands.serve import env_command
from tavola.cli.errors import CommandError, Exit, renaming_option
from tavola.cli.files import check_parent_exists
from tavola.cli.output import log_to_terminal, note, say, say_json
from tavola.cli.parameters import Argument, Option
from tavola.cli.settings import APPS_PORT, BUFFER_MB, PORT, SYNC, option, split_names
from tavola.cli.studio_beside_server import FILES_RESERVED
from tavola.cli.studio_options import (
    StudioTarget,
    allowed_host_names,
    load_declared_designs,
    merge_designs,
    open_studio,
)
from tavola.cli.targets import RegionOption
from tavola.cli.terminal import style
from tavola.errors import ErrorKind

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from tavola.cli.samples import SampleSize
    from tavola.cli.server_loop import ShutdownRequest
    from tavola.engine import Engine
    from tavola.server.endpoint import ServerEndpoint
    from tavola.studio import Studio
    from tavola.web import ListenAddress

DEFAULT_FILE = Path(".tavola/demo.db")
STUDIO_PATH = "/studio"
DOCS_PATH = "/docs"
_STUDIO_SUMMARY = (
    "The tables of all applications: entities, access patterns and their cost, heat, changes and history."
)


@dataclass(frozen=True, slots=True)
class DemoAddresses:
    """Where the endpoint and the applications listen."""

    endpoint: ServerEndpoint
    apps: ListenAddress


def demo(
    file: Annotated[
        Path | None, Argument(help=f"Database file; created if it does not exist.  [default: {DEFAULT_FILE}]")
    ] = None,
    port: Annotated[int, option(PORT)] = int(PORT.default),
    apps_port: Annotated[int, option(APPS_PORT)] = int(APPS_PORT.default),
    host: HostOption = "127.0.0.1",
    tickets: Annotated[
        int, Option("--tickets", metavar="COUNT", min=0, max=2_000_000, help="Number of sample tickets.")
    ] = 20_000,
    reviews: Annotated[
        int, Option("--reviews", metavar="COUNT", min=0, max=200_000, help="Number of sample reviews.")
    ] = 2_000,
    seed: Annotated[int, Option("--seed", min=0, help="Seed of the sample data.")] = 7,
    data: Annotated[bool, Option("--data/--no-data", help="Fill a new file with sample data.")] = True,
    fresh: Annotated[
        bool, Option("--fresh", help="Delete the data of an earlier demo and start over.")
    ] = False,
    sync: Annotated[Literal["full", "off"], option(SYNC)] = "full",
    region: RegionOption = None,
    allow_host: AllowHostOption = "",
    buffer_mb: Annotated[int, option(BUFFER_MB)] = int(BUFFER_MB.default),
    docs: Annotated[
        Path | None,
        Option(
            "--docs", metavar="FOLDER", help="Documentation site from `make docs-site`, to serve at /docs."
        ),
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print the addresses as JSON.")] = False,
) -> None:
    """Run DynamoDB, the studio and all apps with sample data.

    A new file is filled with a month of generated data, once.
    """
    from tavola.cli import samples
    from tavola.cli.server_loop import run_until_signal
    from tavola.protocol.arns import DEFAULT_SCOPE

    log_to_terminal()
    with reporting_app_errors(f"Cannot start the demo on {file or DEFAULT_FILE}."):
        from tavola.engine import Engine

        if file is None:
            file = DEFAULT_FILE
            _make_default_folder(file.parent)
        check_parent_exists(file)
        if docs is not None and not (docs / "index.html").is_file():
            raise CommandError(f"{docs} has no documentation site.", "Build one with `make docs-site`.")
        _check_ports(host, port, apps_port)
        if fresh or not file.exists():
            size = samples.SampleSize(tickets, reviews, seed) if data else None
            _create_file(file, region or DEFAULT_SCOPE.region, size)
        marker = samples.read_marker(file)
        if marker is None:
            note(f"{file} existed before and was not created by a demo; no sample data is added.")
        elif region is not None and region != marker.region:
            note(f"The tables are in {marker.region}, where the file was created, not in {region}.")
        region = marker.region if marker is not None else region or DEFAULT_SCOPE.region
        with closing(Engine.open(file, sync=sync)) as engine:
            hosts = split_names(allow_host)
            server = DemoServer(file, engine, region, host, port, apps_port, hosts, docs, buffer_mb)
            run_until_signal(
                lambda stopping: _serve(server, stopping),
                lambda addresses: _greet(server, addresses, as_json=as_json),
            )


@dataclass(frozen=True, slots=True)
class DemoServer:
    """What the demo serves, and where it listens."""

    file: Path
    engine: Engine
    region: str
    host: str
    port: int
    apps_port: int
    hosts: tuple[str, ...]
    docs: Path | None = None
    buffer_mb: int = int(BUFFER_MB.default)


def _make_default_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        cause = f"The folder {folder} cannot be created here: {error.strerror}."
        remedy = "Run the command in a writable folder, or name a file in one."
        raise CommandError(cause, remedy, ErrorKind.INVALID) from error


def _check_ports(host: str, port: int, apps_port: int) -> None:
    """Raise if a port is in use, before any data is generated."""
    if port == apps_port and port != 0:
        raise CommandError(
            f"The endpoint and the applications cannot both use port {port}.",
            f"Choose different ports with {PORT.flag} and {APPS_PORT.flag}.",
        )
    from tavola.server.listener import Server

    no_engine: Any = None
    Server(no_engine, host=host, port=port).close()
    with renaming_option(PORT.flag, APPS_PORT.flag):
        Server(no_engine, host=host, port=apps_port).close()


def _create_file(file: Path, region: str, size: SampleSize | None) -> None:
    from tavola.cli import samples

    if size is not None:
        note(f"Filling {file} with a month of sample data (first start only).")
    try:
        samples.create_file(file, region, size)
    except KeyboardInterrupt:
        note("Interrupted; the incomplete data was deleted.")
        raise click.exceptions.Exit(Exit.INTERRUPTED) from None


@asynccontextmanager
async def _serve(demo_server: DemoServer, stopping: ShutdownRequest) -> AsyncIterator[DemoAddresses]:
    """Serve until the block ends; the applications stop first, then the endpoint."""
    from tavola.apps.shell import running_server
    from tavola.server.listener import Server, allow_files
    from tavola.server.safeguards import ServerLimits

    limits = ServerLimits(buffer_bytes_max=demo_server.buffer_mb * 1024 * 1024)
    server = Server(demo_server.engine, host=demo_server.host, port=demo_server.port, limits=limits)
    allow_files(limits.connections_max + FILES_RESERVED)
    await server.start()
    try:
        async with open_studio(_studio_target(demo_server, server.endpoint.url)) as studio:
            asgi_app = _mount_apps(demo_server, server.endpoint.url, studio)
            with renaming_option(PORT.flag, APPS_PORT.flag):
                async with running_server(asgi_app, demo_server.host, demo_server.apps_port) as apps_server:
                    stopping.on_hurry(apps_server.stop_now)
                    yield DemoAddresses(server.endpoint, apps_server.address)
    finally:
        await stopping.run_unless_hurried(server.stop())


def _studio_target(demo_server: DemoServer, endpoint: str) -> StudioTarget:
    """Return the studio's target: all tables of the demo, with the designs of the applications."""
    from tavola.protocol.arns import DEFAULT_SCOPE
    from tavola.studio import TablesLocation

    declared = load_declared_designs(designs_of(APPLICATIONS))
    file, region, account = str(demo_server.file.absolute()), demo_server.region, DEFAULT_SCOPE.account
    return StudioTarget(
        demo_server.engine,
        TablesLocation("file", file, region, account, endpoint),
        region,
        account,
        declared=declared,
        design=merge_designs(declared),
    )


def _mount_apps(demo_server: DemoServer, endpoint: str, studio: Studio) -> Starlette:
    """Return the start page with every application, the studio and the documentation below their paths."""
    from tavola.apps.shell import AppSettings, Mounted, shell_of, start_page
    from tavola.studio import create as create_studio

    state, hosts = state_folder_beside(demo_server.file), demo_server.hosts
    settings = AppSettings(target=demo_server.engine, region=demo_server.region, state=state, hosts=hosts)
    mounted = []
    for application in APPLICATIONS:
        asgi_app = create(application, settings)
        navigation = shell_of(asgi_app).pages.navigation
        links = [link for link in navigation if link.path != "/ui/api"]  # the start page links the API itself
        mounted.append(
            Mounted(f"/{application.name}", application.title, application.summary, asgi_app, links)
        )
    studio_app = create_studio(studio, hosts=allowed_host_names(demo_server.host, hosts))
    mounted.append(Mounted(STUDIO_PATH, "Studio", _STUDIO_SUMMARY, studio_app, api=False))
    if demo_server.docs is not None:
        from starlette.applications import Starlette
        from starlette.routing import Mount
        from starlette.staticfiles import StaticFiles

        site = Starlette(routes=[Mount("/", StaticFiles(directory=demo_server.docs, html=True))])
        summary = "Tutorials, how-to guides, reference and explanation."
        mounted.append(Mounted(DOCS_PATH, "Documentation", summary, site, api=False))
    return start_page(settings, mounted, endpoint=endpoint, commands=_client_commands(demo_server, endpoint))


def _client_commands(demo_server: DemoServer, endpoint: str) -> tuple[str, ...]:
    """Return shell commands that use the endpoint: the first points AWS SDKs at the server and at the region of its tables."""
    port, region = urlsplit(endpoint).port or demo_server.port, demo_server.region
    environment = env_command(demo_server.host, port)
    return (
        f"{environment}; export AWS_REGION={region} AWS_DEFAULT_REGION={region}",
        "aws dynamodb list-tables",
    )


def _greet(demo_server: DemoServer, addresses: DemoAddresses, *, as_json: bool) -> None:
    url, endpoint = addresses.apps.url, addresses.endpoint.url
    docs_url = None if demo_server.docs is None else f"{url}{DOCS_PATH}/"
    if as_json:
        members = {
            "endpoint": endpoint,
            "port": addresses.endpoint.port,
            "url": url,
            "apps_port": addresses.apps.port,
            "host": demo_server.host,
            "region": demo_server.region,
            "file": str(demo_server.file.absolute()),
            "studio": f"{url}{STUDIO_PATH}/",
            "docs": docs_url,
            "applications": {application.name: f"{url}/{application.name}/" for application in APPLICATIONS},
        }
        say_json("tavola.demo/1", members)
    else:
        say(f"Tavola {__version__} demo: {style(f'{url}/', 'heading')}")
        rows = [(application.title, f"{url}/{application.name}/") for application in APPLICATIONS]
        rows.append(("Studio", f"{url}{STUDIO_PATH}/"))
        if docs_url is not None:
            rows.append(("Documentation", docs_url))
        rows.append(("DynamoDB", f"{endpoint}, region {demo_server.region}"))
        rows.append(("AWS CLI and SDKs", _client_commands(demo_server, endpoint)[0]))
        rows.append(("Data", f"{demo_server.file.absolute()} (--fresh starts over)"))
        for label, text in rows:
            say(f"  {label + ':':<18} {text}")
        say("Press Ctrl-C to stop.")
    warn_if_public(demo_server.host)
