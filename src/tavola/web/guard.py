"""Checks that every request passes before routing, and headers that every response gets.

A page of another site can make a browser send requests here, but it cannot forge two headers: `Host`, the address that was
used, and `Origin` (or `Sec-Fetch-Site`), the site of the page. So an application that only this machine can reach accepts only
names of this machine, and a change must come from its own pages or from a program. Bodies are limited in size and must be
JSON that can be stored. An unexpected error is logged by type and location, without the request's content.
"""

from __future__ import annotations

import json
import logging
import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.host_names import HostAddress, is_loopback, parse_host, parse_origin
from tavola.web.problems import ProblemError, problem_for_status, too_large, unexpected_error

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; connect-src 'self'"
)
MEGABYTE = 1024 * 1024
BODY_BYTES_MAX = MEGABYTE
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")

_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),  # with none at all, browsers hide the Origin of their own forms
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_CACHE = (b"cache-control", b"no-cache")
_KNOWN_MAX = 256
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

# Renders an error response, as a JSON document or as a page.
ProblemRenderer: TypeAlias = Callable[[Scope, ProblemError], Response]

_log = logging.getLogger("tavola.web")


@dataclass(frozen=True, slots=True)
class Upload:
    """Paths that accept a body of any Content-Type; `path` must match the whole path below the root path."""

    path: re.Pattern[str]
    bytes_max: int


class RequestGuard:
    """ASGI middleware: the outermost layer of an application."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Iterable[str] = (),
        body_bytes_max: int = BODY_BYTES_MAX,
        accepts: Iterable[str] = (),
        uploads: Sequence[Upload] = (),
        forms_under: str = "/ui/",
        private_under: str | None = None,
        known_names: bool = False,
        policy: str = CONTENT_SECURITY_POLICY,
        base_path: str = "",
        render_problem: ProblemRenderer = lambda scope, problem: problem.response(scope["path"]),
        entropy: Entropy = SYSTEM_ENTROPY,
    ) -> None:
        """Guard an application. Below `private_under`, pages of other sites may not even read.

        With `known_names`, every host name must be listed in `hosts`. Without it, an application that other machines can reach
        accepts any name, so a site that points its own DNS name at this address (DNS rebinding) could read everything.
        """
        self.app = app
        self.hosts = frozenset(name.lower().rstrip(".") for name in hosts)
        self.body_bytes_max = body_bytes_max
        self.accepts = frozenset(kind.lower() for kind in accepts)
        self.uploads = tuple(uploads)
        self.forms_under = forms_under
        self.private_under = private_under
        self.known_names = known_names
        self.base_path = base_path
        self.render_problem = render_problem
        self.entropy = entropy
        self._headers = ((b"content-security-policy", policy.encode()), *_HEADERS)
        self._known: set[tuple[str | None, bytes]] = set()  # (server, Host) pairs that passed the check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or refuse it before routing."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.base_path:
            apply_base_path(scope, self.base_path)
        started = False
        head = scope["method"] == "HEAD"

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                if head:
                    scope["method"] = "HEAD"
                headers = message["headers"]
                for name, _ in headers:
                    if name == b"cache-control":
                        message["headers"] = [*headers, *self._headers]
                        break
                else:
                    message["headers"] = [*headers, _CACHE, *self._headers]
            elif head:
                message = {**message, "body": b""}
            await send(message)

        try:
            self._check_host(scope)
            if self.private_under is not None and _path_below_root(scope).startswith(self.private_under):
                self._check_origin(Headers(scope=scope))
            if head:
                scope["method"] = "GET"  # routed as GET; the body is dropped when it is sent
            elif scope["method"] not in _SAFE:
                headers = Headers(scope=scope)
                self._check_origin(headers)
                receive = await self._checked_body(scope, headers, receive)
            await self.app(scope, receive, send_with_headers)
        except ProblemError as problem:
            await self.render_problem(scope, problem)(scope, receive, send_with_headers)
        except ClientDisconnect:  # not an error of ours, and no client is left to answer
            if not started:
                await self.render_problem(scope, problem_for_status(400))(scope, receive, send_with_headers)
        except Exception as error:  # noqa: BLE001 - the outermost layer: no detail may reach the client
            incident = self.entropy.uuid()
            _log.error("%s", describe_error(error, incident, scope))
            if not started:
                await self.render_problem(scope, unexpected_error(incident))(
                    scope, receive, send_with_headers
                )

    def _check_host(self, scope: Scope) -> None:
        """Refuse a Host that is missing, repeated or malformed, and an unknown one if only this machine can connect.

        With `known_names` it must be known everywhere. HTTP/1.0 has no Host; only health checks still use it.
        """
        texts = [value for name, value in scope["headers"] if name == b"host"]
        if not texts and scope.get("http_version") == "1.0":
            return
        server = scope.get("server")
        pair = (None if server is None else server[0], texts[0] if len(texts) == 1 else b"")
        if pair in self._known:
            return
        host = parse_host(texts[0].decode("latin-1")) if len(texts) == 1 else None
        if host is None:
            raise ProblemError(
                400,
                "host-malformed",
                "Malformed Host",
                "The request must have one Host header, with a host name or address and optionally a port.",
            )
        local_only = server is not None and is_loopback(str(server[0]))
        if (local_only or self.known_names) and not self._is_ours(host):
            raise ProblemError(
                403,
                "host-refused",
                "Host refused",
                "This application does not accept requests for this host name.",
                "If the name is yours, start the application with --allow-host NAME.",
            )
        if len(self._known) < _KNOWN_MAX:
            self._known.add(pair)

    def _is_ours(self, host: HostAddress) -> bool:
        return host.name in self.hosts or host.is_of_this_machine

    def _check_origin(self, headers: Headers) -> None:
        """Refuse a change that a page of another site sends through the user's browser."""
        site = headers.get("sec-fetch-site")
        origins = headers.getlist("origin")
        host = headers.get("host", "")
        foreign = (site is not None and site not in ("same-origin", "none")) or len(origins) > 1
        if foreign or not all(self._is_own(origin, host) for origin in origins):
            raise ProblemError(
                403,
                "origin-refused",
                "Origin refused",
                "Changes are accepted from this application's own pages and from programs, not from other sites.",
                "Behind a proxy, pass the Host header on, or start the application with --allow-host NAME.",
            )

    def _is_own(self, origin: str, host: str) -> bool:
        site, address = parse_origin(origin), parse_host(host)
        if site is None:
            return False
        return (address is not None and site.is_served_at(address)) or site.host.name in self.hosts

    async def _checked_body(self, scope: Scope, headers: Headers, receive: Receive) -> Receive:
        """Return a `receive` for the body after checking its size, its type and, for JSON, its content."""
        path = _path_below_root(scope)
        upload = next((upload for upload in self.uploads if upload.path.fullmatch(path)), None)
        bytes_max = self.body_bytes_max if upload is None else upload.bytes_max
        length = headers.get("content-length")
        if length is not None and (not length.isdigit() or len(length) > 15 or int(length) > bytes_max):
            raise _too_large_problem(bytes_max)
        if length in (None, "0") and "transfer-encoding" not in headers:
            return receive
        if upload is not None:
            return receive if length is not None else _limit_bytes(receive, bytes_max)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
            return _replay_body(check_json(await _read(receive, bytes_max)), receive)
        if kind in self.accepts or (kind in FORMS and path.startswith(self.forms_under)):
            return receive if length is not None else _limit_bytes(receive, bytes_max)
        raise problem_for_status(415)


def _path_below_root(scope: Scope) -> str:
    """Return the request's path without the root path."""
    return str(scope["path"]).removeprefix(str(scope.get("root_path", "")))


def apply_base_path(scope: Scope, base_path: str) -> None:
    """Put a request below a base path, whether or not the proxy in front has stripped it."""
    scope["root_path"] = base_path
    if not f"{scope['path']}/".startswith(f"{base_path}/"):
        scope["path"] = base_path + scope["path"]
    elif scope["path"] == base_path:
        scope["path"] += "/"  # routes begin with one


async def _read(receive: Receive, bytes_max: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise problem_for_status(400)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > bytes_max:
            raise _too_large_problem(bytes_max)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _limit_bytes(receive: Receive, bytes_max: int) -> Receive:
    size = 0

    async def receive_counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > bytes_max:
            raise HTTPException(413)  # the only error that Starlette's form parser passes on
        return message

    return receive_counted


def _too_large_problem(bytes_max: int) -> ProblemError:
    limit = (
        f"{bytes_max // MEGABYTE} MB ({bytes_max:,} bytes)"
        if bytes_max >= MEGABYTE
        else f"{bytes_max:,} bytes"
    )
    return too_large(f"The request body is too large. The limit is {limit}.", "Send a smaller body.")


def check_json(body: bytes) -> bytes:
    """Return a JSON body unchanged; refuse one that cannot be stored.

    Python parses more than JSON allows: lone surrogates, NaN and Infinity. A body that it cannot parse at all is left to
    the route, which reports where.
    """
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        raise _malformed_json("The body is not UTF-8.") from None
    lower = body.lower() if b"\\u" in body else b""
    suspicious = b"\\ud" in lower or b"\\u0000" in lower or b"NaN" in body or b"Infinity" in body
    if suspicious:
        try:
            document = json.loads(body, parse_constant=_reject_constant)
        except (ValueError, RecursionError):
            return body
        for text in _texts(document):
            if "\0" in text or (not text.isascii() and not _is_valid_unicode(text)):
                raise _malformed_json("A string in the body contains a NUL character or a lone surrogate.")
    return body


def _reject_constant(name: str) -> Any:
    raise _malformed_json(f"{name} is not a valid JSON number.")


def _texts(document: Any) -> Iterable[str]:
    waiting = [document]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            waiting += part.keys()
            waiting += part.values()


def _is_valid_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _malformed_json(what: str) -> ProblemError:
    return ProblemError(400, "malformed", "Malformed JSON", what, "Send one JSON document in UTF-8.")


def _replay_body(body: bytes, receive: Receive) -> Receive:
    delivered = False

    async def receive_replayed() -> Message:
        nonlocal delivered
        if delivered:
            return await receive()
        delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_replayed


def describe_error(error: BaseException, incident: str, scope: Mapping[str, Any]) -> str:
    """Return the log entry of an error: types and locations, not messages, which may quote the request."""
    route = getattr(scope.get("route"), "path", "no route")
    lines = [f"incident {incident}: {scope.get('method')} {route}"]
    cause: BaseException | None = error
    while cause is not None:
        lines.append(f"  {type(cause).__module__}.{type(cause).__qualname__}")
        lines += [
            f"    {frame.filename}:{frame.lineno} in {frame.name}"
            for frame in traceback.extract_tb(cause.__traceback__)
        ]
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return "\n".join(lines)


def describe_frames(error: BaseException) -> str:
    """Return the type of an error and where it was raised, without its message, which may quote the request."""
    frames = traceback.extract_tb(error.__traceback__)
    location = f" at {frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    return f"{type(error).__name__}{location}"
