"""The studio's error responses: the `Problem` for each exception, with a title and a remedy for a person at a screen.

Faults of DynamoDB keep their code and message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tavola.client.backend import ResponseMissing
from tavola.errors import ErrorKind, TavolaError
from tavola.protocol.faults import Fault
from tavola.web import HTTP_STATUSES, Problem, ProblemError

_WORD_STARTS = re.compile(r"(?<=[a-z])(?=[A-Z])")

_TEXTS: Mapping[str, tuple[str, str]] = {  # title and remedy by code
    "endpoint-lost": (
        "The endpoint does not respond",
        "Start it or check the network, then try again. Nothing was changed.",
    ),
    "credentials-missing": ("No credentials", "Configure credentials and restart the studio."),
    "past-unavailable": (
        "This endpoint can't read earlier data",
        "View the current data, or restore the table to a new one.",
    ),
    "InvalidRestoreTimeException": (
        "The time is outside the recovery window",
        "Choose a time within the window, or return to now.",
    ),
    "ValidationException": ("Invalid request", ""),
    "extra-missing": ("An optional dependency is not installed", ""),
    "ConditionalCheckFailedException": (
        "The item changed in the meantime",
        "Reload it, compare, and save again.",
    ),
}
_FAULT_TEXTS: Mapping[ErrorKind, tuple[str, str]] = {
    ErrorKind.UNAUTHENTICATED: (
        "The endpoint rejects these credentials",
        "Sign in again (the token may have expired) and restart the studio.",
    ),
    ErrorKind.THROTTLED: ("Request throttled", "Wait a moment and try again; nothing was changed."),
    ErrorKind.DENIED: ("Access denied", "Ask an administrator for permission, or use other credentials."),
}
_STATUSES = {**HTTP_STATUSES, ErrorKind.INVALID: 400}
_CODE_STATUSES = {"endpoint-lost": 502, "unanswered": 504}


class RequestRefused(ProblemError):
    """A request that the studio refuses, with the problem to show."""

    def __init__(self, code: str, title: str, detail: str, remedy: str = "", *, status: int = 400) -> None:
        super().__init__(status, code, title, detail, remedy)


def problem_of(error: TavolaError) -> Problem:
    """Return the error response for an exception."""
    if isinstance(error, ProblemError):
        return error.problem
    code = error.code
    status = _CODE_STATUSES.get(code, _STATUSES[error.kind])
    if code in _TEXTS:
        title, remedy = _TEXTS[code]
    elif isinstance(error, Fault):
        status = max(status, error.status)
        name = _WORD_STARTS.sub(" ", code.removesuffix("Exception")).capitalize()
        title, remedy = _FAULT_TEXTS.get(error.kind, (name, ""))
    elif isinstance(error, ResponseMissing):
        title = "No response"
        remedy = (
            "The request may have been carried out: check before you try again."
            if error.sent
            else "Nothing was changed."
        )
    else:
        title, remedy = "The request failed", ""
    return Problem(code, title, str(error), remedy, status)
