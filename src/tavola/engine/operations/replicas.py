"""Global tables, without other regions.

AWS no longer creates legacy global tables, so its own errors are returned. A replica of the current generation needs
another region, which does not exist here: creating one is refused, and none is found.
"""

from __future__ import annotations

from tavola.engine.operations.call import OperationCall, encode
from tavola.engine.operations.tables import find_table
from tavola.protocol.arns import table_name_of
from tavola.protocol.faults import GlobalTableNotFoundFault, ResourceNotFoundFault, ValidationFault
from tavola.protocol.replicas import (
    CreateGlobalTableRequest,
    DescribeGlobalTableRequest,
    DescribeGlobalTableSettingsRequest,
    DescribeTableReplicaAutoScalingRequest,
    ListGlobalTablesRequest,
    UpdateGlobalTableRequest,
    UpdateGlobalTableSettingsRequest,
    UpdateTableReplicaAutoScalingRequest,
)

_INVALID = "One or more parameter values were invalid: "
_LEGACY = (
    f"{_INVALID}DynamoDB global tables version 2017.11.29 is not supported. We recommend using DynamoDB global "
    "tables version 2019.11.21, instead of version 2017.11.29 (Legacy)."
)


def create_global_table(call: OperationCall, request: CreateGlobalTableRequest) -> bytes:
    """Refuse: AWS no longer creates legacy global tables."""
    raise ValidationFault(_LEGACY)


def describe_global_table(call: OperationCall, request: DescribeGlobalTableRequest) -> bytes:
    """Report that the global table does not exist."""
    missing = GlobalTableNotFoundFault.of_table(request.global_table_name)
    raise GlobalTableNotFoundFault(f"Global table not found: {missing.message}")


def describe_global_table_settings(call: OperationCall, request: DescribeGlobalTableSettingsRequest) -> bytes:
    """Report that the global table does not exist."""
    raise GlobalTableNotFoundFault.of_table(request.global_table_name)


def list_global_tables(call: OperationCall, request: ListGlobalTablesRequest) -> bytes:
    """Return an empty list."""
    return encode({"GlobalTables": []})


def update_global_table(call: OperationCall, request: UpdateGlobalTableRequest) -> bytes:
    """Report an unsupported version, or that the global table does not exist."""
    if any(update.create is not None for update in request.replica_updates):
        raise ValidationFault(_LEGACY)
    raise GlobalTableNotFoundFault.of_table(request.global_table_name)


def update_global_table_settings(call: OperationCall, request: UpdateGlobalTableSettingsRequest) -> bytes:
    """Report that the global table does not exist."""
    raise GlobalTableNotFoundFault.of_table(request.global_table_name)


def describe_table_replica_auto_scaling(
    call: OperationCall, request: DescribeTableReplicaAutoScalingRequest
) -> bytes:
    """Report that the table has no replicas."""
    raise _no_group(call, request.table_name)


def update_table_replica_auto_scaling(
    call: OperationCall, request: UpdateTableReplicaAutoScalingRequest
) -> bytes:
    """Report that the table has no replicas."""
    raise _no_group(call, request.table_name)


def _no_group(call: OperationCall, name_or_arn: str) -> ResourceNotFoundFault:
    find_table(call, name_or_arn)
    return ResourceNotFoundFault(f"Global table with name: {table_name_of(name_or_arn)} does not exist.")
