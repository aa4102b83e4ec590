"""From a target to something that answers on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import uvloop

import tavola
from tavola.client.backend import AsOfUnsupported
from tavola.client.connection import AsyncConnection, ConnectionClosed
from tavola.connections import InvalidConnectionTarget, connect_async
from tavola.engine import Engine
from tavola.protocol.faults import InvalidRestoreTimeFault, ResourceNotFoundFault, ValidationFault
from tavola.server.listener import running
from tests.test_connections import TABLE

KEY = {"pk": {"S": "a"}}
Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """One of the loops."""
    chosen: Run = request.param
    return chosen


@asynccontextmanager
async def connected(where: str, tmp_path: Path) -> AsyncIterator[AsyncConnection]:
    """Connect to memory, a file or a server."""
    if where == "http":
        with Engine.open() as engine, running(engine) as served:
            async with connect_async(served.url, account="000000000000") as connection:
                yield connection
    else:
        target = "memory:" if where == "memory" else f"file:{tmp_path / 'shop.db'}"
        async with connect_async(target) as connection:
            yield connection


@pytest.mark.parametrize("where", ["memory", "file", "http"])
def test_the_same_answers_everywhere(where: str, run: Run, tmp_path: Path) -> None:
    """Memory, a file and a server answer alike, and faults are the same."""

    async def work() -> None:
        async with connected(where, tmp_path) as connection:
            made = await connection.call("CreateTable", TABLE)
            await connection.call("PutItem", {"TableName": "Orders", "Item": KEY})

            assert made["TableDescription"]["TableName"] == "Orders"
            assert await connection.call("GetItem", {"TableName": "Orders", "Key": KEY}) == {"Item": KEY}
            with pytest.raises(ResourceNotFoundFault):
                await connection.call("DescribeTable", {"TableName": "Nothing"})

    run(work())


@pytest.mark.parametrize("where", ["memory", "http"])
def test_the_past(where: str, run: Run, tmp_path: Path) -> None:
    """A connection as of a time reads what was and writes nothing; an item's history is told in order."""

    async def work() -> None:
        async with connected(where, tmp_path) as connection:
            await connection.call("CreateTable", TABLE)
            kept = {"PointInTimeRecoveryEnabled": True}
            await connection.call(
                "UpdateContinuousBackups", {"TableName": "Orders", "PointInTimeRecoverySpecification": kept}
            )
            await connection.call("PutItem", {"TableName": "Orders", "Item": KEY | {"v": {"S": "first"}}})
            then = datetime.now(UTC)
            await connection.call("PutItem", {"TableName": "Orders", "Item": KEY | {"v": {"S": "second"}}})

            async with await connection.as_of(then) as past:
                found = await past.call("GetItem", {"TableName": "Orders", "Key": KEY})
                assert found["Item"]["v"] == {"S": "first"}
                with pytest.raises(ValidationFault, match="as of a past time cannot write"):
                    await past.call("PutItem", {"TableName": "Orders", "Item": KEY})
            versions = [version.item async for version in connection.history("Orders", KEY)]
            assert [item and item["v"]["S"] for item in versions] == [None, "first", "second"]
            async with await connection.as_of("2020-01-01") as early:
                with pytest.raises(InvalidRestoreTimeFault):
                    await early.call("GetItem", {"TableName": "Orders", "Key": KEY})

    run(work())


def test_aws_has_no_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS is not asked what it cannot answer."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")

    async def work() -> None:
        async with connect_async("aws:eu-west-1") as connection:
            with pytest.raises(AsOfUnsupported, match="RestoreTableToPointInTime"):
                await connection.as_of(0)

    asyncio.run(work())


def test_another_server_has_no_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that would answer with what is there now is found out before it is asked."""
    from tavola.engine.operations import HANDLERS

    async def work() -> None:
        with Engine.open() as engine, running(engine) as served:
            async with connect_async(served.url, account="000000000000") as connection:
                with pytest.raises(AsOfUnsupported, match=r"127\.0\.0\.1"):
                    await connection.as_of(0)

    monkeypatch.delitem(HANDLERS, "ListItemVersions")
    asyncio.run(work())


def test_inside_a_mock_nothing_is_sent() -> None:
    """A connection to AWS is answered by the mock, in the connection's region, on a loop too."""

    async def work() -> None:
        with tavola.mock() as mocked:
            async with connect_async("aws:eu-west-1") as connection:
                await connection.call("CreateTable", TABLE)
                assert await connection.call("ListTables") == {"TableNames": ["Orders"]}
            async with connect_async("http://shop.example:1", region="eu-west-1") as other:
                assert await other.call("ListTables") == {"TableNames": ["Orders"]}
                with pytest.raises(AsOfUnsupported):
                    await (await other.as_of(0)).call("ListTables")
            assert mocked.connection.call("ListTables") == {"TableNames": []}

    asyncio.run(work())


def test_a_closed_connection_says_so() -> None:
    """After `close`, which may come twice, a call is refused by name."""

    async def work() -> None:
        connection = connect_async("memory:")
        assert repr(connection) == "<AsyncConnection to memory:>"
        await connection.close()
        await connection.close()

        assert repr(connection) == "<AsyncConnection to memory:, closed>"
        with pytest.raises(ConnectionClosed):
            await connection.call("ListTables")
        with pytest.raises(ConnectionClosed):
            await connection.as_of(0)
        with pytest.raises(ConnectionClosed):
            connection.history("Orders", KEY)

    asyncio.run(work())


def test_targets_and_settings_are_those_of_connect() -> None:
    """What is not a valid target, or does not apply to one, is refused in the same words."""
    with pytest.raises(InvalidConnectionTarget, match="is not a valid target"):
        connect_async("shop.db")
    with pytest.raises(InvalidConnectionTarget, match="timeout_s does not apply to memory:"):
        connect_async("memory:", timeout_s=5)
    for seconds in (0, -1.5):
        with pytest.raises(InvalidConnectionTarget, match="use more than 0"):
            connect_async("http://localhost:1", timeout_s=seconds)
    with pytest.raises(InvalidConnectionTarget, match="sync does not apply"):
        connect_async("http://h:1", sync="off")
