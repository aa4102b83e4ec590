"""Estimates: the capacity units of a request, before it is sent.

An estimate is exact if the request and the known items decide it (an item to put, a current item that is passed). Otherwise it
is based on the sizes that the design declares, else on those that `model.sizes` estimates for cost and lint too, and lists its
assumptions. Indexes are counted as DynamoDB charges them: for entries that are added, removed, changed or moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tavola.client.consumption import NO_UNITS, CapacityOwner, Units, total_units
from tavola.client.marshalling import matches_key
from tavola.expressions.bindings import Bindings
from tavola.expressions.errors import ExpressionError
from tavola.expressions.nodes import Remove
from tavola.expressions.plans import compile_update
from tavola.expressions.updates import CompiledUpdate, apply
from tavola.limits import PAGE_BYTES_MAX, READ_UNIT_BYTES, WRITE_UNIT_BYTES
from tavola.model import EntityShape, Index, Table
from tavola.model.document import EntityDesign, TableDesign
from tavola.model.sizes import entry_bytes
from tavola.model.sizes import item_size as estimate_item
from tavola.model.survey import design_of
from tavola.values import (
    Item,
    equal,
    index_units,
    item_size,
    read_units,
    transact_read_units,
    transact_write_units,
    write_units,
)


@dataclass(frozen=True, slots=True)
class KnownItems:
    """What is known besides the request: the tables, and the items that it will read or replace."""

    tables: Mapping[str, type[Table]] = field(default_factory=dict)
    # The entities involved, by table
    shapes: Mapping[str, tuple[EntityShape, ...]] = field(default_factory=dict)
    item_bytes: int | None = None  # size of one item
    items: int | None = None  # items that a query finds in one partition, before any filter
    current: tuple[Item, ...] = ()  # items as they are stored
    hydrates: bool = False  # index entries are fetched from the table by requests that are not shown


@dataclass(frozen=True, slots=True)
class Estimate:
    """Units by table and index, and the assumptions made."""

    by_owner: Mapping[CapacityOwner, Units]
    assumptions: tuple[str, ...] = ()

    @property
    def total(self) -> Units:
        """All units together."""
        return total_units(self.by_owner)


def estimate(operation: str, request: Mapping[str, Any], known: KnownItems) -> Estimate | None:
    """Return the units of a request, None if they cannot be estimated, as for the scan of a whole table."""
    estimator = _Estimator(known)
    match operation:
        case "GetItem":
            estimator.get(request)
        case "PutItem":
            estimator.put(request)
        case "UpdateItem":
            estimator.update(request)
        case "DeleteItem":
            estimator.delete(request)
        case "Query" | "Scan":
            if not estimator.page(operation, request):
                return None
        case "BatchGetItem":
            for table, members in request["RequestItems"].items():
                for key in members["Keys"]:
                    estimator.get({**members, "TableName": table, "Key": key})
        case "BatchWriteItem":
            for table, writes in request["RequestItems"].items():
                for write in writes:
                    for kind, members in write.items():
                        estimator.write(kind, {**members, "TableName": table})
        case "TransactGetItems":
            for member in request["TransactItems"]:
                estimator.get(member["Get"], transaction=True)
        case "TransactWriteItems":
            for member in request["TransactItems"]:
                for kind, members in member.items():
                    estimator.write(kind, members, transaction=True)
        case _:
            return None
    return Estimate(estimator.by_owner, tuple(estimator.assumptions))


class _Estimator:
    """Adds up the units of one request."""

    def __init__(self, known: KnownItems) -> None:
        self.known = known
        self.by_owner: dict[CapacityOwner, Units] = {}
        self.assumptions: dict[str, None] = {}  # ordered, without duplicates

    def get(self, request: Mapping[str, Any], *, transaction: bool = False) -> None:
        current = self._find_current(request["TableName"], request["Key"])
        bytes_ = item_size(current) if current is not None else self._assumed_bytes(request, READ_UNIT_BYTES)
        consistent = bool(request.get("ConsistentRead"))
        units = transact_read_units(bytes_) if transaction else read_units(bytes_, consistent=consistent)
        self._add(request["TableName"], None, Units(reads=units))

    def page(self, operation: str, request: Mapping[str, Any]) -> bool:
        limit, items = request.get("Limit"), self.known.items
        if operation == "Scan":
            items = limit
        elif items is None:
            items = limit
            if limit is not None:
                self._assume(f"that the partition has {limit} items, the Limit of the request")
        elif limit is not None:
            items = min(items, limit)
        if items is None:
            return False
        name, index = request["TableName"], self._index(request)
        item_bytes = self._assumed_bytes(request, READ_UNIT_BYTES)
        bytes_ = items * (item_bytes if index is None else self._entry_bytes(request, index, item_bytes))
        pages, rest = divmod(bytes_, PAGE_BYTES_MAX)
        consistent = bool(request.get("ConsistentRead"))
        units = pages * read_units(PAGE_BYTES_MAX, consistent=consistent)
        if rest or not pages:
            units += read_units(rest, consistent=consistent)
        self._add(name, request.get("IndexName"), Units(reads=units))
        if self.known.hydrates and index is not None:
            self._assume(f"that each of {items} entries is fetched from the table")
            self._add(name, None, Units(reads=items * read_units(item_bytes, consistent=consistent)))
        return True

    def _index(self, request: Mapping[str, Any]) -> Index | None:
        table = self.known.tables.get(request["TableName"])
        indexes = () if table is None else table.indexes
        return next((index for index in indexes if index.name == request.get("IndexName")), None)

    def _entry_bytes(self, request: Mapping[str, Any], index: Index, item_bytes: int) -> int:
        """Return the assumed size of an index entry, from the attributes that it holds."""
        if index.projection == "ALL":
            return item_bytes
        sizes = [
            entry_bytes(table, entity, table.index(index.name), self.known.item_bytes)
            for table, entity in self._possible_entities(request)
            if entity.key_on(index.name) is not None
        ]
        if not sizes:
            return item_bytes
        bytes_ = min(item_bytes, _mean(sizes))
        self._assume(f"that an entry of {index.name} has {bytes_:,} bytes ({_describe_projection(index)})")
        return bytes_

    def write(self, kind: str, request: Mapping[str, Any], *, transaction: bool = False) -> None:
        match kind:
            case "Put" | "PutRequest":
                self.put(request, transaction=transaction)
            case "Update":
                self.update(request, transaction=transaction)
            case "Delete" | "DeleteRequest":
                self.delete(request, transaction=transaction)
            case _:  # a condition check costs as much as a write of the item
                self._add_table_write(request, self._current_bytes(request), transaction)

    def put(self, request: Mapping[str, Any], *, transaction: bool = False) -> None:
        table = self.known.tables.get(request["TableName"])
        item: Item = request["Item"]
        old = None if table is None else self._find_current(request["TableName"], key_in(table, item))
        if old is None:
            self._assume(
                "that the item is new; replacing an item costs as much as the larger of the two, plus moved index entries"
            )
        self._add_write(request, old, item, transaction)

    def update(self, request: Mapping[str, Any], *, transaction: bool = False) -> None:
        old = self._find_current(request["TableName"], request["Key"])
        plan = _compiled_update(request)
        if old is not None and plan is not None:
            try:
                new = apply(plan, old, request.get("ExpressionAttributeValues") or {}).item
            except ExpressionError:
                new = old  # the update will be rejected, and is charged for the current item
            self._add_write(request, old, new, transaction)
            return
        bytes_ = self._assumed_bytes(request, WRITE_UNIT_BYTES)
        self._add_table_write(request, bytes_, transaction)
        if plan is not None:
            for index in self._possible_indexes(request):
                self._add_unknown_entry(request, index, plan, bytes_)

    def delete(self, request: Mapping[str, Any], *, transaction: bool = False) -> None:
        old = self._find_current(request["TableName"], request["Key"])
        if old is not None:
            self._add_write(request, old, None, transaction)
            return
        bytes_ = self._assumed_bytes(request, WRITE_UNIT_BYTES)
        self._add_table_write(request, bytes_, transaction)
        for index in self._possible_indexes(request):
            entry = self._entry_bytes(request, index, bytes_)
            self._add(request["TableName"], index.name, Units(writes=write_units(entry, 0)))

    def _add_write(
        self, request: Mapping[str, Any], old: Item | None, new: Item | None, transaction: bool
    ) -> None:
        sizes = [0 if image is None else item_size(image) for image in (old, new)]
        self._add_table_write(request, max(sizes), transaction)
        name = request["TableName"]
        table = self.known.tables.get(name)
        for index in () if table is None else table.indexes:
            assert table is not None
            before, after = (None if image is None else entry_in(table, index, image) for image in (old, new))
            self._add(name, index.name, Units(writes=_entry_units(index, before, after)))

    def _add_unknown_entry(
        self, request: Mapping[str, Any], index: Index, plan: CompiledUpdate, bytes_: int
    ) -> None:
        """Add an update of an unknown item on one index: moved if its key is set, changed if it projects the attribute."""
        table = request["TableName"]
        entry_units = write_units(self._entry_bytes(request, index, bytes_), 0)
        keys = plan.written.intersection(index.attributes)
        if keys:
            is_removed = bool(keys & _removed_attributes(plan))
            if not is_removed:
                self._assume(
                    f"that the entry in {index.name} moves: one write to delete it and one to add it"
                )
            self._add(table, index.name, Units(writes=entry_units if is_removed else 2 * entry_units))
        elif index.projection == "ALL" or plan.written.intersection(index.projection):
            self._add(table, index.name, Units(writes=entry_units))

    def _add_table_write(self, request: Mapping[str, Any], bytes_: int, transaction: bool) -> None:
        units = transact_write_units(bytes_, 0) if transaction else write_units(bytes_, 0)
        self._add(request["TableName"], None, Units(writes=units))

    def _current_bytes(self, request: Mapping[str, Any]) -> int:
        current = self._find_current(request["TableName"], request["Key"])
        return item_size(current) if current is not None else self._assumed_bytes(request, WRITE_UNIT_BYTES)

    def _possible_indexes(self, request: Mapping[str, Any]) -> Iterator[Index]:
        """Yield the indexes that an unknown item may be in, by the entities that its key matches."""
        seen = {
            key.index.name: key.index
            for shape in self._possible_shapes(request)
            for key in shape.keys
            if key.index is not None
        }
        yield from seen.values()

    def _possible_shapes(self, request: Mapping[str, Any]) -> Iterator[EntityShape]:
        """Yield the entities that a request is about: those that its key matches, without a key all involved."""
        for shape in self.known.shapes.get(request["TableName"], ()):
            if "Key" not in request or matches_key(shape, request["Key"]):
                yield shape

    def _possible_entities(self, request: Mapping[str, Any]) -> Iterator[tuple[TableDesign, EntityDesign]]:
        for shape in self._possible_shapes(request):
            table = design_of(shape.home).tables[0]
            yield table, table.entity(shape.name)

    def _assumed_bytes(self, request: Mapping[str, Any], step: int) -> int:
        """Return the size of one item: the caller's, else as the design declares or suggests it, else one unit's."""
        if self.known.item_bytes is not None:
            return self.known.item_bytes
        sizes = {
            entity.name: estimate_item(table, entity) for table, entity in self._possible_entities(request)
        }
        if not sizes:
            self._assume(f"that an item has {step // 1024} KB, because no size is declared; pass item_bytes=")
            return step
        bytes_ = _mean([size.total for size in sizes.values()])
        if not all(size.declared for size in sizes.values()):
            what = f"an item of {next(iter(sizes))}" if len(sizes) == 1 else "an item, on average,"
            self._assume(f"that {what} has {bytes_:,} bytes, estimated from its fields; pass item_bytes=")
        return bytes_

    def _find_current(self, name: str, key: Item) -> Item | None:
        table = self.known.tables.get(name)
        if table is None:
            return None
        return next((item for item in self.known.current if key_in(table, item) == key), None)

    def _assume(self, sentence: str) -> None:
        self.assumptions[sentence] = None

    def _add(self, table: str, index: str | None, units: Units) -> None:
        if units != NO_UNITS:
            self.by_owner[table, index] = self.by_owner.get((table, index), NO_UNITS) + units


def key_in(table: type[Table], item: Item) -> Item:
    """Return the primary key of an item, as far as it is present."""
    return {name: item[name] for name in table.settings.key_names if name in item}


def entry_in(table: type[Table], index: Index, item: Item) -> Item | None:
    """Return the entry of an item in an index, None if the item lacks a key attribute."""
    if any(name not in item for name in index.attributes):
        return None
    if index.projection == "ALL":
        return item
    projected = () if index.projection == "KEYS_ONLY" else index.projection
    keys = {*key_in(table, item), *index.attributes, *projected}
    return {name: value for name, value in item.items() if name in keys}


def _entry_units(index: Index, before: Item | None, after: Item | None) -> float:
    sizes = [None if entry is None else item_size(entry) for entry in (before, after)]
    if before is None or after is None:
        return index_units(*sizes)
    moved = any(not equal(before[name], after[name]) for name in index.attributes)
    return index_units(*sizes, moved=moved, same=equal({"M": before}, {"M": after}))


def _describe_projection(index: Index) -> str:
    if index.projection == "KEYS_ONLY":
        return "its keys"
    projected = len(set(index.projection) - set(index.attributes))
    return f"its keys and {projected} projected attribute{'' if projected == 1 else 's'}"


def _mean(sizes: Sequence[int]) -> int:
    return -(-sum(sizes) // len(sizes))


def _compiled_update(request: Mapping[str, Any]) -> CompiledUpdate | None:
    text = request.get("UpdateExpression")
    if text is None:
        return None
    names = request.get("ExpressionAttributeNames") or {}
    return compile_update(text, Bindings(names, request.get("ExpressionAttributeValues") or {}))


def _removed_attributes(plan: CompiledUpdate) -> frozenset[str]:
    """Return the top-level attributes that an update removes."""
    return frozenset(
        str(steps[0])
        for action, steps in zip(plan.tree.actions, plan.touched, strict=True)
        if isinstance(action, Remove) and len(steps) == 1
    )
