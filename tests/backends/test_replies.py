"""An endpoint's bytes as answers, without a socket."""

from __future__ import annotations

import pytest

from tavola.backends.http_parser import HttpReply, ReplyReader
from tests.backends.endpoints import response

URL = "http://localhost:8000"
CHUNKED = b"HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + response(b"{}")


@pytest.mark.parametrize(
    ("said", "status", "body"),
    [(response(b'{"Count":1}'), 200, b'{"Count":1}'), (CHUNKED, 400, b"abcde"), (CONTINUED, 200, b"{}")],
)
def test_it_does_not_matter_how_an_answer_is_cut(said: bytes, status: int, body: bytes) -> None:
    """Whole, in two parts wherever they are cut, or byte by byte, it is the same answer, and another may follow."""
    reader = ReplyReader()
    for parts in (
        [said],
        *([said[:cut], said[cut:]] for cut in range(1, len(said))),
        [said[at : at + 1] for at in range(len(said))],
    ):
        assert [reader.feed(URL, part) for part in parts] == [False] * (len(parts) - 1) + [True]
        assert reader.take()[:2] == (status, body)
        assert reader.reusable


def test_the_checksum_is_found_whatever_its_case() -> None:
    """Header names are case-insensitive."""
    reader = ReplyReader()
    reader.feed(URL, b"HTTP/1.1 200 OK\r\nX-AMZ-CRC32: 12\r\nContent-Length: 0\r\n\r\n")

    assert reader.take() == HttpReply(200, b"", "12")


def test_the_end_makes_whole_only_what_has_no_length() -> None:
    """A response shorter than its declared length is incomplete."""
    assert not ReplyReader().has_bytes
    reader = ReplyReader()
    assert not reader.feed(URL, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
    assert reader.has_bytes
    assert not reader.end()

    reader = ReplyReader()
    assert not reader.feed(URL, b"HTTP/1.1 200 OK\r\n\r\nabc")
    assert reader.end()
    assert reader.take() == HttpReply(200, b"abc", None)
    assert not reader.reusable

    assert not ReplyReader().end()
