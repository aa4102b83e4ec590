"""An application on a port, from its socket to its last response."""

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
from tavola.apps.shell import AddressTaken, ListenAddress, running_server, serve
from tests.apps.conftest import Run
from tests.apps.shell.parts import sample


def damaged() -> None:
    """Fail as a damaged store does."""
    raise TavolaError("the file is damaged")


async def get(port: int, path: str) -> int:
    """Return the status of a path."""

    def send() -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", path)
        status = connection.getresponse().status
        connection.close()
        return status

    return await asyncio.to_thread(send)


def test_port_0_takes_a_free_port(run: Run[Any]) -> None:
    """Port 0 takes a free port and reports it; the application serves only while the block runs."""

    async def tried() -> int:
        async with running_server(sample()) as served:
            assert served.url == f"http://127.0.0.1:{served.address.port}"
            assert await get(served.address.port, "/readyz") == 200
        with pytest.raises(OSError, match="refused"):
            await get(served.address.port, "/healthz")
        return served.address.port

    assert run(tried()) > 0


def test_a_taken_port_is_reported_before_startup(run: Run[Any]) -> None:
    """The application is not started if its port is taken."""
    begun: list[str] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        begun.append("begun")
        yield

    async def tried(port: int) -> None:
        async with running_server(FastAPI(lifespan=lifespan), port=port):
            pass

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(AddressTaken, match="another program is using it"):
            run(tried(other.getsockname()[1]))
    assert begun == []


@pytest.mark.parametrize(("host", "port"), [("203.0.113.1", 0), ("no such host", 0), ("127.0.0.1", 70_000)])
def test_an_invalid_address_is_reported(host: str, port: int, run: Run[Any]) -> None:
    """A host of another machine, or an invalid port, is an error message without a traceback."""

    async def tried() -> None:
        async with running_server(sample(), host, port):
            pass

    with pytest.raises(AddressTaken, match="Cannot listen on port"):
        run(tried())


def test_an_error_at_startup_is_raised(run: Run[Any]) -> None:
    """An error of the store is raised unchanged, and the port is free again."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        damaged()
        yield

    async def tried(port: int) -> None:
        async with running_server(FastAPI(lifespan=lifespan), port=port):
            pass

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
    for _ in range(2):
        with pytest.raises(TavolaError, match="the file is damaged"):
            run(tried(port))


def test_a_running_request_is_finished(run: Run[Any]) -> None:
    """Stopping waits for the response, then closes the application."""
    order: list[str] = []
    requested, go = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        order.append("closed")

    application = FastAPI(lifespan=lifespan)

    @application.get("/slow")
    async def slow() -> str:
        requested.set()
        await go.wait()
        order.append("answered")
        return "x"

    async def tried() -> int:
        async with running_server(application) as served:
            answer = asyncio.create_task(get(served.address.port, "/slow"))
            await requested.wait()
            asyncio.get_running_loop().call_later(0.05, go.set)
        return await answer

    assert run(tried()) == 200
    assert order == ["answered", "closed"]


def test_a_second_signal_does_not_wait(run: Run[Any]) -> None:
    """A client that never ends is disconnected."""
    requested = asyncio.Event()
    application = FastAPI()

    @application.get("/never")
    async def never() -> str:
        requested.set()
        await asyncio.Event().wait()
        return "x"

    async def tried() -> None:
        async with running_server(application) as served:
            answer = asyncio.create_task(get(served.address.port, "/never"))
            await requested.wait()
            served.stop_now()
        with pytest.raises((OSError, http.client.HTTPException)):
            await answer

    async def bounded() -> None:
        async with asyncio.timeout(5):
            await tried()

    run(bounded())


def test_a_signal_stops_it() -> None:
    """`serve` reports its address, and returns when the process gets a signal."""
    addresses: list[ListenAddress] = []

    def ready(address: ListenAddress) -> None:
        addresses.append(address)
        threading.Timer(0, os.kill, (os.getpid(), signal.SIGTERM)).start()

    before = signal.getsignal(signal.SIGTERM)
    try:
        serve(sample(), port=0, ready=ready)
    finally:
        signal.signal(signal.SIGTERM, before)

    assert addresses[0].port > 0


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
    """An application on all addresses is reached at the local address."""
    assert ListenAddress(host, 80).url == url
