"""TransactWriteItems and TransactGetItems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from tavola.engine.capacity import CapacityUsage, add_write_units
from tavola.engine.catalog import StoredTable
from tavola.engine.isolation import digest_payload
from tavola.engine.operations.batches import collection_metrics_by_table
from tavola.engine.operations.call import (
    EMPTY,
    OperationCall,
    bind_placeholders,
    capacity_mode,
    check_placeholders_used,
    check_scalar_keys,
    encode,
    parse_condition,
    parse_projection,
    parse_update,
    project_row_in_steps,
)
from tavola.engine.operations.items import (
    check_keys_not_updated,
    prepare_update,
)
from tavola.engine.writes import (
    ATTEMPTS_MAX,
    CurrentItem,
    ItemWrite,
    apply_write,
    condition_failure,
    decode_in_steps,
    find_current,
    key_of_item,
    key_of_request,
    prepare_delete,
    prepare_put,
)
from tavola.expressions.bindings import Bindings
from tavola.expressions.conditions import CompiledCondition
from tavola.expressions.projections import CompiledProjection
from tavola.expressions.updates import CompiledUpdate
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
from tavola.values import (
    TOO_LARGE,
    Item,
    Steps,
    transact_read_units,
    transact_write_units,
)

_ONCE = "Transaction request cannot include multiple operations on one item"
_NONE = CancellationReason("None")
_ACTIONS_PER_STEP = 8
_STEP_BYTES = 32 * 1024  # decoded before a pause


@dataclass(slots=True)
class TransactionAction:
    """One action of a transaction: values checked and expressions compiled, no table read yet."""

    request: Any  # Put, Update, Delete or ConditionCheck
    attributes: Item  # the item of a Put, the key of any other
    size: int
    bindings: Bindings
    condition: CompiledCondition | None
    update: CompiledUpdate | None


@dataclass(slots=True)
class PreparedAction:
    """A validated action; `write` is None for a ConditionCheck."""

    action: TransactionAction
    current: CurrentItem
    write: ItemWrite | None

    @property
    def name(self) -> str:
        """The table name or ARN in the request."""
        name: str = self.action.request.table_name
        return name

    @property
    def largest(self) -> int:
        """The size of the larger of old and new item."""
        return max(self.current.size, 0 if self.write is None else self.write.size)


@dataclass(slots=True)
class TransactionResult:
    """A committed transaction; for a repeated token, the read units that AWS bills by table instead."""

    prepared: list[PreparedAction]
    replayed: list[tuple[str, float]] | None

    def render_capacity(self, call: OperationCall, mode: str) -> list[dict[str, Any]]:
        """Return ConsumedCapacity: doubled for tables, plain for indexes."""
        usages: dict[str, CapacityUsage] = {}
        for action in self.prepared:
            usage = usages.setdefault(action.name, CapacityUsage(action.current.table, action.name))
            if action.write is None:
                usage.writes += transact_write_units(action.largest, 0)
            else:
                add_write_units(usage, action.write, factor=TRANSACTION_UNITS_FACTOR)
        for name, units in self.replayed or ():
            usages[name] = CapacityUsage(call.table(name), name)
            usages[name].reads = units
        return [usage.render(mode, split=True) for usage in usages.values()]


def transact_write_items(call: OperationCall, request: TransactWriteItemsRequest) -> Steps[bytes]:
    """Carry out up to 100 writes and checks, all or none; a cancellation lists a reason per action."""
    check_payload_size(call)
    token = request.client_request_token
    # Computed before checking values normalizes numbers: the token covers the request as sent.
    digest = digest_payload(request.transact_items) if token is not None else ""
    actions: list[TransactionAction] = []
    for number, item in enumerate(request.transact_items):
        if number % _ACTIONS_PER_STEP == _ACTIONS_PER_STEP - 1:
            yield
        actions.append(_parse_action(call, item.action))
    done = yield from execute_actions(call, actions, token, digest)
    members: dict[str, Any] = {}
    mode = capacity_mode(request.return_consumed_capacity)
    if mode is not None:
        members["ConsumedCapacity"] = done.render_capacity(call, mode)
    if request.return_item_collection_metrics == "SIZE":
        changed = [
            (action.name, action.write, action.action.attributes)
            for action in done.prepared
            if action.write is not None
        ]
        members |= collection_metrics_by_table(changed)
    return encode(members)


def check_payload_size(call: OperationCall) -> None:
    """Refuse a body over the size limit of transactions."""
    if len(call.body) > TRANSACTION_BYTES_MAX:
        raise ValidationFault(
            "The total size of the transaction payload is too large: "
            f"transaction payload size cannot exceed {TRANSACTION_BYTES_MAX} bytes"
        )


def execute_actions(
    call: OperationCall, actions: list[TransactionAction], token: str | None, digest: str
) -> Steps[TransactionResult]:
    """Carry out all actions or none; a token seen before with the same request repeats nothing.

    Actions on large items are prepared in steps, and prepared again if anything that they read changed during a pause.
    From the last check of that to the end nothing pauses, so the transaction takes effect at one moment.
    """
    for attempt in range(ATTEMPTS_MAX + 1):
        pauses = _Pauses(allowed=attempt < ATTEMPTS_MAX)
        result = yield from _try_actions(call, actions, token, digest, pauses)
        if result is not None:
            for action in result.prepared:
                yield from action.current.release()
            return result
    raise AssertionError("without pauses nothing changes")


class _TableChanged(Exception):
    """A table of a transaction was changed or deleted while it was prepared."""


class _Pauses:
    """Whether preparing a transaction may pause, and whether it did."""

    __slots__ = ("allowed", "bytes", "happened")

    def __init__(self, *, allowed: bool) -> None:
        self.allowed = allowed
        self.happened = False
        self.bytes = 0  # decoded since the last one


def _try_actions(
    call: OperationCall, actions: list[TransactionAction], token: str | None, digest: str, pauses: _Pauses
) -> Steps[TransactionResult | None]:
    """Carry out all actions or none; return None, with nothing done, if what they read changed during a pause."""
    if token is not None:
        receipt = call.find_receipt(token, digest)
        if receipt is not None:
            return TransactionResult([], receipt.reads)
    tables = [call.table(action.request.table_name) for action in actions]
    addresses = _distinct_addresses(tables, actions)
    try:
        prepared = yield from call.prepare_transaction(
            addresses, lambda: _prepare_all(call, tables, actions, pauses), token
        )
    except _TableChanged:
        return None
    if pauses.happened and not _are_unchanged(call, tables, actions, prepared, token, digest):
        return None
    call.services.begin()
    for prepared_action in prepared:
        if prepared_action.write is None:
            call.record_access(
                prepared_action.current.table,
                None,
                prepared_action.current.key,
                writes=transact_write_units(prepared_action.largest, 0),
            )
        else:
            call.record_write(prepared_action.write, factor=TRANSACTION_UNITS_FACTOR)
            apply_write(call.services.catalog, prepared_action.write)
    if token is not None:
        call.services.tokens.save_receipt(call.scope, token, digest, _replay_read_units(prepared))
    return TransactionResult(prepared, None)


def _are_unchanged(
    call: OperationCall,
    tables: list[StoredTable],
    actions: list[TransactionAction],
    prepared: list[PreparedAction],
    token: str | None,
    digest: str,
) -> bool:
    """Return whether the tables, items and token that prepared actions read are still as they were."""
    if token is not None and call.find_receipt(token, digest) is not None:
        return False
    if any(
        call.table(action.request.table_name) is not table
        for table, action in zip(tables, actions, strict=True)
    ):
        return False
    return all(
        action.current.table.rows.find(action.current.key) == action.current.row for action in prepared
    )


def transact_get_items(call: OperationCall, request: TransactGetItemsRequest) -> Steps[bytes]:
    """Return up to 100 items from one snapshot, in request order."""
    projections: list[CompiledProjection | None] = []
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
    return (yield from read_items(call, reads, request.return_consumed_capacity))


class ItemRead(NamedTuple):
    """One validated read of a transaction."""

    name: str  # the table name or ARN in the request
    table: StoredTable
    key: bytes
    projection: CompiledProjection | None


def read_items(call: OperationCall, reads: list[ItemRead], return_capacity: str | None) -> Steps[bytes]:
    """Return items from one snapshot; the same item twice is refused."""
    numbered = [(read.table.definition.number, read.key) for read in reads]
    if len(set(numbered)) != len(numbered):
        raise ValidationFault(_ONCE)
    responses: list[bytes] = []
    usages: dict[str, CapacityUsage] = {}
    total = step_bytes = 0
    rows = call.read_rows([(read.table, read.key) for read in reads])
    for (name, table, key, projection), row in zip(reads, rows, strict=True):
        usage = usages.setdefault(name, CapacityUsage(table, name))
        units = transact_read_units(0 if row is None else row[1])
        usage.reads += units
        call.record_access(table, None, key, reads=units)
        if row is None:
            responses.append(EMPTY)
        else:
            step_bytes += len(row[0])
            if step_bytes > _STEP_BYTES:
                step_bytes = 0
                yield
            total += row[1]
            if total > TRANSACTION_BYTES_MAX:
                raise ValidationFault(
                    f"The aggregate size of the items in the transaction exceeds {TRANSACTION_BYTES_MAX} bytes"
                )
            responses.append(b'{"Item":' + (yield from project_row_in_steps(row[0], projection)) + b"}")
    mode = capacity_mode(return_capacity)
    tail = b"]}"
    if mode is not None:
        consumed = [usage.render(mode, split=True) for usage in usages.values()]
        tail = b"]," + encode({"ConsumedCapacity": consumed})[1:]
    return b"".join((b'{"Responses":[', b",".join(responses), tail))


def _keys_of_gets(tables: list[StoredTable], request: TransactGetItemsRequest) -> list[bytes]:
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


def _parse_action(call: OperationCall, request: Any) -> TransactionAction:
    attributes = request.item if isinstance(request, Put) else request.key
    size = call.admit(attributes)
    if isinstance(request, Put) and size > ITEM_BYTES_MAX:
        raise ValidationFault(TOO_LARGE)
    bindings = bind_placeholders(
        call, request.expression_attribute_names, request.expression_attribute_values
    )
    update = parse_update(call, request, bindings) if isinstance(request, UpdateAction) else None
    condition = parse_condition(call, request, bindings)
    check_placeholders_used(call, bindings, (update, condition))
    return TransactionAction(request, attributes, size, bindings, condition, update)


def _distinct_addresses(
    tables: list[StoredTable], actions: list[TransactionAction]
) -> list[tuple[StoredTable, bytes] | None]:
    """Return the table and encoded key of each action; refuse two actions on one item.

    An invalid key is None here and becomes that action's cancellation reason later.
    """
    addresses: list[tuple[StoredTable, bytes] | None] = []
    seen: set[tuple[int, bytes]] = set()
    for table, action in zip(tables, actions, strict=True):
        try:
            key = table.schema.key_of(action.attributes)
        except KeyRefused as refused:
            if refused.reason == "empty":
                key_of_item(table, action.attributes)
            addresses.append(None)
            continue
        if (table.definition.number, key) in seen:
            raise ValidationFault(_ONCE)
        seen.add((table.definition.number, key))
        addresses.append((table, key))
    return addresses


def _prepare_all(
    call: OperationCall, tables: list[StoredTable], actions: list[TransactionAction], pauses: _Pauses
) -> Steps[list[PreparedAction]]:
    """Return all actions validated, or raise TransactionCanceledFault with a reason for each."""
    reasons: list[CancellationReason] = []
    prepared: list[PreparedAction] = []
    for table, action in zip(tables, actions, strict=True):
        reason = _NONE
        if pauses.happened and call.table(action.request.table_name) is not table:
            raise _TableChanged
        try:
            prepared.append(PreparedAction(action, *(yield from _prepare(table, action, pauses))))
        except ConditionalCheckFailedFault as fault:
            reason = CancellationReason("ConditionalCheckFailed", fault.message, fault.item)
        except ItemCollectionSizeLimitExceededFault as fault:
            reason = CancellationReason("ItemCollectionSizeLimitExceeded", fault.message)
        except ValidationFault as fault:
            reason = CancellationReason("ValidationError", fault.message)
        reasons.append(reason)
    if any(reason is not _NONE for reason in reasons):
        raise TransactionCanceledFault(_keep_first_validation_error(reasons))
    return prepared


def _prepare(
    table: StoredTable, action: TransactionAction, pauses: _Pauses
) -> Steps[tuple[CurrentItem, ItemWrite | None]]:
    request = action.request
    check_scalar_keys(table, action.condition)
    if isinstance(request, Put):
        current = find_current(table, key_of_item(table, action.attributes))
        write = prepare_put(current, action.attributes, action.size)
        if action.condition is not None:
            yield from _decode_large(current, action, pauses)
        _check_condition(current, action)
        return current, write
    check_keys_not_updated(table, action.update)
    current = find_current(table, key_of_request(table, action.attributes))
    if action.condition is not None or action.update is not None:
        yield from _decode_large(current, action, pauses)
    _check_condition(current, action)
    if isinstance(request, UpdateAction):
        return current, prepare_update(current, action.attributes, action.update, action.bindings)
    return current, None if isinstance(request, ConditionCheck) else prepare_delete(current)


def _decode_large(current: CurrentItem, action: TransactionAction, pauses: _Pauses) -> Steps[None]:
    """Pause after some bytes, and decode and check a large item in steps, where pauses are allowed."""
    if current.row is None or not pauses.allowed:
        return
    pauses.bytes += len(current.row[2])
    if pauses.bytes > _STEP_BYTES:
        pauses.bytes = 0
        pauses.happened = True
        yield
    if current.is_large:
        pauses.happened = True
        decoded = yield from decode_in_steps(current.row[2], action.condition, action.bindings.values)
        current.set_item(*decoded)


def _check_condition(current: CurrentItem, action: TransactionAction) -> None:
    condition = action.condition
    if condition is not None and not current.meets(condition, action.bindings.values):
        raise condition_failure(current, action.request.return_values_on_condition_check_failure)


def _keep_first_validation_error(reasons: list[CancellationReason]) -> list[CancellationReason]:
    """Return reasons as AWS lists them: the first validation error alone; without one, every failed condition."""
    for reason in reasons:
        if reason.code == "ValidationError":
            return [reason if other is reason else _NONE for other in reasons]
    return reasons


def _replay_read_units(prepared: list[PreparedAction]) -> list[tuple[str, float]]:
    reads: dict[str, float] = {}
    for action in prepared:
        reads[action.name] = reads.get(action.name, 0.0) + transact_read_units(action.largest)
    return list(reads.items())
