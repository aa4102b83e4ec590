"""The items of one partition key outgrow the 10 GB limit of a table with a local index.

Why: A local index keeps all items of a partition key, with their index entries, on one partition: together they may be
10 GB. At the bound every write that adds to the collection fails with ItemCollectionSizeLimitExceededException, and a
local index cannot be removed from a table.

Example: readings of 200 devices, 2 billion of them of 300 bytes, in a table with `by_value = Lsi(sk="value")`.

Instead: Use a global index instead of the local one, which needs no bound; or make the partition key finer (a day, a
shard) so that a collection stays small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tavola.design.findings import Finding, Severity
from tavola.design.lint.rates import count_key_values
from tavola.design.lint.rule import LintContext
from tavola.limits import ITEM_COLLECTION_BYTES_MAX
from tavola.model.document import EntityDesign, TableDesign
from tavola.model.sizes import entry_bytes, item_bytes

SEVERITY: Severity = "error"

_NEAR = 0.5
_GB = 1024**3


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the tables with a local index whose item collections are too large, by the declared item counts."""
    for table in context.design.tables:
        if not any(index.local for index in table.indexes):
            continue
        for names, size in _collections(table).items():
            if size < _NEAR * ITEM_COLLECTION_BYTES_MAX:
                continue
            over = size > ITEM_COLLECTION_BYTES_MAX
            yield Finding(
                "collection-over-ten-gb",
                "error" if over else "warning",
                context.entity_place(table, table.entity(names[0])),
                f"the {' and '.join(names)} items of one partition key come to {size / _GB:,.1f} GB on average, and with a local "
                f"index they may be {ITEM_COLLECTION_BYTES_MAX // _GB} GB"
                + (": writes to a full one fail" if over else ""),
                "put a global index in the place of the local one, or make the partition key finer, by a shard or a stretch of time",
            )


def _collections(table: TableDesign) -> Mapping[tuple[str, ...], float]:
    """Return the bytes of one item collection, by the entities that share its partition key."""
    sharing: dict[str, list[EntityDesign]] = {}
    for entity in table.entities:
        if entity.key is not None:
            text = "|".join(
                source.template.source if source.template is not None else f"{{{source.field}}}"
                for source in entity.key.hash
            )
            sharing.setdefault(text, []).append(entity)
    told: dict[tuple[str, ...], float] = {}
    for entities in sharing.values():
        sizes = {entity.name: size for entity in entities if (size := _share(table, entity)) is not None}
        if sizes:
            told[tuple(sizes)] = sum(sizes.values())
    return told


def _share(table: TableDesign, entity: EntityDesign) -> float | None:
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
