"""Encode a reader's position in every shard of a stream as one string for the browser.

It is a subscription's checkpoint, compressed so that a stream of many shards fits into a header. It comes back from an
untrusted client, so decompression is bounded and the form is validated.
"""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping
from typing import Any

import msgspec

from tavola.studio.problems import RequestRefused

_BYTES_MAX = 1 << 20  # unpacked: a stream keeps some thousand shards at the very most
_TEXT_MAX = 256 * 1024


class _ShardPosition(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    after: str | None = None
    since: float | None = None
    finished: bool = False


class _StreamPosition(msgspec.Struct, forbid_unknown_fields=True):
    schema: str
    table: str
    stream: str
    shards: dict[str, _ShardPosition]


def encode_position(document: Mapping[str, Any]) -> str:
    """Return a checkpoint as a text of letters, digits, - and _."""
    return urlsafe_b64encode(zlib.compress(msgspec.json.encode(document), 6)).decode().rstrip("=")


def decode_position(text: str) -> Mapping[str, Any]:
    """Return the checkpoint that a text holds; refuse one that holds none."""
    try:
        if len(text) > _TEXT_MAX:
            raise ValueError("it is too long")
        packed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        unpacking = zlib.decompressobj()
        plain = unpacking.decompress(packed, _BYTES_MAX)
        if not unpacking.eof:
            raise ValueError("it ends too early, or never")
        found = msgspec.json.decode(plain, type=_StreamPosition)
    except (NotBase64, ValueError, zlib.error, msgspec.DecodeError) as error:
        raise RequestRefused(
            "position-malformed",
            "That is no place in the stream",
            f"The position cannot be read: {error}.",
            'Begin with "latest" or "start", or give a position as it came with a change.',
        ) from error
    document: dict[str, Any] = msgspec.to_builtins(found)
    return document
