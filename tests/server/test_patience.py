"""Slow, silent and greedy clients: each is ended in its time, and none slows a good one."""

from __future__ import annotations

import select
import socket
import time
from contextlib import ExitStack
from typing import Any

import pytest

from tests.server.raw import Raw, request, send_request, served
from tests.server.standin import StandIn


@pytest.mark.parametrize(
    ("start", "limits"),
    [
        (b"P", {"head_s": 0.2}),
        (b"POST / HTTP/1.1\r\nHost: x\r\n", {"head_s": 0.2}),
        (request()[:-1], {"body_s": 0.2}),
        (
            request(Content_Length="", Transfer_Encoding="chunked").removesuffix(b'{"key":"k"}'),
            {"body_s": 0.2},
        ),
    ],
)
def test_a_request_has_a_deadline(start: bytes, limits: dict[str, Any]) -> None:
    """A head or body that does not arrive in its time is a 408 and the end."""
    with served(**limits) as endpoint, Raw(endpoint) as client:
        client.send(request() + start)
        assert client.answer().status == 200
        assert client.answer().status == 408
        assert client.closed()


@pytest.mark.parametrize(
    "trickle", [b"X-Slow: 1\r\n", b"1\r\nx\r\n"], ids=["header after header", "chunk after chunk"]
)
def test_a_trickle_does_not_prolong_the_deadline(trickle: bytes) -> None:
    """The deadline is absolute: further bytes do not move it."""
    head = (
        b"POST / HTTP/1.1\r\n"
        if trickle.startswith(b"X")
        else request(body=b"", Content_Length="", Transfer_Encoding="chunked")
    )
    with served(head_s=0.3, body_s=0.3) as endpoint, Raw(endpoint) as client:
        began = time.monotonic()
        client.send(head)
        client.socket.settimeout(0.02)
        while True:
            assert time.monotonic() - began < 5
            client.send(trickle)
            try:
                answer = client.answer()
                break
            except TimeoutError:
                continue
        client.socket.settimeout(5)

        assert answer.status == 408
        assert time.monotonic() - began >= 0.25


def test_deadlines_start_again_with_each_request() -> None:
    """A connection may be older than any deadline; its requests may not."""
    with served(head_s=0.3, body_s=0.3) as endpoint, Raw(endpoint) as client:
        began = time.monotonic()
        while time.monotonic() - began < 0.6:
            client.send(request()[:-1])
            client.send(request()[-1:])
            assert client.answer().status == 200


def test_an_idle_connection_is_closed() -> None:
    """A connection without requests is closed silently, before its first request and after it."""
    with served(idle_s=0.2) as endpoint, Raw(endpoint) as silent, Raw(endpoint) as client:
        client.send(request())
        assert client.answer().status == 200
        assert client.closed()
        assert silent.closed()


def test_a_client_that_takes_no_answers_is_not_worked_for() -> None:
    """While a client does not read, its further requests wait; when it reads, all are answered."""
    engine = StandIn()
    engine.answer_bytes = 500_000
    with served(engine) as endpoint, Raw(endpoint, receive_buffer=4096) as client:
        client.send(request("Scan") * 200)
        assert send_request(endpoint, request()).status == 200
        worked = len([1 for operation, _ in engine.calls if operation == "Scan"])

        assert worked < 100
        for _ in range(200):
            assert len(client.answer().body) == 500_002


def test_a_client_that_never_takes_its_answers_is_cut() -> None:
    """An answer that no one takes is dropped with its connection."""
    engine = StandIn()
    engine.answer_bytes = 20_000_000
    with served(engine, response_s=0.2) as endpoint, Raw(endpoint, receive_buffer=4096) as client:
        client.send(request("Scan"))
        wait_until(lambda: len(engine.calls) == 1)
        time_out = time.monotonic() + 5
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        while not _reset(client):
            assert time.monotonic() < time_out


def test_a_refused_client_that_stays_is_cut() -> None:
    """A client that sends more after a refusal is read for a moment, then closed."""
    with served(linger_s=0.2) as endpoint, Raw(endpoint) as client:
        client.send(b"nonsense\r\n\r\n")
        assert client.answer().status == 400
        assert client.closed()
        time_out = time.monotonic() + 5
        while not _reset(client):
            assert time.monotonic() < time_out


def test_a_good_client_is_served_among_bad_ones() -> None:
    """Many slow clients, in head, body or response, do not delay a fast one."""
    engine = StandIn()
    engine.answer_bytes = 500_000
    with served(engine) as endpoint, ExitStack() as stack:
        for number in range(60):
            bad = stack.enter_context(Raw(endpoint, receive_buffer=4096))
            bad.send((b"POST / HTTP/1.1\r\nX: ", request()[:-1], request("Scan") * 20)[number % 3])
        with Raw(endpoint) as good:
            began = time.monotonic()
            for _ in range(100):
                good.send(request())
                assert good.answer().status == 200

            assert time.monotonic() - began < 3


def test_a_long_pipeline_yields_to_others() -> None:
    """One connection's thousand requests do not block another's single request."""
    engine = StandIn()
    with served(engine, turn_requests_max=1) as endpoint, Raw(endpoint) as greedy, Raw(endpoint) as client:
        greedy.send(request() * 2000)
        client.send(request("PutItem"))
        assert client.answer().status == 200
        assert [greedy.answer().status for _ in range(2000)] == [200] * 2000


def test_more_connections_than_places_are_refused() -> None:
    """When every place is taken and no one idles, a newcomer is reported to try later, and others are served."""
    with served(connections_max=3, idle_evictable_s=1000) as endpoint, ExitStack() as stack:
        clients = [stack.enter_context(Raw(endpoint)) for _ in range(3)]
        for client in clients:
            client.send(request())
            assert client.answer().status == 200
        with Raw(endpoint) as late:
            assert late.answer().status == 503
            assert late.closed()
        for client in clients:
            client.send(request())
            assert client.answer().status == 200


def test_an_idle_connection_makes_way() -> None:
    """When every place is taken, the longest idle connection is closed for a newcomer."""
    with served(connections_max=2, idle_evictable_s=0.0, linger_s=0.05) as endpoint, ExitStack() as stack:
        idle = [stack.enter_context(Raw(endpoint)) for _ in range(2)]
        for client in idle:
            client.send(request())
            assert client.answer().status == 200
        wait_until(lambda: send_request(endpoint, request()).status == 200)  # once a sweep has seen them idle

        closed, _, _ = select.select([client.socket for client in idle], [], [], 5)
        assert [each.recv(1) for each in closed] == [b""]


def _reset(client: Raw) -> bool:
    """Return whether the other side is gone, by writing to it."""
    try:
        client.socket.send(b"x")
    except OSError:
        return True
    return False


def wait_until(done: object) -> None:
    """Poll for a few seconds."""
    time_out = time.monotonic() + 5
    assert callable(done)
    while not done():
        assert time.monotonic() < time_out
