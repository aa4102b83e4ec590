"""Operations: one function per DynamoDB operation, from a parsed request to a response body.

A handler checks attribute values, compiles expressions, finds the table and its current items, prepares and commits
writes, and renders the response. It knows nothing of HTTP. The engine finds handlers, and what background jobs do,
in the tables below.
"""

from collections.abc import Callable
from typing import Any

from tavola.engine.operations.backups import (
    BACKUP_JOB,
    backup_step,
    create_backup,
    delete_backup,
    describe_backup,
    fail_backup,
    list_backups,
)
from tavola.engine.operations.batches import batch_get_item, batch_write_item
from tavola.engine.operations.bulk import (
    BULK_JOB,
    bulk_step,
    cancel_bulk_operation,
    describe_bulk_operation,
    fail_bulk,
    list_bulk_operations,
    start_bulk_put_items,
)
from tavola.engine.operations.call import OperationCall, Services
from tavola.engine.operations.emulated_call import EmulatedCall
from tavola.engine.operations.exports import (
    EXPORT_JOB,
    describe_export,
    export_step,
    export_table_to_point_in_time,
    fail_export,
    list_exports,
)
from tavola.engine.operations.imports import (
    IMPORT_JOB,
    describe_import,
    fail_import,
    import_step,
    import_table,
    list_imports,
)
from tavola.engine.operations.insights import (
    describe_contributor_insights,
    list_contributor_insights,
    update_contributor_insights,
)
from tavola.engine.operations.items import delete_item, get_item, put_item, update_item
from tavola.engine.operations.kinesis import (
    describe_kinesis_streaming_destination,
    disable_kinesis_streaming_destination,
    enable_kinesis_streaming_destination,
    update_kinesis_streaming_destination,
)
from tavola.engine.operations.policies import (
    delete_resource_policy,
    get_resource_policy,
    put_resource_policy,
)
from tavola.engine.operations.queries import query, scan
from tavola.engine.operations.recovery import (
    describe_continuous_backups,
    list_item_versions,
    update_continuous_backups,
)
from tavola.engine.operations.replicas import (
    create_global_table,
    describe_global_table,
    describe_global_table_settings,
    describe_table_replica_auto_scaling,
    list_global_tables,
    update_global_table,
    update_global_table_settings,
    update_table_replica_auto_scaling,
)
from tavola.engine.operations.restores import (
    RESTORE_JOB,
    fail_restore,
    restore_step,
    restore_table_from_backup,
    restore_table_to_point_in_time,
)
from tavola.engine.operations.statements import (
    batch_execute_statement,
    execute_statement,
    execute_transaction,
)
from tavola.engine.operations.streams import (
    describe_stream,
    get_records,
    get_shard_iterator,
    list_streams,
)
from tavola.engine.operations.table_updates import update_table
from tavola.engine.operations.tables import (
    create_table,
    delete_table,
    describe_endpoints,
    describe_limits,
    describe_table,
    list_tables,
)
from tavola.engine.operations.tags import list_tags_of_resource, tag_resource, untag_resource
from tavola.engine.operations.transactions import transact_get_items, transact_write_items
from tavola.engine.operations.ttl import describe_time_to_live, update_time_to_live
from tavola.engine.operations.vectors import (
    search_vectors,
)

HANDLERS: dict[str, Callable[[OperationCall, Any], bytes]] = {
    "BatchExecuteStatement": batch_execute_statement,
    "BatchGetItem": batch_get_item,
    "BatchWriteItem": batch_write_item,
    "CancelBulkOperation": cancel_bulk_operation,
    "CreateBackup": create_backup,
    "CreateGlobalTable": create_global_table,
    "CreateTable": create_table,
    "DeleteBackup": delete_backup,
    "DeleteItem": delete_item,
    "DeleteResourcePolicy": delete_resource_policy,
    "DeleteTable": delete_table,
    "DescribeBackup": describe_backup,
    "DescribeBulkOperation": describe_bulk_operation,
    "DescribeContinuousBackups": describe_continuous_backups,
    "DescribeContributorInsights": describe_contributor_insights,
    "DescribeEndpoints": describe_endpoints,
    "DescribeExport": describe_export,
    "DescribeGlobalTable": describe_global_table,
    "DescribeGlobalTableSettings": describe_global_table_settings,
    "DescribeImport": describe_import,
    "DescribeKinesisStreamingDestination": describe_kinesis_streaming_destination,
    "DescribeLimits": describe_limits,
    "DescribeStream": describe_stream,
    "DescribeTable": describe_table,
    "DescribeTableReplicaAutoScaling": describe_table_replica_auto_scaling,
    "DescribeTimeToLive": describe_time_to_live,
    "DisableKinesisStreamingDestination": disable_kinesis_streaming_destination,
    "EnableKinesisStreamingDestination": enable_kinesis_streaming_destination,
    "ExecuteStatement": execute_statement,
    "ExecuteTransaction": execute_transaction,
    "ExportTableToPointInTime": export_table_to_point_in_time,
    "GetItem": get_item,
    "GetRecords": get_records,
    "GetResourcePolicy": get_resource_policy,
    "GetShardIterator": get_shard_iterator,
    "ImportTable": import_table,
    "ListBackups": list_backups,
    "ListBulkOperations": list_bulk_operations,
    "ListContributorInsights": list_contributor_insights,
    "ListExports": list_exports,
    "ListGlobalTables": list_global_tables,
    "ListImports": list_imports,
    "ListItemVersions": list_item_versions,
    "ListStreams": list_streams,
    "ListTables": list_tables,
    "ListTagsOfResource": list_tags_of_resource,
    "PutItem": put_item,
    "PutResourcePolicy": put_resource_policy,
    "Query": query,
    "RestoreTableFromBackup": restore_table_from_backup,
    "RestoreTableToPointInTime": restore_table_to_point_in_time,
    "Scan": scan,
    "SearchVectors": search_vectors,
    "StartBulkPutItems": start_bulk_put_items,
    "TagResource": tag_resource,
    "TransactGetItems": transact_get_items,
    "TransactWriteItems": transact_write_items,
    "UntagResource": untag_resource,
    "UpdateContinuousBackups": update_continuous_backups,
    "UpdateContributorInsights": update_contributor_insights,
    "UpdateGlobalTable": update_global_table,
    "UpdateGlobalTableSettings": update_global_table_settings,
    "UpdateItem": update_item,
    "UpdateKinesisStreamingDestination": update_kinesis_streaming_destination,
    "UpdateTable": update_table,
    "UpdateTableReplicaAutoScaling": update_table_replica_auto_scaling,
    "UpdateTimeToLive": update_time_to_live,
}

# What one slice of a background job does: it gets the job's state, works a few milliseconds in the open transaction and
# returns the state to continue from, None when the job is done.
STEPS: dict[str, Callable[[Services, dict[str, Any]], dict[str, Any] | None]] = {
    BACKUP_JOB: backup_step,
    BULK_JOB: bulk_step,
    EXPORT_JOB: export_step,
    IMPORT_JOB: import_step,
    RESTORE_JOB: restore_step,
}

# How a job that failed unexpectedly is marked as failed.
ABANDONED: dict[str, Callable[[Services, dict[str, Any]], None]] = {
    BACKUP_JOB: fail_backup,
    BULK_JOB: fail_bulk,
    EXPORT_JOB: fail_export,
    IMPORT_JOB: fail_import,
    RESTORE_JOB: fail_restore,
}

__all__ = ["ABANDONED", "HANDLERS", "STEPS", "EmulatedCall", "OperationCall", "Services"]
