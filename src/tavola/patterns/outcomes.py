"""Outcomes: the stored result of a request, so that repetitions get it instead of running the request again.

(none) ──acquire──► in progress ──complete──► completed with an answer
                      │  ▲    └───fail──────► failed for good
                      └──┘ lease expired or released: the next caller acquires it with a greater token
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from tavola.errors import ErrorKind
from tavola.model import Attr, Entity, attr
from tavola.patterns.recipe import PatternError

T = TypeVar("T")

State = Literal["in_progress", "completed", "failed", "released"]


class Outcome(Entity):
    """The state of a request; subclass it with a table and a key of scope and request."""

    scope: Attr[str]  # whose request it is: a tenant, a kind of request
    request: Attr[str]  # the key that the caller chose for it
    payload: Attr[str]  # a digest of the request's payload
    state: Attr[State]
    answer: Attr[str | None] = attr(default=None)  # JSON; for a failure, its type and message
    holder: Attr[str]  # the caller that acquired it last
    token: Attr[int]  # greater for each holder
    leased_until: Attr[datetime | None] = attr(default=None)
    expires_at: Attr[datetime]  # the table's time to live


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """The answer to a request."""

    value: T
    replayed: bool  # the request was completed before; this is the stored answer


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to process a request; `token` is a fence: a receiver should refuse any token lower than one it has seen."""

    scope: str
    request: str
    payload: str
    holder: str
    token: int
    until: datetime

    def __str__(self) -> str:
        return describe_request(self.scope, self.request)


def describe_request(scope: str, request: str) -> str:
    """Return the name of a request for error messages."""
    return f"Request {request!r} of {scope!r}"


class IdempotencyMismatch(PatternError):
    """A key that was used before with another payload."""

    code = "idempotency-mismatch"

    def __init__(self, scope: str, request: str) -> None:
        self.scope = scope
        self.request = request
        super().__init__(
            f"{describe_request(scope, request)} came before with another payload; give a new key to what is another request"
        )


class InProgress(PatternError):
    """A request that another caller is processing now."""

    code = "in-progress"
    kind = ErrorKind.CONFLICT

    def __init__(self, scope: str, request: str, until: datetime) -> None:
        self.scope = scope
        self.request = request
        self.until = until  # when the lease ends and another caller may begin
        super().__init__(
            f"{describe_request(scope, request)} is being done elsewhere; its lease ends at {until.isoformat()}, try again or wait"
        )


class LeaseLost(PatternError):
    """A completion after the lease has passed to another caller, whose outcome counts."""

    code = "contended"
    kind = ErrorKind.CONFLICT

    def __init__(self, lease: Lease, found: Any) -> None:
        self.lease = lease
        self.found = found  # the current outcome, None if it no longer exists
        holder = "nobody" if found is None else f"the holder of token {found.token}"
        super().__init__(
            f"{lease} took longer than its lease, and belongs to {holder} by now, not to token {lease.token}; give a "
            "longer lease, or extend it while working"
        )


class StoredFailure(PatternError):
    """The stored failure of a request that failed for good."""

    code = "failed-before"
    kind = ErrorKind.CONFLICT

    def __init__(self, scope: str, request: str, error_type: str, message: str) -> None:
        self.scope = scope
        self.request = request
        self.error_type = error_type  # class name of the original error
        self.message = message
        super().__init__(f"{describe_request(scope, request)} failed before with {error_type}: {message}")


class AnswerTooLarge(PatternError):
    """An answer too large to be stored in an item for repetitions."""

    kind = ErrorKind.TOO_LARGE

    def __init__(self, scope: str, request: str, size: int, bytes_max: int) -> None:
        self.scope = scope
        self.request = request
        self.size = size
        super().__init__(
            f"The answer to {describe_request(scope, request)} is {size:,} bytes, and an outcome holds {bytes_max:,}; answer with less, such "
            "as where the rest is"
        )
