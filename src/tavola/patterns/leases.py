"""Leases: who may process a request now; the item that holds the lease later holds the outcome.

A caller acquires a request by creating its outcome item, or by taking over one whose lease has expired. Only the holder
can complete, extend or release it: each write is conditional on the holder's token. Repetitions of a completed request get the
stored outcome instead of running the request again.

    (none) ──acquire──► in progress ──complete──► completed with an answer
                          │  ▲    └───fail──────► failed for good
                          └──┘ lease expired or released: the next caller acquires it with a greater token
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from json import dumps, loads
from typing import Any, Generic, Literal, TypeVar

from pydantic import TypeAdapter

from tavola.client.backend import ResponseMissing
from tavola.client.connection import Connection
from tavola.client.errors import ConditionFailed
from tavola.client.transactions import Intents
from tavola.client.writes import Intent
from tavola.errors import ErrorKind
from tavola.limits import ITEM_BYTES_MAX
from tavola.model import Attr, Change, Condition, Entity, PrimaryKey, attr
from tavola.patterns.digests import digest_of
from tavola.patterns.recipe import (
    D_co,
    PatternError,
    PatternProgram,
    Recipe,
    RecipeRefused,
    call_client,
    check_expires_with,
    key_class,
    recipe_method,
)
from tavola.patterns.recipe import sleep as pause
from tavola.protocol.faults import Fault

T = TypeVar("T")

State = Literal["in_progress", "completed", "failed", "released"]

EVERYONE = "-"  # the default scope: one namespace of request keys for all callers
NO_WAIT = timedelta(0)

ANSWER_BYTES_MAX = ITEM_BYTES_MAX - 8 * 1024  # the rest is for the key and the other fields

_POLL_S = 0.01  # first pause before another holder's work is checked again
_POLL_MAX_S = 1.0
_FAILURE_CHARACTERS_MAX = 10_000
OVERTAKEN_MAX = 20  # how often other callers may win the race for a request before this call gives up


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
            f"{describe_request(scope, request)} was sent before with another payload; use a new key for a new request"
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
        holder = "no one" if found is None else f"the holder of token {found.token}"
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


class Leases(Recipe[D_co], Generic[D_co, T]):
    """Requests whose answers have one type, processed step by step; `Idempotency` does the steps for you."""

    def __init__(
        self,
        db: D_co,
        entity: type[Outcome],
        of: type[T],
        *,
        scope: str = EVERYONE,
        life: timedelta = timedelta(hours=24),
        lease: timedelta = timedelta(minutes=1),
        failures: tuple[type[Exception], ...] = (),
    ) -> None:
        super().__init__(db)
        self.entity = entity
        self.key = key_class(entity, "scope", "request")
        check_expires_with(entity, "expires_at")
        if lease < timedelta(seconds=1) or life < lease:
            raise RecipeRefused(
                entity.__name__,
                f"lease={lease} must be at least one second, and life={life} at least as long as the lease",
            )
        self.scope = scope
        self.life = life
        self.lease = lease
        self.failures = failures
        self._adapter: TypeAdapter[T] = TypeAdapter(of)

    # Public steps of a request.

    @recipe_method
    def begin(
        self, request: str, payload: Any, *, scope: str | None = None, wait: timedelta = NO_WAIT
    ) -> PatternProgram[Lease | Answer[T]]:
        """Acquire the lease of a request; if the request is completed already, return its answer instead."""
        return (yield from self._acquire(scope, request, payload, wait))

    @recipe_method
    def complete(self, lease: Lease, answer: T) -> PatternProgram[Answer[T]]:
        """Store the answer of a request that you hold; raise `LeaseLost` if another caller holds it by now."""
        return (yield from self._complete(lease, answer))

    @recipe_method
    def extend(self, lease: Lease, by: timedelta | None = None) -> PatternProgram[Lease]:
        """Extend a lease to `by` from now (default: the usual duration) and return it."""
        until = self._now() + (self.lease if by is None else by)
        changes = (self.entity.leased_until.set(until), self.entity.expires_at.set(until + self.life))
        yield from self._change_as_holder(lease, *changes)
        return replace(lease, until=until)

    @recipe_method
    def release(self, lease: Lease) -> PatternProgram[None]:
        """Give up a request without an answer, so that another caller can begin it at once."""
        yield from self._release(lease)

    @recipe_method
    def find(self, request: str, *, scope: str | None = None) -> PatternProgram[Outcome | None]:
        """Return the stored outcome of a request; None if there is none or it has expired."""
        key = self.key(scope=self.scope if scope is None else scope, request=request)
        return (yield from call_client(lambda db: db.get(key, consistent=True)))

    def complete_in(self, tx: Intents, lease: Lease, answer: T) -> Intent[Outcome]:
        """Add the completion of a request to your transaction, so that the answer commits with the work it describes.

        If another caller holds the lease by now, the transaction is cancelled and this intent is among the failed ones.
        """
        encoded, _ = self._encode_answer(lease, answer)
        return tx.update(self._key_of(lease), *self._completion(encoded), when=self._mine(lease))

    # Steps.

    def _acquire(
        self, scope: str | None, request: str, payload: Any, longest: timedelta
    ) -> PatternProgram[Lease | Answer[T]]:
        lease = self._new_lease(scope, request, payload)
        acquired, current = yield from self._create_outcome(lease)
        waiting = Waiting(longest)
        for _ in range(OVERTAKEN_MAX):
            if acquired:
                return lease
            free = yield from self._wait_for_outcome(lease, current, waiting)
            if isinstance(free, Answer):
                return free
            lease = replace(lease, until=self._now() + self.lease)
            if free is None:
                acquired, current = yield from self._create_outcome(lease)
            else:
                lease = replace(lease, token=max(lease.token, free.token + 1))
                acquired, current = yield from self._take_over(lease, free)
        raise InProgress(lease.scope, lease.request, lease.until)

    def _wait_for_outcome(
        self, lease: Lease, current: Outcome | None, waiting: Waiting
    ) -> PatternProgram[Answer[T] | Outcome | None]:
        """Wait while another caller holds the request; return its answer, or the outcome to take over (None: create one)."""
        key = self._key_of(lease)
        while current is not None and current.state != "released":
            if current.payload != lease.payload:
                raise IdempotencyMismatch(lease.scope, lease.request)
            if current.state == "completed":
                assert current.answer is not None, "a completed outcome has an answer"
                # Else this call wrote it, and the response was lost
                replayed = current.holder != lease.holder
                return Answer(self._adapter.validate_json(current.answer), replayed=replayed)
            if current.state == "failed":
                assert current.answer is not None, "a failed outcome describes its failure"
                raise StoredFailure(lease.scope, lease.request, *loads(current.answer))
            if current.leased_until is None or current.leased_until <= self._now():
                break  # the holder's lease has expired
            seconds = waiting.next_s()
            if seconds is None:
                raise InProgress(lease.scope, lease.request, current.leased_until)
            yield from pause(seconds)
            current = yield from call_client(lambda db: db.get(key, consistent=True))
        return current

    def _create_outcome(self, lease: Lease) -> PatternProgram[tuple[bool, Outcome | None]]:
        """Create the outcome of a new request; return whether it was created, and the existing one if not."""
        outcome = self._outcome(lease, "in_progress", None)
        return (yield from self._surely(lambda db: db.create(outcome), lease.holder))

    def _take_over(self, lease: Lease, current: Outcome) -> PatternProgram[tuple[bool, Outcome | None]]:
        """Take over a request whose holder gave it up or expired; return whether it worked, and the current outcome if not."""
        kind, key, unchanged = self.entity, self._key_of(lease), self._as_it_was(current)
        changes = (
            kind.state.set("in_progress"), kind.payload.set(lease.payload), kind.holder.set(lease.holder),
            kind.token.set(lease.token), kind.leased_until.set(lease.until), kind.expires_at.set(lease.until + self.life),
        )  # fmt: skip
        return (yield from self._surely(lambda db: db.update(key, *changes, when=unchanged), lease.holder))

    def _complete(self, lease: Lease, value: Any) -> PatternProgram[Answer[T]]:
        encoded, answer = self._encode_answer(lease, value)
        yield from self._change_as_holder(lease, *self._completion(encoded))
        return Answer(answer, replayed=False)

    def _end(self, lease: Lease, error: BaseException, *, final: bool) -> PatternProgram[None]:
        if final:
            changes = (self.entity.state.set("failed"), self.entity.answer.set(encode_failure(error)))
            yield from self._change_as_holder(lease, *changes, *self._over())
        else:
            yield from self._release(lease)

    def _release(self, lease: Lease) -> PatternProgram[None]:
        # The item stays because of its token: if counting started again, a very old holder's token could be valid.
        yield from self._change_as_holder(lease, self.entity.state.set("released"), *self._over())

    def _change_as_holder(self, lease: Lease, *changes: Change[Outcome]) -> PatternProgram[None]:
        """Change an outcome on condition that `lease` still holds it; otherwise raise `LeaseLost`."""
        key, mine = self._key_of(lease), self._mine(lease)
        done, current = yield from self._surely(lambda db: db.update(key, *changes, when=mine), lease.holder)
        if not done:
            raise LeaseLost(lease, current)

    def _surely(
        self, write: Callable[[Connection], Outcome], holder: str
    ) -> PatternProgram[tuple[bool, Outcome | None]]:
        """Make a conditional write whose outcome names `holder`, repeating it while its result is unknown.

        Return whether it was made, and the current outcome if not. If a repetition is refused and the current outcome names
        this holder, the first attempt was made and only its response was lost.
        """
        attempt = 1
        while True:
            try:
                yield from call_client(write)
                return True, None
            except ConditionFailed as refused:
                current: Outcome | None = refused.found
                return attempt > 1 and current is not None and current.holder == holder, current
            except (ResponseMissing, Fault) as error:
                if attempt >= self.retry_policy.attempts_max or not _unknown(error):
                    raise
            yield from pause(self.retry_policy.pause_s(attempt))
            attempt += 1

    # Items, changes and conditions.

    def _mine(self, lease: Lease) -> Condition[Outcome]:
        return (self.entity.holder == lease.holder) & (self.entity.state == "in_progress")

    def _as_it_was(self, current: Outcome) -> Condition[Outcome]:
        same = (self.entity.holder == current.holder) & (self.entity.state == current.state)
        return same & self.entity.leased_until.eq(current.leased_until)

    def _completion(self, answer: str) -> tuple[Change[Outcome], ...]:
        return self.entity.state.set("completed"), self.entity.answer.set(answer), *self._over()

    def _over(self) -> tuple[Change[Outcome], ...]:
        return self.entity.leased_until.remove(), self.entity.expires_at.set(self._now() + self.life)

    def _new_lease(self, scope: str | None, request: str, payload: Any) -> Lease:
        now = self._now()
        return Lease(
            self.scope if scope is None else scope,
            request,
            digest_of(payload),
            self.entropy.uuid(),
            int(now.timestamp() * 1_000_000),  # so tokens grow even after an outcome has expired
            now + self.lease,
        )

    def _outcome(self, lease: Lease, state: State, answer: str | None) -> Outcome:
        until = lease.until if state == "in_progress" else None
        return self.entity(
            scope=lease.scope, request=lease.request, payload=lease.payload, state=state, answer=answer,
            holder=lease.holder, token=lease.token, leased_until=until, expires_at=(until or self._now()) + self.life,
        )  # fmt: skip

    def _encode_answer(self, lease: Lease, value: Any) -> tuple[str, T]:
        """Return an answer as JSON and as read back from it; fail now if it cannot be read back."""
        encoded = self._adapter.dump_json(value)
        if len(encoded) > ANSWER_BYTES_MAX:
            raise AnswerTooLarge(lease.scope, lease.request, len(encoded), ANSWER_BYTES_MAX)
        return encoded.decode(), self._adapter.validate_json(encoded)

    def _key_of(self, lease: Lease) -> PrimaryKey[Outcome]:
        return self.key(scope=lease.scope, request=lease.request)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock.now(), UTC)


class Waiting:
    """How long to wait between checks of another caller's work: longer each time, up to a limit in total."""

    def __init__(self, longest: timedelta) -> None:
        self._left_s = longest.total_seconds()
        self._next_s = _POLL_S

    def next_s(self) -> float | None:
        """Return the next pause in seconds, None when it was long enough."""
        if self._left_s <= 0:
            return None
        seconds = min(self._next_s, self._left_s)
        self._left_s -= seconds
        self._next_s = min(2 * self._next_s, _POLL_MAX_S)
        return seconds


def _unknown(error: ResponseMissing | Fault) -> bool:
    """Return whether a write may have been done: no answer came, or one that tells of a failure of the service."""
    return isinstance(error, ResponseMissing) or error.status >= 500


def encode_failure(error: BaseException) -> str:
    """Return the stored description of an error, for repeated requests."""
    return dumps([type(error).__name__, str(error)[:_FAILURE_CHARACTERS_MAX]])
