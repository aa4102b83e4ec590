"""The ten attribute types, and Item.

A value is DynamoDB JSON as it stands on the wire and in the store: a dict with one entry, tag to
content. So nothing is converted on the way in or out, and an item needs decoding only where something
must look inside. Binary stays base64 text, numbers stay text in canonical form.
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
