"""Counters: nothing is lost, nothing is counted twice, whoever adds at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from tavola import (
    Attr,
    Connection,
    Entity,
    ManualClock,
    PrimaryKey,
    Query,
    RetryPolicy,
    Sort,
    Table,
    connect,
    sort,
)
from tavola.patterns import (
    Counter,
    Counters,
    PatternProgram,
    Recipe,
    RecipeRefused,
    Tally,
    WindowCounter,
    WindowCounters,
)
from tavola.patterns.recipe import call_client, recipe_method
from tavola.protocol.faults import InternalServerFault
from tests.patterns.failing import SINGLE, TOGETHER, failing
from tests.patterns.interleaving import interleavings


class Site(Table, ttl="expires"):
    """The one table."""


class Visits(Counter, table=Site):
    """How often a page was seen."""

    class Key(PrimaryKey["Visits"], pk="VISITS#{name}#{part}", sk="COUNTER"):
        name: str
        part: int


class Daily(WindowCounter, table=Site):
    """How often a page was seen in a day."""

    class Key(PrimaryKey["Daily"], pk="DAILY#{name}#{part}", sk="{window}"):
        name: str
        part: int
        window: datetime

    class Shard(Query["Daily"], on=Key):
        name: str
        part: int
        window: Sort[datetime] = sort()


class Keyless(Counter):
    """A counter in no table."""


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Connection:
    """A connection with the table."""
    found = opened()
    found.create_tables(Site)
    return found


def test_a_total_is_what_was_added(db: Connection, made: Callable[..., Any]) -> None:
    """Additions to any shard, more and less than nothing, come together in the total; names are apart."""
    counters = made(Counters, db, Visits, shards=4)
    for amount in (1, 5, -2, 10):
        counters.add("home", amount)
    counters.add("about")

    assert counters.total("home") == 14
    assert counters.total("about") == 1
    assert counters.total("nobody") == 0
    parts = counters.parts("home")
    assert sorted(parts) == [0, 1, 2, 3]
    assert sum(parts.values()) == 14


def test_a_reset_returns_what_it_took(db: Connection, made: Callable[..., Any]) -> None:
    """A counter that is reset begins at 0, and what it had is returned."""
    counters = made(Counters, db, Visits, shards=4)
    counters.add("home", 7)

    assert counters.reset("home") == 7
    assert counters.total("home") == 0


def test_additions_use_all_shards(db: Connection, made: Callable[..., Any]) -> None:
    """Chance spreads additions, so that no shard takes them all."""
    counters = made(Counters, db, Visits, shards=4)
    for _ in range(80):
        counters.add("home")

    assert min(counters.parts("home").values()) > 0


def test_more_shards_lose_nothing(db: Connection, made: Callable[..., Any]) -> None:
    """A counter read with more shards has what fewer held; with fewer, `reading` says how many there were."""
    for part in (7, 1):
        db.update(Visits.Key(name="home", part=part), Visits.value.add(3 if part == 7 else 4), create=True)

    assert made(Counters, db, Visits, shards=16).total("home") == 7
    assert made(Counters, db, Visits, shards=2, reading=8).total("home") == 7


def test_folding_moves_and_loses_nothing(db: Connection, made: Callable[..., Any]) -> None:
    """Fewer shards have all that more held once it is folded, and reading fewer is enough."""
    many = made(Counters, db, Visits, shards=8)
    for _ in range(30):
        many.add("home", 2)

    made(Counters, db, Visits, shards=3, reading=8).fold("home")

    assert made(Counters, db, Visits, shards=3).total("home") == 60
    assert list(many.parts("home").values())[3:] == [0, 0, 0, 0, 0]


def test_folding_while_others_add() -> None:
    """In every order of the calls of a fold and of an addition of an older program, the total is right."""
    made: list[Connection] = []

    def make() -> tuple[Connection, list[Any]]:
        made.append(connect("memory:"))
        made[-1].create_tables(Site)
        made[-1].put(Visits(name="home", part=1, value=5))
        few = Counters(made[-1], Visits, shards=1, reading=2)

        def late() -> PatternProgram[None]:
            key = Visits.Key(name="home", part=1)
            yield from call_client(lambda db: db.update(key, Visits.value.add(2), create=True))

        return made[-1], [Counters.fold.steps(few, "home"), late()]

    for _ in interleavings(make):
        assert Counters(made[-1], Visits, shards=2).total("home") == 7
        made[-1].close()


def _programs(db: Connection, *settings: dict[str, int]) -> list[Any]:
    return [Counters(db, Visits, **each) for each in settings]


@pytest.mark.parametrize("order", ["more", "fewer"])
def test_shards_are_changed_in_two_steps_while_programs_run(order: str) -> None:
    """Programs of the step before and of the next one add and read together, and each sees every addition, at every step."""
    steps: list[dict[str, int]] = [{"shards": 2}, {"shards": 2, "reading": 6}, {"shards": 6}]
    if order == "fewer":
        steps = [{"shards": 6}, {"shards": 2, "reading": 6}]
    with connect("memory:") as db:
        db.create_tables(Site)
        added = 0
        for before, after in pairwise(steps):
            programs = _programs(db, before, after)
            for _ in range(30):
                for program in programs:
                    program.add("home")
                    added += 1
            assert [program.total("home") for program in programs] == [added, added]
        if order == "fewer":
            (during,) = _programs(db, steps[-1])
            during.fold("home")
            last = Counters(db, Visits, shards=2)
            last.add("home")
            assert (during.total("home"), last.total("home")) == (added + 1, added + 1)


def test_a_step_that_is_left_out_is_seen() -> None:
    """The fault that the test before must see: a program that reads fewer shards than another writes misses some."""
    with connect("memory:") as db:
        db.create_tables(Site)
        old, new = _programs(db, {"shards": 2}, {"shards": 6})
        for _ in range(60):
            new.add("home")
        assert old.total("home") < 60


def test_what_an_older_program_adds_after_a_fold_is_not_lost() -> None:
    """It is in shards that nobody reads any more, and another fold brings it back."""
    with connect("memory:") as db:
        db.create_tables(Site)
        old, during, last = _programs(db, {"shards": 6}, {"shards": 1, "reading": 6}, {"shards": 1})
        during.fold("home")
        for _ in range(40):
            old.add("home")
        assert last.total("home") < 40
        during.fold("home")
        assert last.total("home") == 40


def _one() -> PatternProgram[None]:
    """Add to one of the shards."""
    yield from call_client(
        lambda db: db.update(Visits.Key(name="home", part=1), Visits.value.add(1), create=True)
    )


@pytest.mark.parametrize("folding", [False, True])
def test_resets_at_once_take_everything_once(folding: bool) -> None:
    """In every order of the calls of two resets, or a reset and a fold, and an addition, what was taken and what is left is the total."""
    made: list[Connection] = []

    def make() -> tuple[Connection, list[Any]]:
        made.append(connect("memory:", retry_policy=RetryPolicy(base_s=0)))
        made[-1].create_tables(Site)
        for part in range(3):
            made[-1].put(Visits(name="home", part=part, value=5))
        all_, few = Counters(made[-1], Visits, shards=3), Counters(made[-1], Visits, shards=1, reading=3)
        other: Any = Counters.fold.steps(few, "home") if folding else Counters.reset.steps(all_, "home")
        return made[-1], [Counters.reset.steps(all_, "home"), other, _one()]

    for first, second, _ in interleavings(make, most=250):
        left = Counters(made[-1], Visits, shards=1 if folding else 3)
        extra = 0
        if folding:  # the addition may have come to a shard after it was folded
            extra = sum(v for k, v in Counters(made[-1], Visits, shards=3).parts("home").items() if k)
            assert extra in (0, 1)
        assert first + (second or 0) + left.total("home") + extra == 16
        made[-1].close()


def test_a_part_without_a_value_is_folded() -> None:
    """An item that says nothing of its value holds 0, and a fold of it comes to an end."""
    with connect("memory:") as db:
        db.create_tables(Site)
        db.put(Visits(name="home", part=1))
        (key,) = [
            {n: item[n] for n in ("pk", "sk")} for item in db.call("Scan", {"TableName": "Site"})["Items"]
        ]
        told = {"UpdateExpression": "REMOVE #v", "ExpressionAttributeNames": {"#v": "value"}}
        db.call("UpdateItem", {"TableName": "Site", "Key": key, **told})
        Counters(db, Visits, shards=1, reading=2).fold("home")

        assert db.get(Visits.Key(name="home", part=1)) is None


def test_a_failure_of_the_service_counts_nothing_twice() -> None:
    """An addition that was done and answered with an internal error is told and not repeated; a reset is answered in the end."""
    with connect("memory:", retry_policy=RetryPolicy(base_s=0)) as db:
        db.create_tables(Site)
        with pytest.raises(InternalServerFault):
            Counters(failing(db, 1, of=SINGLE), Visits, shards=1).add("home")
        assert Counters(db, Visits, shards=1).total("home") == 1

        assert Counters(failing(db, 1, of=TOGETHER), Visits, shards=1).reset("home") == 1
        assert Counters(db, Visits, shards=1).total("home") == 0


@pytest.fixture(params=["memory", "http"])
def shared(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A connection that threads share."""
    target = "memory:" if request.param == "memory" else request.getfixturevalue("served")
    found = connect(target, table_prefix=f"{request.node.name[:20].replace('[', '-')}-")
    found.create_tables(Site)
    yield found
    found.delete_tables(Site)
    found.close()


def test_threads_lose_nothing(shared: Connection) -> None:
    """What eight threads add, and what resets took meanwhile, is the total to the last one."""
    counters = Counters(shared, Visits, shards=4)

    def add(number: int) -> int:
        for _ in range(25):
            counters.add("home")
        return counters.reset("home") if number % 4 == 0 else 0

    with ThreadPoolExecutor(8) as pool:
        taken = sum(pool.map(add, range(8)))

    assert taken + counters.total("home") == 200


class Naive(Entity, table=Site):
    """A counter as it is written first: read, add, put."""

    name: Attr[str]
    value: Attr[int]

    class Key(PrimaryKey["Naive"], pk="NAIVE#{name}", sk="COUNTER"):
        name: str


class NaiveCounters(Recipe[Connection]):
    """The fault that the tests must see."""

    @recipe_method
    def add(self, name: str) -> PatternProgram[None]:
        """Add one, unless somebody does so at the same time."""
        found = yield from call_client(lambda db: db.get(Naive.Key(name=name), consistent=True))
        value = 0 if found is None else found.value
        yield from call_client(lambda db: db.put(Naive(name=name, value=value + 1)))

    @recipe_method
    def total(self, name: str) -> PatternProgram[int]:
        """Return the value."""
        found = yield from call_client(lambda db: db.get(Naive.Key(name=name)))
        return 0 if found is None else found.value


def _totals(kind: Callable[[Connection], Any]) -> set[int]:
    """Return the totals that two additions come to, over all orders of their calls."""
    made: list[Connection] = []

    def make() -> tuple[Connection, list[Any]]:
        made.append(connect("memory:"))
        made[-1].create_tables(Site)
        recipe = kind(made[-1])
        return made[-1], [type(recipe).add.steps(recipe, "home") for _ in range(2)]

    found = set()
    for _ in interleavings(make):
        found.add(kind(made[-1]).total("home"))
        made[-1].close()
    return found


def test_two_additions_are_two_in_every_order() -> None:
    """Whatever the order of their calls, two additions make two; of a counter that reads and puts, one is lost."""
    assert _totals(lambda db: Counters(db, Visits, shards=2)) == {2}
    assert _totals(NaiveCounters) == {1, 2}


def test_days_are_counted_apart(db: Connection, made: Callable[..., Any], clock: ManualClock) -> None:
    """A day has its own total, days without additions are 0, and what is kept long enough expires."""
    counters = made(WindowCounters, db, Daily, Daily.Shard, keep=timedelta(days=3), shards=2)
    first = counters.window()
    counters.add("home", 2)
    clock.advance(2 * 86400)
    counters.add("home", 5)
    counters.add("home", 1, at=first + timedelta(hours=3))

    assert first.hour == 0
    assert counters.total("home") == 5
    assert counters.total("home", at=first) == 3
    assert counters.series("home", first, first + timedelta(days=2)) == [
        Tally(first, 3), Tally(first + timedelta(days=1), 0), Tally(first + timedelta(days=2), 5),
    ]  # fmt: skip
    clock.advance(3 * 86400)
    assert counters.total("home", at=first) == 0


def test_windows_in_fractions_of_seconds(
    db: Connection, made: Callable[..., Any], clock: ManualClock
) -> None:
    """A moment between two seconds is in its window like any other, and the window's end is that of the window."""
    clock.advance(0.75)
    counters = made(
        WindowCounters, db, Daily, Daily.Shard, every=timedelta(seconds=1), keep=timedelta(hours=1)
    )
    window = counters.window()
    counters.add("home")

    assert window == datetime.fromtimestamp(int(clock.now()), UTC)
    assert counters.total("home", at=window + timedelta(seconds=0.999)) == 1
    assert counters.series("home", window, window) == [Tally(window, 1)]


def test_windows_are_read_in_more_shards_than_are_written() -> None:
    """While the number of their shards is changed, windows written with more are read whole."""
    with connect("memory:") as db:
        db.create_tables(Site)
        many = WindowCounters(db, Daily, Daily.Shard, shards=6)
        for _ in range(40):
            many.add("home")
        few = WindowCounters(db, Daily, Daily.Shard, shards=2, reading=6)
        few.add("home")
        window = few.window()

        assert few.total("home") == many.total("home") == 41
        assert few.series("home", window, window) == [Tally(window, 41)]


def test_windows_of_any_length() -> None:
    """Windows are cut from the epoch on, in UTC, whatever zone a moment is told in."""
    db = connect("memory:")
    hourly = WindowCounters(db, Daily, Daily.Shard, every=timedelta(hours=1))
    moment = datetime.fromisoformat("2026-09-21T14:35:00+02:00")

    assert hourly.window(moment) == datetime(2026, 9, 21, 12, tzinfo=UTC)
    db.close()


def test_what_cannot_count_is_refused() -> None:
    """An entity without a table and key, and shards that one look cannot hold, are refused with what to do."""
    with connect("memory:") as db:
        with pytest.raises(RecipeRefused, match=r"Keyless\.Key: the pattern finds its items by name, part"):
            Counters(db, Keyless)
        with pytest.raises(RecipeRefused, match="outside 1 to 100"):
            Counters(db, Visits, shards=101)
        with pytest.raises(RecipeRefused, match="would miss"):
            Counters(db, Visits, shards=8, reading=4)
