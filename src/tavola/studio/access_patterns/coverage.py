"""The matrix of access patterns by index: which index serves a pattern, which pattern has none, which index is unused.

Whether an index serves a need, why not, and whether an index is unused all come from the linter (`tavola lint`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tavola.design.cost import write_pattern_units
from tavola.design.findings import Finding
from tavola.design.lint import LintContext, lint
from tavola.model.document import Design, Given, TableDesign, needs_of
from tavola.studio.access_patterns.catalogue import (
    PatternEntry,
    PatternKind,
    list_patterns,
    single_table_design,
)

CellState = Literal["", "serves", "could", "filters", "scans", "writes"]
RowState = Literal["served", "filtered", "scanned", "unserved", "written"]

_OF_NEEDS = (
    "unserved-pattern",
    "scanned-pattern",
    "filtered-pattern",
    "partial-partition-key",
    "partition-inequality",
    "sort-key-gap",
    "range-before-equality",
    "one-way-relation",
    "keyless-pattern",
)
_UNUSED = "unused-index"


@dataclass(frozen=True, slots=True)
class CoverageColumn:
    """The table itself, or one of its indexes."""

    index: str | None
    label: str
    patterns: int  # that are asked on it
    unused: bool
    reason: str  # why it is amber
    remedy: str


@dataclass(frozen=True, slots=True)
class CoverageCell:
    """What an index is to a pattern; `told` says it in words."""

    state: CellState
    text: str


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """A pattern over the columns."""

    pattern: str  # its id
    kind: PatternKind
    title: str
    place: str
    state: RowState
    reason: str  # why it is red or amber
    remedy: str
    cells: tuple[CoverageCell, ...]


@dataclass(frozen=True, slots=True)
class CoverageTable:
    """The matrix of one table; without a name, of needs that no table could answer."""

    table: str
    columns: tuple[CoverageColumn, ...]
    rows: tuple[CoverageRow, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """The matrix of a whole design, counted."""

    tables: tuple[CoverageTable, ...]
    patterns: int
    served: int
    unserved: int
    indexes: int
    unused: int


def build_coverage(design: Design) -> Coverage:
    """Return which index serves which pattern of a design."""
    entries = list_patterns(design)
    tables = [
        _matrix(
            single_table_design(design, table),
            table,
            [each for each in entries if each.summary.table == table.name],
        )
        for table in design.tables
    ]
    homeless = [each for each in entries if not each.summary.table]
    if homeless:
        tables.append(_matrix(_homeless_needs(design, homeless), None, homeless))
    rows = [row for table in tables for row in table.rows if row.kind != "write"]
    columns = [column for table in tables for column in table.columns if column.index is not None]
    return Coverage(
        tuple(tables),
        len(rows),
        len([row for row in rows if row.state in ("served", "filtered")]),
        len([row for row in rows if row.state in ("unserved", "scanned")]),
        len(columns),
        len([column for column in columns if column.unused]),
    )


def _homeless_needs(design: Design, homeless: Sequence[PatternEntry]) -> Design:
    """Return the needs that are of no one table, with every table beside them."""
    needs = tuple(each.need for each in homeless if each.need is not None)
    return Design(design.tables, design.views, needs)


def _matrix(design: Design, table: TableDesign | None, entries: Sequence[PatternEntry]) -> CoverageTable:
    subject = LintContext(design)
    findings = lint(design, select=(*_OF_NEEDS, _UNUSED)).findings
    needs = {need.name: need for need in needs_of(design)}
    findings_by_need = {finding.place.name: finding for finding in findings if finding.rule in _OF_NEEDS}
    places: tuple[str | None, ...] = ()
    if table is not None:
        places = (None, *(index.name for index in table.indexes))
    rows = []
    for each in entries:
        if each.write is not None:
            rows.append(_write_row(each, places))
            continue
        need = needs.get(each.summary.place)
        paths = () if need is None else subject.access_paths(need)
        operations = {path.key.index: path.operation for path in paths}
        rows.append(_read_row(each, places, operations, findings_by_need.get(each.summary.place)))
    columns = [] if table is None else _columns(table, places, rows, findings)
    return CoverageTable("" if table is None else table.name, tuple(columns), tuple(rows))


def _read_row(
    each: PatternEntry,
    places: Sequence[str | None],
    operations: Mapping[str | None, str],
    finding: Finding | None,
) -> CoverageRow:
    pattern = each.summary
    # A declared pattern has its key; a need without a route has the best that serves it, if one does.
    runnable = pattern.runnable
    state: RowState = "served"
    if not runnable:
        state = "unserved"
    elif pattern.operation == "Scan":
        state = "scanned"
    elif _filtered_conditions(each):
        state = "filtered"
    cells = [
        _cell(each, place, operations.get(place, ""), runnable=runnable and place == pattern.index)
        for place in places
    ]
    reason, remedy = ("", "")
    if state != "served":
        reason = pattern.reason if finding is None else finding.message
        remedy = "" if finding is None else finding.remedy
    return CoverageRow(
        pattern.id, pattern.kind, pattern.title, pattern.place, state, reason, remedy, tuple(cells)
    )


def _filtered_conditions(each: PatternEntry) -> tuple[Given, ...]:
    """Return the conditions of a need that are left to a filter: by its key, or as its route says."""
    route = None if each.need is None else each.need.route
    return each.filtered or (() if route is None else route.filters)


def _cell(each: PatternEntry, place: str | None, way: str, *, runnable: bool) -> CoverageCell:
    where = "the table" if place is None else place
    if runnable:
        if each.summary.operation == "Scan":
            return CoverageCell("scans", f"It is asked by a scan of {where}.")
        if filtered := _filtered_conditions(each):
            fields = ", ".join(condition.field for condition in filtered)
            return CoverageCell("filters", f"{where} finds it, and {fields} is left to a filter.")
        return CoverageCell("serves", f"{each.summary.operation} on {where}.")
    if way in ("get", "query"):
        return CoverageCell("could", f"{where} could serve it too, by a {way}.")
    return CoverageCell("", "")


def _write_row(each: PatternEntry, places: Sequence[str | None]) -> CoverageRow:
    assert each.table is not None
    assert each.entity is not None
    assert each.write is not None
    units = {part.index: part for part in write_pattern_units(each.table, each.entity, each.write)}
    cells = []
    for place in places:
        part = units.get(place)
        amount = 0.0 if part is None else part.write
        where = "the table" if place is None else place
        cells.append(
            CoverageCell("writes", f"A write takes {amount:.3g} units on {where}.")
            if amount
            else CoverageCell("", "")
        )
    pattern = each.summary
    return CoverageRow(
        pattern.id, pattern.kind, pattern.title, pattern.place, "written", "", "", tuple(cells)
    )


def _columns(
    table: TableDesign, places: Sequence[str | None], rows: Sequence[CoverageRow], findings: Sequence[Finding]
) -> list[CoverageColumn]:
    unused = {finding.place.name: finding for finding in findings if finding.rule == _UNUSED}
    columns = []
    for at, place in enumerate(places):
        pattern_count = len([row for row in rows if row.cells[at].state in ("serves", "filters", "scans")])
        label = table.label if place is None else table.index(place).label
        finding = None if place is None else unused.get(f"{table.label}.{label}")
        columns.append(
            CoverageColumn(
                place,
                label or place or table.name,
                pattern_count,
                finding is not None,
                "" if finding is None else finding.message,
                "" if finding is None else finding.remedy,
            )
        )
    return columns
