"""CreateBackup, DescribeBackup, ListBackups, DeleteBackup, and the system backup of a deleted table."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from tavola.engine.backups import Backup, Backups, BackupType, keep_table, pin, pinned_table, unpin
from tavola.engine.catalog import StoredTable
from tavola.engine.copies import START, CopyPosition, copy_slice
from tavola.engine.jobs import Failure, failure_of, record_failure
from tavola.engine.operations.call import OperationCall, Services, encode
from tavola.engine.operations.descriptions import describe
from tavola.limits import BACKUPS_LISTED_MAX, SYSTEM_BACKUP_DAYS
from tavola.protocol.arns import ResourceArn, Scope, parse_resource_arn, table_arn, table_name_of
from tavola.protocol.backups import (
    CreateBackupRequest,
    DeleteBackupRequest,
    DescribeBackupRequest,
    ListBackupsRequest,
)
from tavola.protocol.faults import (
    AccessDeniedFault,
    BackupInUseFault,
    BackupNotFoundFault,
    TableNotFoundFault,
    ValidationFault,
)
from tavola.protocol.instants import instant_text

_log = logging.getLogger("tavola.engine")

BACKUP_JOB = "backup"
_DAY_S = 86_400
_INDEX_MEMBERS = (
    *("IndexName", "KeySchema", "Projection", "ProvisionedThroughput", "OnDemandThroughput"),
    *("VectorAttribute", "SearchSchema", "Dimensions", "DistanceFunction"),
)


def create_backup(call: OperationCall, request: CreateBackupRequest) -> bytes:
    """Start a backup of a table as it is now; it is AVAILABLE when all rows are copied."""
    services = call.services
    table = find_backup_table(call, request.table_name)
    if not services.catalog.is_active(table):
        raise TableNotFoundFault.of_table(table.name)
    services.begin()
    backups = Backups(services.store)
    backup = backups.save(_new(services, table, request.backup_name, "USER", services.catalog.next_number()))
    backups.create_table(backup)
    pinned, position = pin(services.catalog, table)
    services.jobs.start(
        BACKUP_JOB,
        {
            "account": backup.scope.account,
            "region": backup.scope.region,
            "table": backup.definition.name,
            "backup": backup.id,
            "source": pinned.definition.number,
            "position": position,
            "place": START.encode(),
        },
    )
    return encode({"BackupDetails": _details(backup)})


def describe_backup(call: OperationCall, request: DescribeBackupRequest) -> bytes:
    """Return the description of a backup."""
    return encode({"BackupDescription": _describe(call, find_backup(call, request.backup_arn))})


def list_backups(call: OperationCall, request: ListBackupsRequest) -> bytes:
    """Return the caller's backups, oldest first; only on-demand ones unless the request says otherwise."""
    type_ = request.backup_type or "USER"
    scope = call.scope if request.table_name is None else call.check_scope(request.table_name)
    name = None if request.table_name is None else table_name_of(request.table_name)
    lower, upper = request.time_range_lower_bound, request.time_range_upper_bound
    listed = sorted(
        (
            backup
            for backup in Backups(call.services.store)
            if backup.scope == scope
            and type_ in ("ALL", backup.type)
            and name in (None, backup.definition.name)
            and (lower is None or backup.created_at_s >= lower)
            and (upper is None or backup.created_at_s < upper)
            and not _is_expired(call.services, backup)
        ),
        key=_order,
    )
    if request.exclusive_start_backup_arn is not None:
        start = _start(call, request.exclusive_start_backup_arn)
        listed = [backup for backup in listed if _order(backup) > start]
    limit = request.limit or BACKUPS_LISTED_MAX
    answer: dict[str, Any] = {"BackupSummaries": [_summary(backup) for backup in listed[:limit]]}
    if len(listed) > limit:
        answer["LastEvaluatedBackupArn"] = listed[limit - 1].arn
    return encode(answer)


def delete_backup(call: OperationCall, request: DeleteBackupRequest) -> bytes:
    """Delete a backup, unless it is being created or restored from."""
    backup = find_backup(call, request.backup_arn)
    if backup.expires_at_s is not None:
        expires = instant_text(int(backup.expires_at_s * 1_000_000))
        raise ValidationFault(
            f"Invalid Request: User is not allowed to delete the system backup with arn {backup.arn}. It will "
            f"automatically expire on {expires}"
        )
    if backup.status == "CREATING":
        raise BackupInUseFault(f"Backup is being created: {backup.arn}")
    if backup.restoring:
        raise BackupInUseFault(f"Backup is being used to restore table: {backup.arn}")
    described = _describe(call, msgspec.structs.replace(backup, status="DELETED"))
    call.services.begin()
    Backups(call.services.store).drop(backup)
    return encode({"BackupDescription": described})


def drop_table(services: Services, table: StoredTable) -> None:
    """Drop a deleted table in the open transaction; with recovery on, its rows become a backup.

    Copies in progress continue: rows and log are kept until they are done.
    """
    definition = table.definition
    if definition.pins:
        keep_table(services.store, definition)
    if definition.recovery is not None:
        backups = Backups(services.store)
        now = services.time.stamp()
        backups.drop_expired(now.store_s)
        backup = _new(services, table, f"{table.name}$DeletedTableBackup", "SYSTEM", definition.number)
        life_s = SYSTEM_BACKUP_DAYS * _DAY_S
        backups.save(
            msgspec.structs.replace(
                backup,
                status="AVAILABLE",
                expires_at_s=backup.created_at_s + life_s,
                drop_at_s=now.store_s + life_s,
            )
        )
    services.catalog.drop(table, keep_rows=definition.recovery is not None or definition.pins > 0)


def backup_step(services: Services, state: dict[str, Any]) -> dict[str, Any] | None:
    """Copy a slice of a table into its backup."""
    backups = Backups(services.store)
    backup = backups.find(Scope(state["account"], state["region"]), state["table"], state["backup"])
    assert backup is not None, "a backup that is being created cannot be deleted"
    target = backups.table(backup)
    source = pinned_table(services.catalog, services.store, state["source"], state["position"])
    position = copy_slice(source, target, CopyPosition.decode(state["place"]))
    backups.save(
        msgspec.structs.replace(
            backup,
            items=target.counts.items,
            bytes=target.counts.bytes,
            status="AVAILABLE" if position is None else "CREATING",
        )
    )
    if position is None:
        unpin(services.catalog, services.store, state["source"])
        return None
    return state | {"place": position.encode()}


def fail_backup(services: Services, state: dict[str, Any]) -> None:
    """Remove a backup that failed; the log has the reason, and DescribeBackup returns it."""
    backups = Backups(services.store)
    backup = backups.find(Scope(state["account"], state["region"]), state["table"], state["backup"])
    if backup is not None:
        what = f"Backup {backup.name} of table {backup.definition.name}"
        failure = Failure.of(services.time.stamp(), what, state["failure"])
        _log.error("%s", failure.sentence)
        record_failure(services.store, backup.arn, failure)
        backups.drop(backup)
    unpin(services.catalog, services.store, state["source"])


def find_backup_table(call: OperationCall, name_or_arn: str, scope: Scope | None = None) -> StoredTable:
    """Return the table that a backup operation names; a table being restored does not exist for it yet."""
    name = table_name_of(name_or_arn)
    table = call.services.catalog.find(scope or call.check_scope(name_or_arn), name)
    if table is None or table.definition.restored is not None:
        raise TableNotFoundFault.of_table(name)
    return table


def find_backup(call: OperationCall, arn: str, *, anywhere: bool = False) -> Backup:
    """Return the caller's backup with an ARN, in this region or `anywhere`; expired ones do not exist."""
    parts = _parse_backup_arn(call, arn)
    assert parts.label is not None, "a backup's ARN has the backup's id"
    backup = None
    if anywhere or parts.scope.region == call.scope.region:
        backup = Backups(call.services.store).find(parts.scope, parts.table, parts.label)
    if backup is None or _is_expired(call.services, backup):
        fault = BackupNotFoundFault.of_arn(arn)
        failure = failure_of(call.services.store, parts.text, call.services.time.elapsed_s())
        raise fault if failure is None else BackupNotFoundFault(f"{fault}. {failure.sentence}")
    return backup


def _parse_backup_arn(call: OperationCall, arn: str) -> ResourceArn:
    """Return the parts of a backup's ARN; another account's is refused, whether it exists or not.

    With a guard, access has been decided before.
    """
    parts = parse_resource_arn(arn)
    if parts is None or parts.kind != "backup":
        raise ValidationFault("Invalid Backup ARN")
    if parts.scope.account != call.scope.account and not call.is_guarded:
        raise AccessDeniedFault("Access is denied")
    return parts


def _is_expired(services: Services, backup: Backup) -> bool:
    return backup.has_expired(services.time.elapsed_s())


def _new(services: Services, table: StoredTable, name: str, type_: BackupType, number: int) -> Backup:
    milliseconds = int(services.clock.now() * 1000)
    suffix = "00000000" if type_ == "SYSTEM" else services.entropy.bytes(4).hex()
    while Backups(services.store).find(table.scope, table.name, f"{milliseconds:014d}-{suffix}") is not None:
        milliseconds += 1  # a table of this name was deleted in the same millisecond
    return Backup(
        id=f"{milliseconds:014d}-{suffix}",
        name=name,
        type=type_,
        number=number,
        definition=table.definition,
        created_at_s=milliseconds / 1000,
        status="CREATING",
        items=table.counts.items if type_ == "SYSTEM" else 0,
        bytes=table.counts.bytes if type_ == "SYSTEM" else 0,
    )


def _order(backup: Backup) -> tuple[str, str]:
    """Return the sort key of backups: the id, which begins with the creation time, then the table."""
    return backup.id, backup.definition.name


def _start(call: OperationCall, arn: str) -> tuple[str, str]:
    """Return the list position of an ARN, which may be of a deleted backup."""
    parts = _parse_backup_arn(call, arn)
    if parts.scope.region != call.scope.region:
        raise ValidationFault(
            "Invalid Request: The supplied ExclusiveStartBackupArn does not match the region"
        )
    assert parts.label is not None, "a backup's ARN has the backup's id"
    return parts.label, parts.table


def _details(backup: Backup) -> dict[str, Any]:
    details: dict[str, Any] = {
        "BackupArn": backup.arn,
        "BackupName": backup.name,
        "BackupSizeBytes": backup.bytes,
        "BackupStatus": backup.status,
        "BackupType": backup.type,
        "BackupCreationDateTime": backup.created_at_s,
    }
    if backup.expires_at_s is not None:
        details["BackupExpiryDateTime"] = backup.expires_at_s
    return details


def _summary(backup: Backup) -> dict[str, Any]:
    definition = backup.definition
    return {
        "TableName": definition.name,
        "TableId": definition.uuid,
        "TableArn": table_arn(definition.scope, definition.name),
    } | _details(backup)


def _index(shown: dict[str, Any]) -> dict[str, Any]:
    index = {name: shown[name] for name in _INDEX_MEMBERS if name in shown}
    if "ProvisionedThroughput" in index:
        units = index["ProvisionedThroughput"]
        index["ProvisionedThroughput"] = {
            name: units[name] for name in ("ReadCapacityUnits", "WriteCapacityUnits")
        }
    return index


def _describe(call: OperationCall, backup: Backup) -> dict[str, Any]:
    definition = backup.definition
    shown = describe(Backups(call.services.store).table(backup), call.services.time.now())
    table: dict[str, Any] = {
        "TableName": definition.name,
        "TableId": definition.uuid,
        "TableArn": table_arn(definition.scope, definition.name),
        "TableSizeBytes": backup.bytes,
        "KeySchema": shown["KeySchema"],
        "TableCreationDateTime": definition.created_at_s,
        "ProvisionedThroughput": {
            "ReadCapacityUnits": definition.throughput.reads,
            "WriteCapacityUnits": definition.throughput.writes,
        },
        "ItemCount": backup.items,
        "BillingMode": definition.billing,
    }
    if definition.on_demand is not None:
        table["OnDemandThroughput"] = definition.on_demand
    features: dict[str, Any] = {}
    for member in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes", "VectorIndexes"):
        if member in shown:
            features[member] = [_index(index) for index in shown[member]]
    if definition.stream is not None and definition.stream.enabled:
        features["StreamDescription"] = {"StreamEnabled": True, "StreamViewType": definition.stream.view}
    if definition.ttl is not None and definition.ttl.enabled:
        features["TimeToLiveDescription"] = {
            "TimeToLiveStatus": "ENABLED",
            "AttributeName": definition.ttl.attribute,
        }
    if definition.encryption is not None:
        features["SSEDescription"] = definition.encryption
    return {
        "BackupDetails": _details(backup),
        "SourceTableDetails": table,
        "SourceTableFeatureDetails": features,
    }
