"""ListStreams, DescribeStream, GetShardIterator, GetRecords."""

from __future__ import annotations

from typing import Any

from tavola.engine.operations.call import ITERATOR, OperationCall, encode, render_list
from tavola.engine.streams import (
    Stream,
    StreamShard,
    id_of_sequence,
    render_record,
    sequence_number,
)
from tavola.limits import (
    STREAM_ITERATOR_LIFE_S,
    STREAM_RECORDS_MAX,
    STREAM_RESPONSE_BYTES_MAX,
    STREAM_RETENTION_S,
    STREAM_SHARDS_MAX,
    STREAMS_LISTED_MAX,
)
from tavola.protocol.arns import parse_resource_arn
from tavola.protocol.faults import (
    ExpiredIteratorFault,
    ResourceNotFoundFault,
    TrimmedDataAccessFault,
    ValidationFault,
)
from tavola.protocol.streams import (
    DescribeStreamRequest,
    GetRecordsRequest,
    GetShardIteratorRequest,
    ListStreamsRequest,
)

_TRIMMED = (
    "The operation attempted to read past the oldest stream record in a shard. Start again with TRIM_HORIZON."
)


def list_streams(call: OperationCall, request: ListStreamsRequest) -> bytes:
    """Return the caller's streams, including those disabled within a day, by table and label."""
    streams = sorted(
        (
            stream
            for stream in call.services.streams
            if stream.scope == call.scope and request.table_name in (None, stream.table)
        ),
        key=lambda stream: (stream.table, stream.label),
    )
    if request.exclusive_start_stream_arn is not None:
        start = parse_resource_arn(request.exclusive_start_stream_arn)
        if start is None or start.kind != "stream" or start.label is None:
            raise ValidationFault(f"Invalid StreamArn: {request.exclusive_start_stream_arn}")
        after = (start.table, start.label)
        streams = [stream for stream in streams if (stream.table, stream.label) > after]
    limit = request.limit or STREAMS_LISTED_MAX
    answer: dict[str, Any] = {
        "Streams": [
            {"StreamArn": stream.arn, "TableName": stream.table, "StreamLabel": stream.label}
            for stream in streams[:limit]
        ]
    }
    if len(streams) > limit:
        answer["LastEvaluatedStreamArn"] = streams[limit - 1].arn
    return encode(answer)


def describe_stream(call: OperationCall, request: DescribeStreamRequest) -> bytes:
    """Return a stream's settings and shards in the order of their ids, parents before children."""
    stream = _stream(call, request.stream_arn)
    shards = sorted(stream.shards, key=lambda shard: shard.id)
    shard_filter = request.shard_filter
    if shard_filter is not None and shard_filter.shard_id is not None:
        shards = [shard for shard in shards if shard.parent == shard_filter.shard_id]
    start = request.exclusive_start_shard_id
    if start is not None:  # a bound, which need not be an id of this stream
        shards = [shard for shard in shards if shard.id > start]
    limit = min(request.limit or STREAM_SHARDS_MAX, STREAM_SHARDS_MAX)
    described: dict[str, Any] = {
        "StreamArn": stream.arn,
        "StreamLabel": stream.label,
        "StreamStatus": "ENABLED" if stream.closed_at_s is None else "DISABLED",
        "StreamViewType": stream.view,
        "CreationRequestDateTime": stream.created_at_s,
        "TableName": stream.table,
        "KeySchema": [{"AttributeName": stream.hash, "KeyType": "HASH"}]
        + ([{"AttributeName": stream.range, "KeyType": "RANGE"}] if stream.range else []),
        "Shards": [_describe_shard(stream, shard) for shard in shards[:limit]],
    }
    if len(shards) > limit:
        described["LastEvaluatedShardId"] = shards[limit - 1].id
    return encode({"StreamDescription": described})


def get_shard_iterator(call: OperationCall, request: GetShardIteratorRequest) -> bytes:
    """Return an iterator for a position in a shard; it is valid for fifteen minutes and for this caller."""
    stream = _stream(call, request.stream_arn)
    shard = stream.shard(request.shard_id)
    if shard is None:
        raise ResourceNotFoundFault(
            f"Requested resource not found: Shard: {request.shard_id} in Stream: {stream.arn} not found"
        )
    after = _start(call, stream, shard, request)
    return encode({"ShardIterator": _iterator(call, stream, shard, after)})


def get_records(call: OperationCall, request: GetRecordsRequest) -> bytes:
    """Return the records after an iterator's position, and the next iterator; none at the end of a shard."""
    opened = call.services.token_signer.open(ITERATOR, call.scope, request.shard_iterator)
    if opened is None:
        raise ValidationFault("Invalid ShardIterator")
    if call.services.time.elapsed_s() - opened["at"] > STREAM_ITERATOR_LIFE_S:
        raise ExpiredIteratorFault("Iterator expired. Get a new one with GetShardIterator.")
    stream = call.services.streams.find(opened["stream"])
    shard = None if stream is None else stream.shard(opened["shard"])
    if stream is None or shard is None:
        raise ResourceNotFoundFault()
    after: int = opened["after"]
    log = call.services.streams.log(stream)
    if after < _horizon(call, stream):
        raise TrimmedDataAccessFault(_TRIMMED)
    limit = request.limit or STREAM_RECORDS_MAX
    changes, upto = call.read_shard(log, shard, after, limit)
    records: list[bytes] = []
    total = 0
    for change in changes:
        record, size = render_record(stream, change)
        if records and total + size > STREAM_RESPONSE_BYTES_MAX:
            upto = changes[len(records) - 1].id
            break
        records.append(record)
        total += size
    members: dict[str, Any] = {}
    if shard.last is None or upto < shard.last:
        members["NextShardIterator"] = _iterator(call, stream, shard, upto)
    return render_list("Records", records, members)


def _stream(call: OperationCall, arn: str) -> Stream:
    parts = parse_resource_arn(arn)
    if parts is None or parts.kind != "stream":
        raise ValidationFault(f"Invalid StreamArn: {arn}")
    call.check_own_resource(parts)
    stream = call.services.streams.find(arn)
    if stream is None:
        raise ResourceNotFoundFault(f"Requested resource not found: Stream: {arn} not found")
    return stream


def _describe_shard(stream: Stream, shard: StreamShard) -> dict[str, Any]:
    numbers = {"StartingSequenceNumber": sequence_number(shard.first)}
    if shard.last is not None:
        numbers["EndingSequenceNumber"] = sequence_number(max(shard.first, shard.last))
    described: dict[str, Any] = {"ShardId": shard.id, "SequenceNumberRange": numbers}
    if shard.parent is not None and stream.shard(shard.parent) is not None:
        described["ParentShardId"] = shard.parent
    return described


def _start(call: OperationCall, stream: Stream, shard: StreamShard, request: GetShardIteratorRequest) -> int:
    """Return the log id that an iterator starts after."""
    horizon = max(_horizon(call, stream), shard.first - 1)
    log = call.services.streams.log(stream)
    match request.shard_iterator_type:
        case "TRIM_HORIZON":
            return horizon
        case "LATEST":
            return max(horizon, call.latest_position(log)) if shard.last is None else shard.last
        case "AT_TIMESTAMP":
            assert request.timestamp is not None, "`parse` refuses this type without a time"
            return max(horizon, call.position_before(log, int(request.timestamp * 1_000_000)))
        case _:
            return _start_at_number(call, stream, shard, request, horizon)


def _start_at_number(
    call: OperationCall, stream: Stream, shard: StreamShard, request: GetShardIteratorRequest, horizon: int
) -> int:
    assert request.sequence_number is not None, "`parse` refuses this type without a number"
    id_ = id_of_sequence(request.sequence_number)
    if id_ is None or id_ > (shard.last or call.services.streams.log(stream).span()[1] + 1):
        raise ValidationFault(
            f"Invalid SequenceNumber {request.sequence_number}: it is not one of shard {shard.id}"
        )
    at = request.shard_iterator_type == "AT_SEQUENCE_NUMBER"
    after = id_ - 1 if at else id_
    if after < horizon:
        raise TrimmedDataAccessFault(_TRIMMED)
    return after


def _horizon(call: OperationCall, stream: Stream) -> int:
    """Return the id of the last change that is too old to be read."""
    at_us = call.services.time.log_us_ago(STREAM_RETENTION_S)
    return call.services.streams.log(stream).id_at(at_us)


def _iterator(call: OperationCall, stream: Stream, shard: StreamShard, after: int) -> str:
    return call.services.token_signer.sign(
        ITERATOR,
        call.scope,
        {"stream": stream.arn, "shard": shard.id, "after": after, "at": call.services.time.elapsed_s()},
    )
