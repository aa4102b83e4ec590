"""Start: the page that a demo begins with, and the applications beside it, each under its own path.

Starlette does not run the lives of what is mounted; they are run here, in order, and ended in the opposite one.
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
from tavola.apps.shell.stores import Settings
from tavola.web import apply_base_path


@dataclass(frozen=True, slots=True)
class Mounted:
    """An application of the demo; it is made with settings without a base path, which is the demo's."""

    path: str  # "/support-desk"
    title: str
    summary: str
    application: Starlette
    pages: Sequence[Link] = ()  # of its pages, below its path
    api: bool = True  # it has a page about its API


class Start(Starlette):
    """The root of a demo: requests go to the application whose path they begin with, the others to the start page."""

    base_path: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, under a base path that the proxy in front may or may not have taken away."""
        if scope["type"] == "http":
            if self.base_path:
                apply_base_path(scope, self.base_path)
            scope[HOME] = self.base_path
        await super().__call__(scope, receive, send)


def start_page(settings: Settings, mounted: Sequence[Mounted], *, endpoint: str | None = None) -> Start:
    """Return the application at the root: a page of what is there, and all of it.

    `endpoint` is the address of DynamoDB's own protocol, where the demo serves it too.
    """
    home = _home(replace(settings, base_path=""), mounted, endpoint)

    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for each in (*(one.application for one in mounted), home):
                await stack.enter_async_context(each.router.lifespan_context(each))
            yield

    routes: list[Route | Mount] = []
    for each in mounted:
        routes.append(Route(each.path, _to_the_slash, include_in_schema=False))
        routes.append(Mount(each.path, each.application))
    start = Start(routes=[*routes, Mount("", home)], lifespan=life)
    start.base_path = settings.base_path
    return start


async def _to_the_slash(request: Request) -> Response:
    return RedirectResponse(request.scope["path"] + "/", 308)


def _home(settings: Settings, mounted: Sequence[Mounted], endpoint: str | None) -> FastAPI:
    links = [Link(each.title, each.path + "/") for each in mounted]
    pages = Pages("Tavola", links, tagline="DynamoDB in your own process", clock=settings.clock)
    commands = "\n".join(
        (
            f"export AWS_ENDPOINT_URL_DYNAMODB={endpoint}",
            "export AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any AWS_REGION=us-east-1",
            "aws dynamodb list-tables",
        )
    )

    @asynccontextmanager
    async def life(application: FastAPI) -> AsyncIterator[None]:
        found = [each.application for each in mounted if isinstance(each.application, FastAPI)]
        shell_of(application).parts = tuple(shell_of(each) for each in found if hasattr(each.state, "shell"))
        yield

    application = new_application(
        settings,
        title="Tavola",
        description="The page that says what runs here. Each application has an API of its own.",
        pages=pages,
        life=life,
    )

    @application.get("/ui/", include_in_schema=False)
    async def front(request: Request) -> Response:
        told = {"mounted": mounted, "endpoint": endpoint, "commands": commands}
        return pages.render(request, "shell/start.html", told)

    return application
