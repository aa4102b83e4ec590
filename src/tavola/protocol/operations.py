"""The registry of operations of DynamoDB and DynamoDB Streams.

Supported operations have a request type; the others are known by name, for a clear error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from tavola.protocol import (
    backups,
    batches,
    definitions,
    insights,
    items,
    kinesis,
    policies,
    queries,
    replicas,
    statements,
    streams,
    table_changes,
    tables,
    tags,
    transactions,
    transfers,
    ttl,
    vectors,
    versions,
)
from tavola.protocol.fields import Shape
from tavola.protocol.message_style import MessageStyle

Service: TypeAlias = Literal["dynamodb", "streams", "tavola"]
Check: TypeAlias = Callable[[Any, MessageStyle], None]

TARGET_PREFIXES: dict[Service, str] = {
    "dynamodb": "DynamoDB_20120810.",
    "streams": "DynamoDBStreams_20120810.",
    "tavola": "Tavola_20261116.",  # operations that AWS does not have
}


class Operation(Struct, frozen=True):
    """One operation: its name, request type, and the check that needs only the request."""

    name: str
    service: Service = "dynamodb"
    request: type[Shape] | None = None  # None: known but not supported
    check: Check | None = None
    front: Callable[[bytes], None] | None = (
        None  # check of the raw body, for operations that AWS serves from a separate endpoint
    )

    @property
    def target(self) -> str:
        """The value of the X-Amz-Target header."""
        return TARGET_PREFIXES[self.service] + self.name


_SERVED = (
    Operation(
        "BatchExecuteStatement", "dynamodb", statements.BatchExecuteStatementRequest, statements.check_batch
    ),
    Operation("BatchGetItem", "dynamodb", batches.BatchGetItemRequest, batches.check_batch_get),
    Operation("BatchWriteItem", "dynamodb", batches.BatchWriteItemRequest, batches.check_batch_write),
    Operation(
        "CancelBulkOperation", "dynamodb", transfers.CancelBulkOperationRequest, transfers.check_bulk_arn
    ),
    Operation("CreateBackup", "dynamodb", backups.CreateBackupRequest, backups.check_create_backup),
    Operation(
        "CreateGlobalTable", "dynamodb", replicas.CreateGlobalTableRequest, replicas.check_global_table
    ),
    Operation("CreateTable", "dynamodb", tables.CreateTableRequest, definitions.check_create),
    Operation("DeleteBackup", "dynamodb", backups.DeleteBackupRequest, backups.check_backup),
    Operation("DeleteItem", "dynamodb", items.DeleteItemRequest, items.check_delete),
    Operation(
        "DeleteResourcePolicy", "dynamodb", policies.DeleteResourcePolicyRequest, policies.check_policy
    ),
    Operation("DeleteTable", "dynamodb", tables.DeleteTableRequest, tables.check_named),
    Operation("DescribeBackup", "dynamodb", backups.DescribeBackupRequest, backups.check_backup),
    Operation(
        "DescribeBulkOperation", "dynamodb", transfers.DescribeBulkOperationRequest, transfers.check_bulk_arn
    ),
    Operation(
        "DescribeContinuousBackups",
        "dynamodb",
        backups.DescribeContinuousBackupsRequest,
        backups.check_continuous,
    ),
    Operation(
        "DescribeContributorInsights",
        "dynamodb",
        insights.DescribeContributorInsightsRequest,
        insights.check_insights,
    ),
    Operation("DescribeEndpoints", "dynamodb", tables.DescribeEndpointsRequest, tables.check_nothing),
    Operation("DescribeExport", "dynamodb", transfers.DescribeExportRequest, transfers.check_describe_export),
    Operation(
        "DescribeGlobalTable", "dynamodb", replicas.DescribeGlobalTableRequest, replicas.check_global_table
    ),
    Operation(
        "DescribeGlobalTableSettings",
        "dynamodb",
        replicas.DescribeGlobalTableSettingsRequest,
        replicas.check_global_table,
    ),
    Operation("DescribeImport", "dynamodb", transfers.DescribeImportRequest, transfers.check_describe_import),
    Operation(
        "DescribeKinesisStreamingDestination",
        "dynamodb",
        kinesis.DescribeKinesisStreamingDestinationRequest,
        kinesis.check_destination,
    ),
    Operation("DescribeLimits", "dynamodb", tables.DescribeLimitsRequest, tables.check_nothing),
    Operation("DescribeStream", "streams", streams.DescribeStreamRequest, streams.check_describe_stream),
    Operation("DescribeTable", "dynamodb", tables.DescribeTableRequest, tables.check_named),
    Operation(
        "DescribeTableReplicaAutoScaling",
        "dynamodb",
        replicas.DescribeTableReplicaAutoScalingRequest,
        replicas.check_auto_scaling,
    ),
    Operation("DescribeTimeToLive", "dynamodb", ttl.DescribeTimeToLiveRequest, ttl.check_ttl),
    Operation(
        "DisableKinesisStreamingDestination",
        "dynamodb",
        kinesis.DisableKinesisStreamingDestinationRequest,
        kinesis.check_disable,
    ),
    Operation(
        "EnableKinesisStreamingDestination",
        "dynamodb",
        kinesis.EnableKinesisStreamingDestinationRequest,
        kinesis.check_destination,
    ),
    Operation("ExecuteStatement", "dynamodb", statements.ExecuteStatementRequest, statements.check_statement),
    Operation(
        "ExecuteTransaction", "dynamodb", statements.ExecuteTransactionRequest, statements.check_transaction
    ),
    Operation(
        "ExportTableToPointInTime",
        "dynamodb",
        transfers.ExportTableToPointInTimeRequest,
        transfers.check_export,
    ),
    Operation("GetItem", "dynamodb", items.GetItemRequest, items.check_get),
    Operation("GetRecords", "streams", streams.GetRecordsRequest, streams.check_records),
    Operation("GetResourcePolicy", "dynamodb", policies.GetResourcePolicyRequest, policies.check_policy),
    Operation("GetShardIterator", "streams", streams.GetShardIteratorRequest, streams.check_iterator),
    Operation("ImportTable", "dynamodb", transfers.ImportTableRequest, transfers.check_import),
    Operation("ListBackups", "dynamodb", backups.ListBackupsRequest, backups.check_list_backups),
    Operation("ListBulkOperations", "dynamodb", transfers.ListBulkOperationsRequest, transfers.check_listing),
    Operation(
        "ListContributorInsights",
        "dynamodb",
        insights.ListContributorInsightsRequest,
        insights.check_insights,
    ),
    Operation("ListExports", "dynamodb", transfers.ListExportsRequest, transfers.check_listing),
    Operation(
        "ListGlobalTables", "dynamodb", replicas.ListGlobalTablesRequest, replicas.check_list_global_tables
    ),
    Operation("ListImports", "dynamodb", transfers.ListImportsRequest, transfers.check_listing),
    Operation("ListItemVersions", "tavola", versions.ListItemVersionsRequest, versions.check_versions),
    Operation("ListStreams", "streams", streams.ListStreamsRequest, streams.check_list_streams),
    Operation("ListTables", "dynamodb", tables.ListTablesRequest, tables.check_list),
    Operation("ListTagsOfResource", "dynamodb", tags.ListTagsOfResourceRequest, tags.check_list_tags),
    Operation("PutItem", "dynamodb", items.PutItemRequest, items.check_put),
    Operation("PutResourcePolicy", "dynamodb", policies.PutResourcePolicyRequest, policies.check_put_policy),
    Operation("Query", "dynamodb", queries.QueryRequest, queries.check_query),
    Operation(
        "RestoreTableFromBackup",
        "dynamodb",
        backups.RestoreTableFromBackupRequest,
        backups.check_restore_backup,
    ),
    Operation(
        "RestoreTableToPointInTime",
        "dynamodb",
        backups.RestoreTableToPointInTimeRequest,
        backups.check_restore_time,
    ),
    Operation("Scan", "dynamodb", queries.ScanRequest, queries.check_scan),
    Operation(
        "SearchVectors", "dynamodb", vectors.SearchVectorsRequest, vectors.check_search, vectors.check_body
    ),
    Operation("StartBulkPutItems", "dynamodb", transfers.StartBulkPutItemsRequest, transfers.check_bulk),
    Operation("TagResource", "dynamodb", tags.TagResourceRequest, tags.check_tag),
    Operation(
        "TransactGetItems", "dynamodb", transactions.TransactGetItemsRequest, transactions.check_transact_get
    ),
    Operation(
        "TransactWriteItems",
        "dynamodb",
        transactions.TransactWriteItemsRequest,
        transactions.check_transact_write,
    ),
    Operation("UntagResource", "dynamodb", tags.UntagResourceRequest, tags.check_untag),
    Operation(
        "UpdateContinuousBackups",
        "dynamodb",
        backups.UpdateContinuousBackupsRequest,
        backups.check_continuous,
    ),
    Operation(
        "UpdateContributorInsights",
        "dynamodb",
        insights.UpdateContributorInsightsRequest,
        insights.check_insights,
    ),
    Operation(
        "UpdateGlobalTable", "dynamodb", replicas.UpdateGlobalTableRequest, replicas.check_update_global_table
    ),
    Operation(
        "UpdateGlobalTableSettings",
        "dynamodb",
        replicas.UpdateGlobalTableSettingsRequest,
        replicas.check_global_table,
    ),
    Operation("UpdateItem", "dynamodb", items.UpdateItemRequest, items.check_update),
    Operation(
        "UpdateKinesisStreamingDestination",
        "dynamodb",
        kinesis.UpdateKinesisStreamingDestinationRequest,
        kinesis.check_update,
    ),
    Operation("UpdateTable", "dynamodb", tables.UpdateTableRequest, table_changes.check_update_table),
    Operation(
        "UpdateTableReplicaAutoScaling",
        "dynamodb",
        replicas.UpdateTableReplicaAutoScalingRequest,
        replicas.check_auto_scaling,
    ),
    Operation("UpdateTimeToLive", "dynamodb", ttl.UpdateTimeToLiveRequest, ttl.check_ttl),
)

OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in sorted(
        _SERVED,
        key=lambda operation: operation.name,
    )
}
