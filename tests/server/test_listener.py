"""Sockets, and how a server begins and ends."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

import pytest

from tavola.server.endpoint import ServerEndpoint
from tavola.server.errors import AddressInUse, AddressUnusable
from tavola.server.listener import Server, open_sockets, running
from tavola.server.safeguards import ServerLimits
from tests.server.raw import Raw, request, send_request
from tests.server.standin import StandIn


def test_port_0_takes_a_free_port() -> None:
    """The endpoint reports the chosen port; two servers choose two."""
    with running(StandIn()) as one, running(StandIn()) as other:
        assert one.port != other.port
        assert one.url == f"http://127.0.0.1:{one.port}"
        assert send_request(one, request()).status == 200


def test_a_name_with_several_addresses_has_one_port() -> None:
    """All addresses of a host are listened on, under one port."""
    sockets = open_sockets("localhost", 0)
    ports = {each.getsockname()[1] for each in sockets}
    for each in sockets:
        each.close()

    assert len(ports) == 1


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("::1", "http://[::1]:8000"),
        ("localhost", "http://localhost:8000"),
    ],
)
def test_an_endpoint_has_a_url_that_a_client_can_use(host: str, url: str) -> None:
    """A server on every address is reached on this machine's own; IPv6 has its brackets."""
    assert ServerEndpoint(host, 8000).url == url


def test_a_taken_port_is_reported() -> None:
    """A port that another program has is refused by a sentence that names it."""
    with (
        running(StandIn()) as taken,
        pytest.raises(AddressInUse, match=f"Port {taken.port} on 127.0.0.1 is in use"),
    ):
        Server(StandIn(), port=taken.port)


@pytest.mark.parametrize(("host", "port"), [("203.0.113.7", 0), ("no such host", 0), ("x" * 300, 0)])
def test_an_unusable_address_is_reported(host: str, port: int) -> None:
    """An address that is not this machine's is refused by a sentence."""
    with pytest.raises(AddressUnusable, match="Cannot listen on port"):
        Server(StandIn(), host=host, port=port)


@contextmanager
def _started(limits: ServerLimits) -> Iterator[tuple[ServerEndpoint, Callable[[], Future[None]]]]:
    """Yield a server in a thread, and the function that stops it."""
    ready: Future[tuple[asyncio.AbstractEventLoop, Server]] = Future()

    async def live() -> None:
        server = Server(StandIn(), port=0, limits=limits)
        await server.start()
        ready.set_result((asyncio.get_running_loop(), server))
        await done.wait()

    done = asyncio.Event()
    thread = threading.Thread(target=asyncio.run, args=(live(),))
    thread.start()
    loop, server = ready.result(5)
    stopping: list[Future[None]] = []

    def stop() -> Future[None]:
        stopping.append(asyncio.run_coroutine_threadsafe(server.stop(), loop))
        return stopping[0]

    try:
        yield server.endpoint, stop
    finally:
        (stopping or [stop()])[0].result(5)
        loop.call_soon_threadsafe(done.set)
        thread.join()


def test_stopping_answers_what_is_under_way() -> None:
    """A stopping server accepts no connections, closes idle ones, and answers a request that has begun.

    On the loop of the standard library: the server needs no other.
    """
    with _started(ServerLimits()) as (endpoint, stop), Raw(endpoint) as idle, Raw(endpoint) as busy:
        idle.send(request())
        assert idle.answer().status == 200
        busy.send(request() + request()[:-1])
        assert busy.answer().status == 200
        stopping = stop()
        assert idle.closed()
        with pytest.raises(OSError, match="refused"):
            Raw(endpoint)
        busy.send(request()[-1:])
        last = busy.answer()

        assert (last.status, last.headers["connection"]) == (200, "close")
        assert busy.closed()
        stopping.result(5)


def test_stopping_does_not_wait_for_ever() -> None:
    """A request that never ends is cut when the server's patience is over."""
    with _started(ServerLimits(stop_s=0.2)) as (endpoint, stop), Raw(endpoint) as client:
        client.send(request() + request()[:-1])
        assert client.answer().status == 200
        stop().result(5)

        assert client.closed()


def test_a_server_that_was_never_started_lets_its_port_go() -> None:
    """Closing an unstarted server frees the port."""
    server = Server(StandIn(), port=0)
    server.close()

    with running(StandIn(), port=server.endpoint.port) as endpoint:
        assert endpoint == server.endpoint


def test_enough_files_may_be_open() -> None:
    """The process may open as many files as it allows connections, if the system permits."""
    script = (
        "import resource\n"
        "from tavola.server.listener import allow_files\n"
        "_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))\n"
        "allow_files(150)\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
        "allow_files(50)\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert run.stdout.split() == ["150", "150"]
