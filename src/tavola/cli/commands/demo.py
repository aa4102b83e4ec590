"""`tavola demo`: DynamoDB's endpoint and every application in one process, on one file, with a month of data."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from tavola import __version__
from tavola.cli.app_options import AllowHost, Host
from tavola.cli.app_storage import check_folder, make_folder, state_folder_beside
from tavola.cli.applications import APPLICATIONS, create, designs_of, reporting_app_errors, shell
from tavola.cli.commands.app import warn_of_others
from tavola.cli.exits import Exit
from tavola.cli.output import complain, log_to_terminal, note, own_command, say, say_json
from tavola.cli.parameters import Argument, Option
from tavola.cli.settings import APPS_PORT, HOST, PORT, SYNC, option
from tavola.cli.studio_options import (
    StudioTarget,
    allowed_host_names,
    load_declared_designs,
    merge_designs,
    open_studio,
)
from tavola.cli.targets import Region

if TYPE_CHECKING:
    from tavola.engine import Engine

DEFAULT_FILE = Path(".tavola/demo.db")
STUDIO = "/studio"
DOCS = "/docs"

_FILES_BESIDE = 128  # what the process has open beside the endpoint's connections


@dataclass(frozen=True, slots=True)
class Listening:
    """Where the endpoint and the applications are."""

    endpoint: Any
    address: Any


def demo(
    file: Annotated[
        Path | None,
        Argument(
            help=f"The file of all data, made if it is not there.  [default: {DEFAULT_FILE}]",
        ),
    ] = None,
    port: Annotated[int, option(PORT)] = int(PORT.default),
    apps_port: Annotated[int, option(APPS_PORT)] = int(APPS_PORT.default),
    host: Host = "127.0.0.1",
    tickets: Annotated[
        int, Option("--tickets", min=0, max=2_000_000, help="How many tickets a new file gets.")
    ] = 20_000,
    reviews: Annotated[
        int, Option("--reviews", min=0, max=200_000, help="How many reviews a new file gets.")
    ] = 2_000,
    seed: Annotated[int, Option("--seed", min=0, help="What the generated data are drawn from.")] = 7,
    data: Annotated[bool, Option("--data/--no-data", help="Fill a new file with generated data.")] = True,
    fresh: Annotated[
        bool, Option("--fresh", help="Remove what an earlier demo kept in the file, and begin anew.")
    ] = False,
    sync: Annotated[Literal["full", "off"], option(SYNC)] = "full",
    region: Region = None,
    allow_host: AllowHost = "",
    docs: Annotated[
        Path | None,
        Option("--docs", help="Serve this documentation site, built by `make docs-site`, at /docs."),
    ] = None,
    as_json: Annotated[
        bool, Option("--json", help="Print where everything listens as one JSON line.")
    ] = False,
) -> None:
    """Serve DynamoDB and every application at once, on a file that is filled with a believable month when it is new."""
    from tavola.cli import samples
    from tavola.cli.server_loop import run_until_signal
    from tavola.protocol.accounts import DEFAULT_SCOPE

    log_to_terminal()
    if file is None:
        file = DEFAULT_FILE
        make_folder(file)
    check_folder(file)
    if docs is not None and not (docs / "index.html").is_file():
        complain(
            "Cannot start the demo.", f"{docs} has no documentation site.", "Build one with `make docs-site`."
        )
        raise click.exceptions.Exit(Exit.USAGE)
    with reporting_app_errors(f"Cannot start the demo on {file}.", "--apps-port"):
        from tavola.engine import Engine

        hosts = tuple(name.strip() for name in allow_host.split(",") if name.strip())
        _check_ports(host, port, apps_port)
        if fresh or not file.exists():
            amounts = samples.Amounts(tickets, reviews, seed) if data else None
            _make(file, region or DEFAULT_SCOPE.region, amounts)
        mark = samples.mark_of(file)
        if mark is None:
            note(f"{file} was there before and no demo made it: nothing is generated into it.")
        elif region is not None and region != mark.region:
            note(f"The tables are in {mark.region}, where the file was made, and not in {region}.")
        region = mark.region if mark is not None else region or DEFAULT_SCOPE.region
        with closing(Engine.open(file, sync=sync)) as engine:
            place = DemoServer(file, engine, region, host, port, apps_port, hosts, docs)
            run_until_signal(
                lambda stopping: _serve(place, stopping), lambda where: _greet(place, where, as_json=as_json)
            )


@dataclass(frozen=True, slots=True)
class DemoServer:
    """What is served, and where it shall listen."""

    file: Path
    engine: Engine
    region: str
    host: str
    port: int
    apps_port: int
    hosts: tuple[str, ...]
    docs: Path | None = None


def _check_ports(host: str, port: int, apps_port: int) -> None:
    """Refuse a port that is taken before anything is generated."""
    if port == apps_port and port != 0:
        complain(
            "Cannot start the demo.",
            f"The endpoint and the applications cannot both have port {port}.",
            f"Give {PORT.flag} and {APPS_PORT.flag} different ones.",
        )
        raise click.exceptions.Exit(Exit.USAGE)
    from tavola.server.errors import AddressInUse
    from tavola.server.listener import Server

    no_app: Any = None
    for each, flag in ((port, PORT.flag), (apps_port, APPS_PORT.flag)):
        try:
            Server(no_app, host=host, port=each).close()
        except AddressInUse as error:
            complain(
                f"Cannot start the demo on port {each}.",
                str(error),
                f"Choose another with {flag}; 0 takes a free one.",
            )
            raise click.exceptions.Exit(Exit.CONFLICT) from error


def _make(file: Path, region: str, amounts: Any) -> None:
    from tavola.cli import samples

    if amounts is not None:
        note(f"Filling {file} with a month of generated data, once.")
    try:
        samples.make(file, region, amounts)
    except KeyboardInterrupt:
        note("Stopped before the data were complete; nothing of them is kept.")
        raise click.exceptions.Exit(Exit.FAILED) from None


@asynccontextmanager
async def _serve(place: DemoServer, stopping: Any) -> AsyncIterator[Listening]:
    """Serve both, until the block ends; the applications go first, then the endpoint."""
    from tavola.server.listener import Server, allow_files
    from tavola.server.safeguards import ServerLimits

    server = Server(place.engine, host=place.host, port=place.port)
    allow_files(ServerLimits().connections_max + _FILES_BESIDE)
    await server.start()
    try:
        async with open_studio(_studio_target(place, server.endpoint.url)) as studio:
            face = _face(place, server.endpoint.url, studio)
            async with shell().running_server(face, place.host, place.apps_port) as served:
                stopping.on_hurry(served.stop_now)
                yield Listening(server.endpoint, served.address)
    finally:
        await stopping.run_unless_hurried(server.stop())


def _studio_target(place: DemoServer, endpoint: str) -> StudioTarget:
    """Return what the studio shows: all tables of the demo, with the designs of the applications."""
    from tavola.protocol.accounts import DEFAULT_SCOPE
    from tavola.studio import TablesLocation

    declared = load_declared_designs(designs_of(APPLICATIONS))
    where = TablesLocation("file", str(place.file.absolute()), place.region, DEFAULT_SCOPE.account, endpoint)
    return StudioTarget(
        place.engine,
        where,
        place.region,
        DEFAULT_SCOPE.account,
        read_only=False,
        declared=declared,
        design=merge_designs(declared),
    )


def _face(place: DemoServer, endpoint: str, studio: Any) -> Any:
    """Return the start page with every application under its path, and the studio beside them."""
    from tavola import studio as studio_room

    shared = shell()
    settings = shared.Settings(
        target=place.engine, region=place.region, state=state_folder_beside(place.file), hosts=place.hosts
    )
    mounted = []
    for each in APPLICATIONS:
        face = create(each, settings)
        found = shared.shell_of(face).pages.navigation
        links = [link for link in found if link.path != "/ui/api"]  # which has a place of its own
        mounted.append(shared.Mounted(f"/{each.name}", each.title, each.summary, face, links))
    seen = (
        "The tables behind all of these, live: entities and collections, access patterns and what they cost, heat, changes, "
        "the past."
    )
    face = studio_room.create(studio, hosts=allowed_host_names(place.host, place.hosts))
    mounted.append(shared.Mounted(STUDIO, "Studio", seen, face, api=False))
    if place.docs is not None:
        from starlette.applications import Starlette
        from starlette.routing import Mount
        from starlette.staticfiles import StaticFiles

        site = Starlette(routes=[Mount("/", StaticFiles(directory=place.docs, html=True))])
        summary = "Tutorials, how-to guides, reference and explanation."
        mounted.append(shared.Mounted(DOCS, "Documentation", summary, site, api=False))
    return shared.start_page(settings, mounted, endpoint=endpoint)


def _greet(place: DemoServer, where: Listening, *, as_json: bool) -> None:
    from tavola.server.hosts import is_loopback

    url, endpoint = where.address.url, where.endpoint.url
    if as_json:
        say_json(
            "tavola.demo/1",
            {
                "endpoint": endpoint,
                "port": where.endpoint.port,
                "url": url,
                "apps_port": where.address.port,
                "host": place.host,
                "region": place.region,
                "file": str(place.file.absolute()),
                "studio": f"{url}{STUDIO}/",
                "docs": None if place.docs is None else f"{url}{DOCS}/",
                "applications": {each.name: f"{url}/{each.name}/" for each in APPLICATIONS},
            },
        )
    else:
        turned = ((HOST, place.host), (PORT, where.endpoint.port))
        hint = "".join(f" {setting.flag} {value}" for setting, value in turned if value != setting.default)
        say(f"Tavola {__version__} demo: open {url}/ in a browser")
        for each in APPLICATIONS:
            say(f"  {each.title + ':':<18} {url}/{each.name}/")
        say(f"  {'Studio:':<18} {url}{STUDIO}/, the tables of all of them")
        if place.docs is not None:
            say(f"  {'Documentation:':<18} {url}{DOCS}/")
        say(f"  {'DynamoDB:':<18} {endpoint}, the same tables, region {place.region}")
        say(f'  {"":<18} eval "$({own_command()} env{hint})" points the AWS CLI and SDKs there')
        say(f"  {'Data:':<18} {place.file.absolute()}, kept; --fresh begins anew")
        say("Ctrl-C stops it.")
    warn_of_others(place.host, is_loopback(place.host))
