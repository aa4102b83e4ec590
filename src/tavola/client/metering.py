"""Metering: what calls consumed, summed over a stretch of code.

    with db.measured() as spent: …
    spent.reads, spent.writes, spent.tables["Desk"].indexes["gsi1"]

Meters are found by context, so threads and tasks do not disturb each other. While nobody measures, requests
do not ask for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

_METERED = frozenset({
    "GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan", "BatchGetItem", "BatchWriteItem",
    "TransactGetItems", "TransactWriteItems",
})  # fmt: skip
_READS = frozenset({"GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"})


@dataclass(slots=True)
class TableUnits:
    """The units of one table: its own, and those of each index."""

    reads: float = 0.0
    writes: float = 0.0
    indexes: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Spent:
    """What was consumed while measuring."""

    calls: int = 0
    reads: float = 0.0
    writes: float = 0.0
    tables: dict[str, TableUnits] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)

    def add(self, operation: str, answer: dict[str, Any]) -> None:
        """Add what one answer says it consumed."""
        self.calls += 1
        self.operations[operation] = self.operations.get(operation, 0) + 1
        told = answer.get("ConsumedCapacity")
        for one in [told] if isinstance(told, dict) else told or ():
            self._add_table(one, reading=operation in _READS)

    def _add_table(self, one: dict[str, Any], *, reading: bool) -> None:
        table = self.tables.setdefault(one["TableName"], TableUnits())
        total = float(one.get("CapacityUnits", 0.0))
        own = float(one.get("Table", {}).get("CapacityUnits", total))
        if reading:
            self.reads += total
            table.reads += own
        else:
            self.writes += total
            table.writes += own
        for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
            for name, units in one.get(kind, {}).items():
                table.indexes[name] = table.indexes.get(name, 0.0) + float(units.get("CapacityUnits", 0.0))


_meters: ContextVar[tuple[Spent, ...]] = ContextVar("meters", default=())


@contextmanager
def measured() -> Iterator[Spent]:
    """Give what the calls inside consume, added up as they are answered."""
    spent = Spent()
    token = _meters.set((*_meters.get(), spent))
    try:
        yield spent
    finally:
        _meters.reset(token)


def enriched(operation: str, request: dict[str, Any]) -> dict[str, Any]:
    """Return a request that asks what it consumes, if somebody measures."""
    if not _meters.get() or operation not in _METERED:
        return request
    return {**request, "ReturnConsumedCapacity": "INDEXES"}


def noted(operation: str, answer: dict[str, Any]) -> None:
    """Tell the meters of this context about an answer."""
    meters = _meters.get()
    if meters:
        for spent in meters:
            spent.add(operation, answer)
