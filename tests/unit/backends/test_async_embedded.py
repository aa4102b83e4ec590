"""The engine behind the port, on an event loop."""

from __future__ import annotations

import asyncio

import pytest

from tavola.backends import AsyncEmbeddedBackend, AsyncRecordingBackend, EmbeddedBackend
from tavola.client import AsyncGathering, AsyncRemembering, Gathering
from tavola.engine import Engine
from tavola.protocol import Fault, ResourceNotFoundFault
from tests.unit.backends.test_embedded import KEY, TABLE

MISSING = {"TableName": "Nothing", "Key": {"pk": {"S": "a"}}}


def test_it_answers_as_the_other_does() -> None:
    """Responses and faults are the engine's; closing closes its own engine."""

    async def work() -> None:
        backend = AsyncEmbeddedBackend(Engine.open())
        await backend.call("CreateTable", TABLE)
        await backend.call("PutItem", {"TableName": "Orders", "Item": KEY["Key"]})
        assert await backend.call("GetItem", KEY) == {"Item": KEY["Key"]}
        with pytest.raises(ResourceNotFoundFault):
            await backend.call("GetItem", MISSING)
        await backend.close()
        await backend.close()

    asyncio.run(work())


def test_several_calls_are_answered_in_order() -> None:
    """Waiting and on a loop: responses and faults, one after another."""
    with Engine.open() as engine:
        waiting = EmbeddedBackend(engine, owned=False)
        on_loop = AsyncEmbeddedBackend(engine, owned=False)
        waiting.call("CreateTable", TABLE)
        calls = [("GetItem", KEY), ("GetItem", MISSING), ("ListTables", {})]
        for told in (waiting.call_all(calls), asyncio.run(on_loop.call_all(calls))):
            assert told[0] == {}
            assert isinstance(told[1], Fault)
            assert told[2] == {"TableNames": ["Orders"]}
        assert isinstance(waiting, Gathering)
        assert isinstance(on_loop, AsyncGathering)
        assert isinstance(on_loop, AsyncRemembering)


def test_a_task_that_only_asks_lets_the_others_in() -> None:
    """Calls never wait, so now and then the loop is given a turn."""

    async def work() -> int:
        backend = AsyncEmbeddedBackend(Engine.open())
        others = asyncio.Event()
        asyncio.get_running_loop().call_soon(others.set)
        calls = 0
        while not others.is_set():
            await backend.call("ListTables", {})
            calls += 1
            assert calls < 1000
        await backend.close()
        return calls

    assert asyncio.run(work()) > 1


def test_calls_on_a_loop_are_written_down() -> None:
    """The recorder keeps calls and faults of an asynchronous backend as of the other."""

    async def work() -> None:
        backend = AsyncRecordingBackend(AsyncEmbeddedBackend(Engine.open()))
        await backend.call("ListTables", {"Limit": 1})
        with pytest.raises(ResourceNotFoundFault) as caught:
            await backend.call("GetItem", MISSING)
        await backend.close()

        told, refused = backend.calls
        assert (told.operation, told.request, told.response) == (
            "ListTables",
            {"Limit": 1},
            {"TableNames": []},
        )
        assert (refused.response, refused.error) == (None, caught.value)
        assert told.latency_s >= 0
        backend.clear()
        assert backend.calls == ()

    asyncio.run(work())
