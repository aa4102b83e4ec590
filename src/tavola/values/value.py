"""The ten attribute types, and Item.

A value is DynamoDB JSON: a dict with one entry, type tag to content. Binary stays base64 text, and numbers stay text in
canonical form. Nothing is converted on the way in or out; an item is decoded only if its contents are needed.
"""

from __future__ import annotations

from typing import Any

import msgspec

Value = dict[str, Any]
Item = dict[str, Value]

TAGS = ("S", "N", "B", "SS", "NS", "BS", "M", "L", "BOOL", "NULL")

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Item)

encode_item = _encoder.encode
decode_item = _decoder.decode


def tag_of(value: Value) -> str:
    """Return the type tag of an admitted value."""
    for tag in value:
        return tag
    raise AssertionError("an admitted value has exactly one tag")
