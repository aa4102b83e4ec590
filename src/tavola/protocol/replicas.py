"""Requests of global tables, of both generations, and of their auto scaling."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from tavola.protocol.faults import ValidationFault
from tavola.protocol.fields import (
    INTEGER_MAX,
    ONE_OR_MORE,
    BillingMode,
    ControlTableName,
    DefinedIndexName,
    NameInvalid,
    NewTableName,
    PageLimit,
    PositiveLong,
    Shape,
    StartTableName,
    TableClass,
    is_new_table,
    is_start_table,
)
from tavola.protocol.message_style import MessageStyle
from tavola.protocol.tables import UpdateTableRequest

_RoleArn: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=1600)]
_PolicyName: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
_Seconds: TypeAlias = Annotated[int, msgspec.Meta(le=INTEGER_MAX, extra={"java": "Integer"})]


class Replica(Shape, frozen=True, kw_only=True):
    """A region in which a global table has a replica."""

    region_name: str | None = None


class CreateGlobalTableRequest(Shape, frozen=True, kw_only=True):
    """The request of CreateGlobalTable."""

    global_table_name: NewTableName
    replication_group: list[Replica]


class DescribeGlobalTableRequest(Shape, frozen=True, kw_only=True):
    """The request of DescribeGlobalTable."""

    global_table_name: NewTableName


class DescribeGlobalTableSettingsRequest(Shape, frozen=True, kw_only=True):
    """The request of DescribeGlobalTableSettings."""

    global_table_name: NewTableName


class ListGlobalTablesRequest(Shape, frozen=True, kw_only=True):
    """The request of ListGlobalTables."""

    exclusive_start_global_table_name: StartTableName | None = None
    limit: PageLimit | None = None
    region_name: str | None = None


class CreateReplicaAction(Shape, frozen=True, kw_only=True):
    """A region that joins a legacy global table."""

    region_name: str


class DeleteReplicaAction(Shape, frozen=True, kw_only=True):
    """A region that leaves a legacy global table."""

    region_name: str


class ReplicaUpdate(Shape, frozen=True, kw_only=True):
    """One change of a legacy global table."""

    create: CreateReplicaAction | None = None
    delete: DeleteReplicaAction | None = None


class UpdateGlobalTableRequest(Shape, frozen=True, kw_only=True):
    """The request of UpdateGlobalTable."""

    global_table_name: NewTableName
    replica_updates: list[ReplicaUpdate]


class AutoScalingTargetTrackingScalingPolicyConfigurationUpdate(Shape, frozen=True, kw_only=True):
    """The target utilization of auto scaling."""

    disable_scale_in: bool | None = None
    scale_in_cooldown: _Seconds | None = None
    scale_out_cooldown: _Seconds | None = None
    target_value: float


class AutoScalingPolicyUpdate(Shape, frozen=True, kw_only=True):
    """A scaling policy."""

    policy_name: _PolicyName | None = None
    target_tracking_scaling_policy_configuration: AutoScalingTargetTrackingScalingPolicyConfigurationUpdate


class AutoScalingSettingsUpdate(Shape, frozen=True, kw_only=True):
    """The bounds of auto scaling and its policy."""

    minimum_units: PositiveLong | None = None
    maximum_units: PositiveLong | None = None
    auto_scaling_disabled: bool | None = None
    auto_scaling_role_arn: _RoleArn | None = None
    scaling_policy_update: AutoScalingPolicyUpdate | None = None


class GlobalTableGlobalSecondaryIndexSettingsUpdate(Shape, frozen=True, kw_only=True):
    """New settings of an index in every region."""

    index_name: DefinedIndexName
    provisioned_write_capacity_units: PositiveLong | None = None
    provisioned_write_capacity_auto_scaling_settings_update: AutoScalingSettingsUpdate | None = None


class ReplicaGlobalSecondaryIndexSettingsUpdate(Shape, frozen=True, kw_only=True):
    """New settings of an index in one region."""

    index_name: DefinedIndexName
    provisioned_read_capacity_units: PositiveLong | None = None
    provisioned_read_capacity_auto_scaling_settings_update: AutoScalingSettingsUpdate | None = None


class ReplicaSettingsUpdate(Shape, frozen=True, kw_only=True):
    """New settings of one replica."""

    region_name: str
    replica_provisioned_read_capacity_units: PositiveLong | None = None
    replica_provisioned_read_capacity_auto_scaling_settings_update: AutoScalingSettingsUpdate | None = None
    replica_global_secondary_index_settings_update: (
        Annotated[list[ReplicaGlobalSecondaryIndexSettingsUpdate], msgspec.Meta(min_length=1, max_length=20)]
        | None
    ) = None
    replica_table_class: TableClass | None = None


class UpdateGlobalTableSettingsRequest(Shape, frozen=True, kw_only=True):
    """The request of UpdateGlobalTableSettings."""

    global_table_name: NewTableName
    global_table_billing_mode: BillingMode | None = None
    global_table_provisioned_write_capacity_units: PositiveLong | None = None
    global_table_provisioned_write_capacity_auto_scaling_settings_update: AutoScalingSettingsUpdate | None = (
        None
    )
    global_table_global_secondary_index_settings_update: (
        Annotated[
            list[GlobalTableGlobalSecondaryIndexSettingsUpdate], msgspec.Meta(min_length=1, max_length=20)
        ]
        | None
    ) = None
    replica_settings_update: (
        Annotated[list[ReplicaSettingsUpdate], msgspec.Meta(min_length=1, max_length=50)] | None
    ) = None


class DescribeTableReplicaAutoScalingRequest(Shape, frozen=True, kw_only=True):
    """The request of DescribeTableReplicaAutoScaling."""

    table_name: ControlTableName


class GlobalSecondaryIndexAutoScalingUpdate(Shape, frozen=True, kw_only=True):
    """Auto scaling of writes to an index."""

    index_name: DefinedIndexName | None = None
    provisioned_write_capacity_auto_scaling_update: AutoScalingSettingsUpdate | None = None


class ReplicaGlobalSecondaryIndexAutoScalingUpdate(Shape, frozen=True, kw_only=True):
    """Auto scaling of reads of a replica's index."""

    index_name: DefinedIndexName | None = None
    provisioned_read_capacity_auto_scaling_update: AutoScalingSettingsUpdate | None = None


class ReplicaAutoScalingUpdate(Shape, frozen=True, kw_only=True):
    """Auto scaling of reads of a replica."""

    region_name: str
    replica_global_secondary_index_updates: list[ReplicaGlobalSecondaryIndexAutoScalingUpdate] | None = None
    replica_provisioned_read_capacity_auto_scaling_update: AutoScalingSettingsUpdate | None = None


class UpdateTableReplicaAutoScalingRequest(Shape, frozen=True, kw_only=True):
    """The request of UpdateTableReplicaAutoScaling."""

    global_secondary_index_updates: (
        Annotated[list[GlobalSecondaryIndexAutoScalingUpdate], ONE_OR_MORE] | None
    ) = None
    table_name: ControlTableName
    provisioned_write_capacity_auto_scaling_update: AutoScalingSettingsUpdate | None = None
    replica_updates: Annotated[list[ReplicaAutoScalingUpdate], ONE_OR_MORE] | None = None


_Legacy: TypeAlias = (
    CreateGlobalTableRequest
    | DescribeGlobalTableRequest
    | DescribeGlobalTableSettingsRequest
    | UpdateGlobalTableRequest
    | UpdateGlobalTableSettingsRequest
)


def check_global_table(request: _Legacy, wording: MessageStyle) -> None:
    """Refuse an invalid table name."""
    if not is_new_table(request.global_table_name):
        raise NameInvalid


def check_update_global_table(request: UpdateGlobalTableRequest, wording: MessageStyle) -> None:
    """Refuse an update without a change."""
    check_global_table(request, wording)
    if not request.replica_updates:
        raise ValidationFault("One or more parameter values were invalid")


def check_list_global_tables(request: ListGlobalTablesRequest, wording: MessageStyle) -> None:
    """Refuse an invalid ExclusiveStartGlobalTableName."""
    start = request.exclusive_start_global_table_name
    if start is not None and not is_start_table(start):
        raise NameInvalid


def check_replica_updates(request: UpdateTableRequest) -> None:
    """Refuse replica and witness changes that are invalid for any global table."""
    updates = request.replica_updates or ()
    strong = request.multi_region_consistency == "STRONG"
    if request.global_table_witness_updates is not None and not strong:
        raise ValidationFault(
            "MultiRegionConsistency must be set as STRONG when GlobalTableWitnessUpdates parameter is present."
        )
    for update in updates:
        actions = [update.create, update.update, update.delete, update.disassociate]
        present = [action for action in actions if action is not None]
        if len(present) > 1:
            raise ValidationFault(
                "Update table operation with more than one type of replica actions not allowed."
            )
        members = {} if not present else msgspec.to_builtins(present[0])
        if not present or (update.update is not None and len(members) == 1):
            raise ValidationFault(
                "There are no actions specified in the Replica Update Action of the request."
            )
    moved = sum(update.create is not None or update.delete is not None for update in updates)
    if strong and updates and moved + len(request.global_table_witness_updates or ()) != 2:
        raise ValidationFault(
            "Unsupported replica count for global tables with MultiRegionConsistency set to STRONG."
        )
    if moved > 1 and not strong:
        raise ValidationFault(
            "Update table operation with more than one create or delete replica actions not allowed"
        )
