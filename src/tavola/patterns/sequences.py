"""Sequences: consecutive numbers, each given out once.

Counting the items and adding one gives two concurrent writers the same number, and is wrong past the first result page. Here
the last number is an item that every request increments; DynamoDB serializes the updates of one item.

    class Numbers(Sequence, table=Desk):
        class Key(PrimaryKey["Numbers"], pk="SEQUENCE#{scope}", sk="{period}"):
            scope: str
            period: str

    numbers = Sequences(db, Numbers, every="day")
    numbers.next("TICKET#t1")            1, then 2, … and again 1 tomorrow
    numbers.reserve("invoice", 100)      range(1, 101): a hundred with one write

A number that is taken and never used leaves a gap. If there must be none, `create_numbered` writes the numbered item in the same
transaction. Cost: one write per number, or per reserved range; one item limits a scope to about 1,000 numbers per second.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Literal, TypeVar, overload

from tavola.client.connection import AsyncConnection, Connection, Transaction
from tavola.client.errors import UpdateContended
from tavola.client.transactions import TransactionCancelled
from tavola.model import Attr, Entity, PrimaryKey, attr
from tavola.patterns.recipe import (
    D_co,
    PatternProgram,
    Recipe,
    RecipeRefused,
    call_client,
    check_expires_with,
    key_class,
    recipe_method,
    sleep,
    write_together,
)

Period = Literal["day", "month", "year"]

ATTEMPTS_MAX = 100  # how often a number that another writer took is tried again
WHOLE = "all"  # the period of a sequence that never restarts
_FORMS: dict[str, str] = {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}


class Sequence(Entity):
    """The last number taken in a scope; subclass it with a table and a key of scope and period."""

    scope: Attr[str]
    period: Attr[str]
    last: Attr[int] = attr(default=0)
    expires: Attr[datetime | None] = attr(default=None)


E = TypeVar("E", bound=Entity)
S = TypeVar("S", bound=Sequence)


class Sequences(Recipe[D_co], Generic[D_co, S]):
    """Numbers from 1, by scope, and optionally by day, month or year (UTC).

    With `keep`, the last number of a period is deleted that long after its last use.
    """

    def __init__(
        self, db: D_co, entity: type[S], *, every: Period | None = None, keep: timedelta | None = None
    ) -> None:
        super().__init__(db)
        self.entity = entity
        self.key = key_class(entity, "scope", "period")
        if every is not None and every not in _FORMS:
            raise RecipeRefused(entity.__name__, f"every={every!r} is not a period; use {', '.join(_FORMS)}")
        if keep is not None:
            check_expires_with(entity, "expires")
            if every is None:
                raise RecipeRefused(
                    entity.__name__, "keep= would restart a sequence that has no period; set every= as well"
                )
        self.every = every
        self.keep = keep

    def period(self, at: datetime | None = None) -> str:
        """Return the period that contains a moment (default: now)."""
        if self.every is None:
            return WHOLE
        moment = datetime.fromtimestamp(self.clock.now(), UTC) if at is None else at.astimezone(UTC)
        return moment.strftime(_FORMS[self.every])

    @recipe_method
    def next(self, scope: str, *, at: datetime | None = None) -> PatternProgram[int]:
        """Return the next number of a scope; no other caller gets it."""
        return (yield from self._increment(scope, 1, at))

    @recipe_method
    def reserve(self, scope: str, count: int, *, at: datetime | None = None) -> PatternProgram[range]:
        """Return the next `count` numbers of a scope, for your own use, with one write."""
        if count < 1:
            raise RecipeRefused(self.entity.__name__, f"{count} numbers are none; reserve 1 or more")
        last = yield from self._increment(scope, count, at)
        return range(last - count + 1, last + 1)

    @recipe_method
    def last(self, scope: str, *, at: datetime | None = None) -> PatternProgram[int]:
        """Return the last number taken, 0 if none was; it may be outdated when you use it."""
        key = self.key(scope=scope, period=self.period(at))
        counter = yield from call_client(lambda db: db.get(key, consistent=True))
        return 0 if counter is None else counter.last

    @overload
    def create_numbered(
        self: Sequences[Connection, S], scope: str, make: Callable[[int], E], *, at: datetime | None = ...
    ) -> E: ...
    @overload
    def create_numbered(
        self: Sequences[AsyncConnection, S],
        scope: str,
        make: Callable[[int], E],
        *,
        at: datetime | None = ...,
    ) -> Coroutine[Any, Any, E]: ...
    def create_numbered(
        self, scope: str, make: Callable[[int], Entity], *, at: datetime | None = None
    ) -> Any:
        """Create the entity that `make` returns for the next number, in one transaction with the number: it leaves no gap.

        Writers of one scope run one after another, and `make` is called again if another writer was first. Do not take numbers
        of the scope in another way: they would be the gaps.
        """
        return self.run_program(self._create_numbered(scope, make, at))

    def _create_numbered(
        self, scope: str, make: Callable[[int], E], at: datetime | None
    ) -> PatternProgram[E]:
        key = self.key(scope=scope, period=self.period(at))
        for attempt in range(1, ATTEMPTS_MAX + 1):
            current = yield from call_client(lambda db: db.get(key, consistent=True))
            last = 0 if current is None else current.last
            created = yield from self._take_and_create(key, last, make(last + 1))
            if created is not None:
                return created
            yield from sleep(self.retry_policy.pause_s(min(attempt, 6)))
        raise UpdateContended(f"the sequence {scope!r}", ATTEMPTS_MAX)

    def _take_and_create(self, key: PrimaryKey[S], last: int, entity: E) -> PatternProgram[E | None]:
        """Raise the last number and create its entity; return None if another writer was first."""
        field = self.entity.last
        changes = [field.set(last + 1)]
        if self.keep is not None:
            changes.append(self.entity.expires.set(self._expiry()))
        when = field == last if last else (field == 0) | field.not_exists()

        def fill(writes: Transaction) -> None:
            writes.update(key, *changes, when=when, create=True)
            writes.create(entity)

        try:
            yield from write_together(fill)
        except TransactionCancelled as cancelled:
            if cancelled.reasons[0] is not None and cancelled.reasons[0].kind in ("condition", "conflict"):
                return None
            raise
        return entity

    def _increment(self, scope: str, count: int, at: datetime | None) -> PatternProgram[int]:
        key = self.key(scope=scope, period=self.period(at))
        changes = [self.entity.last.add(count)]
        if self.keep is not None:
            changes.append(self.entity.expires.set(self._expiry()))
        updated = yield from call_client(lambda db: db.update(key, *changes, create=True))
        return updated.last

    def _expiry(self) -> datetime:
        assert self.keep is not None
        return datetime.fromtimestamp(self.clock.now(), UTC) + self.keep
