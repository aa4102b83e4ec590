"""Metering: what calls consumed, summed over a stretch of code.

    with db.measured() as spent: …
    spent.reads, spent.writes, spent.tables["Desk"].indexes["gsi1"]

Meters are found by context, so threads and tasks do not disturb each other; what a task started inside does,
counts too. While nobody measures, requests do not ask for it. A call that is refused tells no units, though
DynamoDB bills a condition that failed, and is not in the sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from threading import Lock
from typing import Any

from tavola.client.consumption import METERED, Units, consumed
from tavola.prices import PriceBook


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
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    def add(self, operation: str, answer: dict[str, Any]) -> None:
        """Add what one answer says it consumed."""
        told = consumed(operation, answer)
        with self._lock:
            self.calls += 1
            self.operations[operation] = self.operations.get(operation, 0) + 1
            for (name, index), units in told.items():
                self.reads += units.reads
                self.writes += units.writes
                table = self.tables.setdefault(name, TableUnits())
                if index is None:
                    table.reads += units.reads
                    table.writes += units.writes
                else:
                    table.indexes[index] = table.indexes.get(index, 0.0) + units.reads + units.writes

    def usd(self, book: PriceBook) -> Decimal:
        """Return what it costs on demand by a price book, such as `tavola.prices.load_book("us-east-1")`."""
        return Units(self.reads, self.writes).usd_per_million(book) / 1_000_000

    def __str__(self) -> str:
        calls = ", ".join(f"{count} {operation}" for operation, count in sorted(self.operations.items()))
        return f"{Units(self.reads, self.writes)} by {calls or 'no call'}"


_meters: ContextVar[tuple[Spent, ...]] = ContextVar("meters", default=())


@contextmanager
def measure() -> Iterator[Spent]:
    """Give what the calls inside consume, added up as they are answered."""
    spent = Spent()
    token = _meters.set((*_meters.get(), spent))
    try:
        yield spent
    finally:
        _meters.reset(token)


def request_capacity(operation: str, request: dict[str, Any]) -> dict[str, Any]:
    """Return a request that asks what it consumes, if somebody measures."""
    if not _meters.get() or operation not in METERED:
        return request
    return {**request, "ReturnConsumedCapacity": "INDEXES"}


def record_consumption(operation: str, answer: dict[str, Any]) -> None:
    """Tell the meters of this context about an answer."""
    meters = _meters.get()
    if meters:
        for spent in meters:
            spent.add(operation, answer)
