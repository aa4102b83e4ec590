"""The cache: fresh answers, one worker at a time, and nobody who waits for the dead."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from tavola import Connection, ManualClock, PrimaryKey, Table, connect, connect_async
from tavola.patterns import Cache, CacheEntry, CacheValueTooLarge, RecipeRefused
from tavola.patterns.recipe import PatternProgram, call_client
from tests.patterns.failing import Failing
from tests.patterns.interleaving import Running, interleavings


class Desk(Table, ttl="expires_at"):
    """The one table."""


class Answers(CacheEntry, table=Desk):
    """The entries."""

    class Key(PrimaryKey["Answers"], pk="CACHE#{cache_key}", sk="CACHE"):
        cache_key: str


class Profile(BaseModel):
    """What is expensive."""

    name: str
    level: int


ADA = Profile(name="Ada", level=3)


class Source:
    """Where answers come from, and how often it was asked."""

    def __init__(self, answer: Any = ADA) -> None:
        self.answer = answer
        self.asked = 0

    def __call__(self) -> Any:
        """Return the answer."""
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def db(opened: Callable[..., Connection]) -> Connection:
    """A connection with the table."""
    found = opened()
    found.create_tables(Desk)
    return found


@pytest.fixture
def cache(db: Connection, made: Callable[..., Any]) -> Any:
    """A cache of profiles."""
    return made(
        Cache, db, Answers, Profile,
        life=timedelta(minutes=5), missing=timedelta(seconds=30), stale=timedelta(minutes=1), lease=timedelta(seconds=10),
    )  # fmt: skip


def test_an_answer_is_worked_out_once(cache: Any, clock: ManualClock) -> None:
    """While an answer is fresh nobody works it out again; afterwards somebody does."""
    source = Source()

    assert cache.get_or_compute("ada", source) == ADA
    assert cache.get_or_compute("ada", source) == ADA
    assert cache.peek("ada") == ADA
    assert source.asked == 1
    clock.advance(301)
    assert cache.peek("ada") is None
    assert cache.get_or_compute("ada", source) == ADA
    assert source.asked == 2


def test_none_is_an_answer_for_a_shorter_time(cache: Any, clock: ManualClock) -> None:
    """That there is no such thing is kept as well, for its own time."""
    source = Source(None)

    assert cache.get_or_compute("bob", source) is None
    assert cache.get_or_compute("bob", source) is None
    assert source.asked == 1
    clock.advance(31)
    cache.get_or_compute("bob", source)
    assert source.asked == 2


def test_what_is_forgotten_is_worked_out_again(cache: Any) -> None:
    """A forgotten answer is not given, a stored one is."""
    source = Source()
    cache.get_or_compute("ada", source)
    cache.forget("ada")
    cache.store("eve", Profile(name="Eve", level=1))

    assert cache.get_or_compute("ada", source) == ADA
    assert cache.get_or_compute("eve", source).name == "Eve"
    assert source.asked == 2


def test_an_error_keeps_nothing_and_frees_the_lease(cache: Any) -> None:
    """What compute raises is the caller's, and the next one may try at once."""
    with pytest.raises(ZeroDivisionError):
        cache.get_or_compute("ada", Source(ZeroDivisionError()))

    assert cache.get_or_compute("ada", Source()) == ADA


def test_too_large_is_said_so(cache: Any, caplog: pytest.LogCaptureFixture) -> None:
    """An answer that no item can hold is the caller's all the same; it is warned of, not kept, and frees the lease."""
    large = Profile(name="x" * 400_000, level=1)
    assert cache.get_or_compute("ada", Source(large)) == large
    assert "400,0" in caplog.text
    with pytest.raises(CacheValueTooLarge, match="400,0") as refused:
        cache.store("ada", large)

    assert refused.value.value == large
    assert cache.get_or_compute("ada", Source()) == ADA


@pytest.mark.parametrize("age_s", [301, 400])
def test_who_waits_reads_and_writes_nothing(age_s: float, clock: ManualClock) -> None:
    """While an answer is worked out, others look at the entry and do not try its lease, whether they are given the old answer or wait."""
    with connect("memory:", clock=clock) as db:
        db.create_tables(Desk)
        cache = Cache(db, Answers, Profile, life=timedelta(minutes=5), stale=timedelta(minutes=1))
        cache.store("ada", Profile(name="x" * 300_000, level=1))
        clock.advance(age_s)
        obtained: Any = Cache._get_or_compute
        first = Running(obtained(cache, "ada", Source(), timedelta(minutes=5)))
        first.step(db)
        first.step(db)  # it has the lease

        told = Failing(db.backend, lambda operation: False)
        reader = Connection(told, context=db.context)
        others = [Running(obtained(cache, "ada", Source(), timedelta(minutes=5))) for _ in range(10)]
        for _ in range(6):
            for other in others:
                if not other.done:
                    other.step(reader)
        assert set(told.calls) == {"GetItem"}
        while not first.done:
            first.step(db)
        for other in others:
            while not other.done:
                other.step(db)
        assert {each.outcome.level for each in others} == ({1} if age_s == 301 else {ADA.level})


def test_a_worker_that_is_cancelled_frees_its_lease() -> None:
    """A task that is cancelled while it works an answer out gives the lease back, and the next one begins at once."""

    async def told() -> Profile | None:
        async with connect_async("memory:") as db:
            await db.create_tables(Desk)
            cache = Cache(db, Answers, Profile, lease=timedelta(hours=1))
            begun = asyncio.Event()

            async def forever() -> Profile:
                begun.set()
                await asyncio.Event().wait()
                return ADA

            task = asyncio.create_task(cache.get_or_compute("ada", forever))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            entry = await db.get(Answers.Key(cache_key="ada"))
            assert entry is not None
            assert entry.leased_until is None

            async def quick() -> Profile:
                return ADA

            return await cache.get_or_compute("ada", quick)

    assert asyncio.run(told()) == ADA


def test_lives_end_between_seconds(cache: Any, clock: ManualClock) -> None:
    """An answer is fresh to the fraction of a second, though the table's time to live has whole ones."""
    clock.advance(0.7)
    cache.get_or_compute("ada", Source())
    clock.advance(299.9)
    assert cache.peek("ada") == ADA
    clock.advance(0.2)
    assert cache.peek("ada") is None


def test_the_old_answer_serves_while_the_new_one_is_made(clock: ManualClock) -> None:
    """Who comes while an answer is renewed is given the last one, until that is too old."""
    with connect("memory:", clock=clock) as db:
        db.create_tables(Desk)
        cache = Cache(db, Answers, Profile, life=timedelta(minutes=5), lease=timedelta(seconds=10))
        cache.get_or_compute("ada", Source())
        clock.advance(301)
        others = Source()

        def renew() -> Profile:
            assert cache.get_or_compute("ada", others) == ADA  # another caller, while this one works
            return Profile(name="Ada", level=4)

        renewed = cache.get_or_compute("ada", renew)

        assert renewed is not None
        assert renewed.level == 4
        assert others.asked == 0
        assert cache.peek("ada") == renewed


def test_a_lease_of_the_dead_runs_out(clock: ManualClock) -> None:
    """A worker that never comes back holds the others for the length of its lease, and its late answer is not kept."""
    with connect("memory:", clock=clock) as db:
        db.create_tables(Desk)
        cache = Cache(db, Answers, Profile, lease=timedelta(seconds=10))
        second = Profile(name="Ada", level=2)

        def die_slowly() -> Profile:
            clock.advance(11)
            assert cache.get_or_compute("ada", Source(second)) == second
            return ADA

        assert cache.get_or_compute("ada", die_slowly) == ADA
        assert cache.peek("ada") == second


def test_a_stampede_works_once(served: str) -> None:
    """Of eight threads that want an answer at once, one works it out and all are given it."""
    with connect(served, table_prefix="stampede-") as db:
        db.create_tables(Desk)
        cache = Cache(db, Answers, Profile, lease=timedelta(seconds=1))
        source = Source()
        start = threading.Barrier(8)

        def want(_: int) -> Profile | None:
            start.wait()
            return cache.get_or_compute("ada", source)

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(want, range(8)))

        assert found == [ADA] * 8
        assert source.asked == 1
        db.delete_tables(Desk)


class Unprotected(Cache[Connection, Profile]):
    """The fault that the tests must see: look, work it out, keep it."""

    def _get_or_compute(
        self, cache_key: str, compute: Callable[[], Any], life: timedelta
    ) -> PatternProgram[Profile | None]:
        entry = yield from self._entry(cache_key)
        if self._fresh(entry):
            return self._load(entry)
        value = yield from call_client(lambda db: compute())
        yield from call_client(lambda db: db.put(self._new_entry(cache_key, value, life)))
        return value  # type: ignore[no-any-return]


def _asked(kind: type[Cache[Any, Profile]]) -> set[int]:
    """Return how often two callers had an answer worked out, over orders of their calls."""
    made: list[tuple[Connection, Source]] = []

    def make() -> tuple[Connection, list[Any]]:
        db = connect("memory:", clock=ManualClock())
        db.create_tables(Desk)
        cache = kind(db, Answers, Profile)
        made.append((db, Source()))
        return db, [cache._get_or_compute("ada", made[-1][1], cache.life) for _ in range(2)]

    found = set()
    for outcomes in interleavings(make, most=60):
        assert outcomes == [ADA, ADA]
        found.add(made[-1][1].asked)
        made[-1][0].close()
    return found


def test_one_worker_in_every_order() -> None:
    """In whatever order two callers' calls are made, one works; without a lease both may."""
    assert _asked(Cache) == {1}
    assert _asked(Unprotected) == {1, 2}


def test_an_asynchronous_cache_awaits(clock: ManualClock) -> None:
    """With an asynchronous client compute is awaited, by one of those who come together."""

    async def main() -> tuple[list[Any], int]:
        asked = 0

        async def compute() -> Profile:
            nonlocal asked
            asked += 1
            await asyncio.sleep(0)
            return ADA

        async with connect_async("memory:", clock=clock) as db:
            await db.create_tables(Desk)
            cache = Cache(db, Answers, Profile, lease=timedelta(seconds=1))
            found = await asyncio.gather(*(cache.get_or_compute("ada", compute) for _ in range(5)))
            return list(found), asked

    assert asyncio.run(main()) == ([ADA] * 5, 1)


def test_times_that_are_none_are_refused() -> None:
    """A life of no time is refused with what to do."""
    with connect("memory:") as db, pytest.raises(RecipeRefused, match="at least one second"):
        Cache(db, Answers, Profile, life=timedelta(0))
