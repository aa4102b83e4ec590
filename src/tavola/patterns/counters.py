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

from tavola.client.connection import Transaction
from tavola.client.errors import UpdateContended
from tavola.client.transactions import TransactionCancelled
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

SHARDS_MAX = 100  # one transaction must be able to include all of them
ATTEMPTS_MAX = 100  # how often a change that lost against concurrent ones is repeated

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Counter(Entity):
    """One shard of a counter; subclass it with a table and a key of name and part."""

    name: Attr[str]
    part: Attr[int]
    value: Attr[int] = attr(default=0)
    taken: Attr[int] = attr(default=0)  # how often the counter was reset or folded; only in part 0


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

    Additions go to `shards` shards, and `reading` shards are read (default: the same number). A reader of fewer shards than
    another program writes misses additions, so change the number in two steps. To raise it, let every program read the new
    shards first (`shards=8, reading=16`), and write them when no older program runs. To lower it, let every program write to
    fewer (`shards=2, reading=8`), `fold` each counter when no older program runs, and then leave `reading` out.
    """

    def __init__(self, db: D_co, entity: type[C], *, shards: int = 8, reading: int | None = None) -> None:
        super().__init__(db)
        self.entity = entity
        self.shards, self.reading = _shards(entity, shards, reading)
        self.key = key_class(entity, "name", "part")

    @recipe_method
    def add(self, name: str, amount: int = 1) -> PatternProgram[None]:
        """Add to a counter; a negative amount subtracts, and a new counter starts at 0.

        If the result is unknown (no response), the addition may have been made: repeating it could count twice.
        """
        key = self.key(name=name, part=self.random_below(self.shards))
        yield from call_client(lambda db: db.update(key, self.entity.value.add(amount), create=True))

    @recipe_method
    def total(self, name: str) -> PatternProgram[int]:
        """Return the sum of all shards, including every addition that was acknowledged before.

        The shards are not read at one moment: concurrent additions may or may not be included.
        """
        return sum((yield from self._parts(name)).values())

    @recipe_method
    def parts(self, name: str) -> PatternProgram[Mapping[int, int]]:
        """Return the value of each shard, to see how evenly they are used."""
        return (yield from self._parts(name))

    @recipe_method
    def reset(self, name: str) -> PatternProgram[int]:
        """Set a counter to 0 and return its former total: a concurrent addition is in this total or in the next.

        It is one transaction. If its result is unknown (no response), it may have been made.
        """
        for attempt in range(1, ATTEMPTS_MAX + 1):
            # Read part 0 first: a concurrent reset or fold raises its `taken`, and this transaction then fails.
            first = yield from self._part(name, 0)
            values = yield from self._parts(name)
            if not any(values.values()):
                return 0
            if (yield from self._subtract(name, 0 if first is None else first.taken, values)):
                return sum(values.values())
            yield from sleep(self.retry_policy.pause_s(min(attempt, 6)))
        raise UpdateContended(f"the counter {name!r}", ATTEMPTS_MAX)

    @recipe_method
    def fold(self, name: str) -> PatternProgram[None]:
        """Move the values of the shards beyond `shards` into the first ones; the total is right at every moment.

        If a program still adds to the old shards, others that no longer read them miss that; fold again then.
        """
        for shard in range(self.shards, self.reading):
            yield from self._fold_shard(name, shard)

    def _fold_shard(self, name: str, shard: int) -> PatternProgram[None]:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            part = yield from self._part(name, shard)
            if part is None or (yield from self._move_count(part, shard % self.shards)):
                return
            yield from sleep(self.retry_policy.pause_s(min(attempt, 6)))  # an addition came between
        raise UpdateContended(f"the counter {name!r}", ATTEMPTS_MAX)

    def _part(self, name: str, shard: int) -> PatternProgram[C | None]:
        return (yield from call_client(lambda db: db.get(self.key(name=name, part=shard), consistent=True)))

    def _subtract(self, name: str, taken: int, values: Mapping[int, int]) -> PatternProgram[bool]:
        """Subtract from each shard the value that was read; return False if a reset or fold came between."""
        kind = self.entity

        def fill(writes: Transaction) -> None:
            for shard, value in values.items():
                changes = [kind.value.add(-value)]
                if shard == 0:
                    changes.append(kind.taken.set(taken + 1))
                    writes.update(
                        self.key(name=name, part=0), *changes, create=True, when=_equals(kind.taken, taken)
                    )
                elif value:
                    writes.update(self.key(name=name, part=shard), *changes, create=True)

        return (yield from _commit_if_unchanged(fill))

    def _move_count(self, part: C, shard: int) -> PatternProgram[bool]:
        """Move a shard's value to another; return False if the value has changed."""
        kind, name = self.entity, part.name

        def fill(writes: Transaction) -> None:
            writes.delete(self.key(name=name, part=part.part), when=_equals(kind.value, part.value))
            first = [kind.taken.add(1)]  # makes a reset that has read this shard start again
            if shard == 0:
                first.append(kind.value.add(part.value))
            else:
                writes.update(self.key(name=name, part=shard), kind.value.add(part.value), create=True)
            writes.update(self.key(name=name, part=0), *first, create=True)

        return (yield from _commit_if_unchanged(fill))

    def _parts(self, name: str) -> PatternProgram[dict[int, int]]:
        keys = [self.key(name=name, part=shard) for shard in range(self.reading)]
        items = yield from call_client(lambda db: db.get_many(keys, consistent=True))
        return {shard: 0 if part is None else part.value for shard, part in enumerate(items)}


class WindowCounters(Recipe[D_co], Generic[D_co, W]):
    """Counters by name and time window: per day, hour or minute.

    Windows are aligned to the epoch, so days are days in UTC. With `keep`, a window is deleted that long after its end.
    `series` is a query class on the key with the arguments name and part and the sort part window. Change the number of shards
    as for `Counters`; when lowering it, keep `reading` until the windows written with more shards have expired.
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
            raise RecipeRefused(entity.__name__, f"a window of {every} is too short; use at least one second")
        if keep is not None:
            check_expires_with(entity, "expires")
        self.every = every
        self.keep = keep

    def window(self, at: datetime | None = None) -> datetime:
        """Return the start of the window that contains a moment (default: now)."""
        moment = datetime.fromtimestamp(self.clock.now(), UTC) if at is None else at
        return moment - (moment - _EPOCH) % self.every

    @recipe_method
    def add(self, name: str, amount: int = 1, *, at: datetime | None = None) -> PatternProgram[None]:
        """Add to a counter in the window of a moment (default: now)."""
        window = self.window(at)
        changes = [self.entity.value.add(amount)]
        if self.keep is not None:
            changes.append(self.entity.expires.set(window + self.every + self.keep))
        key = self.key(name=name, part=self.random_below(self.shards), window=window)
        yield from call_client(lambda db: db.update(key, *changes, create=True))

    @recipe_method
    def total(self, name: str, *, at: datetime | None = None) -> PatternProgram[int]:
        """Return the total of the window of a moment (default: now)."""
        window = self.window(at)
        keys = [self.key(name=name, part=shard, window=window) for shard in range(self.reading)]
        items = yield from call_client(lambda db: db.get_many(keys, consistent=True))
        return sum(part.value for part in items if part is not None)

    @recipe_method
    def series(self, name: str, since: datetime, until: datetime) -> PatternProgram[list[Tally]]:
        """Return the totals of all windows between two moments, in order; empty windows are 0."""
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
        query = self.series_of(name=name, part=shard)
        selection = getattr(query, "window").between(first, last)  # noqa: B009 - an attribute of the user's class
        return (yield from query_all(lambda db, cursor: db.query(selection, cursor=cursor, consistent=True)))


def _shards(entity: type[Entity], shards: int, reading: int | None) -> tuple[int, int]:
    """Return how many shards are written and how many are read; refuse numbers that cannot work."""
    for count in (shards, shards if reading is None else reading):
        if not 1 <= count <= SHARDS_MAX:
            raise RecipeRefused(entity.__name__, f"{count} shards are outside 1 to {SHARDS_MAX}")
    if reading is not None and reading < shards:
        raise RecipeRefused(entity.__name__, f"reading={reading} shards would miss some of {shards}")
    return shards, shards if reading is None else reading


def _equals(field: Operand[C, int], value: int) -> Condition[C]:
    """Return the condition that a field has a value; an absent field counts as 0."""
    return field == value if value else (field == 0) | field.not_exists()


def _commit_if_unchanged(fill: Callable[[Transaction], object]) -> PatternProgram[bool]:
    """Commit a transaction; return False if one of its conditions no longer holds."""
    try:
        yield from write_together(fill)
    except TransactionCancelled as cancelled:
        if not any(reason is not None and reason.kind == "condition" for reason in cancelled.reasons):
            raise
        return False
    return True
