"""`tavola studio`: show and edit tables in a browser."""

from __future__ import annotations

import re
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tavola import __version__
from tavola.cli.applications import AllowHostOption, HostOption, warn_if_public
from tavola.cli.errors import CommandError, reporting_errors
from tavola.cli.output import log_to_terminal, note, say, say_json
from tavola.cli.parameters import BUNDLE, Argument, Option
from tavola.cli.settings import BASE_PATH, STUDIO_PORT, option, split_names
from tavola.cli.studio_options import (
    StudioOptions,
    StudioTarget,
    allowed_host_names,
    open_studio,
    open_studio_target,
)
from tavola.cli.terminal import style

if TYPE_CHECKING:
    from tavola.cli.server_loop import ShutdownRequest
    from tavola.web import ListenAddress

_PATH = re.compile(r"(?:/[A-Za-z0-9._~-]+)*")


@dataclass(frozen=True, slots=True)
class StudioAddress:
    """Where the studio listens, and its base path."""

    address: ListenAddress
    base_path: str

    @property
    def url(self) -> str:
        """The URL for a browser."""
        return f"{self.address.url}{self.base_path}/"


def studio(
    designs: Annotated[
        list[str] | None,
        Argument(
            metavar="[DESIGN]...",
            help="Designs of the tables, as `tavola lint` takes them. Without one, entities and access patterns are unknown.",
        ),
    ] = None,
    tables: StudioOptions = BUNDLE,
    port: Annotated[int, option(STUDIO_PORT, "--port")] = int(STUDIO_PORT.default),
    host: HostOption = "127.0.0.1",
    base_path: Annotated[str, option(BASE_PATH)] = "",
    allow_host: AllowHostOption = "",
    open_browser: Annotated[bool, Option("--open", help="Open the studio in a browser.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print the address as JSON.")] = False,
) -> None:
    """Serve the web studio for your tables.

    Shows data, access patterns, design, heat, cost, changes and operations in a browser.
    """
    from tavola.cli.server_loop import run_until_signal

    log_to_terminal()
    with reporting_errors(f"Cannot serve the studio on port {port}."):
        path = parse_base_path(base_path)
        with open_studio_target(tables, designs or ()) as target:

            def ready(address: StudioAddress) -> None:
                _greet(address, target, as_json=as_json)
                if open_browser and not webbrowser.open(address.url):
                    note(f"No browser could be opened; open {address.url} yourself.")

            hosts = allowed_host_names(host, split_names(allow_host))
            run_until_signal(lambda stopping: _serve(target, host, port, path, hosts, stopping), ready)


def parse_base_path(text: str) -> str:
    """Return a base path without the slash at its end."""
    path = text.rstrip("/")
    if not _PATH.fullmatch(path):
        raise CommandError(
            f"{text!r} is not a URL path of plain letters, digits and . _ ~ -.",
            f"Use a form such as {BASE_PATH.flag} /studio.",
        )
    return path


@asynccontextmanager
async def _serve(
    target: StudioTarget,
    host: str,
    port: int,
    base_path: str,
    hosts: tuple[str, ...],
    stopping: ShutdownRequest,
) -> AsyncIterator[StudioAddress]:
    from tavola.cli.server_loop import running_background_work
    from tavola.studio import create
    from tavola.web import running_server

    async with running_background_work(target.engine), open_studio(target) as studio:
        asgi_app = create(studio, base_path=base_path, hosts=hosts)
        async with running_server(asgi_app, host, port) as server:
            stopping.on_hurry(server.stop_now)
            yield StudioAddress(server.address, base_path)


def _greet(address: StudioAddress, target: StudioTarget, *, as_json: bool) -> None:
    from tavola.studio import Assets

    where = target.where
    if as_json:
        members = {
            "url": address.url,
            "host": address.address.host,
            "port": address.address.port,
            "base_path": address.base_path,
            "kind": where.kind,
            "tables_in": where.text,
            "region": where.region,
            "account": where.account,
            "read_only": target.read_only,
            "designs": list(target.designs),
        }
        say_json("tavola.studio/1", members)
    else:
        say(f"Tavola {__version__} studio: {style(address.url, 'heading')}")
        say(f"  tables:  {where.text}{f', region {where.region}' if where.region else ''}")
        say(f"  design:  {', '.join(target.designs) or 'none, so entities and access patterns are unknown'}")
        if target.read_only:
            say("  mode:    read-only")
        say("Press Ctrl-C to stop.")
    if not Assets().built:
        note(
            "The pages of the studio are not built; only its API works. Run `make studio`, or install the wheel."
        )
    warn_if_public(address.address.host)
