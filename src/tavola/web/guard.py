"""Checks that every request passes before routing, and headers that every response gets.

A page of another site can make a browser send requests here. It cannot forge two headers: `Host` names the address it used,
`Origin` (or `Sec-Fetch-Site`) where it comes from. So an application that only this machine can reach answers only to names
of this machine, and a change must come from its own pages or from a program. Bodies are limited in size and must be storable
JSON. An unexpected error is logged by type and location, without the request's content.
"""

from __future__ import annotations

import json
import logging
import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, TypeAlias

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tavola.entropy import SYSTEM_ENTROPY, Entropy
from tavola.web.problems import ProblemError, of_status, too_large, unexpected

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

ProblemRenderer: TypeAlias = Callable[
    [Scope, ProblemError], Response
]  # how a problem is told: as a document, or as a page

_log = logging.getLogger("tavola.web")


@dataclass(frozen=True, slots=True)
class Upload:
    """Paths whose body is taken as it is, whatever its Content-Type; they are matched whole, below the root path."""

    path: re.Pattern[str]
    bytes_max: int


class RequestGuard:
    """ASGI: the outermost layer of an application."""

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
        answer: ProblemRenderer = lambda scope, problem: problem.response(scope["path"]),
        entropy: Entropy = SYSTEM_ENTROPY,
    ) -> None:
        """Guard an application; below `private_under` pages of other sites may not even read.

        `known_names`: no name is answered that nobody gave, whichever address was reached. Without it, what other machines can
        reach answers to every name, so a page that points a name of its own there (in a container, on a local network) is its
        own site's page and may read all.
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
        self.answer = answer
        self.entropy = entropy
        self._headers = ((b"content-security-policy", policy.encode()), *_HEADERS)
        self._known: set[tuple[str | None, bytes]] = set()  # names that need no second look

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse before a route is asked."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.base_path:
            apply_base_path(scope, self.base_path)
        begun = False
        head = scope["method"] == "HEAD"

        async def sent(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
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
                scope["method"] = "GET"  # routed as it; what is sent is the same, without the body
            elif scope["method"] not in _SAFE:
                headers = Headers(scope=scope)
                self._check_origin(headers)
                receive = await self._checked_body(scope, headers, receive)
            await self.app(scope, receive, sent)
        except ProblemError as problem:
            await self.answer(scope, problem)(scope, receive, sent)
        except ClientDisconnect:  # nobody is there to be answered, and nobody here did anything wrong
            if not begun:
                await self.answer(scope, of_status(400))(scope, receive, sent)
        except Exception as error:  # noqa: BLE001 - the last layer: nothing of it may reach the client
            incident = self.entropy.uuid()
            _log.error("%s", describe_error(error, incident, scope))
            if not begun:
                await self.answer(scope, unexpected(incident))(scope, receive, sent)

    def _check_host(self, scope: Scope) -> None:
        """Refuse a name that is not this machine's, where only this machine can connect or names must be known."""
        host = b""
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
                break
        server = scope.get("server")
        asked = (None if server is None else server[0], host)
        if asked in self._known:
            return
        alone = server is not None and is_loopback(str(server[0]))
        if (alone or self.known_names) and not self._is_ours(host.decode("latin-1")):
            listens = "This application listens on this machine alone and" if alone else "This application"
            raise ProblemError(
                403,
                "host-refused",
                "Host refused",
                f"{listens} does not answer to that name.",
                "If the name is yours, start it with --allow-host and that name.",
            )
        if len(self._known) < _KNOWN_MAX:
            self._known.add(asked)

    def _is_ours(self, host: str) -> bool:
        name = host_name(host)
        if not name or name in self.hosts or name == "localhost" or name.endswith(".localhost"):
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True

    def _check_origin(self, headers: Headers) -> None:
        """Refuse a change that a page of another site has a browser send."""
        site = headers.get("sec-fetch-site")
        origin = headers.get("origin")
        foreign = site is not None and site not in ("same-origin", "none")
        if foreign or (origin is not None and not self._is_own(origin, headers.get("host", ""))):
            raise ProblemError(
                403,
                "origin-refused",
                "Origin refused",
                "A change may come from a program or from this application's own pages, not from another site.",
                "Behind a proxy, let it pass the Host on, or start this with --allow-host and the name that browsers use.",
            )

    def _is_own(self, origin: str, host: str) -> bool:
        scheme, _, place = origin.strip().lower().partition("://")
        return scheme in ("http", "https") and (
            place == host.strip().lower() or host_name(place) in self.hosts
        )

    async def _checked_body(self, scope: Scope, headers: Headers, receive: Receive) -> Receive:
        """Return what gives the body, once it is known to be one that a route can read."""
        path = _path_below_root(scope)
        upload = next((each for each in self.uploads if each.path.fullmatch(path)), None)
        most = self.body_bytes_max if upload is None else upload.bytes_max
        length = headers.get("content-length")
        if length is not None and (not length.isdigit() or len(length) > 15 or int(length) > most):
            raise _too_large_problem(most)
        if length in (None, "0") and "transfer-encoding" not in headers:
            return receive
        if upload is not None:
            return receive if length is not None else _limit_bytes(receive, most)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
            return _replay_body(check_json(await _read(receive, most)), receive)
        if kind in self.accepts or (kind in FORMS and path.startswith(self.forms_under)):
            return receive if length is not None else _limit_bytes(receive, most)
        raise of_status(415)


def _path_below_root(scope: Scope) -> str:
    """Return the path that is asked, as seen from the application."""
    return str(scope["path"]).removeprefix(str(scope.get("root_path", "")))


def apply_base_path(scope: Scope, base_path: str) -> None:
    """Let a request be one below a base path; the proxy in front may or may not have taken that away."""
    scope["root_path"] = base_path
    if not f"{scope['path']}/".startswith(f"{base_path}/"):
        scope["path"] = base_path + scope["path"]
    elif scope["path"] == base_path:
        scope["path"] += "/"  # routes begin with one


async def _read(receive: Receive, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise of_status(400)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise _too_large_problem(most)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _limit_bytes(receive: Receive, most: int) -> Receive:
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > most:
            raise HTTPException(413)  # the one kind of error that the reading of forms lets pass
        return message

    return counted


def _too_large_problem(most: int) -> ProblemError:
    known = f"{most // MEGABYTE} MB ({most:,} bytes)" if most >= MEGABYTE else f"{most:,} bytes"
    return too_large(f"What was sent is too large: {known} are the most here.", "Send less, or in parts.")


def check_json(body: bytes) -> bytes:
    """Return a body of JSON as it is; refuse one that no record could hold.

    Python reads more than JSON allows: halves of characters, NaN and Infinity. What it cannot read at all is left to
    the route, which says where.
    """
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        raise _malformed("The body is not UTF-8.") from None
    lower = body.lower() if b"\\u" in body else b""
    doubtful = b"\\ud" in lower or b"\\u0000" in lower or b"NaN" in body or b"Infinity" in body
    if doubtful:
        try:
            found = json.loads(body, parse_constant=_reject_constant)
        except (ValueError, RecursionError):
            return body
        for text in _texts(found):
            if "\0" in text or (not text.isascii() and not _is_valid_unicode(text)):
                raise _malformed("A text in the body has a NUL or half of a character.")
    return body


def _reject_constant(name: str) -> Any:
    raise _malformed(f"{name} is no number of JSON.")


def _texts(found: Any) -> Iterable[str]:
    waiting = [found]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            waiting += each.keys()
            waiting += each.values()


def _is_valid_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _malformed(what: str) -> ProblemError:
    return ProblemError(400, "malformed", "Malformed JSON", what, "Send one JSON document in UTF-8.")


def _replay_body(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replayed() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


def describe_error(error: BaseException, incident: str, scope: Mapping[str, Any]) -> str:
    """Return what the log says of an error: its kinds and places; not its text, which may hold what was sent."""
    route = getattr(scope.get("route"), "path", "no route")
    lines = [f"incident {incident}: {scope.get('method')} {route}"]
    each: BaseException | None = error
    while each is not None:
        lines.append(f"  {type(each).__module__}.{type(each).__qualname__}")
        lines += [
            f"    {frame.filename}:{frame.lineno} in {frame.name}"
            for frame in traceback.extract_tb(each.__traceback__)
        ]
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    return "\n".join(lines)


def describe_frames(error: BaseException) -> str:
    """Return the kind of an error and where it was raised; not its text, which may hold what was sent."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    return f"{type(error).__name__}{place}"


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def host_name(host: str) -> str:
    """Return the name or address in a Host header, without the port and the brackets of IPv6."""
    text = host.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")
