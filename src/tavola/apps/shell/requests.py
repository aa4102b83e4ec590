"""Requests: the headers and query parameters that all routes have in common.

Each comes in two forms. The annotations (`Limit`, `Cursor`, `IdempotencyKey`, `IfMatch`) let FastAPI read, check and
declare it. The functions read it from the request directly, which is faster; a route that uses them declares the
parameters with `openapi_extra=parameters("limit", "cursor")`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Header, Query, Request

from tavola.web import ProblemError

LIMIT = 20
LIMIT_MAX = 100
CURSOR_CHARACTERS_MAX = 8_192
KEY_CHARACTERS_MAX = 255

_KEY_PATTERN = r"^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$"
_LIMIT_TOLD = f"How many at most, 1 to {LIMIT_MAX}; {LIMIT} unless said."
_CURSOR_TOLD = "Where to go on: `next` of the page before."
_KEY_TOLD = "A key of your choice: the same request sent again under it is done once, and answered the same."
_MATCH_TOLD = "The ETag of the version that the change is meant for, or `*`."

Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX, description=_LIMIT_TOLD)]
Cursor = Annotated[str | None, Query(max_length=CURSOR_CHARACTERS_MAX, description=_CURSOR_TOLD)]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=KEY_CHARACTERS_MAX,
        pattern=_KEY_PATTERN,
        description=_KEY_TOLD,
    ),
]
IfMatch = Annotated[str | None, Header(alias="If-Match", description=_MATCH_TOLD)]

_PARAMETERS: Mapping[str, dict[str, Any]] = {
    "limit": {
        "name": "limit",
        "in": "query",
        "required": False,
        "description": _LIMIT_TOLD,
        "schema": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT},
    },
    "cursor": {
        "name": "cursor",
        "in": "query",
        "required": False,
        "description": _CURSOR_TOLD,
        "schema": {"type": "string", "maxLength": CURSOR_CHARACTERS_MAX},
    },
    "idempotency-key": {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": _KEY_TOLD,
        "schema": {
            "type": "string",
            "minLength": 1,
            "maxLength": KEY_CHARACTERS_MAX,
            "pattern": _KEY_PATTERN,
        },
    },
    "if-match": {
        "name": "If-Match",
        "in": "header",
        "required": False,
        "description": _MATCH_TOLD,
        "schema": {"type": "string"},
    },
    "if-none-match": {
        "name": "If-None-Match",
        "in": "header",
        "required": False,
        "description": "The ETag of what you have; 304 says that it is still so.",
        "schema": {"type": "string"},
    },
}


def parameters(*names: str, more: tuple[Mapping[str, Any], ...] = ()) -> dict[str, Any]:
    """Return what a route declares of parameters that it reads itself, for `openapi_extra`."""
    return {"parameters": [*(_PARAMETERS[name] for name in names), *more]}


def limit_of(request: Request, default: int = LIMIT, most: int = LIMIT_MAX) -> int:
    """Return how many of a list are asked for."""
    told = request.query_params.get("limit")
    if told is None:
        return default
    if told.isascii() and told.isdigit() and len(told) <= 6 and 1 <= int(told) <= most:
        return int(told)
    raise invalid_parameter("limit", f"Give a whole number from 1 to {most}.")


def cursor_of(request: Request) -> str | None:
    """Return where a list goes on; None: at its beginning."""
    told = request.query_params.get("cursor")
    if told is not None and len(told) > CURSOR_CHARACTERS_MAX:
        raise invalid_parameter("cursor", "It is none of ours: give `next` of the page before.")
    return told or None


def idempotency_key(request: Request) -> str | None:
    """Return the Idempotency-Key of a request, None where it has none: 1 to 255 printable ASCII characters."""
    told = request.headers.getlist("idempotency-key")
    if not told:
        return None
    key = told[0].strip()
    if len(told) > 1 or not 1 <= len(key) <= KEY_CHARACTERS_MAX or not (key.isascii() and key.isprintable()):
        raise invalid_parameter(
            "Idempotency-Key",
            f"Give one key of 1 to {KEY_CHARACTERS_MAX} printable ASCII characters.",
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
