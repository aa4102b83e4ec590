"""Estimates: the units that a request will take, before it is sent.

Exact where the request holds what decides (an item to be put, a standing item that is given); elsewhere
from the sizes that the design declares, and each assumption made on the way is told as a sentence. Indexes
are counted by their definitions: an entry that comes, goes, changes or moves, as DynamoDB bills it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tavola.client.consumption import NOTHING, Place, Units, total
from tavola.client.marshalling import fits
from tavola.expressions.bindings import Bindings
from tavola.expressions.errors import ExpressionError
from tavola.expressions.nodes import Remove
from tavola.expressions.plans import compile_update
from tavola.expressions.updates import Update, apply
from tavola.limits import PAGE_BYTES_MAX, READ_UNIT_BYTES, WRITE_UNIT_BYTES
from tavola.model import Index, Shape, Table
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

KEY_BYTES = 16  # of a key's value that nobody has seen
VALUE_BYTES = 32  # of another attribute's


@dataclass(frozen=True, slots=True)
class Known:
    """What is known besides the request: the tables, and the items that it will meet."""

    tables: Mapping[str, type[Table]] = field(default_factory=dict)
    shapes: Mapping[str, tuple[Shape, ...]] = field(default_factory=dict)  # by table, the entities concerned
    item_bytes: int | None = None  # of one item
    items: int | None = None  # that a query finds in one partition, before any filter
    standing: tuple[Item, ...] = ()  # items as they stand, found by their key
    fetches: bool = (
        False  # what a query finds in an index is got from the table, in requests that are not seen
    )


@dataclass(frozen=True, slots=True)
class Estimate:
    """Units by table and index, and what had to be assumed."""

    by_place: Mapping[Place, Units]
    assumed: tuple[str, ...] = ()

    @property
    def total(self) -> Units:
        """All units together."""
        return total(self.by_place)


def estimate(operation: str, request: Mapping[str, Any], known: Known) -> Estimate | None:
    """Return what a request will take, None where nothing can be said, as of a whole table's scan."""
    making = _Making(known)
    match operation:
        case "GetItem":
            making.get(request)
        case "PutItem":
            making.put(request)
        case "UpdateItem":
            making.update(request)
        case "DeleteItem":
            making.delete(request)
        case "Query" | "Scan":
            if not making.page(operation, request):
                return None
        case "BatchGetItem":
            for table, wanted in request["RequestItems"].items():
                for key in wanted["Keys"]:
                    making.get({**wanted, "TableName": table, "Key": key})
        case "BatchWriteItem":
            for table, writes in request["RequestItems"].items():
                for write in writes:
                    for kind, told in write.items():
                        making.write(kind, {**told, "TableName": table})
        case "TransactGetItems":
            for member in request["TransactItems"]:
                making.get(member["Get"], transaction=True)
        case "TransactWriteItems":
            for member in request["TransactItems"]:
                for kind, told in member.items():
                    making.write(kind, told, transaction=True)
        case _:
            return None
    return Estimate(making.by_place, tuple(making.assumed))


class _Making:
    """An estimate while its request is walked."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self.by_place: dict[Place, Units] = {}
        self.assumed: dict[str, None] = {}  # in order, each once

    def get(self, request: Mapping[str, Any], *, transaction: bool = False) -> None:
        standing = self._standing(request["TableName"], request["Key"])
        bytes_ = item_size(standing) if standing is not None else self._bytes(READ_UNIT_BYTES)
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
                self._assume(f"that the partition holds {limit} items, as many as Limit lets it read")
        elif limit is not None:
            items = min(items, limit)
        if items is None:
            return False
        name, index = request["TableName"], self._index(request)
        item_bytes = self._bytes(READ_UNIT_BYTES)
        bytes_ = items * (item_bytes if index is None else self._read_bytes(name, index, item_bytes))
        pages, rest = divmod(bytes_, PAGE_BYTES_MAX)
        consistent = bool(request.get("ConsistentRead"))
        units = pages * read_units(PAGE_BYTES_MAX, consistent=consistent)
        if rest or not pages:
            units += read_units(rest, consistent=consistent)
        self._add(name, request.get("IndexName"), Units(reads=units))
        if self.known.fetches and index is not None:
            self._assume(f"that each of {items} entries is got from the table, one by one as it is paid")
            self._add(name, None, Units(reads=items * read_units(item_bytes, consistent=consistent)))
        return True

    def _index(self, request: Mapping[str, Any]) -> Index | None:
        table = self.known.tables.get(request["TableName"])
        found = (
            () if table is None else (each for each in table.indexes if each.name == request.get("IndexName"))
        )
        return next(iter(found), None)

    def _read_bytes(self, name: str, index: Index, item_bytes: int) -> int:
        """Return the bytes of an unseen entry that is read, of one that is not whole by what it is made of."""
        if index.projection == "ALL":
            return item_bytes
        table = self.known.tables[name]
        held = {*table.settings.key_names, *index.attributes}
        named = set() if index.projection == "KEYS_ONLY" else set(index.projection) - held
        bytes_ = min(
            item_bytes,
            sum(map(len, held)) + len(held) * KEY_BYTES + sum(map(len, named)) + len(named) * VALUE_BYTES,
        )
        told = "its keys" if not named else f"its keys and {len(named)} projected attributes"
        self._assume(f"that an entry of {index.name} has {bytes_} bytes: {told}, not the whole item")
        return bytes_

    def write(self, kind: str, request: Mapping[str, Any], *, transaction: bool = False) -> None:
        match kind:
            case "Put" | "PutRequest":
                self.put(request, transaction=transaction)
            case "Update":
                self.update(request, transaction=transaction)
            case "Delete" | "DeleteRequest":
                self.delete(request, transaction=transaction)
            case _:  # a check pays as the write of what it looks at
                self._base(request, self._size_of(request), transaction)

    def put(self, request: Mapping[str, Any], *, transaction: bool = False) -> None:
        table = self.known.tables.get(request["TableName"])
        item: Item = request["Item"]
        old = None if table is None else self._standing(request["TableName"], key_in(table, item))
        if old is None:
            self._assume(
                "that the item is new; over another one, the larger of the two is paid, and so are index entries that move"
            )
        self._images(request, old, item, transaction)

    def update(self, request: Mapping[str, Any], *, transaction: bool = False) -> None:
        old = self._standing(request["TableName"], request["Key"])
        plan = _plan_of(request)
        if old is not None and plan is not None:
            try:
                new = apply(plan, old, request.get("ExpressionAttributeValues") or {}).item
            except ExpressionError:
                new = old  # it will be refused, and pays for what stands
            self._images(request, old, new, transaction)
            return
        bytes_ = self._bytes(WRITE_UNIT_BYTES)
        self._base(request, bytes_, transaction)
        if plan is not None:
            for index in self._fed(request):
                self._blind(request["TableName"], index, plan, bytes_)

    def delete(self, request: Mapping[str, Any], *, transaction: bool = False) -> None:
        old = self._standing(request["TableName"], request["Key"])
        if old is not None:
            self._images(request, old, None, transaction)
            return
        bytes_ = self._bytes(WRITE_UNIT_BYTES)
        self._base(request, bytes_, transaction)
        for index in self._fed(request):
            self._add(
                request["TableName"], index.name, Units(writes=write_units(_entry_bytes(index, bytes_), 0))
            )

    def _images(
        self, request: Mapping[str, Any], old: Item | None, new: Item | None, transaction: bool
    ) -> None:
        sizes = [0 if image is None else item_size(image) for image in (old, new)]
        self._base(request, max(sizes), transaction)
        name = request["TableName"]
        table = self.known.tables.get(name)
        for index in () if table is None else table.indexes:
            assert table is not None
            before, after = (None if image is None else entry_in(table, index, image) for image in (old, new))
            self._add(name, index.name, Units(writes=_entry_units(index, before, after)))

    def _blind(self, table: str, index: Index, plan: Update, bytes_: int) -> None:
        """Count an update of an unseen item on one index: moved if its key is set, rewritten if it projects."""
        each = write_units(_entry_bytes(index, bytes_), 0)
        keys = plan.written.intersection(index.attributes)
        if keys:
            leaves = bool(keys & _removed(plan))
            if not leaves:
                self._assume(
                    f"that the entry in {index.name} moves: it is removed at one place and put at another"
                )
            self._add(table, index.name, Units(writes=each if leaves else 2 * each))
        elif index.projection == "ALL" or plan.written.intersection(index.projection):
            self._add(table, index.name, Units(writes=each))

    def _base(self, request: Mapping[str, Any], bytes_: int, transaction: bool) -> None:
        units = transact_write_units(bytes_, 0) if transaction else write_units(bytes_, 0)
        self._add(request["TableName"], None, Units(writes=units))

    def _size_of(self, request: Mapping[str, Any]) -> int:
        standing = self._standing(request["TableName"], request["Key"])
        return item_size(standing) if standing is not None else self._bytes(WRITE_UNIT_BYTES)

    def _fed(self, request: Mapping[str, Any]) -> Iterator[Index]:
        """Yield the indexes that the unseen item under a key may be in: those of the entities it may be."""
        shapes = self.known.shapes.get(request["TableName"], ())
        fitting = [shape for shape in shapes if fits(shape, request["Key"])]
        seen = {key.index.name: key.index for shape in fitting for key in shape.keys if key.index is not None}
        yield from seen.values()

    def _bytes(self, step: int) -> int:
        if self.known.item_bytes is not None:
            return self.known.item_bytes
        self._assume(f"that an item has {step // 1024} KB, for no size is declared; say item_bytes=")
        return step

    def _standing(self, name: str, key: Item) -> Item | None:
        table = self.known.tables.get(name)
        if table is None:
            return None
        return next((item for item in self.known.standing if key_in(table, item) == key), None)

    def _assume(self, sentence: str) -> None:
        self.assumed[sentence] = None

    def _add(self, table: str, index: str | None, units: Units) -> None:
        if units != NOTHING:
            self.by_place[table, index] = self.by_place.get((table, index), NOTHING) + units


def key_in(table: type[Table], item: Item) -> Item:
    """Return the table's key in an item."""
    return {name: item[name] for name in table.settings.key_names if name in item}


def entry_in(table: type[Table], index: Index, item: Item) -> Item | None:
    """Return an item as an index holds it, None if it lacks a key attribute and is not in the index."""
    if any(name not in item for name in index.attributes):
        return None
    if index.projection == "ALL":
        return item
    named = () if index.projection == "KEYS_ONLY" else index.projection
    held = {*key_in(table, item), *index.attributes, *named}
    return {name: value for name, value in item.items() if name in held}


def _entry_units(index: Index, before: Item | None, after: Item | None) -> float:
    sizes = [None if entry is None else item_size(entry) for entry in (before, after)]
    if before is None or after is None:
        return index_units(*sizes)
    moved = any(not equal(before[name], after[name]) for name in index.attributes)
    return index_units(*sizes, moved=moved, same=equal({"M": before}, {"M": after}))


def _entry_bytes(index: Index, item_bytes: int) -> int:
    """Return the bytes of an unseen entry: the item's if it is whole, else at most one step's."""
    return item_bytes if index.projection == "ALL" else min(item_bytes, WRITE_UNIT_BYTES)


def _plan_of(request: Mapping[str, Any]) -> Update | None:
    text = request.get("UpdateExpression")
    if text is None:
        return None
    names = request.get("ExpressionAttributeNames") or {}
    return compile_update(text, Bindings(names, request.get("ExpressionAttributeValues") or {}))


def _removed(plan: Update) -> frozenset[str]:
    """Return the attributes that an update takes away whole."""
    return frozenset(
        str(steps[0])
        for action, steps in zip(plan.tree.actions, plan.touched, strict=True)
        if isinstance(action, Remove) and len(steps) == 1
    )
