"""Checks of UpdateTable that need only the request.

A table takes one change per call. Which changes may be combined, and which error is reported first, is AWS's choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tavola.protocol.definitions import (
    check_bounds,
    check_encryption,
    check_index_key,
    check_index_throughput,
    check_no_bounds,
    check_projection,
    check_table_class,
    check_units,
    defined_names,
    refuse,
)
from tavola.protocol.faults import LimitExceededFault, ValidationFault
from tavola.protocol.fields import NameInvalid, Shape, is_control_table
from tavola.protocol.message_style import MessageStyle
from tavola.protocol.replicas import check_replica_updates
from tavola.protocol.tables import (
    AttributeDefinition,
    DeleteGlobalSecondaryIndexAction,
    GlobalSecondaryIndex,
    GlobalSecondaryIndexUpdate,
    StreamSpecification,
    UpdateGlobalSecondaryIndexAction,
    UpdateTableRequest,
)
from tavola.protocol.vectors import check_vector_updates

_Action = UpdateGlobalSecondaryIndexAction | GlobalSecondaryIndex | DeleteGlobalSecondaryIndexAction

# The list that AWS prints for an empty request; three of its members do not exist.
_CHANGES = (
    "ProvisionedThroughput",
    "BillingMode",
    "UpdateStreamEnabled",
    "GlobalSecondaryIndexUpdates",
    "SSESpecification",
    "ReplicaUpdates",
    "MultiAccountReplicaReady",
    "ReplicaTransitRoleArn",
    "MultiRegionConsistency",
    "DeletionProtectionEnabled",
    "OnDemandThroughput",
    "WarmThroughput",
)
# Changes that exclude all others, in the order in which AWS reports them.
_ALONE = (
    ("SSESpecification", "Server-Side Encryption modification"),
    ("TableClass", "TableClass modification"),
    ("DeletionProtectionEnabled", "DeletionProtection modification"),
)


def check_update_table(request: UpdateTableRequest, wording: MessageStyle) -> None:
    """Refuse an update that is invalid for any table."""
    if not is_control_table(request.table_name):
        raise NameInvalid
    check_table_class(request.table_class)
    updates = request.global_secondary_index_updates or []
    vector_updates = request.vector_index_updates or []
    changes = _changes(request)
    _check_any(request, changes)
    if request.replica_updates is not None and changes - {"ReplicaUpdates"}:
        refuse("Replica modification must be the only operation in the request")
    if request.global_secondary_index_updates is not None and not updates:
        refuse("List of GlobalSecondaryIndexUpdates is empty")
    _check_index_updates(updates, request.attribute_definitions)
    _check_together(request, changes)
    check_replica_updates(request)
    _check_throughput(request)
    check_vector_updates(vector_updates, defined_names(request.attribute_definitions or ()))
    for update in vector_updates:
        if update.create is not None:
            check_projection(update.create.projection)
    _check_stream(request.stream_specification)
    check_encryption(request.sse_specification)
    if _structural(updates) + len(vector_updates) > 1:
        raise LimitExceededFault(
            "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"
        )


def has_settings(settings: Shape | None) -> bool:
    """Return whether a structure has any member; AWS treats an empty one as absent."""
    return settings is not None and bool(msgspec.to_builtins(settings))


def _changes(request: UpdateTableRequest) -> set[str]:
    """Return the member names of the changes in a request."""
    present = {
        "BillingMode": request.billing_mode is not None,
        "ProvisionedThroughput": request.provisioned_throughput is not None,
        "GlobalSecondaryIndexUpdates": bool(request.global_secondary_index_updates),
        "VectorIndexUpdates": bool(request.vector_index_updates),
        "StreamSpecification": request.stream_specification is not None,
        "SSESpecification": request.sse_specification is not None,
        "ReplicaUpdates": request.replica_updates is not None,
        "TableClass": request.table_class is not None,
        "DeletionProtectionEnabled": request.deletion_protection_enabled is not None,
        "OnDemandThroughput": has_settings(request.on_demand_throughput),
        "WarmThroughput": has_settings(request.warm_throughput),
    }
    return {name for name, is_present in present.items() if is_present}


def _check_any(request: UpdateTableRequest, changes: set[str]) -> None:
    if (
        changes
        or request.global_table_settings_replication_mode is not None
        or request.disassociation_protection_enabled is not None
    ):
        return
    skipped = "MultiRegionConsistency" if request.multi_region_consistency is not None else None
    listed = ", ".join(name for name in _CHANGES if name != skipped)
    raise ValidationFault(f"At least one of {listed} or TableClass is required")


def _check_together(request: UpdateTableRequest, changes: set[str]) -> None:
    """Refuse changes that AWS does not combine in one call."""
    updates = request.global_secondary_index_updates or ()
    for name, change in _ALONE:
        if name in changes and len(changes) > 1:
            refuse(f"{change} must be the only operation in the request")
    billed = {"BillingMode"} | ({"ProvisionedThroughput"} if request.billing_mode == "PROVISIONED" else set())
    if "OnDemandThroughput" in changes and changes - {"OnDemandThroughput"} - billed:
        refuse("OnDemandThroughput can only be combined with BillingMode in an UpdateTable request")
    if "WarmThroughput" in changes:
        if any(update.create is not None for update in updates):
            refuse("Create global secondary index cannot be specified when updating WarmThroughput")
        if _structural(updates) or changes - {"WarmThroughput", "GlobalSecondaryIndexUpdates"}:
            refuse("WarmThroughput must be the only operation in the request")
    moves = "ProvisionedThroughput" in changes or request.billing_mode == "PROVISIONED"
    if moves and "StreamSpecification" in changes:
        refuse("You cannot modify stream status while updating table IOPS")
    if moves and _structural(updates):
        refuse("You cannot create or delete index while updating table IOPS")
    if "StreamSpecification" in changes and _structural(updates):
        refuse("You cannot create or delete index while changing stream status")


def _check_throughput(request: UpdateTableRequest) -> None:
    provisioned = request.provisioned_throughput
    if request.billing_mode == "PAY_PER_REQUEST" and provisioned is not None:
        refuse("ProvisionedThroughput cannot be specified when BillingMode is PAY_PER_REQUEST")
    if request.billing_mode == "PROVISIONED" and provisioned is None:
        refuse("ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
    check_units(provisioned)
    check_bounds(request.on_demand_throughput, "table", least=-1)
    if request.billing_mode == "PROVISIONED":
        check_no_bounds(request.on_demand_throughput, "", "when the table BillingMode is PROVISIONED")


def _check_stream(stream: StreamSpecification | None) -> None:
    if stream is None:
        return
    if stream.stream_enabled and stream.stream_view_type is None:
        refuse("If stream is being enabled then UpdateViewType is required")
    if not stream.stream_enabled and stream.stream_view_type is not None:
        refuse("If stream is being disabled, then UpdateViewType must not be specified")


def _structural(updates: Iterable[GlobalSecondaryIndexUpdate]) -> int:
    return sum(update.create is not None or update.delete is not None for update in updates)


def _actions(update: GlobalSecondaryIndexUpdate) -> list[_Action]:
    return [action for action in (update.update, update.create, update.delete) if action is not None]


def _check_index_updates(
    updates: Sequence[GlobalSecondaryIndexUpdate], definitions: Sequence[AttributeDefinition] | None
) -> None:
    seen: set[str] = set()
    for update in updates:
        actions = _actions(update)
        if not actions:
            refuse(
                "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
                "GlobalSecondaryIndexUpdate.Delete must not be null"
            )
        if len(actions) > 1:
            refuse("Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object")
        name = actions[0].index_name
        if name in seen:
            refuse(
                f"Only one global secondary index update per index is allowed simultaneously. Index: {name}"
            )
        seen.add(name)
        if update.update is not None:
            _check_retuning(update.update)
        if update.create is not None:
            if definitions is None:
                refuse(f"AttributeDefinitions is not specified for index: {name}")
            check_index_key(update.create.key_schema)
            check_projection(update.create.projection)
            check_index_throughput(update.create)


def _check_retuning(action: UpdateGlobalSecondaryIndexAction) -> None:
    if action.warm_throughput is not None and not has_settings(action.warm_throughput):
        refuse(
            "WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for "
            f"index: {action.index_name}"
        )
    check_units(action.provisioned_throughput, action.index_name)
    check_bounds(action.on_demand_throughput, f"index : {action.index_name}", least=-1)
