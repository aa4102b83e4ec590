"""Operations: request to response, one function an operation, by the nouns of the protocol.

Holds what each operation does once its request has been parsed: admit, compile, look up, stage, write,
answer. Knows how the rooms below fit together and nothing of HTTP; the table below is its door.
"""

from collections.abc import Callable
from typing import Any

from tavola.engine.operations.batches import batch_get_item, batch_write_item
from tavola.engine.operations.call import Call, Services
from tavola.engine.operations.items import delete_item, get_item, put_item, update_item
from tavola.engine.operations.queries import query, scan
from tavola.engine.operations.table_updates import update_table
from tavola.engine.operations.tables import (
    create_table,
    delete_table,
    describe_continuous_backups,
    describe_endpoints,
    describe_limits,
    describe_table,
    list_tables,
)
from tavola.engine.operations.tags import list_tags_of_resource, tag_resource, untag_resource
from tavola.engine.operations.transactions import transact_get_items, transact_write_items
from tavola.engine.operations.ttl import describe_time_to_live, update_time_to_live

HANDLERS: dict[str, Callable[[Call, Any], bytes]] = {
    "BatchGetItem": batch_get_item,
    "BatchWriteItem": batch_write_item,
    "CreateTable": create_table,
    "DeleteItem": delete_item,
    "DeleteTable": delete_table,
    "DescribeContinuousBackups": describe_continuous_backups,
    "DescribeEndpoints": describe_endpoints,
    "DescribeLimits": describe_limits,
    "DescribeTable": describe_table,
    "DescribeTimeToLive": describe_time_to_live,
    "GetItem": get_item,
    "ListTables": list_tables,
    "ListTagsOfResource": list_tags_of_resource,
    "PutItem": put_item,
    "Query": query,
    "Scan": scan,
    "TagResource": tag_resource,
    "TransactGetItems": transact_get_items,
    "TransactWriteItems": transact_write_items,
    "UntagResource": untag_resource,
    "UpdateItem": update_item,
    "UpdateTable": update_table,
    "UpdateTimeToLive": update_time_to_live,
}

__all__ = ["HANDLERS", "Call", "Services"]
