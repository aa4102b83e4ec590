"""Declarations: what an OpenAPI document says of problems, so that no answer comes as a surprise."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from tavola.web import MEDIA_TYPE, URN

SCHEMAS: Mapping[str, Any] = {
    "Problem": {
        "type": "object",
        "title": "Problem",
        "description": "Why a request was not done (RFC 9457), and what to do.",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {"type": "string", "format": "uri", "description": f"{URN} and a slug."},
            "title": {"type": "string"},
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "detail": {"type": "string", "description": "What is wrong, where, and what to do."},
            "instance": {"type": "string", "description": "The path that was asked."},
            "incident": {"type": "string", "description": "Of a 500: the id under which the log has more."},
            "errors": {"type": "array", "items": {"$ref": "#/components/schemas/InvalidField"}},
        },
    },
    "InvalidField": {
        "type": "object",
        "title": "InvalidField",
        "required": ["in", "pointer", "detail"],
        "properties": {
            "in": {"type": "string", "description": "body, query, path, header or cookie."},
            "pointer": {"type": "string", "description": "A JSON pointer to the field in there."},
            "detail": {"type": "string"},
        },
    },
}

_MEANINGS: Mapping[int, str] = {
    400: "The request cannot be read: malformed JSON, header or cursor",
    403: "The caller may not, or the request comes from a page of another site",
    404: "There is no such record",
    409: "Somebody else was faster, or it exists already",
    412: "The record is no longer what If-Match says",
    413: "The body or the record is too large",
    415: "The body's Content-Type is not taken",
    422: "What was sent is not valid, or the Idempotency-Key came before with another request",
    428: "If-Match is missing",
    500: "Unexpected; the log has more under the incident's id",
    503: "The store does not answer or has too much to do; Retry-After says when to come again",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what a route declares of the problems it answers: `responses=problems(404, 409)`."""
    return {status: _declared(status) for status in statuses}


def _declared(status: int) -> dict[str, Any]:
    return {
        "description": _MEANINGS.get(status, HTTPStatus(status).phrase),
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def declare_problems(document: dict[str, Any]) -> dict[str, Any]:
    """Return an OpenAPI document that says of every operation what problems it answers.

    A route declares its own; those of the guards and of the store are everybody's, and FastAPI's 422 becomes ours.
    """
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for operations in document.get("paths", {}).values():
        for method, operation in operations.items():
            responses = operation.setdefault("responses", {})
            asked = {400, 403, 500, 503}
            if operation.get("parameters") or "requestBody" in operation:
                asked.add(422)
            if method in ("post", "put", "patch", "delete"):
                asked |= {413, 415}
            for status in sorted(asked):
                there = responses.get(str(status), {})
                if not there or (status == 422 and "application/json" in there.get("content", {})):
                    responses[str(status)] = _declared(status)
            operation["responses"] = {name: responses[name] for name in sorted(responses)}
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas.update(SCHEMAS)
    return document
