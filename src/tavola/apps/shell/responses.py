"""JSON responses, and the address of a resource for the Location header."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel

JSON = "application/json"


def json_response(
    body: BaseModel,
    status: int = 200,
    *,
    etag: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a model as a JSON response."""
    response = Response(body.__pydantic_serializer__.to_json(body), status, headers, JSON)
    if etag is not None:
        response.headers["ETag"] = etag
    return response


def resource_path(request: Request, *parts: str) -> str:
    """Return the path of a resource, below the path that the application is mounted at."""
    return "/".join([str(request.scope.get("root_path", "")).rstrip("/"), *parts])
