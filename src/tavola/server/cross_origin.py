"""Cross-origin responses: the headers by which a browser lets pages of another site read a response (CORS).

AWS admits every site, because a signature protects each request. This server refuses pages of other sites unless they are
listed (`--cors`, see `hosts`), since by default it does not verify signatures. To an admitted site it answers as AWS does,
except that it names the site instead of `*`.

Before a page's first request, its browser asks with OPTIONS (the preflight) which method and headers it may send.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

PREFLIGHT_METHOD = b"OPTIONS"
PREFLIGHT_MAX_AGE_S = 172_800  # as AWS; browsers cap it at a day or less

_EXPOSED = b"x-amzn-RequestId, x-amz-crc32, Content-Encoding, Date"
_TOKENS = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,4096}")


def cross_origin_headers(origin: bytes) -> bytes:
    """Return the headers of a response to an admitted site, each line with its end."""
    return b"Access-Control-Allow-Origin: %b\r\nAccess-Control-Expose-Headers: %b\r\nVary: Origin\r\n" % (
        origin.strip(),
        _EXPOSED,
    )


def preflight_headers(fields: Mapping[bytes, bytes]) -> bytes:
    """Return the further headers of the response to a preflight: what the page asks for is allowed."""
    lines = [b"Access-Control-Max-Age: %d\r\n" % PREFLIGHT_MAX_AGE_S]
    for requested, allowed in (
        (b"access-control-request-method", b"Access-Control-Allow-Methods"),
        (b"access-control-request-headers", b"Access-Control-Allow-Headers"),
        (b"access-control-request-private-network", b"Access-Control-Allow-Private-Network"),
    ):
        value = fields.get(requested, b"").strip()
        if _TOKENS.fullmatch(value):
            lines.append(b"%b: %b\r\n" % (allowed, value))
    return b"".join(lines)
