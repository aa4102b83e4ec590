"""Consumption: request units by table and index, as DynamoDB's responses tell them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tavola.prices import PriceBook

READS = frozenset({"GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems"})
WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})
METERED = READS | WRITES

Place = tuple[str, str | None]  # a table, and an index of it or None for the table itself


@dataclass(frozen=True, slots=True)
class Units:
    """Request units, read and written; whole or half numbers, which floats add exactly."""

    reads: float = 0.0
    writes: float = 0.0

    def __add__(self, other: Units) -> Units:
        return Units(self.reads + other.reads, self.writes + other.writes)

    def usd_per_million(self, book: PriceBook) -> Decimal:
        """Return what a million times as much costs on demand, by a price book."""
        reads = book.usd_per_million(self.reads, "read_request_unit")
        return reads + book.usd_per_million(self.writes, "write_request_unit")

    def __str__(self) -> str:
        told = [
            f"{units:,g} {kind}" for units, kind in ((self.reads, "read"), (self.writes, "write")) if units
        ]
        if not told:
            return "0 units"
        return f"{' and '.join(told)} unit{'' if self.reads + self.writes == 1 else 's'}"


NOTHING = Units()


def consumed(operation: str, response: Mapping[str, Any]) -> dict[Place, Units]:
    """Return the units that a response tells of, by table and index; nothing where it tells none.

    A transaction tells reads and writes apart (a repeated one is billed as reads); of other calls, the
    operation says which they are.
    """
    told = response.get("ConsumedCapacity")
    found: dict[Place, Units] = {}
    for each in [told] if isinstance(told, Mapping) else told or ():
        table = each["TableName"]
        arms: list[tuple[str | None, Mapping[str, Any]]] = [(None, each.get("Table", each))]
        for member in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
            arms += each.get(member, {}).items()
        for index, arm in arms:
            units = _units(arm, writing=operation not in READS)
            if units != NOTHING:
                found[table, index] = found.get((table, index), NOTHING) + units
    return found


def total(by_place: Mapping[Place, Units]) -> Units:
    """Return all units together."""
    return sum(by_place.values(), NOTHING)


def added(parts: Iterable[Mapping[Place, Units]]) -> dict[Place, Units]:
    """Return several sums as one, in the order of tables and indexes."""
    found: dict[Place, Units] = {}
    for part in parts:
        for place, units in part.items():
            found[place] = found.get(place, NOTHING) + units
    return dict(sorted(found.items(), key=lambda pair: (pair[0][0], pair[0][1] or "")))


def place_text(place: Place) -> str:
    """Return a table, or an index of it, as a person names it."""
    table, index = place
    return table if index is None else f"{table}.{index}"


def _units(arm: Mapping[str, Any], *, writing: bool) -> Units:
    if "ReadCapacityUnits" in arm or "WriteCapacityUnits" in arm:
        return Units(float(arm.get("ReadCapacityUnits", 0.0)), float(arm.get("WriteCapacityUnits", 0.0)))
    units = float(arm.get("CapacityUnits", 0.0))
    return Units(writes=units) if writing else Units(reads=units)
