"""Query and Scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tavola.engine.capacity import CapacityUsage
from tavola.engine.catalog import StoredIndex, StoredTable
from tavola.engine.operations.call import (
    OperationCall,
    bind_placeholders,
    capacity_mode,
    check_placeholders_used,
    check_scalar_keys,
    encode,
    parse_filter,
    parse_key_condition,
    parse_projection,
    render_list,
)
from tavola.engine.operations.descriptions import is_index_active
from tavola.engine.reads import (
    ItemFilter,
    ReadPage,
    ReadRange,
    attribute_filter,
    join_rows,
    last_key,
    read_page,
    select,
)
from tavola.engine.writes import KEY_MISMATCH, project_entry
from tavola.expressions.bindings import Bindings
from tavola.expressions.conditions import CompiledCondition, evaluate, evaluate_in_steps, prepare_values
from tavola.expressions.errors import ExpressionError
from tavola.expressions.key_conditions import KeyRange, key_bounds
from tavola.expressions.nodes import And, Or
from tavola.expressions.projections import CompiledProjection, project
from tavola.keys import Bounds, KeyRefused, KeySchema, partition_bounds, segment_bounds
from tavola.protocol.faults import ValidationFault
from tavola.protocol.queries import QueryRequest, ScanRequest
from tavola.values import (
    LARGE_ITEM_BYTES,
    DuplicatesRefused,
    Item,
    NumberRefused,
    Steps,
    ValueRefused,
    decode_item,
    read_units,
)

_EVERYTHING = Bounds(b"", None)
_FETCHES_PER_STEP = 32
_STEPPED_BYTES_MIN = 2 * 1024  # filtering smaller items takes less than a pause, whatever the filter
_START_INVALID = "The provided starting key is invalid"
_START_MISMATCH = f"{_START_INVALID}: {KEY_MISMATCH}"
_INVALID = "One or more parameter values were invalid: "


def query(call: OperationCall, request: QueryRequest) -> Steps[bytes]:
    """Return a page of one partition of a table or index."""
    start = request.exclusive_start_key
    if start is not None:
        call.admit(start)
    bindings = bind_placeholders(
        call, request.expression_attribute_names, request.expression_attribute_values
    )
    projection = parse_projection(call, request, bindings)
    filter_ = parse_filter(call, request, request.query_filter, bindings)
    condition = parse_key_condition(call, request, bindings)
    check_placeholders_used(call, bindings, (projection, filter_, condition))
    table = call.table(request.table_name)
    index = _find_index(call, table, request)
    schema = table.schema if index is None else index.schema
    try:
        key_range = key_bounds(condition, schema, bindings.values)
    except ExpressionError as error:
        raise ValidationFault(str(error)) from error
    check_scalar_keys(table, projection, filter_)
    _check_filter_has_no_keys(filter_, schema.names, expression=request.filter_expression is not None)
    _check_select(request, index, projection)
    _check_filter_projected(index, filter_)
    after = None if start is None else query_start_position(table, index, start, key_range)
    span = ReadRange(
        table,
        index,
        key_range.bounds,
        reverse=request.scan_index_forward is False,
        after=after,
        at_most_one=index is None and key_range.at_most_one,
        partition=partition_bounds(schema, key_range.hash_values).lower if call.records_accesses else None,
    )
    return _read_and_render(call, request, span, bindings, filter_, projection)


def scan(call: OperationCall, request: ScanRequest) -> Steps[bytes]:
    """Return a page of a table or index, or of one segment of it, in hash order."""
    start = request.exclusive_start_key
    if start is not None:
        call.admit(start, _start_key_error)
    bindings = bind_placeholders(
        call, request.expression_attribute_names, request.expression_attribute_values
    )
    projection = parse_projection(call, request, bindings)
    filter_ = parse_filter(call, request, request.scan_filter, bindings)
    check_placeholders_used(call, bindings, (projection, filter_))
    table = call.table(request.table_name)
    index = _find_index(call, table, request)
    check_scalar_keys(table, projection, filter_)
    _check_select(request, index, projection)
    bounds = _EVERYTHING
    if request.total_segments is not None and request.segment is not None:
        bounds = segment_bounds(request.segment, request.total_segments)
    after = None if start is None else scan_start_position(table, index, start, request)
    return _read_and_render(
        call, request, ReadRange(table, index, bounds, after=after), bindings, filter_, projection
    )


def _start_key_error(refused: ValueRefused) -> str:
    if isinstance(refused, NumberRefused | DuplicatesRefused):
        return refused.classic
    return f"The provided starting key is invalid: {refused.classic}"


def _find_index(
    call: OperationCall, table: StoredTable, request: QueryRequest | ScanRequest
) -> StoredIndex | None:
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
    if not is_index_active(index.definition, call.services.time):
        raise ValidationFault(f"Cannot read from backfilling global secondary index: {name}")
    return index


def _check_filter_has_no_keys(
    filter_: CompiledCondition | None, keys: tuple[str, ...], *, expression: bool
) -> None:
    """Refuse a filter on key attributes, which belong in the key condition."""
    if filter_ is None:
        return
    for name in keys:
        if name in filter_.attributes:
            parameter = "Filter Expression" if expression else "QueryFilter"
            raise ValidationFault(
                f"{parameter} can only contain non-primary key attributes: Primary key attribute: {name}"
            )


def _check_select(
    request: QueryRequest | ScanRequest, index: StoredIndex | None, projection: CompiledProjection | None
) -> None:
    """Refuse to select attributes that a global index does not project."""
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


def _check_filter_projected(index: StoredIndex | None, filter_: CompiledCondition | None) -> None:
    """Refuse to filter a query by attributes that the index does not project; a scan just finds no match."""
    if index is None or index.projected is None or filter_ is None:
        return
    missing = sorted(filter_.attributes - index.projected)
    if missing:
        raise ValidationFault(
            f"{_INVALID}Secondary index {index.name} does not project one or more filter attributes: "
            f"[{', '.join(missing)}]"
        )


def _read_and_render(
    call: OperationCall,
    request: QueryRequest | ScanRequest,
    span: ReadRange,
    bindings: Bindings,
    filter_: CompiledCondition | None,
    projection: CompiledProjection | None,
) -> Steps[bytes]:
    is_current = call.currency_check(span.table, span.index)
    table = call.table_view(span.table, span.index, request.consistent_read)
    if table is not span.table:
        span = msgspec.structs.replace(span, table=table)
    page = yield from read_page(span, request.limit, is_current)
    fetches = fetches_from_table(span.index, request.select, projection)
    mode = capacity_mode(request.return_consumed_capacity)
    if call.records_accesses or mode is not None:
        usage = CapacityUsage(span.table, request.table_name)
        yield from add_page_units(call, usage, span, page, fetches, request.consistent_read, is_current)
        call.record_page(span, usage)
    count = len(page.rows)
    if filter_ is None and request.select == "COUNT":
        items: list[bytes] = []
    elif filter_ is None and projection is None:
        projected = None if span.index is None or fetches else span.index.projected
        items = yield from join_rows(page.rows, None if projected is None else attribute_filter(projected))
    else:
        items = yield from select(
            page.rows,
            make_filter(filter_, bindings, span.index, fetches),
            make_projector(span.index, projection, fetches),
        )
        count = len(items)
    members: dict[str, Any] = {"Count": count, "ScannedCount": len(page.rows)}
    if page.more and page.rows and not span.at_most_one:
        members["LastEvaluatedKey"] = last_key(span, page.rows[-1][0])
    if mode is not None:
        members["ConsumedCapacity"] = usage.render(mode)
    if request.select == "COUNT":
        return encode(members)
    return render_list("Items", items, members)


def fetches_from_table(
    index: StoredIndex | None, selected: str | None, projection: CompiledProjection | None
) -> bool:
    """Return whether a query of a local index must read items from the table for missing attributes."""
    if index is None or index.is_global or index.projected is None:
        return False
    if selected == "ALL_ATTRIBUTES":
        return True
    return projection is not None and not projection.attributes <= index.projected


def make_filter(
    filter_: CompiledCondition | None, bindings: Bindings, index: StoredIndex | None, fetches: bool
) -> ItemFilter | None:
    """Return a filter, applied to the attributes that the index projects; None without a filter."""
    if filter_ is None:
        return None
    values = prepare_values(filter_, bindings.values)
    parts = len(filter_.tree.parts) if isinstance(filter_.tree, And | Or) else 1
    stepped_bytes = LARGE_ITEM_BYTES // parts + _STEPPED_BYTES_MIN
    if index is None or index.projected is None or fetches:
        return ItemFilter(
            lambda item: evaluate(filter_, item, values),
            lambda item: evaluate_in_steps(filter_.tree, item, values),
            stepped_bytes,
        )
    return ItemFilter(
        lambda item: evaluate(filter_, project_entry(index, item), values),
        lambda item: evaluate_in_steps(filter_.tree, project_entry(index, item), values),
        stepped_bytes,
    )


def make_projector(
    index: StoredIndex | None, projection: CompiledProjection | None, fetches: bool
) -> Callable[[Item], Item] | None:
    """Return a function that reduces an item to its projection; None if whole items are returned."""
    if projection is not None:
        return lambda item: project(projection, item)
    if index is None or index.projected is None or fetches:
        return None
    return lambda item: project_entry(index, item)


def add_page_units(
    call: OperationCall,
    usage: CapacityUsage,
    span: ReadRange,
    page: ReadPage,
    fetches: bool,
    consistent: bool | None,
    is_current: Callable[[], bool],
) -> Steps[None]:
    """Add the capacity that a page consumed; pauses if it has to read the table for each row of an index."""
    consistent = bool(consistent)
    units = call.page_units(span, page, consistent=consistent)
    if span.index is None:
        usage.reads += units
        return
    usage.index_reads[span.index.name] = usage.index_reads.get(span.index.name, 0.0) + units
    if not fetches:
        return
    for number, entry in enumerate(page.rows):
        if number % _FETCHES_PER_STEP == 0:
            if number:
                yield
            if not is_current():
                return
        row = span.table.rows.get(span.table.schema.key_of(decode_item(entry[0])))
        if row is not None:  # it may have been deleted during a pause
            usage.reads += read_units(row[1], consistent=consistent)


# ExclusiveStartKey


def query_start_position(
    table: StoredTable, index: StoredIndex | None, start: Item, key_range: KeyRange
) -> tuple[bytes, bytes]:
    """Return the (index entry, key) position that a query continues after; refuse one outside its range."""
    if index is None and not table.schema.range:
        name = table.schema.names[0]
        raise ValidationFault(
            f"The provided exclusive start key is invalid: ExclusiveStartKey: {{{name}={_render_key_attribute(start, name)}}}"
        )
    _check_start_names(table, index, start)
    schema = table.schema if index is None else index.schema
    entry = _encode_start_key(schema, start, KEY_MISMATCH)
    key = entry if index is None else _encode_start_key(table.schema, start)
    if index is None and key_range.at_most_one:
        raise ValidationFault("The query can return at most one row and cannot be restarted")
    if not partition_bounds(schema, key_range.hash_values).holds(entry):
        raise ValidationFault(
            "The provided starting key is outside query boundaries based on provided conditions"
        )
    if not key_range.bounds.holds(entry):
        raise ValidationFault("The provided starting key does not match the range key predicate")
    return (b"" if index is None else entry), key


def scan_start_position(
    table: StoredTable, index: StoredIndex | None, start: Item, request: ScanRequest
) -> tuple[bytes, bytes]:
    """Return the (index entry, key) position that a scan continues after; refuse one of another segment."""
    if index is None:
        if set(start) != set(table.schema.names):
            raise ValidationFault(_START_MISMATCH)
        entry = key = _encode_start_key(table.schema, start)
    else:
        _check_start_names(table, index, start)
        entry = _encode_start_key(index.schema, start)
        key = _encode_start_key(table.schema, start)
    if request.total_segments is not None and request.segment is not None:
        bounds: Bounds = segment_bounds(request.segment, request.total_segments)
        if not bounds.holds(entry):
            raise ValidationFault(
                f"{_START_INVALID}: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. "
                f"TotalSegments: {request.total_segments} Segment: {request.segment}"
            )
    return (b"" if index is None else entry), key


def _check_start_names(table: StoredTable, index: StoredIndex | None, start: Item) -> None:
    names = set(table.schema.names)
    if index is not None:
        names |= set(index.schema.names)
    if set(start) != names:
        raise ValidationFault(_START_INVALID)


def _encode_start_key(schema: KeySchema, start: Item, message: str = _START_MISMATCH) -> bytes:
    """Return the key of a start; refuse one whose own attributes make no key with `message`."""
    try:
        return schema.key_of(start)
    except KeyRefused as refused:
        raise ValidationFault(message if refused.name in schema.names else _START_MISMATCH) from refused


def _render_key_attribute(start: Item, name: str) -> str:
    value: dict[str, Any] = start.get(name, {})
    inside = ", ".join(f"{tag}:{content}" for tag, content in value.items())
    return f"AttributeValue: {{{inside}}}"
