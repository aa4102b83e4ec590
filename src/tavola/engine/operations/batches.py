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
    project_row,
)
from tavola.engine.operations.items import (
    collection_metrics,
)
from tavola.engine.writes import (
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
from tavola.protocol.faults import ValidationFault
from tavola.values import TOO_LARGE, Item, read_units

_DUPLICATES = "Provided list of item keys contains duplicates"


def batch_get_item(call: OperationCall, request: BatchGetItemRequest) -> bytes:
    """Return the items of up to 100 keys in several tables, 16 MB at most; other keys are left unprocessed."""
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
        items, rest, bytes_left = _read_keys(
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
) -> tuple[list[bytes], list[Item], int]:
    """Return the items, the keys that did not fit into the response, and the bytes left in it."""
    items: list[bytes] = []
    for position, (_, key) in enumerate(keys):
        row = table.rows.get(key)
        size = 0 if row is None else row[1]
        if size > bytes_left:
            return items, [requested for requested, _ in keys[position:]], 0
        units = read_units(size, consistent=consistent)
        usage.reads += units
        call.record_access(table, None, key, reads=units)
        if row is not None:
            bytes_left -= size
            items.append(project_row(row[0], projection))
    return items, [], bytes_left


def batch_write_item(call: OperationCall, request: BatchWriteItemRequest) -> bytes:
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
    call.services.begin()
    for _, item_write, _ in item_writes:
        call.record_write(item_write)
        apply_write(call.services.catalog, item_write)
    return encode({"UnprocessedItems": unprocessed} | _render_batch_metrics(request, item_writes))


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
