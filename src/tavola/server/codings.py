"""Content codings: decodes compressed requests, and compresses responses for clients that accept it.

Both are generators that yield whenever they have worked for a slice of time, so that a body of many megabytes delays
other clients by one slice. Input and output are handled in pieces of 64 KB. A decoded body is limited while it grows: a
few kilobytes can inflate to gigabytes (a "bomb"), and at most one piece above the limit is ever in memory.

Supported are AWS's two codings: `gzip`, of which a body may have several members, and `deflate`, which is one zlib
stream. The sizes and rules are AWS's; a body that cannot be decoded is a 400 here and a 5xx there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from io import BytesIO
from typing import TypeAlias, TypeVar

from tavola.clock import monotonic
from tavola.server.heads import quote_header_value

try:  # several times as fast as zlib, with about the same sizes
    from isal import isal_zlib as codec
except ImportError:  # pragma: no cover - the extra is installed wherever the tests run
    import zlib as codec  # type: ignore[no-redef]

T = TypeVar("T")

SlicedWork: TypeAlias = Generator[None, None, T]
"""Work that yields after each slice of time and returns its result."""

GZIP = b"gzip"
DEFLATE = b"deflate"
PLAIN_CODINGS = frozenset({b"", b"identity"})
"""Values of Content-Encoding that mean an unchanged body."""

COMPRESSED_BYTES_MIN = 4 * 1024 + 1
"""The smallest response body that is compressed."""
DECODED_BYTES_MAX = 20 * 1024 * 1024

_WINDOW_BITS = {GZIP: 31, DEFLATE: 15}
_GZIP_MAGIC = b"\x1f\x8b"
_PIECE_BYTES = 64 * 1024
_SLICE_S = 0.001
_LEVEL = 1  # the fastest
_KNOWN_MAX = 256
_KNOWN_BYTES_MAX = 256

_accepted: dict[bytes, bytes | None] = {b"identity": None, b"": None}


class BodyUndecodable(Exception):
    """A request body that is not what its Content-Encoding says, or too large; the message is a sentence for the client."""


def decode_body(coding: bytes, body: bytes, check_growth: Callable[[int], None]) -> SlicedWork[bytes]:
    """Decode a request body; raise `BodyUndecodable` if it cannot be.

    `check_growth` is called with the size so far, and may raise.
    """
    name = coding.strip(b" \t").lower()
    window_bits = _WINDOW_BITS.get(name)
    if window_bits is None:
        raise BodyUndecodable(
            f"The Content-Encoding {quote_header_value(coding, 100)} is not supported; use gzip or deflate, or send the body as it is."
        )
    if not body:
        raise BodyUndecodable(f"The body is empty, and an empty body is not {name.decode()}.")
    decoded = BytesIO()  # whose result is not copied at the end
    size = 0
    until_s = monotonic() + _SLICE_S
    try:
        for piece in _inflate(memoryview(body), window_bits, many=name == GZIP):
            decoded.write(piece)
            size += len(piece)
            if size > DECODED_BYTES_MAX:
                raise BodyUndecodable(
                    f"The decoded body is larger than {DECODED_BYTES_MAX} bytes; split it into several requests."
                )
            check_growth(size)
            if monotonic() > until_s:
                yield
                until_s = monotonic() + _SLICE_S
    except (codec.error, EOFError) as error:  # type: ignore[misc]  # isal types its error as an instance
        is_cut = isinstance(error, EOFError) and (name != GZIP or _GZIP_MAGIC.startswith(body[:2]))
        reason = "it ends too early" if is_cut else "its bytes are not valid"
        raise BodyUndecodable(
            f"The body is not {name.decode()} as its Content-Encoding says: {reason}."
        ) from error
    return decoded.getvalue()


def _inflate(body: memoryview, window_bits: int, *, many: bool) -> Iterator[bytes]:
    """Yield the decoded pieces, at least one for each piece of input; raise EOFError if the body is incomplete."""
    decoder = codec.decompressobj(window_bits)
    at = 0
    while at < len(body):
        data: bytes | memoryview = body[at : at + _PIECE_BYTES]
        at += len(data)
        while True:
            yield decoder.decompress(data, _PIECE_BYTES)
            if decoder.eof or not decoder.unconsumed_tail:
                break
            data = decoder.unconsumed_tail
        if decoder.eof:
            at -= len(decoder.unused_data)
            if not many or bytes(body[at : at + 2]) != _GZIP_MAGIC:
                return  # what follows is ignored, as AWS does
            decoder = codec.decompressobj(window_bits)
    while not decoder.eof:  # output that is left in the decoder
        piece = decoder.decompress(decoder.unconsumed_tail, _PIECE_BYTES)
        if not piece:
            raise EOFError
        yield piece


def compress_body(coding: bytes, body: bytes) -> SlicedWork[bytes]:
    """Compress a response body with one of the two codings."""
    encoder = codec.compressobj(_LEVEL, codec.DEFLATED, _WINDOW_BITS[coding])
    view = memoryview(body)
    compressed = BytesIO()
    until_s = monotonic() + _SLICE_S
    for start in range(0, len(view), _PIECE_BYTES):
        compressed.write(encoder.compress(view[start : start + _PIECE_BYTES]))
        if monotonic() > until_s:
            yield
            until_s = monotonic() + _SLICE_S
    compressed.write(encoder.flush())
    return compressed.getvalue()


def accepted_coding(header: bytes | None) -> bytes | None:
    """Return the coding to compress a response with, by the Accept-Encoding header; None for no compression.

    Clients send one or two different values, so the result is cached by the value as sent.
    """
    if header is None:
        return None
    if header in _accepted:
        return _accepted[header]
    coding = choose_coding(header)
    if len(header) <= _KNOWN_BYTES_MAX:
        if len(_accepted) >= _KNOWN_MAX:
            _accepted.clear()
        _accepted[header] = coding
    return coding


def choose_coding(header: bytes) -> bytes | None:
    """Return the coding that an Accept-Encoding header prefers, by AWS's rules.

    The highest quality wins. Among equals, the first that is named, then those that only `*` covers, gzip first.
    `identity` and what is unknown are ignored.
    """
    qualities: dict[bytes, float] = {}
    for entry in header.split(b","):
        name, *parameters = entry.split(b";")
        name = name.strip(b" \t").lower()
        if name in _WINDOW_BITS or name == b"*":
            qualities[name] = max(qualities.get(name, 0.0), _quality(parameters))
    others = qualities.pop(b"*", 0.0)
    for name in _WINDOW_BITS:
        qualities.setdefault(name, others)
    best = max(qualities, key=qualities.__getitem__)  # the first of equals
    return best if qualities[best] > 0.0 else None


def _quality(parameters: list[bytes]) -> float:
    """Return the first `q` between 0 and 1; 1 if there is none or it is not a number."""
    for parameter in parameters:
        name, separator, value = parameter.partition(b"=")
        if separator and name.strip(b" \t").lower() == b"q":
            try:
                quality = float(value.strip(b" \t"))
            except ValueError:
                return 1.0
            return min(1.0, max(0.0, quality)) if quality == quality else 1.0
    return 1.0
