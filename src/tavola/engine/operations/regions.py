"""Replicas in other regions, which are not available here.

AWS's rules for replicas are checked first, with its messages; what passes would need another region and is refused.
"""

from __future__ import annotations

from tavola.engine.catalog import TableDefinition
from tavola.protocol.faults import ValidationFault
from tavola.protocol.tables import CreateTableRequest, ReplicationGroupUpdate, UpdateTableRequest

_INVALID = "One or more parameter values were invalid: "


def refuse_source(request: CreateTableRequest) -> None:
    """Refuse a table that is to replicate one in another region."""
    if request.global_table_source_arn is not None:
        raise ValidationFault(
            f"{_INVALID}GlobalTableSourceArn names a table to replicate from, and Tavola has no replicas: "
            f"{request.global_table_source_arn}"
        )


def refuse_replicas(request: UpdateTableRequest, definition: TableDefinition) -> None:
    """Refuse replica changes: those of this region as AWS does, those of others because there are none."""
    for update in request.replica_updates or ():
        region = _region(update)
        if region == definition.region:
            raise ValidationFault(
                "Cannot add or delete the local region through ReplicaUpdates. Use CreateTable, DeleteTable, or "
                "UpdateTable as required."
            )
        if update.create is not None:
            raise ValidationFault(
                f"Region {region} is not supported. The latest version of global tables are only supported in "
                f"the following regions: [{definition.region}]"
            )
        raise ValidationFault(
            "Update global table operation failed because one or more replicas were not part of the global "
            f"table. Please retry the request without these replicas: [{region}]."
        )
    if request.disassociation_protection_enabled:
        raise ValidationFault(
            f"{_INVALID}DisassociationProtectionEnabled can only be set on a replica of a global table, and table "
            f"{definition.name} is not one"
        )


def settings_replication(mode: str | None) -> str | None:
    """Return the settings replication mode of a table; refuse modes that only a replica can have."""
    if mode == "ENABLED_WITH_OVERRIDES":
        raise ValidationFault(
            "Value 'ENABLED_WITH_OVERRIDES' at 'GlobalTableSettingsReplicationMode' failed to satisfy constraint: "
            "Only ENABLED and DISABLED settings replication are supported for a Regional Table."
        )
    return mode


def _region(update: ReplicationGroupUpdate) -> str:
    actions = (update.create, update.update, update.delete, update.disassociate)
    return next(action.region_name for action in actions if action is not None)
