"""Response bodies assembled from bytes.

Items are inserted as the bytes they are stored in; only the members around them are encoded.
"""

from __future__ import annotations

from typing import Any

import msgspec

encode = msgspec.json.Encoder().encode

EMPTY = b"{}"


def add_raw_member(body: bytes, name: str, content: bytes) -> bytes:
    """Return a JSON object with one more member, whose value is already encoded."""
    start = b'{"' if body == EMPTY else body[:-1] + b',"'
    return b"".join((start, name.encode(), b'":', content, b"}"))


def add_members(body: bytes, members: dict[str, Any]) -> bytes:
    """Return a JSON object with more members, which are encoded."""
    if not members:
        return body
    if body == EMPTY:
        return encode(members)
    return b"".join((body[:-1], b",", encode(members)[1:]))


def render_list(name: str, items: list[bytes], members: dict[str, Any]) -> bytes:
    """Return a JSON object with a list of encoded items and further members; copies a large body once."""
    head = b'{"' + name.encode() + b'":['
    tail = b"]," + encode(members)[1:] if members else b"]}"
    if not items:
        return head + tail
    if len(items) == 1:
        return b"".join((head, items[0], tail))
    items[0] = head + items[0]
    items[-1] = items[-1] + tail
    return b",".join(items)
