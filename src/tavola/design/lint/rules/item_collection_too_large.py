"""An item collection outgrows the 10 GB limit of a table with a local secondary index.

Why: In a table with a local secondary index (LSI), all items with one partition key, including their LSI
entries, may total at most 10 GB. At the limit, writes that add to the collection fail with
ItemCollectionSizeLimitExceededException. An LSI cannot be removed from an existing table.

Example: 2 billion readings of 300 bytes from 200 devices, in a table with `by_value = Lsi(sk="value")`.

Instead: Use a global secondary index, which has no such limit, or make the partition key more granular
(device and day, or a shard).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tavola.design.lint.rates import count_key_values
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import format_size, join_names
from tavola.limits import ITEM_COLLECTION_BYTES_MAX
from tavola.model.document import EntityDesign, TableDesign
from tavola.model.sizes import entry_bytes, item_bytes

SEVERITY = "error"

_NEAR = 0.5


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the tables with a local index whose item collections are too large, by the declared item counts."""
    for table in context.design.tables:
        if not any(index.local for index in table.indexes):
            continue
        for names, size in _collection_bytes(table).items():
            if size < _NEAR * ITEM_COLLECTION_BYTES_MAX:
                continue
            over = size > ITEM_COLLECTION_BYTES_MAX
            yield Defect(
                context.entity_place(table, table.entity(names[0])),
                f"{join_names(names)} items with one partition key total {format_size(size)} on average; "
                f"the limit for tables with a local secondary index is {format_size(ITEM_COLLECTION_BYTES_MAX)}"
                + (", and writes beyond it fail" if over else ""),
                "Replace the local index with a global secondary index, or add a shard or a time bucket to the partition key",
                severity="error" if over else "warning",
            )


def _collection_bytes(table: TableDesign) -> Mapping[tuple[str, ...], float]:
    """Return the bytes of one item collection, by the entities that share its partition key."""
    sharing: dict[str, list[EntityDesign]] = {}
    for entity in table.entities:
        if entity.key is not None:
            text = "|".join(
                source.template.source if source.template is not None else f"{{{source.field}}}"
                for source in entity.key.hash
            )
            sharing.setdefault(text, []).append(entity)
    collections: dict[tuple[str, ...], float] = {}
    for entities in sharing.values():
        sizes = {
            entity.name: size for entity in entities if (size := _average_bytes(table, entity)) is not None
        }
        if sizes:
            collections[tuple(sizes)] = sum(sizes.values())
    return collections


def _average_bytes(table: TableDesign, entity: EntityDesign) -> float | None:
    assert entity.key is not None, "an entity of a table has a key"
    partitions = count_key_values(entity, entity.key, partition=True)
    if entity.items is None or partitions is None:
        return None
    shards = (
        entity.key.shards.count if entity.key.shards is not None and entity.key.shards.by != "time" else 1
    )
    size = item_bytes(table, entity)
    size += sum(
        entry_bytes(table, entity, index)
        for index in table.indexes
        if index.local and entity.key_on(index.name) is not None
    )
    return min(entity.items, 10**18) * size / max(1, min(partitions * shards, entity.items))
