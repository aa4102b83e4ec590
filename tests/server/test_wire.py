"""An answer as bytes."""

from __future__ import annotations

import re
import zlib

import pytest

from tavola.clock import ManualClock
from tavola.entropy import SeededEntropy
from tavola.server.responses import JOINED_BODY_BYTES_MAX, JSON, ResponseEncoder, response_size


@pytest.fixture
def wire() -> ResponseEncoder:
    return ResponseEncoder(ManualClock(1_700_000_000.0), SeededEntropy(1))


def test_an_answer_has_the_headers_of_aws(wire: ResponseEncoder) -> None:
    """An answer names server, date, content type and request id, and carries the checksum of its body."""
    payload = wire.encode(200, JSON, b"{}", False, b"ID")

    assert payload == (
        b"HTTP/1.1 200 OK\r\nServer: Server\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\n"
        b"Content-Type: application/x-amz-json-1.0\r\nConnection: keep-alive\r\nx-amzn-RequestId: ID\r\n"
        b"x-amz-crc32: 2745614147\r\nContent-Length: 2\r\n\r\n{}"
    )


def test_the_last_answer_says_so(wire: ResponseEncoder) -> None:
    """The last response before the server closes announces it."""
    payload = wire.encode(400, JSON, b"{}", True)

    assert isinstance(payload, bytes)
    assert payload.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\nConnection: close\r\n" in payload


@pytest.mark.parametrize("size", [0, 1, 1000, JOINED_BODY_BYTES_MAX, JOINED_BODY_BYTES_MAX + 1, 1 << 20])
def test_the_checksum_is_crc32_of_the_body(wire: ResponseEncoder, size: int) -> None:
    """The checksum is zlib's crc32 of the bytes as sent, whichever library computes it."""
    body = bytes(number % 251 for number in range(size))
    payload = wire.encode(200, JSON, body, False)
    sent = payload if isinstance(payload, bytes) else b"".join(payload)

    assert b"\r\nx-amz-crc32: %d\r\n" % zlib.crc32(body) in sent
    assert sent.endswith(b"\r\n\r\n" + body)
    assert response_size(payload) == len(sent)


def test_a_large_body_is_not_copied(wire: ResponseEncoder) -> None:
    """A large body is passed on unchanged, beside its head."""
    body = b"x" * (JOINED_BODY_BYTES_MAX + 1)
    payload = wire.encode(200, JSON, body, False)

    assert isinstance(payload, tuple)
    assert payload[1] is body


def test_request_ids_have_awss_form_and_differ(wire: ResponseEncoder) -> None:
    """A request id is 52 upper-case letters and digits, and no two are the same."""
    ids = [wire.new_request_id() for _ in range(1000)]

    assert len(set(ids)) == 1000
    assert all(re.fullmatch(rb"[0-9A-V]{52}", each) for each in ids)


def test_the_date_moves_with_the_clock() -> None:
    """The date in an answer is that of the last refresh."""
    clock = ManualClock(0.0)
    wire = ResponseEncoder(clock, SeededEntropy(1))
    before = wire.encode(200, JSON, b"", False, b"I")
    clock.advance(86_400)
    unrefreshed = wire.encode(200, JSON, b"", False, b"I")
    wire.refresh_date()
    after = wire.encode(200, JSON, b"", False, b"I")

    assert before == unrefreshed
    assert b"Thu, 01 Jan 1970 00:00:00 GMT" in bytes(before)  # type: ignore[arg-type]  # small, so joined
    assert b"Fri, 02 Jan 1970 00:00:00 GMT" in bytes(after)  # type: ignore[arg-type]


def test_head_is_answered_without_the_body(wire: ResponseEncoder) -> None:
    """A HEAD request gets the length of the body and not the body."""
    for body in (b"four", b"x" * 100_000):
        payload = wire.encode_without_body(200, JSON, body, False)

        assert payload.endswith(b"\r\nContent-Length: %d\r\n\r\n" % len(body))


def test_dates_are_english() -> None:
    """A date has the fixed form of HTTP."""
    encoder = ResponseEncoder(ManualClock(784111777.9), SeededEntropy(1))

    assert b"\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n" in encoder.encode(200, JSON, b"{}", False)
