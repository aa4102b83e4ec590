"""An application on a port, from its socket to its last answer."""

from __future__ import annotations

import asyncio
import http.client
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI

from tavola import TavolaError
from tavola.apps.shell import Address, AddressTaken, running_server, serve
from tests.apps.conftest import Run
from tests.apps.shell.parts import sample


def damaged() -> None:
    """Fail as a store does."""
    raise TavolaError("the file is damaged")


async def get(port: int, path: str) -> int:
    """Return the status of a path."""

    def ask() -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", path)
        status = connection.getresponse().status
        connection.close()
        return status

    return await asyncio.to_thread(ask)


def test_a_free_port_is_taken_and_told(run: Run[Any]) -> None:
    """Port 0 takes a free one; the application answers while the block runs and no longer."""

    async def tried() -> int:
        async with running_server(sample()) as served:
            assert served.url == f"http://127.0.0.1:{served.address.port}"
            assert await get(served.address.port, "/readyz") == 200
        with pytest.raises(OSError, match="refused"):
            await get(served.address.port, "/healthz")
        return served.address.port

    assert run(tried()) > 0


def test_a_port_that_is_taken_is_told_before_anything_is_opened(run: Run[Any]) -> None:
    """The application is not started for a port that it cannot have."""
    begun: list[str] = []

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        begun.append("begun")
        yield

    async def tried(port: int) -> None:
        async with running_server(FastAPI(lifespan=life), port=port):
            pass

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(AddressTaken, match="0 takes a free one"):
            run(tried(other.getsockname()[1]))
    assert begun == []


@pytest.mark.parametrize(("host", "port"), [("203.0.113.1", 0), ("no such host", 0), ("127.0.0.1", 70_000)])
def test_an_address_that_is_not_ours_is_told(host: str, port: int, run: Run[Any]) -> None:
    """A host that is not this machine's, or no port, is a sentence and no traceback."""

    async def tried() -> None:
        async with running_server(sample(), host, port):
            pass

    with pytest.raises(AddressTaken, match="Cannot listen on port"):
        run(tried())


def test_what_an_application_raises_while_it_starts_comes_out(run: Run[Any]) -> None:
    """An error of the store is told as it is, and the port is free again."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        damaged()
        yield

    async def tried(port: int) -> None:
        async with running_server(FastAPI(lifespan=life), port=port):
            pass

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
    for _ in range(2):
        with pytest.raises(TavolaError, match="the file is damaged"):
            run(tried(port))


def test_an_answer_under_way_is_finished(run: Run[Any]) -> None:
    """Stopping waits for the answer, and closes the application after it."""
    order: list[str] = []
    asked, go = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        order.append("closed")

    application = FastAPI(lifespan=life)

    @application.get("/slow")
    async def slow() -> str:
        asked.set()
        await go.wait()
        order.append("answered")
        return "x"

    async def tried() -> int:
        async with running_server(application) as served:
            answer = asyncio.create_task(get(served.address.port, "/slow"))
            await asked.wait()
            asyncio.get_running_loop().call_later(0.05, go.set)
        return await answer

    assert run(tried()) == 200
    assert order == ["answered", "closed"]


def test_a_hurry_does_not_wait(run: Run[Any]) -> None:
    """A client that never ends is cut off."""
    asked = asyncio.Event()
    application = FastAPI()

    @application.get("/never")
    async def never() -> str:
        asked.set()
        await asyncio.Event().wait()
        return "x"

    async def tried() -> None:
        async with running_server(application) as served:
            answer = asyncio.create_task(get(served.address.port, "/never"))
            await asked.wait()
            served.stop_now()
        with pytest.raises((OSError, http.client.HTTPException)):
            await answer

    async def bounded() -> None:
        async with asyncio.timeout(5):
            await tried()

    run(bounded())


def test_a_signal_ends_it() -> None:
    """`serve` tells where it answers, and returns when the process is asked to end."""
    told: list[Address] = []

    def ready(address: Address) -> None:
        told.append(address)
        threading.Timer(0, os.kill, (os.getpid(), signal.SIGTERM)).start()

    before = signal.getsignal(signal.SIGTERM)
    try:
        serve(sample(), port=0, ready=ready)
    finally:
        signal.signal(signal.SIGTERM, before)

    assert told[0].port > 0


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("::1", "http://[::1]:80"),
    ],
)
def test_a_url_can_be_opened(host: str, url: str) -> None:
    """An application on every address is reached on this machine's own."""
    assert Address(host, 80).url == url
