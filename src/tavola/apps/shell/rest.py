"""REST conventions of the applications: common parameters, ETags, paginated lists and JSON responses.

Common parameters come in two forms. The annotations (`PageQuery`, `IdempotencyKey`, `IfMatch`) let FastAPI parse,
validate and document them. The functions (`limit_of`, `cursor_of`, `idempotency_key`) read them from the request directly,
which is faster; a route that uses them documents its parameters with `openapi_extra=parameters("limit", "cursor")`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Generic, TypedDict, TypeVar
from urllib.parse import parse_qsl, urlencode

from fastapi import Depends, Header, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel

from tavola.patterns import Slice
from tavola.web import ProblemError

JSON = "application/json"
LIMIT = 20
LIMIT_MAX = 100
CURSOR_CHARACTERS_MAX = 8_192
KEY_CHARACTERS_MAX = 255

_KEY_PATTERN = r"^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$"
_DESCRIPTIONS = {
    "limit": f"Maximum number of entries, 1 to {LIMIT_MAX}; {LIMIT} by default.",
    "cursor": "Where to continue: `next` of the previous page.",
    "idempotency-key": "A key of your choice. Repeated requests with the same key are executed once and get the same response.",
    "if-match": "The ETag of the version to change, or `*` for any version.",
    "if-none-match": "The ETag of your copy; the response is 304 if it is still current.",
}

Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX, description=_DESCRIPTIONS["limit"])]
Cursor = Annotated[str | None, Query(max_length=CURSOR_CHARACTERS_MAX, description=_DESCRIPTIONS["cursor"])]


class PageArguments(TypedDict):
    """Which page of a list a request is for; a service takes them as `**page`."""

    limit: int
    cursor: str | None


async def _page_arguments(limit: Limit = LIMIT, cursor: Cursor = None) -> PageArguments:
    return {"limit": limit, "cursor": cursor or None}


PageQuery = Annotated[PageArguments, Depends(_page_arguments)]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=KEY_CHARACTERS_MAX,
        pattern=_KEY_PATTERN,
        description=_DESCRIPTIONS["idempotency-key"],
    ),
]
IfMatch = Annotated[str | None, Header(alias="If-Match", description=_DESCRIPTIONS["if-match"])]


def _parameter(name: str, location: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    description = _DESCRIPTIONS[name.lower()]
    return {"name": name, "in": location, "required": False, "description": description, "schema": schema}


_PARAMETERS: Mapping[str, dict[str, Any]] = {
    parameter["name"].lower(): parameter
    for parameter in (
        _parameter(
            "limit", "query", {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT}
        ),
        _parameter("cursor", "query", {"type": "string", "maxLength": CURSOR_CHARACTERS_MAX}),
        _parameter(
            "Idempotency-Key",
            "header",
            {"type": "string", "minLength": 1, "maxLength": KEY_CHARACTERS_MAX, "pattern": _KEY_PATTERN},
        ),
        _parameter("If-Match", "header", {"type": "string"}),
        _parameter("If-None-Match", "header", {"type": "string"}),
    )
}


def parameters(*names: str, more: tuple[Mapping[str, Any], ...] = ()) -> dict[str, Any]:
    """Return the OpenAPI declaration of parameters that a route reads itself, for `openapi_extra`."""
    return {"parameters": [*(_PARAMETERS[name] for name in names), *more]}


def limit_of(request: Request) -> int:
    """Return the requested page size."""
    text = request.query_params.get("limit")
    if text is None:
        return LIMIT
    if text.isascii() and text.isdigit() and len(text) <= 6 and 1 <= int(text) <= LIMIT_MAX:
        return int(text)
    raise invalid_parameter("limit", f"Use a whole number from 1 to {LIMIT_MAX}.")


def cursor_of(request: Request) -> str | None:
    """Return the cursor of the requested page; None for the first page."""
    cursor = request.query_params.get("cursor")
    if cursor is not None and len(cursor) > CURSOR_CHARACTERS_MAX:
        raise invalid_parameter("cursor", "Use `next` of the previous page unchanged.")
    return cursor or None


def idempotency_key(request: Request) -> str | None:
    """Return the Idempotency-Key of a request: 1 to 255 printable ASCII characters; None if there is none."""
    headers = request.headers.getlist("idempotency-key")
    if not headers:
        return None
    key = headers[0].strip()
    if (
        len(headers) > 1
        or not 1 <= len(key) <= KEY_CHARACTERS_MAX
        or not (key.isascii() and key.isprintable())
    ):
        raise invalid_parameter(
            "Idempotency-Key",
            f"Use one key of 1 to {KEY_CHARACTERS_MAX} printable ASCII characters.",
            where="header",
        )
    return key


def invalid_parameter(name: str, detail: str, where: str = "query") -> ProblemError:
    """Return a 422 for a query parameter or header with an invalid value."""
    return ProblemError(
        422,
        "invalid",
        "Invalid request",
        f"{name} is not valid. {detail}",
        errors=[{"in": where, "pointer": f"#/{name}", "detail": detail}],
    )


# ETags


_TAGS = re.compile(r'\s*(?:(W/)?"([\x21\x23-\x7e\x80-\xff]*)")?\s*(?:,|$)')  # a list may have empty elements


def etag_of(*version: int | str) -> str:
    """Return the strong ETag of a version, which may consist of several parts."""
    return '"' + "-".join(str(part) for part in version) + '"'


def require_match(request: Request, etag: str) -> None:
    """Refuse a change without If-Match (428), or with the ETag of another version (412)."""
    headers = request.headers.getlist("if-match")
    if not headers:
        raise ProblemError(
            428,
            "if-match-missing",
            "If-Match missing",
            "A change must name the version that it applies to. Send its ETag as If-Match, or If-Match: * for any version.",
        )
    if not _matches(headers, etag, weakly=False):
        raise ProblemError(
            412,
            "precondition-failed",
            "Record changed",
            "The record has changed since the version in If-Match. Read it again and repeat the change.",
            headers={"ETag": etag},
        )


def not_modified(request: Request, etag: str) -> Response | None:
    """Return a 304 if If-None-Match names the current version, otherwise None."""
    headers = request.headers.getlist("if-none-match")
    if headers and _matches(headers, etag, weakly=True):
        return Response(status_code=304, headers={"ETag": etag})
    return None


def _matches(headers: list[str], etag: str, *, weakly: bool) -> bool:
    text = ",".join(headers)
    if text.strip() == "*":
        return True
    current = etag.removeprefix("W/").strip('"')
    position = 0
    while position < len(text):
        tag = _TAGS.match(text, position)
        if tag is None:
            raise ProblemError(
                400,
                "malformed",
                "Malformed ETag",
                'If-Match and If-None-Match must contain quoted ETags, such as "3", or *.',
            )
        if tag[2] == current and (weakly or tag[1] is None):
            return True
        position = tag.end()
    return False


# Responses


T = TypeVar("T")

_ENCODED_QUERY = re.compile(r"[\w=&%.+~-]*", re.ASCII)


class Paged(BaseModel, Generic[T]):
    """A page of a list; `next` is the cursor of the next page, null on the last."""

    items: list[T]
    next: str | None = None

    @classmethod
    def render(cls, request: Request, page: Slice[Any]) -> Response:
        """Return a slice of entities as a response, with a Link to the next page."""
        paged = cls.model_validate({"items": page.items, "next": page.cursor})
        return page_response(request, cls.__pydantic_serializer__.to_json(paged), paged.next)


def page_response(request: Request, content: bytes, next_cursor: str | None) -> Response:
    """Return serialised JSON as a page, with a Link to the next one."""
    response = Response(content, media_type=JSON)
    if next_cursor is not None:
        response.headers["Link"] = f'<{next_query(request, next_cursor)}>; rel="next"'
    return response


def next_query(request: Request, next_cursor: str) -> str:
    """Return the relative URL of the next page: the same query with another cursor."""
    query = request.scope.get("query_string", b"").decode("latin-1")
    if "cursor" not in query and _ENCODED_QUERY.fullmatch(query):  # the first page: nothing to encode again
        return f"?{query}{'&' if query else ''}cursor={next_cursor}"
    pairs = [pair for pair in parse_qsl(query, keep_blank_values=True) if pair[0] != "cursor"]
    return "?" + urlencode([*pairs, ("cursor", next_cursor)])


def json_response(
    body: BaseModel,
    status: int = 200,
    *,
    etag: str | None = None,
    headers: Mapping[str, str] | None = None,
    replayed: bool = False,
) -> Response:
    """Return a model as a JSON response; `replayed` marks the stored response of a repeated request."""
    response = Response(body.__pydantic_serializer__.to_json(body), status, headers, JSON)
    if etag is not None:
        response.headers["ETag"] = etag
    if replayed:
        response.headers["Idempotency-Replayed"] = "true"
    return response


def resource_path(request: Request, *parts: str) -> str:
    """Return the path of a resource, below the path that the application is mounted at."""
    return "/".join([str(request.scope.get("root_path", "")).rstrip("/"), *parts])
