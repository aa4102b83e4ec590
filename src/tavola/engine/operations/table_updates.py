"""UpdateTable: throughput, billing, indexes, stream, class, protection, encryption."""

from __future__ import annotations

from typing import Any

import msgspec

from tavola.engine.catalog import Stream, Table, TableDefinition, Throughput
from tavola.engine.operations.answer import encode
from tavola.engine.operations.call import Call
from tavola.engine.operations.descriptions import describe, describe_index, is_changing
from tavola.engine.operations.encryption import changed_encryption, changing
from tavola.engine.operations.regions import refuse_replicas, settings_replication
from tavola.engine.operations.tables import (
    check_settled,
    check_warm,
    index_definition,
    named,
    plain,
    stream_of,
)
from tavola.engine.operations.vectors import describe_vector, with_vector_updates
from tavola.limits import GLOBAL_INDEXES_MAX
from tavola.protocol import (
    CreateGlobalSecondaryIndexAction,
    GlobalSecondaryIndexUpdate,
    LimitExceededFault,
    Projection,
    ProvisionedThroughput,
    ResourceNotFoundFault,
    StreamSpecification,
    UpdateGlobalSecondaryIndexAction,
    UpdateTableRequest,
    ValidationFault,
    check_keys_defined,
    check_projections,
)

_INVALID = "One or more parameter values were invalid: "
_ONE_AT_A_TIME = (
    "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"
)


def update_table(call: Call, request: UpdateTableRequest) -> bytes:
    """Change a table; a new index is filled in the background and answers once it is complete."""
    table = named(call, request.table_name)
    check_settled(call, table)
    refuse_replicas(request, table.definition)
    now_s = call.services.clock.now()
    definition = _settings(call, table.definition, request, now_s)
    for update in request.global_secondary_index_updates or ():
        if update.update is not None:
            definition = _retuned(definition, update.update, now_s)
    if definition.billing == "PROVISIONED" and table.definition.billing != "PROVISIONED":
        for kept in definition.indexes:
            if kept.kind == "global" and not (kept.throughput and kept.throughput.reads):
                raise ValidationFault(
                    f"{_INVALID}ProvisionedThroughput must be specified for index: {kept.name}"
                )
    structural = [
        update
        for update in request.global_secondary_index_updates or ()
        if update.create is not None or update.delete is not None
    ]
    added = any(update.create is not None for update in request.vector_index_updates or ())
    if (structural or added) and is_changing(table.definition, now_s):
        raise LimitExceededFault(_ONE_AT_A_TIME)
    for update in structural:
        definition = _restructured(call, definition, update, request)
    definition = with_vector_updates(call, definition, request)
    call.services.begin()
    changed = _carry_out(call, table, definition)
    encrypts = request.sse_specification is not None  # which leaves a table ACTIVE
    described = describe(changed, now_s, status="ACTIVE" if encrypts else "UPDATING")
    if encrypts:
        described["SSEDescription"] = changing(table.definition.encryption)
    for vector in table.vectors:
        if all(each.column != vector.column for each in changed.vectors):
            leaving = describe_vector(table, vector, now_s) | {"IndexStatus": "DELETING"}
            described.setdefault("VectorIndexes", []).append(leaving)
    for index in table.indexes:
        if index.name not in changed.by_name:
            leaving = describe_index(table, index, now_s) | {"IndexStatus": "DELETING"}
            described.setdefault("GlobalSecondaryIndexes", []).append(leaving)
    return encode({"TableDescription": described})


def _settings(
    call: Call, definition: TableDefinition, request: UpdateTableRequest, now_s: float
) -> TableDefinition:
    changes: dict[str, Any] = {}
    billing = request.billing_mode or definition.billing
    if billing != definition.billing:
        changes["billing"] = billing
        if billing == "PAY_PER_REQUEST":
            changes |= {
                "on_demand_since_s": now_s,
                "throughput": Throughput(0, 0),
                "indexes": tuple(
                    msgspec.structs.replace(index, throughput=Throughput(0, 0))
                    if index.kind == "global"
                    else index
                    for index in definition.indexes
                ),
            }
    if request.provisioned_throughput is not None:
        if billing == "PAY_PER_REQUEST":
            raise ValidationFault(
                f"{_INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
                "BillingMode is PAY_PER_REQUEST"
            )
        if billing == definition.billing:
            _check_moves(definition.throughput, request.provisioned_throughput)
        changes["throughput"] = _moved(definition.throughput, request.provisioned_throughput, now_s)
    if request.stream_specification is not None:
        changes["stream"] = _stream(definition, request.stream_specification, now_s)
    if request.sse_specification is not None:
        changes["encryption"] = changed_encryption(definition, request.sse_specification)
    if request.global_table_settings_replication_mode is not None:
        mode = settings_replication(request.global_table_settings_replication_mode)
        changes["settings_replication"] = mode
    if request.table_class is not None and request.table_class != (definition.table_class or "STANDARD"):
        changes |= {"table_class": request.table_class, "class_changed_at_s": now_s}
    if request.deletion_protection_enabled is not None:
        changes["protected"] = request.deletion_protection_enabled
    if request.on_demand_throughput is not None:
        if billing == "PROVISIONED":
            named_units = next(iter(plain(request.on_demand_throughput) or {}), "MaxReadRequestUnits")
            raise ValidationFault(
                f"{_INVALID}{named_units} for OnDemandThroughput cannot be specified when the table BillingMode "
                "is PROVISIONED"
            )
        changes["on_demand"] = (definition.on_demand or {}) | (plain(request.on_demand_throughput) or {})
    if request.warm_throughput is not None:
        check_warm(request.warm_throughput, billing, changes.get("throughput", definition.throughput))
        changes["warm"] = (definition.warm or {}) | (plain(request.warm_throughput) or {})
    return msgspec.structs.replace(definition, **changes)


def _check_moves(old: Throughput, new: ProvisionedThroughput) -> None:
    if (old.reads, old.writes) == (new.read_capacity_units, new.write_capacity_units):
        raise ValidationFault(
            "The provisioned throughput for the table will not change. The requested value equals the "
            f"current value. Current ReadCapacityUnits provisioned for the table: {old.reads}. Requested "
            f"ReadCapacityUnits: {old.reads}. Current WriteCapacityUnits provisioned for the table: "
            f"{old.writes}. Requested WriteCapacityUnits: {old.writes}. Refer to the Amazon DynamoDB "
            "Developer Guide for current limits and how to request higher limits."
        )


def _moved(old: Throughput, new: ProvisionedThroughput, now_s: float) -> Throughput:
    reads, writes = new.read_capacity_units, new.write_capacity_units
    grown = reads > old.reads or writes > old.writes
    shrunk = reads < old.reads or writes < old.writes
    return Throughput(
        reads,
        writes,
        increased_at_s=now_s if grown else old.increased_at_s,
        decreased_at_s=now_s if shrunk else old.decreased_at_s,
        decreases=old.decreases_today(now_s) + 1 if shrunk else old.decreases,
    )


def _stream(definition: TableDefinition, asked: StreamSpecification, now_s: float) -> Stream | None:
    old = definition.stream
    if asked.stream_enabled:
        if old is not None and old.enabled:
            raise ValidationFault(f"Table already has an enabled stream: TableName: {definition.name}")
        return stream_of(asked, now_s)
    if old is None or not old.enabled:
        raise ValidationFault(f"Table has no stream to disable: TableName: {definition.name}")
    return msgspec.structs.replace(old, enabled=False)


def _retuned(
    definition: TableDefinition, action: UpdateGlobalSecondaryIndexAction, now_s: float
) -> TableDefinition:
    if all(index.name != action.index_name or index.kind != "global" for index in definition.indexes):
        raise ValidationFault(
            "This operation cannot be performed with given input values. Please contact DynamoDB service "
            "team for more info: Action Blocked: IndexUpdate"
        )
    indexes = []
    for index in definition.indexes:
        kept = index
        if index.name == action.index_name:
            if action.provisioned_throughput is not None:
                if definition.billing == "PAY_PER_REQUEST":
                    raise ValidationFault(_no_units(index.name))
                old = index.throughput or Throughput(0, 0)
                moved = _moved(old, action.provisioned_throughput, now_s)
                kept = msgspec.structs.replace(kept, throughput=moved)
            if action.on_demand_throughput is not None:
                kept = msgspec.structs.replace(kept, on_demand=plain(action.on_demand_throughput))
            if action.warm_throughput is not None:
                kept = msgspec.structs.replace(kept, warm=plain(action.warm_throughput))
        indexes.append(kept)
    return msgspec.structs.replace(definition, indexes=tuple(indexes))


def _restructured(
    call: Call, definition: TableDefinition, update: GlobalSecondaryIndexUpdate, request: UpdateTableRequest
) -> TableDefinition:
    if update.create is not None:
        return _with_index(call, definition, update.create, request)
    assert update.delete is not None, "parse lets no empty update through"
    name = update.delete.index_name
    kept = tuple(index for index in definition.indexes if index.name != name or index.kind != "global")
    if len(kept) == len(definition.indexes):
        raise ResourceNotFoundFault()
    used = {definition.hash, definition.range}
    used |= {attribute for index in kept for attribute in (*index.hash, *index.range)}
    used |= {attribute for vector in definition.vectors for attribute, _ in vector.schema}
    types = {attribute: type_ for attribute, type_ in definition.types.items() if attribute in used}
    return msgspec.structs.replace(definition, indexes=kept, types=types)


def _with_index(
    call: Call,
    definition: TableDefinition,
    action: CreateGlobalSecondaryIndexAction,
    request: UpdateTableRequest,
) -> TableDefinition:
    name = action.index_name
    standing = {index.name for index in definition.indexes} | {each.name for each in definition.vectors}
    if name in standing:
        raise ValidationFault(f"{_INVALID}Index already exists: {name}")
    if sum(index.kind == "global" for index in definition.indexes) >= GLOBAL_INDEXES_MAX:
        raise ValidationFault(
            f"{_INVALID}GlobalSecondaryIndex count exceeds the per-table limit of {GLOBAL_INDEXES_MAX}"
        )
    on_demand = definition.billing == "PAY_PER_REQUEST"
    if on_demand and action.provisioned_throughput is not None:
        raise ValidationFault(_no_units(name))
    if not on_demand and action.provisioned_throughput is None:
        raise ValidationFault(f"{_INVALID}ProvisionedThroughput must be specified for index: {name}")
    check_projections(
        [
            *(Projection(non_key_attributes=list(index.named)) for index in definition.indexes),
            action.projection,
        ]
    )
    types = dict(definition.types)
    for defined in request.attribute_definitions or ():
        old = types.get(defined.attribute_name, defined.attribute_type)
        if old != defined.attribute_type:
            raise ValidationFault(_redefined(definition, defined.attribute_name, defined.attribute_type))
        types[defined.attribute_name] = defined.attribute_type
    check_keys_defined(action.key_schema, types)
    used = {definition.hash, definition.range, *(each.attribute_name for each in action.key_schema)}
    used |= {attribute for index in definition.indexes for attribute in (*index.hash, *index.range)}
    used |= {attribute for vector in definition.vectors for attribute, _ in vector.schema}
    slot = definition.slots + 1
    ready_at_s = call.services.clock.now() + call.services.table_delay_s
    index = index_definition(action, slot, filled_to=0, ready_at_s=ready_at_s)
    return msgspec.structs.replace(
        definition,
        indexes=(*definition.indexes, index),
        slots=slot,
        types={attribute: type_ for attribute, type_ in types.items() if attribute in used},
    )


def _no_units(index: str) -> str:
    return (
        f"{_INVALID}ProvisionedThroughput should not be specified for index: {index} when BillingMode is "
        "PAY_PER_REQUEST"
    )


def _redefined(definition: TableDefinition, name: str, type_: str) -> str:
    def schema(types: dict[str, str]) -> str:
        names = [(definition.hash, "HASH")] + ([(definition.range, "RANGE")] if definition.range else [])
        return ",".join(f"SchemaElement: key{{{key}:{types[key]}:{kind}}}" for key, kind in names)

    new = definition.types | {name: type_}
    return (
        f"{_INVALID}Attributes cannot be redefined. Please check that your attribute has the same type as "
        f"previously defined. Existing schema: Schema:[{schema(definition.types)}] "
        f"New schema: Schema:[{schema(new)}]"
    )


def _carry_out(call: Call, table: Table, definition: TableDefinition) -> Table:
    """Add and drop the columns that the new definition asks for, and enter it."""
    catalog = call.services.catalog
    old = {index.slot: index for index in table.definition.indexes}
    new = {index.slot: index for index in definition.indexes}
    for slot, index in old.items():
        if slot not in new:
            catalog.drop_columns(table.definition, index)
            table.counts.index_items.pop(slot, None)
            table.counts.index_bytes.pop(slot, None)
    for slot, index in new.items():
        if slot not in old:
            catalog.add_columns(definition, index)
    for vector in table.definition.vectors:
        if all(each.slot != vector.slot for each in definition.vectors):
            catalog.drop_vector(table.definition, vector)
            table.counts.index_items.pop(vector.slot, None)
            table.counts.index_bytes.pop(vector.slot, None)
    for vector in definition.vectors:
        if all(each.slot != vector.slot for each in table.definition.vectors):
            catalog.add_vector(definition, vector)
    changed = catalog.change(table, definition)
    if definition.stream != table.definition.stream:
        now_s = call.services.clock.now()
        call.services.streams.disable(table, now_s)
        if definition.stream is not None and definition.stream.enabled:
            call.services.streams.enable(changed, now_s)
    return changed
