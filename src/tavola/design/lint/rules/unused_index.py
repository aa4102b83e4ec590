"""No access pattern uses an index.

Why: Every write of an item with the index key also writes the index, and its entries are stored in addition
to the table, whether or not they are read.

Example: `by_email = Gsi(pk="GSI2PK")` without any declared query.

Instead: Remove the index, or declare the query that uses it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.cost.capacity import index_effects
from tavola.design.lint.rule import Defect, LintContext
from tavola.design.text import format_rate
from tavola.model.document import TableDesign

SEVERITY = "warning"


def find(context: LintContext) -> Iterator[Defect]:
    """Yield the indexes that no query, collection or need uses."""
    for table in context.design.tables:
        for index in table.indexes:
            if context.reader_titles(table, index.name):
                continue
            if not _declares_reads(context, table):
                continue  # an imported table without declared reads
            units = _units(table, index.name)
            cost = f", and it costs {format_rate(units)} write units per second" if units else ""
            yield Defect(
                context.index_place(table, index.name),
                f"No access pattern uses {index.name}{cost}",
                "Remove the index, or declare the query that uses it",
            )


def _units(table: TableDesign, index: str) -> float:
    """Return the write units per second that all writes take on an index."""
    return sum(
        effect.units * write.items * write.per_second
        for entity in table.entities
        for write in entity.writes
        if write.per_second
        for effect in index_effects(table, entity, write)
        if effect.index == index
    )


def _declares_reads(context: LintContext, table: TableDesign) -> bool:
    """Return whether the design says how the table is read; imported designs often do not."""
    names = {entity.name for entity in table.entities}
    if any(names & set(need.entities) for need in context.design.needs):
        return True
    has_reads = bool(table.collections) or any(entity.patterns for entity in table.entities)
    return bool(names) and (has_reads or not table.foreign)
