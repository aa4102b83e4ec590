"""ExecuteStatement, BatchExecuteStatement and ExecuteTransaction; INSERT, UPDATE and DELETE are the native writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from tavola.engine.capacity import CapacityUsage, add_write_units
from tavola.engine.isolation import digest_payload
from tavola.engine.operations.call import (
    OperationCall,
    capacity_mode,
    encode,
    project_row_in_steps,
    row_units,
)
from tavola.engine.operations.items import (
    check_keys_not_updated,
    decode_current,
    prepare_update,
    updated_attributes,
)
from tavola.engine.operations.statement_plans import (
    EXISTS_MISPLACED,
    PlannedStatement,
    admit_parameters,
    check_no_token,
    find_index,
    parse_text,
    plan_read,
    plan_statement,
    select_items,
)
from tavola.engine.operations.transactions import (
    ItemRead,
    TransactionAction,
    check_payload_size,
    execute_actions,
    read_items,
)
from tavola.engine.writes import (
    KEY_MISMATCH,
    ItemWrite,
    key_of_item,
    key_of_request,
    prepare_delete,
    prepare_put,
)
from tavola.expressions.partiql import Statement, StatementError, branches_of, single_key
from tavola.keys import KeyRefused
from tavola.limits import ITEM_BYTES_MAX
from tavola.protocol.faults import (
    AccessDeniedFault,
    CancellationReason,
    ConditionalCheckFailedFault,
    DuplicateItemFault,
    Fault,
    ResourceNotFoundFault,
    TransactionCanceledFault,
    ValidationFault,
)
from tavola.protocol.statements import (
    BatchExecuteStatementRequest,
    BatchStatementRequest,
    ExecuteStatementRequest,
    ExecuteTransactionRequest,
)
from tavola.protocol.transactions import ConditionCheck, Delete, Put, Update
from tavola.values import TOO_DEEP, TOO_LARGE, Item, Steps, Value

_NONE = CancellationReason("None")
_READ_BY_KEY = "Select statements within {} must specify the primary key in the where clause."
_BAD_EXISTS = "EXISTS() must contain a single item read with additional condition"
_DUPLICATES = "Provided list of item keys contains duplicates"
# The error code of a batch entry for each fault.
_BATCH_CODES = {
    "ConditionalCheckFailedException": "ConditionalCheckFailed",
    "ItemCollectionSizeLimitExceededException": "ItemCollectionSizeLimitExceeded",
    "RequestLimitExceeded": "RequestLimitExceeded",
    "ValidationException": "ValidationError",
    "ProvisionedThroughputExceededException": "ProvisionedThroughputExceeded",
    "TransactionConflictException": "TransactionConflict",
    "ThrottlingException": "ThrottlingError",
    "ResourceNotFoundException": "ResourceNotFound",
    "AccessDeniedException": "AccessDenied",
    "DuplicateItemException": "DuplicateItem",
}
STATEMENT_TOO_DEEP = "Nesting Levels have exceeded supported limits"
_NO_KEY = "Where clause does not contain a mandatory equality on all key attributes"


def execute_statement(call: OperationCall, request: ExecuteStatementRequest) -> bytes | Steps[bytes]:
    """Carry out one statement: a SELECT returns a page, anything else writes one item."""
    parameters = admit_parameters(call, request.parameters)
    statement = parse_text(request.statement)
    if statement.kind == "exists":
        raise ValidationFault(EXISTS_MISPLACED)
    table = call.table(statement.table)
    index = find_index(call, table, statement) if statement.kind == "select" else None
    planned = plan_statement(table, statement, parameters)
    if statement.kind == "select":
        return select_items(call, request, planned, index, parameters)
    check_no_token(request)
    return _write_item(call, request, planned)


def _write_item(
    call: OperationCall, request: ExecuteStatementRequest, planned: PlannedStatement
) -> Steps[bytes]:
    table, statement = planned.table, planned.statement
    write = yield from execute_write(call, planned, request.return_values_on_condition_check_failure)
    returned = returned_item(planned, write)
    members: dict[str, Any] = {"Items": [] if returned is None else [msgspec.Raw(returned)]}
    mode = capacity_mode(request.return_consumed_capacity)
    if mode is not None:
        usage = CapacityUsage(table, statement.table)
        add_write_units(usage, write)
        members["ConsumedCapacity"] = usage.render(mode)
    return encode(members)


# Batches


@dataclass(slots=True)
class _BatchMember:
    """One statement of a batch: its progress, and the fault that stopped it."""

    request: BatchStatementRequest
    parameters: Sequence[Value] = ()
    statement: Statement | None = None
    planned: PlannedStatement | None = None
    key: bytes = b""
    fault: Fault | None = None
    ran: bool = False
    item: bytes | None = None

    def render(self) -> dict[str, Any]:
        """Return its entry in Responses; TableName is set once the statement has run."""
        entry: dict[str, Any] = {}
        if self.fault is not None:
            code = _BATCH_CODES.get(self.fault.code, "InternalServerError")
            entry["Error"] = {"Code": code, "Message": self.fault.message}
            if isinstance(self.fault, ConditionalCheckFailedFault) and self.fault.item is not None:
                entry["Error"]["Item"] = self.fault.item
        if self.ran and self.planned is not None:
            entry["TableName"] = self.planned.table.name
        if self.item is not None:
            entry["Item"] = msgspec.Raw(self.item)
        return entry


def batch_execute_statement(call: OperationCall, request: BatchExecuteStatementRequest) -> Steps[bytes]:
    """Carry out up to 25 independent statements, either all reads or all writes; pauses between them."""
    members = [_BatchMember(statement) for statement in request.statements]
    for member in members:
        try:
            member.parameters = admit_parameters(call, member.request.parameters)
            member.statement = parse_text(member.request.statement)
        except ValidationFault as fault:
            member.fault = fault
        yield
    kinds = {member.statement.kind == "select" for member in members if member.statement is not None}
    if len(kinds) > 1:
        raise ValidationFault("Read and write requests together in the same batch is not supported.")
    for position, member in enumerate(members):
        if member.fault is None:
            try:
                _plan_member(call, request, position, member)
            except Fault as fault:
                member.fault = fault
            yield
    _check_distinct(members)
    usages: dict[str, CapacityUsage] = {}
    for member in members:
        if member.fault is None:
            try:
                yield from _run_member(call, member, usages)
            except Fault as fault:
                member.fault = fault
        yield
    response: dict[str, Any] = {"Responses": [member.render() for member in members]}
    mode = capacity_mode(request.return_consumed_capacity)
    if mode is not None:
        response["ConsumedCapacity"] = [usage.render(mode) for usage in usages.values()]
    return encode(response)


def _plan_member(
    call: OperationCall, request: BatchExecuteStatementRequest, position: int, member: _BatchMember
) -> None:
    statement = member.statement
    assert statement is not None, "a statement that was not parsed has a fault"
    if call.context is not None and call.context.guard is not None:
        try:
            call.context.guard.check_statement(call.operation, position, request, call)
        except AccessDeniedFault:
            call.context.denied += 1
            raise
    if statement.kind == "exists":
        raise ValidationFault(EXISTS_MISPLACED)
    table = call.table(statement.table)
    if statement.kind == "select":
        find_index(call, table, statement)
    planned = plan_statement(table, statement, member.parameters)
    if statement.kind == "select":
        refusal = _READ_BY_KEY.format("BatchExecuteStatement")
        if statement.index is not None:
            raise ValidationFault(refusal)
        plan_read(planned, None)
        member.key = key_of_request(table, _exact_key(planned, refusal))
    else:
        member.key = encoded_key_of_write(call, planned)
    member.planned = planned


def _check_distinct(members: list[_BatchMember]) -> None:
    places = [
        (member.planned.table.definition.number, member.key)
        for member in members
        if member.planned is not None
    ]
    if len(set(places)) != len(places):
        raise ValidationFault(_DUPLICATES)


def _run_member(call: OperationCall, member: _BatchMember, usages: dict[str, CapacityUsage]) -> Steps[None]:
    planned = member.planned
    assert planned is not None, "a statement without a plan has a fault"
    table = call.table(planned.statement.table)
    if table is not planned.table:  # it changed during a pause
        member.planned = planned = plan_statement(table, planned.statement, list(member.parameters))
    member.ran = True
    table_name = planned.statement.table
    if planned.statement.kind == "select":
        consistent = member.request.consistent_read
        row = call.read_item(planned.table, member.key, consistent=consistent)
        if row is not None:
            member.item = yield from project_row_in_steps(row[0], planned.plan.projection)
        usage = usages.setdefault(table_name, CapacityUsage(planned.table, table_name))
        usage.reads += row_units(row, consistent)
        return
    write = yield from execute_write(call, planned, member.request.return_values_on_condition_check_failure)
    member.item = returned_item(planned, write)
    add_write_units(usages.setdefault(table_name, CapacityUsage(planned.table, table_name)), write)


def _exact_key(planned: PlannedStatement, refusal: str) -> Item:
    """Return the key that a WHERE clause fixes; refuse a clause with less or more than that."""
    where = planned.plan.where
    key_match = single_key(
        None if where is None else where.tree,
        planned.table.schema,
        planned.plan.bindings.values,
        members=True,
    )
    if key_match is None or key_match.has_other_conditions:
        raise ValidationFault(refusal)
    return key_match.key


# Transactions


def execute_transaction(call: OperationCall, request: ExecuteTransactionRequest) -> Steps[bytes]:
    """Carry out up to 100 statements as one transaction: all reads, or all writes and EXISTS checks."""
    check_payload_size(call)
    token = request.client_request_token
    digest = digest_payload(request.transact_statements) if token is not None else ""
    parameters = [admit_parameters(call, statement.parameters) for statement in request.transact_statements]
    statements: list[Statement] = []
    for position, statement in enumerate(request.transact_statements):
        with _StatementNumber(position):
            statements.append(parse_text(statement.statement))
        yield
    reading = {statement.kind == "select" for statement in statements}
    if len(reading) > 1:
        raise ValidationFault(
            "ExecuteTransaction API does not support both read and write operations in the same request."
        )
    planned = _plan_all(call, statements, parameters)
    if True in reading:
        return (yield from read_items(call, _prepare_reads(planned), request.return_consumed_capacity))
    actions = _prepare_actions(call, request, planned)
    try:
        done = yield from execute_actions(call, actions, token, digest)
    except TransactionCanceledFault as fault:
        raise TransactionCanceledFault(
            [_statement_reason(*pair) for pair in zip(fault.reasons, planned, strict=True)]
        ) from fault
    members: dict[str, Any] = {"Responses": []}
    mode = capacity_mode(request.return_consumed_capacity)
    if mode is not None:
        members["ConsumedCapacity"] = done.render_capacity(call, mode)
    return encode(members)


class _StatementNumber:
    """Context manager that adds the statement's position to a validation error."""

    __slots__ = ("position",)

    def __init__(self, position: int) -> None:
        self.position = position

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ValidationFault):
            raise ValidationFault(
                f"Validation failed in TransactStatements[{self.position}]: {error.message}"
            ) from error


def _plan_all(
    call: OperationCall, statements: list[Statement], parameters: list[list[Value]]
) -> list[PlannedStatement]:
    """Return all statements compiled for their tables; a missing table is reported after any other error."""
    planned: list[PlannedStatement] = []
    reasons: list[CancellationReason] = []
    for position, (statement, values) in enumerate(zip(statements, parameters, strict=True)):
        try:
            table = call.table(statement.table)
        except ResourceNotFoundFault as fault:
            reasons.append(CancellationReason("ResourceNotFound", fault.message))
            continue
        reasons.append(_NONE)
        with _StatementNumber(position):
            if statement.returning is not None:
                raise ValidationFault("RETURNING clause is not supported in ExecuteTransaction.")
            if statement.index is not None and statement.kind in ("select", "exists"):
                raise ValidationFault("Reads on indices are not supported within transactions.")
            planned_statement = plan_statement(table, statement, values)
            if statement.kind == "select":
                _check_read(planned_statement)
            if statement.kind == "exists":
                _check_exists(planned_statement)
            planned.append(planned_statement)
    _raise_if_cancelled(reasons)
    return planned


def _check_read(planned: PlannedStatement) -> None:
    """Refuse a SELECT whose WHERE clause is not exactly a key.

    Key values of a wrong type pass here: they become the cancellation reason of this statement.
    """
    where, schema = planned.plan.where, planned.table.schema
    values = planned.plan.bindings.values
    try:
        branches = [] if where is None else branches_of(where.tree, schema, values)
    except StatementError as error:
        raise ValidationFault(str(error)) from error
    types = {part.name: part.type for part in schema.attributes}
    tests = [test for branch in branches for test in branch.tests]
    if all(types[test.name] in value for test in tests for value in test.values):
        plan_read(planned, None)
    _exact_key(planned, _READ_BY_KEY.format("ExecuteTransaction"))


def _check_exists(planned: PlannedStatement) -> None:
    where = planned.plan.where
    key_match = single_key(
        None if where is None else where.tree, planned.table.schema, planned.plan.bindings.values
    )
    if key_match is None or not key_match.has_other_conditions:
        raise ValidationFault(_BAD_EXISTS)


def _prepare_reads(planned: list[PlannedStatement]) -> list[ItemRead]:
    reads: list[ItemRead] = []
    reasons: list[CancellationReason] = []
    for plan in planned:
        key = _exact_key(plan, KEY_MISMATCH)
        try:
            position = key_of_request(plan.table, key)
        except ValidationFault as fault:
            if refuses_transaction(fault):
                raise
            reasons.append(CancellationReason("ValidationError", fault.message))
            continue
        reasons.append(_NONE)
        reads.append(ItemRead(plan.statement.table, plan.table, position, plan.plan.projection))
    _raise_if_cancelled(reasons)
    return reads


def _prepare_actions(
    call: OperationCall, request: ExecuteTransactionRequest, planned: list[PlannedStatement]
) -> list[TransactionAction]:
    actions: list[TransactionAction] = []
    reasons: list[CancellationReason] = []
    for plan, sent in zip(planned, request.transact_statements, strict=True):
        try:
            actions.append(transaction_action(call, plan, sent.return_values_on_condition_check_failure))
        except ValidationFault as fault:
            if refuses_transaction(fault):
                raise
            reasons.append(CancellationReason("ValidationError", fault.message))
            continue
        reasons.append(_NONE)
    _raise_if_cancelled(reasons)
    return actions


def _raise_if_cancelled(reasons: list[CancellationReason]) -> None:
    if any(reason is not _NONE for reason in reasons):
        raise TransactionCanceledFault(reasons)


def _statement_reason(reason: CancellationReason, planned: PlannedStatement) -> CancellationReason:
    """Return a cancellation reason in PartiQL's terms: an INSERT of an existing item is a DuplicateItem."""
    if planned.statement.kind == "insert" and reason.code == "ConditionalCheckFailed":
        return CancellationReason("DuplicateItem", DuplicateItemFault().message)
    if reason.message == TOO_DEEP:
        return CancellationReason(reason.code, STATEMENT_TOO_DEEP)
    return reason


# Writes


def key_of_write(planned: PlannedStatement) -> Item:
    """Return the key of the one item that an UPDATE or DELETE writes."""
    where = planned.plan.where
    key_match = single_key(
        None if where is None else where.tree, planned.table.schema, planned.plan.bindings.values
    )
    if key_match is None:
        raise ValidationFault(_NO_KEY)
    if key_match.repeated is not None:
        raise ValidationFault(
            f"Multiple conditions on same key {key_match.repeated}. Only single item Update/Insert/Delete are supported"
        )
    return key_match.key


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


def execute_write(call: OperationCall, planned: PlannedStatement, show: str | None) -> Steps[ItemWrite]:
    """Carry out one INSERT, UPDATE or DELETE; `show="ALL_OLD"` puts the item on a failed condition's fault."""
    try:
        write = yield from _prepare(call, planned, show)
    except ValidationFault as fault:
        if fault.message == TOO_DEEP:
            raise ValidationFault(STATEMENT_TOO_DEEP) from fault
        raise
    call.commit_write(write)
    return write


def _prepare(call: OperationCall, planned: PlannedStatement, show: str | None) -> Steps[ItemWrite]:
    plan, table = planned.plan, planned.table
    condition = plan.write_condition(table.definition.hash)
    kind = planned.statement.kind
    if kind == "insert":
        item, size = item_of(call, planned)
        current = yield from decode_current(
            call,
            planned.statement.table,
            call.read_current(table, key_of_item(table, item)),
            condition,
            plan.bindings,
        )
        try:
            call.check_condition(current, condition, plan.bindings, None)
        except ConditionalCheckFailedFault as fault:
            raise DuplicateItemFault() from fault
        return prepare_put(current, item, size)
    key = key_of_write(planned)
    check_keys_not_updated(table, plan.update)
    current = yield from decode_current(
        call,
        planned.statement.table,
        call.read_current(table, key_of_request(table, key)),
        condition,
        plan.bindings,
    )
    call.check_condition(current, condition, plan.bindings, show)
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
        # DuplicateItem never shows the item
        return TransactionAction(action, item, size, plan.bindings, condition, None)
    where = plan.where
    key_match = single_key(None if where is None else where.tree, table.schema, plan.bindings.values)
    exists = planned.statement.kind == "exists"
    if key_match is None or (key_match.repeated is not None and not exists):
        raise ValidationFault(KEY_MISMATCH)
    key_of_request(table, key_match.key)
    if exists:
        action = ConditionCheck(key=key_match.key, condition_expression=text, **common)
    elif planned.statement.kind == "update":
        action = Update(key=key_match.key, update_expression=text, **common)
    else:
        action = Delete(key=key_match.key, **common)
    return TransactionAction(action, key_match.key, 0, plan.bindings, condition, plan.update)


def refuses_transaction(fault: ValidationFault) -> bool:
    """Return whether a bad key fails the request, rather than being one statement's cancellation reason."""
    cause = fault.__cause__
    return isinstance(cause, KeyRefused) and cause.reason not in ("missing", "type")
