"""TransactWriteItems and TransactGetItems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tavola.engine.capacity import Tally, read_units, write_units
from tavola.engine.catalog import Table
from tavola.engine.isolation import digest_of
from tavola.engine.operations.answer import EMPTY, encode
from tavola.engine.operations.batches import told_changes
from tavola.engine.operations.call import Call
from tavola.engine.operations.items import (
    check_condition,
    check_keys_untouched,
    stage_updated,
)
from tavola.engine.operations.terms import (
    all_used,
    bind,
    check_scalar_keys,
    condition_of,
    projection_of,
    update_of,
)
from tavola.engine.writes import (
    KEY_MISMATCH,
    Change,
    Standing,
    apply_change,
    key_of_item,
    key_of_request,
    look_up,
    stage_delete,
    stage_put,
)
from tavola.expressions import Bindings, Condition, Projection, Update, project
from tavola.keys import KeyRefused
from tavola.limits import ITEM_BYTES_MAX, TRANSACTION_BYTES_MAX
from tavola.protocol import (
    CancellationReason,
    ConditionalCheckFailedFault,
    ConditionCheck,
    ItemCollectionSizeLimitExceededFault,
    Put,
    TransactGetItemsRequest,
    TransactionCanceledFault,
    TransactWriteItemsRequest,
    ValidationFault,
)
from tavola.protocol import Update as UpdateAction
from tavola.values import TOO_LARGE, Item, decode_item, encode_item

_ONCE = "Transaction request cannot include multiple operations on one item"
_NONE = CancellationReason("None")


@dataclass(slots=True)
class Action:
    """One action of a transaction, admitted and compiled, before any table is looked at."""

    asked: Any  # Put, Update, Delete or ConditionCheck as the request has it
    attributes: Item  # the item of a put, the key of anything else
    size: int
    bindings: Bindings
    condition: Condition | None
    update: Update | None


def transact_write_items(call: Call, request: TransactWriteItemsRequest) -> bytes:
    """Do all of up to 100 writes and checks, or none and say of each why."""
    if len(call.body) > TRANSACTION_BYTES_MAX:
        raise ValidationFault(
            "The total size of the transaction payload is too large: "
            f"transaction payload size cannot exceed {TRANSACTION_BYTES_MAX} bytes"
        )
    token = request.client_request_token
    # Taken before admission rewrites numbers, so that only what was sent counts.
    digest = digest_of(request.transact_items) if token is not None else ""
    actions = [_admit(call, item.action) for item in request.transact_items]
    tokens = call.services.tokens
    if token is not None:
        receipt = tokens.replayed(call.scope, token, digest)
        if receipt is not None:
            return _replay(call, request, receipt.reads)
    tables = [call.table(action.asked.table_name) for action in actions]
    _check_distinct(tables, actions)
    changes = _stage(tables, actions)
    call.services.begin()
    for _, change, _ in changes:
        if change is not None:
            apply_change(call.services.catalog, change)
    if token is not None:
        tokens.keep(call.scope, token, digest, _receipt_reads(changes))
    return _told(request, changes)


def transact_get_items(call: Call, request: TransactGetItemsRequest) -> bytes:
    """Answer up to 100 items as they were at one moment, in the order they were asked for."""
    projections: list[Projection | None] = []
    for item in request.transact_items:
        call.admit(item.get.key)
        bindings = bind(call, item.get.expression_attribute_names, None)
        projection = projection_of(call, item.get, bindings)
        all_used(call, bindings, (projection,))
        projections.append(projection)
    tables = [call.table(item.get.table_name) for item in request.transact_items]
    for table, projection in zip(tables, projections, strict=True):
        check_scalar_keys(table, projection)
    keys = _get_keys(tables, request)
    answers: list[bytes] = []
    tallies: dict[str, Tally] = {}
    total = 0
    for item, table, key, projection in zip(request.transact_items, tables, keys, projections, strict=True):
        line = table.rack.get(key)
        name = item.get.table_name
        tally = tallies.setdefault(name, Tally(table, name))
        tally.reads += 2 * read_units(0 if line is None else line[1], consistent=True)
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
    mode = request.return_consumed_capacity
    tail = b"]}"
    if mode is not None and mode != "NONE":
        consumed = [tally.render(mode, split=True) for tally in tallies.values()]
        tail = b"]," + encode({"ConsumedCapacity": consumed})[1:]
    return b"".join((b'{"Responses":[', b",".join(answers), tail))


def _get_keys(tables: list[Table], request: TransactGetItemsRequest) -> list[bytes]:
    keys: list[bytes] = []
    reasons: list[CancellationReason] = []
    for table, item in zip(tables, request.transact_items, strict=True):
        try:
            keys.append(key_of_request(table, item.get.key))
            reasons.append(_NONE)
        except ValidationFault as fault:
            if str(fault) != KEY_MISMATCH:
                raise
            reasons.append(CancellationReason("ValidationError", str(fault)))
    if any(reason is not _NONE for reason in reasons):
        raise TransactionCanceledFault(_first_validation_only(reasons))
    numbered = [(table.definition.number, key) for table, key in zip(tables, keys, strict=True)]
    if len(set(numbered)) != len(numbered):
        raise ValidationFault(_ONCE)
    return keys


def _admit(call: Call, asked: Any) -> Action:
    attributes = asked.item if isinstance(asked, Put) else asked.key
    size = call.admit(attributes)
    if isinstance(asked, Put) and size > ITEM_BYTES_MAX:
        raise ValidationFault(TOO_LARGE)
    bindings = bind(call, asked.expression_attribute_names, asked.expression_attribute_values)
    update = update_of(call, asked, bindings) if isinstance(asked, UpdateAction) else None
    condition = condition_of(call, asked, bindings)
    all_used(call, bindings, (update, condition))
    return Action(asked, attributes, size, bindings, condition, update)


def _check_distinct(tables: list[Table], actions: list[Action]) -> None:
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


def _stage(tables: list[Table], actions: list[Action]) -> list[tuple[str, Change | None, Any]]:
    """Return every change, or say of each action what stood in its way."""
    reasons: list[CancellationReason] = []
    changes: list[tuple[str, Change | None, Any]] = []
    for table, action in zip(tables, actions, strict=True):
        reason = _NONE
        try:
            standing, change = _stage_one(table, action)
            changes.append(
                (action.asked.table_name, change, standing if change is None else action.attributes)
            )
        except ConditionalCheckFailedFault as fault:
            reason = CancellationReason("ConditionalCheckFailed", fault.message, fault.item)
        except ItemCollectionSizeLimitExceededFault as fault:
            reason = CancellationReason("ItemCollectionSizeLimitExceeded", fault.message)
        except ValidationFault as fault:
            reason = CancellationReason("ValidationError", fault.message)
        reasons.append(reason)
    if any(reason is not _NONE for reason in reasons):
        raise TransactionCanceledFault(_first_validation_only(reasons))
    return changes


def _stage_one(table: Table, action: Action) -> tuple[Standing, Change | None]:
    asked = action.asked
    shown = asked.return_values_on_condition_check_failure
    check_scalar_keys(table, action.condition)
    if isinstance(asked, Put):
        standing = look_up(table, key_of_item(table, action.attributes))
        change = stage_put(standing, action.attributes, action.size)
        check_condition(standing, action.condition, action.bindings, shown)
        return standing, change
    check_keys_untouched(table, action.update)
    standing = look_up(table, key_of_request(table, action.attributes))
    check_condition(standing, action.condition, action.bindings, shown)
    if isinstance(asked, UpdateAction):
        return standing, stage_updated(standing, action.attributes, action.update, action.bindings)[0]
    return standing, None if isinstance(asked, ConditionCheck) else stage_delete(standing)


def _first_validation_only(reasons: list[CancellationReason]) -> list[CancellationReason]:
    """Return the reasons as AWS tells them: every failed condition, but one invalid request."""
    told: list[CancellationReason] = []
    invalid = False
    for reason in reasons:
        repeated = invalid and reason.code == "ValidationError"
        told.append(_NONE if repeated else reason)
        invalid = invalid or reason.code == "ValidationError"
    return told


def _told(request: TransactWriteItemsRequest, changes: list[tuple[str, Change | None, Any]]) -> bytes:
    mode = request.return_consumed_capacity
    written = [(name, change, key) for name, change, key in changes if change is not None]
    checked = [(name, standing) for name, change, standing in changes if change is None]
    members = told_changes(request, written, factor=2.0)
    if mode is not None and mode != "NONE" and checked:
        members["ConsumedCapacity"] = _with_checks(members["ConsumedCapacity"], checked, mode)
    return encode(members)


def _with_checks(
    consumed: list[dict[str, Any]], checked: list[tuple[str, Standing]], mode: str
) -> list[dict[str, Any]]:
    """Return consumed capacity with the condition checks added: each costs as a write of its item."""
    by_name = {each["TableName"]: each for each in consumed}
    for name, standing in checked:
        tally = Tally(standing.table, name)
        tally.writes = 2.0 * write_units(standing.size, standing.size)
        extra = tally.render(mode, split=True)
        if name in by_name:
            _add(by_name[name], extra)
        else:
            by_name[name] = extra
    return list(by_name.values())


def _add(into: dict[str, Any], extra: dict[str, Any]) -> None:
    for member, amount in extra.items():
        if isinstance(amount, float):
            into[member] = into.get(member, 0.0) + amount
        elif isinstance(amount, dict):
            _add(into.setdefault(member, {}), amount)


def _receipt_reads(changes: list[tuple[str, Change | None, Any]]) -> list[tuple[str, float]]:
    reads: dict[str, float] = {}
    for name, change, rest in changes:
        size = rest.size if change is None else max(change.size, change.standing.size)
        reads[name] = reads.get(name, 0.0) + 2 * read_units(size, consistent=True)
    return list(reads.items())


def _replay(call: Call, request: TransactWriteItemsRequest, reads: list[tuple[str, float]]) -> bytes:
    """Answer a transaction that was done before: nothing is applied, the items are billed as read."""
    mode = request.return_consumed_capacity
    if mode is None or mode == "NONE":
        return EMPTY
    consumed = []
    for name, units in reads:
        tally = Tally(call.table(name), name)
        tally.reads = units
        consumed.append(tally.render(mode, split=True))
    return encode({"ConsumedCapacity": consumed})
