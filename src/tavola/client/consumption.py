"""Consumed capacity: request units by table and index, parsed from responses and summed over a block of code.

    with db.measure() as units: …
    units.reads, units.writes, units.tables["Desk"].indexes["gsi1"]

Meters are found through a context variable, so threads and tasks do not disturb each other, and tasks started inside the
block count too. Requests ask for their consumption only while something is measured. A call that fails is not in the sum,
because its response holds no units, although DynamoDB charges for a failed condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from threading import Lock
from typing import Any

from tavola.prices import PriceBook

READS = frozenset({"GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"})
WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})
METERED = READS | WRITES

CapacityOwner = tuple[str, str | None]  # a table, and one of its indexes or None for the table itself


@dataclass(frozen=True, slots=True)
class Units:
    """Read and write request units; multiples of a half, which floats add exactly."""

    reads: float = 0.0
    writes: float = 0.0

    def __add__(self, other: Units) -> Units:
        return Units(self.reads + other.reads, self.writes + other.writes)

    def usd_per_million(self, book: PriceBook) -> Decimal:
        """Return the on-demand price of a million times these units."""
        reads = book.usd_per_million(self.reads, "read_request_unit")
        return reads + book.usd_per_million(self.writes, "write_request_unit")

    def __str__(self) -> str:
        parts = [
            f"{units:,g} {kind}" for units, kind in ((self.reads, "read"), (self.writes, "write")) if units
        ]
        if not parts:
            return "0 units"
        return f"{' and '.join(parts)} unit{'' if self.reads + self.writes == 1 else 's'}"


NO_UNITS = Units()


def parse_consumption(operation: str, response: Mapping[str, Any]) -> dict[CapacityOwner, Units]:
    """Return the units in a response by table and index; empty if it holds none.

    A transaction reports reads and writes separately (a repeated one is charged as reads); for other operations, the
    operation determines which they are.
    """
    consumed = response.get("ConsumedCapacity")
    units_by_owner: dict[CapacityOwner, Units] = {}
    for capacity in [consumed] if isinstance(consumed, Mapping) else consumed or ():
        table = capacity["TableName"]
        parts: list[tuple[str | None, Mapping[str, Any]]] = [(None, capacity.get("Table", capacity))]
        for member in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
            parts += capacity.get(member, {}).items()
        for index, part in parts:
            units = _parse_units(part, is_write=operation not in READS)
            if units != NO_UNITS:
                units_by_owner[table, index] = units_by_owner.get((table, index), NO_UNITS) + units
    return units_by_owner


def _parse_units(capacity: Mapping[str, Any], *, is_write: bool) -> Units:
    if "ReadCapacityUnits" in capacity or "WriteCapacityUnits" in capacity:
        return Units(
            float(capacity.get("ReadCapacityUnits", 0.0)), float(capacity.get("WriteCapacityUnits", 0.0))
        )
    units = float(capacity.get("CapacityUnits", 0.0))
    return Units(writes=units) if is_write else Units(reads=units)


def total_units(by_owner: Mapping[CapacityOwner, Units]) -> Units:
    """Return the sum of all units."""
    return sum(by_owner.values(), NO_UNITS)


def merge_units(parts: Iterable[Mapping[CapacityOwner, Units]]) -> dict[CapacityOwner, Units]:
    """Return the sum of several mappings, ordered by table and index."""
    sums: dict[CapacityOwner, Units] = {}
    for part in parts:
        for owner, units in part.items():
            sums[owner] = sums.get(owner, NO_UNITS) + units
    return dict(sorted(sums.items(), key=lambda pair: (pair[0][0], pair[0][1] or "")))


def owner_name(owner: CapacityOwner) -> str:
    """Return the name of a table or index for people."""
    table, index = owner
    return table if index is None else f"{table}.{index}"


@dataclass(slots=True)
class TableUnits:
    """The units of one table, and those of each of its indexes."""

    reads: float = 0.0
    writes: float = 0.0
    indexes: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class ConsumedCapacity:
    """The capacity consumed by the calls of a measured block."""

    calls: int = 0
    reads: float = 0.0
    writes: float = 0.0
    tables: dict[str, TableUnits] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def add(self, operation: str, response: dict[str, Any]) -> None:
        """Add the consumption of one response."""
        by_owner = parse_consumption(operation, response)
        with self._lock:
            self.calls += 1
            self.operations[operation] = self.operations.get(operation, 0) + 1
            for (name, index), units in by_owner.items():
                self.reads += units.reads
                self.writes += units.writes
                table = self.tables.setdefault(name, TableUnits())
                if index is None:
                    table.reads += units.reads
                    table.writes += units.writes
                else:
                    table.indexes[index] = table.indexes.get(index, 0.0) + units.reads + units.writes

    def usd(self, book: PriceBook) -> Decimal:
        """Return the on-demand price, from a price book such as `tavola.prices.load_book("us-east-1")`."""
        return Units(self.reads, self.writes).usd_per_million(book) / 1_000_000

    def __str__(self) -> str:
        calls = ", ".join(f"{count} {operation}" for operation, count in sorted(self.operations.items()))
        return f"{Units(self.reads, self.writes)} by {calls or 'no call'}"


METERS: ContextVar[tuple[ConsumedCapacity, ...]] = ContextVar("meters", default=())  # of the blocks around


@contextmanager
def measure_units() -> Iterator[ConsumedCapacity]:
    """Yield the sum of what the calls inside consume, updated with each response."""
    units = ConsumedCapacity()
    token = METERS.set((*METERS.get(), units))
    try:
        yield units
    finally:
        METERS.reset(token)


def request_capacity(operation: str, request: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a call that also asks for the capacity it consumes, if its operation reports any."""
    return operation, {**request, "ReturnConsumedCapacity": "INDEXES"} if operation in METERED else request


def record_consumption(operation: str, response: dict[str, Any]) -> None:
    """Add a response to the meters of this context."""
    for units in METERS.get():
        units.add(operation, response)
