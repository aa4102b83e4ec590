"""BatchGetItem and BatchWriteItem."""

from __future__ import annotations

from typing import Any

import msgspec

from tavola.engine.capacity import CapacityUsage, add_write_units
from tavola.engine.catalog import StoredTable
from tavola.engine.operations.call import (
    BatchKey,
    BatchWrite,
    OperationCall,
    bind_placeholders,
    capacity_mode,
    check_placeholders_used,
    check_scalar_keys,
    encode,
    parse_projection,
    project_row_in_steps,
)
from tavola.engine.operations.items import (
    collection_metrics,
)
from tavola.engine.writes import (
    ItemWrite,
    apply_write,
    find_current,
    key_of_request,
    prepare_delete,
    prepare_put,
)
from tavola.expressions.projections import CompiledProjection
from tavola.keys import KeyRefused
from tavola.limits import BATCH_GET_RESPONSE_BYTES_MAX, ITEM_BYTES_MAX
from tavola.protocol.batches import (
    BatchGetItemRequest,
    BatchWriteItemRequest,
    WriteRequest,
)
from tavola.protocol.faults import ResourceNotFoundFault, ValidationFault
from tavola.values import TOO_LARGE, Item, Steps, read_units

_STEP_BYTES = 128 * 1024  # read or written before a pause, about half a millisecond
_DUPLICATES = "Provided list of item keys contains duplicates"


def batch_get_item(call: OperationCall, request: BatchGetItemRequest) -> Steps[bytes]:
    """Return the items of up to 100 keys in several tables, 16 MB at most; other keys are left unprocessed.

    Pauses while it reads large items. A table that is deleted during a pause has no items any more.
    """
    projections: dict[str, CompiledProjection | None] = {}
    for name, keys_and_attributes in request.request_items.items():
        for key in keys_and_attributes.keys:
            call.admit(key)
        bindings = bind_placeholders(call, keys_and_attributes.expression_attribute_names, None)
        projections[name] = parse_projection(call, keys_and_attributes, bindings)
        check_placeholders_used(call, bindings, (projections[name],))
    tables = {name: call.table(name) for name in request.request_items}
    for name, table in tables.items():
        check_scalar_keys(table, projections[name])
    keys = {
        name: list(
            zip(
                read.keys,
                _check_distinct([key_of_request(tables[name], key) for key in read.keys]),
                strict=True,
            )
        )
        for name, read in request.request_items.items()
    }
    bytes_left = BATCH_GET_RESPONSE_BYTES_MAX
    held_back = call.take_unprocessed_keys(request, tables, keys)
    responses: list[bytes] = []
    unprocessed: dict[str, Any] = {}
    usages: list[CapacityUsage] = []
    for name, keys_and_attributes in request.request_items.items():
        usage = CapacityUsage(tables[name], name)
        consistent = bool(keys_and_attributes.consistent_read)
        items, rest, bytes_left = yield from _read_keys(
            call, tables[name], keys[name], projections[name], usage, bytes_left, consistent=consistent
        )
        responses.append(encode(name) + b":[" + b",".join(items) + b"]")
        left = held_back.get(name, []) + rest
        if left:
            unprocessed[name] = msgspec.to_builtins(keys_and_attributes) | {"Keys": left}
        usages.append(usage)
    tail: dict[str, Any] = {"UnprocessedKeys": unprocessed}
    mode = capacity_mode(request.return_consumed_capacity)
    if mode is not None:
        tail["ConsumedCapacity"] = [usage.render(mode) for usage in usages]
    return b"".join((b'{"Responses":{', b",".join(responses), b"},", encode(tail)[1:]))


def _read_keys(
    call: OperationCall,
    table: StoredTable,
    keys: list[BatchKey],
    projection: CompiledProjection | None,
    usage: CapacityUsage,
    bytes_left: int,
    *,
    consistent: bool,
) -> Steps[tuple[list[bytes], list[Item], int]]:
    """Return the items, the keys that did not fit into the response, and the bytes left in it."""
    items: list[bytes] = []
    is_current = call.currency_check(table, None)
    step_bytes = 0
    for position, (_, key) in enumerate(keys):
        if step_bytes >= _STEP_BYTES:
            step_bytes = 0
            yield
        row = table.rows.get(key) if position == 0 or is_current() else None
        size = 0 if row is None else row[1]
        if size > bytes_left:
            return items, [requested for requested, _ in keys[position:]], 0
        units = read_units(size, consistent=consistent)
        usage.reads += units
        call.record_access(table, None, key, reads=units)
        if row is not None:
            bytes_left -= size
            step_bytes += len(row[0])
            items.append((yield from project_row_in_steps(row[0], projection)))
    return items, [], bytes_left


def batch_write_item(call: OperationCall, request: BatchWriteItemRequest) -> bytes | Steps[bytes]:
    """Put and delete up to 25 items in several tables; all are checked before the first is written."""
    sizes: dict[int, int] = {}
    for writes in request.request_items.values():
        for write in writes:
            if write.put_request is not None:
                sizes[id(write)] = size = call.admit(write.put_request.item)
                if size > ITEM_BYTES_MAX:
                    raise ValidationFault(TOO_LARGE)
            elif write.delete_request is not None:
                call.admit(write.delete_request.key)
    tables = {name: call.table(name) for name in request.request_items}
    planned: list[tuple[str, StoredTable, list[bytes], list[WriteRequest]]] = []
    for name, writes in request.request_items.items():
        table = tables[name]
        planned.append((name, table, _check_distinct([_write_key(table, write) for write in writes]), writes))
    item_writes: list[BatchWrite] = []
    for name, table, keys, writes in planned:
        for key, write in zip(keys, writes, strict=True):
            current = find_current(table, key)
            if write.put_request is not None:
                item = write.put_request.item
                item_writes.append((name, prepare_put(current, item, sizes[id(write)]), item))
            elif write.delete_request is not None:
                item_writes.append((name, prepare_delete(current), write.delete_request.key))
    unprocessed: dict[str, list[Any]] = {}
    for name, item_write, item in call.take_unprocessed_writes(item_writes):
        again = (
            {"DeleteRequest": {"Key": item}} if item_write.item is None else {"PutRequest": {"Item": item}}
        )
        unprocessed.setdefault(name, []).append(again)
    if sum([len(item_write.data) for _, item_write, _ in item_writes]) > _STEP_BYTES:
        return _write_in_steps(call, request, item_writes, unprocessed)
    call.services.begin()
    for _, item_write, _ in item_writes:
        call.record_write(item_write)
        apply_write(call.services.catalog, item_write)
    return encode({"UnprocessedItems": unprocessed} | _render_batch_metrics(request, item_writes))


def _write_in_steps(
    call: OperationCall,
    request: BatchWriteItemRequest,
    item_writes: list[BatchWrite],
    unprocessed: dict[str, list[Any]],
) -> Steps[bytes]:
    """Write large items with pauses between them; each takes effect on its own, as in AWS's batches.

    A write that another request made impossible meanwhile, because its table is gone or has a new index that refuses the item,
    ends the batch with the fault; the items before it stay written.
    """
    written: list[BatchWrite] = []
    step_bytes = 0
    for name, prepared, item in item_writes:
        if step_bytes and step_bytes + len(prepared.data) > _STEP_BYTES:
            step_bytes = 0
            yield
        step_bytes += len(prepared.data)
        item_write = _prepare_again(call, name, prepared)
        call.services.begin()
        call.record_write(item_write)
        apply_write(call.services.catalog, item_write)
        written.append((name, item_write, item))
    return encode({"UnprocessedItems": unprocessed} | _render_batch_metrics(request, written))


def _prepare_again(call: OperationCall, name: str, prepared: ItemWrite) -> ItemWrite:
    """Return a prepared write for the item and the table as they are now, which may have changed during a pause."""
    table = call.table(name)
    if table.definition.number != prepared.table.definition.number:  # another one with the same name
        raise ResourceNotFoundFault()
    current = find_current(table, prepared.current.key)
    if table is prepared.table and current.row == prepared.current.row:
        return prepared
    if prepared.item is None:
        return prepare_delete(current)
    return prepare_put(current, prepared.item, prepared.size)


def _render_batch_metrics(request: BatchWriteItemRequest, writes: list[BatchWrite]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    mode = capacity_mode(request.return_consumed_capacity)
    if mode is not None:
        usages: dict[str, CapacityUsage] = {}
        for name, write, _ in writes:
            add_write_units(usages.setdefault(name, CapacityUsage(write.table, name)), write)
        members["ConsumedCapacity"] = [usage.render(mode) for usage in usages.values()]
    if request.return_item_collection_metrics == "SIZE":
        members |= collection_metrics_by_table(writes)
    return members


def collection_metrics_by_table(writes: list[BatchWrite]) -> dict[str, Any]:
    """Return ItemCollectionMetrics of several writes: each collection once, by table."""
    metrics: dict[str, list[Any]] = {}
    for name, write, key in writes:
        if write.table.has_local:
            collection = collection_metrics(write, key)
            if collection not in metrics.setdefault(name, []):
                metrics[name].append(collection)
    return {"ItemCollectionMetrics": metrics} if metrics else {}


def _write_key(table: StoredTable, write: WriteRequest) -> bytes:
    """Return the encoded key of a write; for a missing key, AWS has another message here than for PutItem."""
    if write.delete_request is not None:
        return key_of_request(table, write.delete_request.key)
    assert write.put_request is not None, "`parse` refuses an empty write"
    try:
        return table.schema.key_of(write.put_request.item)
    except KeyRefused as refused:
        raise ValidationFault(str(refused)) from refused


def _check_distinct(keys: list[bytes]) -> list[bytes]:
    if len(set(keys)) != len(keys):
        raise ValidationFault(_DUPLICATES)
    return keys
