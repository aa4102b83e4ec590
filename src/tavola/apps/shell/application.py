"""The FastAPI application that every application starts from.

`new_application` adds error responses, the request guard, metrics, health checks, static files and the API page. The caller adds
its own routes, and passes `lifespan`, which opens its store and starts its followers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from tavola import AccessDeniedFault, TavolaError, __version__
from tavola.apps.shell.followers import Follower
from tavola.apps.shell.metrics import ApplicationMetrics, MeasureRequests
from tavola.apps.shell.openapi import declare_problems, group_operations, problems
from tavola.apps.shell.pages import STATIC, Pages
from tavola.apps.shell.problems import problem_of
from tavola.apps.shell.stores import AppSettings, OpenedStore
from tavola.web import BODY_BYTES_MAX, Compression, ProblemError, RequestGuard, Upload

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]

COMPRESSED_BYTES_MIN = 4 * 1024  # a smaller response costs more to compress than it saves
_NO_TELEMETRY = {"tracing": False, "metrics": False, "logs": False}


class Shell:
    """The running state of an application, for its health checks and metrics: `shell_of(application).watch(store, follower)`."""

    def __init__(self, settings: AppSettings, pages: Pages) -> None:
        self.settings = settings
        self.pages = pages
        self.metrics = ApplicationMetrics()
        self.store: OpenedStore | None = None
        self.followers: tuple[Follower, ...] = ()
        self.parts: tuple[Shell, ...] = ()  # the mounted applications, for the demo's start page

    def watch(self, store: OpenedStore, *followers: Follower) -> None:
        """Report this store and these followers in health checks and metrics."""
        self.store = store
        self.followers = self.metrics.followers = followers

    async def ready(self) -> dict[str, str]:
        """Return the state of each follower; raise a 503 if one is not running or the store does not respond."""
        if self.parts:
            parts = [await part.ready() for part in self.parts]
            return {name: state for part in parts for name, state in part.items()}
        if self.store is None:
            raise ProblemError(
                503,
                "not-ready",
                "Not ready",
                "The application is starting or stopping. Try again in a moment.",
            )
        with suppress(AccessDeniedFault):  # a response too: listing tables may be denied
            await self.store.db.call("ListTables", {"Limit": 1})
        states = {
            follower.name: follower.state if follower.running else "stopped" for follower in self.followers
        }
        stuck = sorted(name for name, state in states.items() if state not in ("following", "rebuilding"))
        if stuck:
            detail = f"Stream followers are not running: {', '.join(stuck)}. See the log for the reason."
            raise ProblemError(503, "not-ready", "Not ready", detail, followers=states)
        return dict(states)


def shell_of(application: FastAPI) -> Shell:
    """Return the state of an application that `new_application` created."""
    shell: Shell = application.state.shell
    return shell


def new_application(
    settings: AppSettings,
    *,
    title: str,
    description: str,
    pages: Pages,
    lifespan: Lifespan,
    tags: Sequence[tuple[str, str]] = (),
    body_bytes_max: int = BODY_BYTES_MAX,
    accepts: Iterable[str] = (),
    uploads: Sequence[Upload] = (),
) -> FastAPI:
    """Return an application with everything except its own routes.

    `lifespan` opens what the routes need, on the running loop, and closes it. JSON bodies are accepted everywhere and forms
    under /ui/; `accepts` lists further content types, and `uploads` paths that accept any, each with its own size limit.
    """
    shell = Shell(settings, pages)

    @asynccontextmanager
    async def watched_lifespan(application: FastAPI) -> Any:
        async with lifespan(application):
            yield
        shell.store, shell.followers, shell.metrics.followers = None, (), ()

    application = FastAPI(
        title=title,
        description=description,
        version=__version__,
        openapi_tags=[{"name": name, "description": text} for name, text in tags],
        docs_url=None,
        redoc_url=None,
        lifespan=watched_lifespan,
        redirect_slashes=False,  # the redirect would repeat the query, with http:// even behind an https proxy
        telemetry=_NO_TELEMETRY,  # type: ignore[arg-type]  # a TypedDict that is not exported
    )
    application.state.shell = shell
    generate = application.openapi

    def openapi() -> dict[str, Any]:
        document = generate()
        return (
            document
            if "Problem" in document.get("components", {}).get("schemas", {})
            else declare_problems(document)
        )

    application.openapi = openapi  # type: ignore[method-assign]  # as FastAPI's documentation recommends
    _handle_errors(application, pages)
    _add_routes(application, shell)
    # Inside the guard, which drops the body of a HEAD response but keeps its headers.
    application.add_middleware(Compression, minimum_size=COMPRESSED_BYTES_MIN, compresslevel=1)
    application.add_middleware(
        RequestGuard,
        hosts=settings.hosts,
        body_bytes_max=body_bytes_max,
        accepts=accepts,
        uploads=uploads,
        base_path=settings.base_path,
        render_problem=lambda scope, problem: problem_response(pages, Request(scope), problem),
        entropy=settings.entropy,
    )
    # Outermost: refused requests count too
    application.add_middleware(MeasureRequests, metrics=shell.metrics)
    return application


def _handle_errors(application: FastAPI, pages: Pages) -> None:
    async def handle(request: Request, error: Exception) -> Response:
        problem = problem_of(error, conditional="if-match" in request.headers)
        if problem is None:
            raise error  # the guard logs it and responds
        if problem.status == 405:
            problem.headers["Allow"] = ", ".join(_allowed_methods(application, request))
        if isinstance(error, HTTPException) and problem.status == 404 and _is_browser(request):
            return pages.problem(request, _page_missing())  # an unknown address belongs to no API
        return problem_response(pages, request, problem)

    for kind in (TavolaError, HTTPException, RequestValidationError, ValidationError):
        application.add_exception_handler(kind, handle)


def _page_missing() -> ProblemError:
    detail, remedy = "No page exists at this address.", "Check the address, or go to the start page."
    return ProblemError(404, "not-found", "Page not found", detail, remedy)


def problem_response(pages: Pages, request: Request, problem: ProblemError) -> Response:
    """Return a problem as a page for browsers, as a JSON document for other clients."""
    return pages.problem(request, problem) if wants_page(request) else problem.response(request.scope["path"])


def wants_page(request: Request) -> bool:
    """Return whether a browser requests a page."""
    path = str(request.scope["path"]).removeprefix(str(request.scope.get("root_path", "")))
    return path.startswith("/ui") and _is_browser(request)


def _is_browser(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _allowed_methods(application: FastAPI, request: Request) -> list[str]:
    """Return all methods of a path; Starlette itself reports only those of the first matching route."""
    methods: set[str] = set()
    for route in routes_of(application):
        match, _ = route.matches(request.scope)
        if match is not Match.NONE:
            methods |= set(route.methods or ())
    return sorted(methods | {"HEAD"} if "GET" in methods else methods)


def routes_of(application: FastAPI) -> Iterator[Route]:
    """Generate the routes of an application and of its included routers."""
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
    async def add_slash(request: Request) -> Response:
        return pages.redirect(request, "/ui/")

    @application.get(
        "/healthz",
        tags=["service"],
        summary="Check that the process is running",
        response_model=dict[str, str],
    )
    async def healthz() -> Response:
        return Response(b'{"status":"ok"}', media_type="application/json")

    @application.get(
        "/readyz",
        tags=["service"],
        summary="Check that the store responds and stream followers run",
        response_model=dict[str, Any],
        responses=problems(503),
    )
    async def readyz() -> dict[str, Any]:
        return {"status": "ready", "followers": await shell.ready()}

    @application.get(
        "/metrics",
        tags=["service"],
        summary="Metrics in the Prometheus text format",
        response_class=Response,
        responses={
            200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The metrics"}
        },
    )
    async def metrics() -> Response:
        return Response(shell.metrics.render(), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    application.mount(STATIC, pages.files)

    @application.get("/ui/api", include_in_schema=False)
    async def api(request: Request) -> Response:
        base = str(request.scope.get("root_path", ""))
        address = f"{request.url.scheme}://{request.headers.get('host', 'localhost')}{base}"
        groups = group_operations(application.openapi(), address)
        context = {"groups": groups, "address": address, "description": application.description}
        return pages.render(request, "shell/api.html", context)
