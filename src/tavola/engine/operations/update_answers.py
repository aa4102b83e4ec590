"""Update answers: the description with which UpdateTable answers, which is partly still the old one.

On AWS most changes are made after the answer. Here they are made before it, and the answer is AWS's all the same:
programs compare it with what they asked.
"""

from __future__ import annotations

from typing import Any

from tavola.engine.catalog import Table
from tavola.engine.operations.descriptions import describe, describe_index
from tavola.engine.operations.encryption import changing
from tavola.engine.operations.throughput import NO_UNITS, echo_units, echoed_bounds
from tavola.engine.operations.vectors import describe_vector
from tavola.protocol.tables import GlobalSecondaryIndexUpdate, UpdateTableRequest


def describe_update(request: UpdateTableRequest, old: Table, new: Table, now_s: float) -> dict[str, Any]:
    """Return the description of a changed table as the answer to its change tells it."""
    described = describe(new, now_s, status="UPDATING" if _changes_table_status(request) else "ACTIVE")
    before = describe(old, now_s)
    described["AttributeDefinitions"] = _merged_attributes(before, described)
    described["WarmThroughput"] = before["WarmThroughput"]
    if request.warm_throughput is not None:
        described["WarmThroughput"] |= {"Status": "UPDATING"}
    if request.on_demand_throughput is not None:
        kept = old.definition.on_demand if old.definition.billing == new.definition.billing else None
        described["OnDemandThroughput"] = echoed_bounds(kept, request.on_demand_throughput)
    if old.definition.billing != new.definition.billing:
        described["BillingModeSummary"] = {"BillingMode": new.definition.billing}
        if new.definition.billing == "PAY_PER_REQUEST":
            described["ProvisionedThroughput"]["LastDecreaseDateTime"] = now_s
    elif request.provisioned_throughput is not None:
        echo_units(described["ProvisionedThroughput"], old.definition.throughput, now_s)
    if request.table_class is not None:
        described.pop("TableClassSummary", None)
        if "TableClassSummary" in before:
            described["TableClassSummary"] = before["TableClassSummary"]
    if request.sse_specification is not None:
        described["SSEDescription"] = changing(old.definition.encryption)
    indexes = {each["IndexName"]: each for each in described.get("GlobalSecondaryIndexes", ())}
    for update in request.global_secondary_index_updates or ():
        _restore_old_index_settings(update, indexes, old, new, now_s)
    _add_deleted_indexes(described, old, new, now_s)
    return described


def _changes_table_status(request: UpdateTableRequest) -> bool:
    """Tell whether AWS says UPDATING of the table: it does not for what it changes at once, or beside it."""
    asked = (
        request.billing_mode,
        request.provisioned_throughput,
        request.stream_specification,
        request.table_class,
        request.vector_index_updates or None,
        request.global_table_settings_replication_mode,
        *(update.create or update.delete for update in request.global_secondary_index_updates or ()),
    )
    return any(member is not None for member in asked)


def _merged_attributes(before: dict[str, Any], described: dict[str, Any]) -> list[dict[str, str]]:
    """Return the attributes of both descriptions: those of an index that goes are told until it is gone."""
    types = {
        each["AttributeName"]: each
        for each in (*before["AttributeDefinitions"], *described["AttributeDefinitions"])
    }
    return [types[name] for name in sorted(types)]


def _restore_old_index_settings(
    update: GlobalSecondaryIndexUpdate,
    indexes: dict[str, dict[str, Any]],
    old: Table,
    new: Table,
    now_s: float,
) -> None:
    """Turn back in the description of an index what its change has not brought yet."""
    if update.create is not None:
        indexes[update.create.index_name]["Backfilling"] = False
    action = update.update
    if action is None:
        return
    described, kept = indexes[action.index_name], old.by_name[action.index_name].definition
    same_mode = old.definition.billing == new.definition.billing
    if action.provisioned_throughput is not None or action.on_demand_throughput is not None:
        described["IndexStatus"] = "UPDATING"
    if action.provisioned_throughput is not None and same_mode:
        echo_units(described["ProvisionedThroughput"], kept.throughput or NO_UNITS, now_s)
    if action.on_demand_throughput is not None:
        described["OnDemandThroughput"] = echoed_bounds(kept.on_demand, action.on_demand_throughput)
    described["WarmThroughput"] = describe_index(old, old.by_name[action.index_name], now_s)["WarmThroughput"]
    if action.warm_throughput is not None:
        described["WarmThroughput"] |= {"Status": "UPDATING"}


def _add_deleted_indexes(described: dict[str, Any], old: Table, new: Table, now_s: float) -> None:
    """Add the indexes that the change takes away: they are told as DELETING once more."""
    for vector in old.vectors:
        if all(each.column != vector.column for each in new.vectors):
            leaving = describe_vector(old, vector, now_s) | {"IndexStatus": "DELETING"}
            described.setdefault("VectorIndexes", []).append(leaving)
    for index in old.indexes:
        if index.name not in new.by_name:
            leaving = describe_index(old, index, now_s) | {"IndexStatus": "DELETING"}
            leaving.pop("Backfilling", None)
            described.setdefault("GlobalSecondaryIndexes", []).append(leaving)
