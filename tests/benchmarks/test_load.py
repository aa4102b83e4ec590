"""The loader: reading answers and wrk's last line."""

import socket

import pytest

from benchmarks.load import LoadFailed, read_answer, read_wrk, too_few
from benchmarks.peers import ENGINES
from benchmarks.plan import Settings, stages


def answer_of(text: bytes) -> tuple[int, bool, bytes]:
    """What `read_answer` makes of these bytes."""
    near, far = socket.socketpair()
    with near, far:
        near.sendall(text)
        near.shutdown(socket.SHUT_WR)
        return read_answer(far, bytearray(1000))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", (200, True, b"{}")),
        (b"HTTP/1.1 400 Bad\r\nConnection: close\r\ncontent-length: 2\r\n\r\n{}", (400, False, b"{}")),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
            (200, True, b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"),
        ),
        (b"HTTP/1.0 200 OK\r\n\r\n{}", (200, False, b"{}")),
    ],
    ids=["length", "close", "chunked", "until the end"],
)
def test_an_answer_is_read_however_it_is_framed(text: bytes, expected: tuple[int, bool, bytes]) -> None:
    """The peers frame their answers in four ways; each is read to its end and no further."""
    assert answer_of(text) == expected


def test_wrk_errors_of_every_kind_count() -> None:
    """Bad statuses, broken sockets and timeouts all make a rate void."""
    line = (
        '{"requests":50,"duration_us":2000000,"status":1,"socket":2,"timeout":3,"p50_us":1500,"p99_us":9000}'
    )

    drive = read_wrk(f"Running 2s test\n@@{line}\n", "")

    assert (drive.requests, drive.seconds, drive.errors, drive.p50_ms) == (50, 2.0, 6, 1.5)


def test_wrk_that_says_nothing_is_a_failed_load() -> None:
    """No last line, no number."""
    with pytest.raises(LoadFailed, match="unable to connect"):
        read_wrk("", "unable to connect to 127.0.0.1")


def test_few_answers_are_not_counted_by_wrk() -> None:
    """Under ten answers a connection, what wrk drops at the end weighs too much."""
    assert too_few(159, 16)
    assert not too_few(160, 16)


def test_large_tables_are_ours_alone_beside_the_small_one() -> None:
    """A million items are measured beside ten thousand in one stage, without the peers."""
    planned = stages(Settings(), ENGINES)

    assert [(stage.name, stage.connections) for stage in planned] == [
        ("peers", (1, 16)),
        ("peers", (16,)),
        ("scale", (1, 16)),
    ]
    assert {each.engine for each in planned[0].contenders} == {engine.name for engine in ENGINES}
    assert {(each.engine, each.items) for each in planned[2].contenders} == {
        ("tavola", 10_000),
        ("tavola", 1_000_000),
    }
