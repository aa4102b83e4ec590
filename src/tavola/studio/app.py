"""The API and the pages over HTTP.

Whoever reaches this application can read and change every table, so four checks protect it. The guard accepts only known
host names and rejects requests from other sites, reads included. A change needs the token that only the page received. The
content security policy runs only our own script files. And a read-only studio refuses endpoints that change something.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import fields
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
from tavola.studio.assets import Assets, Compression
from tavola.studio.endpoint import Endpoint, encode_response
from tavola.studio.problems import problem_of
from tavola.studio.studio import Studio
from tavola.web import CANCEL_ON_DISCONNECT, Problem, ProblemError, RequestGuard, Upload, of_status

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
)
TOKEN_HEADER = "X-Tavola-Token"
TOKEN_BYTES = 32

_API = "/api"
_COMPRESSED_JSON = Middleware(
    Compression, minimum_size=32 * 1024, compresslevel=1
)  # below, it costs more than it saves
_COMPRESSED_FILES = Middleware(Compression, minimum_size=512)


def create(
    studio: Studio,
    *,
    base_path: str = "",
    hosts: Iterable[str] = (),
    endpoints: Iterable[Endpoint] = ENDPOINTS,
    assets: Assets | None = None,
    entropy: Entropy = SYSTEM_ENTROPY,
) -> Starlette:
    """Return the studio as an application: the API below `/api`, the built files, and the page at every other address.

    Mounted below a path, or behind a proxy that takes `base_path` away or leaves it, it finds itself. `hosts` are names beside
    localhost and plain addresses by which it may be called.
    """
    served = _StudioApp(studio, tuple(endpoints), assets or Assets(), entropy.bytes(TOKEN_BYTES).hex())
    uploads = [
        Upload(re.compile(re.escape(_API + each.path)), each.body_bytes_max)
        for each in served.endpoints
        if each.method != "GET"
    ]
    guard = Middleware(
        RequestGuard,
        hosts=hosts,
        uploads=uploads,
        private_under=f"{_API}/",
        known_names=True,
        policy=CONTENT_SECURITY_POLICY,
        base_path=base_path,
        answer=_answer,
        entropy=entropy,
    )
    application = Starlette(
        routes=[
            Route(
                "/api/{path:path}",
                served.call_endpoint,
                methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
                middleware=[_COMPRESSED_JSON],
            ),
            Mount("/assets", served.assets.files, middleware=[_COMPRESSED_FILES]),
            Route("/{path:path}", served.page, methods=["GET"]),
        ],
        middleware=[guard],
        exception_handlers={HTTPException: _http_error},
    )
    application.router.redirect_slashes = False
    return application


class _StudioApp:
    """What is served: the endpoints by their address, the files, and the token of this process."""

    def __init__(self, studio: Studio, endpoints: tuple[Endpoint, ...], assets: Assets, token: str) -> None:
        self.studio = studio
        self.endpoints = endpoints
        self.assets = assets
        self.token = token
        self._by_path: dict[str, dict[str, Endpoint]] = {}
        for each in endpoints:
            self._by_path.setdefault(each.path, {})[each.method] = each

    async def call_endpoint(self, request: Request) -> Response:
        """Answer a question of the API."""
        try:
            endpoint = self._find_endpoint(request)
            if request.method == "GET":
                call = endpoint.call(self.studio, _parameters(request, endpoint))
            else:
                self._check_token(request)
                call = endpoint.call(self.studio, await request.body())
            answer = await (_until_disconnect(request, call) if endpoint.cancel_on_disconnect else call)
        except TavolaError as error:
            return _problem_response(
                problem_of(error), error.headers if isinstance(error, ProblemError) else None
            )
        if isinstance(answer, Response):
            return answer
        return Response(encode_response(answer), 200, {"Cache-Control": "no-store"}, "application/json")

    def _find_endpoint(self, request: Request) -> Endpoint:
        methods = self._by_path.get("/" + str(request.path_params["path"]))
        if methods is None:
            raise ProblemError(
                404,
                "question-unknown",
                "There is no such question",
                "Nobody answers at this address.",
                "`tavola api` lists the questions.",
            )
        endpoint = methods.get(request.method)
        if endpoint is None:
            raise of_status(405, {"Allow": ", ".join(sorted(methods))})
        return endpoint

    def _check_token(self, request: Request) -> None:
        token = request.headers.get(TOKEN_HEADER, "")
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode()):
            raise ProblemError(
                403,
                "token-refused",
                "Token refused",
                "A change must come from the studio's own page, which knows the token of this process.",
                "Load the page again; a program asks with `tavola api`.",
            )

    async def page(self, request: Request) -> Response:
        """Send the index, whatever the address says: the page itself reads it."""
        base_path = str(request.scope.get("root_path", ""))
        metadata = {
            "token": self.token,
            "base": base_path,
            "read-only": "yes" if self.studio.read_only else "no",
            "version": __version__,
        }
        content = self.assets.index(base_path, metadata)
        return Response(content, 200, {"Cache-Control": "no-store"}, "text/html; charset=utf-8")


async def _until_disconnect(request: Request, answering: Coroutine[Any, Any, Any]) -> Any:
    """Return an answer, unless whoever asked goes first, or serving ends: then it is cancelled."""
    request.scope[CANCEL_ON_DISCONNECT] = True
    task = asyncio.ensure_future(answering)
    gone = asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ProblemError(
                503,
                "not-awaited",
                "Nobody waits for the answer",
                "Whoever asked has gone, or the studio ends.",
            )
        return task.result()
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _parameters(request: Request, endpoint: Endpoint) -> Mapping[str, str]:
    """Return the parameters of a question; a stream of events that is taken up again tells in a header where it was."""
    last = request.headers.get("last-event-id")
    if last is None or not any(each.name == "last_event_id" for each in fields(endpoint.request_type)):
        return request.query_params
    return {**request.query_params, "last_event_id": last}


def _problem_response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    content = encode_response({"problem": problem})
    known = {"Cache-Control": "no-store", **(headers or {})}
    return Response(content, problem.status, known, "application/json")


def _answer(scope: Scope, error: ProblemError) -> Response:
    """Return a refusal: a document of the API, or a line of text where a page was asked for."""
    path = str(scope["path"]).removeprefix(str(scope.get("root_path", "")))
    if path.startswith(f"{_API}/"):
        return _problem_response(error.problem, error.headers)
    return Response(
        f"{error.title}. {error.detail}\n", error.status, error.headers, "text/plain; charset=utf-8"
    )


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers: Mapping[str, Any] | None = error.headers
    return _answer(request.scope, of_status(error.status_code, headers))
