"""A follower keeps numbers exact through failures and restarts."""

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
from tavola.apps.shell import AppSettings, Follower, ProblemError, followers, shell_of
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
    """Return a follower with a long polling interval, so that a test can see that it was woken."""
    return Follower(projector or projector_on(db), Helpdesk, db, **{"poll_s": 60.0, **more})


def test_writes_are_counted(target: Target, run: Run[Any]) -> None:
    """Changes are counted as they arrive, and the generation grows."""

    async def check() -> None:
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
            assert (follower.state, follower.lag_s, follower.changes_counted) == ("following", 0.0, 4)
            still = follower.generation
            await follower.catch_up()
            assert follower.generation == still
        assert follower.state == "stopped"

    run(check())


def test_existing_items_are_counted_at_the_first_start(target: Target, run: Run[Any]) -> None:
    """On a store without a checkpoint, the numbers are computed from the table."""

    async def check() -> None:
        async with desk(target) as db:
            for number in range(5):
                await db.create(case(number))
            async with follower_of(db) as follower:
                await follower.catch_up()
            assert await count(projector_on(db), "new") == 5

    run(check())


def test_writes_during_a_rebuild_are_counted_once(run: Run[Any]) -> None:
    """It subscribes before it rebuilds, so that writes in between are counted, once."""

    async def check() -> None:
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

    run(check())


def test_it_continues_at_its_checkpoint(tmp_path: Path, run: Run[Any]) -> None:
    """Changes made while it was stopped are read from the stream, not from the table; the checkpoint is in the store, not in a file."""
    path = tmp_path / "place.json"

    async def check() -> None:
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

    run(check())


def test_an_aborted_rebuild_is_repeated(tmp_path: Path, run: Run[Any]) -> None:
    """The checkpoint is stored only when the numbers are complete; otherwise the next start would continue from partial numbers."""
    path = tmp_path / "place.json"

    async def check() -> None:
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

    run(check())


def test_lost_records_cause_a_rebuild(tmp_path: Path, run: Run[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that was not read for a day has a gap: the numbers are rebuilt, then followed."""

    async def check() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            subscribe = db.subscribe
            lost = [RecordsLost("Helpdesk", "shard-1", "100", "trimmed")]

            async def once(*batches: Any, **more: Any) -> Any:
                if lost:
                    raise lost.pop()
                return await subscribe(*batches, **more)

            monkeypatch.setattr(db, "subscribe", once)
            await db.create(case(1))
            checkpoint = tmp_path / "place.json"
            async with follower_of(db, checkpoint=checkpoint) as follower:
                await follower.catch_up()
                assert follower.failures == 0
            assert await count(projector_on(db), "new") == 1

    run(check())


class FailingProjector:
    """A projector that fails at first, for some records or all."""

    name = "falters"

    def __init__(self, inner: Any, times: int, error: Exception | None = None) -> None:
        self.inner = inner
        self.times = times
        self.error = error or ThrottlingFault()
        self.batches: list[int] = []

    async def apply(self, records: Sequence[Any]) -> Any:
        """Fail, then count."""
        self.batches.append(len(records))
        if self.times:
            self.times -= 1
            raise self.error
        return await self.inner.apply(records)

    async def rebuild(self) -> Any:
        """Rebuild the numbers."""
        return await self.inner.rebuild()


def test_a_failed_batch_is_retried(run: Run[Any], caplog: pytest.LogCaptureFixture) -> None:
    """A failed batch is retried as a whole before any later change; it is logged once."""

    async def check() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            projector = FailingProjector(projector_on(db), 3)
            async with follower_of(db, projector) as follower:
                await follower.catch_up()
                await db.create(case(1))
                while follower.failures < 3:
                    follower.wake()  # which also cuts its pauses short
                    await asyncio.sleep(0)
                await follower.catch_up()

                assert await count(projector_on(db), "new") == 1
                assert projector.batches == [1, 1, 1, 1]
                assert (follower.state, follower.failures) == ("following", 3)

    run(check())

    assert caplog.text.count("cannot read its stream") == 1
    assert "'c1'" not in caplog.text


def test_a_failing_follower_can_be_stopped(run: Run[Any]) -> None:
    """Stopping does not wait for a batch that never succeeds."""

    async def check() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            projector = FailingProjector(projector_on(db), 1_000_000)
            async with follower_of(db, projector) as follower:
                await follower.catch_up()
                await db.create(case(1))
                follower.wake()
                while not follower.failures:
                    await asyncio.sleep(0)
                assert follower.state == "failing"
                assert follower.lag_s > 0

    run(check())


def test_waiting_for_a_stopped_follower_ends(run: Run[Any]) -> None:
    """`catch_up` returns if the follower is not running or stops meanwhile."""

    async def check() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            follower = follower_of(db)
            await follower.catch_up()
            await follower.stop()
            assert not follower.running

            follower = follower_of(db, FailingProjector(projector_on(db), 1_000_000))
            follower.start()
            await follower.catch_up()
            await db.create(case(1))
            waiting = asyncio.ensure_future(follower.catch_up())
            await until(lambda: follower.failures > 0)
            assert follower._task is not None
            follower._task.cancel()  # as a loop does that is torn down
            await asyncio.wait_for(waiting, 5)
            assert (follower.state, follower.running) == ("stopped", False)

    run(check())


def test_catch_up_can_fail_fast(run: Run[Any]) -> None:
    """A start that needs the numbers gets the error instead of waiting forever."""

    async def check() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            async with follower_of(db, FailingProjector(projector_on(db), 1_000_000)) as follower:
                await follower.catch_up(fail_fast=True)
                await db.create(case(1))
                with pytest.raises(ThrottlingFault):
                    await asyncio.wait_for(follower.catch_up(fail_fast=True), 5)

    run(check())


async def until(true: Any) -> None:
    """Run the loop until a condition holds."""
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0)


async def readiness(follower: Follower) -> str:
    """Return the readiness of a follower."""
    shell = shell_of(sample(AppSettings()))
    shell.followers = (follower,)
    shell.store = type("Store", (), {"db": follower.db})()  # the only attribute that is read
    try:
        return (await shell.ready())[follower.name]
    except ProblemError as problem:
        return f"{problem.status} {problem.extensions['followers'][follower.name]}"


def test_a_bug_in_a_projector_does_not_stop_it(run: Run[Any], caplog: pytest.LogCaptureFixture) -> None:
    """Any exception of a projector is retried; readiness reports it, and the log says where, without the data."""

    async def check() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            projector = FailingProjector(projector_on(db), 3, KeyError("c1"))
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

    run(check())

    assert "KeyError at" in caplog.text
    assert "test_followers.py" in caplog.text
    assert "'c1'" not in caplog.text


def test_a_checkpoint_that_cannot_be_stored_does_not_stop_counting(
    tmp_path: Path, run: Run[Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A full or missing disk is reported, also by readiness, and retried; writes are counted meanwhile."""
    monkeypatch.setattr(followers, "FLUSH_S", 0.0)
    folder = tmp_path / "state"

    async def check() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            folder.mkdir()
            projector = FailingProjector(projector_on(db), 0)  # which has no marks to keep it beside
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

    run(check())

    assert "FileExistsError" in caplog.text


def test_a_lasting_failure_is_logged_again(
    run: Run[Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A failure that continues is logged from time to time, with the store's message."""
    monkeypatch.setattr(followers, "LOG_INTERVAL_S", 0.0)

    async def check() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Helpdesk, Board)
            async with follower_of(db, FailingProjector(projector_on(db), 2)) as follower:
                await follower.catch_up()
                await db.create(case(1))
                await follower.catch_up()

    run(check())

    assert caplog.text.count("cannot read its stream: ThrottlingFault: Rate of requests") == 2


def test_an_unreadable_stream_is_reported_as_lag(run: Run[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The backlog is unknown then; the lag grows instead of being zero."""
    clock = ManualClock(AT.timestamp())

    async def check() -> None:
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

    run(check())


# Where the checkpoint is.


@pytest.mark.parametrize("marked", [True, False])
def test_a_restored_store_is_counted_correctly(
    tmp_path: Path, run: Run[Any], monkeypatch: pytest.MonkeyPatch, marked: bool
) -> None:
    """A copy contains the numbers and their checkpoint; a checkpoint file that is ahead of its store is not used."""
    file, copy, checkpoint = tmp_path / "desk.db", tmp_path / "copy.db", tmp_path / "place.json"

    async def check(numbers: range) -> int:
        async with connect_async(f"file:{file}") as db:
            await db.create_tables(Helpdesk, Board)
            projector: Any = projector_on(db)
            followed_projector = projector if marked else FailingProjector(projector, 0)
            async with follower_of(db, followed_projector, checkpoint=checkpoint) as follower:
                await follower.catch_up()
                for number in numbers:
                    await db.create(case(number))
                await follower.catch_up()
            return await count(projector, "new")

    assert run(check(range(10))) == 10
    shutil.copy(file, copy)
    assert run(check(range(10, 40))) == 40
    shutil.copy(copy, file)

    assert run(check(range(100, 100))) == 10
    assert run(check(range(100, 160))) == 70
    assert run(check(range(200, 200))) == 70


def test_a_denied_checkpoint_is_stored_in_the_file(
    tmp_path: Path, run: Run[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A follower that may not write the item stores the checkpoint in the file, and continues from there."""
    path = tmp_path / "place.json"

    async def denied(*batches: Any, **more: Any) -> Any:
        raise AccessDeniedFault("not for you")

    async def check() -> None:
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

    run(check())


def test_skip_to_end_after_a_bulk_load(run: Run[Any]) -> None:
    """After a bulk load that counted, a follower starts at the end and does not read the table."""

    async def check() -> None:
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

    run(check())


def test_a_disabled_stream_is_a_gap(run: Run[Any], caplog: pytest.LogCaptureFixture) -> None:
    """While the stream is off, readiness says that nothing is counted; when it is on again, the numbers are rebuilt."""

    async def check() -> None:
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

    run(check())

    assert "Helpdesk is disabled" in caplog.text


class Mixed(Table, ttl="expires", stream="NEW_AND_OLD_IMAGES"):
    """Jobs and their numbers in one table."""


class Job(Entity, table=Mixed):
    """A job."""

    job_id: Attr[str]

    class Key(PrimaryKey["Job"], pk="JOB#{job_id}", sk="JOB"):
        job_id: str


class JobNumber(Metric, table=Mixed):
    """A number about jobs."""

    class Key(PrimaryKey["JobNumber"], pk="METRIC#{name}", sk="{part}"):
        name: str
        part: str


class JobMark(ProjectionMark, table=Mixed):
    """A mark of the projector."""

    class Key(PrimaryKey["JobMark"], pk="MARK#{source}", sk="{projector}"):
        source: str
        projector: str


def test_a_checkpoint_in_the_table_does_not_trigger_itself(
    run: Run[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Storing the checkpoint changes the table; that does not cause another checkpoint."""
    monkeypatch.setattr(followers, "FLUSH_S", 0.0)

    def shares(job: Job) -> Iterator[Share]:
        yield Share("jobs")

    async def check() -> None:
        async with connect_async("memory:") as db:
            await db.create_tables(Mixed)
            projector: Any = Projector(db, Mixed, JobNumber, JobMark)
            projector.of(Job)(shares)
            async with Follower(projector, Mixed, db, poll_s=60.0) as follower:
                await follower.catch_up()
                await db.create(Job(job_id="1"))
                for _ in range(4):
                    await follower.catch_up()
                still = follower.changes_counted
                for _ in range(4):
                    await follower.catch_up()

                assert follower.changes_counted == still
            assert (await projector.value("jobs")).count == 1

    run(check())
