"""HTTP error responses, shared by the applications and the studio.

`Problem` is the data of an error response. `ProblemError` is raised to answer a request with one, and renders it as an
RFC 9457 document. `HTTP_STATUSES` gives the status of each `ErrorKind`. Each application provides the texts for its
own exceptions. A text must not repeat any of the request's content, because responses end up in logs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from tavola.errors import ErrorKind, TavolaError

MEDIA_TYPE = "application/problem+json"
URN = "urn:tavola:problem:"

HTTP_STATUSES: Mapping[ErrorKind, int] = {
    ErrorKind.USAGE: 400,
    ErrorKind.INVALID: 422,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.IN_USE: 409,
    ErrorKind.CONFLICT: 409,
    ErrorKind.DENIED: 403,
    ErrorKind.UNAUTHENTICATED: 401,
    ErrorKind.TOO_LARGE: 413,
    ErrorKind.THROTTLED: 429,
    ErrorKind.UNAVAILABLE: 503,
    ErrorKind.NOT_INSTALLED: 501,
    ErrorKind.INTERNAL: 500,
}


@dataclass(frozen=True, slots=True)
class Problem:
    """An error response as data: `code` and `status` for programs; title, detail and remedy for people."""

    code: str
    title: str
    detail: str
    remedy: str
    status: int


class ProblemError(TavolaError):
    """Raised to answer a request with an error; `extensions` become further members of the document."""

    def __init__(
        self,
        status: int,
        code: str,
        title: str,
        detail: str,
        remedy: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        **extensions: Any,
    ) -> None:
        self.problem = Problem(code, title, detail, remedy, status)
        self.status = status
        self.code = code
        self.title = title
        self.detail = f"{detail} {remedy}" if remedy else detail  # RFC 9457 has no member for a remedy
        self.remedy = remedy or None
        self.headers = dict(headers or {})
        self.extensions = extensions
        super().__init__(f"{title}: {detail}")

    def document(self, instance: str | None = None) -> dict[str, Any]:
        """Return the RFC 9457 document; `instance` is the path of the request."""
        members: dict[str, Any] = {
            "type": URN + self.code,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }
        if instance is not None:
            members["instance"] = instance
        return {**members, **self.extensions}

    def response(self, instance: str | None = None) -> Response:
        """Return the document as an HTTP response."""
        content = json.dumps(self.document(instance), ensure_ascii=False).encode("utf-8", "replace")
        return Response(content, self.status, self.headers, MEDIA_TYPE)


def not_found(what: str = "record") -> ProblemError:
    """Return a 404 that names the kind of resource that is missing."""
    return ProblemError(
        404,
        "not-found",
        "Not found",
        f"This {what} does not exist.",
        "Check its ID, or list the existing ones.",
    )


def too_large(detail: str, remedy: str = "") -> ProblemError:
    """Return a 413 for a body over its limit."""
    return ProblemError(413, "too-large", "Too large", detail, remedy)


def unexpected_error(incident: str) -> ProblemError:
    """Return a 500 that reveals only the ID under which the details are logged."""
    return ProblemError(
        500,
        "unexpected",
        "Unexpected error",
        "An internal error occurred.",
        f"The application's log has the details under {incident}.",
        incident=incident,
    )


def problem_for_status(status: int, headers: Mapping[str, str] | None = None) -> ProblemError:
    """Return the problem for a bare status code, such as routing and form parsing raise."""
    title = HTTPStatus(status).phrase
    code, detail, remedy = _STATUS_TEXTS.get(
        status, (title.lower().replace(" ", "-"), "The request could not be processed.", "")
    )
    return ProblemError(status, code, title, detail, remedy, headers=headers)


_STATUS_TEXTS: Mapping[int, tuple[str, str, str]] = {
    400: (
        "malformed",
        "The body is not valid for its Content-Type.",
        "Send JSON in UTF-8.",
    ),
    404: ("not-found", "No resource exists at this address.", "See the API page for all addresses."),
    405: (
        "method-not-allowed",
        "This address does not support this method.",
        "The Allow header lists the supported methods.",
    ),
    413: ("too-large", "The request body is too large.", "Send a smaller body."),
    415: (
        "media-type",
        "This address does not accept the body's Content-Type.",
        "Send application/json.",
    ),
}
