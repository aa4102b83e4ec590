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
from tavola.design.lint.rule import LintContext as Rules
from tavola.limits import PARTITION_READS_PER_S, PARTITION_WRITES_PER_S
from tavola.model.document import Design, EntityDesign, IndexDesign, KeyDesign, TableDesign
from tavola.model.sizes import stored_entry_bytes, stored_item_bytes
from tavola.prices import PriceBook

_GB = 1024**3
_SECONDS = HOURS_PER_MONTH * 3_600


@dataclass(frozen=True, slots=True)
class UnitRates:
    """The prices that weigh candidates against each other, in dollars."""

    read: float  # of a request unit
    write: float
    storage: float  # of a GB and month

    @staticmethod
    def of(book: PriceBook) -> UnitRates:
        """Return the rates of a price book."""
        return UnitRates(
            float(book.price("read_request_unit").of(1)),
            float(book.price("write_request_unit").of(1)),
            float(book.price("storage_gb_month").of(1)),
        )

    def month(self, table: TableDesign) -> float:
        """Return what a table's requests and storage cost in a month."""
        total = 0.0
        for access in rated_accesses(Design((table,))):
            units = sum(each.read * self.read + each.write * self.write for each in access.units)
            total += units * access.rate * _SECONDS
        return total + self.storage * sum(_stored(table, entity) for entity in table.entities) / _GB


def _stored(table: TableDesign, entity: EntityDesign) -> float:
    if entity.items is None:
        return 0.0
    told = float(stored_item_bytes(table, entity))
    for index in table.indexes:
        key = entity.key_on(index.name)
        if key is not None:
            share = SPARSE_SHARE if key.sparse or key.members else 1.0
            told += stored_entry_bytes(table, entity, index) * share
    return told * entity.items


def shards_needed(
    table: TableDesign,
    entity: EntityDesign,
    index: IndexDesign | None,
    identities: Sequence[frozenset[str]],
    former: int = 1,
) -> int:
    """Return over how many partitions an entity's key must be spread so that none is too hot; 1: as it is.

    Known where the number of the partition's values is, or where all items share it; where it is not, those who keyed it
    so before knew, and their number stands. A partition that tells one item from others is never spread. Reads count as
    far as shards cool them: each shard is asked for every answer.
    """
    key = entity.key if index is None else entity.key_on(index.name)
    assert key is not None
    if names_one_item(key, identities):
        return 1
    found = partition_heat(Rules(Design((table,))), table, entity, key)
    if found is None:
        return former
    bounds: tuple[tuple[HeatKind, int], ...] = (
        ("write", PARTITION_WRITES_PER_S),
        ("read", PARTITION_READS_PER_S),
    )
    over = [kind for kind, most in bounds if found.units_per_second(kind, 1) > most]
    helped = [kind for kind in over if found.shards_needed(kind) is not None]
    return (found.shards_needed(*helped) or 1) if helped else 1


def names_one_item(key: KeyDesign, identities: Sequence[frozenset[str]]) -> bool:
    """Tell whether a partition holds one item of an entity: its fields tell it from all others."""
    names = {name for source in key.hash for name in source.fields}
    return any(identity <= names for identity in identities)


def former_shards(entity: EntityDesign, partition: Sequence[str]) -> int:
    """Return over how many shards a partition by these fields was spread before; 1: it was not."""
    counts = [
        key.shards.count
        for key in (entity.key, *entity.keys)
        if key is not None and key.shards is not None and key.shards.by != "time"
        and {name for source in key.hash for name in source.fields} == set(partition)
    ]  # fmt: skip
    return max(counts, default=1)


def note_unknown_heat(
    table: TableDesign, entity: EntityDesign, index: IndexDesign | None, identities: Sequence[frozenset[str]]
) -> str | None:
    """Return a note of a key that is written much, and of whose partitions nobody knows how many there are."""
    key = entity.key if index is None else entity.key_on(index.name)
    if key is None or key.shards is not None or names_one_item(key, identities):
        return None
    silent = [
        name
        for source in key.hash
        for name in source.fields
        if entity.field(name).values is None and "date" not in (entity.field(name).key_kind or "")
    ]
    if not silent or partition_heat(Rules(Design((table,))), table, entity, key) is not None:
        return None
    place = None if index is None else index.name
    written = sum(
        (peak_rate(write) or 0.0) * units.write
        for write in entity.writes
        for units in write_pattern_units(table, entity, write)
        if units.index == place
    )
    if written <= PARTITION_WRITES_PER_S:
        return None
    name = table.label if index is None else f"{table.label}.{index.label}"
    return (
        f"{name} takes {written:,.0f} writes a second of {entity.name}, and nobody says how many values "
        f"{' and '.join(silent)} has: say attr(distinct=…), and it is sharded if need be."
    )
