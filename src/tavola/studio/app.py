"""The API and the pages over HTTP.

A program that reaches this application uses its rights, so three checks protect it. The guard accepts only known host names and
rejects requests from other sites, reads included. Every request other than a GET needs the token that only the page
received. The content security policy runs only our own script files. What a request may change is decided in `endpoint`.

Without sign-in, all requests use one `Studio`. With it (`sign_in`), there is no such studio: each request uses that of its
session, and a request without a session gets a 401.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.types import Scope

from tavola import __version__
from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.errors import TavolaError
from tavola.host_names import is_loopback
from tavola.studio.api import ENDPOINTS
from tavola.studio.assets import Assets
from tavola.studio.endpoint import Endpoint, encode_response
from tavola.studio.problems import RequestRefused, problem_of
from tavola.studio.sign_in import BrowserSession, StudioSignIn, is_same_token, parse_sign_in
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
SIGN_IN_PATH = "/api/sign-in"
SIGN_OUT_PATH = "/api/sign-out"
COOKIE = "tavola-studio"  # followed by the port, because a host's ports share its cookies
_SIGN_IN_BYTES_MAX = 64 * 1024

_API = "/api"
_COMPRESS_JSON = Middleware(Compression, minimum_size=32 * 1024, compresslevel=1)  # smaller is not worthwhile
_COMPRESS_FILES = Middleware(Compression, minimum_size=512)


def create(
    studio: Studio | StudioSignIn,
    *,
    base_path: str = "",
    hosts: Iterable[str] = (),
    endpoints: Iterable[Endpoint] = ENDPOINTS,
    assets: Assets | None = None,
    entropy: Entropy = SYSTEM_ENTROPY,
) -> Starlette:
    """Return the studio as an application: the API below `/api`, the built files, and the page at every other path.

    A `StudioSignIn` in place of a studio makes every user sign in first; its sessions end with the application.

    It works mounted below a path, and behind a proxy that strips `base_path` or passes it on. `hosts` are accepted host
    names besides localhost and IP addresses.
    """
    served = _StudioApp(studio, tuple(endpoints), assets or Assets(), entropy.bytes(TOKEN_BYTES).hex())
    uploads = [
        Upload(re.compile(re.escape(_API + endpoint.path)), endpoint.body_bytes_max)
        for endpoint in served.endpoints
        if endpoint.method != "GET"
    ]
    uploads += [Upload(re.compile(path), _SIGN_IN_BYTES_MAX) for path in (SIGN_IN_PATH, SIGN_OUT_PATH)]
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
    sign_in = [
        Route(SIGN_IN_PATH, served.signed_in, methods=["GET"]),
        Route(SIGN_IN_PATH, served.sign_in, methods=["POST"]),
        Route(SIGN_OUT_PATH, served.sign_out, methods=["POST"]),
    ]
    application = Starlette(
        routes=[
            *(sign_in if isinstance(studio, StudioSignIn) else ()),
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
        lifespan=served.lifespan,
    )
    application.router.redirect_slashes = False
    return application


class _StudioApp:
    """The endpoints by path, the built files, and the token of this process."""

    def __init__(
        self, studio: Studio | StudioSignIn, endpoints: tuple[Endpoint, ...], assets: Assets, token: str
    ) -> None:
        self.studio = studio
        self.endpoints = endpoints
        self.assets = assets
        self.token = token
        self._by_path: dict[str, dict[str, Endpoint]] = {}
        for endpoint in endpoints:
            self._by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint

    @asynccontextmanager
    async def lifespan(self, application: Starlette) -> AsyncIterator[None]:
        """End the sessions when the application stops."""
        yield
        if isinstance(self.studio, StudioSignIn):
            self.studio.end_all()

    async def call_endpoint(self, request: Request) -> Response:
        """Respond to an API request."""
        try:
            session = self._session(request)
            studio = self.studio if session is None else session.studio
            assert isinstance(studio, Studio), "with sign-in, a request has the studio of its session"
            endpoint = self._find_endpoint(request)
            if request.method == "GET":
                call = endpoint.call(studio, _parameters(request, endpoint))
            else:
                self._check_token(request, session)
                call = endpoint.call(studio, await request.body())
            response = await (_until_disconnect(request, call) if endpoint.cancel_on_disconnect else call)
        except TavolaError as error:
            return _problem_response(
                problem_of(error), error.headers if isinstance(error, ProblemError) else None
            )
        if isinstance(response, StreamingResponse) and session is not None:
            assert isinstance(self.studio, StudioSignIn)
            response.body_iterator = self.studio.until_end(session, aiter(response.body_iterator))
        if isinstance(response, Response):
            return response
        return _json_response(response)

    def _session(self, request: Request) -> BrowserSession | None:
        """Return the session of a request; None if this studio has no sign-in."""
        if not isinstance(self.studio, StudioSignIn):
            return None
        return self.studio.find(request.cookies.get(_cookie_name(request), ""), _address(request))

    async def signed_in(self, request: Request) -> Response:
        """Respond with the person who is signed in, and the token that the page's requests need."""
        try:
            session = self._session(request)
        except ProblemError as error:
            return _error_response(request.scope, error)
        assert session is not None, "the route exists only with sign-in"
        return _json_response(session.state())

    async def sign_in(self, request: Request) -> Response:
        """Open a session for an access key; a session that the browser has already ends."""
        assert isinstance(self.studio, StudioSignIn), "the route exists only with sign-in"
        try:
            self._check_token(request, None)
            if request.url.scheme != "https" and not is_loopback(_address(request)):
                raise RequestRefused(
                    "connection-insecure",
                    "Sign-in needs a secure connection",
                    "The secret would cross the network unencrypted.",
                    "Open the studio on the machine it runs on, or through an SSH tunnel.",
                    status=403,
                )
            body = parse_sign_in(await request.body())
            agent = request.headers.get("user-agent", "")
            session_id, session = self.studio.sign_in(body, _address(request), agent)
        except TavolaError as error:
            return _problem_response(
                problem_of(error), error.headers if isinstance(error, ProblemError) else None
            )
        self._end_session(request)
        response = _json_response(session.state())
        response.set_cookie(
            _cookie_name(request),
            session_id,
            path=_cookie_path(request),
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    async def sign_out(self, request: Request) -> Response:
        """End the session of a request."""
        try:
            self._check_token(request, self._session(request))
        except ProblemError as error:
            return _error_response(request.scope, error)
        self._end_session(request)
        response = _json_response({})
        response.delete_cookie(_cookie_name(request), path=_cookie_path(request))
        return response

    def _end_session(self, request: Request) -> None:
        try:
            session = self._session(request)
        except ProblemError:
            return
        if session is not None and isinstance(self.studio, StudioSignIn):
            self.studio.end(session)

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

    def _check_token(self, request: Request, session: BrowserSession | None) -> None:
        token = self.token if session is None else session.token
        if not is_same_token(request.headers.get(TOKEN_HEADER, ""), token):
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
        if isinstance(self.studio, StudioSignIn):
            metadata["sign-in"] = "yes"
        content = self.assets.index(base_path, metadata)
        return Response(content, 200, {"Cache-Control": "no-store"}, "text/html; charset=utf-8")


def _cookie_name(request: Request) -> str:
    server = request.scope.get("server")
    return COOKIE if server is None else f"{COOKIE}-{server[1]}"


def _cookie_path(request: Request) -> str:
    return f"{request.scope.get('root_path', '')}/"


def _address(request: Request) -> str:
    return "" if request.client is None else request.client.host


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


def _json_response(response: Any) -> Response:
    return Response(encode_response(response), 200, {"Cache-Control": "no-store"}, "application/json")


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
