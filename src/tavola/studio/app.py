"""The API and the pages over HTTP.

Anyone who reaches this application can read and change every table, so three checks protect it. The guard accepts only known
host names and rejects requests from other sites, reads included. Every request other than a GET needs the token that only
the page received. The content security policy runs only our own script files. What a request may change is decided in
`endpoint`.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import Scope

from tavola import __version__
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.errors import TavolaError
from tavola.studio.api import ENDPOINTS
from tavola.studio.assets import Assets
from tavola.studio.endpoint import Endpoint, encode_response
from tavola.studio.problems import problem_of
from tavola.studio.studio import Studio
from tavola.web import (
    CANCEL_ON_DISCONNECT,
    Compression,
    Problem,
    ProblemError,
    RequestGuard,
    Upload,
    problem_for_status,
)

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
)
TOKEN_HEADER = "X-Tavola-Token"
TOKEN_BYTES = 32

_API = "/api"
_COMPRESS_JSON = Middleware(Compression, minimum_size=32 * 1024, compresslevel=1)  # smaller is not worthwhile
_COMPRESS_FILES = Middleware(Compression, minimum_size=512)


def create(
    studio: Studio,
    *,
    base_path: str = "",
    hosts: Iterable[str] = (),
    endpoints: Iterable[Endpoint] = ENDPOINTS,
    assets: Assets | None = None,
    entropy: Entropy = SYSTEM_ENTROPY,
) -> Starlette:
    """Return the studio as an application: the API below `/api`, the built files, and the page at every other path.

    It works mounted below a path, and behind a proxy that strips `base_path` or passes it on. `hosts` are accepted host
    names besides localhost and IP addresses.
    """
    served = _StudioApp(studio, tuple(endpoints), assets or Assets(), entropy.bytes(TOKEN_BYTES).hex())
    uploads = [
        Upload(re.compile(re.escape(_API + endpoint.path)), endpoint.body_bytes_max)
        for endpoint in served.endpoints
        if endpoint.method != "GET"
    ]
    guard = Middleware(
        RequestGuard,
        hosts=hosts,
        uploads=uploads,
        private_under=f"{_API}/",
        known_names=True,
        policy=CONTENT_SECURITY_POLICY,
        base_path=base_path,
        render_problem=_error_response,
        entropy=entropy,
    )
    application = Starlette(
        routes=[
            Route(
                "/api/{path:path}",
                served.call_endpoint,
                methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
                middleware=[_COMPRESS_JSON],
            ),
            Mount("/assets", served.assets.files, middleware=[_COMPRESS_FILES]),
            Route("/{path:path}", served.page, methods=["GET"]),
        ],
        middleware=[guard],
        exception_handlers={HTTPException: _http_error},
    )
    application.router.redirect_slashes = False
    return application


class _StudioApp:
    """The endpoints by path, the built files, and the token of this process."""

    def __init__(self, studio: Studio, endpoints: tuple[Endpoint, ...], assets: Assets, token: str) -> None:
        self.studio = studio
        self.endpoints = endpoints
        self.assets = assets
        self.token = token
        self._by_path: dict[str, dict[str, Endpoint]] = {}
        for endpoint in endpoints:
            self._by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint

    async def call_endpoint(self, request: Request) -> Response:
        """Respond to an API request."""
        try:
            endpoint = self._find_endpoint(request)
            if request.method == "GET":
                call = endpoint.call(self.studio, _parameters(request, endpoint))
            else:
                self._check_token(request)
                call = endpoint.call(self.studio, await request.body())
            response = await (_until_disconnect(request, call) if endpoint.cancel_on_disconnect else call)
        except TavolaError as error:
            return _problem_response(
                problem_of(error), error.headers if isinstance(error, ProblemError) else None
            )
        if isinstance(response, Response):
            return response
        return Response(encode_response(response), 200, {"Cache-Control": "no-store"}, "application/json")

    def _find_endpoint(self, request: Request) -> Endpoint:
        methods = self._by_path.get("/" + str(request.path_params["path"]))
        if methods is None:
            raise ProblemError(
                404,
                "endpoint-unknown",
                "Endpoint not found",
                "The API has no endpoint at this path.",
                "`tavola api` lists all endpoints.",
            )
        endpoint = methods.get(request.method)
        if endpoint is None:
            raise problem_for_status(405, {"Allow": ", ".join(sorted(methods))})
        return endpoint

    def _check_token(self, request: Request) -> None:
        token = request.headers.get(TOKEN_HEADER, "")
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode()):
            raise ProblemError(
                403,
                "token-refused",
                "Invalid token",
                "Requests must come from the studio's own page, which has the token of this process.",
                "Reload the page. Programs can use `tavola api` instead.",
            )

    async def page(self, request: Request) -> Response:
        """Send the index page; its own router reads the path."""
        base_path = str(request.scope.get("root_path", ""))
        metadata = {
            "token": self.token,
            "base": base_path,
            "read-only": "yes" if self.studio.read_only else "no",
            "version": __version__,
        }
        content = self.assets.index(base_path, metadata)
        return Response(content, 200, {"Cache-Control": "no-store"}, "text/html; charset=utf-8")


async def _until_disconnect(request: Request, response: Coroutine[Any, Any, Any]) -> Any:
    """Return the response, or cancel it if the client disconnects or the server stops first."""
    request.scope[CANCEL_ON_DISCONNECT] = True
    task = asyncio.ensure_future(response)
    disconnect = asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        await asyncio.wait({task, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ProblemError(
                503, "cancelled", "Cancelled", "The client disconnected or the studio is stopping."
            )
        return task.result()
    finally:
        task.cancel()
        disconnect.cancel()
        await asyncio.gather(task, disconnect, return_exceptions=True)


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _parameters(request: Request, endpoint: Endpoint) -> Mapping[str, str]:
    """Return the parameters of a URL; a browser that resumes an event stream sends its position in a header."""
    last = request.headers.get("last-event-id")
    if last is None or not any(name == "last_event_id" for name, _, _ in endpoint.parameters):
        return request.query_params
    return {**request.query_params, "last_event_id": last}


def _problem_response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    content = encode_response({"problem": problem})
    return Response(
        content, problem.status, {"Cache-Control": "no-store", **(headers or {})}, "application/json"
    )


def _error_response(scope: Scope, error: ProblemError) -> Response:
    """Return an error as JSON below `/api`, and as a line of text elsewhere."""
    path = str(scope["path"]).removeprefix(str(scope.get("root_path", "")))
    if path.startswith(f"{_API}/"):
        return _problem_response(error.problem, error.headers)
    return Response(
        f"{error.title}. {error.detail}\n", error.status, error.headers, "text/plain; charset=utf-8"
    )


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers: Mapping[str, Any] | None = error.headers
    return _error_response(request.scope, problem_for_status(error.status_code, headers))
