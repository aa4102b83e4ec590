"""The start page of a demo, and the applications mounted below it, each under its own path.

Starlette does not run the lifespans of mounted applications, so they are entered here in order and left in reverse.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from tavola.apps.shell.application import new_application, shell_of
from tavola.apps.shell.pages import HOME, Link, Pages
from tavola.apps.shell.stores import AppSettings
from tavola.web import apply_base_path


@dataclass(frozen=True, slots=True)
class Mounted:
    """An application of the demo; its settings have no base path, because the demo adds its own."""

    path: str  # "/support-desk"
    title: str
    summary: str
    application: Starlette
    pages: Sequence[Link] = ()  # to its pages, below its path
    api: bool = True  # whether it has an API page


class Start(Starlette):
    """The root of a demo: requests are routed to the mounted application with a matching path, others to the start page."""

    base_path: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request below the base path, whether or not the proxy in front has stripped it."""
        if scope["type"] == "http":
            if self.base_path:
                apply_base_path(scope, self.base_path)
            scope[HOME] = self.base_path
        await super().__call__(scope, receive, send)


def start_page(
    settings: AppSettings,
    mounted: Sequence[Mounted],
    *,
    endpoint: str | None = None,
    commands: Sequence[str] = (),
) -> Start:
    """Return the root application: the start page and all mounted applications.

    `endpoint` is the URL of the DynamoDB API if the demo serves it too, and `commands` are shell commands that use it.
    """
    home = _home(replace(settings, base_path=""), mounted, endpoint, "\n".join(commands))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for application in (*(one.application for one in mounted), home):
                await stack.enter_async_context(application.router.lifespan_context(application))
            yield

    routes: list[Route | Mount] = []
    for mount in mounted:
        routes.append(Route(mount.path, _add_slash, include_in_schema=False))
        routes.append(Mount(mount.path, mount.application))
    start = Start(routes=[*routes, Mount("", home)], lifespan=lifespan)
    start.base_path = settings.base_path
    return start


async def _add_slash(request: Request) -> Response:
    return RedirectResponse(request.scope["path"] + "/", 308)


def _home(settings: AppSettings, mounted: Sequence[Mounted], endpoint: str | None, commands: str) -> FastAPI:
    links = [Link(mount.title, mount.path + "/") for mount in mounted]
    pages = Pages(
        "Tavola", links, tagline="a toolkit for DynamoDB single-table systems", clock=settings.clock
    )

    @asynccontextmanager
    async def lifespan(application: FastAPI) -> AsyncIterator[None]:
        applications = [mount.application for mount in mounted if isinstance(mount.application, FastAPI)]
        shell_of(application).parts = tuple(
            shell_of(application) for application in applications if hasattr(application.state, "shell")
        )
        yield

    application = new_application(
        settings,
        title="Tavola",
        description="The start page of the demo. Each application has its own API.",
        pages=pages,
        lifespan=lifespan,
    )

    @application.get("/ui/", include_in_schema=False)
    async def front(request: Request) -> Response:
        has_docs = any(mount.path == "/docs" for mount in mounted)
        context = {"mounted": mounted, "endpoint": endpoint, "commands": commands, "has_docs": has_docs}
        return pages.render(request, "shell/start.html", context)

    return application
