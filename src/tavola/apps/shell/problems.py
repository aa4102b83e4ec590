"""The applications' error responses: the `ProblemError` for each exception, as RFC 9457 has it.

An exception's `code` and `kind` decide the response; this module adds titles and details that speak of HTTP: what to send
instead, when to retry. A detail must not repeat what the request contained, because responses end up in logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from tavola import (
    Fault,
    ResourceNotFoundFault,
    TavolaError,
    TransactionCancelled,
    Unanswered,
    UniqueTaken,
    ValidationFault,
)
from tavola.apps.errors import ApplicationError
from tavola.errors import ErrorKind
from tavola.patterns import BlobDamaged, BlobMissing
from tavola.web import HTTP_STATUSES, ProblemError, not_found, of_status

RETRY_AFTER_S = 1  # a throttle or a conflict is usually over by then

_SIZE = re.compile(r"item size|size of the item|collection size", re.IGNORECASE)
_KEY_SIZE = re.compile(
    r"size of (hash ?key|range ?key)|key .{0,40}(2048|1024)|aggregated size", re.IGNORECASE
)
_NUMBER = re.compile(r"number|magnitude|significant digits|numeric", re.IGNORECASE)

_BRANCH = re.compile(
    r"none|str|int|float|bool|bytes|datetime|date|decimal|dict|list|any"
    r"|(?:literal|list|dict|tuple|set|union|nullable|model|is-instance|constrained-\w+|(?:function|lax|json|tagged)-[\w-]+)\[.*\]",
    re.DOTALL,
)
_CHOICE = re.compile(r"'([^']*)'")

_READ_AGAIN = "Read it again and repeat the change on what it is now."
_STORE_BUSY = "The store has more to do than it can."
_SEND_AGAIN = "Send the request again in a moment."

_FAULT_CODES = {  # faults that mean the same as an exception of the client
    "ConditionalCheckFailedException": "conflict",
    "TransactionConflictException": "contended",
    "IdempotentParameterMismatchException": "idempotency-mismatch",
}

_TEXTS: Mapping[str, tuple[str, str]] = {  # title and detail by code
    "exists": ("Exists already", "There is such a record already. Change that one, or choose another id."),
    "conflict": (
        "Changed meanwhile",
        f"Somebody else changed the record at the same time. {_READ_AGAIN}",
    ),
    "immutable": ("Immutable", "This record is never changed once it is written. Write a new one instead."),
    "contended": (
        "Contended",
        f"Others changed the same record at the same time, and nothing was done. {_SEND_AGAIN}",
    ),
    "cursor-refused": (
        "Cursor refused",
        (
            "The cursor cannot be used: it was cut or changed, or belongs to another question. Ask from the beginning, "
            "without one."
        ),
    ),
    "idempotency-mismatch": (
        "Idempotency-Key used before",
        "This Idempotency-Key came before with another request. Give a new key to what is another request.",
    ),
    "in-progress": (
        "In progress",
        "The request with this Idempotency-Key is being done right now. Send it again in a moment.",
    ),
    "failed-before": (
        "Failed before",
        "The request with this Idempotency-Key failed for good. Mend it, and send it with a new key.",
    ),
    "history-ahead": (
        "Set back",
        (
            "The current record is behind its history: it was set back or removed past this application. Verify it; nothing can "
            "be changed before whoever runs this has restored it from its last version."
        ),
    ),
    "in-the-way": (
        "Something is in the way",
        (
            "What is stored does not allow this: a cycle, a branch in itself, or more below than can be walked. Look at what "
            "there is, and ask for another place or for less."
        ),
    ),
    "not-storable": (
        "Cannot be stored",
        "A value that was sent cannot be stored: an id may hold up to 1 KB and not be empty, a number up to 38 digits.",
    ),
}
_UNAVAILABLE: Mapping[str, tuple[str, int]] = {  # detail and seconds to wait, by code; the status is 503
    "store-busy": (f"The store did a part of it only. {_SEND_AGAIN}", RETRY_AFTER_S),
    "store-unusable": (
        "The store cannot be read or written. Whoever runs this finds the reason in the log.",
        30,
    ),
}
_RETRYABLE = frozenset({"contended", "in-progress"})  # answered with Retry-After


def problem_of(error: BaseException, *, conditional: bool = False) -> ProblemError | None:
    """Return the error response for an exception; None if the request is not to blame, which makes it a 500.

    `conditional`: the request had an If-Match, so that a lost race is a failed precondition.
    """
    match error:
        case ProblemError():
            return error
        case RequestValidationError():
            return _of_request(error)
        case ValidationError():
            found = error.errors(include_url=False, include_context=False, include_input=False)
            return _invalid(("body", member_of(each["loc"]), each) for each in found)
        case HTTPException():
            return of_status(error.status_code, error.headers)
        case TransactionCancelled():
            return _of_cancellation(error, conditional=conditional)
        case UniqueTaken():
            detail = f"Another record has this {error.field} already. Choose another."
            return ProblemError(409, "taken", "Taken", detail, field=error.field)
        case Unanswered():
            consequence = (
                "Whether the request was done is not known; send it again with the same Idempotency-Key."
                if error.sent
                else "Nothing was done; send it again in a moment."
            )
            return _unavailable("store-unreachable", f"The store does not answer. {consequence}", seconds=5)
        case BlobMissing() | BlobDamaged():
            state = "is missing" if isinstance(error, BlobMissing) else "is not as it was written"
            detail = (
                f"The large part of this record, {error.blob.size:,} bytes beside the table, {state} in the blob store. Whoever runs "
                "this brings it back from a backup, or starts with the --state or --blobs that it was written with."
            )
            return _unavailable(error.code, detail, seconds=60)
        case ApplicationError():
            status = 412 if error.code == "precondition-failed" else HTTP_STATUSES[error.kind]
            return ProblemError(
                status, error.code, error.title, error.detail, headers=error.headers, **error.extensions
            )
        case TavolaError():
            return _of_code(error, conditional=conditional)
        case _:
            return None


def _of_code(error: TavolaError, *, conditional: bool) -> ProblemError | None:
    code = _FAULT_CODES.get(error.code, error.code)
    if code == "not-found":
        return not_found()
    if code == "conflict" and conditional:
        return ProblemError(
            412,
            "precondition-failed",
            "Changed meanwhile",
            f"The record is no longer what If-Match says. {_READ_AGAIN}",
        )
    if code in _TEXTS:
        title, detail = _TEXTS[code]
        status = HTTP_STATUSES[error.kind]
        headers = {"Retry-After": str(RETRY_AFTER_S)} if code in _RETRYABLE else None
        return ProblemError(status, code, title, detail, headers=headers)
    if code in _UNAVAILABLE:
        detail, seconds = _UNAVAILABLE[code]
        return _unavailable(code, detail, seconds=seconds)
    if error.kind is ErrorKind.TOO_LARGE:
        return item_too_large()
    return _of_fault(error) if isinstance(error, Fault) else None


def _of_fault(fault: Fault) -> ProblemError | None:
    match fault:
        case ValidationFault() if _KEY_SIZE.search(str(fault)):
            return _not_storable("An id that was sent is too long: it may hold up to 1 KB. Shorten it.")
        case ValidationFault() if _SIZE.search(str(fault)):
            return item_too_large()
        case ValidationFault() if _NUMBER.search(str(fault)):
            return _not_storable("A number that was sent has more than 38 digits, or is too large. Round it.")
        case ResourceNotFoundFault():
            return _unavailable(
                "store-not-ready",
                "The store lacks a table of this application. Start it again, or let it make its tables.",
            )
        case Fault(kind=ErrorKind.DENIED):
            detail = "The store does not allow this to the caller. Ask with credentials that may."
            return ProblemError(403, "forbidden", "Forbidden", detail)
        case Fault(retryable=True):
            return _unavailable("store-busy", f"{_STORE_BUSY} {_SEND_AGAIN}")
        case _:
            return None


def _of_cancellation(error: TransactionCancelled, *, conditional: bool) -> ProblemError | None:
    """Return one problem for a transaction with several reasons; transient reasons take precedence."""
    reasons = {reason.kind: reason for reason in reversed(list(error.failed.values()))}
    if "throttled" in reasons:
        return _unavailable(
            "store-busy", f"{_STORE_BUSY} Nothing was done; send the request again in a moment."
        )
    for kind in ("conflict", "too_large", "missing", "lock", "condition", "unique", "exists", "invalid"):
        if kind in reasons:
            return problem_of(reasons[kind].error, conditional=conditional)
    return None


def _not_storable(detail: str) -> ProblemError:
    return ProblemError(422, "not-storable", "Cannot be stored", detail)


def _unavailable(code: str, detail: str, *, seconds: int = RETRY_AFTER_S) -> ProblemError:
    return ProblemError(503, code, "Not available", detail, headers={"Retry-After": str(seconds)})


def item_too_large() -> ProblemError:
    """Return a 413 for a record that does not fit into one DynamoDB item."""
    return ProblemError(
        413,
        "item-too-large",
        "Record too large",
        "A record holds at most 400 KB, and this one would be larger. Send less, or put the large part elsewhere and "
        "name it.",
    )


# Validation.


def _of_request(error: RequestValidationError) -> ProblemError:
    found = error.errors()
    if any(each.get("type") == "json_invalid" for each in found):
        return ProblemError(
            400, "malformed", "Malformed JSON", "The body is no JSON. Send one JSON document in UTF-8."
        )
    return _invalid(_placed(each, error.body) for each in found)


def _invalid(found: Iterable[tuple[str, tuple[str, ...], Mapping[str, Any]]]) -> ProblemError:
    told: dict[tuple[str, str], list[str]] = {}
    for where, place, each in found:
        pointer = "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in place)
        said = told.setdefault((where, _plain("#" + pointer)), [])
        if (
            each.get("type") != "none_required"
        ):  # null is another's choice: of two complaints the one that helps
            said.append(_plain(words_of(each)))
    places = ", ".join(dict.fromkeys(pointer[2:] or "the body" for _, pointer in told))
    return ProblemError(
        422,
        "invalid",
        "Invalid request",
        f"What was sent is not valid ({places or 'the body'}); errors says what to mend.",
        errors=[
            {"in": where, "pointer": pointer, "detail": "; or: ".join(dict.fromkeys(said)) or "Give null."}
            for (where, pointer), said in told.items()
        ],
    )


def _placed(each: Mapping[str, Any], body: Any) -> tuple[str, tuple[str, ...], Mapping[str, Any]]:
    """Return where in a request a complaint is about, by what was sent."""
    where, *place = each.get("loc") or ("body",)
    if where != "body":
        return str(where), tuple(str(part) for part in place[:1]), each
    if not isinstance(body, dict | list):
        return "body", member_of(place), each
    found: list[str] = []
    standing = body
    for n, part in enumerate(place):
        if (isinstance(standing, dict) and part in standing) or (
            isinstance(standing, list) and isinstance(part, int) and part < len(standing)
        ):
            standing = standing[part]
        elif n < len(place) - 1 or each.get("type") != "missing":
            continue  # a branch of a union, which only pydantic knows
        found.append(str(part))
    return "body", tuple(found), each


def member_of(place: Iterable[str | int]) -> tuple[str, ...]:
    """Return the path to a member, without the names that pydantic gives the branches of a union."""
    return tuple(str(part) for n, part in enumerate(place) if not (n and _BRANCH.fullmatch(str(part))))


def words_of(each: Mapping[str, Any]) -> str:
    """Return a complaint of pydantic's in words for who sent the value."""
    told = str(each.get("msg", "not valid")).removeprefix("Value error, ")
    match each.get("type"):
        case "missing":
            return "This is needed, and it is missing."
        case "extra_forbidden":
            return "There is no such member here. Leave it out, or mend its name."
        case "literal_error" | "enum":
            choices = _CHOICE.findall(told)
            return f"Give one of {', '.join(choices)}." if choices else told
        case _:
            return told


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def field_errors(error: ValidationError) -> dict[str, str]:
    """Return the first complaint about each field, for a form that is shown again."""
    told: dict[str, str] = {}
    for each in error.errors(include_url=False, include_context=False, include_input=False):
        told.setdefault(".".join(member_of(each["loc"])), str(each["msg"]).removeprefix("Value error, "))
    return told
