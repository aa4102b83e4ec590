"""Content codings: which one a client accepts, and bodies there and back in slices."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tavola.server.codings import (
    DECODED_BYTES_MAX,
    DEFLATE,
    GZIP,
    BodyUndecodable,
    SlicedWork,
    accepted_coding,
    choose_coding,
    compress_body,
    decode_body,
)

COMPRESS: dict[bytes, Callable[[bytes], bytes]] = {GZIP: gzip.compress, DEFLATE: zlib.compress}
DECOMPRESS: dict[bytes, Callable[[bytes], bytes]] = {GZIP: gzip.decompress, DEFLATE: zlib.decompress}


def _run(work: SlicedWork[bytes]) -> tuple[bytes, int]:
    """Return the result, and in how many slices it came."""
    slices = 1
    while True:
        try:
            next(work)
            slices += 1
        except StopIteration as stop:
            return stop.value, slices


def _decode(coding: bytes, body: bytes) -> bytes:
    return _run(decode_body(coding, body, lambda size: None))[0]


@pytest.mark.parametrize(
    ("header", "coding"),
    [
        *((header, GZIP) for header in ("gzip", "GZip", "gzip, deflate", "dog, gzip ,, cat", "gzip;q=0.001")),
        *(
            (header, DEFLATE)
            for header in ("deflate", "br, identity, deflate, gzip", "gzip;q=0.2, deflate;q=0.5")
        ),
        *(
            (header, None)
            for header in ("", "identity", "br", "x-gzip", '"gzip"', "gzip br", "gzip:q=1", "gzip/1")
        ),
        ("*", GZIP),
        ("*, deflate", DEFLATE),  # a named coding beats `*`
        ("*, deflate;q=0.5", GZIP),
        ("*, gzip;q=0.5", DEFLATE),
        ("gzip;q=0, *", DEFLATE),  # `*` covers only what is not named
        ("gzip;q=0, deflate;q=0, *", None),
        ("*;q=0", None),
        ("*;q=0.5, identity", GZIP),
        ("gzip;q=0.5, identity;q=1", GZIP),
        ("identity;q=0", None),
        ("gzip;q=0", None),
        ("gzip ; q = 0", None),
        ("deflate;q=0.5, gzip;q=31", GZIP),  # above 1 is 1
        ("gzip;q=31, deflate;q=51", GZIP),
        ("deflate;q=0.5, gzip;q=x", GZIP),  # unreadable is 1
        ("deflate;q=0.5, gzip;q=", GZIP),
        ("deflate;q=0.5, gzip;q=nan", GZIP),
        ("deflate;q=0.5, gzip;q=0.", DEFLATE),
        ("deflate;q=-0.5, gzip;q=0.2", GZIP),
        ("deflate;q=0.5, gzip;q=1;q=0.2", GZIP),  # the first q counts
        ("gzip;level=1;q=0", None),
        ("gzip;q=0, gzip;q=1, gzip;q=0", GZIP),  # any entry that allows it
    ],
)
def test_the_coding_that_a_client_prefers(header: str, coding: bytes | None) -> None:
    """AWS's rules for Accept-Encoding; the cached result is the same."""
    assert choose_coding(header.encode()) == coding
    assert accepted_coding(header.encode()) == accepted_coding(header.encode()) == coding


_NAMES = st.sampled_from(["gzip", "deflate", "*", "identity", "br", "GZIP"])
_ENTRIES = st.lists(st.tuples(_NAMES, st.sampled_from(["", "0", "0.3", "0.7", "1", "7", "x"])), max_size=6)


def _preferred(entries: list[tuple[str, str]]) -> bytes | None:
    """Return the coding by the rules read literally: each candidate with its quality and position."""
    known = {"": 1.0, "0": 0.0, "0.3": 0.3, "0.7": 0.7, "1": 1.0, "7": 1.0, "x": 1.0}
    candidates = []
    for number, coding in enumerate(("gzip", "deflate")):
        own = [(known[q], at) for at, (name, q) in enumerate(entries) if name.lower() == coding]
        star = [known[q] for name, q in entries if name == "*"]
        if own:
            candidates.append((-max(q for q, _ in own), own[0][1], coding))
        elif star:
            candidates.append((-max(star), 100 + number, coding))
    allowed = [candidate for candidate in candidates if candidate[0] < 0]
    return min(allowed)[2].encode() if allowed else None


@given(_ENTRIES)
def test_the_preference_follows_the_rules(entries: list[tuple[str, str]]) -> None:
    """The choice equals a second, literal evaluation of the rules."""
    header = ", ".join(f"{name};q={q}" if q else name for name, q in entries)

    assert choose_coding(header.encode()) == _preferred(entries)


@given(st.binary(max_size=60))
def test_no_header_makes_it_fail(header: bytes) -> None:
    """Any bytes are a valid header value."""
    assert choose_coding(header) in {None, GZIP, DEFLATE}


def test_the_cache_of_headers_is_bounded() -> None:
    """Invented headers replace each other, and long ones are not kept."""
    from tavola.server.codings import _accepted

    for number in range(1000):
        accepted_coding(b"gzip;x=%d" % number)
    accepted_coding(b"gzip;x=" + b"y" * 10_000)

    assert len(_accepted) <= 256
    assert all(len(header) <= 256 for header in _accepted)


@pytest.mark.parametrize("coding", [GZIP, DEFLATE])
@given(st.binary(max_size=2000), st.integers(1, 400))
def test_bodies_go_there_and_back(coding: bytes, piece: bytes, times: int) -> None:
    """What one side compresses the other reads, in both directions."""
    body = piece * times

    assert _decode(coding, COMPRESS[coding](body)) == body
    assert DECOMPRESS[coding](_run(compress_body(coding, body))[0]) == body


@given(st.lists(st.binary(max_size=100), min_size=1, max_size=5), st.binary(max_size=20))
def test_gzip_may_have_several_members(parts: list[bytes], junk: bytes) -> None:
    """Members are joined; what follows the last is ignored unless it begins a member."""
    body = b"".join(gzip.compress(part, mtime=0) for part in parts)
    if junk.startswith(b"\x1f\x8b"):
        return

    assert _decode(b" GZip ", body + junk) == b"".join(parts)


@pytest.mark.parametrize("coding", [GZIP, DEFLATE])
@pytest.mark.parametrize("size", [0, 1, 300_000])
def test_a_truncated_body_is_refused(coding: bytes, size: int) -> None:
    """Every truncation is noticed, also one that leaves all of the content."""
    whole = COMPRESS[coding](random.Random(size).randbytes(size))
    for cut in (1, 2, 4, 5, 8, len(whole) // 2, len(whole) - 1):
        if cut < len(whole):
            with pytest.raises(BodyUndecodable, match="ends too early"):
                _decode(coding, whole[:-cut])
    with pytest.raises(BodyUndecodable, match="ends too early"):
        _decode(GZIP, gzip.compress(b"whole", mtime=0) + gzip.compress(b"cut", mtime=0)[:-1])


@pytest.mark.parametrize(
    ("coding", "body", "sentence"),
    [
        (b"br", b"x", "'br' is not supported; use gzip or deflate"),
        (b"gzip, gzip", gzip.compress(b"x", mtime=0), "is not supported"),
        (b"x-gzip", gzip.compress(b"x", mtime=0), "is not supported"),
        (b"\x00\xff", b"x", "is not supported"),
        (GZIP, b"", "is empty"),
        (DEFLATE, b"", "is empty"),
        (GZIP, b"{}", "bytes are not valid"),
        (GZIP, zlib.compress(b"x"), "bytes are not valid"),
        (DEFLATE, gzip.compress(b"x", mtime=0), "bytes are not valid"),
        (DEFLATE, zlib.compress(b"x", wbits=-15) + b"xxxxxxxx", "bytes are not valid"),
        (GZIP, gzip.compress(b"x", mtime=0)[:-8] + bytes(8), "bytes are not valid"),  # the checksum
    ],
)
def test_a_body_that_cannot_be_decoded_is_refused(coding: bytes, body: bytes, sentence: str) -> None:
    """The error says what is wrong with the body."""
    with pytest.raises(BodyUndecodable, match=sentence):
        _decode(coding, body)


@pytest.mark.parametrize("coding", [GZIP, DEFLATE])
def test_a_bomb_stops_at_the_limit(coding: bytes) -> None:
    """20 MB are decoded; of what inflates to more, no more than a piece above the limit is ever in memory."""
    assert len(_decode(coding, COMPRESS[coding](bytes(DECODED_BYTES_MAX)))) == DECODED_BYTES_MAX
    sizes: list[int] = []
    with pytest.raises(BodyUndecodable, match="larger than 20971520 bytes"):
        _run(decode_body(coding, COMPRESS[coding](bytes(8 * DECODED_BYTES_MAX)), sizes.append))

    assert max(sizes) <= DECODED_BYTES_MAX
    assert all(after - before <= 64 * 1024 for before, after in pairwise(sizes))


def test_long_work_is_done_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each slice of time others have their turn: in one member, in many, and when compressing."""
    now = iter(range(10**9))
    monkeypatch.setattr("tavola.server.codings.monotonic", lambda: next(now))  # each look is a second later
    body = bytes(1_000_000)

    for work in (
        decode_body(GZIP, gzip.compress(body, mtime=0), lambda size: None),
        decode_body(GZIP, gzip.compress(b"", mtime=0) * 100, lambda size: None),
        compress_body(DEFLATE, body),
    ):
        assert _run(work)[1] > 15


def test_what_does_not_fit_stops_the_decoding() -> None:
    """The caller sees the growth, and may stop it."""

    class Full(Exception):
        pass

    def check(size: int) -> None:
        if size > 100_000:
            raise Full

    with pytest.raises(Full):
        _run(decode_body(GZIP, gzip.compress(bytes(10_000_000)), check))
