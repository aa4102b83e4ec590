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
from tavola.engine.visits import Touch
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
from tavola.expressions.projections import project
from tavola.expressions.updates import Applied, Update, apply, touched_part
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
_tuple = tuple.__new__  # a named tuple in one step, for what every request makes


def get_item(call: OperationCall, request: GetItemRequest) -> bytes:
    """Answer the item under a key, as the bytes it is stored in unless a projection narrows it."""
    call.admit(request.key)
    bindings = bind_placeholders(call, request.expression_attribute_names, None)
    projection = parse_projection(call, request, bindings)
    check_placeholders_used(call, bindings, (projection,))
    table = call.table(request.table_name)
    check_scalar_keys(table, projection)
    key = key_of_request(table, request.key)
    emulation = call.services.emulation
    if emulation is not None:
        table = emulation.seen(table, None, request.consistent_read)
    row = table.rack.get(key)
    if emulation is not None:
        units = read_units(row[1] if row else 0, consistent=bool(request.consistent_read))
        emulation.read_item(table, key, units)
    if call.visit is not None and call.visit.touches is not None:
        units = read_units(row[1] if row else 0, consistent=bool(request.consistent_read))
        call.visit.touches.append(_tuple(Touch, (table.arn, None, key, units, 0.0, None)))
    body = EMPTY
    if row is not None:
        data = row[0] if projection is None else encode_item(project(projection, decode_item(row[0])))
        body = b'{"Item":' + data + b"}"
    mode = capacity_mode(request.return_consumed_capacity)
    if mode is None:
        return body
    usage = CapacityUsage(table, request.table_name)
    usage.reads = read_units(row[1] if row else 0, consistent=bool(request.consistent_read))
    return add_members(body, {"ConsumedCapacity": usage.render(mode)})


def put_item(call: OperationCall, request: PutItemRequest) -> bytes:
    """Put an item in the place of whatever has its key."""
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
    write = prepare_put(current, request.item, size)
    check_charged(call, current, condition, bindings, request.return_values_on_condition_check_failure)
    commit_write(call, write)
    body = _render_attributes(request.return_values, current, write, None)
    return _add_write_metrics(body, request, write, request.item)


def delete_item(call: OperationCall, request: DeleteItemRequest) -> bytes:
    """Remove the item under a key, if there is one."""
    call.admit(request.key)
    bindings = bind_placeholders(
        call, request.expression_attribute_names, request.expression_attribute_values
    )
    condition = parse_condition(call, request, bindings)
    check_placeholders_used(call, bindings, (condition,))
    table = call.table(request.table_name)
    check_scalar_keys(table, condition)
    current = read_current(call, table, key_of_request(table, request.key))
    check_charged(call, current, condition, bindings, request.return_values_on_condition_check_failure)
    write = prepare_delete(current)
    commit_write(call, write)
    body = _render_attributes(request.return_values, current, write, None)
    return _add_write_metrics(body, request, write, request.key)


def update_item(call: OperationCall, request: UpdateItemRequest) -> bytes:
    """Change the item under a key, or make it."""
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
    check_charged(call, current, condition, bindings, request.return_values_on_condition_check_failure)
    write, applied = prepare_update(current, request.key, update, bindings)
    commit_write(call, write)
    body = _render_attributes(request.return_values, current, write, applied)
    return _add_write_metrics(body, request, write, request.key)


def read_current(call: OperationCall, table: Table, key: bytes) -> CurrentItem:
    """Return what a single write meets; refuse one that meets a transaction."""
    if call.services.emulation is not None:
        call.services.emulation.meet(table, key)
    return find_current(table, key)


def check_charged(
    call: OperationCall,
    standing: CurrentItem,
    condition: Condition | None,
    bindings: Bindings,
    returned: str | None,
) -> None:
    """Refuse a single write whose condition what stands does not meet; it is charged all the same."""
    try:
        check_condition(standing, condition, bindings, returned)
    except ConditionalCheckFailedFault:
        if call.services.emulation is not None:
            call.services.emulation.refuse(standing)
        raise


def check_condition(
    standing: CurrentItem, condition: Condition | None, bindings: Bindings, returned: str | None
) -> None:
    """Refuse a write whose condition what stands does not meet."""
    if condition is None or evaluate(condition, standing.item, bindings.values):
        return
    shown = standing.data if returned == "ALL_OLD" else None
    raise ConditionalCheckFailedFault(None if shown is None else msgspec.Raw(shown))


def check_keys_not_updated(table: Table, update: Update | None) -> None:
    """Refuse a look inside a key attribute, or an update of one that is part of the table's key."""
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
    standing: CurrentItem, key: Item, update: Update | None, bindings: Bindings
) -> tuple[ItemWrite, Applied | None]:
    """Return the change that an update makes of what stands, or of the bare key where nothing stands."""
    item = standing.item
    before = key if item is None else item
    if update is None:
        return prepare_replacement(standing, before, item_size(before), frozenset()), None
    try:
        applied = apply(update, before, bindings.values, exists=item is not None)
    except UpdateRefused as refused:
        raise ValidationFault(str(refused)) from refused
    if update.takes_only and item is None:
        # Taking away from nothing leaves nothing: no item is made of the key.
        return prepare_delete(standing), applied
    after = applied.item
    for name in update.written & update.nested:
        # What goes into a document may be as deep as an item allows, and the place it goes to as well.
        if name in after and nesting_levels(after[name]) > NESTING_LEVELS_MAX:
            raise ValidationFault(TOO_DEEP)
    if item is None:
        size = item_size(after)
    else:
        size = standing.size + sum(
            _attribute_size(after, name) - _attribute_size(item, name) for name in update.written
        )
    return prepare_replacement(standing, after, size, update.written), applied


def _attribute_size(item: Item, name: str) -> int:
    value = item.get(name)
    return 0 if value is None else text_size(name) + value_size(value)


def _add_write_metrics(body: bytes, request: Any, change: ItemWrite, key: Item) -> bytes:
    """Return a write's answer with what it consumed and the size of its collection, if asked for."""
    mode = capacity_mode(request.return_consumed_capacity)
    if mode is not None:
        tally = CapacityUsage(change.table, request.table_name)
        add_write_units(tally, change)
        body = add_members(body, {"ConsumedCapacity": tally.render(mode)})
    if request.return_item_collection_metrics == "SIZE" and change.table.has_local:
        body = add_members(body, {"ItemCollectionMetrics": collection_metrics(change, key)})
    return body


def add_write_units(usage: CapacityUsage, write: ItemWrite, factor: float = 1.0) -> None:
    """Count a write; a transaction costs the table twice, the indexes once."""
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
    """Return the key of the written item's collection, and its size within a gigabyte."""
    name = write.table.definition.hash
    gigabytes = collection_bytes(write.table, write.current.key) // _GB
    return {
        "ItemCollectionKey": {name: key[name]},
        "SizeEstimateRangeGB": [float(gigabytes), float(gigabytes + 1)],
    }


def record_write_access(call: OperationCall, write: ItemWrite, factor: float = 1.0) -> None:
    """Note what a write consumes, where somebody wants to know."""
    if call.visit is None or call.visit.touches is None:
        return
    note = call.visit.touches.append
    arn, key = write.table.arn, write.current.key
    units = factor * write_units(write.current.size, write.size)
    note(_tuple(Touch, (arn, None, key, 0.0, units, None)))
    if not write.table.indexes:
        return
    if not call.visit.entries:
        for name, units in _index_units(write).items():
            note(_tuple(Touch, (arn, name, key, 0.0, units, None)))
        return
    for name, units, entry in _index_entry_units(write):
        note(_tuple(Touch, (arn, name, key, 0.0, units, entry)))


def _index_entry_units(write: ItemWrite) -> list[tuple[str, float, bytes | None]]:
    """Return what a write costs on each index, by the key of the entry; an entry that moves is two."""
    units = _index_units(write)
    if not units:
        return []
    table, current = write.table, write.current
    gone = None if current.data is None else keys_of(table, current.entries)
    come = None if write.item is None else keys_of(table, write.entries)
    found: list[tuple[str, float, bytes | None]] = []
    for place, index in enumerate(table.indexes):
        cost = units.get(index.name)
        if cost is None:
            continue
        before = None if gone is None else gone[place]
        after = None if come is None else come[place]
        if isinstance(before, bytes) and isinstance(after, bytes) and before != after:
            size = sizes_of(table, write.size, write.entries)[place]
            put = write_units(0, size or 0)
            found.append((index.name, put, after))
            found.append((index.name, cost - put, before))
        else:
            entry = before if after is None else after
            found.append((index.name, cost, entry if isinstance(entry, bytes) else None))
    return found


def _index_units(write: ItemWrite) -> dict[str, float]:
    """Return what a write costs on each index; mostly without a look into the item that stood.

    Whole items in indexes whose keys stay as they were are written anew if the item is another.
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
            for index, entry in zip(
                table.indexes, write.entries, strict=False
            ):  # a column for each, if whole
                if index.projected is not None:
                    break
                if entry is not None:
                    units[index.name] = cost
            else:
                return units
    tally = CapacityUsage(table, table.name)
    add_write_units(tally, write)
    return tally.index_writes


def commit_write(call: OperationCall, write: ItemWrite) -> None:
    """Carry out a single write that nothing stands in the way of."""
    if call.services.emulation is not None:
        call.services.emulation.write(write)
    record_write_access(call, write)
    call.services.begin()
    apply_write(call.services.catalog, write)


def _render_attributes(
    wanted: str | None, standing: CurrentItem, change: ItemWrite, applied: Applied | None
) -> bytes:
    attributes: bytes | None = None
    if wanted == "ALL_NEW":
        attributes = change.data or None
    elif wanted == "ALL_OLD":
        attributes = standing.data
    elif wanted in ("UPDATED_OLD", "UPDATED_NEW") and applied is not None:
        image = standing.item if wanted == "UPDATED_OLD" else change.item
        part = None if image is None else touched_part(image, applied)
        attributes = encode(part) if part else None
    return EMPTY if attributes is None else add_raw_member(EMPTY, "Attributes", attributes)
