"""The registry of operations: those of DynamoDB and DynamoDB Streams, and Tavola's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from tavola.limits import ITEM_REQUEST_BYTES_MAX, REQUEST_BYTES_MAX, SMALL_REQUEST_BYTES_MAX
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
    vectors,
)
from tavola.protocol.fields import Shape, check_nothing, check_table_name
from tavola.protocol.message_style import MessageStyle

Service: TypeAlias = Literal["dynamodb", "streams", "tavola"]
Check: TypeAlias = Callable[[Any, MessageStyle], None]

TARGET_PREFIXES: dict[Service, str] = {
    "dynamodb": "DynamoDB_20120810.",
    "streams": "DynamoDBStreams_20120810.",
    "tavola": "Tavola_20261116.",  # operations that AWS does not have
}


class Operation(Struct, frozen=True):
    """One operation: its request type, and the check that needs nothing but the request."""

    request: type[Shape]
    check: Check = check_nothing
    service: Service = "dynamodb"
    check_body: Callable[[bytes], None] | None = None  # of the raw body, where AWS has a separate front end
    body_bytes_max: int = SMALL_REQUEST_BYTES_MAX

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self.request.__name__.removesuffix("Request")

    @property
    def target(self) -> str:
        """The value of the X-Amz-Target header."""
        return TARGET_PREFIXES[self.service] + self.name


_OPERATIONS = (
    Operation(statements.BatchExecuteStatementRequest, body_bytes_max=REQUEST_BYTES_MAX),
    Operation(batches.BatchGetItemRequest, batches.check_batch_get, body_bytes_max=ITEM_REQUEST_BYTES_MAX),
    Operation(batches.BatchWriteItemRequest, batches.check_batch_write, body_bytes_max=REQUEST_BYTES_MAX),
    Operation(transfers.CancelBulkOperationRequest, transfers.check_bulk_arn),
    Operation(backups.CreateBackupRequest, backups.check_create_backup),
    Operation(replicas.CreateGlobalTableRequest, replicas.check_global_table),
    Operation(tables.CreateTableRequest, definitions.check_create),
    Operation(backups.DeleteBackupRequest),
    Operation(
        items.DeleteItemRequest,
        partial(items.check_put_or_delete, "DeleteItem"),
        body_bytes_max=ITEM_REQUEST_BYTES_MAX,
    ),
    Operation(policies.DeleteResourcePolicyRequest, policies.check_policy),
    Operation(tables.DeleteTableRequest, check_table_name),
    Operation(backups.DescribeBackupRequest),
    Operation(transfers.DescribeBulkOperationRequest, transfers.check_bulk_arn),
    Operation(backups.DescribeContinuousBackupsRequest, check_table_name),
    Operation(insights.DescribeContributorInsightsRequest, check_table_name),
    Operation(tables.DescribeEndpointsRequest),
    Operation(transfers.DescribeExportRequest, transfers.check_describe_export),
    Operation(replicas.DescribeGlobalTableRequest, replicas.check_global_table),
    Operation(replicas.DescribeGlobalTableSettingsRequest, replicas.check_global_table),
    Operation(transfers.DescribeImportRequest, transfers.check_describe_import),
    Operation(kinesis.DescribeKinesisStreamingDestinationRequest, check_table_name),
    Operation(tables.DescribeLimitsRequest),
    Operation(streams.DescribeStreamRequest, streams.check_describe_stream, service="streams"),
    Operation(tables.DescribeTableRequest, check_table_name),
    Operation(replicas.DescribeTableReplicaAutoScalingRequest, check_table_name),
    Operation(tables.DescribeTimeToLiveRequest, check_table_name),
    Operation(kinesis.DisableKinesisStreamingDestinationRequest, kinesis.check_disable),
    Operation(kinesis.EnableKinesisStreamingDestinationRequest, check_table_name),
    Operation(statements.ExecuteStatementRequest, body_bytes_max=ITEM_REQUEST_BYTES_MAX),
    Operation(statements.ExecuteTransactionRequest, body_bytes_max=REQUEST_BYTES_MAX),
    Operation(transfers.ExportTableToPointInTimeRequest, transfers.check_export),
    Operation(items.GetItemRequest, items.check_get),
    Operation(streams.GetRecordsRequest, streams.check_get_records, service="streams"),
    Operation(policies.GetResourcePolicyRequest, policies.check_policy),
    Operation(streams.GetShardIteratorRequest, streams.check_iterator, service="streams"),
    Operation(transfers.ImportTableRequest, transfers.check_import),
    Operation(backups.ListBackupsRequest, backups.check_list_backups),
    Operation(transfers.ListBulkOperationsRequest),
    Operation(insights.ListContributorInsightsRequest, check_table_name),
    Operation(transfers.ListExportsRequest),
    Operation(replicas.ListGlobalTablesRequest, replicas.check_list_global_tables),
    Operation(transfers.ListImportsRequest),
    Operation(items.ListItemVersionsRequest, items.check_get, service="tavola"),
    Operation(streams.ListStreamsRequest, streams.check_list_streams, service="streams"),
    Operation(tables.ListTablesRequest, tables.check_list),
    Operation(tags.ListTagsOfResourceRequest, tags.check_list_tags),
    Operation(
        items.PutItemRequest,
        partial(items.check_put_or_delete, "PutItem"),
        body_bytes_max=ITEM_REQUEST_BYTES_MAX,
    ),
    Operation(policies.PutResourcePolicyRequest, policies.check_put_policy),
    Operation(queries.QueryRequest, queries.check_query, body_bytes_max=ITEM_REQUEST_BYTES_MAX),
    Operation(backups.RestoreTableFromBackupRequest, backups.check_restore_backup),
    Operation(backups.RestoreTableToPointInTimeRequest, backups.check_restore_time),
    Operation(queries.ScanRequest, queries.check_scan, body_bytes_max=ITEM_REQUEST_BYTES_MAX),
    Operation(vectors.SearchVectorsRequest, vectors.check_search, check_body=vectors.check_body),
    Operation(transfers.StartBulkPutItemsRequest, transfers.check_bulk, body_bytes_max=REQUEST_BYTES_MAX),
    Operation(tags.TagResourceRequest, tags.check_tag),
    Operation(
        transactions.TransactGetItemsRequest,
        transactions.check_transact_get,
        body_bytes_max=ITEM_REQUEST_BYTES_MAX,
    ),
    Operation(
        transactions.TransactWriteItemsRequest,
        transactions.check_transact_write,
        body_bytes_max=REQUEST_BYTES_MAX,
    ),
    Operation(tags.UntagResourceRequest, tags.check_untag),
    Operation(backups.UpdateContinuousBackupsRequest, check_table_name),
    Operation(insights.UpdateContributorInsightsRequest, check_table_name),
    Operation(replicas.UpdateGlobalTableRequest, replicas.check_update_global_table),
    Operation(replicas.UpdateGlobalTableSettingsRequest, replicas.check_global_table),
    Operation(items.UpdateItemRequest, items.check_update, body_bytes_max=ITEM_REQUEST_BYTES_MAX),
    Operation(kinesis.UpdateKinesisStreamingDestinationRequest, kinesis.check_update),
    Operation(tables.UpdateTableRequest, table_changes.check_update_table),
    Operation(replicas.UpdateTableReplicaAutoScalingRequest, check_table_name),
    Operation(tables.UpdateTimeToLiveRequest, check_table_name),
)

OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _OPERATIONS}
