"""GetItem, PutItem, UpdateItem, DeleteItem."""

from __future__ import annotations

from typing import Any

import msgspec

from tavola.engine.capacity import (
    CapacityUsage,
    capacity_mode,
    index_write_units,
    vector_write_bytes,
)
from tavola.engine.catalog import Table
from tavola.engine.emulation import Emulation
from tavola.engine.indexes import keys_of, sizes_of
from tavola.engine.operations.call import OperationCall
from tavola.engine.operations.request_expressions import (
    bind_placeholders,
    check_placeholders_used,
    check_scalar_keys,
    parse_condition,
    parse_projection,
    parse_update,
)
from tavola.engine.operations.responses import EMPTY, add_members, add_raw_member, encode
from tavola.engine.request_context import ItemAccess
from tavola.engine.writes import (
    CurrentItem,
    ItemWrite,
    apply_write,
    certainly_differ,
    collection_bytes,
    find_current,
    key_of_item,
    key_of_request,
    prepare_delete,
    prepare_put,
    prepare_replacement,
)
from tavola.expressions.bindings import Bindings
from tavola.expressions.conditions import Condition, evaluate
from tavola.expressions.errors import UpdateRefused
from tavola.expressions.projections import Projection, project
from tavola.expressions.updates import Update, apply, written_part
from tavola.limits import ITEM_BYTES_MAX, NESTING_LEVELS_MAX
from tavola.protocol.faults import ConditionalCheckFailedFault, ValidationFault
from tavola.protocol.items import DeleteItemRequest, GetItemRequest, PutItemRequest, UpdateItemRequest
from tavola.values import (
    TOO_DEEP,
    TOO_LARGE,
    Item,
    decode_item,
    encode_item,
    item_size,
    nesting_levels,
    read_units,
    text_size,
    value_size,
    write_units,
)

_GB = 1024**3
_tuple = tuple.__new__  # builds a named tuple without its slower constructor


def get_item(call: OperationCall, request: GetItemRequest) -> bytes:
    """Return the item with a key; without a projection its stored bytes are sent unchanged."""
    call.admit(request.key)
    bindings = bind_placeholders(call, request.expression_attribute_names, None)
    projection = parse_projection(call, request, bindings)
    check_placeholders_used(call, bindings, (projection,))
    table = call.table(request.table_name)
    check_scalar_keys(table, projection)
    key = key_of_request(table, request.key)
    data, units = read_item(call, table, key, projection, consistent=request.consistent_read)
    body = EMPTY if data is None else b'{"Item":' + data + b"}"
    mode = capacity_mode(request.return_consumed_capacity)
    if mode is None:
        return body
    usage = CapacityUsage(table, request.table_name, reads=units)
    return add_members(body, {"ConsumedCapacity": usage.render(mode)})


def read_item(
    call: OperationCall, table: Table, key: bytes, projection: Projection | None, *, consistent: bool | None
) -> tuple[bytes | None, float]:
    """Return an item's bytes (None: no such item) and the read units it costs."""
    emulation = call.services.emulation
    if emulation is not None:
        table = emulation.table_view(table, None, consistent)
    row = table.rows.get(key)
    units = read_units(row[1] if row else 0, consistent=bool(consistent))
    if emulation is not None:
        emulation.charge_item_read(table, key, units)
    if call.visit is not None and call.visit.touches is not None:
        call.visit.touches.append(_tuple(ItemAccess, (table.arn, None, key, units, 0.0, None)))
    return None if row is None else project_row(row[0], projection), units


def project_row(data: bytes, projection: Projection | None) -> bytes:
    """Return a stored item, reduced to a projection if there is one."""
    return data if projection is None else encode_item(project(projection, decode_item(data)))


def put_item(call: OperationCall, request: PutItemRequest) -> bytes:
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
    current = read_current(call, table, key_of_item(table, request.item))
    write = prepare_put(current, request.item, size)  # refuses bad index keys before the condition is checked
    check_condition(
        current,
        condition,
        bindings,
        show=request.return_values_on_condition_check_failure,
        emulation=call.services.emulation,
    )
    commit_write(call, write)
    return _render_write_response(request, write, request.item)


def delete_item(call: OperationCall, request: DeleteItemRequest) -> bytes:
    """Delete the item with a key, if it exists."""
    call.admit(request.key)
    bindings = bind_placeholders(
        call, request.expression_attribute_names, request.expression_attribute_values
    )
    condition = parse_condition(call, request, bindings)
    check_placeholders_used(call, bindings, (condition,))
    table = call.table(request.table_name)
    check_scalar_keys(table, condition)
    current = read_current(call, table, key_of_request(table, request.key))
    check_condition(
        current,
        condition,
        bindings,
        show=request.return_values_on_condition_check_failure,
        emulation=call.services.emulation,
    )
    write = prepare_delete(current)
    commit_write(call, write)
    return _render_write_response(request, write, request.key)


def update_item(call: OperationCall, request: UpdateItemRequest) -> bytes:
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
    current = read_current(call, table, key_of_request(table, request.key))
    check_condition(
        current,
        condition,
        bindings,
        show=request.return_values_on_condition_check_failure,
        emulation=call.services.emulation,
    )
    write = prepare_update(current, request.key, update, bindings)
    commit_write(call, write)
    return _render_write_response(request, write, request.key)


def read_current(call: OperationCall, table: Table, key: bytes) -> CurrentItem:
    """Return the item that a single write replaces; emulation may refuse it as part of a transaction."""
    if call.services.emulation is not None:
        call.services.emulation.check_conflict(table, key)
    return find_current(table, key)


def check_condition(
    current: CurrentItem,
    condition: Condition | None,
    bindings: Bindings,
    *,
    show: str | None,
    emulation: Emulation | None = None,
) -> None:
    """Raise ConditionalCheckFailedFault unless the current item meets a condition.

    `show="ALL_OLD"` puts the item on the fault. A single write that fails is charged for: it passes `emulation`,
    which may throttle it instead. A transaction charges for all its actions together and passes none.
    """
    if condition is None or evaluate(condition, current.item, bindings.values):
        return
    if emulation is not None:
        emulation.charge_failed_condition(current)
    item = current.data if show == "ALL_OLD" else None
    raise ConditionalCheckFailedFault(None if item is None else msgspec.Raw(item))


def check_keys_not_updated(table: Table, update: Update | None) -> None:
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


def prepare_update(current: CurrentItem, key: Item, update: Update | None, bindings: Bindings) -> ItemWrite:
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
        for name in update.written & update.nested:
            # The value may be as deep as an item allows and so may its path: only the two together exceed it.
            if name in after and nesting_levels(after[name]) > NESTING_LEVELS_MAX:
                raise ValidationFault(TOO_DEEP)
        if item is None:
            size = item_size(after)
        else:
            size = current.size + sum(
                _attribute_size(after, name) - _attribute_size(item, name) for name in update.written
            )
        write = prepare_replacement(current, after, size, update.written)
    write.applied = applied
    return write


def _attribute_size(item: Item, name: str) -> int:
    value = item.get(name)
    return 0 if value is None else text_size(name) + value_size(value)


def commit_write(call: OperationCall, write: ItemWrite) -> None:
    """Carry out a prepared single write."""
    if call.services.emulation is not None:
        call.services.emulation.charge_write(write)
    record_write_access(call, write)
    call.services.begin()
    apply_write(call.services.catalog, write)


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


def add_write_units(usage: CapacityUsage, write: ItemWrite, factor: float = 1.0) -> None:
    """Add what a write costs to `usage`; `factor` applies to the table, not to its indexes."""
    current = write.current
    usage.writes += factor * write_units(current.size, write.size)
    if write.table.indexes:
        old = None if current.item is None else (current.item, current.size, current.entries)
        new = None if write.item is None else (write.item, write.size, write.entries)
        usage.add_index_writes(index_write_units(write.table, old, new))
    if write.table.vectors:
        was = None if current.item is None else (current.item, current.entries)
        now = None if write.item is None else (write.item, write.entries)
        usage.add_vector_writes(vector_write_bytes(write.table, was, now))


def collection_metrics(write: ItemWrite, key: Item) -> dict[str, Any]:
    """Return ItemCollectionMetrics: the collection's key, and its size as a range of one gigabyte."""
    name = write.table.definition.hash
    gigabytes = collection_bytes(write.table, write.current.key) // _GB
    return {
        "ItemCollectionKey": {name: key[name]},
        "SizeEstimateRangeGB": [float(gigabytes), float(gigabytes + 1)],
    }


def record_write_access(call: OperationCall, write: ItemWrite, factor: float = 1.0) -> None:
    """Record the units a write consumes on the table and each index, if the request is observed."""
    if call.visit is None or call.visit.touches is None:
        return
    note = call.visit.touches.append
    arn, key = write.table.arn, write.current.key
    units = factor * write_units(write.current.size, write.size)
    note(_tuple(ItemAccess, (arn, None, key, 0.0, units, None)))
    if not write.table.indexes:
        return
    if not call.visit.entries:
        for name, units in _index_units(write).items():
            note(_tuple(ItemAccess, (arn, name, key, 0.0, units, None)))
        return
    for name, units, entry in _index_entry_units(write):
        note(_tuple(ItemAccess, (arn, name, key, 0.0, units, entry)))


def _index_entry_units(write: ItemWrite) -> list[tuple[str, float, bytes | None]]:
    """Return (index, units, entry key) for each index entry written; a moved entry is a put and a delete."""
    units = _index_units(write)
    if not units:
        return []
    table, current = write.table, write.current
    old_keys = None if current.data is None else keys_of(table, current.entries)
    new_keys = None if write.item is None else keys_of(table, write.entries)
    entries: list[tuple[str, float, bytes | None]] = []
    for position, index in enumerate(table.indexes):
        cost = units.get(index.name)
        if cost is None:
            continue
        before = None if old_keys is None else old_keys[position]
        after = None if new_keys is None else new_keys[position]
        if isinstance(before, bytes) and isinstance(after, bytes) and before != after:
            size = sizes_of(table, write.size, write.entries)[position]
            put = write_units(0, size or 0)
            entries.append((index.name, put, after))
            entries.append((index.name, cost - put, before))
        else:
            entry = before if after is None else after
            entries.append((index.name, cost, entry if isinstance(entry, bytes) else None))
    return entries


def _index_units(write: ItemWrite) -> dict[str, float]:
    """Return the units a write costs on each index, mostly without decoding the old item.

    If no index key changes and each index projects whole items, every entry is rewritten exactly when the
    item's bytes differ in more than member order.
    """
    table, current = write.table, write.current
    if not table.indexes:
        return {}
    old = current.data
    if old is not None and write.item is not None and current.entries == write.entries:
        if old == write.data:
            return {}
        if certainly_differ(old, write.data):
            cost = write_units(current.size, write.size)
            units = {}
            # An index that projects whole items has one column, so the two lists pair up until the first other.
            for index, entry in zip(table.indexes, write.entries, strict=False):
                if index.projected is not None:
                    break
                if entry is not None:
                    units[index.name] = cost
            else:
                return units
    usage = CapacityUsage(table, table.name)
    add_write_units(usage, write)
    return usage.index_writes
