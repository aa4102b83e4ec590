"""Counters: numbers with many concurrent writers, spread over shards that are summed when read.

One item takes about 1,000 writes per second, whatever the table's capacity. A counter with eight shards takes eight times
that: an increment goes to a random shard, and the total is read from all of them. Increments never wait for each other.

    add ──► one of  VISITS#home#0 … VISITS#home#7          total ──► reads all eight

Cost: one write per increment, one read per shard and total. What it gives up: a total is not a snapshot of one moment.

    class Visits(Counter, table=Site):
        class Key(PrimaryKey["Visits"], pk="VISITS#{name}#{part}", sk="COUNTER"):
            name: str
            part: int

    visits = Counters(db, Visits, shards=8)
    visits.add("home")
    visits.total("home")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

from tavola.client.cancellations import TransactionCancelled
from tavola.client.db import Transaction
from tavola.client.errors import UpdateContended
from tavola.model import Attr, Condition, Entity, Operand, Query, attr
from tavola.patterns.recipe import (
    D_co,
    PatternProgram,
    Recipe,
    RecipeRefused,
    call_client,
    check_expires_with,
    key_class,
    query_all,
    query_class,
    recipe_method,
    sleep,
    write_together,
)

SHARDS_MAX = 100  # what one transaction over all of them can hold
ATTEMPTS_MAX = 100  # how often what others were first to change is tried again

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Counter(Entity):
    """One shard of a counter; subclass it with a table and a key of name and part."""

    name: Attr[str]
    part: Attr[int]
    value: Attr[int] = attr(default=0)
    taken: Attr[int] = attr(default=0)  # how often something was taken out; of part 0


class WindowCounter(Entity):
    """One shard of a counter in one time window; give it a key of name, part and window."""

    name: Attr[str]
    part: Attr[int]
    window: Attr[datetime]
    value: Attr[int] = attr(default=0)
    expires: Attr[datetime | None] = attr(default=None)


C = TypeVar("C", bound=Counter)
W = TypeVar("W", bound=WindowCounter)


@dataclass(frozen=True, slots=True)
class Tally:
    """The count of one time window."""

    window: datetime
    total: int


class Counters(Recipe[D_co], Generic[D_co, C]):
    """Counters by name.

    Additions go to `shards`, and `reading` are read: as many, unless told. Who reads fewer shards than somebody writes misses what
    these hold, so the number is changed in two steps. For more, have every program read them first (`shards=8,
    reading=16`), and write them when none of the older ones runs. For fewer, have every program write to fewer (`shards=2,
    reading=8`), `fold` each counter when none of the older ones runs, and leave `reading` out then.
    """

    def __init__(self, db: D_co, entity: type[C], *, shards: int = 8, reading: int | None = None) -> None:
        super().__init__(db)
        self.entity = entity
        self.shards, self.reading = _shards(entity, shards, reading)
        self.key = key_class(entity, "name", "part")

    @recipe_method
    def add(self, name: str, amount: int = 1) -> PatternProgram[None]:
        """Add to a counter, less than nothing to take away; a counter that nobody added to begins at 0.

        Where no answer comes the addition may have been made: adding again would count twice.
        """
        key = self.key(name=name, part=self.random_below(self.shards))
        yield from call_client(lambda db: db.update(key, self.entity.value.add(amount), create=True))

    @recipe_method
    def total(self, name: str) -> PatternProgram[int]:
        """Return what was added in all, every addition that was answered before included.

        The shards are not read at one moment: additions made meanwhile may be in it or not, each whole.
        """
        return sum((yield from self._parts(name)).values())

    @recipe_method
    def parts(self, name: str) -> PatternProgram[Mapping[int, int]]:
        """Return what each shard holds, to see how evenly they are used."""
        return (yield from self._parts(name))

    @recipe_method
    def reset(self, name: str) -> PatternProgram[int]:
        """Begin again at 0 and return what was counted: an addition made meanwhile is in this or in what follows.

        It is one transaction, all of it or nothing. Where no answer comes to that, it may have been done.
        """
        for attempt in range(1, ATTEMPTS_MAX + 1):
            # Part 0 first: who takes something out after this raises its `taken`.
            first = yield from self._part(name, 0)
            values = yield from self._parts(name)
            if not any(values.values()):
                return 0
            if (yield from self._took(name, 0 if first is None else first.taken, values)):
                return sum(values.values())
            yield from sleep(self.retry_policy.pause_s(min(attempt, 6)))
        raise UpdateContended(f"the counter {name!r}", ATTEMPTS_MAX)

    @recipe_method
    def fold(self, name: str) -> PatternProgram[None]:
        """Move what the shards beyond `shards` hold into the first ones; the total is the same at every moment.

        A program that still adds to these shards is not heard by those that no longer read them; fold again then.
        """
        for shard in range(self.shards, self.reading):
            yield from self._fold_shard(name, shard)

    def _fold_shard(self, name: str, shard: int) -> PatternProgram[None]:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            part = yield from self._part(name, shard)
            if part is None or (yield from self._move_count(part, shard % self.shards)):
                return
            yield from sleep(self.retry_policy.pause_s(min(attempt, 6)))  # somebody added to it meanwhile
        raise UpdateContended(f"the counter {name!r}", ATTEMPTS_MAX)

    def _part(self, name: str, shard: int) -> PatternProgram[C | None]:
        return (yield from call_client(lambda db: db.get(self.key(name=name, part=shard), consistent=True)))

    def _took(self, name: str, taken: int, values: Mapping[int, int]) -> PatternProgram[bool]:
        """Take from each shard what it was seen to hold; return False if somebody else took something meanwhile."""
        kind = self.entity

        def fill(writes: Transaction) -> None:
            for shard, value in values.items():
                changes = [kind.value.add(-value)]
                if shard == 0:
                    changes.append(kind.taken.set(taken + 1))
                    writes.update(
                        self.key(name=name, part=0), *changes, create=True, when=_is(kind.taken, taken)
                    )
                elif value:
                    writes.update(self.key(name=name, part=shard), *changes, create=True)

        return (yield from _commit_if_unchanged(fill))

    def _move_count(self, part: C, shard: int) -> PatternProgram[bool]:
        """Move what a shard holds to another; return False if it holds something else by now."""
        kind, name = self.entity, part.name

        def fill(writes: Transaction) -> None:
            writes.delete(self.key(name=name, part=part.part), when=_is(kind.value, part.value))
            first = [kind.taken.add(1)]  # a reset that has seen the shard must look again
            if shard == 0:
                first.append(kind.value.add(part.value))
            else:
                writes.update(self.key(name=name, part=shard), kind.value.add(part.value), create=True)
            writes.update(self.key(name=name, part=0), *first, create=True)

        return (yield from _commit_if_unchanged(fill))

    def _parts(self, name: str) -> PatternProgram[dict[int, int]]:
        keys = [self.key(name=name, part=shard) for shard in range(self.reading)]
        found = yield from call_client(lambda db: db.get_many(keys, consistent=True))
        return {shard: 0 if part is None else part.value for shard, part in enumerate(found)}


class WindowCounters(Recipe[D_co], Generic[D_co, W]):
    """Counters by name and time window: per day, hour or minute.

    Windows are cut from the epoch on, so days are days of UTC. With `keep`, a window is deleted so long after its end.
    `series` is a query class on the key: its arguments are name and part, its sort part is window. The number of shards is
    changed as that of `Counters` is; for fewer, `reading` stays until the windows that were written with more are over.
    """

    def __init__(
        self,
        db: D_co,
        entity: type[W],
        series: type[Query[W]],
        *,
        every: timedelta = timedelta(days=1),
        keep: timedelta | None = None,
        shards: int = 8,
        reading: int | None = None,
    ) -> None:
        super().__init__(db)
        self.entity = entity
        self.shards, self.reading = _shards(entity, shards, reading)
        self.key = key_class(entity, "name", "part", "window")
        self.series_of = query_class(entity, series, "name", "part", sorts=("window",))
        if every < timedelta(seconds=1):
            raise RecipeRefused(entity.__name__, f"a window of {every} is too short; give a second or more")
        if keep is not None:
            check_expires_with(entity, "expires")
        self.every = every
        self.keep = keep

    def window(self, at: datetime | None = None) -> datetime:
        """Return the beginning of the window that a moment, or this one, is in."""
        moment = datetime.fromtimestamp(self.clock.now(), UTC) if at is None else at
        return moment - (moment - _EPOCH) % self.every

    @recipe_method
    def add(self, name: str, amount: int = 1, *, at: datetime | None = None) -> PatternProgram[None]:
        """Add to a counter in the window of a moment, now unless given."""
        window = self.window(at)
        changes = [self.entity.value.add(amount)]
        if self.keep is not None:
            changes.append(self.entity.expires.set(window + self.every + self.keep))
        key = self.key(name=name, part=self.random_below(self.shards), window=window)
        yield from call_client(lambda db: db.update(key, *changes, create=True))

    @recipe_method
    def total(self, name: str, *, at: datetime | None = None) -> PatternProgram[int]:
        """Return what was added in the window of a moment, now unless given."""
        window = self.window(at)
        keys = [self.key(name=name, part=shard, window=window) for shard in range(self.reading)]
        found = yield from call_client(lambda db: db.get_many(keys, consistent=True))
        return sum(part.value for part in found if part is not None)

    @recipe_method
    def series(self, name: str, since: datetime, until: datetime) -> PatternProgram[list[Tally]]:
        """Return every window from one moment to another in order, those in which nothing was added as 0."""
        first, last = self.window(since), self.window(until)
        totals: dict[datetime, int] = {}
        window = first
        while window <= last:
            totals[window] = 0
            window += self.every
        for shard in range(self.reading):
            for part in (yield from self._shard(name, shard, first, last)):
                totals[part.window] = totals.get(part.window, 0) + part.value
        return [Tally(window, total) for window, total in sorted(totals.items())]

    def _shard(self, name: str, shard: int, first: datetime, last: datetime) -> PatternProgram[list[W]]:
        asked = self.series_of(name=name, part=shard)
        found = getattr(asked, "window").between(first, last)  # noqa: B009 - the class is the user's
        return (yield from query_all(lambda db, cursor: db.query(found, cursor=cursor, consistent=True)))


def _shards(entity: type[Entity], shards: int, reading: int | None) -> tuple[int, int]:
    """Return how many shards are written and how many are read."""
    for count in (shards, shards if reading is None else reading):
        if not 1 <= count <= SHARDS_MAX:
            raise RecipeRefused(entity.__name__, f"{count} shards are outside 1 to {SHARDS_MAX}")
    if reading is not None and reading < shards:
        raise RecipeRefused(entity.__name__, f"reading={reading} shards would miss some of {shards}")
    return shards, shards if reading is None else reading


def _is(field: Operand[C, int], value: int) -> Condition[C]:
    """Return the condition that a field that is 0 where it is absent has a value."""
    return field == value if value else (field == 0) | field.not_exists()


def _commit_if_unchanged(fill: Callable[[Transaction], object]) -> PatternProgram[bool]:
    """Do a transaction; return False where one of its conditions no longer held."""
    try:
        yield from write_together(fill)
    except TransactionCancelled as cancelled:
        if not any(reason is not None and reason.kind == "condition" for reason in cancelled.reasons):
            raise
        return False
    return True
