"""Applications: what a FastAPI application of ours has before it has a route of its own.

Problems, guards, measures, health, the static files and the page about its API. Its own life (opening the store, starting
followers) is given as `life`; routes are added to what is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from tavola import AccessDeniedFault, TavolaError, __version__
from tavola.apps.shell.declarations import declare_problems, problems
from tavola.apps.shell.followers import Follower
from tavola.apps.shell.measures import MEDIA_TYPE, Measured, Measures
from tavola.apps.shell.operations import groups_of
from tavola.apps.shell.pages import Pages
from tavola.apps.shell.problems import problem_of
from tavola.apps.shell.stores import OpenedStore, Settings
from tavola.web import BODY_BYTES_MAX, ProblemError, RequestGuard, Upload, not_found

Life = Callable[[FastAPI], AbstractAsyncContextManager[None]]

QUIET = {"tracing": False, "metrics": False, "logs": False}


class Shell:
    """What the shell knows of a running application: `shell_of(application).watch(store, follower)`."""

    def __init__(self, settings: Settings, pages: Pages) -> None:
        self.settings = settings
        self.pages = pages
        self.measures = Measures()
        self.store: OpenedStore | None = None
        self.followers: tuple[Follower, ...] = ()
        self.parts: tuple[Shell, ...] = ()  # of the applications that this one stands for

    def watch(self, store: OpenedStore, *followers: Follower) -> None:
        """Let readiness and measures tell of a store and of followers."""
        self.store = store
        self.followers = followers

    async def ready(self) -> dict[str, str]:
        """Return what each follower is doing; a problem where one stands still or the store does not answer."""
        if self.parts:
            found = [await part.ready() for part in self.parts]
            return {name: state for each in found for name, state in each.items()}
        if self.store is None:
            raise ProblemError(
                503,
                "not-ready",
                "Not ready",
                "The application is starting or stopping. Ask again in a moment.",
            )
        with suppress(AccessDeniedFault):  # an answer too: who may do little need not list tables
            await self.store.db.call("ListTables", {"Limit": 1})
        states = {each.name: each.state if each.running else "stopped" for each in self.followers}
        stuck = sorted(name for name, state in states.items() if state not in ("following", "rebuilding"))
        if stuck:
            told = f"Not followed: {', '.join(stuck)}. The log says why."
            raise ProblemError(503, "not-ready", "Not ready", told, followers=states)
        return dict(states)


def shell_of(application: FastAPI) -> Shell:
    """Return what the shell knows of an application that `new_application` made."""
    found: Shell = application.state.shell
    return found


def new_application(
    settings: Settings,
    *,
    title: str,
    description: str,
    pages: Pages,
    life: Life,
    tags: Sequence[tuple[str, str]] = (),
    body_bytes_max: int = BODY_BYTES_MAX,
    accepts: Iterable[str] = (),
    uploads: Sequence[Upload] = (),
) -> FastAPI:
    """Return an application with everything but its own routes.

    `life` opens what the routes need, on the running loop, and closes it. JSON is taken everywhere and forms under /ui/;
    `accepts` names what else a body may be, everywhere; `uploads` are the paths whose body is taken as it is, each with a
    limit of its own.
    """
    shell = Shell(settings, pages)

    @asynccontextmanager
    async def lifespan(application: FastAPI) -> Any:
        async with life(application):
            yield
        shell.store, shell.followers = None, ()

    application = FastAPI(
        title=title,
        description=description,
        version=__version__,
        openapi_tags=[{"name": name, "description": told} for name, told in tags],
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,  # it repeats the question, and with http:// where a proxy has https
        telemetry=QUIET,  # type: ignore[arg-type]  # a TypedDict that is not exported
    )
    application.state.shell = shell
    made = application.openapi

    def openapi() -> dict[str, Any]:
        document = made()
        return (
            document
            if "Problem" in document.get("components", {}).get("schemas", {})
            else declare_problems(document)
        )

    application.openapi = openapi  # type: ignore[method-assign]  # as FastAPI's guide has it
    _handle_errors(application, pages)
    _add_routes(application, shell)
    application.add_middleware(
        RequestGuard,
        hosts=settings.hosts,
        body_bytes_max=body_bytes_max,
        accepts=accepts,
        uploads=uploads,
        base_path=settings.base_path,
        answer=lambda scope, problem: problem_answer(pages, Request(scope), problem),
        entropy=settings.entropy,
    )
    application.add_middleware(Measured, measures=shell.measures)  # outermost: refusals count too
    return application


def _handle_errors(application: FastAPI, pages: Pages) -> None:
    async def handle(request: Request, error: Exception) -> Response:
        problem = problem_of(error, conditional="if-match" in request.headers)
        if problem is None:
            raise error  # the guard logs it and answers
        if problem.status == 405:
            problem.headers["Allow"] = ", ".join(_allowed(application, request))
        if isinstance(error, HTTPException) and problem.status == 404 and _is_browser(request):
            return pages.problem(request, problem)  # an address that nobody has is nobody's document either
        return problem_answer(pages, request, problem)

    for kind in (TavolaError, HTTPException, RequestValidationError, ValidationError):
        application.add_exception_handler(kind, handle)


def problem_answer(pages: Pages, request: Request, problem: ProblemError) -> Response:
    """Return a problem as a page for a browser, as a document for everybody else."""
    return pages.problem(request, problem) if wants_page(request) else problem.response(request.scope["path"])


def wants_page(request: Request) -> bool:
    """Tell whether a request is a browser's for a page."""
    path = str(request.scope["path"]).removeprefix(str(request.scope.get("root_path", "")))
    return path.startswith("/ui") and _is_browser(request)


def _is_browser(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _allowed(application: FastAPI, request: Request) -> list[str]:
    """Return every method that an address takes; the router itself tells those of its first route."""
    found: set[str] = set()
    for route in routes_of(application):
        match, _ = route.matches(request.scope)
        if match is not Match.NONE:
            found |= set(route.methods or ())
    return sorted(found | {"HEAD"} if "GET" in found else found)


def routes_of(application: FastAPI) -> Iterator[Route]:
    """Give the routes of an application, those of the routers that it includes too."""
    waiting = list(application.routes)
    while waiting:
        route = waiting.pop(0)
        if isinstance(route, Route):
            yield route
        else:
            waiting[:0] = getattr(getattr(route, "original_router", None), "routes", ())


def _add_routes(application: FastAPI, shell: Shell) -> None:
    pages = shell.pages

    @application.get("/", include_in_schema=False)
    async def front(request: Request) -> Response:
        return pages.redirect(request, "/ui/")

    @application.get("/ui", include_in_schema=False)
    async def to_the_slash(request: Request) -> Response:
        return pages.redirect(request, "/ui/")

    @application.get(
        "/healthz", tags=["service"], summary="Whether the process lives", response_model=dict[str, str]
    )
    async def healthz() -> Response:
        return Response(b'{"status":"ok"}', media_type="application/json")

    @application.get(
        "/readyz",
        tags=["service"],
        summary="Whether the store answers and followers run",
        response_model=dict[str, Any],
        responses=problems(503),
    )
    async def readyz() -> dict[str, Any]:
        return {"status": "ready", "followers": await shell.ready()}

    @application.get(
        "/metrics",
        tags=["service"],
        summary="Requests and followers, as Prometheus reads them",
        response_class=Response,
        responses={
            200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The numbers"}
        },
    )
    async def metrics() -> Response:
        return Response(shell.measures.render(shell.followers), media_type=MEDIA_TYPE)

    @application.get("/ui/static/{digest}/{name}", include_in_schema=False)
    async def static(digest: str, name: str) -> Response:
        found = pages.static(digest, name)
        if found is None:
            raise not_found("file")
        return found

    @application.get("/ui/api", include_in_schema=False)
    async def api(request: Request) -> Response:
        base = str(request.scope.get("root_path", ""))
        address = f"{request.url.scheme}://{request.headers.get('host', 'localhost')}{base}"
        groups = groups_of(application.openapi(), address)
        told = {"groups": groups, "address": address, "description": application.description}
        return pages.render(request, "shell/api.html", told)
