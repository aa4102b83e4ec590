"""Ranges of keys: `Bounds` of encoded keys within one partition, and `KeySpan` of sort keys as texts.

A KeySpan is the set of sort keys that answer a query, expressed as the single condition that DynamoDB allows.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tavola.keys.errors import KeyRefused
from tavola.keys.position import POSITION_BYTES, POSITIONS
from tavola.keys.schema import (
    KeyAttribute,
    KeySchema,
    end_of_partition,
    escape_part,
    hash_parts,
    key_bytes,
    partition_prefix,
    successor,
    terminate_part,
)
from tavola.limits import RANGE_KEY_BYTES_MAX
from tavola.values import Value, tag_of


class Bounds(Struct, frozen=True):
    """Keys from `lower` on, up to but not including `upper`; None is no upper end."""

    lower: bytes
    upper: bytes | None

    def holds(self, key: bytes) -> bool:
        """Tell whether a key lies inside."""
        return self.lower <= key and (self.upper is None or key < self.upper)


class SortCondition(Struct, frozen=True):
    """A condition on one range attribute: < <= > >= BETWEEN begins_with, and its values."""

    operator: str
    values: tuple[Value, ...]


def partition_bounds(
    schema: KeySchema,
    hash_values: Sequence[Value],
    range_values: Sequence[Value] = (),
    last: SortCondition | None = None,
) -> Bounds:
    """Return the keys of a partition whose first range attributes equal `range_values` and meet `last`."""
    prefix = partition_prefix(schema.hash, hash_parts(schema, hash_values))
    open_place = -1 if schema.ties else len(schema.range) - 1  # where the value is not terminated
    size = 0
    for place, value in enumerate(range_values):
        attribute = schema.range[place]
        part = key_bytes(attribute.type, value[attribute.type])
        size += len(part)
        if size > RANGE_KEY_BYTES_MAX:
            raise KeyRefused("range-size", attribute.name, attribute.type)
        prefix += part if place == open_place else terminate_part(attribute.type, part)
    if len(range_values) == len(schema.range):
        return Bounds(prefix, successor(prefix) if schema.ties else prefix + b"\x00")
    if last is None:
        return Bounds(prefix, successor(prefix))
    attribute = schema.range[len(range_values)]
    return _narrow(prefix, attribute, len(range_values) == open_place, last)


def bounds_around(schema: KeySchema, key: bytes) -> Bounds:
    """Return the bounds of the partition that a key lies in."""
    prefix = key[: end_of_partition(schema, key)]
    return Bounds(prefix, successor(prefix))


def segment_bounds(segment: int, total: int) -> Bounds:
    """Return the keys of one of `total` equal segments of the hash space."""
    lower = -(-POSITIONS * segment // total)
    upper = -(-POSITIONS * (segment + 1) // total)
    return Bounds(
        lower.to_bytes(POSITION_BYTES, "big"),
        None if upper == POSITIONS else upper.to_bytes(POSITION_BYTES, "big"),
    )


def _narrow(prefix: bytes, attribute: KeyAttribute, final: bool, condition: SortCondition) -> Bounds:
    def at(value: Value) -> bytes:
        part = key_bytes(attribute.type, value[attribute.type])
        if len(part) > RANGE_KEY_BYTES_MAX:
            raise KeyRefused("range-size", attribute.name, attribute.type)
        return prefix + (part if final else terminate_part(attribute.type, part))

    def past(value: Value) -> bytes:
        after = at(value) + b"\x00" if final else successor(at(value))
        assert after is not None, "a key has a length in it, so it is never all ones"
        return after

    first = condition.values[0]
    match condition.operator:
        case "<":
            return Bounds(prefix, at(first))
        case "<=":
            return Bounds(prefix, past(first))
        case ">":
            return Bounds(past(first), successor(prefix))
        case ">=":
            return Bounds(at(first), successor(prefix))
        case "BETWEEN":
            return Bounds(at(first), past(condition.values[1]))
        case "begins_with":
            part = key_bytes(tag_of(first), first[attribute.type])
            start = prefix + (part if final else escape_part(part))
            return Bounds(start, successor(start))
        case operator:
            raise AssertionError(f"no sort condition has the operator {operator}")


class KeySpan(Struct, frozen=True):
    """One text, all texts with a prefix, a range of texts, every text or none.

    Of `equal`, `prefix` and the two ends at most one kind is there. A range with both ends includes both, so
    that it is a BETWEEN.
    """

    equal: str | None = None
    prefix: str | None = None
    lower: str | None = None
    upper: str | None = None
    lower_inclusive: bool = True
    upper_inclusive: bool = True
    empty: bool = False  # nothing can answer: no request is needed, and DynamoDB would refuse it
    exact: bool = True  # False: a part drops digits, so values must be compared once more

    def condition(self) -> tuple[str, tuple[str, ...]] | None:
        """Return the operator of a key condition and its operands; None if there is nothing to say."""
        if self.equal is not None:
            return "=", (self.equal,)
        if self.prefix is not None:
            return "begins_with", (self.prefix,)
        if self.lower is not None and self.upper is not None:
            return "BETWEEN", (self.lower, self.upper)
        if self.lower is not None:
            return ">=" if self.lower_inclusive else ">", (self.lower,)
        if self.upper is not None:
            return "<=" if self.upper_inclusive else "<", (self.upper,)
        return None

    def holds(self, text: str) -> bool:
        """Tell whether a sort key lies inside; strings of Python compare as their UTF-8 does."""
        if self.empty:
            return False
        if self.equal is not None:
            return text == self.equal
        if self.prefix is not None:
            return text.startswith(self.prefix)
        if self.lower is not None and not (text >= self.lower if self.lower_inclusive else text > self.lower):
            return False
        return self.upper is None or (text <= self.upper if self.upper_inclusive else text < self.upper)
