"""Requests of continuous backups, on-demand backups and restores."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from tavola.limits import (
    BACKUP_ARN_CHARACTERS_MAX,
    BACKUP_ARN_CHARACTERS_MIN,
    BACKUP_NAME_CHARACTERS_MAX,
    BACKUP_NAME_CHARACTERS_MIN,
    BACKUPS_LISTED_MAX,
    RECOVERY_DAYS_MAX,
    RECOVERY_DAYS_MIN,
)
from tavola.protocol.arns import is_table_arn
from tavola.protocol.faults import ValidationFault
from tavola.protocol.fields import (
    BatchTableName,
    BillingMode,
    ControlTableName,
    NameInvalid,
    NameRule,
    NewTableName,
    Shape,
    StartTableName,
    Timestamp,
    fits,
    is_batch_table,
    is_control_table,
    is_new_table,
    is_start_table,
)
from tavola.protocol.message_style import MessageStyle
from tavola.protocol.tables import (
    GlobalSecondaryIndex,
    LocalSecondaryIndex,
    OnDemandThroughput,
    ProvisionedThroughput,
    SSESpecification,
    VectorIndex,
)

_INVALID = "One or more parameter values were invalid: "
_BACKUP = NameRule(BACKUP_NAME_CHARACTERS_MIN, BACKUP_NAME_CHARACTERS_MAX, arn=False)

BackupName: TypeAlias = Annotated[str, msgspec.Meta(extra={"name": _BACKUP})]
BackupArn: TypeAlias = Annotated[
    str, msgspec.Meta(min_length=BACKUP_ARN_CHARACTERS_MIN, max_length=BACKUP_ARN_CHARACTERS_MAX)
]
BackupTypeFilter: TypeAlias = Literal["USER", "SYSTEM", "AWS_BACKUP", "ALL"]
RecoveryPeriod: TypeAlias = Annotated[
    int, msgspec.Meta(ge=RECOVERY_DAYS_MIN, le=RECOVERY_DAYS_MAX, extra={"java": "Integer"})
]
ListBackupsLimit: TypeAlias = Annotated[
    int, msgspec.Meta(ge=1, le=BACKUPS_LISTED_MAX, extra={"java": "Integer"})
]


class PointInTimeRecoverySpecification(Shape, frozen=True, kw_only=True):
    """Whether point-in-time recovery is on, and for how many days."""

    point_in_time_recovery_enabled: bool
    recovery_period_in_days: RecoveryPeriod | None = None


class UpdateContinuousBackupsRequest(Shape, frozen=True, kw_only=True):
    """The request of UpdateContinuousBackups."""

    table_name: ControlTableName
    point_in_time_recovery_specification: PointInTimeRecoverySpecification


class DescribeContinuousBackupsRequest(Shape, frozen=True, kw_only=True):
    """The request of DescribeContinuousBackups."""

    table_name: ControlTableName


class CreateBackupRequest(Shape, frozen=True, kw_only=True):
    """The request of CreateBackup."""

    table_name: ControlTableName
    backup_name: BackupName


class DescribeBackupRequest(Shape, frozen=True, kw_only=True):
    """The request of DescribeBackup."""

    backup_arn: BackupArn


class DeleteBackupRequest(Shape, frozen=True, kw_only=True):
    """The request of DeleteBackup."""

    backup_arn: BackupArn


class ListBackupsRequest(Shape, frozen=True, kw_only=True):
    """The request of ListBackups."""

    table_name: BatchTableName | None = None
    limit: ListBackupsLimit | None = None
    time_range_lower_bound: Timestamp | None = None
    time_range_upper_bound: Timestamp | None = None
    exclusive_start_backup_arn: BackupArn | None = None
    backup_type: BackupTypeFilter | None = None


class _Restored(Shape, frozen=True, kw_only=True):
    """The settings that a restored table may override."""

    billing_mode_override: BillingMode | None = None
    global_secondary_index_override: list[GlobalSecondaryIndex] | None = None
    local_secondary_index_override: list[LocalSecondaryIndex] | None = None
    provisioned_throughput_override: ProvisionedThroughput | None = None
    on_demand_throughput_override: OnDemandThroughput | None = None
    sse_specification_override: SSESpecification | None = msgspec.field(
        name="SSESpecificationOverride", default=None
    )
    vector_index_override: list[VectorIndex] | None = None


class RestoreTableFromBackupRequest(_Restored, frozen=True, kw_only=True):
    """The request of RestoreTableFromBackup."""

    target_table_name: NewTableName
    backup_arn: BackupArn


class RestoreTableToPointInTimeRequest(_Restored, frozen=True, kw_only=True):
    """The request of RestoreTableToPointInTime."""

    source_table_arn: BatchTableName | None = None
    source_table_name: StartTableName | None = None
    target_table_name: NewTableName
    use_latest_restorable_time: bool | None = None
    restore_date_time: Timestamp | None = None


def check_create_backup(request: CreateBackupRequest, wording: MessageStyle) -> None:
    """Refuse invalid table and backup names."""
    if not is_control_table(request.table_name) or not fits(_BACKUP, request.backup_name):
        raise NameInvalid


def check_list_backups(request: ListBackupsRequest, wording: MessageStyle) -> None:
    """Refuse an invalid table name, and a time range that ends before it begins."""
    if request.table_name is not None and not is_batch_table(request.table_name):
        raise NameInvalid
    lower, upper = request.time_range_lower_bound, request.time_range_upper_bound
    if lower is not None and upper is not None and lower > upper:
        raise ValidationFault(f"{_INVALID}Time range lower bound must be less than or equal to upper bound")


def check_restore_backup(request: RestoreTableFromBackupRequest, wording: MessageStyle) -> None:
    """Refuse an invalid table name."""
    if not is_new_table(request.target_table_name):
        raise NameInvalid


def check_restore_time(request: RestoreTableToPointInTimeRequest, wording: MessageStyle) -> None:
    """Refuse a restore without a source or time, or with two of either."""
    source, arn = request.source_table_name, request.source_table_arn
    if not is_new_table(request.target_table_name) or (source is not None and not is_start_table(source)):
        raise NameInvalid
    if arn is not None and source is not None:
        raise ValidationFault("Must provide exactly one of: sourceTableArn, sourceTableName")
    if arn is None and source is None:
        raise ValidationFault("The parameter 'TableName' is required but was not present in the request")
    if arn is not None and not is_table_arn(arn):
        raise ValidationFault("sourceTableArn is not a valid ARN")
    latest, timed = bool(request.use_latest_restorable_time), request.restore_date_time is not None
    if latest and timed:
        raise ValidationFault(
            "Invalid Request: Both RestoreDateTime and UseLatestRestorableTime cannot be set for point-in-time "
            "restore request. Please specify either RestoreDateTime time or UseLatestRestorableTime"
        )
    if not latest and not timed:
        raise ValidationFault(
            "Invalid Request: Either one of RestoreDateTime or UseLatestRestorableTime must be specified, but "
            "not both"
        )
