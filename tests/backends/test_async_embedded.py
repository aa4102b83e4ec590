"""The engine behind the port, on an event loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tavola.backends import embedded
from tavola.backends.embedded import AsyncEmbeddedBackend, EmbeddedBackend
from tavola.backends.recording import AsyncRecordingBackend
from tavola.client.backend import AsyncAsOfBackend, AsyncConcurrentBackend, ConcurrentBackend
from tavola.engine import Engine
from tavola.protocol.faults import Fault, ResourceNotFoundFault
from tests.backends.test_embedded import KEY, TABLE

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
        for results in (waiting.call_all(calls), asyncio.run(on_loop.call_all(calls))):
            assert results[0] == {}
            assert isinstance(results[1], Fault)
            assert results[2] == {"TableNames": ["Orders"]}
        assert isinstance(waiting, ConcurrentBackend)
        assert isinstance(on_loop, AsyncConcurrentBackend)
        assert isinstance(on_loop, AsyncAsOfBackend)


def test_a_task_with_many_calls_yields_to_others() -> None:
    """Calls never wait, so now and then they yield to the loop."""

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


class Passing:
    """A clock that advances with each reading."""

    def __init__(self, step_s: float) -> None:
        self.step_s = step_s
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


@pytest.mark.parametrize("path", [None, "shop.db"])
@pytest.mark.parametrize("batch", [1, 20])
@pytest.mark.parametrize(("step_s", "turns_min", "turns_max"), [(0.01, 100, 130), (0.0, 0, 0)])
def test_the_loop_has_a_turn_by_the_time_that_it_was_held(
    path: str | None, batch: int, step_s: float, turns_min: int, turns_max: int,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Calls that take long let others in after each, one by one or in batches; calls that take no time need not."""
    monkeypatch.setattr(embedded, "monotonic", Passing(step_s))

    async def work() -> int:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        backend = AsyncEmbeddedBackend(Engine.open(None if path is None else tmp_path / path))
        beside = asyncio.ensure_future(other())
        await asyncio.sleep(0)
        for _ in range(100 // batch):
            if batch == 1:
                await backend.call("ListTables", {})
            else:
                results = await backend.call_all([("ListTables", {})] * batch)
                assert results == [{"TableNames": []}] * batch
        beside.cancel()
        await backend.close()
        return turns

    assert turns_min <= asyncio.run(work()) <= turns_max


def test_calls_on_a_loop_are_written_down() -> None:
    """The recorder records calls and faults of an asynchronous backend too."""

    async def work() -> None:
        backend = AsyncRecordingBackend(AsyncEmbeddedBackend(Engine.open()))
        await backend.call("ListTables", {"Limit": 1})
        with pytest.raises(ResourceNotFoundFault) as caught:
            await backend.call("GetItem", MISSING)
        await backend.close()

        created, refused = backend.calls
        assert (created.operation, created.request, created.response) == (
            "ListTables",
            {"Limit": 1},
            {"TableNames": []},
        )
        assert (refused.response, refused.error) == (None, caught.value)
        assert created.latency_s >= 0
        backend.clear()
        assert backend.calls == ()

    asyncio.run(work())
