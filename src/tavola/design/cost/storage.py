"""Storage: the gigabytes of a table and of each index.

Items times their size, plus the overhead that DynamoDB adds to each. Entities declare their number of items (`items=`). For
a table with a measured size, that size counts, and indexes follow in proportion.
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
    """The gigabytes of a table or index."""

    index: str | None  # None: the table itself
    gb: Decimal
    local: bool = False


def stored_sizes(
    table: TableDesign, *, sparse_share: float, measured_gb: float | None = None
) -> tuple[StoredSize, ...]:
    """Return the sizes of a table and its indexes; entities without a declared number count as empty."""
    base = Decimal(sum((entity.items or 0) * stored_item_bytes(table, entity) for entity in table.entities))
    counts = {entity.name: Decimal(entity.items or 0) for entity in table.entities}
    if measured_gb is not None:
        whole = Decimal(str(measured_gb)) * GB
        if base:
            counts = {name: count * whole / base for name, count in counts.items()}
        else:  # no counts declared: as many of each entity
            one = sum(stored_item_bytes(table, entity) for entity in table.entities)
            counts = dict.fromkeys(counts, whole / one if one else Decimal(0))
        base = whole
    sizes = [StoredSize(None, base / GB)]
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
        sizes.append(StoredSize(index.name, size / GB, index.local))
    return tuple(sizes)


def entities_without_count(table: TableDesign) -> tuple[str, ...]:
    """Return the entities that do not declare their number of items."""
    return tuple(entity.name for entity in table.entities if entity.items is None)


def has_unknown_share(table: TableDesign, index: IndexDesign) -> bool:
    """Return whether an index has only an assumed share of the items of some entity."""
    keys = ((entity, entity.key_on(index.name)) for entity in table.entities)
    return any(
        key is not None and share_in(entity, key, 0.5) != share_in(entity, key, 0.25) for entity, key in keys
    )
