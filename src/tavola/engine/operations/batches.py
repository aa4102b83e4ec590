"""BatchGetItem and BatchWriteItem."""

from __future__ import annotations

from typing import Any

import msgspec

from tavola.engine.capacity import CapacityUsage, add_write_units
from tavola.engine.catalog import StoredTable
from tavola.engine.operations.call import (
    OperationCall,
    bind_placeholders,
    capacity_mode,
    check_placeholders_used,
    check_scalar_keys,
    parse_projection,
    project_row,
)
from tavola.engine.operations.items import (
    collection_metrics,
)
from tavola.engine.operations.responses import encode
from tavola.engine.writes import (
    ItemWrite,
    apply_write,
    find_current,
    key_of_request,
    prepare_delete,
    prepare_put,
)
from tavola.expressions.projections import Projection
from tavola.keys import KeyRefused
from tavola.limits import BATCH_GET_RESPONSE_BYTES_MAX, ITEM_BYTES_MAX
from tavola.protocol.batches import (
    BatchGetItemRequest,
    BatchWriteItemRequest,
    KeysAndAttributes,
    WriteRequest,
)
from tavola.protocol.faults import ValidationFault
from tavola.values import TOO_LARGE, Item, read_units

_NOT_THROTTLED: frozenset[int] = frozenset()
_DUPLICATES = "Provided list of item keys contains duplicates"


def batch_get_item(call: OperationCall, request: BatchGetItemRequest) -> bytes:
    """Return the items of up to 100 keys in several tables, 16 MB at most; other keys are left unprocessed."""
    projections: dict[str, Projection | None] = {}
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
        name: _check_distinct([key_of_request(tables[name], key) for key in wanted.keys])
        for name, wanted in request.request_items.items()
    }
    room_bytes = BATCH_GET_RESPONSE_BYTES_MAX
    throttled = call.unprocessed_keys(request, tables, keys)
    responses: list[bytes] = []
    unprocessed: dict[str, Any] = {}
    usages: list[CapacityUsage] = []
    for name, keys_and_attributes in request.request_items.items():
        usage = CapacityUsage(tables[name], name)
        throttled_here = throttled.get(name, _NOT_THROTTLED)
        items, left, room_bytes = _read_keys(
            call,
            tables[name],
            keys_and_attributes,
            keys[name],
            projections[name],
            usage,
            room_bytes,
            throttled_here,
        )
        responses.append(encode(name) + b":[" + b",".join(items) + b"]")
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
    request: KeysAndAttributes,
    keys: list[bytes],
    projection: Projection | None,
    usage: CapacityUsage,
    room_bytes: int,
    throttled: frozenset[int],
) -> tuple[list[bytes], list[Item], int]:
    items: list[bytes] = []
    unprocessed = [request.keys[position] for position in sorted(throttled)]
    for position, key in enumerate(keys):
        if position in throttled:
            continue
        row = table.rows.get(key)
        size = 0 if row is None else row[1]
        if size > room_bytes:
            rest = [request.keys[at] for at in range(position, len(keys)) if at not in throttled]
            return items, unprocessed + rest, 0
        units = read_units(size, consistent=bool(request.consistent_read))
        usage.reads += units
        call.record_access(table, None, key, reads=units)
        if row is not None:
            room_bytes -= size
            items.append(project_row(row[0], projection))
    return items, unprocessed, room_bytes


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
    item_writes: list[tuple[str, ItemWrite, Item]] = []
    for name, table, keys, writes in planned:
        for key, write in zip(keys, writes, strict=True):
            current = find_current(table, key)
            if write.put_request is not None:
                item = write.put_request.item
                item_writes.append((name, prepare_put(current, item, sizes[id(write)]), item))
            elif write.delete_request is not None:
                item_writes.append((name, prepare_delete(current), write.delete_request.key))
    unprocessed: dict[str, list[Any]] = {}
    throttled = call.unprocessed_writes([write for _, write, _ in item_writes])
    if throttled:
        for position in sorted(throttled):
            name, item_write, item = item_writes[position]
            again = (
                {"DeleteRequest": {"Key": item}}
                if item_write.item is None
                else {"PutRequest": {"Item": item}}
            )
            unprocessed.setdefault(name, []).append(again)
        item_writes = [each for position, each in enumerate(item_writes) if position not in throttled]
    call.services.begin()
    for _, item_write, _ in item_writes:
        call.record_write(item_write)
        apply_write(call.services.catalog, item_write)
    return encode({"UnprocessedItems": unprocessed} | _render_batch_metrics(request, item_writes))


def _render_batch_metrics(
    request: BatchWriteItemRequest, writes: list[tuple[str, ItemWrite, Item]]
) -> dict[str, Any]:
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


def collection_metrics_by_table(writes: list[tuple[str, ItemWrite, Item]]) -> dict[str, Any]:
    """Return ItemCollectionMetrics of several writes: each collection once, by table."""
    metrics: dict[str, list[Any]] = {}
    for name, write, key in writes:
        if write.table.has_local:
            collection = collection_metrics(write, key)
            if collection not in metrics.setdefault(name, []):
                metrics[name].append(collection)
    return {"ItemCollectionMetrics": metrics} if metrics else {}


def _write_key(table: StoredTable, write: WriteRequest) -> bytes:
    """Return the encoded key of a write; a put with a missing key gets another message than PutItem gives."""
    if write.delete_request is not None:
        return key_of_request(table, write.delete_request.key)
    assert write.put_request is not None, "parse lets no empty write through"
    try:
        return table.schema.key_of(write.put_request.item)
    except KeyRefused as refused:
        raise ValidationFault(str(refused)) from refused


def _check_distinct(keys: list[bytes]) -> list[bytes]:
    if len(set(keys)) != len(keys):
        raise ValidationFault(_DUPLICATES)
    return keys
