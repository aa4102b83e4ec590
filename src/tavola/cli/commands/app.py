"""`tavola app`: one application on a port of its own, on whatever holds its tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Annotated, Any, TypeAlias

import click

from tavola import __version__
from tavola.cli.app_options import (
    AllowHost,
    AppStoreOption,
    CallerHeader,
    Environment,
    Host,
    KeepEvents,
    KeepTickets,
    Port,
    StorageOptions,
)
from tavola.cli.app_storage import AppStorage
from tavola.cli.applications import (
    GALLERY,
    SERVICE_DESK,
    SUPPORT_DESK,
    TERRAFORM_REVIEW,
    Application,
    create,
    module_of,
    reporting_app_errors,
    shell,
)
from tavola.cli.commands.review import analyse, ingest, sweep
from tavola.cli.output import log_to_terminal, note, say, say_json
from tavola.cli.parameters import BUNDLE, Group, Option, command
from tavola.cli.settings import APPS_PORT

AsJson: TypeAlias = Annotated[bool, Option("--json", help="Print where it listens as one JSON line.")]

app = Group(
    "app",
    help="Serve one of the applications at the root of a port; `tavola demo` serves all of them, with data.",
    no_args_is_help=True,
)


def _command(application: Application) -> Callable[..., None]:
    """Return the command that serves an application."""

    def serve(
        store: AppStoreOption = "memory:",
        host: Host = "127.0.0.1",
        port: Port = int(APPS_PORT.default),
        allow_host: AllowHost = "",
        storage: StorageOptions = BUNDLE,
        as_json: AsJson = False,
    ) -> None:
        _run(application, store, storage, host, port, allow_host, as_json=as_json)

    serve.__doc__ = _sentence_of(application)
    return serve


def _sentence_of(application: Application) -> str:
    return f"Serve the {application.title.lower()}. {application.summary}"


def desk_served(
    store: AppStoreOption = "memory:",
    host: Host = "127.0.0.1",
    port: Port = int(APPS_PORT.default),
    keep_tickets: KeepTickets = 0,
    keep_events: KeepEvents = 0,
    allow_host: AllowHost = "",
    storage: StorageOptions = BUNDLE,
    as_json: AsJson = False,
) -> None:
    """Serve the support desk, which may let what is over end."""

    def make(settings: Any) -> Any:
        kept_for = [timedelta(days=days) if days else None for days in (keep_tickets, keep_events)]
        retention = module_of(SUPPORT_DESK, "store").Retention(*kept_for)
        return module_of(SUPPORT_DESK, "web").create(settings, retention)

    _run(SUPPORT_DESK, store, storage, host, port, allow_host, as_json=as_json, make=make)


desk_served.__doc__ = _sentence_of(SUPPORT_DESK)


def review_served(
    context: click.Context,
    store: AppStoreOption = "memory:",
    host: Host = "127.0.0.1",
    port: Port = int(APPS_PORT.default),
    environment: Environment = "dev",
    caller_header: CallerHeader = None,
    allow_host: AllowHost = "",
    storage: StorageOptions = BUNDLE,
    as_json: AsJson = False,
) -> None:
    """Serve the Terraform review, which has commands of its own besides."""
    if context.invoked_subcommand is not None:
        return

    def make(settings: Any) -> Any:
        web = module_of(TERRAFORM_REVIEW, "web")
        return web.create(web.in_environment(settings, environment), caller_header=caller_header)

    _run(TERRAFORM_REVIEW, store, storage, host, port, allow_host, as_json=as_json, make=make)


review_served.__doc__ = _sentence_of(TERRAFORM_REVIEW)


def _run(
    application: Application,
    store: str,
    storage: StorageOptions,
    host: str,
    port: int,
    hosts: str,
    *,
    as_json: bool,
    make: Callable[[Any], Any] | None = None,
) -> None:
    """Serve an application until a signal stops it; `make` creates one that needs more than settings."""
    from tavola.cli.server_loop import run_until_signal  # with asyncio, which other commands need not load

    log_to_terminal()
    with (
        reporting_app_errors(f"Cannot serve the {application.title.lower()} on port {port}."),
        storage.open(store) as keeping,
    ):
        settings = storage.settings(store, keeping, hosts)
        face = create(application, settings) if make is None else make(settings)
        run_until_signal(
            lambda stopping: _serve(face, host, port, keeping, stopping),
            lambda address: _greet(application, address, keeping, as_json=as_json),
        )


@asynccontextmanager
async def _serve(face: Any, host: str, port: int, keeping: AppStorage, stopping: Any) -> AsyncIterator[Any]:
    from tavola.cli.server_loop import running_background_work

    async with running_background_work(keeping.engine), shell().running_server(face, host, port) as served:
        stopping.on_hurry(served.stop_now)
        yield served.address


def _greet(application: Application, address: Any, keeping: AppStorage, *, as_json: bool) -> None:
    from tavola.server.hosts import is_loopback

    if as_json:
        say_json(
            "tavola.app/1",
            {
                "application": application.name,
                "url": address.url,
                "host": address.host,
                "port": address.port,
                "store": keeping.target if isinstance(keeping.target, str) else None,
                "file": None if keeping.file is None else str(keeping.file.absolute()),
                "state": None if keeping.state is None else str(keeping.state.absolute()),
            },
        )
    else:
        say(f"Tavola {__version__} serves the {application.title.lower()} at {address.url}/ui/")
        say(f"  records:  {keeping.description}")
        if keeping.state is not None:
            say(f"  beside:   {keeping.state.absolute()} (secret, checkpoints, blobs)")
        say(f"  the API:  {address.url}/openapi.json, told on {address.url}/ui/api")
        say("Ctrl-C stops it.")
    warn_of_others(address.host, is_loopback(address.host))


def warn_of_others(host: str, alone: bool) -> None:
    """Warn if other machines can reach an application, because it does not authenticate callers."""
    if not alone:
        note(
            f"Warning: other machines can reach {host}, and whoever connects may read and change everything: "
            "put a proxy that knows its callers before it."
        )


app.add_command(command(desk_served, SUPPORT_DESK.name))
app.add_command(command(_command(SERVICE_DESK), SERVICE_DESK.name))
app.add_command(command(_command(GALLERY), GALLERY.name))
_review = Group.of(review_served, TERRAFORM_REVIEW.name)
for _each in (ingest, analyse, sweep):
    _review.add(_each)
app.add_command(_review)
