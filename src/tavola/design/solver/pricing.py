"""Price a candidate per month in the units of `cost`, and judge how hot its partitions are.

Only what keys decide is priced: requests at their rates, and storage. Streams, backups and the billing mode are the same for all
candidates; the chosen design is priced as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tavola.design.cost.assumptions import HOURS_PER_MONTH
from tavola.design.cost.capacity import SPARSE_SHARE, write_pattern_units
from tavola.design.cost.traffic import rated_accesses
from tavola.design.lint.heat import HeatKind, partition_heat
from tavola.design.lint.rates import peak_rate
from tavola.design.lint.rule import LintContext
from tavola.limits import PARTITION_READS_PER_S, PARTITION_WRITES_PER_S
from tavola.model.document import Design, EntityDesign, IndexDesign, KeyDesign, TableDesign
from tavola.model.sizes import stored_entry_bytes, stored_item_bytes
from tavola.prices import PriceBook

_GB = 1024**3
_SECONDS = HOURS_PER_MONTH * 3_600


@dataclass(frozen=True, slots=True)
class UnitRates:
    """The prices that weigh candidates against each other, in dollars."""

    read: float  # per request unit
    write: float
    storage: float  # per GB and month

    @staticmethod
    def of(book: PriceBook) -> UnitRates:
        """Return the rates of a price book."""
        return UnitRates(
            float(book.price("read_request_unit").of(1)),
            float(book.price("write_request_unit").of(1)),
            float(book.price("storage_gb_month").of(1)),
        )

    def monthly_price(self, table: TableDesign) -> float:
        """Return what a table's requests and storage cost in a month."""
        total = 0.0
        for access in rated_accesses(Design((table,))):
            units = sum(unit.read * self.read + unit.write * self.write for unit in access.units)
            total += units * access.rate * _SECONDS
        return total + self.storage * sum(_stored_bytes(table, entity) for entity in table.entities) / _GB


def _stored_bytes(table: TableDesign, entity: EntityDesign) -> float:
    if entity.items is None:
        return 0.0
    item_bytes = float(stored_item_bytes(table, entity))
    for index in table.indexes:
        key = entity.key_on(index.name)
        if key is not None:
            share = SPARSE_SHARE if key.sparse or key.members else 1.0
            item_bytes += stored_entry_bytes(table, entity, index) * share
    return item_bytes * entity.items


def shards_needed(
    table: TableDesign,
    entity: EntityDesign,
    index: IndexDesign | None,
    identities: Sequence[frozenset[str]],
    former: int = 1,
) -> int:
    """Return how many shards an entity's key needs so that no partition is too hot; 1 if it needs none.

    If the heat is unknown, because a partition field has an unknown number of values, the key keeps the shards it had before
    (`former`). A partition with one item is never sharded. Reads count only as far as shards reduce them: a query reads every
    shard.
    """
    key = entity.key if index is None else entity.key_on(index.name)
    assert key is not None
    if names_one_item(key, identities):
        return 1
    heat = partition_heat(LintContext(Design((table,))), table, entity, key)
    if heat is None:
        return former
    bounds: tuple[tuple[HeatKind, int], ...] = (
        ("write", PARTITION_WRITES_PER_S),
        ("read", PARTITION_READS_PER_S),
    )
    overloaded = [kind for kind, limit in bounds if heat.units_per_second(kind, 1) > limit]
    reducible = [kind for kind in overloaded if heat.shards_needed(kind) is not None]
    return (heat.shards_needed(*reducible) or 1) if reducible else 1


def names_one_item(key: KeyDesign, identities: Sequence[frozenset[str]]) -> bool:
    """Return whether a partition holds one item of an entity: its fields identify it."""
    names = {name for source in key.hash for name in source.fields}
    return any(identity <= names for identity in identities)


def former_shards(entity: EntityDesign, partition: Sequence[str]) -> int:
    """Return how many shards a partition by these fields has in the original design; 1 if it has none."""
    counts = [
        key.shards.count
        for key in entity.all_keys
        if key.shards is not None and key.shards.by != "time"
        and {name for source in key.hash for name in source.fields} == set(partition)
    ]  # fmt: skip
    return max(counts, default=1)


def note_unknown_heat(
    table: TableDesign, entity: EntityDesign, index: IndexDesign | None, identities: Sequence[frozenset[str]]
) -> str | None:
    """Return a note on a key with many writes whose number of partitions is unknown, or None."""
    key = entity.key if index is None else entity.key_on(index.name)
    if key is None or key.shards is not None or names_one_item(key, identities):
        return None
    undeclared = [
        name
        for source in key.hash
        for name in source.fields
        if entity.field(name).values is None and "date" not in (entity.field(name).key_kind or "")
    ]
    if not undeclared or partition_heat(LintContext(Design((table,))), table, entity, key) is not None:
        return None
    index_name = None if index is None else index.name
    writes_per_second = sum(
        (peak_rate(write) or 0.0) * units.write
        for write in entity.writes
        for units in write_pattern_units(table, entity, write)
        if units.index == index_name
    )
    if writes_per_second <= PARTITION_WRITES_PER_S:
        return None
    name = table.label if index is None else f"{table.label}.{index.label}"
    return (
        f"{name} receives {writes_per_second:,.0f} write units per second of {entity.name}, and the number of distinct values of "
        f"{' and '.join(undeclared)} is not declared: add attr(distinct=…), so that it can be sharded if necessary."
    )
