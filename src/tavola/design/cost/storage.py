"""Storage: how many gigabytes a table and each of its indexes hold.

Items times their size, with the bytes that DynamoDB adds to each. How many items there are, an entity declares
(`items=`); a table that was measured gives its gigabytes instead, and its indexes follow in proportion.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from tavola.design.cost.capacity import share_in
from tavola.model.document import IndexDesign, TableDesign
from tavola.model.sizes import stored_entry_bytes, stored_item_bytes

GB = 1024**3


@dataclass(frozen=True, slots=True)
class StoredSize:
    """What one place holds."""

    index: str | None  # None: the table itself
    gb: Decimal
    local: bool = False


def stored_sizes(
    table: TableDesign, *, sparse_share: float, measured_gb: float | None = None
) -> tuple[StoredSize, ...]:
    """Return what a table and its indexes hold; entities whose number nobody said hold nothing."""
    base = Decimal(sum((entity.items or 0) * stored_item_bytes(table, entity) for entity in table.entities))
    counts = {entity.name: Decimal(entity.items or 0) for entity in table.entities}
    if measured_gb is not None:
        whole = Decimal(str(measured_gb)) * GB
        if base:
            counts = {name: count * whole / base for name, count in counts.items()}
        else:  # nobody said how many of which: as many of each
            one = sum(stored_item_bytes(table, entity) for entity in table.entities)
            counts = dict.fromkeys(counts, whole / one if one else Decimal(0))
        base = whole
    told = [StoredSize(None, base / GB)]
    for index in table.indexes:
        size = sum(
            (
                counts[entity.name]
                * Decimal(str(share_in(entity, key, sparse_share)))
                * stored_entry_bytes(table, entity, index)
                for entity in table.entities
                if (key := entity.key_on(index.name)) is not None
            ),
            Decimal(0),
        )
        told.append(StoredSize(index.name, size / GB, index.local))
    return tuple(told)


def entities_without_count(table: TableDesign) -> tuple[str, ...]:
    """Return the entities of a table of which nobody said how many there are."""
    return tuple(entity.name for entity in table.entities if entity.items is None)


def has_unknown_share(table: TableDesign, index: IndexDesign) -> bool:
    """Return whether some entity has only a part of its items in an index, and nobody says which part."""
    keys = ((entity, entity.key_on(index.name)) for entity in table.entities)
    return any(
        key is not None and share_in(entity, key, 0.5) != share_in(entity, key, 0.25) for entity, key in keys
    )
