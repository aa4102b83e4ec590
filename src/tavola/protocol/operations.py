"""Operations: every operation of DynamoDB and of its streams, by name.

Those that are served have a request; the others are known, so that they can be refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tavola.protocol import backups, batches, definitions, items, queries, tables, tags, transactions, ttl
from tavola.protocol.fields import Shape
from tavola.protocol.wording import Wording

Service: TypeAlias = Literal["dynamodb", "streams"]
Check: TypeAlias = Callable[[Any, Wording], None]

TARGET_PREFIXES: dict[Service, str] = {
    "dynamodb": "DynamoDB_20120810.",
    "streams": "DynamoDBStreams_20120810.",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: what it is called, what it is asked and what it refuses by the request alone."""

    name: str
    service: Service = "dynamodb"
    request: type[Shape] | None = None  # None: known, not served
    check: Check | None = None

    @property
    def target(self) -> str:
        """The value of the X-Amz-Target header."""
        return TARGET_PREFIXES[self.service] + self.name


_SERVED = (
    Operation("BatchGetItem", "dynamodb", batches.BatchGetItemRequest, batches.check_batch_get),
    Operation("BatchWriteItem", "dynamodb", batches.BatchWriteItemRequest, batches.check_batch_write),
    Operation("CreateTable", "dynamodb", tables.CreateTableRequest, definitions.check_create),
    Operation("DeleteItem", "dynamodb", items.DeleteItemRequest, items.check_delete),
    Operation("DeleteTable", "dynamodb", tables.DeleteTableRequest, tables.check_named),
    Operation(
        "DescribeContinuousBackups",
        "dynamodb",
        backups.DescribeContinuousBackupsRequest,
        backups.check_continuous,
    ),
    Operation("DescribeEndpoints", "dynamodb", tables.DescribeEndpointsRequest, tables.check_nothing),
    Operation("DescribeLimits", "dynamodb", tables.DescribeLimitsRequest, tables.check_nothing),
    Operation("DescribeTable", "dynamodb", tables.DescribeTableRequest, tables.check_named),
    Operation("DescribeTimeToLive", "dynamodb", ttl.DescribeTimeToLiveRequest, ttl.check_ttl),
    Operation("GetItem", "dynamodb", items.GetItemRequest, items.check_get),
    Operation("ListTables", "dynamodb", tables.ListTablesRequest, tables.check_list),
    Operation("ListTagsOfResource", "dynamodb", tags.ListTagsOfResourceRequest, tags.check_list_tags),
    Operation("PutItem", "dynamodb", items.PutItemRequest, items.check_put),
    Operation("Query", "dynamodb", queries.QueryRequest, queries.check_query),
    Operation("Scan", "dynamodb", queries.ScanRequest, queries.check_scan),
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
    Operation("UpdateItem", "dynamodb", items.UpdateItemRequest, items.check_update),
    Operation("UpdateTable", "dynamodb", tables.UpdateTableRequest, definitions.check_update_table),
    Operation("UpdateTimeToLive", "dynamodb", ttl.UpdateTimeToLiveRequest, ttl.check_ttl),
)

_KNOWN = """
BatchExecuteStatement CancelBulkOperation CreateBackup CreateGlobalTable DeleteBackup DeleteResourcePolicy
DescribeBackup DescribeBulkOperation DescribeContributorInsights DescribeExport DescribeGlobalTable
DescribeGlobalTableSettings DescribeImport DescribeKinesisStreamingDestination
DescribeTableReplicaAutoScaling DisableKinesisStreamingDestination EnableKinesisStreamingDestination
ExecuteStatement ExecuteTransaction ExportTableToPointInTime GetResourcePolicy ImportTable ListBackups
ListBulkOperations ListContributorInsights ListExports ListGlobalTables ListImports PutResourcePolicy
RestoreTableFromBackup RestoreTableToPointInTime SearchVectors StartBulkPutItems UpdateContinuousBackups
UpdateContributorInsights UpdateGlobalTable UpdateGlobalTableSettings UpdateKinesisStreamingDestination
UpdateTableReplicaAutoScaling
""".split()

_STREAMS = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")

OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in sorted(
        (*_SERVED, *map(Operation, _KNOWN), *(Operation(name, "streams") for name in _STREAMS)),
        key=lambda operation: operation.name,
    )
}
