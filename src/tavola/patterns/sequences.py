"""Sequences: numbers in a row, and never one of them twice.

Counting what is there and adding one gives two writers the same number, and a wrong one past the first page. Here the last
number is an item, and each number is taken by raising it: DynamoDB does one such update after another.

    class Numbers(Sequence, table=Desk):
        class Key(PrimaryKey["Numbers"], pk="SEQUENCE#{scope}", sk="{period}"):
            scope: str
            period: str

    numbers = Sequences(db, Numbers, every="day")
    numbers.next("TICKET#t1")            1, then 2, … and again 1 tomorrow
    numbers.reserve("invoice", 100)      range(1, 101): a hundred with one write

A number that was taken and not used leaves a gap. Where none may be, `numbered` writes the number's item with it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Generic, Literal, TypeVar

from tavola.model import Attr, Entity, attr
from tavola.patterns.recipe import D_co, Recipe, RecipeRefused, Steps, ask, expires_with, key_class, verb

Period = Literal["day", "month", "year"]

WHOLE = "all"  # the period of a sequence that never begins again
_FORMS: dict[str, str] = {"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}


class Sequence(Entity):
    """The last number that was given in a scope; subclass it with a table and a key of scope and period."""

    scope: Attr[str]
    period: Attr[str]
    last: Attr[int] = attr(default=0)
    expires: Attr[datetime | None] = attr(default=None)


S = TypeVar("S", bound=Sequence)


class Sequences(Recipe[D_co], Generic[D_co, S]):
    """Numbers from 1, by scope, and by day, month or year of UTC if asked for.

    With `keep`, the last number of a period is forgotten so long after its last use.
    """

    def __init__(
        self, db: D_co, entity: type[S], *, every: Period | None = None, keep: timedelta | None = None
    ) -> None:
        super().__init__(db)
        self.entity = entity
        self.key = key_class(entity, "scope", "period")
        if every is not None and every not in _FORMS:
            raise RecipeRefused(entity.__name__, f"every={every!r} is no period; give {', '.join(_FORMS)}")
        if keep is not None:
            expires_with(entity, "expires")
            if every is None:
                raise RecipeRefused(
                    entity.__name__, "keep= would begin a sequence again that has no end; say every= as well"
                )
        self.every = every
        self.keep = keep

    def period(self, at: datetime | None = None) -> str:
        """Return the period that a moment, or this one, is in."""
        if self.every is None:
            return WHOLE
        moment = datetime.fromtimestamp(self.clock.now(), UTC) if at is None else at.astimezone(UTC)
        return moment.strftime(_FORMS[self.every])

    @verb
    def next(self, scope: str, *, at: datetime | None = None) -> Steps[int]:
        """Return the next number of a scope: nobody else ever gets it."""
        return (yield from self._raised(scope, 1, at))

    @verb
    def reserve(self, scope: str, count: int, *, at: datetime | None = None) -> Steps[range]:
        """Return the next so many numbers of a scope, for one's own use, with one write."""
        if count < 1:
            raise RecipeRefused(self.entity.__name__, f"{count} numbers are none; reserve 1 or more")
        last = yield from self._raised(scope, count, at)
        return range(last - count + 1, last + 1)

    @verb
    def last(self, scope: str, *, at: datetime | None = None) -> Steps[int]:
        """Return the last number that was given, 0 if none was; by now it may be another."""
        key = self.key(scope=scope, period=self.period(at))
        found = yield from ask(lambda db: db.get(key, consistent=True))
        return 0 if found is None else found.last

    def _raised(self, scope: str, count: int, at: datetime | None) -> Steps[int]:
        key = self.key(scope=scope, period=self.period(at))
        changes = [self.entity.last.add(count)]
        if self.keep is not None:
            changes.append(self.entity.expires.set(self._expiry()))
        found = yield from ask(lambda db: db.update(key, *changes, create=True))
        return found.last

    def _expiry(self) -> datetime:
        assert self.keep is not None
        return datetime.fromtimestamp(self.clock.now(), UTC) + self.keep
