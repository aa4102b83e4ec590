"""The past: what was read then is read as of then, every version is known, and what was can be had again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import datetime
from typing import Any

import pytest

from tavola import Attr, Entity, PrimaryKey, Query, Sort, Table, attr, connect, connect_async, sort
from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.model.document import design_of
from tavola.patterns import AuditEntry, Versioned, Versions
from tavola.protocol.faults import UnknownOperationFault
from tavola.server.listener import running
from tavola.studio import item_history
from tavola.studio.api import BY_NAME
from tavola.studio.api.changes import SetStreamRequest, set_stream
from tavola.studio.api.data import QueryPageRequest, read_query_page
from tavola.studio.api.history import (
    HistoryRequest,
    KeepPastRequest,
    MakeBackupRequest,
    PastRequest,
    PutBackRequest,
    RestoreBackupRequest,
    RestoreProgressRequest,
    RestoreTableRequest,
    ThenRequest,
    compare_then_and_now,
    create_backup,
    past_window,
    put_back,
    read_item_history,
    restore_backup,
    restore_progress,
    restore_table,
    set_recovery,
)
from tavola.studio.api.items import undo_write
from tavola.studio.endpoint import encode_response
from tavola.studio.problems import RequestRefused
from tavola.studio.queries.planner import ItemQuery
from tavola.studio.studio import Studio, TablesLocation

ORDERS = {
    "TableName": "Orders",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


class Reviews(Table, name="Reviews"):
    """Records with versions and an audit trail."""


class ReviewFields(Versioned):
    review_id: Attr[str]
    status: Attr[str]


class Review(ReviewFields, table=Reviews):
    """The current one."""

    class Key(PrimaryKey["Review"], pk="REVIEW#{review_id}", sk="CURRENT"):
        review_id: str


class ReviewVersion(ReviewFields, table=Reviews, immutable=True):
    """One that was."""

    class Key(PrimaryKey["ReviewVersion"], pk="HISTORY#{review_id}", sk="VERSION#{version}"):
        review_id: str
        version: int

    class All(Query["ReviewVersion"], on=Key):
        review_id: str
        version: Sort[int] = sort()


class ReviewAudit(AuditEntry, table=Reviews):
    """Who and why."""

    review_id: Attr[str]
    note: Attr[str] = attr(default="")

    class Key(PrimaryKey["ReviewAudit"], pk="HISTORY#{review_id}", sk="AUDIT#{version}"):
        review_id: str
        version: int

    class All(Query["ReviewAudit"], on=Key):
        review_id: str
        version: Sort[int] = sort()


class Desks(Table, name="Desks"):
    """Records that one writer at a time may change."""


class Desk(Entity, table=Desks):
    """With a lock that counts its writes."""

    desk_id: Attr[str]
    place: Attr[str]
    revision: Attr[int] = attr(default=0, lock=True)

    class Key(PrimaryKey["Desk"], pk="DESK#{desk_id}", sk="DESK"):
        desk_id: str


def done(review: Review) -> None:
    review.status = "done"


@asynccontextmanager
async def orders(*, kept: bool = True) -> AsyncIterator[tuple[Studio, ManualClock]]:
    clock = ManualClock()
    engine = Engine.open(clock=clock)
    engine.call("CreateTable", ORDERS)
    db = connect_async(engine, clock=clock)
    studio = Studio(db=db, where=TablesLocation("memory", "memory", "us-east-1"), clock=clock, engine=engine)
    if kept:
        await set_recovery(studio, KeepPastRequest("Orders"))
    yield studio, clock
    await db.close()
    engine.close()


async def put(studio: Studio, number: int, **more: Any) -> None:
    item = {"pk": {"S": f"ORDER#{number}"}, **more}
    await studio.db.call("PutItem", {"TableName": "Orders", "Item": item})


def key(number: int) -> dict[str, Any]:
    return {"pk": {"S": f"ORDER#{number}"}}


def moment(clock: ManualClock) -> str:
    return datetime.fromtimestamp(clock.now()).astimezone().isoformat()


async def scanned(studio: Studio, as_of: str = "") -> list[dict[str, Any]]:
    db = await studio.connection_at(as_of)
    result = (await db.call("Scan", {"TableName": "Orders"}))["Items"]
    return sorted(result, key=lambda item: item["pk"]["S"])


def test_an_as_of_read_equals_the_snapshot_taken_then() -> None:
    """A read as of a moment returns the items of that moment, whatever was written since."""

    async def story() -> None:
        async with orders() as (studio, clock):
            taken: list[tuple[str, list[dict[str, Any]]]] = []
            for turn in range(6):
                clock.advance(60)
                for number in range(turn, turn + 20):
                    await put(studio, number, turn={"N": str(turn)})
                await studio.db.call("DeleteItem", {"TableName": "Orders", "Key": key(turn)})
                taken.append((moment(clock), await scanned(studio)))
                clock.advance(1)

            for at, snapshot in taken:
                browsed = await read_query_page(studio, QueryPageRequest(ItemQuery("Orders", as_of=at)))
                items = [dict(row.item) for row in browsed.rows]
                assert await scanned(studio, at) == snapshot
                assert sorted(items, key=lambda item: item["pk"]["S"]) == snapshot

    asyncio.run(story())


def test_the_recovery_window_has_its_range_and_changes() -> None:
    """The slider knows the first and the last moment, and where between them something changed."""

    async def story() -> None:
        async with orders(kept=False) as (studio, clock):
            before = await past_window(studio, PastRequest("Orders"))
            after = await set_recovery(studio, KeepPastRequest("Orders", days=7))
            clock.advance(100)
            for number in range(30):
                await put(studio, number)
            clock.advance(100)
            await put(studio, 1, total={"N": "1"})
            clock.advance(0.5)
            response = await past_window(studio, PastRequest("Orders", buckets=10))
            part = await past_window(studio, PastRequest("Orders", since=response.since or "", buckets=1))

            assert not before.on
            assert before.readable
            assert before.earliest is None
            assert (after.on, after.days) == (True, 7)
            assert response.counted
            assert sum(response.density) == 31
            assert response.density[4] == 30
            assert response.density[9] == 1
            assert part.density == (31,)
            assert encode_response(response)

    asyncio.run(story())


def test_a_history_has_the_differences_of_each_version() -> None:
    """Every version with its time, its differences from the one before by type, and the deletion between."""

    async def story() -> None:
        async with orders() as (studio, clock):
            clock.advance(10)
            await put(studio, 1, total={"N": "10"}, tags={"SS": ["a"]}, lines={"L": [{"S": "x"}]})
            clock.advance(10)
            await put(
                studio,
                1,
                total={"N": "10.0"},
                tags={"SS": ["a", "b"]},
                lines={"L": [{"S": "w"}, {"S": "x"}]},
                updated_by={"S": "ann"},
            )
            clock.advance(10)
            await studio.db.call("DeleteItem", {"TableName": "Orders", "Key": key(1)})
            response = await read_item_history(studio, HistoryRequest("Orders", key(1)))

            gone, changed, made, absent = response.versions
            assert response.source == "recovery"
            assert response.complete
            assert (gone.item, gone.until) == (None, None)
            assert absent.since is None
            assert absent.item is None
            assert changed.actor == "ann"
            assert changed.until == gone.since
            assert [(each.path, each.kind) for each in changed.differences] == [
                ("lines[0]", "added"),
                ("tags", "changed"),
                ("updated_by", "added"),
            ]
            assert changed.differences[1].gained == ("b",)
            assert made.total == 4
            assert {each.kind for each in gone.differences} == {"removed"}

    asyncio.run(story())


def test_the_past_of_a_server_elsewhere() -> None:
    """Over HTTP the window, its changes, a history and a moment are the same; what the stream counts is said to be a part."""
    clock = ManualClock()
    engine = Engine.open(clock=clock)
    stream = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}}

    async def story(url: str) -> None:
        db = connect_async(url)
        studio = Studio(db=db, where=TablesLocation("http", url, "us-east-1"))
        await db.call("CreateTable", {**ORDERS, **stream})
        await set_recovery(studio, KeepPastRequest("Orders"))
        for total in range(3):
            clock.advance(10)
            await put(studio, 1, total={"N": str(total)})
        clock.advance(10)
        response = await read_item_history(studio, HistoryRequest("Orders", key(1)))
        seen = await past_window(studio, PastRequest("Orders", buckets=4))
        at = response.versions[1].since or ""
        beside = await compare_then_and_now(studio, ThenRequest("Orders", key(1), at))

        assert (seen.on, seen.readable, seen.counted, sum(seen.density)) == (True, True, False, 3)
        assert (response.source, len(response.versions)) == ("recovery", 4)
        assert [each.path for each in beside.compared.differences] == ["total"]
        await studio.close()
        await db.close()

    with closing(engine), running(engine) as served:
        asyncio.run(story(served.url))


def test_an_endpoint_without_recovery_is_refused() -> None:
    """If the endpoint does not support recovery, the window is refused, and history is read from the stream."""

    async def story() -> None:
        async with orders(kept=False) as (studio, _):
            await set_stream(studio, SetStreamRequest("Orders"))
            await put(studio, 1)
            query = studio.db.backend.call

            async def knowing(operation: str, request: Any) -> Any:
                if "Backups" in operation or operation == "ListItemVersions":
                    raise UnknownOperationFault()
                return await query(operation, request)

            studio.db.backend.call = knowing  # type: ignore[method-assign]
            with pytest.raises(RequestRefused) as refused:
                await past_window(studio, PastRequest("Orders"))
            response = await read_item_history(studio, HistoryRequest("Orders", key(1)))

            assert refused.value.problem.code == "past-unknown"
            assert (response.source, len(response.versions)) == ("stream", 2)

    asyncio.run(story())


def test_a_history_without_recovery_is_the_streams() -> None:
    """Without recovery, history has one day from the stream; without a stream, that is reported."""

    async def story() -> None:
        async with orders(kept=False) as (studio, clock):
            await put(studio, 1, total={"N": "1"})
            with pytest.raises(RequestRefused) as refused:
                await read_item_history(studio, HistoryRequest("Orders", key(1)))
            await set_stream(studio, SetStreamRequest("Orders"))
            for total in range(2, 5):
                clock.advance(5)
                await put(studio, 1, total={"N": str(total)})
                await put(studio, 2, total={"N": str(total)})
            response = await read_item_history(studio, HistoryRequest("Orders", key(1)))

            assert refused.value.problem.code == "past-off"
            assert response.source == "stream"
            assert [(v.item or {})["total"]["N"] for v in response.versions] == ["4", "3", "2", "1"]
            assert all(each.total == 1 for each in response.versions[:-1])

    asyncio.run(story())


@pytest.mark.parametrize("view", ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE"])
def test_a_stream_without_images_makes_nothing_up(view: str) -> None:
    """An image that the stream omits is taken from elsewhere or reported as unknown, not as a deletion."""

    async def story() -> None:
        async with orders(kept=False) as (studio, clock):
            await put(studio, 1, total={"N": "1"})
            await studio.db.call(
                "UpdateTable",
                {
                    "TableName": "Orders",
                    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": view},
                },
            )
            for total in range(2, 5):
                clock.advance(5)
                await put(studio, 1, total={"N": str(total)})
            response = await read_item_history(studio, HistoryRequest("Orders", key(1)))

            totals = [None if v.item is None else v.item["total"]["N"] for v in response.versions]
            assert (
                totals
                == {
                    "KEYS_ONLY": ["4", None, None],
                    "NEW_IMAGE": ["4", "3", "2"],
                    "OLD_IMAGE": ["4", "3", "2", "1"],
                }[view]
            )
            assert [v.unknown for v in response.versions] == [total is None for total in totals]
            assert not any(v.made for v in response.versions)

    asyncio.run(story())


def test_a_number_is_a_key_however_it_is_written() -> None:
    """The history of key 1.50 in a stream is that of key 1.5."""

    async def story() -> None:
        async with orders(kept=False) as (studio, _):
            table = {
                **ORDERS,
                "TableName": "Numbers",
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "N"}],
                "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
            }
            await studio.db.call("CreateTable", table)
            await studio.db.call("PutItem", {"TableName": "Numbers", "Item": {"pk": {"N": "1.5"}}})
            response = await read_item_history(studio, HistoryRequest("Numbers", {"pk": {"N": "1.50"}}))

            assert [(v.since is None, v.made) for v in response.versions] == [(False, True), (True, False)]

    asyncio.run(story())


@pytest.mark.parametrize("bytes_each", [10, 40_000])
def test_a_long_history_is_truncated_and_counted(bytes_each: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither many versions nor large ones fill the memory; the earliest shown was not created, it was changed."""
    monkeypatch.setattr(item_history, "VERSIONS_MAX", 20)
    monkeypatch.setattr(item_history, "BYTES_MAX", 200_000)

    async def story() -> None:
        async with orders() as (studio, clock):
            for number in range(50):
                clock.advance(1)
                await put(studio, 1, n={"N": str(number)}, text={"S": "x" * bytes_each})
            response = await read_item_history(studio, HistoryRequest("Orders", key(1)))

            assert len(response.versions) == (20 if bytes_each == 10 else 3)
            assert response.earlier + len(response.versions) == 51
            assert [v.total for v in response.versions] == [1] * len(response.versions)
            assert not any(v.made for v in response.versions)

    asyncio.run(story())


def test_the_audit_row_has_author_and_reason() -> None:
    """A record with versions has its audit rows read along, found by the design."""
    clock = ManualClock()
    engine = Engine.open(clock=clock)
    with connect(engine, clock=clock) as db:
        db.create_tables(Reviews)
        engine.call(
            "UpdateContinuousBackups",
            {
                "TableName": "Reviews",
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            },
        )
        reviews = Versions(db, Review, ReviewVersion, ReviewAudit)
        clock.advance(1)
        reviews.create(Review(review_id="r1", status="pending"), by="ann")
        clock.advance(1)
        reviews.change(Review.Key(review_id="r1"), done, by="bob", why="checked")

    async def story() -> None:
        studio = Studio(
            db=connect_async(engine, clock=clock),
            where=TablesLocation("memory", "memory", "us-east-1"),
            design=design_of(Reviews),
            clock=clock,
            engine=engine,
        )
        response = await read_item_history(
            studio, HistoryRequest("Reviews", {"pk": {"S": "REVIEW#r1"}, "sk": {"S": "CURRENT"}})
        )

        assert response.entity == "Review"
        assert [(v.actor, v.why) for v in response.versions[:2]] == [("bob", "checked"), ("ann", "")]
        with pytest.raises(RequestRefused) as refused:
            await put_back(
                studio, PutBackRequest("Reviews", dict(response.key), response.versions[1].since or "")
            )
        assert refused.value.problem.code == "record-versioned"
        await studio.db.close()

    asyncio.run(story())
    with connect(engine, clock=clock) as db:
        reviews = Versions(db, Review, ReviewVersion, ReviewAudit)
        assert (
            reviews.restore(Review.Key(review_id="r1"), 1, by="ann").version == 3
        )  # the remedy that is told
    engine.close()


def test_restoring_an_item_can_be_undone() -> None:
    """It is what it was at the moment; undone, it is what it was before that."""

    async def story() -> None:
        async with orders() as (studio, clock):
            clock.advance(1)
            await put(studio, 1, total={"N": "1"})
            then = moment(clock)
            clock.advance(10)
            await put(studio, 1, total={"N": "2"}, note={"S": "x"})
            beside = await compare_then_and_now(studio, ThenRequest("Orders", key(1), then))
            back = await put_back(studio, PutBackRequest("Orders", key(1), then))
            stood = (await scanned(studio))[0]
            assert back.undo is not None
            await undo_write(studio, back.undo)
            again = (await scanned(studio))[0]

            assert [each.path for each in beside.compared.differences] == ["note", "total"]
            assert back.outcome == "written"
            assert stood == {**key(1), "total": {"N": "1"}}
            assert again == {**key(1), "total": {"N": "2"}, "note": {"S": "x"}}

    asyncio.run(story())


def test_an_item_that_changed_is_not_overwritten() -> None:
    """Who looked at one state and puts another back does not undo what a third did."""

    async def story() -> None:
        async with orders() as (studio, clock):
            clock.advance(1)
            await put(studio, 1, total={"N": "1"})
            then = moment(clock)
            clock.advance(10)
            seen = {**key(1), "total": {"N": "2"}}
            await put(studio, 1, total={"N": "3"})
            back = await put_back(studio, PutBackRequest("Orders", key(1), then, current=seen))

            assert back.outcome == "conflict"
            assert (await scanned(studio))[0]["total"] == {"N": "3"}

    asyncio.run(story())


def test_a_recreated_item_is_not_overwritten() -> None:
    """Restoring an item that was missing when it was read does not overwrite one created since."""

    async def story() -> None:
        async with orders() as (studio, clock):
            clock.advance(1)
            await put(studio, 1, total={"N": "1"})
            then = moment(clock)
            clock.advance(10)
            await studio.db.call("DeleteItem", {"TableName": "Orders", "Key": key(1)})
            await put(studio, 1, total={"N": "9"})
            back = await put_back(studio, PutBackRequest("Orders", key(1), then, gone=True))

            assert back.outcome == "exists"
            assert (await scanned(studio))[0]["total"] == {"N": "9"}

    asyncio.run(story())


def test_concurrent_changes_are_reported() -> None:
    """Fields that were not restored are unchanged, and the response lists how they differ."""

    async def story() -> None:
        async with orders() as (studio, clock):
            clock.advance(1)
            await put(studio, 1, total={"N": "1"})
            then = moment(clock)
            clock.advance(10)
            seen = {**key(1), "total": {"N": "2"}}
            await put(studio, 1, total={"N": "2"}, note={"S": "theirs"})
            back = await put_back(studio, PutBackRequest("Orders", key(1), then, current=seen))

            assert back.outcome == "written"
            assert [each.path for each in back.others.differences] == ["note"]
            with pytest.raises(RequestRefused):
                await put_back(studio, PutBackRequest("Orders", key(2), then, current=seen))

    asyncio.run(story())


def test_a_lock_counts_on() -> None:
    """What is put back is one write more, or a program that still holds that old copy would write over it unseen."""
    clock = ManualClock()
    engine = Engine.open(clock=clock)
    pitr = {"PointInTimeRecoveryEnabled": True}
    with connect(engine, clock=clock) as db:
        db.create_tables(Desks)
        engine.call(
            "UpdateContinuousBackups",
            {"TableName": "Desks", "PointInTimeRecoverySpecification": pitr},
        )
        clock.advance(1)
        desk = db.put(Desk(desk_id="d1", place="north"))
        then = moment(clock)
        clock.advance(1)
        for place in ("east", "south"):
            desk.place = place
            desk = db.put(desk)

    async def story() -> None:
        studio = Studio(
            db=connect_async(engine, clock=clock),
            where=TablesLocation("memory", "memory", "us-east-1"),
            design=design_of(Desks),
            clock=clock,
            engine=engine,
        )
        back = await put_back(
            studio, PutBackRequest("Desks", {"pk": {"S": "DESK#d1"}, "sk": {"S": "DESK"}}, then)
        )

        assert back.current is not None
        assert (back.current["place"], back.current["revision"]) == ({"S": "north"}, {"N": "4"})
        assert [each.path for each in back.others.differences] == ["revision"]
        await studio.close()
        await studio.db.close()

    asyncio.run(story())
    engine.close()


def test_a_deleted_item_comes_back() -> None:
    """What was deleted is put where nothing is; with nothing then and now there is nothing to do."""

    async def story() -> None:
        async with orders() as (studio, clock):
            start = moment(clock)
            clock.advance(1)
            await put(studio, 1, total={"N": "1"})
            then = moment(clock)
            clock.advance(10)
            await studio.db.call("DeleteItem", {"TableName": "Orders", "Key": key(1)})
            back = await put_back(studio, PutBackRequest("Orders", key(1), then))
            with pytest.raises(RequestRefused):
                await put_back(studio, PutBackRequest("Orders", key(9), start))

            assert back.outcome == "written"
            assert await scanned(studio) == [{**key(1), "total": {"N": "1"}}]

    asyncio.run(story())


async def awaited(studio: Studio, table: str, of: str) -> None:
    async with asyncio.timeout(5):
        while not (await restore_progress(studio, RestoreProgressRequest(table, of))).done:
            assert studio.engine is not None
            studio.engine.run_background_work()
            await asyncio.sleep(0)


def test_a_restored_table_equals_what_was() -> None:
    """A restore makes a new table that is what the other was at the moment."""

    async def story() -> None:
        async with orders() as (studio, clock):
            clock.advance(1)
            for number in range(50):
                await put(studio, number)
            then, snapshot = moment(clock), await scanned(studio)
            clock.advance(10)
            for number in range(25, 80):
                await put(studio, number, late={"BOOL": True})
            begun = await restore_table(studio, RestoreTableRequest("Orders", "Orders-then", then))
            await awaited(studio, "Orders-then", "Orders")
            result = (await studio.db.call("Scan", {"TableName": "Orders-then"}))["Items"]

            assert begun.of_items is not None
            assert sorted(result, key=lambda item: item["pk"]["S"]) == snapshot
            with pytest.raises(RequestRefused):
                await restore_table(studio, RestoreTableRequest("Orders", " "))

    asyncio.run(story())


def test_a_backup_is_listed_marked_and_restored() -> None:
    """A backup is a stop on the slider, and a table again."""

    async def story() -> None:
        async with orders() as (studio, clock):
            await put(studio, 1)
            clock.advance(5)
            await create_backup(studio, MakeBackupRequest("Orders", "before-release"))
            assert studio.engine is not None
            studio.engine.run_background_work(1_000.0)
            (made,) = (await create_backup(studio, MakeBackupRequest("Orders", "again"))).backups[-1:]
            studio.engine.run_background_work(1_000.0)
            response = await past_window(studio, PastRequest("Orders"))
            await restore_backup(studio, RestoreBackupRequest(made.arn, "Orders-back"))
            await awaited(studio, "Orders-back", "")
            result = (await studio.db.call("Scan", {"TableName": "Orders-back"}))["Items"]

            assert {mark.text for mark in response.marks} == {"Backup before-release", "Backup again"}
            assert result == [key(1)]

    asyncio.run(story())


def test_what_writes_is_refused_in_read_only_mode() -> None:
    """Looking at the past is reading; keeping, restoring and putting back are not."""
    writing = {"POST /past", "POST /past/put-back", "POST /past/restore", "POST /past/backups"}
    writing.add("POST /past/backups/restore")

    assert {name for name, each in BY_NAME.items() if "/past" in name and each.is_write} == writing
