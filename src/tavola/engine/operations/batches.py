"""BatchGetItem and BatchWriteItem."""

from __future__ import annotations

from typing import Any

import msgspec

from tavola.engine.capacity import CapacityUsage, capacity_mode
from tavola.engine.catalog import Table
from tavola.engine.operations.call import OperationCall
from tavola.engine.operations.items import add_write_units, collection_metrics, record_write_access
from tavola.engine.operations.request_expressions import (
    bind_placeholders,
    check_placeholders_used,
    check_scalar_keys,
    parse_projection,
)
from tavola.engine.operations.responses import encode
from tavola.engine.writes import (
    Change,
    apply_change,
    key_of_request,
    look_up,
    stage_delete,
    stage_put,
)
from tavola.expressions.projections import Projection, project
from tavola.keys import KeyRefused
from tavola.limits import BATCH_GET_RESPONSE_BYTES_MAX, ITEM_BYTES_MAX
from tavola.protocol.batches import (
    BatchGetItemRequest,
    BatchWriteItemRequest,
    KeysAndAttributes,
    WriteRequest,
)
from tavola.protocol.faults import ValidationFault
from tavola.values import TOO_LARGE, Item, decode_item, encode_item, read_units

_ALL_DONE: frozenset[int] = frozenset()
_DUPLICATES = "Provided list of item keys contains duplicates"


def batch_get_item(call: OperationCall, request: BatchGetItemRequest) -> bytes:
    """Answer the items under up to 100 keys of several tables, up to 16 MB; the rest is left to ask for."""
    projections: dict[str, Projection | None] = {}
    for name, wanted in request.request_items.items():
        for key in wanted.keys:
            call.admit(key)
        bindings = bind_placeholders(call, wanted.expression_attribute_names, None)
        projections[name] = parse_projection(call, wanted, bindings)
        check_placeholders_used(call, bindings, (projections[name],))
    tables = {name: call.table(name) for name in request.request_items}
    for name, table in tables.items():
        check_scalar_keys(table, projections[name])
    keys = {
        name: _check_distinct([key_of_request(tables[name], key) for key in wanted.keys])
        for name, wanted in request.request_items.items()
    }
    room = BATCH_GET_RESPONSE_BYTES_MAX
    undone = _throttled_keys(call, request, tables, keys) if call.services.emulation is not None else {}
    answers: list[bytes] = []
    unprocessed: dict[str, Any] = {}
    tallies: list[CapacityUsage] = []
    for name, wanted in request.request_items.items():
        tally = CapacityUsage(tables[name], name)
        undone_here = undone.get(name, _ALL_DONE)
        items, left, room = _read_table(
            call, tables[name], wanted, keys[name], projections[name], tally, room, undone_here
        )
        answers.append(encode(name) + b":[" + b",".join(items) + b"]")
        if left:
            unprocessed[name] = msgspec.to_builtins(wanted) | {"Keys": left}
        tallies.append(tally)
    tail: dict[str, Any] = {"UnprocessedKeys": unprocessed}
    mode = capacity_mode(request.return_consumed_capacity)
    if mode is not None:
        tail["ConsumedCapacity"] = [tally.render(mode) for tally in tallies]
    return b"".join((b'{"Responses":{', b",".join(answers), b"},", encode(tail)[1:]))


def _read_table(
    call: OperationCall,
    table: Table,
    wanted: KeysAndAttributes,
    keys: list[bytes],
    projection: Projection | None,
    tally: CapacityUsage,
    room: int,
    undone: frozenset[int],
) -> tuple[list[bytes], list[Item], int]:
    items: list[bytes] = []
    left = [wanted.keys[place] for place in sorted(undone)]
    for place, key in enumerate(keys):
        if place in undone:
            continue
        line = table.rack.get(key)
        size = 0 if line is None else line[1]
        if size > room:
            rest = [wanted.keys[at] for at in range(place, len(keys)) if at not in undone]
            return items, left + rest, 0
        units = read_units(size, consistent=bool(wanted.consistent_read))
        tally.reads += units
        call.record_access(table, None, key, reads=units)
        if line is not None:
            room -= size
            data = line[0]
            items.append(data if projection is None else encode_item(project(projection, decode_item(data))))
    return items, left, room


def _throttled_keys(
    call: OperationCall, request: BatchGetItemRequest, tables: dict[str, Table], keys: dict[str, list[bytes]]
) -> dict[str, frozenset[int]]:
    """Show each table as its reads see it, and return by table the places of the keys that are left undone."""
    emulation = call.services.emulation
    assert emulation is not None, "nothing else leaves a key undone"
    reads: list[tuple[Table, bytes, float]] = []
    places: list[tuple[str, int]] = []
    for name, wanted in request.request_items.items():
        tables[name] = table = emulation.seen(tables[name], None, wanted.consistent_read)
        for place, key in enumerate(keys[name]):
            line = table.rack.get(key)
            units = read_units(0 if line is None else line[1], consistent=bool(wanted.consistent_read))
            reads.append((table, key, units))
            places.append((name, place))
    undone: dict[str, set[int]] = {}
    for at in emulation.left_unread(reads):
        name, place = places[at]
        undone.setdefault(name, set()).add(place)
    return {name: frozenset(found) for name, found in undone.items()}


def batch_write_item(call: OperationCall, request: BatchWriteItemRequest) -> bytes:
    """Put and delete up to 25 items of several tables; every one is checked before the first is written."""
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
    planned: list[tuple[str, Table, list[bytes], list[WriteRequest]]] = []
    for name, writes in request.request_items.items():
        table = tables[name]
        planned.append((name, table, _check_distinct([_write_key(table, write) for write in writes]), writes))
    changes: list[tuple[str, Change, Item]] = []
    for name, table, keys, writes in planned:
        for key, write in zip(keys, writes, strict=True):
            standing = look_up(table, key)
            if write.put_request is not None:
                item = write.put_request.item
                changes.append((name, stage_put(standing, item, sizes[id(write)]), item))
            elif write.delete_request is not None:
                changes.append((name, stage_delete(standing), write.delete_request.key))
    unprocessed: dict[str, list[Any]] = {}
    if call.services.emulation is not None:
        undone = call.services.emulation.left_unwritten([change for _, change, _ in changes])
        for place in sorted(undone):
            name, change, item = changes[place]
            again = (
                {"DeleteRequest": {"Key": item}} if change.item is None else {"PutRequest": {"Item": item}}
            )
            unprocessed.setdefault(name, []).append(again)
        changes = [each for place, each in enumerate(changes) if place not in undone]
    call.services.begin()
    for _, change, _ in changes:
        record_write_access(call, change)
        apply_change(call.services.catalog, change)
    return encode({"UnprocessedItems": unprocessed} | _render_batch_metrics(request, changes))


def _render_batch_metrics(
    request: BatchWriteItemRequest, changes: list[tuple[str, Change, Item]]
) -> dict[str, Any]:
    members: dict[str, Any] = {}
    mode = capacity_mode(request.return_consumed_capacity)
    if mode is not None:
        tallies: dict[str, CapacityUsage] = {}
        for name, change, _ in changes:
            add_write_units(tallies.setdefault(name, CapacityUsage(change.table, name)), change)
        members["ConsumedCapacity"] = [tally.render(mode) for tally in tallies.values()]
    if request.return_item_collection_metrics == "SIZE":
        members |= collection_metrics_by_table(changes)
    return members


def collection_metrics_by_table(changes: list[tuple[str, Change, Item]]) -> dict[str, Any]:
    """Return the sizes of the collections that writes touched, by table, each once."""
    metrics: dict[str, list[Any]] = {}
    for name, change, key in changes:
        if change.table.has_local:
            told = collection_metrics(change, key)
            if told not in metrics.setdefault(name, []):
                metrics[name].append(told)
    return {"ItemCollectionMetrics": metrics} if metrics else {}


def _write_key(table: Table, write: WriteRequest) -> bytes:
    """Return the key of a write; a put without its key is told as a wrong key, unlike PutItem's."""
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
