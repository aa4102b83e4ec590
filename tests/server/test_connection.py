"""One connection, with a transport and a loop that the test moves."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from copy import copy
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tavola.clock import ManualClock
from tavola.entropy import SeededEntropy
from tavola.server.connection import ClientConnection
from tavola.server.dispatch import Dispatch
from tavola.server.memory import MemoryBudget
from tavola.server.responses import PendingWork, ResponseEncoder, ResponseQueue
from tavola.server.safeguards import ServerLimits
from tavola.server.service import Service
from tavola.server.turns import TurnQueue
from tests.server.standin import StandIn
from tests.server.test_http import MALFORMED

PUT = b"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: DynamoDB_20120810.PutItem\r\nContent-Type: application/json\r\n"
GET = PUT.replace(b"PutItem", b"GetItem")
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


class Loop:
    """Turns and time, moved by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.due: list[Callable[[], Any]] = []

    def time(self) -> float:
        return self.now_s

    def call_soon(self, callback: Callable[[], Any]) -> None:
        self.due.append(callback)

    def settle(self) -> None:
        while self.due:
            due, self.due = self.due, []
            for callback in due:
                callback()


class Transport:
    """Records the bytes written to it."""

    def __init__(self) -> None:
        self.sent = b""
        self.closed = False
        self.ended = False
        self.reading = True
        self.unread_bytes = 0

    def write(self, data: bytes) -> None:
        assert not self.closed
        assert not self.ended
        self.sent += data

    def writelines(self, parts: tuple[bytes, ...]) -> None:
        self.write(b"".join(parts))

    def get_extra_info(self, name: str) -> Any:
        return ("192.0.2.7", 50000) if name == "peername" else None

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.closed = True

    abort = close

    def get_write_buffer_size(self) -> int:
        return self.unread_bytes

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True


class Bench:
    """A connection with everything around it."""

    def __init__(self, limits: ServerLimits | None = None) -> None:
        self.loop = Loop()
        self.engine = StandIn()
        self.transport = Transport()
        loop = cast(asyncio.AbstractEventLoop, self.loop)
        encoder = ResponseEncoder(ManualClock(), SeededEntropy(7))
        limits = limits or ServerLimits()
        commits = ResponseQueue(self.engine, encoder, loop, budget=MemoryBudget(limits.buffer_bytes_max))
        dispatch = Dispatch(self.engine, encoder, commits.open_group)
        work = PendingWork(loop, commits, pending_max=8)
        turns = TurnQueue(loop, limits.turn_s)
        self.service = Service(loop, encoder, dispatch, commits, work, turns, limits)
        self.connection = ClientConnection(self.service)
        self.connection.connection_made(cast(asyncio.Transport, self.transport))

    def connect(self) -> Bench:
        """Return a further connection to the same server."""
        other = copy(self)
        other.transport = Transport()
        other.connection = ClientConnection(self.service)
        other.connection.connection_made(cast(asyncio.Transport, other.transport))
        return other

    def feed(self, data: bytes) -> None:
        if self.transport.reading and not self.transport.closed:
            self.connection.data_received(data)

    def over(self) -> bool:
        return self.transport.closed or self.transport.ended

    @property
    def statuses(self) -> list[int]:
        return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", self.transport.sent)]


def _put(key: bytes) -> bytes:
    body = b'{"key":"%b"}' % key
    return PUT + b"Content-Length: %d\r\n\r\n" % len(body) + body


STREAM = (
    _put(b"a")
    + GET
    + CHUNKED
    + b'3\r\n{"k\r\n8;x=y\r\ney":"a"}\r\n0\r\nTrailer: t\r\n\r\n'
    + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    + PUT
    + b"Expect: 100-continue\r\nContent-Length: 11\r\n\r\n"
    + b'{"key":"b"}'
    + GET
    + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 11\r\n\r\n"
    + b'{"key":"b"}'
    + _put(b"c")
    + b"nonsense\r\n\r\n"
)


def _answers(cuts: list[int]) -> tuple[bytes, bool]:
    bench = Bench()
    edges = [0, *sorted(cuts), len(STREAM)]
    for start, end in pairwise(edges):
        bench.feed(STREAM[start:end])
        bench.loop.settle()
    return re.sub(rb"RequestId: \w+", b"", bench.transport.sent), bench.transport.ended


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_the_cut_of_the_stream_does_not_matter(cuts: list[int]) -> None:
    """However the bytes are cut into reads, the answers are the same."""
    assert _answers(cuts) == _answers([])


def test_the_stream_is_answered_as_it_should_be() -> None:
    """The stream that is cut above has these answers."""
    bench = Bench()
    bench.feed(STREAM)
    bench.loop.settle()

    assert bench.statuses == [200, 200, 200, 100, 200, 200, 200, 400]
    assert [operation for operation, _ in bench.engine.calls] == [
        "PutItem",
        "GetItem",
        "PutItem",
        "GetItem",
        "PutItem",
    ]


def test_an_offer_behind_a_large_body_is_passed_over() -> None:
    """The position of a protocol upgrade in a read does not matter."""
    body = b'{"key":"a","text":"%b"}' % (b"x" * 20_000)
    offer = GET + b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 11\r\n\r\n" + b'{"key":"a"}'
    bench = Bench()
    bench.feed(PUT + b"Content-Length: %d\r\n\r\n" % len(body) + body + offer + _put(b"b"))
    bench.loop.settle()

    assert bench.statuses == [200, 200, 200]
    assert body in bench.transport.sent


@given(st.sampled_from(sorted(MALFORMED)), st.lists(st.integers(0, 400), max_size=8), st.booleans())
def test_the_cut_does_not_matter_to_a_refusal(case: str, cuts: list[int], has_body: bool) -> None:
    """However a malformed head is cut into reads, it is refused in the same words, and what follows is not executed."""
    before, after = (_put(b"a") if has_body else b""), _put(b"never")
    stream = before + MALFORMED[case] + after
    responses = []
    for edges in ([0, len(stream)], [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]):
        bench = Bench()
        for start, end in pairwise(edges):
            bench.feed(stream[start:end])
            bench.loop.settle()
        assert bench.statuses == [200] * has_body + [400]
        assert len(bench.engine.calls) == has_body
        responses.append(bench.transport.sent.rpartition(b"\r\n\r\n")[2])

    assert responses[0] == responses[1]


_PIECES = st.sampled_from(
    [
        b"POST / HTTP/1.1\r\n",
        b"GET / HTTP/1.0\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 99999999\r\n",
        b"Content-Length: 000000000000000000000000000000000003\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"Connection: Upgrade\r\n",
        b"Upgrade: websocket\r\n",
        b"Expect: 100-continue\r\n",
        b"X: " + b"x" * 9000 + b"\r\n",
        b"\r\n",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"hello",
        b"CONNECT a:1 HTTP/1.1\r\n",
        b"Host: localhost\r\n",
        b"Host: [::1]x\r\n",
        b"Origin: http://localhost\r\n",
        b"Content-Encoding: gzip\r\n",
        b"Accept-Encoding: *\r\n",
        b"Content-Length: 20000\r\n\r\n" + b"x" * 20000,
        STREAM,
    ]
)


@given(st.lists(_PIECES | st.binary(max_size=20), max_size=12), st.booleans())
def test_no_bytes_make_it_fail(pieces: list[bytes], at_once: bool) -> None:
    """No input raises an exception or causes a 5xx."""
    bench = Bench(ServerLimits(body_bytes_max=1000))
    for piece in [b"".join(pieces)] if at_once else pieces:
        bench.feed(piece)
        bench.loop.settle()
    if not bench.transport.closed:
        bench.connection.eof_received()
        bench.loop.settle()

    assert set(bench.statuses) <= {100, 200, 400, 403, 404, 413}
    assert bench.over()


def test_one_turn_does_not_do_everything() -> None:
    """A long pipeline is answered a few requests per turn, and reading pauses meanwhile."""
    bench = Bench(ServerLimits(turn_requests_max=3))
    bench.feed(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10)

    assert len(bench.statuses) == 3
    assert not bench.transport.reading
    bench.loop.settle()
    assert len(bench.statuses) == 10
    assert bench.transport.reading


def test_answers_that_wait_for_a_commit_are_bounded() -> None:
    """Large answers that a commit holds back end the turn of their connection."""
    bench = Bench(ServerLimits(turn_response_bytes_max=1000))
    bench.engine.answer_bytes = 900
    scan = GET.replace(b"GetItem", b"Scan") + b"Content-Length: 2\r\n\r\n{}"
    bench.feed(_put(b"a") + scan * 10)

    assert len(bench.engine.calls) <= 3
    assert bench.transport.sent == b""
    bench.loop.settle()
    assert bench.statuses == [200] * 11


def test_nothing_is_done_while_answers_are_not_taken() -> None:
    """When the transport is full, requests wait; when it is not, they go on in order."""
    bench = Bench()
    bench.connection.pause_writing()
    assert not bench.transport.reading
    bench.connection.data_received(_put(b"a") + _put(b"b"))
    bench.loop.settle()
    assert bench.engine.calls == []

    bench.connection.resume_writing()
    bench.loop.settle()
    assert bench.statuses == [200, 200]
    assert bench.transport.reading


def test_an_answer_for_someone_gone_is_dropped() -> None:
    """A client that leaves before the commit is forgotten; the write stays."""
    bench = Bench()
    bench.feed(_put(b"a"))
    bench.transport.close()
    bench.connection.connection_lost(None)
    bench.loop.settle()

    assert bench.transport.sent == b""
    assert len(bench.engine.rows) == 1
    assert not bench.service.connections


def test_a_half_closed_client_gets_its_last_response() -> None:
    """A client that closes its side in the turn of its last write still receives the response."""
    bench = Bench()
    bench.feed(_put(b"a").replace(b"HTTP/1.1\r\n", b"HTTP/1.1\r\nConnection: close\r\n"))
    assert bench.connection.eof_received() is True
    bench.loop.settle()

    assert bench.statuses == [200]
    assert bench.transport.closed


@pytest.mark.parametrize(
    ("start", "limit", "status"),
    [(b"PO", "head_s", 408), (_put(b"a")[:-1], "body_s", 408), (b"", "idle_s", None)],
)
def test_deadlines_apply_at_the_next_sweep(start: bytes, limit: str, status: int | None) -> None:
    """Nothing happens before a deadline, and the first sweep after it ends the request."""
    limits = ServerLimits()
    bench = Bench(limits)
    if start:
        bench.feed(start)
    bench.connection.sweep(bench.loop.now_s)
    bench.loop.now_s += getattr(limits, limit) - 0.1
    bench.connection.sweep(bench.loop.now_s)
    bench.loop.settle()
    assert not bench.over()

    bench.loop.now_s += 0.2
    bench.connection.sweep(bench.loop.now_s)
    bench.loop.settle()
    assert bench.over()
    assert bench.statuses == ([] if status is None else [status])


def test_a_lingering_client_is_cut_in_the_end() -> None:
    """After its refusal a client has a moment, and then the connection is cut."""
    bench = Bench()
    bench.feed(b"nonsense\r\n\r\n")
    assert (bench.transport.ended, bench.transport.closed) == (True, False)
    bench.loop.now_s += bench.service.limits.linger_s + 0.1
    bench.connection.sweep(bench.loop.now_s)

    assert bench.transport.closed


def test_an_expensive_request_ends_the_turn_of_its_client() -> None:
    """After a request over the time limit nothing is read from the client until the others had their turn."""
    bench = Bench(ServerLimits(turn_s=0.0, heavy_s=0.0))

    reading = []
    bench.feed(_put(b"a"))
    reading.append(bench.transport.reading)
    bench.loop.settle()
    reading.append(bench.transport.reading)
    assert reading == [False, True]
    assert bench.statuses == [200]

    bench.feed(_put(b"b") + _put(b"c"))
    assert len(bench.engine.calls) == 2  # the third waits for the next turn
    bench.loop.settle()
    assert bench.statuses == [200] * 3
