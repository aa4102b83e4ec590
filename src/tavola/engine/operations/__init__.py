"""Operations: one function per DynamoDB operation, from a parsed request to a response body.

A handler checks attribute values, compiles expressions, finds the table and its current items, prepares and commits
writes, and renders the response. It knows nothing of HTTP. The engine finds handlers, and what background jobs do,
in the tables below.
"""

from collections.abc import Callable
from typing import Any

from tavola.engine.operations import (
    backups,
    batches,
    bulk,
    exports,
    imports,
    insights,
    items,
    kinesis,
    policies,
    queries,
    recovery,
    replicas,
    restores,
    statements,
    streams,
    table_updates,
    tables,
    tags,
    transactions,
    ttl,
    vectors,
)
from tavola.engine.operations.call import OperationCall, Services
from tavola.engine.operations.emulated_call import EmulatedCall
from tavola.values import Steps

# A read that may be long returns steps, which the engine runs; all others return the response.
HANDLERS: dict[str, Callable[[OperationCall, Any], bytes | Steps[bytes]]] = {
    "BatchExecuteStatement": statements.batch_execute_statement,
    "BatchGetItem": batches.batch_get_item,
    "BatchWriteItem": batches.batch_write_item,
    "CancelBulkOperation": bulk.cancel_bulk_operation,
    "CreateBackup": backups.create_backup,
    "CreateGlobalTable": replicas.create_global_table,
    "CreateTable": tables.create_table,
    "DeleteBackup": backups.delete_backup,
    "DeleteItem": items.delete_item,
    "DeleteResourcePolicy": policies.delete_resource_policy,
    "DeleteTable": tables.delete_table,
    "DescribeBackup": backups.describe_backup,
    "DescribeBulkOperation": bulk.describe_bulk_operation,
    "DescribeContinuousBackups": recovery.describe_continuous_backups,
    "DescribeContributorInsights": insights.describe_contributor_insights,
    "DescribeEndpoints": tables.describe_endpoints,
    "DescribeExport": exports.describe_export,
    "DescribeGlobalTable": replicas.describe_global_table,
    "DescribeGlobalTableSettings": replicas.describe_global_table_settings,
    "DescribeImport": imports.describe_import,
    "DescribeKinesisStreamingDestination": kinesis.describe_kinesis_streaming_destination,
    "DescribeLimits": tables.describe_limits,
    "DescribeStream": streams.describe_stream,
    "DescribeTable": tables.describe_table,
    "DescribeTableReplicaAutoScaling": replicas.describe_table_replica_auto_scaling,
    "DescribeTimeToLive": ttl.describe_time_to_live,
    "DisableKinesisStreamingDestination": kinesis.disable_kinesis_streaming_destination,
    "EnableKinesisStreamingDestination": kinesis.enable_kinesis_streaming_destination,
    "ExecuteStatement": statements.execute_statement,
    "ExecuteTransaction": statements.execute_transaction,
    "ExportTableToPointInTime": exports.export_table_to_point_in_time,
    "GetItem": items.get_item,
    "GetRecords": streams.get_records,
    "GetResourcePolicy": policies.get_resource_policy,
    "GetShardIterator": streams.get_shard_iterator,
    "ImportTable": imports.import_table,
    "ListBackups": backups.list_backups,
    "ListBulkOperations": bulk.list_bulk_operations,
    "ListContributorInsights": insights.list_contributor_insights,
    "ListExports": exports.list_exports,
    "ListGlobalTables": replicas.list_global_tables,
    "ListImports": imports.list_imports,
    "ListItemVersions": recovery.list_item_versions,
    "ListStreams": streams.list_streams,
    "ListTables": tables.list_tables,
    "ListTagsOfResource": tags.list_tags_of_resource,
    "PutItem": items.put_item,
    "PutResourcePolicy": policies.put_resource_policy,
    "Query": queries.query,
    "RestoreTableFromBackup": restores.restore_table_from_backup,
    "RestoreTableToPointInTime": restores.restore_table_to_point_in_time,
    "Scan": queries.scan,
    "SearchVectors": vectors.search_vectors,
    "StartBulkPutItems": bulk.start_bulk_put_items,
    "TagResource": tags.tag_resource,
    "TransactGetItems": transactions.transact_get_items,
    "TransactWriteItems": transactions.transact_write_items,
    "UntagResource": tags.untag_resource,
    "UpdateContinuousBackups": recovery.update_continuous_backups,
    "UpdateContributorInsights": insights.update_contributor_insights,
    "UpdateGlobalTable": replicas.update_global_table,
    "UpdateGlobalTableSettings": replicas.update_global_table_settings,
    "UpdateItem": items.update_item,
    "UpdateKinesisStreamingDestination": kinesis.update_kinesis_streaming_destination,
    "UpdateTable": table_updates.update_table,
    "UpdateTableReplicaAutoScaling": replicas.update_table_replica_auto_scaling,
    "UpdateTimeToLive": ttl.update_time_to_live,
}

# What one slice of a background job does: it gets the job's state, works a few milliseconds in the open transaction and
# returns the state to continue from, None when the job is done.
STEPS: dict[str, Callable[[Services, dict[str, Any]], dict[str, Any] | None]] = {
    backups.BACKUP_JOB: backups.backup_step,
    bulk.BULK_JOB: bulk.bulk_step,
    exports.EXPORT_JOB: exports.export_step,
    imports.IMPORT_JOB: imports.import_step,
    restores.RESTORE_JOB: restores.restore_step,
}

# How a job that failed unexpectedly is marked as failed.
ABANDONED: dict[str, Callable[[Services, dict[str, Any]], None]] = {
    backups.BACKUP_JOB: backups.fail_backup,
    bulk.BULK_JOB: bulk.fail_bulk,
    exports.EXPORT_JOB: exports.fail_export,
    imports.IMPORT_JOB: imports.fail_import,
    restores.RESTORE_JOB: restores.fail_restore,
}

__all__ = ["ABANDONED", "HANDLERS", "STEPS", "EmulatedCall", "OperationCall", "Services"]
