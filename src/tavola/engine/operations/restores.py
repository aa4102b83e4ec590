"""RestoreTableFromBackup and RestoreTableToPointInTime: a new table from a backup or from history.

A restored table copies keys, indexes, capacity and encryption, unless the request overrides them. Tags, stream, time to
live, recovery, policies, deletion protection and class are not copied: on AWS they must be set again, and a stream that
starts by itself could trigger its consumers.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec

from tavola.engine.backups import Backups, pin, pinned_table, unpin
from tavola.engine.catalog import (
    NEVER_S,
    IndexDefinition,
    PastCapacity,
    Restored,
    StoredTable,
    TableDefinition,
    Throughput,
)
from tavola.engine.copies import START, CopyPosition, check_complete, copy_slice
from tavola.engine.jobs import Failure, forget_failure, record_failure
from tavola.engine.operations.backups import find_backup, find_backup_table
from tavola.engine.operations.call import OperationCall, Services, encode
from tavola.engine.operations.descriptions import describe
from tavola.engine.operations.encryption import encryption_of
from tavola.engine.operations.tables import index_definition, units_of
from tavola.engine.operations.throughput import to_dict
from tavola.engine.operations.vectors import vector_definition
from tavola.engine.snapshots import position_at, window_of
from tavola.engine.vectors import VectorDefinition
from tavola.limits import TABLES_PER_REGION_MAX
from tavola.protocol.arns import Scope, scope_of, table_arn
from tavola.protocol.backups import RestoreTableFromBackupRequest, RestoreTableToPointInTimeRequest
from tavola.protocol.faults import (
    BackupInUseFault,
    LimitExceededFault,
    TableAlreadyExistsFault,
    TableInUseFault,
    ValidationFault,
)
from tavola.protocol.tables import GlobalSecondaryIndex, LocalSecondaryIndex, VectorIndex

_log = logging.getLogger("tavola.engine")

RESTORE_JOB = "restore"
_INVALID = "Invalid Request: "
_OWN = "Cannot override ProvisionedThroughput"
_Request = RestoreTableFromBackupRequest | RestoreTableToPointInTimeRequest


def restore_table_from_backup(call: OperationCall, request: RestoreTableFromBackupRequest) -> bytes:
    """Start to create a table from a backup; it is CREATING until all rows are copied."""
    backup = find_backup(call, request.backup_arn, anywhere=True)
    _check_region(call, backup.scope, request)
    if backup.status == "CREATING":
        raise BackupInUseFault(f"Backup is being created: {backup.arn}")
    if backup.restoring:
        raise BackupInUseFault(f"Backup is being used to restore another table: {backup.arn}")
    _check_target(call, request.target_table_name)
    source = table_arn(backup.scope, backup.definition.name)
    restored = Restored(at_s=backup.created_at_s, table_arn=source, backup_arn=backup.arn)
    definition = _definition(call, backup.definition, request, restored)
    call.services.begin()
    Backups(call.services.store).save(msgspec.structs.replace(backup, restoring=True))
    return _begin(
        call,
        definition,
        {
            "account": backup.scope.account,
            "region": backup.scope.region,
            "table": backup.definition.name,
            "backup": backup.id,
        },
    )


def restore_table_to_point_in_time(call: OperationCall, request: RestoreTableToPointInTimeRequest) -> bytes:
    """Start to create a table from another one as of a time, which may be now."""
    services = call.services
    source = _source(call, request)
    _, at_us = window_of(source, services.time)
    if request.restore_date_time is not None:
        at_us = round(request.restore_date_time * 1_000_000)
    position = position_at(source, at_us, services.time)
    _check_region(call, source.scope, request)
    _check_target(call, request.target_table_name)
    restored = Restored(at_s=at_us / 1_000_000, table_arn=source.arn)
    definition = _definition(call, _capacity_at(source.definition, at_us / 1_000_000), request, restored)
    services.begin()
    pin(services.catalog, source)
    return _begin(call, definition, {"source": source.definition.number, "position": position})


def restore_step(services: Services, state: dict[str, Any]) -> dict[str, Any] | None:
    """Copy a slice into a table that is being restored."""
    target = services.catalog.of_number(state["target"])
    assert target is not None, "a table that is being restored cannot be deleted"
    backups = Backups(services.store)
    backup = None
    if "backup" in state:
        scope = Scope(state["account"], state["region"])
        backup = backups.find(scope, state["table"], state["backup"])
        assert backup is not None, "a backup that is being restored from cannot be deleted"
        source = backups.table(backup)
    else:
        source = pinned_table(services.catalog, services.store, state["source"], state["position"])
    position = copy_slice(source, target, CopyPosition.decode(state["place"]))
    services.catalog.mark_counts_changed(target)
    if position is not None:
        return state | {"place": position.encode()}
    if backup is not None:
        check_complete(target, backup.items, backup.bytes)
        backups.save(msgspec.structs.replace(backup, restoring=False))
    else:
        unpin(services.catalog, services.store, state["source"])
    ready_at_s = services.time.stamp().store_s + services.table_delay_s
    services.catalog.change(
        target, msgspec.structs.replace(target.definition, ready_at_s=ready_at_s, restored=None)
    )
    return None


def fail_restore(services: Services, state: dict[str, Any]) -> None:
    """Undo a failed restore: the table is deleted and its source released.

    The log has the reason, and DescribeTable returns it.
    """
    target = services.catalog.of_number(state["target"])
    if target is not None:
        restored = target.definition.restored
        source = "a deleted source" if restored is None else restored.backup_arn or restored.table_arn
        what = f"The restore of table {target.name} from {source}"
        failure = Failure.of(services.time.stamp(), what, state["failure"])
        _log.error("%s; the table is deleted", failure.sentence)
        record_failure(services.store, target.arn, failure)
        services.catalog.drop(target)
    if "backup" not in state:
        unpin(services.catalog, services.store, state["source"])
        return
    backups = Backups(services.store)
    backup = backups.find(Scope(state["account"], state["region"]), state["table"], state["backup"])
    if backup is not None:
        backups.save(msgspec.structs.replace(backup, restoring=False))


def _begin(call: OperationCall, definition: TableDefinition, source: dict[str, Any]) -> bytes:
    """Create the table and start the job that fills it, in the open transaction."""
    services = call.services
    number = services.catalog.next_number()
    table = services.catalog.create(msgspec.structs.replace(definition, number=number))
    forget_failure(services.store, table.arn)
    services.jobs.start(RESTORE_JOB, source | {"target": number, "place": START.encode()})
    return encode({"TableDescription": describe(table, services.time.now(), status="CREATING")})


def _source(call: OperationCall, request: RestoreTableToPointInTimeRequest) -> StoredTable:
    name_or_arn = request.source_table_arn or request.source_table_name
    assert name_or_arn is not None, "`parse` refuses a restore without a source"
    scope = scope_of(name_or_arn)
    if scope is not None and scope.account != call.scope.account:
        raise ValidationFault(
            "This action is only supported by accounts that match the resource owner\u2019s account."
        )
    return find_backup_table(call, name_or_arn, scope or call.scope)


def _check_region(call: OperationCall, scope: Scope, request: _Request) -> None:
    if scope.region != call.scope.region and request.sse_specification_override is None:
        _refuse("sseSpecificationOverride must be provided for cross-region restores")


def _check_target(call: OperationCall, name: str) -> None:
    catalog = call.services.catalog
    existing = catalog.find(call.scope, name)
    if existing is not None:
        restored = existing.definition.restored
        if restored is not None:
            source = (
                f"backup: {restored.backup_arn}" if restored.backup_arn else f"table: {restored.table_arn}"
            )
            raise TableInUseFault(f"Table: {name} is already being restored from {source}")
        raise TableAlreadyExistsFault.of_table(name)
    if len(catalog.names(call.scope)) >= TABLES_PER_REGION_MAX:
        raise LimitExceededFault(
            f"Subscriber limit exceeded: There is a limit of {TABLES_PER_REGION_MAX} tables per subscriber"
        )


def _capacity_at(definition: TableDefinition, at_s: float) -> TableDefinition:
    """Return a definition with the capacity that the table had at a time."""
    recovery = definition.recovery
    assert recovery is not None, "only a table with recovery is restored to a time"
    past = next(
        (capacity for capacity in recovery.past if capacity.until_s > at_s), PastCapacity.of(definition, at_s)
    )
    indexes = tuple(
        msgspec.structs.replace(index, throughput=past.indexes.get(index.name, index.throughput))
        for index in definition.indexes
    )
    return msgspec.structs.replace(
        definition,
        billing=past.billing,
        throughput=past.throughput,
        on_demand=past.on_demand,
        indexes=indexes,
    )


def _definition(
    call: OperationCall, source: TableDefinition, request: _Request, restored: Restored
) -> TableDefinition:
    """Return the definition of the restored table: the source's, without the settings that are not copied."""
    now_s = call.services.clock.now()
    billing = request.billing_mode_override or source.billing
    throughput, on_demand = _capacity(source, request, billing)
    indexes = (
        *_choose_indexes(source, request.local_secondary_index_override, "local"),
        *_choose_indexes(source, request.global_secondary_index_override, "global"),
    )
    vectors = _choose_vectors(source, request.vector_index_override)
    encryption = source.encryption
    if request.sse_specification_override is not None:
        encryption = encryption_of(request.sse_specification_override, call.scope)
    chosen = TableDefinition(
        number=0,
        account=call.scope.account,
        region=call.scope.region,
        name=request.target_table_name,
        uuid=call.services.entropy.uuid(),
        created_at_s=now_s,
        ready_at_s=NEVER_S,
        types={},
        hash=source.hash,
        range=source.range,
        indexes=tuple(_index_throughput(index, request, billing) for index in indexes),
        vectors=vectors,
        slots=source.slots,
        billing=billing,
        on_demand_since_s=now_s if billing == "PAY_PER_REQUEST" else None,
        throughput=throughput,
        on_demand=on_demand,
        warm=source.warm if billing == source.billing else None,
        encryption=encryption,
        restored=restored,
    )
    return chosen.with_types(source.types)


def _choose_indexes(
    source: TableDefinition,
    override: Sequence[GlobalSecondaryIndex | LocalSecondaryIndex] | None,
    kind: str,
) -> list[IndexDefinition]:
    """Return the source's indexes of a kind, or those that an override selects, with its names.

    An override can drop and rename indexes, not add any.
    """
    source_indexes = [
        msgspec.structs.replace(index, ready_at_s=0.0, filled_to=None)
        for index in source.indexes
        if index.kind == kind
    ]
    if override is None:
        return source_indexes
    chosen: list[IndexDefinition] = []
    for index_request in override:
        requested = index_definition(index_request, 0)
        matching = [index for index in source_indexes if _shape(index) == _shape(requested)]
        candidates = [index for index in matching if index.name == requested.name] or matching
        if not candidates:
            _refuse_index(index_request.index_name)
        source_indexes.remove(candidates[0])
        chosen.append(msgspec.structs.replace(candidates[0], name=index_request.index_name))
    return chosen


def _shape(index: IndexDefinition) -> tuple[Any, ...]:
    return index.hash, index.range, index.projection, frozenset(index.named)


def _choose_vectors(
    source: TableDefinition, override: Sequence[VectorIndex] | None
) -> tuple[VectorDefinition, ...]:
    source_vectors = [
        msgspec.structs.replace(vector, ready_at_s=0.0, filled_to=None) for vector in source.vectors
    ]
    if override is None:
        return tuple(source_vectors)
    chosen: list[VectorDefinition] = []
    for index_request in override:
        matching = [
            vector for vector in source_vectors if vector_definition(index_request, vector.slot) == vector
        ]
        if not matching:
            _refuse_index(index_request.index_name)
        source_vectors.remove(matching[0])
        chosen.append(matching[0])
    return tuple(chosen)


def _index_throughput(index: IndexDefinition, request: _Request, billing: str) -> IndexDefinition:
    """Return an index with its old throughput, or that of the request."""
    if index.kind != "global":
        return index
    overrides = request.global_secondary_index_override
    override = next((override for override in overrides or () if override.index_name == index.name), None)
    requested = None if override is None else override.provisioned_throughput
    if billing == "PAY_PER_REQUEST":
        if requested is not None:
            _refuse(f"{_OWN} if BillingMode is overridden to PAY_PER_REQUEST for index {index.name}")
        bounds = None if override is None else override.on_demand_throughput
        on_demand = index.on_demand if bounds is None else to_dict(bounds)
        return msgspec.structs.replace(index, throughput=Throughput(0, 0), on_demand=on_demand)
    old = index.throughput if override is None else None
    if requested is None and not (old and old.reads):
        _refuse(f"Must specify provisioned throughput for index {index.name}")
    units = units_of(requested) if old is None else Throughput(old.reads, old.writes)
    return msgspec.structs.replace(index, throughput=units, on_demand=None)


def _capacity(
    source: TableDefinition, request: _Request, billing: str
) -> tuple[Throughput, dict[str, int] | None]:
    override = request.provisioned_throughput_override
    bounds = to_dict(request.on_demand_throughput_override)
    if billing == "PAY_PER_REQUEST":
        if override is not None:
            overridden = request.billing_mode_override == "PAY_PER_REQUEST"
            _refuse(
                f"{_OWN} if BillingMode is overridden to PAY_PER_REQUEST"
                if overridden
                else f"{_OWN} unless BillingMode is PROVISIONED"
            )
        for name, bound in (bounds or {}).items():
            if bound < 1:
                _refuse(f"Requested {name} for OnDemandThroughput is outside of valid range")
        return Throughput(0, 0), bounds or source.on_demand
    for name in bounds or ():
        _refuse(
            f"Cannot override {name} for OnDemandThroughput unless BillingModeOverride is PAY_PER_REQUEST"
        )
    if override is not None:
        return units_of(override), None
    if not source.throughput.reads:
        _refuse("Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED")
    return Throughput(source.throughput.reads, source.throughput.writes), None


def _refuse_index(name: str) -> NoReturn:
    _refuse(
        f"Index {name} does not match a secondary index that existed in the source table and cannot be created "
        "during the restore operation"
    )


def _refuse(rule: str) -> NoReturn:
    raise ValidationFault(_INVALID + rule)
