"""`tavola app`: one application on a port of its own, on whatever holds its tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from tavola import __version__
from tavola.cli.applications import (
    GALLERY,
    SERVICE_DESK,
    SUPPORT_DESK,
    TERRAFORM_REVIEW,
    Application,
    create,
    module_of,
    shell,
    told_of_app,
)
from tavola.cli.choices import (
    AllowHost,
    AllowLive,
    AppStore,
    BlobPlace,
    CallerHeader,
    Choice,
    Environment,
    Host,
    KeepEvents,
    KeepTickets,
    Port,
    Prefix,
    SecretFile,
    StateFolder,
)
from tavola.cli.commands.review import analyse, ingest, sweep
from tavola.cli.keeping import Keeping, kept
from tavola.cli.keys import Key, KeyCommand, KeyFile, key_from
from tavola.cli.output import log_to_terminal, note, say, say_json
from tavola.cli.settings import APPS_PORT
from tavola.cli.targets import Region

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print where it listens as one JSON line.")]

app = typer.Typer(
    name="app",
    help="Serve one of the applications at the root of a port; `tavola demo` serves all of them, with data.",
    no_args_is_help=True,
)


def _command(application: Application) -> Callable[..., None]:
    """Return the command that serves an application."""

    def serve(
        store: AppStore = "memory:",
        host: Host = "127.0.0.1",
        port: Port = int(APPS_PORT.default),
        blobs: BlobPlace = None,
        state: StateFolder = None,
        region: Region = None,
        table_prefix: Prefix = "",
        secret_file: SecretFile = None,
        allow_host: AllowHost = "",
        live: AllowLive = False,
        key_file: KeyFile = None,
        key_command: KeyCommand = None,
        key: Key = None,
        as_json: AsJson = False,
    ) -> None:
        choice = Choice(store, state, blobs, region, table_prefix, secret_file, allow_host)
        _run(application, choice, host, port, (key_file, key_command, key), live=live, as_json=as_json)

    serve.__doc__ = _sentence_of(application)
    return serve


def _sentence_of(application: Application) -> str:
    return f"Serve the {application.title.lower()}. {application.summary}"


def desk_served(
    store: AppStore = "memory:",
    host: Host = "127.0.0.1",
    port: Port = int(APPS_PORT.default),
    keep_tickets: KeepTickets = 0,
    keep_events: KeepEvents = 0,
    blobs: BlobPlace = None,
    state: StateFolder = None,
    region: Region = None,
    table_prefix: Prefix = "",
    secret_file: SecretFile = None,
    allow_host: AllowHost = "",
    live: AllowLive = False,
    key_file: KeyFile = None,
    key_command: KeyCommand = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Serve the support desk, which may let what is over end."""
    choice = Choice(store, state, blobs, region, table_prefix, secret_file, allow_host)

    def make(settings: Any) -> Any:
        kept_for = [timedelta(days=days) if days else None for days in (keep_tickets, keep_events)]
        retention = module_of(SUPPORT_DESK, "store").Retention(*kept_for)
        return module_of(SUPPORT_DESK, "web").create(settings, retention)

    keys = (key_file, key_command, key)
    _run(SUPPORT_DESK, choice, host, port, keys, live=live, as_json=as_json, make=make)


desk_served.__doc__ = _sentence_of(SUPPORT_DESK)


def review_served(
    context: typer.Context,
    store: AppStore = "memory:",
    host: Host = "127.0.0.1",
    port: Port = int(APPS_PORT.default),
    environment: Environment = "dev",
    caller_header: CallerHeader = None,
    blobs: BlobPlace = None,
    state: StateFolder = None,
    region: Region = None,
    table_prefix: Prefix = "",
    secret_file: SecretFile = None,
    allow_host: AllowHost = "",
    live: AllowLive = False,
    key_file: KeyFile = None,
    key_command: KeyCommand = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Serve the Terraform review, which has commands of its own besides."""
    if context.invoked_subcommand is not None:
        return
    choice = Choice(store, state, blobs, region, table_prefix, secret_file, allow_host)

    def make(settings: Any) -> Any:
        web = module_of(TERRAFORM_REVIEW, "web")
        return web.create(web.in_environment(settings, environment), caller_header=caller_header)

    keys = (key_file, key_command, key)
    _run(TERRAFORM_REVIEW, choice, host, port, keys, live=live, as_json=as_json, make=make)


review_served.__doc__ = _sentence_of(TERRAFORM_REVIEW)


def _run(
    application: Application,
    choice: Choice,
    host: str,
    port: int,
    keys: tuple[Path | None, str | None, str | None],
    *,
    live: bool,
    as_json: bool,
    make: Callable[[Any], Any] | None = None,
) -> None:
    """Serve an application until somebody stops it; `make` is for one that takes more than settings."""
    from tavola.cli.running import run_until_asked  # with asyncio, which other commands need not load

    log_to_terminal()
    with (
        told_of_app(f"Cannot serve the {application.title.lower()} on port {port}."),
        kept(choice.place, choice.state, key=key_from(*keys), live=live) as keeping,
    ):
        settings = choice.settings(keeping)
        face = create(application, settings) if make is None else make(settings)
        run_until_asked(
            lambda stopping: _served(face, host, port, keeping, stopping),
            lambda address: _greet(application, address, keeping, as_json=as_json),
        )


@asynccontextmanager
async def _served(face: Any, host: str, port: int, keeping: Keeping, stopping: Any) -> AsyncIterator[Any]:
    from tavola.cli.running import tended

    async with tended(keeping.engine), shell().serving(face, host, port) as served:
        stopping.on_hurry(served.hurry)
        yield served.address


def _greet(application: Application, address: Any, keeping: Keeping, *, as_json: bool) -> None:
    from tavola.server import is_loopback

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
        say(f"  records:  {keeping.told}")
        if keeping.state is not None:
            say(f"  beside:   {keeping.state.absolute()} (secret, checkpoints, blobs)")
        say(f"  the API:  {address.url}/openapi.json, told on {address.url}/ui/api")
        say("Ctrl-C stops it.")
    warn_of_others(address.host, is_loopback(address.host))


def warn_of_others(host: str, alone: bool) -> None:
    """Say it where other machines can reach an application, which asks nobody who they are."""
    if not alone:
        note(
            f"Warning: other machines can reach {host}, and whoever connects may read and change everything: "
            "put a proxy that knows its callers before it."
        )


app.command(name=SUPPORT_DESK.name)(desk_served)
app.command(name=SERVICE_DESK.name)(_command(SERVICE_DESK))
app.command(name=GALLERY.name)(_command(GALLERY))
_review = typer.Typer(name=TERRAFORM_REVIEW.name, callback=review_served, invoke_without_command=True)
_review.command()(ingest)
_review.command()(analyse)
_review.command()(sweep)
app.add_typer(_review)
