"""An index projects much that no access pattern on it reads.

Why: Each write of an item writes its entry as well, a unit for each KB, and the entry is stored a second time. What nobody reads there is paid
for with every write, for ever.

Example: `projection="ALL"` on items of 3 KB, of which the only query shows three fields of 200 B: 3 units a write instead of 1.

Instead: Project the fields that are read. An index's projection cannot be changed, so a new index takes the old one's place.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from tavola.design.findings import Finding, Severity
from tavola.design.lint.monthly_costs import format_monthly_with_book, format_per_million, monthly_cost
from tavola.design.lint.rule import LintContext
from tavola.design.text import format_size, format_units, join_names
from tavola.model.document import EntityDesign, IndexDesign, TableDesign
from tavola.model.sizes import item_size, projected_names
from tavola.values import write_units

SEVERITY: Severity = "advice"

_MUCH_BYTES = 1_024  # the least that a write of an entry can be cheaper by
_SHOWN = 6


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the indexes whose entries would cost fewer units without unread attributes, if all readers declare what they read."""
    for table in context.design.tables:
        for index in table.indexes:
            if index.projection == "KEYS_ONLY":
                continue
            for entity in table.entities:
                yield from _check_entity(context, table, index, entity)


def _check_entity(
    context: LintContext, table: TableDesign, index: IndexDesign, entity: EntityDesign
) -> Iterator[Finding]:
    reads = _fields_read(context, table, index, entity)
    whole = item_size(table, entity)
    if entity.key_on(index.name) is None or reads is None or not whole.declared:
        return
    held = projected_names(table, index, whole.attributes)
    kept = {*table.settings.key_names, *index.attributes, table.settings.tag, table.settings.ttl}
    kept |= {
        entity.field(name).attribute for name in reads if any(field.name == name for field in entity.fields)
    }
    carried = [name for name in held if name not in kept]
    now = ceil(sum(whole.attributes[name] for name in held))
    lean = ceil(sum(whole.attributes[name] for name in held if name in kept))
    saved = write_units(0, now) - write_units(0, max(1, lean))
    if now - lean < _MUCH_BYTES or saved <= 0:
        return
    often = sum(write.per_second or 0 for write in entity.writes)
    monthly = f", {format_monthly_with_book(monthly_cost(writes=saved * often))}" if often else ""
    largest = sorted(carried, key=lambda name: -whole.attributes[name])
    more = f" and {len(largest) - _SHOWN} more" if len(largest) > _SHOWN else ""
    yield Finding(
        "projection-carries",
        SEVERITY,
        context.index_place(table, index.name),
        f"of each {entity.name} it carries {format_size(now)}, of which its patterns read {format_size(lean)}: {format_units(saved)} units more a write, "
        f"{format_per_million(saved, 'write')}{monthly}",
        f"leave out {join_names(largest[:_SHOWN])}{more}",
    )


def _fields_read(
    context: LintContext, table: TableDesign, index: IndexDesign, entity: EntityDesign
) -> set[str] | None:
    """Return the fields that are read of an entity on an index; None if a reader takes all, or no reader is known."""
    fields: set[str] = set()
    found = False
    for pattern in entity.patterns:
        if pattern.index != index.name:
            continue
        found = True
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
        found = True
        fields |= {*need.access.reads, *need.access.filters, *(each.field for each in need.where)}
    return fields if found else None
