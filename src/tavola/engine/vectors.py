"""Vector indexes: which items they contain, and the entry of each.

An item is in a vector index if it has the vector and, if the index is partitioned, the partitioning attribute. Its entry
is a column of the item's row, like the entries of other indexes: the vector as 32-bit floats, then the values that a
search may filter by. So an index always agrees with its table. A search keeps a copy of the entries in memory
(`nearest`), which each write updates.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from tavola.engine.storage import Entry
from tavola.limits import HASH_KEY_BYTES_MAX, VECTOR_FILTER_BYTES_MAX, VECTOR_REQUEST_BYTES_MIN
from tavola.protocol.faults import ValidationFault
from tavola.values import Item, Value, decimal_of, tag_of, text_size, value_size

_INVALID = "One or more parameter values were invalid. "
_NOT_VALID = "One or more parameter values are not valid. "
_FLOAT_BYTES = 4

Distance = Literal["COSINE", "DOT_PRODUCT", "EUCLIDEAN"]


class VectorDefinition(msgspec.Struct, frozen=True):
    """The stored definition of a vector index."""

    name: str
    slot: int  # names its columns; never used again in this table
    attribute: str
    dimensions: int
    distance: Distance
    projection: Literal["ALL", "INCLUDE", "KEYS_ONLY"]
    named: tuple[str, ...] = ()  # the attributes that INCLUDE names
    schema: tuple[tuple[str, str], ...] = ()  # attributes to filter by, each HASH or INLINE_FILTER
    ready_at_s: float = 0.0  # in store time
    filled_to: int | None = None  # the row up to which it is backfilled; None: complete

    @property
    def hash(self) -> tuple[str, ...]:
        """Return the attribute that partitions the index, if there is one."""
        return tuple(name for name, kind in self.schema if kind == "HASH")


class VectorCopy(Protocol):
    """The entries of a vector index in memory, by the key of their item."""

    def put(self, key: bytes, entry: bytes) -> None:
        """Add an entry, or replace the one with this key."""
        ...

    def remove(self, key: bytes) -> None:
        """Remove the entry with a key."""
        ...


class Vector:
    """A vector index at run time: its columns, projection and search attributes."""

    __slots__ = (
        "attribute",
        "column",
        "columns",
        "copy",
        "definition",
        "dimensions",
        "hash",
        "name",
        "names",
        "place",
        "projected",
        "size_column",
        "types",
        "watched",
    )

    def __init__(
        self, definition: VectorDefinition, keys: Sequence[str], types: Mapping[str, str], place: int
    ) -> None:
        self.definition = definition
        self.name = definition.name
        self.attribute = definition.attribute
        self.dimensions = definition.dimensions
        self.names = tuple(name for name, _ in definition.schema)
        self.types = {name: types[name] for name in self.names}
        self.hash = next((name for name, kind in definition.schema if kind == "HASH"), None)
        self.column = f"v{definition.slot}"
        self.columns: tuple[str, ...] = (self.column,)
        self.size_column = "size"
        self.projected: frozenset[str] | None = None  # None: everything
        if definition.projection != "ALL":
            self.projected = frozenset((*keys, *self.names, *definition.named))
            self.size_column = f"s{definition.slot}"
            self.columns = (self.column, self.size_column)
        self.watched = frozenset((self.attribute, *self.names, *(self.projected or ())))
        self.place = place  # of its entry among those of a row
        self.copy: VectorCopy | None = None

    def entries_of(
        self, item: Item, *, updating: bool = False, written: frozenset[str] | None = None
    ) -> tuple[Entry, ...]:
        """Return an item's entry for each column; refuse an item that the index cannot take.

        For an update, only the attributes in `written` are checked; unchanged ones were accepted before.
        """
        entry = self._entry(item, updating, written)
        if self.projected is None:
            return (entry,)
        return (entry, None if entry is None else self.size_of(item))

    def size_of(self, item: Item) -> int:
        """Return the size of an item in the index: its vector as floats, and the projected attributes."""
        projected = item if self.projected is None else self.projected & item.keys()
        rest = sum(text_size(name) + value_size(item[name]) for name in projected if name != self.attribute)
        return _FLOAT_BYTES * self.dimensions + text_size(self.attribute) + rest

    def counted_size(self, size: int, entries: Sequence[Entry]) -> int | None:
        """Return the size of a row in the index, None if it is not in the index."""
        if entries[self.place] is None:
            return None
        projected_size = size if self.projected is None else entries[self.place + 1]
        assert isinstance(projected_size, int), "the second column of a projection is its size"
        return projected_size

    def update_copy(self, key: bytes, old: Sequence[Entry] | None, new: Sequence[Entry] | None) -> None:
        """Update the copy in memory for a row that was added, changed or deleted (None: no row)."""
        if self.copy is None:
            return
        before = None if old is None else old[self.place]
        after = None if new is None else new[self.place]
        if isinstance(after, bytes):
            if after != before:
                self.copy.put(key, after)
        elif before is not None:
            self.copy.remove(key)

    def adopt_copy(self, former: Sequence[Vector]) -> None:
        """Reuse the copy in memory of the same index after its table's definition changed."""
        for former_index in former:
            if former_index.column == self.column and former_index.definition.filled_to is None:
                self.copy = former_index.copy

    def projection_of(self, item: Item) -> Item:
        """Return the projected attributes of an item, without the vector."""
        return {
            name: value
            for name, value in item.items()
            if name != self.attribute and (self.projected is None or name in self.projected)
        }

    def _entry(self, item: Item, updating: bool, written: frozenset[str] | None) -> bytes | None:
        value = item.get(self.attribute)
        packed: bytes | None = None
        if value is not None:
            try:
                packed = self._pack_value(value)
            except ValidationFault:
                if written is None or self.attribute in written:
                    raise
        is_in_index = packed is not None
        for name in self.names:
            filter_value = item.get(name)
            if filter_value is None:
                is_in_index = is_in_index and name != self.hash
                continue
            try:
                self._check(name, filter_value, updating)
            except ValidationFault:
                if written is None or name in written:
                    raise
                is_in_index = False
        if packed is None or not is_in_index:
            return None
        if not self.names:
            return packed
        return packed + msgspec.json.encode([item.get(name) for name in self.names])

    def _pack_value(self, value: Value) -> bytes:
        numbers = value.get("L")
        if numbers is None:
            raise ValidationFault(
                f"{_INVALID}Invalid type for parameter {self.attribute}, Expected: 32-bit floating point number "
                f"list IndexName: {self.name}"
            )
        if len(numbers) != self.dimensions:
            raise ValidationFault(
                f"{_INVALID}Invalid size for parameter {self.attribute}, Expected: {self.dimensions}, "
                f"Actual: {len(numbers)} IndexName: {self.name}"
            )
        try:
            return struct.pack(f"<{self.dimensions}f", *[float(number["N"]) for number in numbers])
        except (KeyError, OverflowError):
            raise self._wrong_number(numbers) from None

    def _wrong_number(self, numbers: list[Value]) -> ValidationFault:
        for position, number in enumerate(numbers):
            at = f"{self.attribute}[{position}]"
            if "N" not in number:
                return ValidationFault(
                    f"{_INVALID}Invalid type for parameter {at}, Expected: 32-bit floating point number, "
                    f"Actual: {tag_of(number)}. IndexName: {self.name}"
                )
            try:
                struct.pack("<f", float(number["N"]))
            except OverflowError:
                return ValidationFault(
                    f"{_INVALID}Invalid value for parameter {at}, Value: {decimal_of(number['N']).normalize():E} "
                    f"is outside valid range [-3.4028235E38, 3.4028235E38]. IndexName: {self.name}"
                )
        raise AssertionError("one of the numbers was refused")

    def _check(self, name: str, value: Value, updating: bool) -> None:
        """Refuse a value that does not fit the search schema."""
        expected, actual = self.types[name], tag_of(value)
        if actual != expected:
            raise ValidationFault(
                f"{_INVALID}Attribute '{name}' type mismatch. Expected: {expected}, Actual: {actual}. "
                f"IndexName: {self.name}"
            )
        size = value_size(value)
        if name != self.hash:
            if size > VECTOR_FILTER_BYTES_MAX:
                raise ValidationFault(
                    f"One or more parameter values were invalid: Size limit exceeded for SearchSchema "
                    f"attribute '{name}': maximum {VECTOR_FILTER_BYTES_MAX} bytes"
                )
            return
        if size > HASH_KEY_BYTES_MAX:
            raise ValidationFault(
                "One or more parameter values were invalid: Aggregate size for HASH key attributes exceeds the "
                f"maximum of {HASH_KEY_BYTES_MAX} bytes"
            )
        if size == 0:
            empty = (
                "The AttributeValue for a key attribute cannot contain an empty "
                f"{'string' if expected == 'S' else 'binary'} value."
            )
            raise ValidationFault(
                f"{_NOT_VALID}The update expression attempted to update a secondary index key to a value that "
                f"is not supported. {empty}"
                if updating
                else f"{_NOT_VALID}A value specified for a secondary index key is not supported. {empty} "
                f"IndexName: {self.name}, IndexKey: {name}"
            )


def write_bytes(vector: Vector, old: Item | None, new: Item | None) -> int:
    """Return the bytes that a write costs on a vector index, from the old and new image; 0 if unchanged."""
    sizes = [vector.size_of(image) for image in (old, new) if image is not None]
    return max(VECTOR_REQUEST_BYTES_MIN, *sizes) if sizes else 0
