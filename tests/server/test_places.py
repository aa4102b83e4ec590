"""Places: a new client gets in, however many connections are open and whatever they do."""

from __future__ import annotations

import select
import time
from contextlib import ExitStack

import pytest

from tavola.server.safeguards import ServerLimits
from tests.server.raw import Raw, request, send_request, served
from tests.server.test_connection import GET, Bench

REQUEST = GET + b'Content-Length: 11\r\n\r\n{"key":"a"}'
HEAD = GET + b"X-Slow: "
BODY = GET + b"Content-Length: 1000\r\n\r\n"


def _full(*starts: bytes, **limits: float) -> tuple[Bench, list[Bench]]:
    """Return a server whose places are taken by clients that have sent these bytes, 0.1 s apart."""
    bench = Bench(ServerLimits(connections_max=len(starts), **limits))  # type: ignore[arg-type]  # numbers all
    bench.connection.connection_lost(None)
    clients = []
    for start in starts:
        client = bench.connect()
        client.feed(start)
        bench.loop.settle()
        client.connection.sweep(bench.loop.now_s)  # which sees that a request came
        clients.append(client)
        bench.loop.now_s += 0.1
    return bench, clients


def _pass_time(bench: Bench, clients: list[Bench], seconds: float) -> None:
    """Sweep every second, as the server does."""
    end_s = bench.loop.now_s + seconds
    while bench.loop.now_s < end_s:
        bench.loop.now_s = min(end_s, bench.loop.now_s + 1.0)
        for client in clients:
            if not client.transport.closed:
                client.connection.sweep(bench.loop.now_s)


def _is_in(bench: Bench) -> bool:
    """Connect, and return whether the new client is served."""
    client = bench.connect()
    client.feed(REQUEST)
    bench.loop.settle()
    return client.statuses == [200]


@pytest.mark.parametrize(
    "start", [REQUEST, b"", HEAD, BODY], ids=["idle", "silent", "slow head", "slow body"]
)
def test_the_longest_waiting_client_makes_way(start: bytes) -> None:
    """Whether it is idle or sends slowly, the client that has waited longest is closed, and only that one."""
    bench, clients = _full(start, start, start)
    assert not _is_in(bench)
    _pass_time(bench, clients, 4.0)

    assert _is_in(bench)
    assert [client.transport.closed for client in clients] == [True, False, False]


@pytest.mark.parametrize(("start", "statuses"), [(HEAD, [503]), (BODY, [503]), (REQUEST, [200]), (b"", [])])
def test_a_client_that_makes_way_gets_a_reason(start: bytes, statuses: list[int]) -> None:
    """An unfinished request is answered with 503; an idle connection is closed silently, as after its time."""
    bench, clients = _full(start)
    _pass_time(bench, clients, 4.0)
    _is_in(bench)

    assert clients[0].statuses == statuses
    assert clients[0].transport.closed


def test_a_client_that_does_not_read_makes_way() -> None:
    """An unread response keeps a place for `pressed_s`, then a new client may have it."""
    bench, clients = _full(REQUEST)
    clients[0].connection.pause_writing()
    _pass_time(bench, clients, 1.9)
    assert not _is_in(bench)
    _pass_time(bench, clients, 0.2)
    assert _is_in(bench)
    assert clients[0].transport.closed


@pytest.mark.parametrize(
    ("start", "limit"), [(HEAD, "pressed_s"), (BODY, "pressed_s"), (REQUEST, "idle_evictable_s")]
)
def test_a_client_keeps_its_place_for_its_time(start: bytes, limit: str) -> None:
    """No connection makes way before its deadline."""
    bench, clients = _full(start, **{limit: 5.0})
    _pass_time(bench, clients, 4.0)
    assert not _is_in(bench)
    _pass_time(bench, clients, 2.5)
    assert _is_in(bench)


def test_a_request_in_progress_keeps_its_place() -> None:
    """A client whose response is being computed, or waits for the commit, is never closed for another one."""
    bench, clients = _full(REQUEST.replace(b"GetItem", b"PutItem"))
    slow = clients[0]
    slow.connection.data_received(REQUEST.replace(b"GetItem", b"ExecuteStatement"))
    bench.loop.now_s += 100.0
    late = bench.connect()

    assert late.statuses == [503]
    bench.loop.settle()
    assert slow.statuses == [200, 200]


def test_the_least_active_client_goes_first() -> None:
    """A client that sends requests all the time stays; those that pause are closed one after the other."""
    bench, clients = _full(REQUEST, REQUEST, REQUEST)
    busy, *quiet = clients
    for _ in range(5):
        busy.feed(REQUEST)
        bench.loop.settle()
        _pass_time(bench, clients, 1.0)
    busy.feed(REQUEST)
    for _ in range(2):
        assert _is_in(bench)

    assert [client.transport.closed for client in quiet] == [True, True]
    assert not busy.transport.closed


def test_refused_clients_cost_little() -> None:
    """All connections are compared at most every 50 ms, however many clients are refused."""
    bench, clients = _full(REQUEST)
    compared: list[float] = []
    connection = clients[0].connection

    class Counting:
        held_bytes = 0
        stalled_since_s = 0.0

        def waits_since(self, now_s: float) -> float:
            compared.append(now_s)
            return 0.0

    bench.service.connections = {connection, Counting()}  # type: ignore[arg-type]  # only what is asked for
    for _ in range(100):
        bench.connect()
        bench.loop.now_s += 0.001

    assert 1 <= len(compared) <= 3


def test_new_clients_get_in_among_busy_ones() -> None:
    """I21 over HTTP: all places are taken by clients that trickle or repeat; each new client is served within seconds."""
    with (
        served(connections_max=20, pressed_s=0.2, idle_evictable_s=0.1, head_s=1.0) as endpoint,
        ExitStack() as stack,
    ):
        attackers: list[Raw] = []
        for _ in range(5):
            while len(attackers) < 24:
                attackers.append(stack.enter_context(Raw(endpoint)))
            began_s = time.monotonic()
            answered = False
            while not answered:
                assert time.monotonic() - began_s < 5
                attackers = [client for number, client in enumerate(attackers) if _trickle(client, number)]
                try:
                    answered = send_request(endpoint, request()).status == 200
                except OSError:
                    continue


def _trickle(client: Raw, number: int) -> bool:
    """Send a byte or a request; return whether the connection is still open."""
    try:
        client.send(request() if number % 3 == 0 else b"P" if number % 3 == 1 else b"X: y\r\n")
        readable, _, _ = select.select([client.socket], [], [], 0)
        return not readable or client.socket.recv(65536) != b""
    except OSError:
        return False
