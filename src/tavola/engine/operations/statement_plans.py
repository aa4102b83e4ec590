"""PartiQL statements compiled for a table, and pages of SELECT.

Names are resolved, and WHERE becomes a key or key ranges. The order of checks is DynamoDB's: parameters before the
statement is parsed, and the table's existence before anything the statement does with it.

A WHERE clause may select several partitions, or several key ranges of one; they are read one after another. A NextToken
holds the current range and the last key read in it. It is valid only for the same statement and parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from tavola.engine.capacity import CapacityUsage
from tavola.engine.catalog import StoredIndex, StoredTable
from tavola.engine.isolation import digest_payload
from tavola.engine.operations.call import OperationCall, capacity_mode, check_scalar_keys, render_list
from tavola.engine.operations.descriptions import is_index_active
from tavola.engine.operations.queries import (
    add_page_units,
    fetches_from_table,
    make_filter,
    make_projector,
)
from tavola.engine.reads import ReadPage, ReadRange, last_key, read_page, select
from tavola.expressions.partiql import (
    PartitionRange,
    PartitionRanges,
    Statement,
    StatementError,
    StatementPlan,
    compile_statement,
    fits_scale,
    parse_statement,
    ranges_of,
)
from tavola.keys import Bounds, partition_bounds
from tavola.limits import PAGE_BYTES_MAX, STATEMENT_READS_PAGE_MAX
from tavola.protocol.faults import ValidationFault
from tavola.protocol.statements import ExecuteStatementRequest
from tavola.values import Item, Steps, Value

EXISTS_MISPLACED = "EXISTS can only be used in ExecuteTransaction write requests."
_INVALID = "One or more parameter values were invalid: "
_TABLE_SLOTS = 16  # of Java's smallest HashMap
_PURPOSE = "statement"
_EVERYTHING = Bounds(b"", None)


class PlannedStatement(msgspec.Struct, frozen=True):
    """A compiled statement and its table."""

    plan: StatementPlan
    table: StoredTable

    @property
    def statement(self) -> Statement:
        """The parsed statement."""
        return self.plan.statement


class PlannedRead(msgspec.Struct, frozen=True):
    """A SELECT with its key ranges and their order."""

    planned: PlannedStatement
    index: StoredIndex | None
    ranges: PartitionRanges | None  # None: a scan
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


def plan_statement(table: StoredTable, statement: Statement, parameters: Sequence[Value]) -> PlannedStatement:
    """Compile a statement for its table."""
    if statement.index is not None and statement.kind in ("update", "delete"):
        raise ValidationFault("This operation is not supported on an index")
    try:
        plan = compile_statement(statement, parameters)
    except StatementError as error:
        raise ValidationFault(str(error)) from error
    check_scalar_keys(table, plan.where, plan.projection)
    return PlannedStatement(plan, table)


def find_index(call: OperationCall, table: StoredTable, statement: Statement) -> StoredIndex | None:
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
    if not is_index_active(index.definition, call.services.time):
        raise ValidationFault(f"Cannot read from backfilling global secondary index: {name}")
    return index


def plan_read(planned: PlannedStatement, index: StoredIndex | None) -> PlannedRead:
    """Return the key ranges of a SELECT; refuse an invalid ORDER BY and attributes that an index lacks."""
    plan, table = planned.plan, planned.table
    schema = table.schema if index is None else index.schema
    try:
        ranges = ranges_of(None if plan.where is None else plan.where.tree, schema, plan.bindings.values)
    except StatementError as error:
        raise ValidationFault(str(error)) from error
    _check_projected(index, plan.selected_attributes, ranges)
    reverse, partitions_reversed = _read_order(planned, schema.names, ranges)
    return PlannedRead(planned, index, ranges, reverse, partitions_reversed)


def _check_exponents(value: Any) -> None:
    """Refuse a number whose exponent exceeds 32 bits, which only parameters are checked for."""
    pending = [value]
    while pending:
        node = pending.pop()
        if not isinstance(node, dict):
            continue
        number, numbers, elements, members = (node.get(tag) for tag in ("N", "NS", "L", "M"))
        texts = [number, *(numbers if isinstance(numbers, list) else ())]
        for text in texts:
            if isinstance(text, str) and not fits_scale(text):
                raise ValidationFault(f"The parameter cannot be converted to a numeric value: {text}")
        if isinstance(members, dict):
            pending.extend(reversed(members.values()))
        if isinstance(elements, list):
            pending.extend(reversed(elements))


def _check_projected(
    index: StoredIndex | None, selected: tuple[str, ...], ranges: PartitionRanges | None
) -> None:
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
    planned: PlannedStatement, names: tuple[str, ...], ranges: PartitionRanges | None
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
    for position in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[position : position + 2], "big")) & 0xFFFFFFFF
    return code


def _java_hash_spread(code: int) -> int:
    return code ^ (code >> 16)


# Pages of SELECT


class _PageStart(NamedTuple):
    """Where a page begins: the position of a span, and the key to start after."""

    span: int
    key: Item | None


def select_items(
    call: OperationCall,
    request: ExecuteStatementRequest,
    planned: PlannedStatement,
    index: StoredIndex | None,
    parameters: Sequence[Value],
) -> Steps[bytes]:
    """Return a page of a SELECT."""
    if index is not None and index.is_global and request.consistent_read:
        raise ValidationFault("Strongly consistent read is not supported on Global Secondary Indexes")
    read = plan_read(planned, index)
    start = _PageStart(0, None)
    if request.next_token is not None:
        start = _parse_token(call, request.next_token, _statement_digest(planned, parameters))
    return _SelectPage(call, request, read, parameters).render(start)


def check_no_token(request: ExecuteStatementRequest) -> None:
    """Refuse a NextToken with a statement that returns no pages."""
    if request.next_token is not None:
        raise ValidationFault("NextToken does not match request")


def _statement_digest(planned: PlannedStatement, parameters: Sequence[Value]) -> str:
    """Return the digest of statement, parameters and table that a token is bound to."""
    return digest_payload((planned.table.definition.number, planned.statement.text, parameters))


def _parse_token(call: OperationCall, token: str, digest: str) -> _PageStart:
    payload = call.services.token_signer.open(_PURPOSE, call.scope, token)
    if payload is None:
        raise ValidationFault("Invalid NextToken")
    if payload["of"] != digest:
        raise ValidationFault("NextToken does not match request")
    return _PageStart(payload["span"], payload["key"])


class _SelectPage:
    """One page of a SELECT while it is read."""

    def __init__(
        self,
        call: OperationCall,
        request: ExecuteStatementRequest,
        read: PlannedRead,
        parameters: Sequence[Value],
    ) -> None:
        self.call = call
        self.parameters = parameters
        self.request = request
        self.read = read
        self.plan = read.planned.plan
        self.spans = self._spans()
        self.fetches = fetches_from_table(read.index, None, self.plan.projection)
        self.usage = CapacityUsage(read.planned.table, read.planned.statement.table)

    def render(self, start: _PageStart) -> Steps[bytes]:
        """Read from `start` until the page is full; return the response body."""
        is_current = self.call.currency_check(self.read.planned.table, self.read.index)
        exact = self.read.ranges is not None and self.read.ranges.exact
        keep = make_filter(
            None if exact else self.plan.where, self.plan.bindings, self.read.index, self.fetches
        )
        shape = make_projector(self.read.index, self.plan.projection, self.fetches)
        limit = self.request.limit
        if len(self.spans) > 1:
            limit = min(limit or STATEMENT_READS_PAGE_MAX, STATEMENT_READS_PAGE_MAX)
        chosen: list[bytes] = []
        seen = 0
        size = 0
        at, key = start
        last: Item | None = None
        following: _PageStart | None = None
        while at < len(self.spans):
            span = self._continue_after(self.spans[at], key)
            page = yield from read_page(span, None if limit is None else limit - seen, is_current)
            yield from self._charge(span, page, is_current)
            chosen += yield from select(page.rows, keep, shape)
            seen += len(page.rows)
            size += page.bytes
            if page.rows:
                last = last_key(span, page.rows[-1][0])
            full = seen == limit or size >= PAGE_BYTES_MAX or not is_current()
            if full and page.more and not span.at_most_one:
                following = _PageStart(at, last)
                break
            at, key = at + 1, None
            if full and at < len(self.spans):
                following = _PageStart(at, None)
                break
        return render_list("Items", chosen, self._response_members(last, following))

    def _response_members(self, last: Item | None, following: _PageStart | None) -> dict[str, Any]:
        members: dict[str, Any] = {}
        if following is not None:
            digest = _statement_digest(self.read.planned, self.parameters)
            payload = {"of": digest, "span": following.span, "key": following.key}
            members["NextToken"] = self.call.services.token_signer.sign(_PURPOSE, self.call.scope, payload)
            if last is not None:  # no range had an item before the table was deleted
                members["LastEvaluatedKey"] = last
        mode = capacity_mode(self.request.return_consumed_capacity)
        if mode is not None:
            members["ConsumedCapacity"] = self.usage.render(mode)
        return members

    def _spans(self) -> list[ReadRange]:
        table, index = self.read.planned.table, self.read.index
        table = self.call.table_view(table, index, self.request.consistent_read)
        ranges = self.read.ranges
        if ranges is None:
            return [ReadRange(table, index, _EVERYTHING)]
        schema = table.schema if index is None else index.schema

        def span(partition: PartitionRange) -> ReadRange:
            return ReadRange(
                table,
                index,
                partition.bounds,
                reverse=self.read.reverse,
                at_most_one=index is None and partition.at_most_one,
                partition=partition_bounds(schema, (partition.partition,)).lower
                if self.call.records_accesses
                else None,
            )

        return [
            span(partition)
            for partition in ranges.in_order(
                descending=self.read.partitions_reversed, reverse=self.read.reverse
            )
        ]

    def _continue_after(self, span: ReadRange, key: Item | None) -> ReadRange:
        if key is None:
            return span
        entry = b"" if span.index is None else span.index.schema.key_of(key)
        return msgspec.structs.replace(span, after=(entry, span.table.schema.key_of(key)))

    def _charge(self, span: ReadRange, page: ReadPage, is_current: Callable[[], bool]) -> Steps[None]:
        consumed = CapacityUsage(span.table, self.usage.table_name)
        yield from add_page_units(
            self.call, consumed, span, page, self.fetches, self.request.consistent_read, is_current
        )
        self.call.record_page(span, consumed)
        self.usage.reads += consumed.reads
        for name, units in consumed.index_reads.items():
            self.usage.index_reads[name] = self.usage.index_reads.get(name, 0.0) + units
