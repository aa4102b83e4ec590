"""INSERT, UPDATE, DELETE and EXISTS, carried out as the writes of the native operations."""

from __future__ import annotations

from typing import Any

from tavola.engine.operations.call import OperationCall
from tavola.engine.operations.items import (
    check_condition,
    check_keys_not_updated,
    commit_write,
    prepare_update,
    read_current,
    updated_attributes,
)
from tavola.engine.operations.statement_plans import PlannedStatement
from tavola.engine.operations.transactions import TransactionAction
from tavola.engine.writes import (
    KEY_MISMATCH,
    ItemWrite,
    key_of_item,
    key_of_request,
    prepare_delete,
    prepare_put,
)
from tavola.expressions.partiql import single_key
from tavola.keys import KeyRefused
from tavola.limits import ITEM_BYTES_MAX
from tavola.protocol.faults import ConditionalCheckFailedFault, DuplicateItemFault, ValidationFault
from tavola.protocol.transactions import ConditionCheck, Delete, Put, Update
from tavola.values import TOO_DEEP, TOO_LARGE, Item

STATEMENT_TOO_DEEP = "Nesting Levels have exceeded supported limits"
_NO_KEY = "Where clause does not contain a mandatory equality on all key attributes"


def key_of_write(planned: PlannedStatement) -> Item:
    """Return the key of the one item that an UPDATE or DELETE writes."""
    where = planned.plan.where
    found = single_key(
        None if where is None else where.tree, planned.table.schema, planned.plan.bindings.values
    )
    if found is None:
        raise ValidationFault(_NO_KEY)
    if found.repeated is not None:
        raise ValidationFault(
            f"Multiple conditions on same key {found.repeated}. Only single item Update/Insert/Delete are supported"
        )
    return found.key


def item_of(call: OperationCall, planned: PlannedStatement) -> tuple[Item, int]:
    """Return the item that INSERT writes, its values checked, and its size."""
    item = planned.plan.item
    size = call.admit(item)
    if size > ITEM_BYTES_MAX:
        raise ValidationFault(TOO_LARGE)
    return item, size


def encoded_key_of_write(call: OperationCall, planned: PlannedStatement) -> bytes:
    """Return the encoded key of the item that a statement writes."""
    if planned.statement.kind == "insert":
        return key_of_item(planned.table, item_of(call, planned)[0])
    return key_of_request(planned.table, key_of_write(planned))


def execute_write(call: OperationCall, planned: PlannedStatement, show: str | None) -> ItemWrite:
    """Carry out one INSERT, UPDATE or DELETE; `show="ALL_OLD"` puts the item on a failed condition's fault."""
    try:
        write = _prepare(call, planned, show)
    except ValidationFault as fault:
        if fault.message == TOO_DEEP:
            raise ValidationFault(STATEMENT_TOO_DEEP) from fault
        raise
    commit_write(call, write)
    return write


def _prepare(call: OperationCall, planned: PlannedStatement, show: str | None) -> ItemWrite:
    plan, table = planned.plan, planned.table
    condition = plan.write_condition(table.definition.hash)
    emulation = call.services.emulation
    kind = planned.statement.kind
    if kind == "insert":
        item, size = item_of(call, planned)
        current = read_current(call, table, key_of_item(table, item))
        try:
            check_condition(current, condition, plan.bindings, show=None, emulation=emulation)
        except ConditionalCheckFailedFault as fault:
            raise DuplicateItemFault() from fault
        return prepare_put(current, item, size)
    key = key_of_write(planned)
    check_keys_not_updated(table, plan.update)
    current = read_current(call, table, key_of_request(table, key))
    check_condition(current, condition, plan.bindings, show=show, emulation=emulation)
    if kind == "delete":
        return prepare_delete(current)
    return prepare_update(current, key, plan.update, plan.bindings)


def returned_item(planned: PlannedStatement, write: ItemWrite) -> bytes | None:
    """Return the item that a RETURNING clause selects; None without one."""
    returning = planned.statement.returning
    if returning is None:
        return None
    old = returning.image == "OLD"
    if returning.part == "ALL":
        return write.current.data if old else write.data
    return updated_attributes(write, write.current.item if old else write.item)


def transaction_action(call: OperationCall, planned: PlannedStatement, show: str | None) -> TransactionAction:
    """Return a statement as an action of a transaction; its WHERE clause must fix the key."""
    plan, table = planned.plan, planned.table
    common: dict[str, Any] = {
        "table_name": planned.statement.table,
        "return_values_on_condition_check_failure": show,
    }
    condition = plan.write_condition(table.definition.hash)
    text = planned.statement.text
    action: Put | Update | Delete | ConditionCheck
    if planned.statement.kind == "insert":
        item, size = item_of(call, planned)
        key_of_item(table, item)
        action = Put(item=item, **common | {"return_values_on_condition_check_failure": None})
        return TransactionAction(
            action, item, size, plan.bindings, condition, None
        )  # DuplicateItem never shows the item
    where = plan.where
    found = single_key(None if where is None else where.tree, table.schema, plan.bindings.values)
    exists = planned.statement.kind == "exists"
    if found is None or (found.repeated is not None and not exists):
        raise ValidationFault(KEY_MISMATCH)
    key_of_request(table, found.key)
    if exists:
        action = ConditionCheck(key=found.key, condition_expression=text, **common)
    elif planned.statement.kind == "update":
        action = Update(key=found.key, update_expression=text, **common)
    else:
        action = Delete(key=found.key, **common)
    return TransactionAction(action, found.key, 0, plan.bindings, condition, plan.update)


def refuses_transaction(fault: ValidationFault) -> bool:
    """Return whether a bad key fails the request, rather than being one statement's cancellation reason."""
    cause = fault.__cause__
    return isinstance(cause, KeyRefused) and cause.reason not in ("missing", "type")
