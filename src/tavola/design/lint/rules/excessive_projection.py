"""An index projects attributes that no access pattern reads.

Why: Each write of an item also writes its index entry, one write unit per KB, and the entry is stored in
addition to the item. You pay for unread attributes with every write.

Example: `projection="ALL"` on 3 KB items, while the only query shows three attributes of 200 bytes: 3 write
units instead of 1.

Instead: Project the attributes that are read. The projection of an existing index cannot be changed, so
create a new index and drop the old one.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from tavola.design.lint.monthly_costs import format_monthly_with_book, format_per_million, monthly_cost
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import format_size, format_units, list_first
from tavola.model.document import EntityDesign, IndexDesign, TableDesign
from tavola.model.sizes import item_size, projected_names
from tavola.values import write_units

SEVERITY = "advice"

_MUCH_BYTES = 1_024  # one write unit; less cannot make a write cheaper
_SHOWN = 6


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the indexes whose entries would cost fewer units without unread attributes, if all readers declare what they read."""
    for table in context.design.tables:
        for index in table.indexes:
            if index.projection == "KEYS_ONLY":
                continue
            for entity in table.entities:
                yield from _check_entity(context, table, index, entity)


def _check_entity(
    context: LintContext, table: TableDesign, index: IndexDesign, entity: EntityDesign
) -> Iterator[Defect]:
    reads = _fields_read(context, table, index, entity)
    full_size = item_size(table, entity)
    if entity.key_on(index.name) is None or reads is None or not full_size.declared:
        return
    held = projected_names(table, index, full_size.attributes)
    always_projected = {*table.settings.key_names, *index.attributes, table.settings.tag, table.settings.ttl}
    always_projected |= {
        entity.field(name).attribute for name in reads if any(field.name == name for field in entity.fields)
    }
    carried = [name for name in held if name not in always_projected]
    now = ceil(sum(full_size.attributes[name] for name in held))
    lean = ceil(sum(full_size.attributes[name] for name in held if name in always_projected))
    saved = write_units(0, now) - write_units(0, max(1, lean))
    if now - lean < _MUCH_BYTES or saved <= 0:
        return
    writes_per_second = sum(write.per_second or 0 for write in entity.writes)
    monthly = (
        f", {format_monthly_with_book(monthly_cost(writes=saved * writes_per_second))}"
        if writes_per_second
        else ""
    )
    largest = sorted(carried, key=lambda name: -full_size.attributes[name])
    yield Defect(
        context.index_place(table, index.name),
        f"Projects {format_size(now)} of each {entity.name}, but access patterns read {format_size(lean)}: {format_units(saved)} extra write units per write, "
        f"{format_per_million(saved, 'write')}{monthly}",
        f"Remove from the projection: {list_first(largest, _SHOWN)}",
    )


def _fields_read(
    context: LintContext, table: TableDesign, index: IndexDesign, entity: EntityDesign
) -> set[str] | None:
    """Return the fields of an entity that are read through an index; None if a pattern reads all of them, or none is declared."""
    fields: set[str] = set()
    is_read = False
    for pattern in entity.patterns:
        if pattern.index != index.name:
            continue
        is_read = True
        if pattern.hydrate:
            continue
        reads = pattern.access.reads if pattern.access is not None else ()
        if not reads and pattern.result == entity.name:
            return None
        result = context.result_types.get(pattern.result, entity)
        fields |= set(reads or (field.name for field in result.fields))
        fields |= set(pattern.access.filters if pattern.access is not None else ())
    if any(collection.index == index.name for collection in table.collections):
        return None
    for need in context.design.needs:
        if entity.name not in need.entities or need.route is None or need.route.index != index.name:
            continue
        if need.access is None or not need.access.reads:
            return None
        is_read = True
        fields |= {*need.access.reads, *need.access.filters, *(condition.field for condition in need.where)}
    return fields if is_read else None
