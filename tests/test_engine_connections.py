"""Connections over an engine that somebody else opened, also beside a server on the same loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import tavola
from tavola.backends.embedded import AsyncEmbeddedBackend
from tavola.clock import SYSTEM_CLOCK, ManualClock
from tavola.connections import InvalidConnectionTarget, connect, connect_async
from tavola.engine import Engine, StoreError
from tavola.engine.storage import Store
from tavola.protocol.faults import ConditionalCheckFailedFault, InternalServerFault
from tavola.server.endpoint import ServerEndpoint
from tavola.server.listener import Server
from tests.test_connections import TABLE

KEY = {"pk": {"S": "a"}}
PUT = {"TableName": "Orders", "Item": KEY}
GET = {"TableName": "Orders", "Key": KEY}


def test_closing_the_connection_leaves_the_engine() -> None:
    """The engine is closed by who opened it, and several connections see the same tables."""
    with Engine.open() as engine:
        with connect(engine) as first:
            first.call("CreateTable", TABLE)
        with connect(engine) as second:
            assert second.call("ListTables") == {"TableNames": ["Orders"]}

        async def look() -> dict[str, Any]:
            async with connect_async(engine) as third:
                return await third.call("ListTables")

        assert asyncio.run(look()) == {"TableNames": ["Orders"]}
        assert engine.call("ListTables", {}) == {"TableNames": ["Orders"]}


def test_an_engine_that_was_closed_says_so() -> None:
    """Its connections are told what became of it."""
    with Engine.open() as engine:
        connection = connect(engine)

    with pytest.raises(StoreError, match="closed"):
        connection.call("ListTables")


def test_region_and_account_tell_tables_apart() -> None:
    """The scope is the connection's."""
    with Engine.open() as engine:
        connect(engine, region="eu-west-1", account="111122223333").call("CreateTable", TABLE)

        assert connect(engine).call("ListTables") == {"TableNames": []}
        there = connect(engine, region="eu-west-1", account="111122223333")
        assert there.call("ListTables") == {"TableNames": ["Orders"]}


def test_the_client_goes_by_the_clock_of_the_engine() -> None:
    """Whoever opened the engine said what time it is; the client's own settings apply as ever."""
    clock = ManualClock(1_800_000_000.0)
    with Engine.open(clock=clock) as engine:
        connection = connect(engine, table_prefix="staging-", cursor_secret=b"s" * 32)

        assert connection.context.clock is clock
        assert connection.context.prefix == "staging-"
        assert connect(engine, clock=SYSTEM_CLOCK).context.clock is SYSTEM_CLOCK


@pytest.mark.parametrize("connecting", [connect, connect_async])
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"sync": "off"}, "sync does not apply to an open engine; pass it to Engine.open"),
        ({"cache_mb": 5}, "cache_mb does not apply to an open engine"),
        ({"profile": "x"}, "profile does not apply to an engine in this process; valid settings: region"),
        ({"sinc": "off"}, "sinc is not a setting"),
        ({"account": "12"}, "'12' is not an account"),
    ],
)
def test_options_of_engine_open_are_refused(
    connecting: Callable[..., Any], settings: dict[str, Any], sentence: str
) -> None:
    """Options that belong to Engine.open are refused by name."""
    with Engine.open() as engine, pytest.raises(InvalidConnectionTarget, match=sentence):
        connecting(engine, **settings)


@pytest.mark.parametrize("target", [Path("shop.db"), None, 5])
def test_what_is_neither_a_target_nor_an_engine(target: Any) -> None:
    """A path is told how a file is named."""
    with pytest.raises(InvalidConnectionTarget, match="file:PATH"):
        connect(target)


def waits(engine: Engine) -> bool:
    """Whether something was written that could still be lost."""
    return engine.dirty


class Syncs:
    """Counts the commits of a store, and fails where it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.failing = False
        plain = Store.commit

        def commit(store: Store) -> None:
            self.count += 1
            if self.failing:
                raise StoreError("the disk said no")
            plain(store)

        monkeypatch.setattr(Store, "commit", commit)


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Syncs:
    """What becomes of commits."""
    return Syncs(monkeypatch)


@pytest.fixture(params=["memory", "file"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """An engine with a table."""
    with Engine.open(tmp_path / "shop.db" if request.param == "file" else None) as made:
        made.call("CreateTable", TABLE)
        yield made


def test_tasks_of_one_turn_share_a_sync(tmp_path: Path, syncs: Syncs) -> None:
    """Writes that are asked for together commit together; each is answered when it is on the disk."""
    with Engine.open(tmp_path / "shop.db") as engine:
        engine.call("CreateTable", TABLE)
        before = syncs.count

        async def put(connection: tavola.AsyncConnection, name: str) -> bool:
            await connection.call("PutItem", {"TableName": "Orders", "Item": {"pk": {"S": name}}})
            return engine.dirty

        async def work() -> list[bool]:
            async with connect_async(engine) as one, connect_async(engine) as other:
                return await asyncio.gather(
                    *(put(one if number % 2 else other, str(number)) for number in range(20))
                )

        assert asyncio.run(work()) == [False] * 20
        assert syncs.count - before == 1
        assert engine.call("Scan", {"TableName": "Orders"})["Count"] == 20


@asynccontextmanager
async def served(engine: Engine) -> AsyncIterator[ServerEndpoint]:
    """Serve an engine on the loop that runs."""
    server = Server(engine, port=0)
    await server.start()
    try:
        yield server.endpoint
    finally:
        await server.stop()


async def _raw(
    endpoint: ServerEndpoint, operation: str, request: dict[str, Any]
) -> tuple[int, dict[str, Any]]:
    """Ask the endpoint as a stranger does."""
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    body = json.dumps(request).encode()
    head = (
        f"POST / HTTP/1.1\r\nHost: {endpoint.host}:{endpoint.port}\r\nX-Amz-Target: DynamoDB_20120810.{operation}\r\n"
        f"Content-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
        "Authorization: AWS4-HMAC-SHA256 Credential=AKID/20261101/us-east-1/dynamodb/aws4_request, "
        f"SignedHeaders=host, Signature={'0' * 64}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    first, _, rest = answer.partition(b"\r\n\r\n")
    return int(first.split()[1]), json.loads(rest)


def test_beside_a_server_on_the_same_loop(engine: Engine) -> None:
    """The endpoint and the connections tell the same, while both write at once."""

    async def work() -> None:
        async with served(engine) as endpoint, connect_async(engine) as connection:
            beside = connect(engine)

            async def put(number: int) -> None:
                item = {"TableName": "Orders", "Item": {"pk": {"S": str(number)}}}
                if number % 3 == 0:
                    status, _ = await _raw(endpoint, "PutItem", item)
                    assert status == 200
                elif number % 3 == 1:
                    await connection.call("PutItem", item)
                else:
                    beside.call("PutItem", item)
                    assert not engine.dirty

            await asyncio.gather(*(put(number) for number in range(30)))
            status, counted = await _raw(endpoint, "Scan", {"TableName": "Orders", "Select": "COUNT"})

            assert (status, counted["Count"]) == (200, 30)
            assert len((await connection.call("Scan", {"TableName": "Orders"}))["Items"]) == 30

    asyncio.run(work())


@pytest.mark.parametrize("asking", ["async", "sync", "mock"])
def test_no_answer_tells_of_what_a_server_has_only_gathered(
    engine: Engine, asking: str, tmp_path: Path
) -> None:
    """A read beside an open group is answered when the group is durable; so is a refusal."""

    async def ask() -> None:
        async with connect_async(engine) as connection:
            assert await connection.call("GetItem", GET) == {"Item": KEY}

    async def work() -> None:
        engine.collect_writes()  # as the server does when a write comes in
        engine.call("PutItem", PUT)
        assert engine.dirty
        if asking == "async":
            await ask()
        elif asking == "sync":
            with pytest.raises(ConditionalCheckFailedFault):
                connect(engine).call("PutItem", PUT | {"ConditionExpression": "attribute_not_exists(pk)"})
        else:
            with tavola.mock(engine=engine) as mocked:
                mocked.connection.call("GetItem", GET)

        assert not waits(engine)
        engine.commit()

    asyncio.run(work())


@pytest.mark.parametrize("failing", ["server", "async", "sync"])
def test_a_commit_that_fails_is_told_to_all_who_wrote(engine: Engine, syncs: Syncs, failing: str) -> None:
    """Whoever commits first and fails, nobody is told that a write was kept; and the next write works."""

    async def put(connection: tavola.AsyncConnection, name: str) -> None:
        await connection.call("PutItem", {"TableName": "Orders", "Item": {"pk": {"S": name}}})

    async def work() -> None:
        async with connect_async(engine) as one, connect_async(engine) as other:
            engine.collect_writes()
            engine.call("PutItem", PUT)
            syncs.failing = True
            tasks = [asyncio.ensure_future(put(one, "b")), asyncio.ensure_future(put(other, "c"))]
            if failing == "sync":
                with pytest.raises(InternalServerFault, match="the disk said no"):
                    connect(engine).call("PutItem", PUT)
            elif failing == "server":
                await asyncio.sleep(0)  # the tasks write, and wait
                with pytest.raises(Exception, match="the disk said no"):
                    engine.commit()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            if failing != "server":
                with pytest.raises(StoreError, match="the disk said no"):
                    engine.commit()
            assert all(isinstance(each, InternalServerFault) for each in outcomes), outcomes
            syncs.failing = False
            await put(one, "d")

    asyncio.run(work())

    found = engine.call("Scan", {"TableName": "Orders"})["Items"]
    assert found == [{"pk": {"S": "d"}}]


def test_a_task_that_is_cancelled_leaves_the_others(tmp_path: Path) -> None:
    """Who no longer waits for the disk does not keep others from it, and the write is kept."""
    with Engine.open(tmp_path / "shop.db") as engine:
        engine.call("CreateTable", TABLE)

        async def work() -> None:
            async with connect_async(engine) as connection:
                item = {"TableName": "Orders", "Item": {"pk": {"S": "b"}}}
                lost = asyncio.ensure_future(connection.call("PutItem", PUT))
                kept = asyncio.ensure_future(connection.call("PutItem", item))
                await asyncio.sleep(0)
                lost.cancel()
                await kept
                with pytest.raises(asyncio.CancelledError):
                    await lost

        asyncio.run(work())
        assert engine.call("Scan", {"TableName": "Orders"})["Count"] == 2


def test_a_loop_that_ended_in_between_is_not_waited_for(tmp_path: Path) -> None:
    """A connection goes on in the next loop, as a second `asyncio.run` has one."""
    with Engine.open(tmp_path / "shop.db") as engine:
        engine.call("CreateTable", TABLE)
        connection = connect_async(engine)
        loop = asyncio.new_event_loop()
        left = loop.create_task(connection.call("PutItem", PUT))
        loop.call_soon(loop.stop)
        loop.run_forever()  # the write is done, its sync is not
        left.cancel()
        assert engine.dirty
        item = {"TableName": "Orders", "Item": {"pk": {"S": "b"}}}
        asyncio.run(asyncio.wait_for(connection.call("PutItem", item), 5))

        assert not waits(engine)
        assert engine.call("Scan", {"TableName": "Orders"})["Count"] == 2
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(left)
        loop.close()


def test_a_read_on_the_next_loop_waits_for_nothing_of_the_last(tmp_path: Path) -> None:
    """What a loop left open and somebody else made durable is no reason to wait on a loop that ended."""
    with Engine.open(tmp_path / "shop.db") as engine:
        engine.call("CreateTable", TABLE)
        connection = connect_async(engine)
        loop = asyncio.new_event_loop()
        left = loop.create_task(connection.call("PutItem", PUT))
        loop.call_soon(loop.stop)
        loop.run_forever()
        left.cancel()
        connect(engine).call("ListTables")
        assert not engine.dirty

        assert asyncio.run(asyncio.wait_for(connection.call("GetItem", GET), 5)) == {"Item": KEY}
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(left)
        loop.close()


@pytest.mark.parametrize("failing", ["beside", "the same connection", "its batch"])
def test_what_was_durable_is_not_told_as_failed(tmp_path: Path, syncs: Syncs, failing: str) -> None:
    """Whose write somebody else made durable has no part in what fails after that, in the same turn of the loop."""

    def put(name: str) -> dict[str, Any]:
        return {"TableName": "Orders", "Item": {"pk": {"S": name}}}

    with Engine.open(tmp_path / "shop.db") as engine:
        engine.call("CreateTable", TABLE)
        backend, beside = AsyncEmbeddedBackend(engine, owned=False), connect(engine)

        async def fail() -> Any:
            beside.call("ListTables")  # makes durable what was gathered
            syncs.failing = True
            if failing == "beside":
                return beside.call("PutItem", put("b"))
            if failing == "its batch":
                (told,) = await backend.call_all([("PutItem", put("b"))])
                return told
            return await backend.call("PutItem", put("b"))

        async def work() -> Any:
            return await asyncio.gather(backend.call("PutItem", put("a")), fail(), return_exceptions=True)

        first, second = asyncio.run(work())
        syncs.failing = False
        asyncio.run(backend.call("PutItem", put("c")))

        assert first == {}
        assert isinstance(second, InternalServerFault)
        found = engine.call("Scan", {"TableName": "Orders"})["Items"]
        assert sorted(item["pk"]["S"] for item in found) == ["a", "c"]


def test_an_answer_out_of_a_group_that_fails_is_not_told(tmp_path: Path, syncs: Syncs) -> None:
    """A read or a refusal that saw what was undone after it is an error, though it wrote nothing itself."""
    with Engine.open(tmp_path / "shop.db") as engine:
        engine.call("CreateTable", TABLE)
        one, other = AsyncEmbeddedBackend(engine, owned=False), AsyncEmbeddedBackend(engine, owned=False)

        async def work() -> Any:
            syncs.failing = True
            return await asyncio.gather(
                one.call("PutItem", PUT),
                other.call("GetItem", GET),
                other.call("PutItem", PUT | {"ConditionExpression": "attribute_not_exists(pk)"}),
                return_exceptions=True,
            )

        told = asyncio.run(work())
        syncs.failing = False

        assert [type(each) for each in told] == [InternalServerFault] * 3
        assert engine.call("GetItem", GET) == {}


def test_an_engine_that_was_closed_under_a_group_says_so(tmp_path: Path) -> None:
    """What was not durable is told as not kept, what was as kept; and who asks after that is told what became of it."""

    async def work(*, settled: bool) -> Any:
        engine = Engine.open(tmp_path / "shop.db")
        if not settled:
            engine.call("CreateTable", TABLE)
        beside, connection = connect(engine), connect_async(engine)
        write = asyncio.ensure_future(connection.call("PutItem", PUT))
        await asyncio.sleep(0)
        if settled:
            beside.call("ListTables")
        engine.close()
        with pytest.raises(StoreError, match="the engine is closed; open it again"):
            beside.call("ListTables")
        with pytest.raises(StoreError, match="the engine is closed; open it again"):
            await connection.call("ListTables")
        return await asyncio.gather(write, return_exceptions=True)

    (lost,) = asyncio.run(work(settled=False))
    (kept,) = asyncio.run(work(settled=True))

    assert isinstance(lost, StoreError)
    assert "closed before the write was durable" in str(lost)
    assert kept == {}
    with Engine.open(tmp_path / "shop.db") as again:
        assert again.call("GetItem", GET) == {"Item": KEY}


def test_closing_makes_durable_what_waits(tmp_path: Path) -> None:
    """A connection that is closed leaves no group open in an engine of others."""
    with Engine.open(tmp_path / "shop.db") as engine:
        engine.call("CreateTable", TABLE)

        async def work() -> None:
            connection = connect_async(engine)
            write = asyncio.ensure_future(connection.call("PutItem", PUT))
            await asyncio.sleep(0)
            await connection.close()
            assert not engine.dirty
            await write

        asyncio.run(work())
        assert engine.call("GetItem", GET) == {"Item": KEY}


def test_background_work_is_done_though_nobody_tends(tmp_path: Path) -> None:
    """Expired items are deleted from a file that only a loop writes to."""
    clock = ManualClock(1_800_000_000.0)
    with Engine.open(tmp_path / "shop.db", clock=clock, ttl_interval_s=1) as engine:
        engine.call("CreateTable", TABLE)
        ttl = {"AttributeName": "until", "Enabled": True}
        engine.call("UpdateTimeToLive", {"TableName": "Orders", "TimeToLiveSpecification": ttl})

        async def work() -> None:
            async with connect_async(engine) as connection:
                await connection.call("PutItem", PUT | {"Item": KEY | {"until": {"N": "1800000001"}}})
                clock.advance(3_700)
                for number in range(3):
                    item = {"TableName": "Orders", "Item": {"pk": {"S": f"later-{number}"}}}
                    await connection.call("PutItem", item)
                    clock.advance(60)
                assert await connection.call("GetItem", GET) == {}

        asyncio.run(work())
