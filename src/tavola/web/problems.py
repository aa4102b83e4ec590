"""Problems: what a face answers where it says no, as RFC 9457 has it.

The document and its few general sentences; what an application's own errors are is the application's to say. A sentence
repeats nothing that was sent, because answers end in logs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from tavola.errors import TavolaError

MEDIA_TYPE = "application/problem+json"
URN = "urn:tavola:problem:"


class Problem(TavolaError):
    """An answer that is no success: status, slug, title and a sentence; what else is said becomes members."""

    def __init__(
        self,
        status: int,
        slug: str,
        title: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        self.status = status
        self.slug = slug
        self.title = title
        self.detail = detail
        self.headers = dict(headers or {})
        self.more = more
        super().__init__(detail)

    def document(self, instance: str | None = None) -> dict[str, Any]:
        """Return the members of the answer; `instance` is the path that was asked."""
        told: dict[str, Any] = {
            "type": URN + self.slug,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
        }
        if instance is not None:
            told["instance"] = instance
        return {**told, **self.more}

    def response(self, instance: str | None = None) -> Response:
        """Return the answer itself."""
        content = json.dumps(self.document(instance), ensure_ascii=False).encode("utf-8", "replace")
        return Response(content, self.status, self.headers, MEDIA_TYPE)


def not_found(what: str = "record") -> Problem:
    """Return the problem of something that is not there, told by its kind."""
    return Problem(
        404, "not-found", "Not found", f"There is no such {what}. Check its id, or list what there is."
    )


def too_large(detail: str) -> Problem:
    """Return the problem of a body that is larger than it may be."""
    return Problem(413, "too-large", "Too large", detail)


def unexpected(incident: str) -> Problem:
    """Return the problem that tells nothing but under which id the log has more."""
    return Problem(
        500,
        "unexpected",
        "Unexpected error",
        f"Something went wrong that is not your fault. Whoever runs this finds it in the log as {incident}.",
        incident=incident,
    )


def of_status(status: int, headers: Mapping[str, str] | None = None) -> Problem:
    """Return the problem of a bare status, as routing and form parsing raise it."""
    slug, detail = _STATUSES.get(status, (None, "The request could not be answered."))
    title = HTTPStatus(status).phrase
    return Problem(status, slug or title.lower().replace(" ", "-"), title, detail, headers=headers)


_STATUSES: Mapping[int, tuple[str, str]] = {
    400: ("malformed", "The body cannot be read as what its Content-Type says. Send JSON in UTF-8."),
    404: ("not-found", "There is nothing at this address. The API page lists what there is."),
    405: ("method-not-allowed", "This address does not take this method. Allow says which it takes."),
    413: ("too-large", "The body is larger than this application takes. Send less."),
    415: ("media-type", "The body's Content-Type is not one that this address takes. Send application/json."),
}
