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

_NEED_RULES = (
    "unserved-pattern",
    "frequent-scan",
    "inefficient-filter",
    "incomplete-partition-key",
    "range-on-partition-key",
    "sort-key-gap",
    "range-before-equality",
    "missing-inverted-index",
    "key-never-written",
)
_UNUSED = "unused-index"


@dataclass(frozen=True, slots=True)
class CoverageColumn:
    """The table itself, or one of its indexes."""

    index: str | None
    label: str
    patterns: int  # number of patterns that use it
    unused: bool
    reason: str  # why it is marked
    remedy: str


@dataclass(frozen=True, slots=True)
class CoverageCell:
    """How an index relates to a pattern, as a state and as text."""

    state: CellState
    text: str


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """A pattern and its cell in each column."""

    pattern: str  # its id
    kind: PatternKind
    title: str
    place: str
    state: RowState
    reason: str  # why it is marked
    remedy: str
    cells: tuple[CoverageCell, ...]


@dataclass(frozen=True, slots=True)
class CoverageTable:
    """The matrix of one table; without a name, of needs whose entities no single table has."""

    table: str
    columns: tuple[CoverageColumn, ...]
    rows: tuple[CoverageRow, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """The matrix of a whole design, with totals."""

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
            [entry for entry in entries if entry.summary.table == table.name],
        )
        for table in design.tables
    ]
    without_table = [entry for entry in entries if not entry.summary.table]
    if without_table:
        needs = tuple(entry.need for entry in without_table if entry.need is not None)
        tables.append(_matrix(Design(design.tables, design.views, needs), None, without_table))
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


def _matrix(design: Design, table: TableDesign | None, entries: Sequence[PatternEntry]) -> CoverageTable:
    subject = LintContext(design)
    findings = lint(design, select=(*_NEED_RULES, _UNUSED)).findings
    needs = {need.name: need for need in needs_of(design)}
    findings_by_need = {finding.place.name: finding for finding in findings if finding.rule in _NEED_RULES}
    places: tuple[str | None, ...] = ()
    if table is not None:
        places = (None, *(index.name for index in table.indexes))
    rows = []
    for entry in entries:
        if entry.write is not None:
            rows.append(_write_row(entry, places))
            continue
        need = needs.get(entry.summary.place)
        paths = () if need is None else subject.access_paths(need)
        operations = {path.key.index: path.operation for path in paths}
        rows.append(_read_row(entry, places, operations, findings_by_need.get(entry.summary.place)))
    columns = [] if table is None else _columns(table, places, rows, findings)
    return CoverageTable("" if table is None else table.name, tuple(columns), tuple(rows))


def _read_row(
    entry: PatternEntry,
    places: Sequence[str | None],
    operations: Mapping[str | None, str],
    finding: Finding | None,
) -> CoverageRow:
    pattern = entry.summary
    # A declared pattern has a key of its own; a need without a route uses the best key, if one serves it.
    runnable = pattern.runnable
    state: RowState = "served"
    if not runnable:
        state = "unserved"
    elif pattern.operation == "Scan":
        state = "scanned"
    elif _filtered_conditions(entry):
        state = "filtered"
    cells = [
        _cell(entry, place, operations.get(place, ""), runnable=runnable and place == pattern.index)
        for place in places
    ]
    reason, remedy = ("", "")
    if state != "served":
        reason = pattern.reason if finding is None else finding.message
        remedy = "" if finding is None else finding.remedy
    return CoverageRow(
        pattern.id, pattern.kind, pattern.title, pattern.place, state, reason, remedy, tuple(cells)
    )


def _filtered_conditions(entry: PatternEntry) -> tuple[Given, ...]:
    """Return the conditions of a need that its key or route leaves to a filter."""
    route = None if entry.need is None else entry.need.route
    return entry.filtered or (() if route is None else route.filters)


def _cell(entry: PatternEntry, place: str | None, operation: str, *, runnable: bool) -> CoverageCell:
    where = "the table" if place is None else place
    if runnable:
        if entry.summary.operation == "Scan":
            return CoverageCell("scans", f"Scan of {where}.")
        if filtered := _filtered_conditions(entry):
            fields = ", ".join(condition.field for condition in filtered)
            return CoverageCell(
                "filters", f"{entry.summary.operation} on {where}, with a filter on {fields}."
            )
        return CoverageCell("serves", f"{entry.summary.operation} on {where}.")
    if operation in ("get", "query"):
        return CoverageCell("could", f"{where} could serve it too, with a {operation}.")
    return CoverageCell("", "")


def _write_row(entry: PatternEntry, places: Sequence[str | None]) -> CoverageRow:
    assert entry.table is not None
    assert entry.entity is not None
    assert entry.write is not None
    units = {part.index: part for part in write_pattern_units(entry.table, entry.entity, entry.write)}
    cells = []
    for place in places:
        part = units.get(place)
        amount = 0.0 if part is None else part.write
        where = "the table" if place is None else place
        cells.append(
            CoverageCell("writes", f"Each write consumes {amount:.3g} units on {where}.")
            if amount
            else CoverageCell("", "")
        )
    pattern = entry.summary
    return CoverageRow(
        pattern.id, pattern.kind, pattern.title, pattern.place, "written", "", "", tuple(cells)
    )


def _columns(
    table: TableDesign, places: Sequence[str | None], rows: Sequence[CoverageRow], findings: Sequence[Finding]
) -> list[CoverageColumn]:
    unused = {finding.place.name: finding for finding in findings if finding.rule == _UNUSED}
    columns = []
    for position, place in enumerate(places):
        pattern_count = len(
            [row for row in rows if row.cells[position].state in ("serves", "filters", "scans")]
        )
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
