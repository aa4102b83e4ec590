"""`tavola app`: serve one of the sample applications on a port of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import click

from tavola import __version__
from tavola.cli.applications import (
    GALLERY,
    SERVICE_DESK,
    SUPPORT_DESK,
    TERRAFORM_REVIEW,
    Application,
    AppServerOptions,
    AppStorage,
    EnvironmentOption,
    create,
    reporting_app_errors,
    warn_if_public,
)
from tavola.cli.commands.review import analyze, ingest, sweep
from tavola.cli.output import log_to_terminal, say, say_json
from tavola.cli.parameters import BUNDLE, CommandGroup, command
from tavola.cli.settings import CALLER_HEADER, KEEP_EVENTS, KEEP_TICKETS, option
from tavola.cli.terminal import style

if TYPE_CHECKING:
    from fastapi import FastAPI

    from tavola.apps.shell import AppSettings, ListenAddress
    from tavola.cli.server_loop import ShutdownRequest

app = CommandGroup(
    "app", help="Serve one of the sample applications; `tavola demo` serves all.", no_args_is_help=True
)


def serve_support_desk(
    keep_tickets: Annotated[int, option(KEEP_TICKETS)] = 0,
    keep_events: Annotated[int, option(KEEP_EVENTS)] = 0,
    server: AppServerOptions = BUNDLE,
) -> None:
    """Serve the support desk.

    Tickets with timeline, feedback and escalations, an agent's queue, and a dashboard that never scans.
    """

    def create_app(settings: AppSettings) -> FastAPI:
        from tavola.apps.support_desk import web
        from tavola.apps.support_desk.store import Retention

        retention = Retention(
            *(timedelta(days=days) if days else None for days in (keep_tickets, keep_events))
        )
        return web.create(settings, retention)

    _run(SUPPORT_DESK, server, create_app)


def serve_service_desk(server: AppServerOptions = BUNDLE) -> None:
    """Serve the service desk.

    Four operations for helpline callers: open, show and comment on a ticket, and list a caller's tickets.
    """
    _run(SERVICE_DESK, server, lambda settings: create(SERVICE_DESK, settings))


def serve_gallery(server: AppServerOptions = BUNDLE) -> None:
    """Serve the gallery of patterns.

    Small designs, one for each pattern, with sample data and the cost of every query.
    """
    _run(GALLERY, server, lambda settings: create(GALLERY, settings))


def serve_terraform_review(
    context: click.Context,
    environment: EnvironmentOption = "dev",
    caller_header: Annotated[str | None, option(CALLER_HEADER)] = None,
    server: AppServerOptions = BUNDLE,
) -> None:
    """Serve the Terraform review, or load reviews.

    Immutable versions of infrastructure code reviews: risk over time, recurring issues and an audit trail.
    """
    if context.invoked_subcommand is not None:
        return

    def create_app(settings: AppSettings) -> FastAPI:
        from tavola.apps.terraform_review import web

        return web.create(web.in_environment(settings, environment), caller_header=caller_header)

    _run(TERRAFORM_REVIEW, server, create_app)


def _run(
    application: Application, options: AppServerOptions, create_app: Callable[[AppSettings], FastAPI]
) -> None:
    """Serve an application until a signal stops it."""
    from tavola.cli.server_loop import run_until_signal  # loads asyncio, which other commands do not need

    log_to_terminal()
    what = f"Cannot serve the {application.title.lower()} on port {options.port}."
    with reporting_app_errors(what), options.open() as storage:
        asgi_app = create_app(options.settings(storage, options.allow_host))
        run_until_signal(
            lambda stopping: _serve(asgi_app, options, storage, stopping),
            lambda address: _greet(application, address, storage, as_json=options.as_json),
        )


@asynccontextmanager
async def _serve(
    asgi_app: FastAPI, options: AppServerOptions, storage: AppStorage, stopping: ShutdownRequest
) -> AsyncIterator[ListenAddress]:
    from tavola.apps.shell import running_server
    from tavola.cli.server_loop import running_background_work

    async with (
        running_background_work(storage.engine),
        running_server(asgi_app, options.host, options.port) as server,
    ):
        stopping.on_hurry(server.stop_now)
        yield server.address


def _greet(application: Application, address: ListenAddress, storage: AppStorage, *, as_json: bool) -> None:
    if as_json:
        members = {
            "application": application.name,
            "url": address.url,
            "host": address.host,
            "port": address.port,
            "store": storage.target if isinstance(storage.target, str) else None,
            "file": None if storage.file is None else str(storage.file.absolute()),
            "state": None if storage.state is None else str(storage.state.absolute()),
        }
        say_json("tavola.app/1", members)
    else:
        url = style(f"{address.url}/ui/", "heading")
        say(f"Tavola {__version__} serves the {application.title.lower()} at {url}")
        say(f"  records:  {storage.description}")
        if storage.state is not None:
            say(f"  state:    {storage.state.absolute()} (secret, checkpoints, blobs)")
        say(f"  API:      {address.url}/openapi.json, described at {address.url}/ui/api")
        say("Press Ctrl-C to stop.")
    warn_if_public(address.host)


app.add_command(command(serve_support_desk, SUPPORT_DESK.name))
app.add_command(command(serve_service_desk, SERVICE_DESK.name))
_review = CommandGroup.of(serve_terraform_review, TERRAFORM_REVIEW.name)
for _command in (ingest, analyze, sweep):
    _review.add(_command)
app.add_command(_review)
app.add_command(command(serve_gallery, GALLERY.name))
