"""Requests of the batch operations, and the checks that need no table."""

from __future__ import annotations

from typing import Annotated

from tavola.limits import BATCH_GET_KEYS_MAX, BATCH_WRITE_REQUESTS_MAX
from tavola.protocol.faults import ValidationFault
from tavola.protocol.fields import (
    BATCH_GET_TABLES,
    BATCH_KEYS,
    BATCH_WRITE_TABLES,
    BATCH_WRITES,
    AttributeMap,
    AttributeNames,
    BatchTableName,
    ExpressionNames,
    NameInvalid,
    ReturnConsumedCapacity,
    ReturnItemCollectionMetrics,
    Shape,
    is_batch_table,
    mixed_parameters_error,
    names_without_expression,
)
from tavola.protocol.message_style import MessageStyle

_DATATYPES = "must contain exactly one of the supported datatypes"


class KeysAndAttributes(Shape, frozen=True, kw_only=True):
    """The keys to read from one table, and the read options."""

    keys: Annotated[list[AttributeMap], BATCH_KEYS]
    attributes_to_get: AttributeNames | None = None
    consistent_read: bool | None = None
    projection_expression: str | None = None
    expression_attribute_names: ExpressionNames | None = None


class BatchGetItemRequest(Shape, frozen=True, kw_only=True):
    """The request of BatchGetItem."""

    return_consumed_capacity: ReturnConsumedCapacity | None = None
    request_items: Annotated[dict[BatchTableName, KeysAndAttributes], BATCH_GET_TABLES]


class PutRequest(Shape, frozen=True, kw_only=True):
    """An item to put."""

    item: AttributeMap


class DeleteRequest(Shape, frozen=True, kw_only=True):
    """A key to delete."""

    key: AttributeMap


class WriteRequest(Shape, frozen=True, kw_only=True):
    """One write of a batch: a put or a delete."""

    delete_request: DeleteRequest | None = None
    put_request: PutRequest | None = None


class BatchWriteItemRequest(Shape, frozen=True, kw_only=True):
    """The request of BatchWriteItem."""

    return_consumed_capacity: ReturnConsumedCapacity | None = None
    return_item_collection_metrics: ReturnItemCollectionMetrics | None = None
    request_items: Annotated[
        dict[BatchTableName, Annotated[list[WriteRequest], BATCH_WRITES]], BATCH_WRITE_TABLES
    ]


def check_batch_get(request: BatchGetItemRequest, wording: MessageStyle) -> None:
    """Refuse a request that is invalid for any table."""
    key_count = 0
    for table, read in request.request_items.items():
        if not is_batch_table(table):
            raise NameInvalid
        key_count += len(read.keys)
    tables = request.request_items.values()
    # AWS refuses mixing over the whole request, even if each table uses one kind only.
    legacy = next((r.attributes_to_get for r in tables if r.attributes_to_get is not None), None)
    expression = next((r.projection_expression for r in tables if r.projection_expression is not None), None)
    text = mixed_parameters_error([("AttributesToGet", legacy)], [("ProjectionExpression", expression)])
    if text is not None:
        raise ValidationFault(text)
    for read in tables:
        if read.expression_attribute_names is not None and read.projection_expression is None:
            raise ValidationFault(names_without_expression())
    if key_count > BATCH_GET_KEYS_MAX:
        raise ValidationFault("Too many items requested for the BatchGetItem call")


def check_batch_write(request: BatchWriteItemRequest, wording: MessageStyle) -> None:
    """Refuse a request that is invalid for any table."""
    write_count = 0
    for table, writes in request.request_items.items():
        if not is_batch_table(table):
            raise NameInvalid
        write_count += len(writes)
        for write in writes:
            if write.put_request is None:
                if write.delete_request is None:
                    raise ValidationFault(f"Supplied AttributeValue is empty, {_DATATYPES}")
            elif write.delete_request is not None:
                raise ValidationFault(
                    f"Supplied AttributeValue has more than one datatypes set, {_DATATYPES}"
                )
    if write_count > BATCH_WRITE_REQUESTS_MAX:
        raise ValidationFault("Too many items requested for the BatchWriteItem call")
