"""INSERT, UPDATE, DELETE and EXISTS, as the stagings that native writes have."""

from __future__ import annotations

from typing import Any, NamedTuple

from tavola.engine.operations.call import OperationCall
from tavola.engine.operations.items import (
    check_charged,
    check_keys_not_updated,
    commit_write,
    prepare_update,
    read_current,
)
from tavola.engine.operations.responses import encode
from tavola.engine.operations.statement_plans import PlannedStatement
from tavola.engine.operations.transactions import TransactionAction
from tavola.engine.writes import (
    KEY_MISMATCH,
    CurrentItem,
    ItemWrite,
    key_of_item,
    key_of_request,
    prepare_delete,
    prepare_put,
)
from tavola.expressions.partiql import single_key
from tavola.expressions.updates import Applied, touched_part
from tavola.keys import KeyRefused
from tavola.limits import ITEM_BYTES_MAX
from tavola.protocol.faults import ConditionalCheckFailedFault, DuplicateItemFault, ValidationFault
from tavola.protocol.transactions import ConditionCheck, Delete, Put, Update
from tavola.values import TOO_DEEP, TOO_LARGE, Item

STATEMENT_TOO_DEEP = "Nesting Levels have exceeded supported limits"
_NO_KEY = "Where clause does not contain a mandatory equality on all key attributes"


class StatementWrite(NamedTuple):
    """A write that was carried out, and the item that it answers with."""

    write: ItemWrite
    returned: bytes | None


def key_of_write(planned: PlannedStatement) -> Item:
    """Return the key of the one item that an UPDATE or DELETE is about."""
    where = planned.plan.where
    found = single_key(
        None if where is None else where.tree, planned.table.schema, planned.plan.bindings.values
    )
    if found is None:
        raise ValidationFault(_NO_KEY)
    if found.doubled is not None:
        raise ValidationFault(
            f"Multiple conditions on same key {found.doubled}. Only single item Update/Insert/Delete are supported"
        )
    return found.key


def item_of(call: OperationCall, planned: PlannedStatement) -> tuple[Item, int]:
    """Return the item that INSERT writes, admitted, and its size."""
    item = planned.plan.item
    size = call.admit(item)
    if size > ITEM_BYTES_MAX:
        raise ValidationFault(TOO_LARGE)
    return item, size


def encoded_key_of_write(call: OperationCall, planned: PlannedStatement) -> bytes:
    """Return the ordered key of the item that a write is about."""
    if planned.statement.kind == "insert":
        return key_of_item(planned.table, item_of(call, planned)[0])
    return key_of_request(planned.table, key_of_write(planned))


def execute_write(call: OperationCall, planned: PlannedStatement, shown: str | None) -> StatementWrite:
    """Carry out one statement that writes; `shown` ALL_OLD: a failed condition shows the item."""
    try:
        standing, change, applied = _prepare(call, planned, shown)
    except ValidationFault as fault:
        if fault.message == TOO_DEEP:
            raise ValidationFault(STATEMENT_TOO_DEEP) from fault
        raise
    commit_write(call, change)
    return StatementWrite(change, _render_returning(planned, standing, change, applied))


def _prepare(
    call: OperationCall, planned: PlannedStatement, shown: str | None
) -> tuple[CurrentItem, ItemWrite, Applied | None]:
    plan, table = planned.plan, planned.table
    guard = plan.guard(table.definition.hash)
    kind = planned.statement.kind
    if kind == "insert":
        item, size = item_of(call, planned)
        standing = read_current(call, table, key_of_item(table, item))
        try:
            check_charged(call, standing, guard, plan.bindings, None)
        except ConditionalCheckFailedFault as fault:
            raise DuplicateItemFault() from fault
        return standing, prepare_put(standing, item, size), None
    key = key_of_write(planned)
    check_keys_not_updated(table, plan.update)
    standing = read_current(call, table, key_of_request(table, key))
    check_charged(call, standing, guard, plan.bindings, shown)
    if kind == "delete":
        return standing, prepare_delete(standing), None
    change, applied = prepare_update(standing, key, plan.update, plan.bindings)
    return standing, change, applied


def _render_returning(
    planned: PlannedStatement, standing: CurrentItem, change: ItemWrite, applied: Applied | None
) -> bytes | None:
    returning = planned.statement.returning
    if returning is None:
        return None
    old = returning.image == "OLD"
    if returning.part == "ALL":
        return standing.data if old else change.data
    image = standing.item if old else change.item
    part = None if image is None or applied is None else touched_part(image, applied)
    return encode(part) if part else None


def transaction_action(
    call: OperationCall, planned: PlannedStatement, shown: str | None
) -> TransactionAction:
    """Return a statement as an action of a transaction; refuse one that does not name its item by its key."""
    plan, table = planned.plan, planned.table
    named: dict[str, Any] = {
        "table_name": planned.statement.table,
        "return_values_on_condition_check_failure": shown,
    }
    condition = plan.guard(table.definition.hash)
    text = planned.statement.text
    asked: Put | Update | Delete | ConditionCheck
    if planned.statement.kind == "insert":
        item, size = item_of(call, planned)
        key_of_item(table, item)
        asked = Put(item=item, **named | {"return_values_on_condition_check_failure": None})
        return TransactionAction(
            asked, item, size, plan.bindings, condition, None
        )  # a duplicate shows nobody's item
    where = plan.where
    found = single_key(None if where is None else where.tree, table.schema, plan.bindings.values)
    exists = planned.statement.kind == "exists"
    if found is None or (found.doubled is not None and not exists):
        raise ValidationFault(KEY_MISMATCH)
    key_of_request(table, found.key)
    if exists:
        asked = ConditionCheck(key=found.key, condition_expression=text, **named)
    elif planned.statement.kind == "update":
        asked = Update(key=found.key, update_expression=text, **named)
    else:
        asked = Delete(key=found.key, **named)
    return TransactionAction(asked, found.key, 0, plan.bindings, condition, plan.update)


def refuses_transaction(fault: ValidationFault) -> bool:
    """Tell whether a key is refused for the whole transaction and not as one statement's reason."""
    cause = fault.__cause__
    return isinstance(cause, KeyRefused) and cause.reason not in ("missing", "type")
