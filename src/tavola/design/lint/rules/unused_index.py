"""No access pattern uses an index.

Why: An index is written with every item that has its key, and stored beside the table: it costs a write for each write,
and storage, whether anybody asks it or not.

Example: `by_email = Gsi(pk="GSI2PK")` on which no query is declared, of which entities carry no key.

Instead: Remove the index, or declare the query that it is for.
"""

from __future__ import annotations

from collections.abc import Iterator

from tavola.design.cost.capacity import index_effects
from tavola.design.findings import Finding, Severity
from tavola.design.lint.rule import LintContext
from tavola.design.text import format_rate
from tavola.model.document import TableDesign

SEVERITY: Severity = "warning"


def find(context: LintContext) -> Iterator[Finding]:
    """Yield the indexes that no query, collection or need uses."""
    for table in context.design.tables:
        for index in table.indexes:
            if context.reader_titles(table, index.name):
                continue
            if not _declares_reads(context, table):
                continue  # an imported table that says nothing of how it is read
            units = _units(table, index.name)
            cost = f", and {format_rate(units)} write units a second go to it" if units else ""
            yield Finding(
                "unused-index",
                SEVERITY,
                context.index_place(table, index.name),
                f"no access pattern is asked on {index.name}{cost}",
                "remove it, or declare the query that it is for",
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
    asked = bool(table.collections) or any(entity.patterns for entity in table.entities)
    return bool(names) and (asked or not table.foreign)
