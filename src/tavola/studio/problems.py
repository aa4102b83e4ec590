"""Problems: everything that can go wrong, in the one shape that a page reads.

A code for the program, a title, what happened, and what to do about it. Faults of DynamoDB keep their code and their
words; what they mean for a person at a screen is said beside them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tavola.backends import (
    CredentialsMissing,
    EndpointUnreachable,
    ExtraMissing,
    PastUnavailable,
    RegionMissing,
)
from tavola.client import Unanswered
from tavola.errors import TavolaError
from tavola.protocol.faults import THROTTLING_CODES, Fault

_CREDENTIALS = frozenset(
    {
        "ExpiredTokenException",
        "ExpiredToken",
        "UnrecognizedClientException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "IncompleteSignature",
        "SignatureDoesNotMatch",
    }
)
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Problem:
    """What went wrong: for a program (`code`, `status`) and for a person."""

    code: str
    title: str
    detail: str
    remedy: str
    status: int


class Refused(TavolaError):
    """A question that the studio does not answer, with what to do instead."""

    def __init__(self, code: str, title: str, detail: str, remedy: str = "", *, status: int = 400) -> None:
        self.problem = Problem(code, title, detail, remedy, status)
        super().__init__(f"{title}: {detail}")


def problem_of(error: TavolaError) -> Problem:
    """Return what to tell of an error."""
    match error:
        case Refused():
            return error.problem
        case Fault():
            return _of_fault(error)
        case EndpointUnreachable():
            return Problem(
                "endpoint-lost",
                "The endpoint does not answer",
                str(error),
                "Start it, or look at the network; then try again. Nothing was changed.",
                502,
            )
        case CredentialsMissing() | RegionMissing():
            return Problem(
                "credentials-missing",
                "Nobody is signed in",
                str(error),
                "Set up credentials, start the studio again, and try again.",
                401,
            )
        case Unanswered():
            done = "It may have been done: read before you try again." if error.sent else "Nothing was done."
            return Problem("unanswered", "No answer came", str(error), done, 504)
        case PastUnavailable():
            return Problem(
                "past-unavailable",
                "This endpoint tells nothing of the past",
                str(error),
                "Look at the table as it is now, or restore it to a new table there.",
                409,
            )
        case ExtraMissing():
            return Problem("extra-missing", "A part of Tavola is not installed", str(error), "", 501)
        case _:
            told = _WORDS.sub("-", type(error).__name__).lower()
            return Problem(told, "That cannot be done", str(error), "", 400)


def _of_fault(fault: Fault) -> Problem:
    code, words = fault.code, fault.message or fault.code
    if code in _CREDENTIALS:
        remedy = "Sign in again (the token may have expired), start the studio anew, and try again."
        return Problem(code, "The endpoint does not take these credentials", words, remedy, 401)
    if code in THROTTLING_CODES:
        return Problem(code, "Throttled", words, "Wait a moment and try again; nothing was changed.", 429)
    if code == "AccessDeniedException":
        return Problem(
            code, "Not allowed", words, "Ask who looks after the policies, or sign in as another.", 403
        )
    if code == "ConditionalCheckFailedException":
        remedy = "Read it again, look at what it is now, and decide anew."
        return Problem(code, "Somebody changed it meanwhile", words, remedy, 409)
    title = _WORDS.sub(" ", code.removesuffix("Exception").removesuffix("Error")).capitalize()
    return Problem(
        code, title, words, "", 404 if code.startswith("ResourceNotFound") else max(400, fault.status)
    )
