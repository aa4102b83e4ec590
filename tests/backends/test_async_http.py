"""Calls on a loop: many at once, cancelled ones, a second loop, work on threads."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

from tavola.backends.async_http import AsyncHttpBackend
from tavola.backends.configuration import LocalConfiguration, ServiceEndpoint
from tavola.backends.errors import EndpointUnreachable
from tavola.backends.signatures import SigningKey
from tavola.client.backend import AsyncAsOfBackend, AsyncConcurrentBackend
from tavola.engine import Engine
from tavola.protocol.operations import Service
from tavola.server.listener import running
from tests.backends.endpoints import (
    PATIENCE_S,
    OnLoop,
    Peer,
    echo,
    open_backend,
    response,
    scripted,
)
from tests.backends.test_embedded import KEY, TABLE


def named(name: str) -> dict[str, Any]:
    """Return a request that is recognized by its table."""
    return {"TableName": name}


@pytest.fixture(params=["asyncio", "uvloop"])
def shell(request: pytest.FixtureRequest) -> str:
    """One of the loops."""
    name: str = request.param
    return name


def on_loop(shell: object) -> OnLoop:
    """Return a shell as what it is here."""
    assert isinstance(shell, OnLoop)
    return shell


def test_a_thousand_calls_at_once(shell: str) -> None:
    """Each gets its own answer, over no more connections than are allowed."""

    async def work() -> list[dict[str, Any]]:
        return await asyncio.gather(*(backend.call("PutItem", named(str(each))) for each in range(1000)))

    with scripted(echo) as script, open_backend(shell, script.url, connections_max=16) as opened:
        backend = on_loop(opened).backend
        answers = on_loop(opened).run(work())

    assert answers == [named(str(each)) for each in range(1000)]
    assert script.connections <= 16


def test_a_thousand_calls_at_a_server(shell: str) -> None:
    """A Tavola server accepts them with its default limits."""

    async def work() -> list[dict[str, Any]]:
        await backend.call("CreateTable", TABLE)
        keys = [{"pk": {"S": str(each)}} for each in range(500)]
        puts = (backend.call("PutItem", {"TableName": "Orders", "Item": key}) for key in keys)
        await asyncio.gather(*puts)
        gets = (backend.call("GetItem", {"TableName": "Orders", "Key": key}) for key in keys)
        return await asyncio.gather(*gets)

    with Engine.open() as engine, running(engine) as served, open_backend(shell, served.url) as opened:
        backend = on_loop(opened).backend
        found = on_loop(opened).run(work())

    assert [each["Item"]["pk"]["S"] for each in found] == [str(each) for each in range(500)]


def test_a_cancelled_call_leaves_no_half_answer(shell: str) -> None:
    """Its connection is closed, so the rest of its response is never read as another's."""
    begun, go_on = threading.Event(), threading.Event()

    def behave(peer: Peer) -> None:
        if peer.number == 0:
            body = peer.read()
            assert body is not None
            answer = response(body)
            peer.send(answer[:50])
            begun.set()
            go_on.wait(PATIENCE_S)
            peer.send(answer[50:])
        echo(peer)

    async def work() -> dict[str, Any]:
        doomed = asyncio.create_task(backend.call("GetItem", named("doomed")))
        await asyncio.to_thread(begun.wait, PATIENCE_S)
        doomed.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doomed
        go_on.set()
        return await backend.call("GetItem", named("next"))

    with scripted(behave) as script, open_backend(shell, script.url) as opened:
        backend = on_loop(opened).backend
        assert on_loop(opened).run(work()) == named("next")

    assert script.connections == 2


@pytest.mark.parametrize("just_after", [False, True])
def test_a_call_cancelled_in_the_queue_does_not_block_others(shell: str, just_after: bool) -> None:
    """Its slot goes to the next call, whether it was cancelled before the slot was granted or just after."""

    async def work() -> list[dict[str, Any]]:
        async def first() -> dict[str, Any]:
            answer = await backend.call("GetItem", named("first"))
            if just_after:
                doomed.cancel()  # the slot was granted a moment ago, and the call has not run yet
            return answer

        leading = asyncio.create_task(first())
        doomed = asyncio.create_task(backend.call("GetItem", named("doomed")))
        last = asyncio.create_task(backend.call("GetItem", named("last")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if not just_after:
            doomed.cancel()
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(asyncio.CancelledError):
                await doomed
            return [await leading, await last, await backend.call("GetItem", named("later"))]

    with scripted(echo) as script, open_backend(shell, script.url, connections_max=1) as opened:
        backend = on_loop(opened).backend
        opened.call("GetItem", named("the way is found"))
        assert on_loop(opened).run(work()) == [named("first"), named("last"), named("later")]

    assert not [body for body in script.bodies() if b"doomed" in body]


def test_cancelling_several_calls(shell: str) -> None:
    """Cancelling `call_all` cancels all running calls, and the backend remains usable."""
    begun, go_on = threading.Event(), threading.Event()

    def behave(peer: Peer) -> None:
        while (body := peer.read()) is not None:
            if b"slow" in body:
                begun.set()
                go_on.wait(PATIENCE_S)
            peer.send(response(body))

    async def work() -> dict[str, Any]:
        many = asyncio.create_task(backend.call_all([("GetItem", named("slow"))] * 40))
        await asyncio.to_thread(begun.wait, PATIENCE_S)
        many.cancel()
        with pytest.raises(asyncio.CancelledError):
            await many
        go_on.set()
        return await backend.call("GetItem", named("next"))

    with scripted(behave) as script, open_backend(shell, script.url, concurrent_calls_max=4) as opened:
        backend = on_loop(opened).backend
        assert on_loop(opened).run(work()) == named("next")


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_second_loop() -> None:
    """A backend used by one `asyncio.run` after another starts again in each."""
    with scripted(echo) as script:
        backend = AsyncHttpBackend(LocalConfiguration(script.url))
        for name in ("one", "two"):
            assert asyncio.run(backend.call("GetItem", named(name))) == named(name)
        asyncio.run(backend.close())
        del backend
        gc.collect()  # here, and not in another test, asyncio warns of what its loops left open

    assert script.connections == 2


class Unhurried(LocalConfiguration):
    """A configuration that resolves its key and endpoint slowly, and records the thread."""

    def __init__(self, endpoint: str) -> None:
        super().__init__(endpoint)
        self.thoughts: list[tuple[str, int]] = []
        self.renewed: SigningKey | None = None
        self.fails = False

    def cached_key(self) -> SigningKey | None:
        """Return the key once it was thought of."""
        return self.renewed

    def key(self) -> SigningKey:
        """Think of the key."""
        self.thoughts.append(("key", threading.get_ident()))
        if self.fails:
            raise EndpointUnreachable("the service of keys", "it is not there")
        self.renewed = super().key()
        return self.renewed

    def resolve(self, service: Service) -> ServiceEndpoint:
        """Think of the way."""
        self.thoughts.append((service, threading.get_ident()))
        return super().resolve(service)


def test_slow_configuration_is_resolved_once_on_a_thread(shell: str) -> None:
    """Credentials and endpoint are resolved off the loop, and concurrent calls wait for the same result."""

    async def work() -> None:
        await asyncio.gather(*(backend.call("GetItem", KEY) for _ in range(50)))

    with scripted(echo) as script:
        configuration = Unhurried(script.url)
        with open_backend(shell, configuration) as opened:
            backend = on_loop(opened).backend
            on_loop(opened).run(work())
            opened.call("GetItem", KEY)

    assert [what for what, _ in configuration.thoughts] == ["dynamodb", "key"]
    assert threading.get_ident() not in {thread for _, thread in configuration.thoughts}


def test_a_key_that_cannot_be_renewed(shell: str) -> None:
    """The call raises the reason, and the next one tries again."""
    with scripted(echo) as script:
        configuration = Unhurried(script.url)
        configuration.fails = True
        with open_backend(shell, configuration) as backend:
            with pytest.raises(EndpointUnreachable, match="the service of keys"):
                backend.call("GetItem", KEY)
            configuration.fails = False
            assert backend.call("GetItem", KEY) == KEY


def test_batched_calls_and_past_reads() -> None:
    """It supports several calls at once and reads as of a time, and the client detects both."""
    backend = AsyncHttpBackend(LocalConfiguration("http://localhost:1"))

    assert isinstance(backend, AsyncConcurrentBackend)
    assert isinstance(backend, AsyncAsOfBackend)
    assert backend.region == "us-east-1"
