"""Lines of an export, in DynamoDB JSON and Ion, and the rows that an import reads from them.

A full export has one item per line. An incremental one has one changed item per line: its keys, the time of its last
write, its image at the end of the period, and the one before if both are requested. A row of a bulk load may have a
condition beside its item.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from tavola.engine.transfer.errors import RowRefused, TextMalformed
from tavola.engine.transfer.ion import TextCut, decode_ion, encode_ion
from tavola.values import Item, decode_item

LineFormat: TypeAlias = Literal["DYNAMODB_JSON", "ION"]
EXTENSIONS: dict[str, str] = {"DYNAMODB_JSON": "json", "ION": "ion"}

_BINARY_ION = b"\xe0\x01\x00\xea"
_TEXTS = ("ConditionExpression",)
_MAPS = ("ExpressionAttributeNames", "ExpressionAttributeValues")

_decode = msgspec.json.Decoder().decode


class TransferRow(msgspec.Struct, frozen=True):
    """One row to write: an item, and its condition if any."""

    item: dict[str, Any]
    condition: str | None = None
    names: dict[str, str] | None = None
    values: dict[str, Any] | None = None


class RowSpan(msgspec.Struct, frozen=True):
    """A row, or the reason it is invalid, and its size in the text."""

    row: TransferRow | RowRefused
    end: int  # position after it


def full_line(format_: LineFormat, data: bytes) -> bytes:
    """Return the line of an item, given as stored bytes."""
    if format_ == "DYNAMODB_JSON":
        return b'{"Item":' + data + b"}\n"
    return encode_ion({"Item": decode_item(data)}).encode() + b"\n"


def changed_line(format_: LineFormat, at_us: int, keys: Item, new: bytes | None, old: bytes | None) -> bytes:
    """Return the line of a changed item: its image after the period (None: deleted), and before."""
    metadata: Item = {"WriteTimestampMicros": {"N": str(at_us)}}
    if format_ == "DYNAMODB_JSON":
        members: dict[str, Any] = {"Metadata": metadata, "Keys": keys}
        if new is not None:
            members["NewImage"] = msgspec.Raw(new)
        if old is not None:
            members["OldImage"] = msgspec.Raw(old)
        return msgspec.json.encode(members) + b"\n"
    images = {"NewImage": new, "OldImage": old}
    return (
        encode_ion(
            {"Metadata": metadata, "Keys": keys}
            | {name: decode_item(data) for name, data in images.items() if data is not None}
        ).encode()
        + b"\n"
    )


def read_json(data: bytes, start: int, *, last: bool) -> RowSpan | None:
    """Return the row of the line at `start`; None if the line is incomplete.

    `last` means that no more input follows. Blank lines belong to the row after them.
    """
    while True:
        end = data.find(b"\n", start)
        if end < 0:
            if not last:
                return None
            end = len(data) - 1
        line = data[start : end + 1].strip()
        if line:
            return RowSpan(_row_of_json(line), end + 1)
        if end + 1 >= len(data):
            return None
        start = end + 1


def _row_of_json(line: bytes) -> TransferRow | RowRefused:
    """Return the row of a line; invalid JSON affects no other row, since each begins at a newline."""
    try:
        if not line.isascii():
            line.decode()
        record = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return RowRefused(f"The line is not JSON: {error}")
    if type(record) is not dict:
        return RowRefused("The line is not a JSON object")
    return _row_of(record)


def _row_of(record: dict[str, Any]) -> TransferRow | RowRefused:
    item = record.get("Item")
    if type(item) is not dict:
        return RowRefused("The line has no Item, or its Item is not a map of attributes")
    if len(record) == 1:
        return TransferRow(item)
    for name in _TEXTS:
        if type(record.get(name, "")) is not str:
            return RowRefused(f"{name} is not a string")
    for name in _MAPS:
        if type(record.get(name, {})) is not dict:
            return RowRefused(f"{name} is not a map")
    return TransferRow(
        item,
        record.get("ConditionExpression"),
        record.get("ExpressionAttributeNames"),
        record.get("ExpressionAttributeValues"),
    )


def read_ion(data: bytes, start: int, *, last: bool) -> RowSpan | None:
    """Return the row of the struct at `start`; None if it is incomplete."""
    if start == 0 and data.startswith(_BINARY_ION):
        raise TextMalformed("The file is binary Ion; write it as text")
    # Most structs are one line; only if one is not, all input is searched.
    end = data.find(b"\n", start) + 1
    if end:
        parsed = _try_ion(data, start, end, last=False)
        if parsed is not None:
            return parsed
    return _try_ion(data, start, len(data), last=last)


def _try_ion(data: bytes, start: int, end: int, *, last: bool) -> RowSpan | None:
    try:
        text = data[start:end].decode()
    except UnicodeDecodeError as error:
        if not last and error.end >= end - start - 3:
            return None  # a multi-byte character is incomplete
        raise TextMalformed("The file is not UTF-8") from error
    try:
        members, read = decode_ion(text if not last else text + "\n")
    except TextCut as error:
        if last:
            raise TextMalformed(f"The file ends inside a struct: {error}") from error
        return None
    if members is None:
        return None
    end = start + (read if text.isascii() else len(text[:read].encode()))
    return RowSpan(_row_of_ion(members), end)


def _row_of_ion(members: Item) -> TransferRow | RowRefused:
    """Return the row of a struct, whose members are already values."""
    record: dict[str, Any] = {}
    for name, value in members.items():
        if name == "Item" or name == "ExpressionAttributeValues":  # noqa: PLR1714 - reads as the members do
            record[name] = value.get("M")
        elif name == "ExpressionAttributeNames":
            record[name] = {key: member.get("S") for key, member in value.get("M", {}).items()}
        elif name == "ConditionExpression":
            record[name] = value.get("S")
    return _row_of(record)
