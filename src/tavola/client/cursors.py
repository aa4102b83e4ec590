"""Cursors: where a page ended, as text that a browser may hold.

A cursor is signed and bound to its question, so a forged one, or one of another question (index, filter, tenant,
direction), is refused and never answered with somebody else's items. How the question is put (consistently, so many
at a time) may change from page to page. It hides nothing: keys can be read in it.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Any

import msgspec

from tavola.client.errors import CursorRefused

_SUM_BYTES = 16
_FORM = 2

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


def question_sum(*told: Any) -> str:
    """Return what identifies a question: equal for equal ones, in every process."""
    return sha256(_encode(told)).hexdigest()[:32]


def seal(secret: bytes, question: str, state: list[Any]) -> str:
    """Return a cursor that holds where a question's answer ended in each shard."""
    body = _encode([_FORM, question, state])
    return urlsafe_b64encode(_sum(secret, body) + body).rstrip(b"=").decode()


def unseal(secret: bytes, question: str, cursor: str, shards: int) -> list[Any]:
    """Return where a cursor says that an answer ended in each shard; an error if it is not of this question."""
    try:
        raw = urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
    except ValueError as error:
        raise CursorRefused("it is not one of ours, or was cut") from error
    told, body = raw[:_SUM_BYTES], raw[_SUM_BYTES:]
    if not hmac.compare_digest(told, _sum(secret, body)):
        raise CursorRefused(
            "its signature does not hold; it was changed, or given by a program with another secret "
            "(connect(…, cursor_secret=…) shares one between processes)"
        )
    form, asked, state = _decode(body)
    if form != _FORM:
        raise CursorRefused("it was given by another version; ask from the beginning")
    if asked != question:
        raise CursorRefused("it belongs to another question; ask with what it was given for")
    if not isinstance(state, list) or len(state) != shards:
        were = len(state) if isinstance(state, list) else 0
        raise CursorRefused(
            f"it was given when the answer lay in {were} shards or segments, and it lies in {shards} now; ask from "
            "the beginning"
        )
    return state


def _sum(secret: bytes, body: bytes) -> bytes:
    assert secret, "anybody could sign with no secret"
    return hmac.new(secret, body, sha256).digest()[:_SUM_BYTES]
