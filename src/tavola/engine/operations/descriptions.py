"""Table descriptions, as DescribeTable returns them."""

from __future__ import annotations

from typing import Any

from tavola.engine.catalog import (
    IndexDefinition,
    Restored,
    StoredIndex,
    StoredTable,
    TableDefinition,
    Throughput,
)
from tavola.engine.operations.throughput import NO_UNITS, index_warm_throughput, table_warm_throughput
from tavola.engine.operations.vectors import describe_vector, is_vector_active
from tavola.engine.store_time import CurrentTime, StoreTime
from tavola.protocol.arns import index_arn, stream_arn, table_arn


def describe(table: StoredTable, now: CurrentTime, *, status: str | None = None) -> dict[str, Any]:
    """Return a table's description; `status` overrides the current one, as responses to changes do.

    The response to CreateTable omits what AWS does not know yet: default warm throughput, and the time of the
    switch to on-demand.
    """
    definition = table.definition
    creating = status == "CREATING"
    on_demand = definition.billing == "PAY_PER_REQUEST"
    described: dict[str, Any] = {
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": type_}
            for name, type_ in sorted(definition.types.items())
        ],
        "TableName": definition.name,
        "KeySchema": _key_schema((definition.hash,), (definition.range,) if definition.range else ()),
        "TableStatus": status or _status(definition, now.store_s),
        "CreationDateTime": definition.created_at_s,
        "ProvisionedThroughput": _throughput(definition.throughput, now.wall_s),
        "TableSizeBytes": table.counts.bytes,
        "ItemCount": table.counts.items,
        "TableArn": table_arn(definition.scope, definition.name),
        "TableId": definition.uuid,
    }
    if on_demand or definition.on_demand_since_s is not None:
        described["BillingModeSummary"] = {"BillingMode": definition.billing}
        if definition.on_demand_since_s is not None and not creating:
            described["BillingModeSummary"]["LastUpdateToPayPerRequestDateTime"] = (
                definition.on_demand_since_s
            )
    local = [
        describe_index(table, index, now, creating=creating) for index in table.indexes if not index.is_global
    ]
    globally = [
        describe_index(table, index, now, creating=creating) for index in table.indexes if index.is_global
    ]
    if local:
        described["LocalSecondaryIndexes"] = local
    if globally:
        described["GlobalSecondaryIndexes"] = globally
    if table.vectors:
        described["VectorIndexes"] = [
            describe_vector(table, vector, now, creating=creating) for vector in table.vectors
        ]
    if definition.stream is not None:
        described |= {
            "LatestStreamLabel": definition.stream.label,
            "LatestStreamArn": stream_arn(definition.scope, definition.name, definition.stream.label),
        }
        if definition.stream.enabled:
            described["StreamSpecification"] = {
                "StreamEnabled": True,
                "StreamViewType": definition.stream.view,
            }
    if definition.restored is not None:
        described["RestoreSummary"] = _restore_summary(definition.restored)
    if definition.encryption is not None:
        described["SSEDescription"] = definition.encryption
    if definition.table_class is not None:
        described["TableClassSummary"] = {"TableClass": definition.table_class}
        if definition.class_changed_at_s is not None:
            described["TableClassSummary"]["LastUpdateDateTime"] = definition.class_changed_at_s
    described["DeletionProtectionEnabled"] = definition.protected
    if definition.settings_replication is not None:
        described["GlobalTableSettingsReplicationMode"] = definition.settings_replication
    if definition.on_demand is not None:
        described["OnDemandThroughput"] = definition.on_demand
    if not creating:
        described["WarmThroughput"] = table_warm_throughput(definition) | {"Status": "ACTIVE"}
    elif definition.warm is not None:
        described["WarmThroughput"] = table_warm_throughput(definition) | {"Status": "UPDATING"}
    return described


def _restore_summary(restored: Restored) -> dict[str, Any]:
    summary: dict[str, Any] = {"RestoreDateTime": restored.at_s, "RestoreInProgress": True}
    if restored.backup_arn is not None:
        summary["SourceBackupArn"] = restored.backup_arn
    if restored.table_arn is not None:
        summary["SourceTableArn"] = restored.table_arn
    return summary


def is_changing(definition: TableDefinition, store_s: float) -> bool:
    """Return whether an index of the table is still being built."""
    return bool(changing_indexes(definition, store_s))


def changing_indexes(definition: TableDefinition, store_s: float) -> set[str]:
    """Return the names of the indexes that are still being built."""
    return {index.name for index in definition.indexes if not _is_active(index, store_s)} | {
        vector.name for vector in definition.vectors if not is_vector_active(vector, store_s)
    }


def is_index_active(index: IndexDefinition, time: StoreTime) -> bool:
    """Return whether an index is complete and no longer CREATING."""
    # Most indexes were created with their table, so the time is not needed.
    return index.filled_to is None and (not index.ready_at_s or _is_active(index, time.elapsed_s()))


def _is_active(index: IndexDefinition, store_s: float) -> bool:
    return index.filled_to is None and index.ready_at_s <= store_s


def _status(definition: TableDefinition, store_s: float) -> str:
    if definition.ready_at_s > store_s:
        return "CREATING"
    return "UPDATING" if is_changing(definition, store_s) else "ACTIVE"


def describe_index(
    table: StoredTable, index: StoredIndex, now: CurrentTime, *, creating: bool = False
) -> dict[str, Any]:
    """Return the description of an index; `creating` as in the response to CreateTable."""
    definition = index.definition
    projection: dict[str, Any] = {"ProjectionType": definition.projection}
    if definition.named:
        projection["NonKeyAttributes"] = sorted(definition.named)
    described: dict[str, Any] = {
        "IndexName": definition.name,
        "KeySchema": _key_schema(definition.hash, definition.range),
        "Projection": projection,
        "IndexSizeBytes": table.counts.index_bytes.get(definition.slot, 0),
        "ItemCount": table.counts.index_items.get(definition.slot, 0),
        "IndexArn": index_arn(table.scope, table.name, definition.name),
    }
    if index.is_global:
        is_active = _is_active(definition, now.store_s)
        ready = table.definition.ready_at_s <= now.store_s and is_active and not creating
        described["IndexStatus"] = "ACTIVE" if ready else "CREATING"
        if not is_active:
            described["Backfilling"] = True
        described["ProvisionedThroughput"] = _throughput(definition.throughput or NO_UNITS, now.wall_s)
        if definition.on_demand is not None:
            described["OnDemandThroughput"] = definition.on_demand
        if not creating:
            described["WarmThroughput"] = index_warm_throughput(definition, table.definition) | {
                "Status": "ACTIVE"
            }
    return described


def _key_schema(hash_: tuple[str, ...], range_: tuple[str, ...]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": "HASH"} for name in hash_] + [
        {"AttributeName": name, "KeyType": "RANGE"} for name in range_
    ]


def _throughput(throughput: Throughput, now_s: float) -> dict[str, Any]:
    described: dict[str, Any] = {
        "NumberOfDecreasesToday": throughput.decreases_today(now_s),
        "ReadCapacityUnits": throughput.reads,
        "WriteCapacityUnits": throughput.writes,
    }
    if throughput.increased_at_s is not None:
        described["LastIncreaseDateTime"] = throughput.increased_at_s
    if throughput.decreased_at_s is not None:
        described["LastDecreaseDateTime"] = throughput.decreased_at_s
    return described
