"""Starts: the ExclusiveStartKey of a query or scan, checked and made a place in the order."""

from __future__ import annotations

from typing import Any

from tavola.engine.catalog import Index, Table
from tavola.engine.writes import KEY_MISMATCH
from tavola.expressions.key_conditions import KeyRange
from tavola.keys import Bounds, KeyRefused, KeySchema, partition_bounds, segment_bounds
from tavola.protocol.faults import ValidationFault
from tavola.protocol.queries import ScanRequest
from tavola.values import Item

_INVALID = "The provided starting key is invalid"


def query_start_position(
    table: Table, index: Index | None, start: Item, found: KeyRange
) -> tuple[bytes, bytes]:
    """Return the place that a query goes on after; refuse one outside of what is queried."""
    if index is None and not table.schema.range:
        name = table.schema.names[0]
        raise ValidationFault(
            f"The provided exclusive start key is invalid: ExclusiveStartKey: {{{name}={_render_key_attribute(start, name)}}}"
        )
    _check_start_names(table, index, start)
    schema = table.schema if index is None else index.schema
    entry = _encode_start_key(schema, start, KEY_MISMATCH)
    key = (
        _encode_start_key(table.schema, start, f"{_INVALID}: {KEY_MISMATCH}") if index is not None else entry
    )
    if index is None and found.at_most_one:
        raise ValidationFault("The query can return at most one row and cannot be restarted")
    if not partition_bounds(schema, found.hash_values).holds(entry):
        raise ValidationFault(
            "The provided starting key is outside query boundaries based on provided conditions"
        )
    if not found.bounds.holds(entry):
        raise ValidationFault("The provided starting key does not match the range key predicate")
    return (b"" if index is None else entry), key


def scan_start_position(
    table: Table, index: Index | None, start: Item, request: ScanRequest
) -> tuple[bytes, bytes]:
    """Return the place that a scan goes on after; refuse one of another segment."""
    mismatch = f"{_INVALID}: {KEY_MISMATCH}"
    if index is None:
        if set(start) != set(table.schema.names):
            raise ValidationFault(mismatch)
        entry = key = _encode_start_key(table.schema, start, mismatch)
    else:
        _check_start_names(table, index, start)
        entry = _encode_start_key(index.schema, start, mismatch)
        key = _encode_start_key(table.schema, start, mismatch)
    if request.total_segments is not None and request.segment is not None:
        bounds: Bounds = segment_bounds(request.segment, request.total_segments)
        if not bounds.holds(entry):
            raise ValidationFault(
                f"{_INVALID}: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. "
                f"TotalSegments: {request.total_segments} Segment: {request.segment}"
            )
    return (b"" if index is None else entry), key


def _check_start_names(table: Table, index: Index | None, start: Item) -> None:
    names = set(table.schema.names)
    if index is not None:
        names |= set(index.schema.names)
    if set(start) != names:
        raise ValidationFault(_INVALID)


def _encode_start_key(schema: KeySchema, start: Item, refusal: str) -> bytes:
    try:
        return schema.key_of(start)
    except KeyRefused as refused:
        raise ValidationFault(refusal) from refused


def _render_key_attribute(start: Item, name: str) -> str:
    value: dict[str, Any] = start.get(name, {})
    inside = ", ".join(f"{tag}:{content}" for tag, content in value.items())
    return f"AttributeValue: {{{inside}}}"
