"""`tavola studio`: the tables, wherever they are, in a browser."""

from __future__ import annotations

import re
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import click

from tavola import __version__
from tavola.cli.app_options import AllowHost, Host
from tavola.cli.commands.app import warn_of_others
from tavola.cli.exits import Exit
from tavola.cli.output import complain, log_to_terminal, note, say, say_json
from tavola.cli.parameters import Argument, Option
from tavola.cli.settings import BASE_PATH, IAM, STUDIO_PORT, option
from tavola.cli.studio_options import (
    StudioOptions,
    StudioTarget,
    allowed_host_names,
    open_studio,
    open_studio_target,
    reporting_studio_errors,
)
from tavola.cli.targets import Account, Region, StoreKey

Designs: TypeAlias = Annotated[
    list[str] | None,
    Argument(
        metavar="[DESIGN]...",
        help="The designs of the tables: modules that declare them, as shop.model, or files as `tavola lint` takes them. "
        "Without one the tables are shown as they are.",
    ),
]
StudioStore: TypeAlias = Annotated[
    Path | None,
    Option(
        "--store",
        metavar="FILE|memory:",
        help="The store's file; no process may have it open. Or memory alone.",
    ),
]
StudioEndpoint: TypeAlias = Annotated[
    str | None,
    Option(
        "--endpoint",
        metavar="URL|aws:REGION",
        envvar="TAVOLA_ENDPOINT",
        help="The server to ask, unless --store is given; or TAVOLA_ENDPOINT.  [default: http://127.0.0.1:8000]",
    ),
]
ReadOnly: TypeAlias = Annotated[bool, Option("--read-only", help="Let nothing be changed.")]
Live: TypeAlias = Annotated[
    bool, Option("--live", help="Let tables on AWS itself be changed, which are read-only otherwise.")
]
LogFile: TypeAlias = Annotated[
    Path | None,
    Option("--access-log", help="The access log of the server, as `tavola serve` was given it, to be read."),
]
IamFile: TypeAlias = Annotated[
    Path | None,
    Option("--iam", envvar=IAM.variable, help="The file of users, roles and policies, to be explained."),
]

_PATH = re.compile(r"(?:/[A-Za-z0-9._~-]+)*")


@dataclass(frozen=True, slots=True)
class Listening:
    """Where the studio is, below its base path."""

    address: Any
    base_path: str

    @property
    def url(self) -> str:
        """The URL for a browser."""
        return f"{self.address.url}{self.base_path}/"


def studio(
    designs: Designs = None,
    store: StudioStore = None,
    endpoint: StudioEndpoint = None,
    port: Annotated[
        int, Option("--port", envvar=STUDIO_PORT.variable, help=STUDIO_PORT.sentence, min=0, max=65535)
    ] = int(STUDIO_PORT.default),
    host: Host = "127.0.0.1",
    base_path: Annotated[str, option(BASE_PATH)] = "",
    read_only: ReadOnly = False,
    live: Live = False,
    allow_host: AllowHost = "",
    open_: Annotated[bool, Option("--open", help="Open it in the browser of this machine.")] = False,
    access_log: LogFile = None,
    iam: IamFile = None,
    region: Region = None,
    account: Account = None,
    store_key: StoreKey = None,
    as_json: Annotated[bool, Option("--json", help="Print where it listens as one JSON line.")] = False,
) -> None:
    """Serve the studio: data, access patterns, design, heat, cost, changes and operations of tables, in a browser."""
    from tavola.cli.server_loop import run_until_signal

    log_to_terminal()
    what = f"Cannot serve the studio on port {port}."
    path = checked_base(what, base_path)
    options = StudioOptions(
        tuple(designs or ()),
        store,
        endpoint,
        region,
        account,
        (None, None, store_key),
        read_only,
        live,
        access_log,
        iam,
    )
    hosts = tuple(name.strip() for name in allow_host.split(",") if name.strip())
    with reporting_studio_errors(what), open_studio_target(options) as kept:

        def ready(where: Listening) -> None:
            _greet(where, kept, as_json=as_json)
            if open_ and not webbrowser.open(where.url):
                note(f"No browser opens here; go to {where.url} yourself.")

        run_until_signal(lambda stopping: _serve(kept, host, port, path, hosts, stopping), ready)


def checked_base(what: str, text: str) -> str:
    """Return a base path without the slash at its end; refuse what is none."""
    path = text.rstrip("/")
    if not _PATH.fullmatch(path):
        complain(
            what,
            f"{text!r} is no base path: it begins with a slash and is of plain letters, digits and . _ ~ -.",
            f"Give one such as {BASE_PATH.flag} /studio.",
        )
        raise click.exceptions.Exit(Exit.USAGE)
    return path


@asynccontextmanager
async def _serve(
    kept: StudioTarget, host: str, port: int, base_path: str, hosts: tuple[str, ...], stopping: Any
) -> AsyncIterator[Listening]:
    from tavola.cli.server_loop import running_background_work
    from tavola.studio import create
    from tavola.web import running_server

    async with running_background_work(kept.engine), open_studio(kept) as studio:
        face = create(studio, base_path=base_path, hosts=allowed_host_names(host, hosts))
        async with running_server(face, host, port) as served:
            stopping.on_hurry(served.stop_now)
            yield Listening(served.address, base_path)


def _greet(where: Listening, kept: StudioTarget, *, as_json: bool) -> None:
    from tavola.studio import Assets
    from tavola.web import is_loopback

    if as_json:
        say_json(
            "tavola.studio/1",
            {
                "url": where.url,
                "host": where.address.host,
                "port": where.address.port,
                "base_path": where.base_path,
                "kind": kept.where.kind,
                "tables_in": kept.where.text,
                "region": kept.where.region,
                "account": kept.where.account,
                "read_only": kept.read_only,
                "designs": list(kept.designs),
            },
        )
    else:
        say(f"Tavola {__version__} studio: open {where.url} in a browser")
        say(f"  tables:   {kept.where.text}{f', region {kept.where.region}' if kept.where.region else ''}")
        known = ", ".join(kept.designs) or "none is named, so entities and access patterns are not known"
        say(f"  design:   {known}")
        if kept.read_only:
            say("  changes:  none, it is read-only")
        say("Ctrl-C stops it.")
    if not Assets().built:
        note("Its pages are not built, and the API alone answers: run `make studio`, or install the wheel.")
    warn_of_others(where.address.host, is_loopback(where.address.host))
