"""GetItem, PutItem, UpdateItem, DeleteItem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tavola.engine.capacity import (
    CapacityUsage,
    add_write_units,
)
from tavola.engine.catalog import StoredTable
from tavola.engine.operations.call import (
    EMPTY,
    OperationCall,
    add_members,
    add_raw_member,
    bind_placeholders,
    capacity_mode,
    check_placeholders_used,
    check_scalar_keys,
    encode,
    parse_condition,
    parse_projection,
    parse_update,
    project_row,
    project_row_in_steps,
    row_units,
)
from tavola.engine.storage import ItemRow
from tavola.engine.writes import (
    ATTEMPTS_MAX,
    CurrentItem,
    ItemWrite,
    collection_bytes,
    decode_in_steps,
    key_of_item,
    key_of_request,
    prepare_delete,
    prepare_put,
    prepare_replacement,
)
from tavola.expressions.bindings import Bindings
from tavola.expressions.conditions import CompiledCondition
from tavola.expressions.errors import UpdateRefused
from tavola.expressions.projections import CompiledProjection
from tavola.expressions.updates import UPDATE_TOO_LARGE, CompiledUpdate, apply, written_part
from tavola.limits import ITEM_BYTES_MAX, NESTING_LEVELS_MAX
from tavola.protocol.faults import ResourceNotFoundFault, ValidationFault
from tavola.protocol.items import DeleteItemRequest, GetItemRequest, PutItemRequest, UpdateItemRequest
from tavola.values import (
    LARGE_ITEM_BYTES,
    TOO_DEEP,
    TOO_LARGE,
    ChangeMeasure,
    Item,
    Steps,
    Value,
    item_size,
    text_size,
    value_size,
)

_GB = 1024**3


def get_item(call: OperationCall, request: GetItemRequest) -> bytes | Steps[bytes]:
    """Return the item with a key; without a projection its stored bytes are sent unchanged."""
    call.admit(request.key)
    bindings = bind_placeholders(call, request.expression_attribute_names, None)
    projection = parse_projection(call, request, bindings)
    check_placeholders_used(call, bindings, (projection,))
    table = call.table(request.table_name)
    check_scalar_keys(table, projection)
    key = key_of_request(table, request.key)
    row = call.read_item(table, key, consistent=request.consistent_read)
    if projection is None and request.return_consumed_capacity is None:  # the usual case
        return EMPTY if row is None else b'{"Item":' + row[0] + b"}"
    data = None if row is None else row[0]
    if projection is not None and data is not None:
        if len(data) >= LARGE_ITEM_BYTES:
            return _get_projected(request, table, row, data, projection)
        data = project_row(data, projection)
    return _render_get_response(request, table, row, data)


def _get_projected(
    request: GetItemRequest,
    table: StoredTable,
    row: ItemRow | None,
    data: bytes,
    projection: CompiledProjection,
) -> Steps[bytes]:
    part = yield from project_row_in_steps(data, projection)
    return _render_get_response(request, table, row, part)


def _render_get_response(
    request: GetItemRequest, table: StoredTable, row: ItemRow | None, data: bytes | None
) -> bytes:
    body = EMPTY if data is None else b'{"Item":' + data + b"}"
    mode = capacity_mode(request.return_consumed_capacity)
    if mode is None:
        return body
    usage = CapacityUsage(table, request.table_name, reads=row_units(row, request.consistent_read))
    return add_members(body, {"ConsumedCapacity": usage.render(mode)})


def put_item(call: OperationCall, request: PutItemRequest) -> bytes | Steps[bytes]:
    """Write an item, replacing the one with the same key."""
    size = call.admit(request.item)
    if size > ITEM_BYTES_MAX:
        raise ValidationFault(TOO_LARGE)
    bindings = bind_placeholders(
        call, request.expression_attribute_names, request.expression_attribute_values
    )
    condition = parse_condition(call, request, bindings)
    check_placeholders_used(call, bindings, (condition,))
    table = call.table(request.table_name)
    check_scalar_keys(table, condition)
    current = call.read_current(table, key_of_item(table, request.item))
    if condition is not None and current.is_large:
        return _in_steps(
            call,
            request,
            current,
            condition,
            bindings,
            lambda now: _put(call, request, now, size, condition, bindings),
        )
    return _put(call, request, current, size, condition, bindings)


def _put(
    call: OperationCall,
    request: PutItemRequest,
    current: CurrentItem,
    size: int,
    condition: CompiledCondition | None,
    bindings: Bindings,
) -> bytes:
    write = prepare_put(current, request.item, size)  # refuses bad index keys before the condition is checked
    call.check_condition(current, condition, bindings, request.return_values_on_condition_check_failure)
    call.commit_write(write)
    return _render_write_response(request, write, request.item)


def delete_item(call: OperationCall, request: DeleteItemRequest) -> bytes | Steps[bytes]:
    """Delete the item with a key, if it exists."""
    call.admit(request.key)
    bindings = bind_placeholders(
        call, request.expression_attribute_names, request.expression_attribute_values
    )
    condition = parse_condition(call, request, bindings)
    check_placeholders_used(call, bindings, (condition,))
    table = call.table(request.table_name)
    check_scalar_keys(table, condition)
    current = call.read_current(table, key_of_request(table, request.key))
    if condition is not None and current.is_large:
        return _in_steps(
            call,
            request,
            current,
            condition,
            bindings,
            lambda now: _delete(call, request, now, condition, bindings),
        )
    return _delete(call, request, current, condition, bindings)


def _delete(
    call: OperationCall,
    request: DeleteItemRequest,
    current: CurrentItem,
    condition: CompiledCondition | None,
    bindings: Bindings,
) -> bytes:
    call.check_condition(current, condition, bindings, request.return_values_on_condition_check_failure)
    write = prepare_delete(current)
    call.commit_write(write)
    return _render_write_response(request, write, request.key)


def update_item(call: OperationCall, request: UpdateItemRequest) -> bytes | Steps[bytes]:
    """Update the item with a key, or create it."""
    call.admit(request.key)
    bindings = bind_placeholders(
        call, request.expression_attribute_names, request.expression_attribute_values
    )
    condition = parse_condition(call, request, bindings)
    update = parse_update(call, request, bindings)
    check_placeholders_used(call, bindings, (update, condition))
    table = call.table(request.table_name)
    check_scalar_keys(table, condition)
    check_keys_not_updated(table, update)
    current = call.read_current(table, key_of_request(table, request.key))
    if current.is_large:
        return _in_steps(
            call,
            request,
            current,
            condition,
            bindings,
            lambda now: _update(call, request, now, condition, update, bindings),
        )
    return _update(call, request, current, condition, update, bindings)


def _update(
    call: OperationCall,
    request: UpdateItemRequest,
    current: CurrentItem,
    condition: CompiledCondition | None,
    update: CompiledUpdate | None,
    bindings: Bindings,
) -> bytes:
    call.check_condition(current, condition, bindings, request.return_values_on_condition_check_failure)
    write = prepare_update(current, request.key, update, bindings)
    call.commit_write(write)
    return _render_write_response(request, write, request.key)


def _in_steps(
    call: OperationCall,
    request: PutItemRequest | UpdateItemRequest | DeleteItemRequest,
    current: CurrentItem,
    condition: CompiledCondition | None,
    bindings: Bindings,
    write: Callable[[CurrentItem], bytes],
) -> Steps[bytes]:
    """Decode and check a large current item in steps, and then write."""
    now = yield from decode_current(call, request.table_name, current, condition, bindings)
    response = write(now)
    yield from now.release()
    return response


def decode_current(
    call: OperationCall,
    table_name: str,
    current: CurrentItem,
    condition: CompiledCondition | None,
    bindings: Bindings,
) -> Steps[CurrentItem]:
    """Return the current item, decoded and checked in steps if it is large; read again if it changed meanwhile.

    Nothing pauses after the last read, and a condition was evaluated on that very item. So it holds for the item that is
    then replaced.
    """
    for _ in range(ATTEMPTS_MAX):
        if current.row is None or not current.is_large:
            break
        before, number = current.row, current.table.definition.number
        decoded = yield from decode_in_steps(before[2], condition, bindings.values)
        table = call.table(table_name)
        if table.definition.number != number:  # another one with the same name, which may have other keys
            raise ResourceNotFoundFault()
        current = call.read_current(table, current.key)
        if current.row == before:
            current.set_item(*decoded)
            break
    return current


def check_keys_not_updated(table: StoredTable, update: CompiledUpdate | None) -> None:
    """Refuse an update that writes an attribute of the table's key, or a path into any key attribute."""
    if update is None:
        return
    check_scalar_keys(table, update)
    for name in table.schema.names:
        if name in update.written:
            raise ValidationFault(
                f"One or more parameter values were invalid: Cannot update attribute {name}. "
                "This attribute is part of the key"
            )


def prepare_update(
    current: CurrentItem, key: Item, update: CompiledUpdate | None, bindings: Bindings
) -> ItemWrite:
    """Return the write that applies an update to the current item, or to the bare key if there is none."""
    item = current.item
    before = key if item is None else item
    if update is None:
        return prepare_replacement(current, before, item_size(before), frozenset())
    try:
        applied = apply(update, before, bindings.values, exists=item is not None)
    except UpdateRefused as refused:
        raise ValidationFault(str(refused)) from refused
    if update.removes_only and item is None:
        # Removing attributes of an item that does not exist does not create one.
        write = prepare_delete(current)
    else:
        after = applied.item
        size = _updated_size(current, before, after, update)
        write = prepare_replacement(current, after, size, update.written, update.copied)
    write.applied = applied
    return write


def _updated_size(current: CurrentItem, before: Item, after: Item, update: CompiledUpdate) -> int:
    """Return the size of an updated item, measured by difference; refuse one that is too deep or certainly too large.

    All that is measured as new is in the updated item. So an update that copies a large value hundreds of times is refused
    when the limit is reached, and not when all copies are measured.
    """
    size = current.size if current.row is not None else item_size(before)
    certain = ITEM_BYTES_MAX + size  # more than this is too large, whatever the rest removes
    measure = ChangeMeasure(ITEM_BYTES_MAX)
    # In one order if there are two reasons to refuse.
    for name in sorted(update.written) if update.nested else update.written:
        old, new = before.get(name), after.get(name)
        if name in update.nested or current.is_large or (new is not None and "L" in new):
            measure.add(old, new)
            # The value may be as deep as an item allows and so may its path: only the two together exceed it.
            if measure.levels > NESTING_LEVELS_MAX:
                raise ValidationFault(TOO_DEEP)
            size += text_size(name) * ((new is not None) - (old is not None))
        else:
            size += _attribute_size(name, new) - _attribute_size(name, old)
        if size > certain or measure.is_over:
            raise ValidationFault(UPDATE_TOO_LARGE)
    return size + measure.growth


def _attribute_size(name: str, value: Value | None) -> int:
    return 0 if value is None else text_size(name) + value_size(value)


def _render_write_response(
    request: PutItemRequest | DeleteItemRequest | UpdateItemRequest, write: ItemWrite, key: Item
) -> bytes:
    """Return the response body: returned attributes, consumed capacity, collection size, as requested."""
    attributes = _returned_attributes(request.return_values, write)
    body = EMPTY if attributes is None else add_raw_member(EMPTY, "Attributes", attributes)
    mode = capacity_mode(request.return_consumed_capacity)
    if mode is not None:
        usage = CapacityUsage(write.table, request.table_name)
        add_write_units(usage, write)
        body = add_members(body, {"ConsumedCapacity": usage.render(mode)})
    if request.return_item_collection_metrics == "SIZE" and write.table.has_local:
        body = add_members(body, {"ItemCollectionMetrics": collection_metrics(write, key)})
    return body


def _returned_attributes(return_values: str | None, write: ItemWrite) -> bytes | None:
    match return_values:
        case "ALL_NEW":
            return write.data or None
        case "ALL_OLD":
            return write.current.data
        case "UPDATED_OLD":
            return updated_attributes(write, write.current.item)
        case "UPDATED_NEW":
            return updated_attributes(write, write.item)
        case _:
            return None


def updated_attributes(write: ItemWrite, image: Item | None) -> bytes | None:
    """Return the part of an image (old or new) that an update wrote; None if there is none."""
    part = None if image is None or write.applied is None else written_part(image, write.applied)
    return encode(part) if part else None


def collection_metrics(write: ItemWrite, key: Item) -> dict[str, Any]:
    """Return ItemCollectionMetrics: the collection's key, and its size as a range of one gigabyte."""
    name = write.table.definition.hash
    gigabytes = collection_bytes(write.table, write.current.key) // _GB
    return {
        "ItemCollectionKey": {name: key[name]},
        "SizeEstimateRangeGB": [float(gigabytes), float(gigabytes + 1)],
    }
