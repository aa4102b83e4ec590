"""The live stream: every change once, in order, whatever becomes of the connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from tavola import connect_async
from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.errors import TavolaError
from tavola.studio.api import BY_NAME
from tavola.studio.api import changes as changes_api
from tavola.studio.api.changes import (
    ChangesRequest,
    SetStreamRequest,
    StreamRequest,
    encode_event,
    read_changes,
    set_stream,
    stream_changes,
    stream_state,
)
from tavola.studio.changes import (
    BYTES_MAX,
    CHANGES_MAX,
    Actors,
    ChangeFilter,
    ChangeRenderer,
    FollowOptions,
    StreamFollower,
    decode_position,
    encode_position,
)
from tavola.studio.problems import RequestRefused, problem_of
from tavola.studio.recognition import load_recogniser
from tavola.studio.studio import Studio, TablesLocation
from tests.studio.bookshop import bookshop_design

TABLE = {
    "TableName": "Orders",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "S"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}


@dataclass
class Event:
    kind: str
    position: str | None
    data: Any

    @property
    def changes(self) -> list[dict[str, Any]]:
        return self.data.get("changes", []) if self.kind == "changes" else []


@asynccontextmanager
async def orders(clock: ManualClock | None = None, *, stream: bool = True) -> AsyncIterator[Studio]:
    clock = clock or ManualClock()
    engine = Engine.open(clock=clock)
    table = (
        TABLE if stream else {name: value for name, value in TABLE.items() if name != "StreamSpecification"}
    )
    engine.call("CreateTable", table)
    db = connect_async(engine, clock=clock)
    yield Studio(db=db, where=TablesLocation("memory", "memory", "us-east-1"), clock=clock, engine=engine)
    await db.close()
    engine.close()


def put(studio: Studio, number: int, **more: Any) -> None:
    assert studio.engine is not None
    item = {"pk": {"S": f"ORDER#{number % 97}"}, "sk": {"S": f"LINE#{number:06d}"}, **more}
    studio.engine.call("PutItem", {"TableName": "Orders", "Item": item})


async def events(studio: Studio, **asked: Any) -> AsyncGenerator[Event, None]:
    response: Any = await stream_changes(studio, ChangesRequest("Orders", **asked))
    try:
        async for chunk in response.body_iterator:
            result: dict[str, str] = {}
            for line in chunk.decode().rstrip("\n").split("\n"):
                name, _, value = line.partition(": ")
                result[name] = value
            if "event" in result:
                yield Event(result["event"], result.get("id"), json.loads(result["data"]))
    finally:
        await response.body_iterator.aclose()


async def read(studio: Studio, count: int, **asked: Any) -> tuple[list[Event], list[dict[str, Any]]]:
    """Read until so many changes have come, then lose the connection."""
    seen: list[Event] = []
    changes: list[dict[str, Any]] = []
    response = events(studio, **asked)
    async with asyncio.timeout(30):
        async for event in response:
            seen.append(event)
            changes += event.changes
            if len(changes) >= count:
                break
    await response.aclose()
    return seen, changes


def refusal(error: TavolaError) -> str:
    return problem_of(error).code


@pytest.mark.slow
def test_ten_thousand_changes_and_two_lost_connections() -> None:
    """No change is lost or repeated although writes continue between connections."""

    async def story() -> None:
        async with orders() as studio:
            first = events(studio)
            hello = await anext(first)
            for number in range(4_000):
                put(studio, number)
            got: list[dict[str, Any]] = []
            position = hello.position
            async for event in first:
                got += event.changes
                position = event.position or position
                if len(got) >= 1_500:
                    break
            await first.aclose()  # the first loss, in the middle
            for number in range(4_000, 8_000):
                put(studio, number)
            second = events(studio, last_event_id=position)
            async for event in second:
                got += event.changes
                position = event.position or position
                if len(got) >= 6_000:
                    break
            await second.aclose()
            for number in range(8_000, 10_000):
                put(studio, number)
            _, rest = await read(studio, 10_000 - len(got), position=position)
            got += rest

            numbers = [int(each["keys"]["sk"]["S"].removeprefix("LINE#")) for each in got]
            assert sorted(numbers) == list(range(10_000))
            assert len({each["sequence"] for each in got}) == 10_000
            by_key: dict[str, list[str]] = {}
            for each in got:
                by_key.setdefault(each["keys"]["pk"]["S"], []).append(each["sequence"])
            assert all(result == sorted(result) for result in by_key.values())

    asyncio.run(story())


def test_shards_that_roll_and_split() -> None:
    """A position holds across the end of shards and their children, also where several are open."""

    async def story() -> None:
        clock = ManualClock()
        async with orders(clock) as studio:
            assert studio.engine is not None
            seen, _ = await read(studio, 0)
            position = seen[0].position
            got: list[dict[str, Any]] = []
            for turn in range(4):
                for number in range(turn * 100, turn * 100 + 100):
                    put(studio, number)
                clock.advance(4 * 3_600 + 1)
                studio.engine.run_background_work(1_000.0)
                if turn == 1:
                    studio.engine.call(
                        "UpdateTable",
                        {
                            "TableName": "Orders",
                            "WarmThroughput": {"WriteUnitsPerSecond": 9_000, "ReadUnitsPerSecond": 12_000},
                        },
                    )
                seen, changes = await read(studio, 100, position=position)
                got += changes
                position = seen[-1].position
            shown = await stream_state(studio, StreamRequest("Orders"))

            assert sorted(int(each["keys"]["sk"]["S"][5:]) for each in got) == list(range(400))
            assert shown.shards > 1
            assert len({each["shard"] for each in got}) > 4

    asyncio.run(story())


def test_a_position_past_the_day_is_a_gap_and_no_silence() -> None:
    """If unread records were trimmed, a gap is reported before the next change."""

    async def story() -> None:
        clock = ManualClock()
        async with orders(clock) as studio:
            assert studio.engine is not None
            put(studio, 1)
            seen, _ = await read(studio, 1, position="start")
            position = seen[-1].position
            put(studio, 2)
            for _ in range(8):
                clock.advance(4 * 3_600)
                studio.engine.run_background_work(1_000.0)
            put(studio, 3)
            seen, changes = await read(studio, 1, position=position)

            kinds = [event.kind for event in seen]
            assert "gap" in kinds
            assert kinds.index("gap") < kinds.index("changes")
            assert [each["keys"]["sk"]["S"] for each in changes] == ["LINE#000003"]
            gap = next(event for event in seen if event.kind == "gap")
            assert gap.data["loss"] in ("trimmed", "gone")
            assert "Orders" in gap.data["detail"]

    asyncio.run(story())


def test_a_change_has_its_differences() -> None:
    """Both images, the differences by type, the entity, the parts of the key, and who did it."""

    async def story() -> None:
        async with orders() as studio:
            put(studio, 1, total={"N": "1.50"}, tags={"SS": ["a", "b"]})
            put(studio, 1, total={"N": "1.5"}, tags={"SS": ["b", "c"]}, updated_by={"S": "ann"})
            assert studio.engine is not None
            key = {"pk": {"S": "ORDER#1"}, "sk": {"S": "LINE#000001"}}
            studio.engine.call("DeleteItem", {"TableName": "Orders", "Key": key})
            _, (made, changed, gone) = await read(studio, 3, position="start")

            assert [each["event"] for each in (made, changed, gone)] == ["INSERT", "MODIFY", "REMOVE"]
            assert made["old"] is None
            assert gone["new"] is None
            assert gone["old"] == changed["new"]
            assert [each["path"] for each in changed["differences"]] == ["tags", "updated_by"]
            assert changed["differences"][0]["gained"] == ["c"]
            assert changed["differences"][0]["lost"] == ["a"]
            assert changed["actor"] == "ann"
            assert made["entity"] == "LINE"
            assert made["parts"][0]["pieces"][-1]["text"] == "1"

    asyncio.run(story())


def test_an_expiry_has_its_actor() -> None:
    """A deletion by time to live is labelled as such."""

    async def story() -> None:
        clock = ManualClock()
        async with orders(clock) as studio:
            assert studio.engine is not None
            studio.engine.call(
                "UpdateTimeToLive",
                {
                    "TableName": "Orders",
                    "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "ends"},
                },
            )
            put(studio, 1, ends={"N": str(int(clock.now()) + 10)})
            clock.advance(120)
            studio.engine.run_background_work(1_000.0)
            _, (_, gone) = await read(studio, 2, position="start")

            assert (gone["event"], gone["actor"]) == ("REMOVE", "TTL")

    asyncio.run(story())


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"events": "REMOVE"}, ["REMOVE"]),
        ({"events": "insert,remove"}, ["INSERT", "INSERT", "REMOVE"]),
        ({"entities": "LINE", "events": "INSERT"}, ["INSERT", "INSERT"]),
        ({"prefix": "ORDER#2"}, ["INSERT"]),
        ({"prefix": "LINE#000001"}, ["INSERT", "MODIFY", "REMOVE"]),
    ],
)
def test_filters(asked: dict[str, Any], found: list[str]) -> None:
    """Only matching changes are sent, filtered where the stream is read."""

    async def story() -> None:
        async with orders() as studio:
            put(studio, 1)
            put(studio, 1, total={"N": "2"})
            put(studio, 2)
            assert studio.engine is not None
            key = {"pk": {"S": "ORDER#1"}, "sk": {"S": "LINE#000001"}}
            studio.engine.call("DeleteItem", {"TableName": "Orders", "Key": key})
            response = await read_changes(studio, ChangesRequest("Orders", position="start", **asked))

            assert sorted(each.event for each in response.changes) == found
            assert not response.more

    asyncio.run(story())


def test_a_filter_that_nothing_passes_still_moves_the_position() -> None:
    """What was looked at and not wanted is not looked at again after a lost connection."""

    async def story() -> None:
        async with orders() as studio:
            for number in range(300):
                put(studio, number)
            response = await read_changes(
                studio, ChangesRequest("Orders", position="start", prefix="nothing")
            )
            again = await read_changes(studio, ChangesRequest("Orders", position=response.position))

            assert response.changes == again.changes == ()

    asyncio.run(story())


def test_pages_and_replays() -> None:
    """Pages follow each other without a gap; a sequence number is a place to begin again at."""

    async def story() -> None:
        async with orders() as studio:
            for number in range(700):
                put(studio, number)
            got: list[Any] = []
            position = "start"
            more = True
            while more:
                response = await read_changes(studio, ChangesRequest("Orders", position=position, limit=64))
                got += response.changes
                position, more = response.position, response.more
                assert len(response.changes) <= 64
            middle = sorted(each.sequence for each in got)[349]
            replayed = await read_changes(
                studio, ChangesRequest("Orders", position="start", after=middle, limit=1_000)
            )

            assert sorted(int(each.keys["sk"]["S"][5:]) for each in got) == list(range(700))
            assert len(replayed.changes) == 350

    asyncio.run(story())


def test_a_page_of_large_items_is_short() -> None:
    """A page has at most the bytes of one message, whatever the limit; the next page continues after it."""

    async def story() -> None:
        async with orders() as studio:
            for number in range(12):
                put(studio, number, text={"S": "x" * 150_000})
            got: list[Any] = []
            position, more, pages = "start", True, 0
            while more:
                response = await read_changes(
                    studio, ChangesRequest("Orders", position=position, limit=1_000)
                )
                position, more, pages = response.position, response.more, pages + 1
                got += response.changes
                assert sum(len(str(each.new)) for each in response.changes) < BYTES_MAX + 200_000

            assert sorted(int(each.keys["sk"]["S"][5:]) for each in got) == list(range(12))
            assert pages > 2

    asyncio.run(story())


def test_a_page_does_not_look_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing passes the filter for long, the page ends, and its position says where to go on."""
    monkeypatch.setattr(changes_api, "_PAGE_S", 0.0)
    monkeypatch.setattr(changes_api, "FollowOptions", partial(FollowOptions, mark_s=0.0))

    async def story() -> None:
        async with orders() as studio:
            for number in range(2_500):
                put(studio, number)
            response = await read_changes(
                studio, ChangesRequest("Orders", position="start", prefix="nothing")
            )

            assert response.more
            assert response.changes == ()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("region", "actor"), [("us-east-1", "ann"), ("eu-west-1", "replication from eu-west-1")]
)
def test_only_another_region_replicates(region: str, actor: str) -> None:
    """A global table marks what is written here, too, with its region; that is no replication."""
    item = {"pk": {"S": "x"}, "aws:rep:updateregion": {"S": region}, "updated_by": {"S": "ann"}}

    assert Actors(None, "us-east-1").actor(None, None, item) == actor


def test_the_author_is_read_from_the_item_even_without_a_design() -> None:
    """A program may write `updated_by` into an item whose entity has no such field."""
    design = bookshop_design().tables[0]
    named = {entity.name for entity in design.entities}
    item = {"pk": {"S": "x"}, "updated_by": {"S": "alice"}}

    assert {Actors(design).actor(name, item, item) for name in named} == {"alice"}


def test_a_slow_reader_holds_the_follower_up() -> None:
    """A slow reader does not make memory grow: a message is built after the previous one was taken."""

    async def story() -> None:
        async with orders() as studio:
            for number in range(5_000):
                put(studio, number)
            calls = 0
            request = studio.db.backend.call_all  # type: ignore[attr-defined]  # an embedded backend has it

            async def counted(calls_: Any) -> Any:
                nonlocal calls
                calls += sum(operation == "GetRecords" for operation, _ in calls_)
                return await request(calls_)

            studio.db.backend.call_all = counted  # type: ignore[attr-defined]
            response = events(studio, position="start")
            await anext(response)
            event = await anext(response)
            before = calls
            for _ in range(200):  # turns of the loop, in which a follower that did not wait would read on
                await asyncio.sleep(0)

            assert len(event.changes) <= CHANGES_MAX
            assert calls == before
            await response.aclose()

    asyncio.run(story())


def test_no_task_outlives_its_reader() -> None:
    """Closing the page ends the follower, whether it waits or works."""

    async def story() -> None:
        async with orders() as studio:
            before = asyncio.all_tasks()
            response = events(studio)
            await anext(response)
            waiting = asyncio.ensure_future(anext(response))
            for _ in range(20):
                await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await response.aclose()

            assert asyncio.all_tasks() == before

    asyncio.run(story())


def test_a_stream_can_be_turned_on() -> None:
    """There is a refusal with a remedy, and the remedy is an endpoint that read-only refuses."""

    async def story() -> None:
        async with orders(stream=False) as studio:
            with pytest.raises(RequestRefused) as refused:
                await stream_changes(studio, ChangesRequest("Orders"))
            before = await stream_state(studio, StreamRequest("Orders"))
            after = await set_stream(studio, SetStreamRequest("Orders"))
            put(studio, 1)
            response = await read_changes(studio, ChangesRequest("Orders", position="start"))

            assert refusal(refused.value) == "stream-off"
            assert not before.on
            assert before.problem is not None
            assert (after.on, after.view) == (True, "NEW_AND_OLD_IMAGES")
            assert len(response.changes) == 1
            assert BY_NAME["POST /changes/stream"].is_write

    asyncio.run(story())


@pytest.mark.parametrize("position", ["nonsense", "eJwr", "x" * 300_000, "é"])
def test_a_position_that_is_none_is_refused(position: str) -> None:
    """What a browser gives back is checked before it is used."""

    async def story() -> None:
        async with orders() as studio:
            with pytest.raises(RequestRefused) as refused:
                await stream_changes(studio, ChangesRequest("Orders", position=position))

            assert refusal(refused.value) == "position-malformed"

    asyncio.run(story())


def test_a_position_of_another_table_is_refused() -> None:
    """A place in one stream means nothing in another."""

    async def story() -> None:
        async with orders() as studio:
            seen, _ = await read(studio, 0)
            document = dict(decode_position(seen[0].position or "")) | {"table": "Others"}
            with pytest.raises(TavolaError):
                await stream_changes(studio, ChangesRequest("Orders", position=encode_position(document)))

    asyncio.run(story())


@pytest.mark.parametrize("asked", [{"events": "UPSERT"}, {"after": "x"}, {"since": "soon"}])
def test_filters_that_mean_nothing_are_refused(asked: dict[str, Any]) -> None:
    """A filter that can match nothing is refused, also by the endpoint that validates a stream request."""

    async def story() -> None:
        async with orders() as studio:
            with pytest.raises(TavolaError):
                await stream_changes(studio, ChangesRequest("Orders", **asked))
            with pytest.raises(TavolaError):
                await stream_state(studio, StreamRequest("Orders", **asked))

    asyncio.run(story())


def test_a_stream_that_is_switched_off_is_over() -> None:
    """The remaining changes are sent, then the end of the stream."""

    async def story() -> None:
        async with orders() as studio:
            put(studio, 1)
            await set_stream(studio, SetStreamRequest("Orders", on=False))
            seen = [event async for event in events(studio, position="start")]

            assert [event.kind for event in seen][-1] == "over"
            assert sum(len(event.changes) for event in seen) == 1

    asyncio.run(story())


def test_silence_is_broken_by_signs_of_life() -> None:
    """A stream in which nothing happens is not taken for a dead one, by a proxy or by anybody."""

    async def story() -> None:
        async with orders() as studio:
            teller = ChangeRenderer(await load_recogniser(studio, "Orders"), Actors(None), ChangeFilter())
            manners = FollowOptions(poll_s=0.01, beat_s=0.01)
            follower = await StreamFollower.open(studio.db, "Orders", teller, start="latest", options=manners)
            async with aclosing(follower.messages()) as messages:
                first, second = await anext(messages), await anext(messages)

            assert (first.event, second.event) == ("hello", "beat")
            assert encode_event(second) == b": beat\n\n"

    asyncio.run(story())
