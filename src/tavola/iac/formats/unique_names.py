"""Give entities of different tables different names.

Needs, consumers and samples refer to an entity by its name alone, so a design has each name once. The first entity keeps its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tavola.iac.formats.import_result import FormatNote, ImportResult
from tavola.model.document import PatternDesign, TableDesign


def give_entities_unique_names(imported: ImportResult) -> ImportResult:
    """Return an import whose entity names are unique; a repeated name gets its table's label as a prefix, and a note."""
    seen: set[str] = set()
    tables: list[TableDesign] = []
    notes: list[FormatNote] = []
    names: dict[tuple[str, str], str] = {}
    for table in imported.design.tables:
        taken = sorted({entity.name for entity in table.entities} & seen)
        told = {name: f"{table.label}_{name}" for name in taken}
        notes += [
            FormatNote(
                table.label, f"a table before it has an entity {name!r} too, so this one is called {now!r}"
            )
            for name, now in told.items()
        ]
        names |= {(table.name, name): now for name, now in told.items()}
        tables.append(_rename_entities(table, told) if told else table)
        seen |= {entity.name for entity in tables[-1].entities}
    if not names:
        return imported
    return replace(
        imported,
        design=replace(imported.design, tables=tuple(tables)),
        report=(*imported.report, *notes),
        samples=tuple(
            replace(sample, entity=names.get((sample.table, sample.entity), sample.entity))
            for sample in imported.samples
        ),
    )


def _rename_entities(table: TableDesign, names: Mapping[str, str]) -> TableDesign:
    def pattern(told: PatternDesign) -> PatternDesign:
        return replace(told, result=names.get(told.result, told.result))

    return replace(
        table,
        entities=tuple(
            replace(
                entity,
                name=names.get(entity.name, entity.name),
                primary=None if entity.primary is None else pattern(entity.primary),
                patterns=tuple(map(pattern, entity.patterns)),
            )
            for entity in table.entities
        ),
        collections=tuple(
            replace(
                told,
                members=tuple(
                    replace(each, entity=names.get(each.entity, each.entity)) for each in told.members
                ),
            )
            for told in table.collections
        ),
        consumers=tuple(
            replace(told, writes=tuple(names.get(name, name) for name in told.writes))
            for told in table.consumers
        ),
    )
