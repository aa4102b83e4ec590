"""Leases: who may process a request now; the item that holds the lease later holds the outcome.

A caller acquires a request by creating its outcome item, or by taking over one whose lease has expired. Only the holder
can complete, extend or release it: each write is conditional on the holder's token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from json import dumps, loads
from typing import Any, Generic

from pydantic import TypeAdapter

from tavola.client.backend import Unanswered
from tavola.client.db import Db
from tavola.client.errors import ConditionFailed
from tavola.client.intents import Intent, Intents
from tavola.limits import ITEM_BYTES_MAX
from tavola.model import Change, Condition, PrimaryKey
from tavola.patterns.digests import digest_of
from tavola.patterns.outcomes import (
    Answer,
    AnswerTooLarge,
    IdempotencyMismatch,
    InProgress,
    Lease,
    LeaseLost,
    Outcome,
    State,
    StoredFailure,
    T,
)
from tavola.patterns.recipe import (
    D_co,
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

EVERYONE = "-"  # the scope of requests that are nobody's in particular
NO_WAIT = timedelta(0)

ANSWER_BYTES_MAX = ITEM_BYTES_MAX - 8 * 1024  # the rest is for the key and the other fields

_POLL_S = 0.01  # how long somebody else's work is left before it is looked at again, at first
_POLL_MAX_S = 1.0
_FAILURE_CHARACTERS_MAX = 10_000
OVERTAKEN_MAX = 20  # how often a request may change hands while it is being taken


class Leases(Recipe[D_co], Generic[D_co, T]):
    """Requests whose answers are of one type; see `Idempotency`, which does them whole."""

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
                entity.__name__, f"lease={lease} must be a second or more, and life={life} no less than it"
            )
        self.scope = scope
        self.life = life
        self.lease = lease
        self.failures = failures
        self._adapter: TypeAdapter[T] = TypeAdapter(of)

    # A request step by step.

    @recipe_method
    def begin(
        self, request: str, payload: Any, *, scope: str | None = None, wait: timedelta = NO_WAIT
    ) -> PatternProgram[Lease | Answer[T]]:
        """Take the lease of a request and return it; where it was done before, return the answer."""
        return (yield from self._acquire(scope, request, payload, wait))

    @recipe_method
    def complete(self, lease: Lease, answer: T) -> PatternProgram[Answer[T]]:
        """Keep the answer of a request that was begun; `LeaseLost` if it belongs to another by now."""
        return (yield from self._complete(lease, answer))

    @recipe_method
    def extend(self, lease: Lease, by: timedelta | None = None) -> PatternProgram[Lease]:
        """Have a lease last from now on once more, or for another time, and return it."""
        until = self._now() + (self.lease if by is None else by)
        changes = (self.entity.leased_until.set(until), self.entity.expires_at.set(until + self.life))
        yield from self._change_as_holder(lease, *changes)
        return replace(lease, until=until)

    @recipe_method
    def release(self, lease: Lease) -> PatternProgram[None]:
        """Give up a request that was begun, so that it can be begun again at once."""
        yield from self._release(lease)

    @recipe_method
    def find(self, request: str, *, scope: str | None = None) -> PatternProgram[Outcome | None]:
        """Return what is known of a request, None if nothing is, or nothing any more."""
        key = self.key(scope=self.scope if scope is None else scope, request=request)
        return (yield from call_client(lambda db: db.get(key, consistent=True)))

    def complete_in(self, tx: Intents, lease: Lease, answer: T) -> Intent[Outcome]:
        """Add the completion of a request that was begun to a transaction of yours: the answer with what it tells of.

        Where the lease belongs to another by now, the transaction is cancelled and this intent is among those that failed.
        """
        told, _ = self._encode_answer(lease, answer)
        return tx.update(self._key_of(lease), *self._completion(told), when=self._mine(lease))

    # How.

    def _acquire(
        self, scope: str | None, request: str, payload: Any, longest: timedelta
    ) -> PatternProgram[Lease | Answer[T]]:
        asked = self._new_lease(scope, request, payload)
        got, current = yield from self._create_outcome(asked)
        waiting = Waiting(longest)
        for _ in range(OVERTAKEN_MAX):
            if got:
                return asked
            free = yield from self._wait_for_outcome(asked, current, waiting)
            if isinstance(free, Answer):
                return free
            asked = replace(asked, until=self._now() + self.lease)
            if free is None:
                got, current = yield from self._create_outcome(asked)
            else:
                asked = replace(asked, token=max(asked.token, free.token + 1))
                got, current = yield from self._take_over(asked, free)
        raise InProgress(asked.scope, asked.request, asked.until)

    def _wait_for_outcome(
        self, asked: Lease, current: Outcome | None, waiting: Waiting
    ) -> PatternProgram[Answer[T] | Outcome | None]:
        """Return the answer, or what may be taken: an outcome that nobody holds, or None; wait while somebody does."""
        key = self._key_of(asked)
        while current is not None and current.state != "released":
            if current.payload != asked.payload:
                raise IdempotencyMismatch(asked.scope, asked.request)
            if current.state == "completed":
                assert current.answer is not None, "what is completed has an answer"
                before = current.holder != asked.holder  # else this very call did it, and its answer was lost
                return Answer(self._adapter.validate_json(current.answer), replayed=before)
            if current.state == "failed":
                assert current.answer is not None, "what has failed says how"
                raise StoredFailure(asked.scope, asked.request, *loads(current.answer))
            if current.leased_until is None or current.leased_until <= self._now():
                break  # whoever had it is gone
            seconds = waiting.next_s()
            if seconds is None:
                raise InProgress(asked.scope, asked.request, current.leased_until)
            yield from pause(seconds)
            current = yield from call_client(lambda db: db.get(key, consistent=True))
        return current

    def _create_outcome(self, asked: Lease) -> PatternProgram[tuple[bool, Outcome | None]]:
        """Take a request that nobody knows of; return whether it was got, and what stands there if not."""
        made = self._outcome(asked, "in_progress", None)
        return (yield from self._surely(lambda db: db.create(made), asked.holder))

    def _take_over(self, asked: Lease, current: Outcome) -> PatternProgram[tuple[bool, Outcome | None]]:
        """Take a request that its holder has left; return whether it was got, and what stands there if not."""
        kind, key, free = self.entity, self._key_of(asked), self._as_it_was(current)
        changes = (
            kind.state.set("in_progress"), kind.payload.set(asked.payload), kind.holder.set(asked.holder),
            kind.token.set(asked.token), kind.leased_until.set(asked.until), kind.expires_at.set(asked.until + self.life),
        )  # fmt: skip
        return (yield from self._surely(lambda db: db.update(key, *changes, when=free), asked.holder))

    def _complete(self, lease: Lease, value: Any) -> PatternProgram[Answer[T]]:
        told, answer = self._encode_answer(lease, value)
        yield from self._change_as_holder(lease, *self._completion(told))
        return Answer(answer, replayed=False)

    def _end(self, lease: Lease, error: BaseException, *, final: bool) -> PatternProgram[None]:
        if final:
            told = (self.entity.state.set("failed"), self.entity.answer.set(encode_failure(error)))
            yield from self._change_as_holder(lease, *told, *self._over())
        else:
            yield from self._release(lease)

    def _release(self, lease: Lease) -> PatternProgram[None]:
        # The item stays, for its token: a holder of long ago must not meet one that counts from the beginning.
        yield from self._change_as_holder(lease, self.entity.state.set("released"), *self._over())

    def _change_as_holder(self, lease: Lease, *changes: Change[Outcome]) -> PatternProgram[None]:
        """Change an outcome as its holder; `LeaseLost` for anybody else."""
        key, mine = self._key_of(lease), self._mine(lease)
        done, current = yield from self._surely(lambda db: db.update(key, *changes, when=mine), lease.holder)
        if not done:
            raise LeaseLost(lease, current)

    def _surely(
        self, write: Callable[[Db], Outcome], holder: str
    ) -> PatternProgram[tuple[bool, Outcome | None]]:
        """Make a write that one holder alone can make, again where no answer came; return whether, or what stands there.

        Where it is refused after that and the holder stands there, it was done and its answer lost.
        """
        attempt = 1
        while True:
            try:
                yield from call_client(write)
                return True, None
            except ConditionFailed as refused:
                current: Outcome | None = refused.found
                return attempt > 1 and current is not None and current.holder == holder, current
            except (Unanswered, Fault) as error:
                if attempt >= self.retry_policy.attempts_max or not _unknown(error):
                    raise
            yield from pause(self.retry_policy.pause_s(attempt))
            attempt += 1

    # What is written.

    def _mine(self, lease: Lease) -> Condition[Outcome]:
        return (self.entity.holder == lease.holder) & (self.entity.state == "in_progress")

    def _as_it_was(self, current: Outcome) -> Condition[Outcome]:
        same = (self.entity.holder == current.holder) & (self.entity.state == current.state)
        return same & self.entity.leased_until.eq(current.leased_until)

    def _completion(self, told: str) -> tuple[Change[Outcome], ...]:
        return self.entity.state.set("completed"), self.entity.answer.set(told), *self._over()

    def _over(self) -> tuple[Change[Outcome], ...]:
        return self.entity.leased_until.remove(), self.entity.expires_at.set(self._now() + self.life)

    def _new_lease(self, scope: str | None, request: str, payload: Any) -> Lease:
        now = self._now()
        return Lease(
            self.scope if scope is None else scope,
            request,
            digest_of(payload),
            self.entropy.uuid(),
            int(now.timestamp() * 1_000_000),  # so tokens grow also where an outcome was forgotten
            now + self.lease,
        )

    def _outcome(self, asked: Lease, state: State, answer: str | None) -> Outcome:
        until = asked.until if state == "in_progress" else None
        return self.entity(
            scope=asked.scope, request=asked.request, payload=asked.payload, state=state, answer=answer,
            holder=asked.holder, token=asked.token, leased_until=until, expires_at=(until or self._now()) + self.life,
        )  # fmt: skip

    def _encode_answer(self, asked: Lease, value: Any) -> tuple[str, T]:
        """Return an answer as it is kept, and as everybody is given it; what cannot be read again is refused now."""
        told = self._adapter.dump_json(value)
        if len(told) > ANSWER_BYTES_MAX:
            raise AnswerTooLarge(asked.scope, asked.request, len(told), ANSWER_BYTES_MAX)
        return told.decode(), self._adapter.validate_json(told)

    def _key_of(self, asked: Lease) -> PrimaryKey[Outcome]:
        return self.key(scope=asked.scope, request=asked.request)

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


def _unknown(error: Unanswered | Fault) -> bool:
    """Return whether a write may have been done: no answer came, or one that tells of a failure of the service."""
    return isinstance(error, Unanswered) or error.status >= 500


def encode_failure(error: BaseException) -> str:
    """Return what is told again of an error."""
    return dumps([type(error).__name__, str(error)[:_FAILURE_CHARACTERS_MAX]])
