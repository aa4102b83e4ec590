"""UpdateTable: changes of throughput, billing, indexes, stream, class, protection and encryption."""

from __future__ import annotations

from typing import Any

import msgspec

from tavola.engine.catalog import IndexDefinition, StoredTable, StreamSettings, TableDefinition
from tavola.engine.operations.call import OperationCall, encode
from tavola.engine.operations.descriptions import changing_indexes, describe, describe_index, is_changing
from tavola.engine.operations.encryption import describe_change, new_encryption
from tavola.engine.operations.regions import refuse_replicas, settings_replication
from tavola.engine.operations.tables import (
    check_not_creating,
    find_table,
    index_definition,
    stream_of,
    units_of,
)
from tavola.engine.operations.throughput import (
    NO_UNITS,
    change_units,
    check_bounds_allowed,
    check_initial_warm_throughput,
    check_no_maximum,
    check_units_allowed,
    check_units_differ,
    check_warm_increase,
    index_warm_throughput,
    merge_bounds,
    render_changed_bounds,
    restore_old_units,
    switch_billing,
    table_warm_throughput,
    to_dict,
)
from tavola.engine.operations.vectors import apply_vector_updates, describe_vector
from tavola.engine.store_time import CurrentTime
from tavola.limits import GLOBAL_INDEXES_MAX
from tavola.protocol.definitions import check_keys_defined, check_projections
from tavola.protocol.faults import LimitExceededFault, ResourceNotFoundFault, ValidationFault
from tavola.protocol.tables import (
    CreateGlobalSecondaryIndexAction,
    GlobalSecondaryIndexUpdate,
    Projection,
    StreamSpecification,
    UpdateGlobalSecondaryIndexAction,
    UpdateTableRequest,
)

_INVALID = "One or more parameter values were invalid: "
_ONE_AT_A_TIME = (
    "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"
)


def update_table(call: OperationCall, request: UpdateTableRequest) -> bytes:
    """Change a table; a new index is filled in the background and answers once it is complete."""
    table = find_table(call, request.table_name)
    check_not_creating(call, table)
    refuse_replicas(request, table.definition)
    now = call.services.time.now()
    definition = _settings(call, table.definition, request, now.wall_s)
    for update in request.global_secondary_index_updates or ():
        if update.update is not None:
            definition = _update_index_throughput(table.definition, definition, update.update, now.wall_s)
    if definition.billing == "PROVISIONED" and table.definition.billing != "PROVISIONED":
        for index in definition.indexes:
            if index.kind == "global" and not (index.throughput and index.throughput.reads):
                raise ValidationFault(
                    f"{_INVALID}ProvisionedThroughput must be specified for index: {index.name}"
                )
    added = any(update.create is not None for update in request.vector_index_updates or ())
    if added and is_changing(table.definition, now.store_s):
        raise LimitExceededFault(_ONE_AT_A_TIME)
    for update in request.global_secondary_index_updates or ():
        if update.create is not None or update.delete is not None:
            # An index that is still being filled may be deleted; nothing else changes meanwhile.
            deleted = {update.delete.index_name} if update.delete is not None else set()
            if changing_indexes(table.definition, now.store_s) - deleted:
                raise LimitExceededFault(_ONE_AT_A_TIME)
            definition = _create_or_delete_index(call, definition, update, request)
    definition = apply_vector_updates(call, definition, request)
    call.services.begin()
    call.services.time.stamp()  # a new index has a store time
    changed = _apply_definition(call, table, definition)
    return encode({"TableDescription": _describe_update(request, table, changed, now)})


def _settings(
    call: OperationCall, definition: TableDefinition, request: UpdateTableRequest, now_s: float
) -> TableDefinition:
    changes = _capacity(definition, request, now_s)
    if request.stream_specification is not None:
        changes["stream"] = _stream(call, definition, request.stream_specification, now_s)
    if request.sse_specification is not None:
        changes["encryption"] = new_encryption(definition, request.sse_specification)
    if request.global_table_settings_replication_mode is not None:
        mode = settings_replication(request.global_table_settings_replication_mode)
        changes["settings_replication"] = mode
    if request.table_class is not None and request.table_class != (definition.table_class or "STANDARD"):
        changes |= {"table_class": request.table_class, "class_changed_at_s": now_s}
    if request.deletion_protection_enabled is not None:
        changes["protected"] = request.deletion_protection_enabled
    return msgspec.structs.replace(definition, **changes)


def _capacity(definition: TableDefinition, request: UpdateTableRequest, now_s: float) -> dict[str, Any]:
    """Return the changes of a table's billing mode, units, maxima and warm throughput."""
    changes: dict[str, Any] = {}
    billing, units = request.billing_mode or definition.billing, request.provisioned_throughput
    if units is not None:
        if billing == "PAY_PER_REQUEST":
            raise ValidationFault(
                f"{_INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
                "BillingMode is PAY_PER_REQUEST"
            )
        if billing == definition.billing:
            check_units_differ(definition.throughput, units)
        check_units_allowed(units, definition.region)
        changes = {
            "throughput": change_units(definition.throughput, units, now_s),
            "warm": table_warm_throughput(definition),
        }
    if billing != definition.billing:
        changes = {
            "billing": billing,
            "throughput": switch_billing(definition.throughput, units),
            "warm": table_warm_throughput(definition),
            "on_demand": None,
            "indexes": tuple(_switch_index_billing(index, definition, now_s) for index in definition.indexes),
        }
        if billing == "PAY_PER_REQUEST":
            changes["on_demand_since_s"] = now_s
    bounds = request.on_demand_throughput
    if bounds is not None:
        if billing == "PROVISIONED":
            check_no_maximum(bounds)
        check_bounds_allowed(bounds, definition.region)
        changes["on_demand"] = merge_bounds(definition.on_demand, bounds)
    if request.warm_throughput is not None:
        check_warm_increase(request.warm_throughput, table_warm_throughput(definition), definition.region)
        changes["warm"] = table_warm_throughput(definition) | (to_dict(request.warm_throughput) or {})
    return changes


def _switch_index_billing(
    index: IndexDefinition, definition: TableDefinition, now_s: float
) -> IndexDefinition:
    """Return an index of a table whose billing mode changes: without units and maxima, as warm as before."""
    if index.kind != "global":
        return index
    units = switch_billing(index.throughput or NO_UNITS, None)
    if definition.billing == "PROVISIONED":  # AWS counts this as a decrease of the index, not of the table
        decreases = units.decreases_today(now_s) + 1
        units = msgspec.structs.replace(units, decreased_at_s=now_s, decreases=decreases)
    warm = index_warm_throughput(index, definition)
    return msgspec.structs.replace(index, throughput=units, on_demand=None, warm=warm)


def _stream(
    call: OperationCall, definition: TableDefinition, specification: StreamSpecification, now_s: float
) -> StreamSettings | None:
    old = definition.stream
    if specification.stream_enabled:
        if old is not None and old.enabled:
            raise ValidationFault(f"Table already has an enabled stream: TableName: {definition.name}")
        return stream_of(call, definition.name, specification, now_s)
    if old is None or not old.enabled:
        raise ValidationFault(f"Table has no stream to disable: TableName: {definition.name}")
    return msgspec.structs.replace(old, enabled=False)


def _update_index_throughput(
    old: TableDefinition, definition: TableDefinition, action: UpdateGlobalSecondaryIndexAction, now_s: float
) -> TableDefinition:
    """Return a definition in which an index has new throughput; `old` is the table's before the request."""
    index, name, region = _global(definition, action.index_name, "update"), action.index_name, old.region
    units, bounds, warm = action.provisioned_throughput, action.on_demand_throughput, action.warm_throughput
    bounded, warmed = to_dict(bounds) is not None, to_dict(warm) is not None
    changes: dict[str, Any] = {}
    if definition.billing == "PAY_PER_REQUEST":
        if units is not None or not (bounded or warmed):
            raise ValidationFault(
                f"{_INVALID}The only Updates for index: {name} when TableThroughputMode is PAY_PER_REQUEST can be "
                "to OnDemandThroughput, WarmThroughput"
            )
    else:
        check_no_maximum(bounds, f" for index : {name}")
        if units is None and not warmed:
            raise ValidationFault(_both_units(name))
    if units is not None:
        check_units_allowed(units, region, name)
        if old.billing == definition.billing:
            check_units_differ(index.throughput or NO_UNITS, units, name)
            changes |= {"throughput": change_units(index.throughput or NO_UNITS, units, now_s)}
        else:
            changes |= {"throughput": switch_billing(index.throughput or NO_UNITS, units)}
        changes["warm"] = index_warm_throughput(index, definition)
    if bounds is not None and bounded:
        check_bounds_allowed(bounds, region, f"index : {name}")
        changes["on_demand"] = merge_bounds(index.on_demand, bounds)
    if warm is not None:
        check_warm_increase(warm, index_warm_throughput(index, definition), region, f"index {name}")
        changes["warm"] = index_warm_throughput(index, definition) | (to_dict(warm) or {})
    changed = msgspec.structs.replace(index, **changes)
    indexes = tuple(changed if index.name == name else index for index in definition.indexes)
    return msgspec.structs.replace(definition, indexes=indexes)


def _global(definition: TableDefinition, name: str, verb: str) -> IndexDefinition:
    """Return the global index that a request names; refuse any other index."""
    for index in definition.indexes:
        if index.name == name and index.kind == "global":
            return index
        if index.name == name:
            raise ValidationFault(f"Cannot {verb} an index that is not a GlobalSecondaryIndex: {name}")
    raise ResourceNotFoundFault(f"Requested resource not found: Index {name} for table {definition.name}")


def _create_or_delete_index(
    call: OperationCall,
    definition: TableDefinition,
    update: GlobalSecondaryIndexUpdate,
    request: UpdateTableRequest,
) -> TableDefinition:
    if update.create is not None:
        return _add_index(call, definition, update.create, request)
    assert update.delete is not None, "`parse` refuses an empty update"
    deleted = _global(definition, update.delete.index_name, "delete")
    remaining = tuple(index for index in definition.indexes if index is not deleted)
    return msgspec.structs.replace(definition, indexes=remaining).with_types(definition.types)


def _add_index(
    call: OperationCall,
    definition: TableDefinition,
    action: CreateGlobalSecondaryIndexAction,
    request: UpdateTableRequest,
) -> TableDefinition:
    name = action.index_name
    existing = {index.name for index in definition.indexes} | {vector.name for vector in definition.vectors}
    if name in existing:
        raise ValidationFault("Attempting to create an index which already exists")
    if sum(index.kind == "global" for index in definition.indexes) >= GLOBAL_INDEXES_MAX:
        raise LimitExceededFault(
            "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of "
            f"{GLOBAL_INDEXES_MAX}"
        )
    _check_new(definition, action)
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
            raise ValidationFault(
                _redefinition_message(definition, defined.attribute_name, defined.attribute_type)
            )
        types[defined.attribute_name] = defined.attribute_type
    check_keys_defined(action.key_schema, types)
    slot = definition.slots + 1
    ready_at_s = call.services.time.elapsed_s() + call.services.table_delay_s
    index = index_definition(action, slot, filled_to=0, ready_at_s=ready_at_s)
    changed = msgspec.structs.replace(definition, indexes=(*definition.indexes, index), slots=slot)
    return changed.with_types(types)


def _check_new(definition: TableDefinition, action: CreateGlobalSecondaryIndexAction) -> None:
    """Refuse throughput that does not fit the table's billing mode."""
    name, units, region = action.index_name, action.provisioned_throughput, definition.region
    if definition.billing == "PAY_PER_REQUEST":
        if units is not None:
            raise ValidationFault(
                f"{_INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: {name} "
                "when BillingMode is PAY_PER_REQUEST"
            )
    else:
        check_no_maximum(action.on_demand_throughput, f" for index : {name}")
        if units is None:
            raise ValidationFault(_both_units(name))
    check_units_allowed(units, region, name)
    check_bounds_allowed(action.on_demand_throughput, region, f"index : {name}")
    check_initial_warm_throughput(
        action.warm_throughput, definition.billing, units_of(units), region, f"index {name}"
    )


def _both_units(index: str) -> str:
    return f"{_INVALID}Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: {index}"


def _redefinition_message(definition: TableDefinition, name: str, type_: str) -> str:
    def schema(types: dict[str, str]) -> str:
        names = [(definition.hash, "HASH")] + ([(definition.range, "RANGE")] if definition.range else [])
        return ",".join(f"SchemaElement: key{{{key}:{types[key]}:{kind}}}" for key, kind in names)

    new = definition.types | {name: type_}
    return (
        f"{_INVALID}Attributes cannot be redefined. Please check that your attribute has the same type as "
        f"previously defined. Existing schema: Schema:[{schema(definition.types)}] "
        f"New schema: Schema:[{schema(new)}]"
    )


def _apply_definition(call: OperationCall, table: StoredTable, definition: TableDefinition) -> StoredTable:
    """Add and drop columns for the new definition, and store it."""
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
        if all(other_vector.slot != vector.slot for other_vector in definition.vectors):
            catalog.drop_vector(table.definition, vector)
            table.counts.index_items.pop(vector.slot, None)
            table.counts.index_bytes.pop(vector.slot, None)
    for vector in definition.vectors:
        if all(other_vector.slot != vector.slot for other_vector in table.definition.vectors):
            catalog.add_vector(definition, vector)
    changed = catalog.change(table, definition)
    if definition.stream != table.definition.stream:
        call.services.streams.disable(table)
        if definition.stream is not None and definition.stream.enabled:
            call.services.streams.enable(changed)
    call.services.streams.split_to_throughput(changed)
    return changed


# The response. AWS answers before most changes are made, so its description still shows old values; here the changes are
# already made, and the description is turned back to what AWS shows, since programs compare it.


def _describe_update(
    request: UpdateTableRequest, old: StoredTable, new: StoredTable, now: CurrentTime
) -> dict[str, Any]:
    """Return the TableDescription of the response to UpdateTable."""
    described = describe(new, now, status="UPDATING" if _changes_table_status(request) else "ACTIVE")
    before = describe(old, now)
    described["AttributeDefinitions"] = _merged_attributes(before, described)
    described["WarmThroughput"] = before["WarmThroughput"]
    if request.warm_throughput is not None:
        described["WarmThroughput"] |= {"Status": "UPDATING"}
    if request.on_demand_throughput is not None:
        bounds = old.definition.on_demand if old.definition.billing == new.definition.billing else None
        described["OnDemandThroughput"] = render_changed_bounds(bounds, request.on_demand_throughput)
    if old.definition.billing != new.definition.billing:
        described["BillingModeSummary"] = {"BillingMode": new.definition.billing}
        if new.definition.billing == "PAY_PER_REQUEST":
            described["ProvisionedThroughput"]["LastDecreaseDateTime"] = now.wall_s
    elif request.provisioned_throughput is not None:
        restore_old_units(described["ProvisionedThroughput"], old.definition.throughput, now.wall_s)
    if request.table_class is not None:
        described.pop("TableClassSummary", None)
        if "TableClassSummary" in before:
            described["TableClassSummary"] = before["TableClassSummary"]
    if request.sse_specification is not None:
        described["SSEDescription"] = describe_change(old.definition.encryption)
    indexes = {index["IndexName"]: index for index in described.get("GlobalSecondaryIndexes", ())}
    for update in request.global_secondary_index_updates or ():
        _restore_old_index_settings(update, indexes, old, new, now)
    _add_deleted_indexes(described, old, new, now)
    return described


def _changes_table_status(request: UpdateTableRequest) -> bool:
    """Return whether AWS reports the table as UPDATING, which it does not for changes it makes at once."""
    changed = (
        request.billing_mode,
        request.provisioned_throughput,
        request.stream_specification,
        request.table_class,
        request.vector_index_updates or None,
        request.global_table_settings_replication_mode,
        *(update.create or update.delete for update in request.global_secondary_index_updates or ()),
    )
    return any(member is not None for member in changed)


def _merged_attributes(before: dict[str, Any], described: dict[str, Any]) -> list[dict[str, str]]:
    """Return the attribute definitions of both descriptions: a deleted index is still described."""
    types = {
        definition["AttributeName"]: definition
        for definition in (*before["AttributeDefinitions"], *described["AttributeDefinitions"])
    }
    return [types[name] for name in sorted(types)]


def _restore_old_index_settings(
    update: GlobalSecondaryIndexUpdate,
    indexes: dict[str, dict[str, Any]],
    old: StoredTable,
    new: StoredTable,
    now: CurrentTime,
) -> None:
    """Restore in an index's description the settings that AWS still reports unchanged."""
    if update.create is not None:
        indexes[update.create.index_name]["Backfilling"] = False
    action = update.update
    if action is None:
        return
    described, definition = indexes[action.index_name], old.by_name[action.index_name].definition
    same_mode = old.definition.billing == new.definition.billing
    if action.provisioned_throughput is not None or action.on_demand_throughput is not None:
        described["IndexStatus"] = "UPDATING"
    if action.provisioned_throughput is not None and same_mode:
        restore_old_units(described["ProvisionedThroughput"], definition.throughput or NO_UNITS, now.wall_s)
    if action.on_demand_throughput is not None:
        described["OnDemandThroughput"] = render_changed_bounds(
            definition.on_demand, action.on_demand_throughput
        )
    described["WarmThroughput"] = describe_index(old, old.by_name[action.index_name], now)["WarmThroughput"]
    if action.warm_throughput is not None:
        described["WarmThroughput"] |= {"Status": "UPDATING"}


def _add_deleted_indexes(
    described: dict[str, Any], old: StoredTable, new: StoredTable, now: CurrentTime
) -> None:
    """Add the deleted indexes, which are described once more, as DELETING."""
    for vector in old.vectors:
        if all(other_vector.column != vector.column for other_vector in new.vectors):
            deleted = describe_vector(old, vector, now) | {"IndexStatus": "DELETING"}
            described.setdefault("VectorIndexes", []).append(deleted)
    for index in old.indexes:
        if index.name not in new.by_name:
            deleted = describe_index(old, index, now) | {"IndexStatus": "DELETING"}
            deleted.pop("Backfilling", None)
            described.setdefault("GlobalSecondaryIndexes", []).append(deleted)
