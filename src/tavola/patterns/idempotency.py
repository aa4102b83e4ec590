"""Idempotency: a request that arrives twice is processed once and answered twice.

The caller gives each request a key and repeats it with the same key. The outcome is stored with a digest of the payload:
a repetition gets the stored answer, a different payload with the same key is refused.

    class Requests(Outcome, table=Desk):
        class Key(PrimaryKey["Requests"], pk="REQUEST#{scope}#{request}", sk="OUTCOME"):
            scope: str
            request: str

    requests = Idempotency(db, Requests, of=Receipt)

    def fill(writes: Transaction) -> Receipt:
        writes.create(ticket)
        return Receipt(ticket_id=ticket.ticket_id)

    requests.together("k1", body, fill)              the ticket and its outcome in one transaction: both or none
    requests.once("k2", body, lambda lease: pay())   work that no transaction holds: under a lease

`together` is exactly once. `once` is at least once: if the process dies during the work, its lease expires and the next caller
does the work again. A receiver that checks the lease's token (it grows with every holder) can reject the work of an old holder.

Cost: one extra write in the transaction, or two writes for `once`; a repetition is one read.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import wraps
from inspect import signature
from typing import Any, Generic, ParamSpec, overload

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from tavola.client.connection import AsyncConnection, AsyncTransaction, Connection, Transaction
from tavola.client.errors import ConditionFailed
from tavola.client.transactions import TransactionCancelled
from tavola.client.writes import Intent
from tavola.patterns.leases import (
    NO_WAIT,
    OVERTAKEN_MAX,
    Answer,
    AnswerTooLarge,
    InProgress,
    Lease,
    LeaseLost,
    Leases,
    Outcome,
    T,
    Waiting,
    encode_failure,
)
from tavola.patterns.recipe import D_co, PatternProgram, RecipeRefused, call_client

P = ParamSpec("P")


class Idempotency(Leases[D_co, T], Generic[D_co, T]):
    """Requests whose answers have one type, any that pydantic can serialize to JSON.

    An outcome is stored for `life`. A `lease` should last longer than the work. If the work raises, the request is released
    and can be tried again; errors of the types in `failures` are final, stored like answers and raised again.
    """

    @overload
    def together(
        self: Idempotency[Connection, T], request: str, payload: Any, fill: Callable[[Transaction], T], *, scope: str | None = ...,
        wait: timedelta = ...,
    ) -> Answer[T]: ...  # fmt: skip
    @overload
    def together(
        self: Idempotency[AsyncConnection, T], request: str, payload: Any,
        fill: Callable[[AsyncTransaction], Awaitable[T] | T], *, scope: str | None = ..., wait: timedelta = ...,
    ) -> Coroutine[Any, Any, Answer[T]]: ...  # fmt: skip
    def together(
        self,
        request: str,
        payload: Any,
        fill: Callable[[Any], Any],
        *,
        scope: str | None = None,
        wait: timedelta = NO_WAIT,
    ) -> Any:
        """Process a request in one transaction with its outcome, and return its answer.

        `fill` gets the transaction, adds writes to it and returns the answer; it may read first. It may run for a request that
        turns out to be completed, so it must have no other effect. If one of its own conditions fails, the caller gets the
        usual `TransactionCancelled`.
        """
        return self.run_program(self._run_together(scope, request, payload, fill, wait))

    @overload
    def once(
        self: Idempotency[Connection, T], request: str, payload: Any, work: Callable[[Lease], T], *, scope: str | None = ...,
        wait: timedelta = ...,
    ) -> Answer[T]: ...  # fmt: skip
    @overload
    def once(
        self: Idempotency[AsyncConnection, T], request: str, payload: Any, work: Callable[[Lease], Awaitable[T] | T], *,
        scope: str | None = ..., wait: timedelta = ...,
    ) -> Coroutine[Any, Any, Answer[T]]: ...  # fmt: skip
    def once(
        self,
        request: str,
        payload: Any,
        work: Callable[[Lease], Any],
        *,
        scope: str | None = None,
        wait: timedelta = NO_WAIT,
    ) -> Any:
        """Do some work under a lease, store what it returns and return it; a repetition gets the stored answer.

        While another caller works on the request, wait up to `wait`, then raise `InProgress`. If the lease passed to another
        caller before the work was done, the answer is not stored and `LeaseLost` is raised.
        """
        return self.run_program(self._run_once(scope, request, payload, work, wait))

    @overload
    def idempotent(
        self: Idempotency[Connection, T], request: str | Callable[..., str], *, payload: Callable[..., Any] | None = ...,
        scope: str | Callable[..., str] | None = ..., wait: timedelta = ...,
    ) -> Callable[[Callable[P, T]], Callable[P, T]]: ...  # fmt: skip
    @overload
    def idempotent(
        self: Idempotency[AsyncConnection, T], request: str | Callable[..., str], *, payload: Callable[..., Any] | None = ...,
        scope: str | Callable[..., str] | None = ..., wait: timedelta = ...,
    ) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Coroutine[Any, Any, T]]]: ...  # fmt: skip
    def idempotent(
        self,
        request: str | Callable[..., str],
        *,
        payload: Callable[..., Any] | None = None,
        scope: str | Callable[..., str] | None = None,
        wait: timedelta = NO_WAIT,
    ) -> Any:
        """Decorate a function so that it runs `once` per key.

        `request` names the parameter that is the key, or computes the key from the arguments. The payload is all other arguments
        except `self` or `cls`, unless `payload` computes it. With an asynchronous client the function is a coroutine.
        """

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            takes = signature(function)
            if isinstance(request, str) and request not in takes.parameters:
                raise RecipeRefused(
                    function.__qualname__, f"it has no parameter {request!r} to be the request's key"
                )

            def start(*arguments: Any, **options: Any) -> PatternProgram[Answer[Any]]:
                bound = takes.bind(*arguments, **options)
                bound.apply_defaults()
                values: Mapping[str, Any] = bound.arguments
                key = str(values[request]) if isinstance(request, str) else request(*arguments, **options)
                if payload is None:
                    content = {
                        name: value for name, value in values.items() if name not in (request, "self", "cls")
                    }
                else:
                    content = payload(*arguments, **options)
                scope_name = scope(*arguments, **options) if callable(scope) else scope
                return self._run_once(
                    scope_name, key, content, lambda lease: function(*arguments, **options), wait
                )

            if isinstance(self.db, AsyncConnection):

                @wraps(function)
                async def call_async(*arguments: Any, **options: Any) -> Any:
                    return (await self.run_program(start(*arguments, **options))).value

                return call_async

            @wraps(function)
            def call(*arguments: Any, **options: Any) -> Any:
                return self.run_program(start(*arguments, **options)).value

            return call

        return decorate

    # In one transaction.

    def _run_together(
        self, scope: str | None, request: str, payload: Any, fill: Callable[[Any], Any], longest: timedelta
    ) -> PatternProgram[Answer[T]]:
        lease = self._new_lease(scope, request, payload)
        key = self._key_of(lease)
        current = yield from call_client(lambda db: db.get(key, consistent=True))
        waiting = Waiting(longest)
        for _ in range(OVERTAKEN_MAX):
            free = yield from self._wait_for_outcome(lease, current, waiting)
            if isinstance(free, Answer):
                return free
            if free is not None:
                lease = replace(lease, token=max(lease.token, free.token + 1))
            try:
                return (yield from self._commit_with_outcome(lease, free, fill))
            except _LostRace as overtaken:
                current = overtaken.current
        raise InProgress(lease.scope, lease.request, lease.until)

    def _commit_with_outcome(
        self, lease: Lease, prior: Outcome | None, fill: Callable[[Any], Any]
    ) -> PatternProgram[Answer[T]]:
        """Commit what `fill` adds together with the outcome; raise `_LostRace` if another caller was first."""
        client: Any = self.db
        tx = client.transaction()
        intent: Intent[Outcome] | None = None
        try:
            value = yield from call_client(lambda _: fill(tx))
            encoded, answer = self._encode_answer(lease, value)
            outcome = self._outcome(lease, "completed", encoded)
            intent = tx.create(outcome) if prior is None else tx.put(outcome, when=self._as_it_was(prior))
            yield from call_client(lambda _: tx.commit())
        except Exception as error:
            reason = None
            if isinstance(error, TransactionCancelled) and intent is not None:
                reason = error.failed.get(intent)
            if reason is not None and reason.kind in ("exists", "condition"):
                raise _LostRace(
                    reason.item
                ) from error  # only this means that the request is completed already
            yield from self._store_failure(lease, prior, error)
            raise
        return Answer(answer, replayed=False)

    def _store_failure(self, lease: Lease, prior: Outcome | None, error: Exception) -> PatternProgram[None]:
        """Store a final failure; raise `_LostRace` if another caller processed the request, which may have caused the error."""
        key = self._key_of(lease)
        current = yield from call_client(lambda db: db.get(key, consistent=True))
        if current is not None and (prior is None or current.holder != prior.holder):
            raise _LostRace(current) from error
        if not isinstance(error, self.failures):
            return
        failed = self._outcome(lease, "failed", encode_failure(error))
        try:
            if prior is None:
                yield from call_client(lambda db: db.create(failed))
            else:
                free = self._as_it_was(prior)
                yield from call_client(lambda db: db.put(failed, when=free))
        except ConditionFailed as refused:
            raise _LostRace(refused.found) from error

    # Under a lease.

    def _run_once(
        self, scope: str | None, request: str, payload: Any, work: Callable[[Lease], Any], longest: timedelta
    ) -> PatternProgram[Answer[T]]:
        begun = yield from self._acquire(scope, request, payload, longest)
        if isinstance(begun, Answer):
            return begun
        try:
            value = yield from call_client(lambda _: work(begun))
        except (Exception, CancelledError) as error:
            try:
                yield from self._end(begun, error, final=isinstance(error, self.failures))
            except LeaseLost:
                pass  # another caller holds it by now; this error is the one to report
            raise
        try:
            return (yield from self._complete(begun, value))
        except (AnswerTooLarge, PydanticSerializationError, ValidationError) as error:
            yield from self._end(begun, error, final=True)  # the work is done and must not be repeated
            raise


class _LostRace(Exception):
    """Another caller was first; holds the current outcome."""

    def __init__(self, current: Outcome | None) -> None:
        self.current = current
        super().__init__()
