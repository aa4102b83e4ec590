"""What all clients hold together is bounded, and large requests do not keep small ones out."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tavola.server.endpoint import ServerEndpoint
from tavola.server.memory import COUNTED_BYTES_MIN, MemoryBudget
from tavola.server.safeguards import ServerLimits
from tests.server.raw import Raw, request, send_request, served
from tests.server.standin import StandIn
from tests.server.test_connection import GET, Bench

MB = 1024 * 1024
SCAN = GET.replace(b"GetItem", b"Scan") + b"Content-Length: 2\r\n\r\n{}"


def _upload(size: int, operation: bytes = b"GetItem") -> bytes:
    head = GET.replace(b"GetItem", operation) + b"Content-Length: %d\r\n\r\n" % size
    return head + b'{"key":"' + b"x" * (size - 10) + b'"}'


def _feed(bench: Bench, data: bytes) -> None:
    """Receive data, and let all turns that it takes pass."""
    bench.feed(data)
    bench.loop.settle()


def test_large_requests_leave_an_eighth() -> None:
    """Beyond 7/8 a large request is refused; any other one is admitted up to the whole budget."""
    budget = MemoryBudget(800)
    assert budget.admit_large(700, 1.0)
    assert not budget.admit_large(701, 1.0)
    budget.held_bytes = 800
    assert budget.admit_any()
    budget.held_bytes = 801
    assert not budget.admit_any()


def test_memory_is_freed_until_a_request_fits() -> None:
    """Connections are closed one by one, with the patience that the caller grants, and no more than needed."""
    budget = MemoryBudget(800)
    budget.held_bytes = 800
    asked: list[float] = []

    def evict(stalled_s: float) -> bool:
        asked.append(stalled_s)
        budget.held_bytes -= 100
        return True

    budget.evict = evict
    assert budget.admit_large(500, 2.0)
    assert (asked, budget.held_bytes) == ([2.0] * 6, 200)


def test_every_part_is_counted_and_released() -> None:
    """Incomplete bodies, backlogs and unread responses count, and nothing is left of a lost connection."""
    bench = Bench()
    budget = bench.service.budget
    bench.engine.answer_bytes = 100_000

    _feed(bench, _upload(500_000)[:300_000])  # an incomplete body
    assert 299_000 < budget.held_bytes < 300_000
    _feed(bench, _upload(500_000)[300_000:])
    assert budget.held_bytes == 0

    bench.connection.pause_writing()  # from here on the client reads nothing
    bench.connection.data_received(_upload(200_000))
    backlog_bytes = budget.held_bytes
    assert 200_000 < backlog_bytes < 210_000  # a complete request that waits
    bench.transport.unread_bytes = 70_000
    bench.loop.settle()
    assert budget.held_bytes == backlog_bytes + 70_000  # what the transport holds

    bench.connection.resume_writing()
    bench.loop.settle()
    assert budget.held_bytes == 0

    bench.connection.pause_writing()
    bench.connection.data_received(_upload(200_000) * 3)
    bench.transport.unread_bytes = 70_000
    bench.loop.settle()
    assert budget.held_bytes > 600_000
    bench.connection.connection_lost(None)
    assert budget.held_bytes == 0


def test_responses_that_wait_for_the_commit_are_counted() -> None:
    """Large responses are counted from the moment they exist until they are sent."""
    bench = Bench(ServerLimits(turn_s=60.0))  # all in one turn
    bench.engine.answer_bytes = 100_000
    bench.feed(_upload(20, b"PutItem") + SCAN)
    assert bench.service.budget.held_bytes == 100_002
    bench.loop.settle()
    assert bench.service.budget.held_bytes == 0
    assert bench.statuses == [200, 200]

    bench.engine.commit_error = OSError("planted")
    bench.feed(_upload(20, b"PutItem") + SCAN)
    bench.loop.settle()
    assert bench.service.budget.held_bytes == 0
    assert bench.statuses[2:] == [500, 500]


def test_a_response_in_slices_is_counted() -> None:
    """A long read counts with its request until its response is sent or its client is lost."""
    for is_lost in (False, True):
        bench = Bench()
        bench.feed(_upload(50_000, b"ExecuteStatement"))
        assert bench.service.budget.held_bytes > 500_000
        if is_lost:
            bench.transport.close()
            bench.connection.connection_lost(None)
        bench.loop.settle()
        assert bench.service.budget.held_bytes == 0
        assert bench.engine.slices_run == (0 if is_lost else 3)


def test_long_reads_are_bounded_too() -> None:
    """A long read that grows and does not fit beside the others is ended with 503; the others go on."""
    bench = Bench(ServerLimits(buffer_bytes_max=16_000_000))
    clients = [bench.connect() for _ in range(3)]
    for client in clients:
        client.feed(_upload(100, b"BatchGetItem"))
    bench.loop.settle()

    assert sorted(client.statuses[0] for client in clients) == [200, 503, 503]
    assert bench.service.budget.held_bytes == 0


def test_many_small_requests_in_a_backlog_are_counted_with_their_objects() -> None:
    """A pipeline of small requests takes several times its bytes, and counts for it."""
    bench = Bench()
    bench.connection.pause_writing()
    pipeline = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5000
    bench.connection.data_received(pipeline)

    assert bench.service.budget.held_bytes > 3 * len(pipeline)


def test_a_large_response_of_a_read_is_refused_beyond_the_budget() -> None:
    """The client gets a 503 with the reason; a write is executed, and its response is sent."""
    bench = Bench(ServerLimits(buffer_bytes_max=80_000))
    bench.engine.answer_bytes = 100_000
    _feed(bench, SCAN)
    _feed(bench, _upload(20, b"PutItem"))
    _feed(bench, _upload(60_000, b"PutItem"))
    _feed(bench, _upload(60_000).replace(b"Content-Type", b"Accept-Encoding: gzip\r\nContent-Type"))
    bench.loop.settle()

    assert bench.statuses == [503, 200, 200, 200]
    assert b"nothing was changed" in bench.transport.sent
    assert b"--buffer-mb" in bench.transport.sent
    assert bench.service.budget.held_bytes == 0


def test_a_stalled_client_makes_way() -> None:
    """Its memory is freed after `pressed_s` if another client needs it, and not before."""
    limits = ServerLimits(buffer_bytes_max=1_000_000, pressed_s=2.0)
    bench = Bench(limits)
    bench.engine.answer_bytes = 500_000
    stalled = bench.connect()
    stalled.connection.pause_writing()
    stalled.transport.unread_bytes = 600_000
    bench.loop.settle()

    bench.loop.now_s += 1.9
    _feed(bench, SCAN)
    assert bench.statuses == [503]
    assert not stalled.transport.closed

    bench.loop.now_s += 0.2
    _feed(bench, SCAN)
    assert bench.statuses == [503, 200]
    assert stalled.transport.closed


def test_an_incomplete_upload_makes_way() -> None:
    """A client that has begun a large body long ago gets a 503, and its memory goes to another one."""
    bench = Bench(ServerLimits(buffer_bytes_max=1_000_000))
    bench.engine.answer_bytes = 500_000
    slow = bench.connect()
    _feed(slow, _upload(900_000)[:600_000])
    bench.loop.now_s += 2.1
    _feed(bench, SCAN)

    assert bench.statuses == [200]
    assert slow.statuses == [503]
    assert slow.transport.closed
    assert bench.service.budget.held_bytes == 0


def test_an_upload_beyond_the_budget_is_refused() -> None:
    """A body that does not fit is refused while it arrives; one of less than 64 KB never is."""
    bench = Bench(ServerLimits(buffer_bytes_max=1_000_000))
    other = bench.connect()
    _feed(other, _upload(860_000)[:-1])
    _feed(bench, _upload(COUNTED_BYTES_MIN - 1000)[:-1])
    assert not bench.over()
    _feed(bench, b"}")
    _feed(bench, _upload(COUNTED_BYTES_MIN + 1000)[:-1])
    bench.loop.settle()

    assert bench.statuses == [200, 503]
    assert bench.over()
    _feed(other, b"}")
    assert other.statuses == [200]


def test_an_exhausted_budget_is_recovered_at_once() -> None:
    """Beyond the whole budget, any request first closes the most stalled client, however short it is stalled."""
    bench = Bench(ServerLimits(buffer_bytes_max=1_000_000))
    first, second = bench.connect(), bench.connect()
    for client in (first, second):
        client.connection.pause_writing()
        client.transport.unread_bytes = 600_000
        bench.loop.now_s += 0.1
        bench.loop.settle()
    _feed(bench, _upload(20))

    assert bench.statuses == [200]
    assert (first.transport.closed, second.transport.closed) == (True, False)


def test_a_good_client_is_served_among_clients_that_do_not_read() -> None:
    """I21 over HTTP: 40 clients leave 1 MB each unread in a budget of 8 MB, and others read small and large responses."""
    engine = StandIn()
    engine.answer_bytes = 1_000_000
    with served(engine, buffer_bytes_max=8 * MB, pressed_s=0.1) as endpoint, ExitStack() as stack:
        for _ in range(40):
            stalled = stack.enter_context(Raw(endpoint, receive_buffer=4096))
            stalled.send(request("Scan") * 4)
            assert send_request(endpoint, request("PutItem")).status == 200
        deadline_s = time.monotonic() + 10
        while send_request(endpoint, request("Scan")).status != 200:
            assert time.monotonic() < deadline_s


@contextmanager
def _program(*options: str) -> Iterator[tuple[ServerEndpoint, int]]:
    """Yield the endpoint and process id of a started `tavola serve`."""
    command = [sys.executable, "-m", "tavola", "serve", "--port", "0", "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout is not None
            started = json.loads(program.stdout.readline())
            yield ServerEndpoint(started["host"], started["port"], False), program.pid
        finally:
            program.terminate()


def _resident_mb(pid: int, line: str = "VmRSS") -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition(f"{line}:")[2].split()[0]) // 1024


def _ask(endpoint: ServerEndpoint, operation: str, body: dict[str, Any]) -> int:
    return send_request(endpoint, request(operation, json.dumps(body).encode())).status


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_the_memory_of_a_program_is_bounded() -> None:
    """I21 over HTTP: 60 clients ask for 16 MB each and read nothing: the process holds the 64 MB it may, and others are served."""
    table = {
        "TableName": "Large",
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    keys = [{"pk": {"S": str(number)}} for number in range(39)]
    get_all = json.dumps({"RequestItems": {"Large": {"Keys": keys}}}).encode()
    with _program("--buffer-mb", "64") as (endpoint, pid), ExitStack() as stack:
        assert _ask(endpoint, "CreateTable", table) == 200
        for key in keys:
            item = {**key, "text": {"S": "x" * 400_000}}
            assert _ask(endpoint, "PutItem", {"TableName": "Large", "Item": item}) == 200
        before_mb = _resident_mb(pid)
        waits_s: list[float] = []
        statuses: list[int] = []
        ended = threading.Event()

        def read_small() -> None:
            while not ended.is_set():
                began_s = time.monotonic()
                statuses.append(
                    _ask(endpoint, "GetItem", {"TableName": "Large", "Key": {"pk": {"S": "none"}}})
                )
                waits_s.append(time.monotonic() - began_s)

        reader = threading.Thread(target=read_small)
        reader.start()
        for _ in range(60):
            stalled = stack.enter_context(Raw(endpoint, receive_buffer=4096))
            stalled.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stalled.send(request("BatchGetItem", get_all))
        deadline_s = time.monotonic() + 20
        while send_request(endpoint, request("BatchGetItem", get_all)).status != 200:
            assert time.monotonic() < deadline_s
        ended.set()
        reader.join()
        peak_mb = _resident_mb(pid, "VmHWM")

    assert set(statuses) == {200}
    assert max(waits_s) < 5
    assert (
        peak_mb - before_mb < 220
    )  # 64 MB, and up to 8 responses that are being built, whose sizes are estimated
