"""The applications' error responses: a `ProblemError` (RFC 9457) for each exception.

An exception's `code` and `kind` decide the response; this module adds titles and details in terms of HTTP: what to send
instead, when to retry. A detail must not quote the request, because responses end up in logs.
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
    ResponseMissing,
    TavolaError,
    TransactionCancelled,
    UniqueViolation,
    ValidationFault,
)
from tavola.apps.errors import ApplicationError
from tavola.apps.validation import validation_message
from tavola.errors import ErrorKind
from tavola.patterns import BlobDamaged, BlobMissing
from tavola.web import HTTP_STATUSES, ProblemError, not_found, problem_for_status

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

_READ_AGAIN = "Read it again and repeat the change."
_STORE_BUSY = "The store is overloaded."
_SEND_AGAIN = "Send the request again in a moment."

_FAULT_CODES = {  # faults with the same meaning as an exception of the client
    "ConditionalCheckFailedException": "conflict",
    "TransactionConflictException": "contended",
    "IdempotentParameterMismatchException": "idempotency-mismatch",
}

_TEXTS: Mapping[str, tuple[str, str]] = {  # title and detail by code
    "exists": ("Already exists", "A record with this ID already exists. Change it, or choose another ID."),
    "conflict": (
        "Record changed",
        f"The record was changed by another request. {_READ_AGAIN}",
    ),
    "immutable": ("Immutable", "This record cannot be changed. Create a new one instead."),
    "contended": (
        "Conflict",
        f"Other requests changed the same record at the same time. Nothing was changed. {_SEND_AGAIN}",
    ),
    "cursor-refused": (
        "Invalid cursor",
        "The cursor was altered, or belongs to another query. Start again without a cursor.",
    ),
    "idempotency-mismatch": (
        "Idempotency-Key used before",
        "This Idempotency-Key was used for a different request. Use a new key for a new request.",
    ),
    "in-progress": (
        "In progress",
        "A request with this Idempotency-Key is in progress. Send it again in a moment.",
    ),
    "failed-before": (
        "Failed before",
        "The request with this Idempotency-Key failed. Correct it and send it with a new key.",
    ),
    "history-ahead": (
        "Record reverted",
        (
            "The current record is older than its history: it was reverted or removed by another program. Verify it, and restore it "
            "from its last version before you change it."
        ),
    ),
    "in-the-way": (
        "Not possible",
        (
            "The stored records do not allow this: they form a cycle, a branch would contain itself, or the branch is too large. "
            "Choose another target or a smaller branch."
        ),
    ),
    "not-storable": (
        "Cannot be stored",
        "A value cannot be stored: IDs must have 1 to 1,024 bytes, and numbers at most 38 digits.",
    ),
}
_UNAVAILABLE: Mapping[str, tuple[str, int]] = {  # detail and seconds to wait, by code; the status is 503
    "store-busy": (f"The store executed only part of the request. {_SEND_AGAIN}", RETRY_AFTER_S),
    "store-unusable": ("The store cannot be read or written. The application's log has the reason.", 30),
}
_RETRYABLE = frozenset({"contended", "in-progress"})  # the response has a Retry-After


def problem_of(error: BaseException, *, conditional: bool = False) -> ProblemError | None:
    """Return the error response for an exception; None if it is an internal error (500).

    `conditional` means that the request had an If-Match, so a concurrent change is a failed precondition.
    """
    match error:
        case ProblemError():
            return error
        case RequestValidationError():
            return _of_request(error)
        case ValidationError():
            errors = error.errors(include_url=False, include_context=False, include_input=False)
            return _invalid(("body", member_of(detail["loc"]), detail) for detail in errors)
        case HTTPException():
            return problem_for_status(error.status_code, error.headers)
        case TransactionCancelled():
            return _of_cancellation(error, conditional=conditional)
        case UniqueViolation():
            detail = f"Another record already has this {error.field}. Choose a different value."
            return ProblemError(409, "taken", "Already taken", detail, field=error.field)
        case ResponseMissing():
            consequence = (
                "It is not known whether the request was executed. Send it again with the same Idempotency-Key."
                if error.sent
                else "Nothing was changed. Send it again in a moment."
            )
            return _unavailable("store-unreachable", f"The store does not respond. {consequence}", seconds=5)
        case BlobMissing() | BlobDamaged():
            state = "is missing from" if isinstance(error, BlobMissing) else "is damaged in"
            detail = (
                f"A part of this record ({error.blob.size:,} bytes) {state} the blob store. Restore it from a backup, or start the "
                "application with the --state or --blobs folder that it was written to."
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
            "Record changed",
            f"The record has changed since the version in If-Match. {_READ_AGAIN}",
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
            return _not_storable("An ID is too long. The limit is 1,024 bytes.")
        case ValidationFault() if _SIZE.search(str(fault)):
            return item_too_large()
        case ValidationFault() if _NUMBER.search(str(fault)):
            return _not_storable("A number has more than 38 digits or is too large. Round it.")
        case ResourceNotFoundFault():
            return _unavailable(
                "store-not-ready",
                "A table of this application is missing. Restart the application, or create its tables.",
            )
        case Fault(kind=ErrorKind.DENIED):
            detail = "The caller lacks permission for this. Use other credentials."
            return ProblemError(403, "forbidden", "Forbidden", detail)
        case Fault(retryable=True):
            return _unavailable("store-busy", f"{_STORE_BUSY} {_SEND_AGAIN}")
        case _:
            return None


def _of_cancellation(error: TransactionCancelled, *, conditional: bool) -> ProblemError | None:
    """Return one problem for a transaction with several reasons; transient reasons take precedence."""
    reasons = {reason.kind: reason for reason in reversed(list(error.failed.values()))}
    if "throttled" in reasons:
        return _unavailable("store-busy", f"{_STORE_BUSY} Nothing was changed. {_SEND_AGAIN}")
    for kind in ("conflict", "too_large", "missing", "lock", "condition", "unique", "exists", "invalid"):
        if kind in reasons:
            return problem_of(reasons[kind].error, conditional=conditional)
    return None


def _not_storable(detail: str) -> ProblemError:
    return ProblemError(422, "not-storable", "Cannot be stored", detail)


def _unavailable(code: str, detail: str, *, seconds: int = RETRY_AFTER_S) -> ProblemError:
    return ProblemError(503, code, "Service unavailable", detail, headers={"Retry-After": str(seconds)})


def item_too_large() -> ProblemError:
    """Return a 413 for a record that does not fit into one DynamoDB item."""
    return ProblemError(
        413,
        "item-too-large",
        "Record too large",
        "The record would be larger than 400 KB. Shorten it, or store the large part as an attachment.",
    )


# Validation


def _of_request(error: RequestValidationError) -> ProblemError:
    errors = error.errors()
    if any(detail.get("type") == "json_invalid" for detail in errors):
        return ProblemError(
            400, "malformed", "Malformed JSON", "The body is not valid JSON. Send one JSON document in UTF-8."
        )
    return _invalid(_locate(detail, error.body) for detail in errors)


def _invalid(errors: Iterable[tuple[str, tuple[str, ...], Mapping[str, Any]]]) -> ProblemError:
    messages: dict[tuple[str, str], list[str]] = {}
    for where, path, error in errors:
        pointer = "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)
        field_messages = messages.setdefault((where, _printable("#" + pointer)), [])
        if error.get("type") != "none_required":  # the error of the other branch of a union is more useful
            field_messages.append(_printable(validation_message(error)))
    fields = ", ".join(dict.fromkeys(pointer[2:] or "the body" for _, pointer in messages))
    return ProblemError(
        422,
        "invalid",
        "Invalid request",
        f"The request is not valid ({fields or 'the body'}). See errors for the details.",
        errors=[
            {
                "in": where,
                "pointer": pointer,
                "detail": "; or: ".join(dict.fromkeys(texts)) or "Must be null.",
            }
            for (where, pointer), texts in messages.items()
        ],
    )


def _locate(error: Mapping[str, Any], body: Any) -> tuple[str, tuple[str, ...], Mapping[str, Any]]:
    """Return the part of a request that an error is about, the path to the field, and the error."""
    where, *path = error.get("loc") or ("body",)
    if where != "body":
        return str(where), tuple(str(part) for part in path[:1]), error
    if not isinstance(body, dict | list):
        return "body", member_of(path), error
    fields: list[str] = []
    value = body
    for n, part in enumerate(path):
        if (isinstance(value, dict) and part in value) or (
            isinstance(value, list) and isinstance(part, int) and part < len(value)
        ):
            value = value[part]
        elif n < len(path) - 1 or error.get("type") != "missing":
            continue  # pydantic's name of a branch of a union
        fields.append(str(part))
    return "body", tuple(fields), error


def member_of(path: Iterable[str | int]) -> tuple[str, ...]:
    """Return the path to a field, without pydantic's names of the branches of a union."""
    return tuple(str(part) for n, part in enumerate(path) if not (n and _BRANCH.fullmatch(str(part))))


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def field_errors(error: ValidationError) -> dict[str, str]:
    """Return the first error of each field, for a form that is shown again."""
    messages: dict[str, str] = {}
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        messages.setdefault(
            ".".join(member_of(detail["loc"])), str(detail["msg"]).removeprefix("Value error, ")
        )
    return messages
