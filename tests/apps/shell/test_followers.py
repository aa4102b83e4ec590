"""A follower keeps numbers exact, whatever happens to it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tavola import (
    AccessDeniedFault,
    AsyncConnection,
    Attr,
    Engine,
    Entity,
    ManualClock,
    PrimaryKey,
    RecordsLost,
    Table,
    ThrottlingFault,
    connect_async,
)
from tavola.apps.shell import Follower, ProblemError, Settings, checkpoints, followers, shell_of
from tavola.patterns import MarkCheckpoint, Metric, ProjectionMark, Projector, Share
from tests.apps.conftest import Run, Target
from tests.apps.shell.parts import sample
from tests.patterns.board import Board, Case, Helpdesk, projector_on

AT = datetime(2026, 9, 1, 12, tzinfo=UTC)


def case(number: int, status: Any = "new") -> Case:
    """Return a case."""
    return Case(case_id=f"c{number}", status=status, opened_at=AT)


@asynccontextmanager
async def desk(target: Target) -> AsyncIterator[AsyncConnection]:
    """A desk and its board."""
    async with target.connect() as db:
        await db.create_tables(Helpdesk, Board)
        yield db


async def count(projector: Projector[Any, Any, Any], status: str) -> int:
    """Return how many cases are counted under a status."""
    found: int = (await projector.value("cases", status)).count
    return found


def follower_of(db: AsyncConnection, projector: Any = None, **more: Any) -> Follower:
    """Return a follower that looks seldom, so that a test sees it being woken."""
    return Follower(projector or projector_on(db), Helpdesk, db, **{"poll_s": 60.0, **more})


def test_what_is_written_is_counted(target: Target, run: Run[Any]) -> None:
    """Changes are counted as they come, and the generation grows with them."""

    async def followed() -> None:
        async with desk(target) as db, follower_of(db) as follower:
            await follower.catch_up()
            before = follower.generation
            for number in range(3):
                await db.create(case(number))
            await db.put(case(0, "working"))
            await follower.catch_up()

            assert await count(projector_on(db), "new") == 2
            assert await count(projector_on(db), "working") == 1
            assert follower.generation > before
            assert (follower.state, follower.lag_s, follower.counted) == ("following", 0.0, 4)
            still = follower.generation
            await follower.catch_up()
            assert follower.generation == still
        assert follower.state == "stopped"

    run(followed())


def test_what_was_there_before_is_counted_at_the_first_start(target: Target, run: Run[Any]) -> None:
    """On a store without a checkpoint the numbers are made from the table."""

    async def followed() -> None:
        async with desk(target) as db:
            for number in range(5):
                await db.create(case(number))
            async with follower_of(db) as follower:
                await follower.catch_up()
            assert await count(projector_on(db), "new") == 5

    run(followed())


def test_nothing_falls_between_the_rebuild_and_the_stream(run: Run[Any]) -> None:
    """It listens before it rebuilds: what is written meanwhile is counted, once."""

    async def followed() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            await db.create(case(1))
            projector = projector_on(db)
            rebuild = projector.rebuild

            async def rebuilt() -> Any:
                found = await rebuild()
                await db.create(case(2))  # after the table was read
                return found

            projector.rebuild = rebuilt
            async with follower_of(db, projector) as follower:
                await follower.catch_up()
            assert await count(projector_on(db), "new") == 2

    run(followed())


def test_it_goes_on_where_it_stopped(tmp_path: Path, run: Run[Any]) -> None:
    """What came while it was away is read from the stream and the table is not; the place is in the store, and in no file."""
    path = tmp_path / "place.json"

    async def followed() -> None:
        with Engine.open() as engine:
            async with connect_async(engine) as db:
                await db.create_tables(Helpdesk, Board)
                await db.create(case(1))
                async with follower_of(db, checkpoint=path) as follower:
                    await follower.catch_up()
                await db.create(case(2))
                projector = projector_on(db)

                async def never() -> Any:
                    raise AssertionError("the table was read")

                projector.rebuild = never
                async with follower_of(db, projector, checkpoint=path) as follower:
                    await follower.catch_up()
                assert await count(projector_on(db), "new") == 2
                assert not path.exists()

    run(followed())


def test_a_rebuild_that_broke_off_is_done_again(tmp_path: Path, run: Run[Any]) -> None:
    """The place is kept only once the numbers are whole: else the next start would go on from half of them."""
    path = tmp_path / "place.json"

    async def followed() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            await db.create(case(1))
            projector = projector_on(db)
            begun = asyncio.Event()

            async def stuck() -> Any:
                begun.set()
                raise ThrottlingFault

            projector.rebuild = stuck
            async with follower_of(db, projector, checkpoint=path) as follower:
                await begun.wait()
                await asyncio.sleep(0)
                assert follower.state == "failing"

            async with follower_of(db, checkpoint=path) as follower:
                await follower.catch_up()
            assert await count(projector_on(db), "new") == 1

    run(followed())


def test_records_that_were_lost_are_made_good_from_the_table(
    tmp_path: Path, run: Run[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that was not read for a day has a gap: the numbers are made anew, and followed on."""

    async def followed() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            subscribe = db.subscribe
            lost = [RecordsLost("Helpdesk", "shard-1", "100", "trimmed")]

            async def once(*given: Any, **more: Any) -> Any:
                if lost:
                    raise lost.pop()
                return await subscribe(*given, **more)

            monkeypatch.setattr(db, "subscribe", once)
            await db.create(case(1))
            place = tmp_path / "place.json"
            async with follower_of(db, checkpoint=place) as follower:
                await follower.catch_up()
                assert follower.failures == 0
            assert await count(projector_on(db), "new") == 1

    run(followed())


class Falters:
    """A projector that fails at first, some records or all."""

    name = "falters"

    def __init__(self, inner: Any, times: int, error: Exception | None = None) -> None:
        self.inner = inner
        self.times = times
        self.error = error or ThrottlingFault()
        self.given: list[int] = []

    async def apply(self, records: Sequence[Any]) -> Any:
        """Fail, then count."""
        self.given.append(len(records))
        if self.times:
            self.times -= 1
            raise self.error
        return await self.inner.apply(records)

    async def rebuild(self) -> Any:
        """Bring the numbers up to date."""
        return await self.inner.rebuild()


def test_a_batch_that_fails_comes_again(run: Run[Any], caplog: pytest.LogCaptureFixture) -> None:
    """What cannot be counted is tried again, whole, and no later change passes it; the log says so once."""

    async def followed() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            projector = Falters(projector_on(db), 3)
            async with follower_of(db, projector) as follower:
                await follower.catch_up()
                await db.create(case(1))
                while follower.failures < 3:
                    follower.wake()  # which also cuts its pauses short
                    await asyncio.sleep(0)
                await follower.catch_up()

                assert await count(projector_on(db), "new") == 1
                assert projector.given == [1, 1, 1, 1]
                assert (follower.state, follower.failures) == ("following", 3)

    run(followed())

    assert caplog.text.count("cannot be followed") == 1
    assert "c1" not in caplog.text


def test_a_follower_that_fails_can_be_stopped(run: Run[Any]) -> None:
    """Stopping does not wait for what never succeeds."""

    async def followed() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            projector = Falters(projector_on(db), 1_000_000)
            async with follower_of(db, projector) as follower:
                await follower.catch_up()
                await db.create(case(1))
                follower.wake()
                while not follower.failures:
                    await asyncio.sleep(0)
                assert follower.state == "failing"
                assert follower.lag_s > 0

    run(followed())


def test_waiting_for_a_stopped_follower_ends(run: Run[Any]) -> None:
    """Nobody waits for ever for a follower that is not running, or that ends while it is waited for."""

    async def followed() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            follower = follower_of(db)
            await follower.catch_up()
            await follower.stop()
            assert not follower.running

            follower = follower_of(db, Falters(projector_on(db), 1_000_000))
            follower.start()
            await follower.catch_up()
            await db.create(case(1))
            waiting = asyncio.ensure_future(follower.catch_up())
            await until(lambda: follower.failures > 0)
            assert follower._task is not None
            follower._task.cancel()  # as a loop does that is torn down
            await asyncio.wait_for(waiting, 5)
            assert (follower.state, follower.running) == ("stopped", False)

    run(followed())


def test_who_is_not_patient_is_told(run: Run[Any]) -> None:
    """A start that needs the numbers hears why they cannot be had, and does not wait for ever."""

    async def followed() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            async with follower_of(db, Falters(projector_on(db), 1_000_000)) as follower:
                await follower.catch_up(fail_fast=True)
                await db.create(case(1))
                with pytest.raises(ThrottlingFault):
                    await asyncio.wait_for(follower.catch_up(fail_fast=True), 5)

    run(followed())


async def until(true: Any) -> None:
    """Let the loop turn until something is so."""
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0)


async def readiness(follower: Follower) -> str:
    """Return what readiness says of a follower."""
    shell = shell_of(sample(Settings()))
    shell.followers = (follower,)
    shell.store = type("Store", (), {"db": follower.db})()  # all it is asked for
    try:
        return (await shell.ready())[follower.name]
    except ProblemError as problem:
        return f"{problem.status} {problem.extensions['followers'][follower.name]}"


def test_a_bug_does_not_end_it(run: Run[Any], caplog: pytest.LogCaptureFixture) -> None:
    """Whatever a projector raises is tried again; readiness says so meanwhile, and the log where, without what was sent."""

    async def followed() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            projector = Falters(projector_on(db), 3, KeyError("c1"))
            async with follower_of(db, projector) as follower:
                await follower.catch_up()
                await db.create(case(1))
                follower.wake()
                await until(lambda: follower.failures > 0)
                assert await readiness(follower) == "503 failing"
                await follower.catch_up()

                assert await count(projector_on(db), "new") == 1
                assert await readiness(follower) == "following"
            assert await readiness(follower) == "503 stopped"

    run(followed())

    assert "KeyError at" in caplog.text
    assert "test_followers.py" in caplog.text
    assert "c1" not in caplog.text


def test_a_place_that_cannot_be_kept_does_not_stop_the_counting(
    tmp_path: Path, run: Run[Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A full or missing disk is told, by readiness too, and tried again; what is written meanwhile is counted."""
    monkeypatch.setattr(checkpoints, "FLUSH_S", 0.0)
    folder = tmp_path / "state"

    async def followed() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            folder.mkdir()
            projector = Falters(projector_on(db), 0)  # which has no marks to keep it beside
            async with follower_of(db, projector, checkpoint=folder / "place.json") as follower:
                await follower.catch_up()
                assert (folder / "place.json").exists()
                shutil.rmtree(folder)
                folder.touch()  # no folder, so that nothing can be made in it
                await db.create(case(1))
                await follower.catch_up()
                await db.create(case(2))
                await follower.catch_up()

                assert await count(projector_on(db), "new") == 2
                assert await readiness(follower) == "503 failing"
                folder.unlink()
                await follower.catch_up()
                assert await readiness(follower) == "following"
                assert (folder / "place.json").exists()
                shutil.rmtree(folder)
                folder.touch()
                await db.create(case(3))
                await follower.catch_up()
            assert follower.state == "stopped"  # and nothing was raised

    run(followed())

    assert "FileExistsError" in caplog.text


def test_the_log_says_why_and_says_it_again(
    run: Run[Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What goes on failing is told now and then, in the store's own words."""
    monkeypatch.setattr(followers, "LOG_INTERVAL_S", 0.0)

    async def followed() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            async with follower_of(db, Falters(projector_on(db), 2)) as follower:
                await follower.catch_up()
                await db.create(case(1))
                await follower.catch_up()

    run(followed())

    assert caplog.text.count("cannot be followed: ThrottlingFault: Rate of requests") == 2


def test_who_cannot_read_the_stream_lags(run: Run[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows what waits then; it is told how long that is so, and not that nothing waits."""
    clock = ManualClock(AT.timestamp())

    async def followed() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            async with follower_of(db, clock=clock) as follower:
                await follower.catch_up()
                clock.advance(100)
                assert follower.lag_s == 0.0

                async def refused() -> Any:
                    raise ThrottlingFault

                assert follower._subscription is not None
                monkeypatch.setattr(follower._subscription, "take", refused)
                follower.wake()
                await until(lambda: follower.failures > 0)
                assert follower.lag_s == 100.0

    run(followed())


# Where the place is.


@pytest.mark.parametrize("marked", [True, False])
def test_a_store_that_was_put_back_is_counted_right(
    tmp_path: Path, run: Run[Any], monkeypatch: pytest.MonkeyPatch, marked: bool
) -> None:
    """A copy holds the numbers and the place that belongs to them; a file that is ahead of its store is not gone on from."""
    file, copy, place = tmp_path / "desk.db", tmp_path / "copy.db", tmp_path / "place.json"

    async def followed(numbers: range) -> int:
        async with connect_async(f"file:{file}") as db:
            await db.create_tables(Helpdesk, Board)
            projector: Any = projector_on(db)
            given = projector if marked else Falters(projector, 0)
            async with follower_of(db, given, checkpoint=place) as follower:
                await follower.catch_up()
                for number in numbers:
                    await db.create(case(number))
                await follower.catch_up()
            return await count(projector, "new")

    assert run(followed(range(10))) == 10
    shutil.copy(file, copy)
    assert run(followed(range(10, 40))) == 40
    shutil.copy(copy, file)

    assert run(followed(range(100, 100))) == 10
    assert run(followed(range(100, 160))) == 70
    assert run(followed(range(200, 200))) == 70


def test_a_store_that_does_not_let_it_be_kept_has_it_in_the_file(
    tmp_path: Path, run: Run[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may not touch the item keeps the place in the file, and goes on from there."""
    path = tmp_path / "place.json"

    async def denied(*given: Any, **more: Any) -> Any:
        raise AccessDeniedFault("not for you")

    async def followed() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            for name in ("save", "load"):
                monkeypatch.setattr(MarkCheckpoint, name, denied)
                async with follower_of(db, checkpoint=path) as follower:
                    await follower.catch_up()
                    assert follower.failures == 0
                assert path.exists()
            projector = projector_on(db)

            async def never() -> Any:
                raise AssertionError("the table was read")

            projector.rebuild = never
            await db.create(case(1))
            async with follower_of(db, projector, checkpoint=path) as follower:
                await follower.catch_up()
            assert await count(projector_on(db), "new") == 1

    run(followed())


def test_whoever_counted_says_so(run: Run[Any]) -> None:
    """After a fill, a follower begins where it was told, and does not read the table."""

    async def followed() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            await db.create(case(1))
            projector = projector_on(db)
            await projector.fill([case(1)])
            await follower_of(db, projector).skip_to_end()

            async def never() -> Any:
                raise AssertionError("the table was read")

            projector.rebuild = never
            async with follower_of(db, projector) as follower:
                await follower.catch_up()
                await db.create(case(2))
                await follower.catch_up()
            assert await count(projector_on(db), "new") == 2

    run(followed())


def test_a_stream_that_was_off_for_a_while_is_a_gap(run: Run[Any], caplog: pytest.LogCaptureFixture) -> None:
    """While it is off, it is said that nothing is counted; when it is on again, the numbers are made from the table."""

    async def followed() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            name = db.context.name_of(Helpdesk)
            async with follower_of(db) as follower:
                await follower.catch_up()
                await db.create(case(1))
                await follower.catch_up()
                await db.call(
                    "UpdateTable", {"TableName": name, "StreamSpecification": {"StreamEnabled": False}}
                )
                await db.create(case(2))
                follower.wake()
                await until(lambda: follower.failures > 0)
                assert await readiness(follower) == "503 failing"
                view = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
                await db.call("UpdateTable", {"TableName": name, "StreamSpecification": view})
                await db.create(case(3))
                await follower.catch_up()

                assert await count(projector_on(db), "new") == 3
                assert await readiness(follower) == "following"
            async with follower_of(db) as follower:
                await follower.catch_up()
            assert await count(projector_on(db), "new") == 3

    run(followed())

    assert "Helpdesk is switched off" in caplog.text


class Mixed(Table, ttl="expires", stream="NEW_AND_OLD_IMAGES"):
    """Work and its numbers in one table."""


class Job(Entity, table=Mixed):
    """Work."""

    job_id: Attr[str]

    class Key(PrimaryKey["Job"], pk="JOB#{job_id}", sk="JOB"):
        job_id: str


class JobNumber(Metric, table=Mixed):
    """A number of it."""

    class Key(PrimaryKey["JobNumber"], pk="METRIC#{name}", sk="{part}"):
        name: str
        part: str


class JobMark(ProjectionMark, table=Mixed):
    """What is counted."""

    class Key(PrimaryKey["JobMark"], pk="MARK#{source}", sk="{projector}"):
        source: str
        projector: str


def test_a_place_in_the_table_itself_does_not_feed_itself(
    run: Run[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keeping the place is a change of the table; it is no reason to keep the place."""
    monkeypatch.setattr(checkpoints, "FLUSH_S", 0.0)

    def shares(job: Job) -> Iterator[Share]:
        yield Share("jobs")

    async def followed() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Mixed)
            projector: Any = Projector(db, Mixed, JobNumber, JobMark)
            projector.of(Job)(shares)
            async with Follower(projector, Mixed, db, poll_s=60.0) as follower:
                await follower.catch_up()
                await db.create(Job(job_id="1"))
                for _ in range(4):
                    await follower.catch_up()
                still = follower.counted
                for _ in range(4):
                    await follower.catch_up()

                assert follower.counted == still
            assert (await projector.value("jobs")).count == 1

    run(followed())
