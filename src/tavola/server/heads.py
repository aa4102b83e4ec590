"""Heads: refuses requests whose head can be read in two ways.

llhttp refuses malformed lines: bare line feeds, folded headers, spaces in names, two lengths, a length beside chunks. What
it lets pass and RFC 9112 does not is refused here: another HTTP version, a missing Host in HTTP/1.1, a header twice that
may be sent once, transfer codings other than `chunked`, more headers than any client sends. A server that guessed could
disagree with a proxy in front of it on where a request ends, or on whose it is.

A head that is in order costs two lookups and a comparison; see `ClientConnection.on_headers_complete`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tavola.protocol.instants import AS_OF_HEADER

HEADERS_MAX = 200
"""Different headers of one request. SDKs send about ten; each takes some 200 bytes of memory."""

SINGLE_HEADERS = frozenset(
    {
        *(b"host", b"origin", b"authorization", b"content-type", b"content-length", b"content-encoding"),
        *(b"transfer-encoding", b"expect", b"x-amz-target", b"x-amz-date", b"date", b"x-amz-security-token"),
        *(b"x-amz-content-sha256", AS_OF_HEADER.encode()),
    }
)
"""Headers that change what a request means or who sends it; sent twice, they are refused. Of another one the last counts."""

FIRST_COUNTS = frozenset({b"accept-encoding"})
"""Headers of which AWS reads the first, if they are sent twice."""


def repetition_problem(name: bytes) -> str | None:
    """Return why a header may not be sent twice; None if it may."""
    return f"The header {name.decode('latin-1')} is sent twice." if name in SINGLE_HEADERS else None


def head_problem(version: str, fields: Mapping[bytes, bytes]) -> str | None:
    """Return why a head is refused, as a sentence; None if it is in order. Header names in `fields` are lower-case."""
    if version not in {"1.1", "1.0"}:
        return f"HTTP/{version} is not supported; use HTTP/1.1."
    if version == "1.1" and b"host" not in fields:
        return "HTTP/1.1 requires a Host header."
    if len(fields) > HEADERS_MAX:
        return f"The request has more than {HEADERS_MAX} headers."
    coding = fields.get(b"transfer-encoding")
    if coding is not None:
        if version == "1.0":
            return "HTTP/1.0 has no Transfer-Encoding."
        if coding.strip(b" \t").lower() != b"chunked":
            return "Only the transfer coding chunked is supported."
    return None


def target_problem(url: bytes, fields: Mapping[bytes, bytes]) -> str | None:
    """Return why the target of a request is refused: a URL whose host is not that of the Host header (RFC 9112, 3.2.2)."""
    if url.startswith((b"/", b"*")):
        return None
    scheme, separator, rest = url.partition(b"://")
    if not separator or scheme.lower() not in {b"http", b"https"}:
        return "The request target must be a path or an http URL."
    end = min((at for at in (rest.find(mark) for mark in b"/?#") if at >= 0), default=len(rest))
    if rest[:end].lower() != fields.get(b"host", b"").strip(b" \t").lower():
        return "The host in the request target is not that of the Host header."
    return None


def quote_header_value(text: bytes, characters_max: int = 200) -> str:
    """Return the start of a header's value for a message, in quotes and without control characters."""
    letters = (letter if letter.isprintable() else "?" for letter in text[:characters_max].decode("latin-1"))
    return f"'{''.join(letters)}'"
