"""TransactWriteItems and TransactGetItems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tavola.engine.capacity import CapacityUsage, capacity_mode
from tavola.engine.catalog import Table
from tavola.engine.emulation import Emulation
from tavola.engine.isolation import digest_of
from tavola.engine.operations.batches import collection_metrics_by_table
from tavola.engine.operations.call import OperationCall
from tavola.engine.operations.items import (
    add_write_units,
    check_condition,
    check_keys_not_updated,
    prepare_update,
    record_write_access,
)
from tavola.engine.operations.request_expressions import (
    bind_placeholders,
    check_placeholders_used,
    check_scalar_keys,
    parse_condition,
    parse_projection,
    parse_update,
)
from tavola.engine.operations.responses import EMPTY, encode
from tavola.engine.writes import (
    CurrentItem,
    ItemWrite,
    apply_write,
    find_current,
    key_of_item,
    key_of_request,
    prepare_delete,
    prepare_put,
)
from tavola.expressions.bindings import Bindings
from tavola.expressions.conditions import Condition
from tavola.expressions.projections import Projection, project
from tavola.expressions.updates import Update
from tavola.keys import KeyRefused
from tavola.limits import ITEM_BYTES_MAX, TRANSACTION_BYTES_MAX, TRANSACTION_UNITS_FACTOR
from tavola.protocol.faults import (
    CancellationReason,
    ConditionalCheckFailedFault,
    ItemCollectionSizeLimitExceededFault,
    TransactionCanceledFault,
    ValidationFault,
)
from tavola.protocol.transactions import (
    ConditionCheck,
    Put,
    TransactGetItemsRequest,
    TransactWriteItemsRequest,
)
from tavola.protocol.transactions import Update as UpdateAction
from tavola.values import TOO_LARGE, Item, decode_item, encode_item, transact_read_units, transact_write_units

_ONCE = "Transaction request cannot include multiple operations on one item"
_NONE = CancellationReason("None")


@dataclass(slots=True)
class TransactionAction:
    """One action of a transaction, admitted and compiled, before any table is looked at."""

    request: Any  # Put, Update, Delete or ConditionCheck as the request has it
    attributes: Item  # the item of a put, the key of anything else
    size: int
    bindings: Bindings
    condition: Condition | None
    update: Update | None


@dataclass(slots=True)
class PreparedAction:
    """An action that nothing stands in the way of; a check changes nothing."""

    action: TransactionAction
    current: CurrentItem
    write: ItemWrite | None

    @property
    def name(self) -> str:
        """Return the table as the request named it."""
        name: str = self.action.request.table_name
        return name

    @property
    def largest(self) -> int:
        """Return the bytes of the larger image."""
        return max(self.current.size, 0 if self.write is None else self.write.size)


@dataclass(slots=True)
class TransactionResult:
    """What a transaction did; of one that was done before, what reading its items again is billed."""

    prepared: list[PreparedAction]
    replayed: list[tuple[str, float]] | None

    def render_capacity(self, call: OperationCall, mode: str) -> list[dict[str, Any]]:
        """Return what it consumed, twice on the tables and once on the indexes."""
        tallies: dict[str, CapacityUsage] = {}
        for each in self.prepared:
            tally = tallies.setdefault(each.name, CapacityUsage(each.current.table, each.name))
            if each.write is None:
                tally.writes += transact_write_units(each.largest, 0)
            else:
                add_write_units(tally, each.write, factor=TRANSACTION_UNITS_FACTOR)
        for name, units in self.replayed or ():
            tallies[name] = CapacityUsage(call.table(name), name)
            tallies[name].reads = units
        return [tally.render(mode, split=True) for tally in tallies.values()]


def transact_write_items(call: OperationCall, request: TransactWriteItemsRequest) -> bytes:
    """Do all of up to 100 writes and checks, or none and say of each why."""
    check_payload_size(call)
    token = request.client_request_token
    # Taken before admission rewrites numbers, so that only what was sent counts.
    digest = digest_of(request.transact_items) if token is not None else ""
    actions = [_parse_action(call, item.action) for item in request.transact_items]
    done = execute_actions(call, actions, token, digest)
    members: dict[str, Any] = {}
    mode = capacity_mode(request.return_consumed_capacity)
    if mode is not None:
        members["ConsumedCapacity"] = done.render_capacity(call, mode)
    if request.return_item_collection_metrics == "SIZE":
        changed = [
            (each.name, each.write, each.action.attributes)
            for each in done.prepared
            if each.write is not None
        ]
        members |= collection_metrics_by_table(changed)
    return encode(members)


def check_payload_size(call: OperationCall) -> None:
    """Refuse a request that is larger than a transaction may be."""
    if len(call.body) > TRANSACTION_BYTES_MAX:
        raise ValidationFault(
            "The total size of the transaction payload is too large: "
            f"transaction payload size cannot exceed {TRANSACTION_BYTES_MAX} bytes"
        )


def execute_actions(
    call: OperationCall, actions: list[TransactionAction], token: str | None, digest: str
) -> TransactionResult:
    """Do all actions or none; what the token says was done before is not done again."""
    tokens = call.services.tokens
    emulation = call.services.emulation
    if token is not None:
        receipt = tokens.replayed(call.scope, token, digest)
        if emulation is not None:
            emulation.begin_transaction(call.scope, token)
        if receipt is not None:
            return TransactionResult([], receipt.reads)
    tables = [call.table(action.request.table_name) for action in actions]
    _check_distinct(tables, actions)
    if emulation is not None:
        emulation.meet_transaction([_item_address(*each) for each in zip(tables, actions, strict=True)])
    try:
        staged = _prepare_all(tables, actions)
    except TransactionCanceledFault:
        if emulation is not None:
            emulation.cancelled(_read_all_current(tables, actions))
        raise
    if emulation is not None:
        emulation.transact([(each.current, each.write) for each in staged], call.scope, token)
    call.services.begin()
    for each in staged:
        if each.write is None:
            call.record_access(
                each.current.table, None, each.current.key, writes=transact_write_units(each.largest, 0)
            )
        else:
            record_write_access(call, each.write, factor=TRANSACTION_UNITS_FACTOR)
            apply_write(call.services.catalog, each.write)
    if token is not None:
        tokens.keep(call.scope, token, digest, _replay_read_units(staged))
    return TransactionResult(staged, None)


def transact_get_items(call: OperationCall, request: TransactGetItemsRequest) -> bytes:
    """Answer up to 100 items as they were at one moment, in the order they were asked for."""
    projections: list[Projection | None] = []
    for item in request.transact_items:
        call.admit(item.get.key)
        bindings = bind_placeholders(call, item.get.expression_attribute_names, None)
        projection = parse_projection(call, item.get, bindings)
        check_placeholders_used(call, bindings, (projection,))
        projections.append(projection)
    tables = [call.table(item.get.table_name) for item in request.transact_items]
    for table, projection in zip(tables, projections, strict=True):
        check_scalar_keys(table, projection)
    keys = _keys_of_gets(tables, request)
    reads = [
        ItemRead(item.get.table_name, table, key, projection)
        for item, table, key, projection in zip(
            request.transact_items, tables, keys, projections, strict=True
        )
    ]
    return read_items(call, reads, request.return_consumed_capacity)


class ItemRead(NamedTuple):
    """One read of a transaction, ready."""

    name: str  # the table as the request names it
    table: Table
    key: bytes
    projection: Projection | None


def read_items(call: OperationCall, reads: list[ItemRead], return_capacity: str | None) -> bytes:
    """Answer items as they are at one moment; refuse to read one twice."""
    numbered = [(read.table.definition.number, read.key) for read in reads]
    if len(set(numbered)) != len(numbered):
        raise ValidationFault(_ONCE)
    if call.services.emulation is not None:
        _charge_reads(call.services.emulation, reads)
    answers: list[bytes] = []
    tallies: dict[str, CapacityUsage] = {}
    total = 0
    for name, table, key, projection in reads:
        line = table.rack.get(key)
        tally = tallies.setdefault(name, CapacityUsage(table, name))
        units = transact_read_units(0 if line is None else line[1])
        tally.reads += units
        call.record_access(table, None, key, reads=units)
        if line is None:
            answers.append(EMPTY)
        else:
            total += line[1]
            if total > TRANSACTION_BYTES_MAX:
                raise ValidationFault(
                    f"The aggregate size of the items in the transaction exceeds {TRANSACTION_BYTES_MAX} bytes"
                )
            data = line[0] if projection is None else encode_item(project(projection, decode_item(line[0])))
            answers.append(b'{"Item":' + data + b"}")
    mode = capacity_mode(return_capacity)
    tail = b"]}"
    if mode is not None:
        consumed = [tally.render(mode, split=True) for tally in tallies.values()]
        tail = b"]," + encode({"ConsumedCapacity": consumed})[1:]
    return b"".join((b'{"Responses":[', b",".join(answers), tail))


def _charge_reads(emulation: Emulation, reads: list[ItemRead]) -> None:
    charged: list[tuple[Table, bytes, float]] = []
    for read in reads:
        line = read.table.rack.get(read.key)
        units = transact_read_units(0 if line is None else line[1])
        charged.append((read.table, read.key, units))
    emulation.read_transacted(charged)


def _keys_of_gets(tables: list[Table], request: TransactGetItemsRequest) -> list[bytes]:
    keys: list[bytes] = []
    reasons: list[CancellationReason] = []
    for table, item in zip(tables, request.transact_items, strict=True):
        try:
            keys.append(key_of_request(table, item.get.key))
            reasons.append(_NONE)
        except ValidationFault as fault:
            if isinstance(fault.__cause__, KeyRefused) and fault.__cause__.reason not in ("missing", "type"):
                raise
            reasons.append(CancellationReason("ValidationError", str(fault)))
    if any(reason is not _NONE for reason in reasons):
        raise TransactionCanceledFault(_keep_first_validation_error(reasons))
    return keys


def _parse_action(call: OperationCall, asked: Any) -> TransactionAction:
    attributes = asked.item if isinstance(asked, Put) else asked.key
    size = call.admit(attributes)
    if isinstance(asked, Put) and size > ITEM_BYTES_MAX:
        raise ValidationFault(TOO_LARGE)
    bindings = bind_placeholders(call, asked.expression_attribute_names, asked.expression_attribute_values)
    update = parse_update(call, asked, bindings) if isinstance(asked, UpdateAction) else None
    condition = parse_condition(call, asked, bindings)
    check_placeholders_used(call, bindings, (update, condition))
    return TransactionAction(asked, attributes, size, bindings, condition, update)


def _check_distinct(tables: list[Table], actions: list[TransactionAction]) -> None:
    """Refuse two actions on one item; a key that is none is left for its own reason."""
    seen: set[tuple[int, bytes]] = set()
    for table, action in zip(tables, actions, strict=True):
        try:
            key = table.schema.key_of(action.attributes)
        except KeyRefused as refused:
            if refused.reason == "empty":
                key_of_item(table, action.attributes)
            continue
        if (table.definition.number, key) in seen:
            raise ValidationFault(_ONCE)
        seen.add((table.definition.number, key))


def _item_address(table: Table, action: TransactionAction) -> tuple[Table, bytes] | None:
    """Return where an action acts; None for a key that is none."""
    try:
        return table, table.schema.key_of(action.attributes)
    except KeyRefused:
        return None


def _read_all_current(tables: list[Table], actions: list[TransactionAction]) -> list[CurrentItem]:
    places = [_item_address(table, action) for table, action in zip(tables, actions, strict=True)]
    return [find_current(*place) for place in places if place is not None]


def _prepare_all(tables: list[Table], actions: list[TransactionAction]) -> list[PreparedAction]:
    """Return every change, or say of each action what stood in its way."""
    reasons: list[CancellationReason] = []
    staged: list[PreparedAction] = []
    for table, action in zip(tables, actions, strict=True):
        reason = _NONE
        try:
            staged.append(PreparedAction(action, *_prepare(table, action)))
        except ConditionalCheckFailedFault as fault:
            reason = CancellationReason("ConditionalCheckFailed", fault.message, fault.item)
        except ItemCollectionSizeLimitExceededFault as fault:
            reason = CancellationReason("ItemCollectionSizeLimitExceeded", fault.message)
        except ValidationFault as fault:
            reason = CancellationReason("ValidationError", fault.message)
        reasons.append(reason)
    if any(reason is not _NONE for reason in reasons):
        raise TransactionCanceledFault(_keep_first_validation_error(reasons))
    return staged


def _prepare(table: Table, action: TransactionAction) -> tuple[CurrentItem, ItemWrite | None]:
    asked = action.request
    shown = asked.return_values_on_condition_check_failure
    check_scalar_keys(table, action.condition)
    if isinstance(asked, Put):
        current = find_current(table, key_of_item(table, action.attributes))
        write = prepare_put(current, action.attributes, action.size)
        check_condition(current, action.condition, action.bindings, shown)
        return current, write
    check_keys_not_updated(table, action.update)
    current = find_current(table, key_of_request(table, action.attributes))
    check_condition(current, action.condition, action.bindings, shown)
    if isinstance(asked, UpdateAction):
        return current, prepare_update(current, action.attributes, action.update, action.bindings)[0]
    return current, None if isinstance(asked, ConditionCheck) else prepare_delete(current)


def _keep_first_validation_error(reasons: list[CancellationReason]) -> list[CancellationReason]:
    """Return the reasons as AWS tells them: every failed condition, but one invalid request."""
    told: list[CancellationReason] = []
    invalid = False
    for reason in reasons:
        repeated = invalid and reason.code == "ValidationError"
        told.append(_NONE if repeated else reason)
        invalid = invalid or reason.code == "ValidationError"
    return told


def _replay_read_units(staged: list[PreparedAction]) -> list[tuple[str, float]]:
    reads: dict[str, float] = {}
    for each in staged:
        reads[each.name] = reads.get(each.name, 0.0) + transact_read_units(each.largest)
    return list(reads.items())
