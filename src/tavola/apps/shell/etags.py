"""ETags: which version of a record an answer shows, and which one a change is meant for."""

from __future__ import annotations

import re

from fastapi import Request
from fastapi.responses import Response

from tavola.web import ProblemError

_TAGS = re.compile(r'\s*(?:(W/)?"([\x21\x23-\x7e\x80-\xff]*)")?\s*(?:,|$)')  # a list may have empty places


def etag_of(*version: int | str) -> str:
    """Return the strong ETag of a version: a lock's number, or several parts that are one together."""
    return '"' + "-".join(str(part) for part in version) + '"'


def require_match(request: Request, etag: str) -> None:
    """Refuse a change that does not say which version it is meant for (428), or says another (412)."""
    told = request.headers.getlist("if-match")
    if not told:
        raise ProblemError(
            428,
            "if-match-missing",
            "If-Match missing",
            "A change must say which version it is meant for: send the ETag of what you read as If-Match, or If-Match: *.",
        )
    if not _matches(told, etag, weakly=False):
        raise ProblemError(
            412,
            "precondition-failed",
            "Changed meanwhile",
            "The record is no longer what If-Match says. Read it again and repeat the change on what it is now.",
            headers={"ETag": etag},
        )


def not_modified(request: Request, etag: str) -> Response | None:
    """Return the 304 for a reader who has this version already, None for one who has not."""
    told = request.headers.getlist("if-none-match")
    if told and _matches(told, etag, weakly=True):
        return Response(status_code=304, headers={"ETag": etag})
    return None


def _matches(told: list[str], etag: str, *, weakly: bool) -> bool:
    text = ",".join(told)
    if text.strip() == "*":
        return True
    ours = etag.removeprefix("W/").strip('"')
    position = 0
    while position < len(text):
        found = _TAGS.match(text, position)
        if found is None:
            raise ProblemError(
                400,
                "malformed",
                "Malformed ETag",
                'If-Match and If-None-Match hold ETags in quotes, such as "3", or *.',
            )
        if found[2] == ours and (weakly or found[1] is None):
            return True
        position = found.end()
    return False
