"""Requests of DynamoDB Streams."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from tavola.limits import STREAM_RECORDS_MAX, STREAMS_LISTED_MAX
from tavola.protocol.faults import ValidationFault
from tavola.protocol.fields import NameInvalid, PageLimit, Shape, StartTableName, Timestamp, is_start_table
from tavola.protocol.message_style import MessageStyle

StreamArn: TypeAlias = Annotated[str, msgspec.Meta(min_length=37, max_length=1024)]
ShardId: TypeAlias = Annotated[str, msgspec.Meta(min_length=28, max_length=65)]
SequenceNumber: TypeAlias = Annotated[str, msgspec.Meta(min_length=21, max_length=40)]
ShardIterator: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
ShardIteratorType: TypeAlias = Literal[
    "TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER", "AT_TIMESTAMP"
]


class ShardFilter(Shape, frozen=True, kw_only=True):
    """Selects the child shards of one shard."""

    type: Literal["CHILD_SHARDS"] | None = None
    shard_id: ShardId | None = None


class ListStreamsRequest(Shape, frozen=True, kw_only=True):
    """The request of ListStreams."""

    table_name: StartTableName | None = None
    limit: PageLimit | None = None
    exclusive_start_stream_arn: StreamArn | None = None


class DescribeStreamRequest(Shape, frozen=True, kw_only=True):
    """The request of DescribeStream."""

    stream_arn: StreamArn
    limit: PageLimit | None = None
    exclusive_start_shard_id: ShardId | None = None
    shard_filter: ShardFilter | None = None


class GetShardIteratorRequest(Shape, frozen=True, kw_only=True):
    """The request of GetShardIterator."""

    stream_arn: StreamArn
    shard_id: ShardId
    shard_iterator_type: ShardIteratorType
    sequence_number: SequenceNumber | None = None
    timestamp: Timestamp | None = None


class GetRecordsRequest(Shape, frozen=True, kw_only=True):
    """The request of GetRecords."""

    shard_iterator: ShardIterator
    limit: PageLimit | None = None


def check_list_streams(request: ListStreamsRequest, wording: MessageStyle) -> None:
    """Refuse an invalid table name, and a limit above the maximum."""
    if request.table_name is not None and not is_start_table(request.table_name):
        raise NameInvalid
    _check_limit(request.limit, STREAMS_LISTED_MAX)


def check_get_records(request: GetRecordsRequest, wording: MessageStyle) -> None:
    """Refuse a limit above the maximum."""
    _check_limit(request.limit, STREAM_RECORDS_MAX)


def _check_limit(limit: int | None, limit_max: int) -> None:
    """Refuse a limit above a maximum that AWS checks, although its model does not declare it."""
    if limit is not None and limit > limit_max:
        raise ValidationFault(
            f"1 validation error detected: Value '{limit}' at 'limit' failed to satisfy constraint: "
            f"Member must have value less than or equal to {limit_max}"
        )


def check_describe_stream(request: DescribeStreamRequest, wording: MessageStyle) -> None:
    """Refuse an incomplete shard filter."""
    shards = request.shard_filter
    if shards is not None and (shards.type is None) != (shards.shard_id is None):
        raise ValidationFault(
            "One or more parameter values were invalid: ShardFilter must have both Type and ShardId"
        )


def check_iterator(request: GetShardIteratorRequest, wording: MessageStyle) -> None:
    """Refuse an iterator type without its start position, or with one that it does not take."""
    by_number = request.shard_iterator_type in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER")
    by_time = request.shard_iterator_type == "AT_TIMESTAMP"
    for required, present, name in (
        (by_number, request.sequence_number is not None, "SequenceNumber"),
        (by_time, request.timestamp is not None, "Timestamp"),
    ):
        if required and not present:
            raise ValidationFault(
                f"One or more parameter values were invalid: {name} must be provided when ShardIteratorType is "
                f"{request.shard_iterator_type}"
            )
        if present and not required:
            raise ValidationFault(
                f"One or more parameter values were invalid: {name} must not be provided when "
                f"ShardIteratorType is {request.shard_iterator_type}"
            )
