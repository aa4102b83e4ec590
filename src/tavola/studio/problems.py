"""The studio's error responses: the `Problem` for each exception, with a title and a remedy for a person at a screen.

Faults of DynamoDB keep their code and message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tavola.client.backend import Unanswered
from tavola.errors import ErrorKind, TavolaError
from tavola.protocol.faults import Fault
from tavola.web import HTTP_STATUSES, Problem, ProblemError

_WORD_STARTS = re.compile(r"(?<=[a-z])(?=[A-Z])")

_TEXTS: Mapping[str, tuple[str, str]] = {  # title and remedy by code
    "endpoint-lost": (
        "The endpoint does not answer",
        "Start it, or look at the network; then try again. Nothing was changed.",
    ),
    "credentials-missing": (
        "Nobody is signed in",
        "Set up credentials, start the studio again, and try again.",
    ),
    "past-unavailable": (
        "This endpoint tells nothing of the past",
        "Look at the table as it is now, or restore it to a new table there.",
    ),
    "extra-missing": ("A part of Tavola is not installed", ""),
    "ConditionalCheckFailedException": (
        "Somebody changed it meanwhile",
        "Read it again, look at what it is now, and decide anew.",
    ),
}
_FAULT_TEXTS: Mapping[ErrorKind, tuple[str, str]] = {
    ErrorKind.UNAUTHENTICATED: (
        "The endpoint does not take these credentials",
        "Sign in again (the token may have expired), start the studio anew, and try again.",
    ),
    ErrorKind.THROTTLED: ("Throttled", "Wait a moment and try again; nothing was changed."),
    ErrorKind.DENIED: ("Not allowed", "Ask who looks after the policies, or sign in as another."),
}
_STATUSES = {**HTTP_STATUSES, ErrorKind.INVALID: 400}
_CODE_STATUSES = {"endpoint-lost": 502, "unanswered": 504}


class RequestRefused(ProblemError):
    """A request that the studio does not answer."""

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
        name = _WORD_STARTS.sub(" ", code.removesuffix("Exception").removesuffix("Error")).capitalize()
        title, remedy = _FAULT_TEXTS.get(error.kind, (name, ""))
    elif isinstance(error, Unanswered):
        title = "No answer came"
        remedy = "It may have been done: read before you try again." if error.sent else "Nothing was done."
    else:
        title, remedy = "That cannot be done", ""
    return Problem(code, title, str(error), remedy, status)
