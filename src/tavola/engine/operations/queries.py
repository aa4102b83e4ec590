"""Query and Scan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tavola.engine.capacity import CapacityUsage, capacity_mode
from tavola.engine.catalog import Index, Table
from tavola.engine.indexes import project_entry
from tavola.engine.operations.call import OperationCall
from tavola.engine.operations.descriptions import is_index_active
from tavola.engine.operations.request_expressions import (
    bind_placeholders,
    check_placeholders_used,
    check_scalar_keys,
    parse_filter,
    parse_key_condition,
    parse_projection,
)
from tavola.engine.operations.responses import encode, render_list
from tavola.engine.operations.starts import query_start_position, scan_start_position
from tavola.engine.reads import Page, Span, last_key, read_page, select
from tavola.expressions.bindings import Bindings
from tavola.expressions.conditions import Condition, evaluate
from tavola.expressions.errors import ExpressionError
from tavola.expressions.key_conditions import key_bounds
from tavola.expressions.projections import Projection, project
from tavola.keys import Bounds, partition_bounds, segment_bounds
from tavola.protocol.faults import ValidationFault
from tavola.protocol.queries import QueryRequest, ScanRequest
from tavola.values import (
    DuplicatesRefused,
    Item,
    NumberRefused,
    ValueRefused,
    decode_item,
    narrowing_to,
    read_units,
)

_EVERYTHING = Bounds(b"", None)
_INVALID = "One or more parameter values were invalid: "


def query(call: OperationCall, request: QueryRequest) -> bytes:
    """Answer a page of one partition of a table or index."""
    start = request.exclusive_start_key
    if start is not None:
        call.admit(start)
    bindings = bind_placeholders(
        call, request.expression_attribute_names, request.expression_attribute_values
    )
    projection = parse_projection(call, request, bindings)
    kept = parse_filter(call, request, request.query_filter, bindings)
    condition = parse_key_condition(call, request, bindings)
    check_placeholders_used(call, bindings, (projection, kept, condition))
    table = call.table(request.table_name)
    index = _find_index(call, table, request)
    schema = table.schema if index is None else index.schema
    try:
        found = key_bounds(condition, schema, bindings.values)
    except ExpressionError as error:
        raise ValidationFault(str(error)) from error
    check_scalar_keys(table, projection, kept)
    _check_filter_has_no_keys(kept, schema.names, expression=request.filter_expression is not None)
    _check_select(request, index, projection)
    _check_filter_projected(index, kept)
    after = None if start is None else query_start_position(table, index, start, found)
    span = Span(
        table,
        index,
        found.bounds,
        reverse=request.scan_index_forward is False,
        after=after,
        at_most_one=index is None and found.at_most_one,
        partition=partition_bounds(schema, found.hash_values).lower if call.records_accesses else None,
    )
    return _read_and_render(call, request, span, bindings, kept, projection)


def scan(call: OperationCall, request: ScanRequest) -> bytes:
    """Answer a page of a whole table or index, or of one segment of it, in the order of the hash."""
    start = request.exclusive_start_key
    if start is not None:
        call.admit(start, _start_key_error)
    bindings = bind_placeholders(
        call, request.expression_attribute_names, request.expression_attribute_values
    )
    projection = parse_projection(call, request, bindings)
    kept = parse_filter(call, request, request.scan_filter, bindings)
    check_placeholders_used(call, bindings, (projection, kept))
    table = call.table(request.table_name)
    index = _find_index(call, table, request)
    check_scalar_keys(table, projection, kept)
    _check_select(request, index, projection)
    bounds = _EVERYTHING
    if request.total_segments is not None and request.segment is not None:
        bounds = segment_bounds(request.segment, request.total_segments)
    after = None if start is None else scan_start_position(table, index, start, request)
    return _read_and_render(
        call, request, Span(table, index, bounds, after=after), bindings, kept, projection
    )


def _start_key_error(refused: ValueRefused) -> str:
    if isinstance(refused, NumberRefused | DuplicatesRefused):
        return refused.classic
    return f"The provided starting key is invalid: {refused.classic}"


def _find_index(call: OperationCall, table: Table, request: QueryRequest | ScanRequest) -> Index | None:
    name = request.index_name
    if name is None:
        return None
    index = table.by_name.get(name)
    if index is None:
        if any(vector.name == name for vector in table.vectors):
            raise ValidationFault(f"{call.operation} operation not supported on this index type.")
        raise ValidationFault(f"The table does not have the specified index: {name}")
    if index.is_global and request.consistent_read:
        raise ValidationFault("Consistent reads are not supported on global secondary indexes")
    if not is_index_active(index.definition, call.services.clock):
        raise ValidationFault(f"Cannot read from backfilling global secondary index: {name}")
    return index


def _check_filter_has_no_keys(kept: Condition | None, keys: tuple[str, ...], *, expression: bool) -> None:
    """Refuse a filter on a key attribute of what is queried: that is what the key condition is for."""
    if kept is None:
        return
    for name in keys:
        if name in kept.attributes:
            told = "Filter Expression" if expression else "QueryFilter"
            raise ValidationFault(
                f"{told} can only contain non-primary key attributes: Primary key attribute: {name}"
            )


def _check_select(
    request: QueryRequest | ScanRequest, index: Index | None, projection: Projection | None
) -> None:
    """Refuse to read from a global index what it does not hold."""
    if index is None or not index.is_global or index.projected is None:
        return
    if request.select == "ALL_ATTRIBUTES":
        raise ValidationFault(
            f"{_INVALID}Select type ALL_ATTRIBUTES is not supported for global secondary index {index.name} "
            "because its projection type is not ALL"
        )
    if projection is not None:
        missing = sorted(projection.attributes - index.projected)
        if missing:
            raise ValidationFault(
                f"{_INVALID}Global secondary index {index.name} does not project [{', '.join(missing)}]"
            )


def _check_filter_projected(index: Index | None, kept: Condition | None) -> None:
    """Refuse to filter a query of an index by what the index does not hold; a scan finds nothing there."""
    if index is None or index.projected is None or kept is None:
        return
    missing = sorted(kept.attributes - index.projected)
    if missing:
        raise ValidationFault(
            f"{_INVALID}Secondary index {index.name} does not project one or more filter attributes: "
            f"[{', '.join(missing)}]"
        )


def _read_and_render(
    call: OperationCall,
    request: QueryRequest | ScanRequest,
    span: Span,
    bindings: Bindings,
    kept: Condition | None,
    projection: Projection | None,
) -> bytes:
    emulation = call.services.emulation
    if emulation is not None:
        span = replace(span, table=emulation.seen(span.table, span.index, request.consistent_read))
    page = read_page(span, request.limit)
    fetches = fetches_from_table(span.index, request.select, projection)
    if emulation is not None:
        consumed = page_units(span, page, fetches, request.table_name, request.consistent_read)
        emulation.read_page(span, consumed.reads + sum(consumed.index_reads.values()))
    if call.visit is not None and call.visit.touches is not None:
        record_page_access(
            call, span, page_units(span, page, fetches, request.table_name, request.consistent_read)
        )
    held = None if span.index is None or fetches else span.index.projected
    if held is not None and kept is None and projection is None:
        chosen = narrowing_to(held)([line[0] for line in page.lines])
    else:
        chosen = select(
            page.lines,
            make_filter(kept, bindings, span.index, fetches),
            make_projector(span.index, projection, fetches),
        )
    members: dict[str, Any] = {"Count": len(chosen), "ScannedCount": len(page.lines)}
    if page.more and page.lines and not span.at_most_one:
        members["LastEvaluatedKey"] = last_key(span, decode_item(page.lines[-1][0]))
    mode = capacity_mode(request.return_consumed_capacity)
    if mode is not None:
        members["ConsumedCapacity"] = page_units(
            span, page, fetches, request.table_name, request.consistent_read
        ).render(mode)
    if request.select == "COUNT":
        return encode(members)
    return render_list("Items", chosen, members)


def record_page_access(call: OperationCall, span: Span, tally: CapacityUsage) -> None:
    """Note what a page consumed, with the partition it is of; a scan is of none."""
    key = span.partition
    if tally.reads:
        call.record_access(span.table, None, key if span.index is None else None, reads=tally.reads)
    for name, units in tally.index_reads.items():
        call.record_access(span.table, name, key, reads=units)


def fetches_from_table(index: Index | None, selected: str | None, projection: Projection | None) -> bool:
    """Tell whether a local index must fetch the items themselves, because it does not hold enough."""
    if index is None or index.is_global or index.projected is None:
        return False
    if selected == "ALL_ATTRIBUTES":
        return True
    return projection is not None and not projection.attributes <= index.projected


def make_filter(
    kept: Condition | None, bindings: Bindings, index: Index | None, fetches: bool
) -> Callable[[Item], bool] | None:
    """Return the function that tells whether a filter keeps an item, looking at what the index holds of it."""
    if kept is None:
        return None
    values = bindings.values
    if index is None or index.projected is None or fetches:
        return lambda item: evaluate(kept, item, values)
    return lambda item: evaluate(kept, project_entry(index, item), values)


def make_projector(
    index: Index | None, projection: Projection | None, fetches: bool
) -> Callable[[Item], Item] | None:
    """Return the function that gives of an item what is asked for and held; None for all of it."""
    if projection is not None:
        return lambda item: project(projection, item)
    if index is None or index.projected is None or fetches:
        return None
    return lambda item: project_entry(index, item)


def page_units(
    span: Span, page: Page, fetches: bool, table_name: str, consistent: bool | None
) -> CapacityUsage:
    """Return what a page consumed."""
    tally = CapacityUsage(span.table, table_name)
    consistent = bool(consistent)
    units = read_units(page.bytes, consistent=consistent)
    if span.index is None:
        tally.reads = units
        return tally
    tally.index_reads[span.index.name] = units
    if fetches:
        for entry in page.lines:
            line = span.table.rack.get(span.table.schema.key_of(decode_item(entry[0])))
            assert line is not None, "a row of an index is a row of its table"
            tally.reads += read_units(line[1], consistent=consistent)
    return tally
