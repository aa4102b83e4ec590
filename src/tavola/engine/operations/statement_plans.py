"""PartiQL statements compiled for a table: names are resolved, and WHERE becomes a key or key ranges.

The order of checks is DynamoDB's: parameters before the statement is parsed, and the table's existence before anything
the statement does with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tavola.engine.catalog import Index, Table
from tavola.engine.operations.call import OperationCall
from tavola.engine.operations.descriptions import is_index_active
from tavola.engine.operations.request_expressions import check_scalar_keys
from tavola.expressions.partiql import (
    Ranges,
    Statement,
    StatementError,
    StatementPlan,
    compile_statement,
    fits_scale,
    parse_statement,
    ranges_of,
)
from tavola.protocol.faults import ValidationFault
from tavola.values import Value

EXISTS_MISPLACED = "EXISTS can only be used in ExecuteTransaction write requests."
_INVALID = "One or more parameter values were invalid: "
_TABLE_SLOTS = 16  # of Java's smallest HashMap


@dataclass(frozen=True, slots=True)
class PlannedStatement:
    """A compiled statement and its table."""

    plan: StatementPlan
    table: Table

    @property
    def statement(self) -> Statement:
        """The parsed statement."""
        return self.plan.statement


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """A SELECT with its key ranges and their order."""

    planned: PlannedStatement
    index: Index | None
    ranges: Ranges | None  # None: a scan
    reverse: bool  # within a partition
    partitions_reversed: bool


def admit_parameters(call: OperationCall, parameters: list[dict[str, Any]] | None) -> list[Value]:
    """Return the parameters of a statement with their values checked."""
    values = parameters or []
    for parameter in values:
        _check_exponents(parameter)
        call.admit({"Parameter": parameter})
    return values


def parse_text(text: str) -> Statement:
    """Parse a statement; a syntax error becomes a ValidationFault."""
    try:
        return parse_statement(text)
    except StatementError as error:
        raise ValidationFault(str(error)) from error


def plan_statement(table: Table, statement: Statement, parameters: Sequence[Value]) -> PlannedStatement:
    """Compile a statement for its table."""
    if statement.index is not None and statement.kind in ("update", "delete"):
        raise ValidationFault("This operation is not supported on an index")
    try:
        plan = compile_statement(statement, parameters)
    except StatementError as error:
        raise ValidationFault(str(error)) from error
    check_scalar_keys(table, plan.where, plan.projection)
    return PlannedStatement(plan, table)


def find_index(call: OperationCall, table: Table, statement: Statement) -> Index | None:
    """Return the index that a SELECT reads."""
    name = statement.index
    if name is None:
        return None
    if any(vector.name == name for vector in table.vectors):
        raise ValidationFault("Scan operation not supported on this index type")
    index = table.by_name.get(name)
    if index is None:
        raise ValidationFault("The table does not have the specified index")
    if len(index.schema.hash) > 1 or len(index.schema.range) > 1:
        raise ValidationFault(
            "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or multi-attribute "
            "RANGE keys."
        )
    if not is_index_active(index.definition, call.services.clock):
        raise ValidationFault(f"Cannot read from backfilling global secondary index: {name}")
    return index


def plan_read(planned: PlannedStatement, index: Index | None) -> PlannedRead:
    """Return the key ranges of a SELECT; refuse an invalid ORDER BY and attributes that an index lacks."""
    plan, table = planned.plan, planned.table
    schema = table.schema if index is None else index.schema
    try:
        ranges = ranges_of(None if plan.where is None else plan.where.tree, schema, plan.bindings.values)
    except StatementError as error:
        raise ValidationFault(str(error)) from error
    _check_projected(index, plan.selected, ranges)
    reverse, partitions_reversed = _read_order(planned, schema.names, ranges)
    return PlannedRead(planned, index, ranges, reverse, partitions_reversed)


def _check_exponents(value: Any) -> None:
    """Refuse a number whose exponent exceeds 32 bits, which only parameters are checked for."""
    pending = [value]
    while pending:
        each = pending.pop()
        if not isinstance(each, dict):
            continue
        number, numbers, elements, members = (each.get(tag) for tag in ("N", "NS", "L", "M"))
        texts = [number, *(numbers if isinstance(numbers, list) else ())]
        for text in texts:
            if isinstance(text, str) and not fits_scale(text):
                raise ValidationFault(f"The parameter cannot be converted to a numeric value: {text}")
        if isinstance(members, dict):
            pending.extend(reversed(members.values()))
        if isinstance(elements, list):
            pending.extend(reversed(elements))


def _check_projected(index: Index | None, selected: tuple[str, ...], ranges: Ranges | None) -> None:
    """Refuse to select, or in a query to filter by, attributes that an index does not project."""
    if index is None or index.projected is None:
        return
    missing = [name for name in selected if name not in index.projected]
    if missing and index.is_global:
        raise ValidationFault(
            f"{_INVALID}Global secondary index {index.name} does not project [{', '.join(missing)}]"
        )
    if ranges is None:
        return
    missing_by_branch = [[name for name in names if name not in index.projected] for names in ranges.filtered]
    if all(missing_by_branch):
        raise ValidationFault(
            f"{_INVALID}Secondary index {index.name} does not project one or more filter attributes: "
            f"[{', '.join(_in_java_hash_order(missing_by_branch[-1]))}]"
        )


def _read_order(
    planned: PlannedStatement, names: tuple[str, ...], ranges: Ranges | None
) -> tuple[bool, bool]:
    """Return whether items, and whether partitions, are read in descending order; only key attributes may order."""
    orderings = dict(planned.plan.orderings)
    if not orderings:
        return False, False
    if planned.plan.where is None:
        raise ValidationFault("Must have WHERE clause in the statement when using ORDER BY clause.")
    for name in orderings:
        if name not in names:
            raise ValidationFault(f"Attribute {name} in ORDER BY clause must be part of the primary key")
    if ranges is None:
        raise ValidationFault(
            "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause."
        )
    if names[0] not in orderings and ranges.partitions > 1:
        raise ValidationFault(
            "Must have hash key in ORDER BY clause when more than one hash key condition specified in WHERE clause."
        )
    # AWS sorts items descending when only the partition key is ordered by.
    return orderings.get(names[-1], True) if len(names) > 1 else False, orderings.get(names[0], False)


def _in_java_hash_order(names: list[str]) -> list[str]:
    """Return names in the iteration order of a Java HashSet, in which AWS lists them."""
    slots = _TABLE_SLOTS
    while len(names) > slots * 3 // 4:
        slots *= 2
    return sorted(names, key=lambda name: _java_hash_spread(_java_hash(name)) & (slots - 1))


def _java_hash(text: str) -> int:
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for at in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return code


def _java_hash_spread(code: int) -> int:
    return code ^ (code >> 16)
