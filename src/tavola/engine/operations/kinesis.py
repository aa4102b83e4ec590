"""Kinesis streaming destinations, answered as AWS does if the Kinesis stream does not exist.

AWS accepts any stream ARN and reports later, in the description, that it could not be used. There is no Kinesis here, so
every destination ends that way, and no program waits for records in vain.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tavola.engine.catalog import Destination, StoredTable
from tavola.engine.operations.call import OperationCall, encode
from tavola.engine.operations.tables import check_not_creating, find_table
from tavola.protocol.faults import ValidationFault
from tavola.protocol.kinesis import (
    DescribeKinesisStreamingDestinationRequest,
    DisableKinesisStreamingDestinationRequest,
    EnableKinesisStreamingDestinationRequest,
    UpdateKinesisStreamingDestinationRequest,
)

_STATE = "Table is not in a valid state to enable Kinesis Streaming Destination: "
_FAILED = (
    "User does not have a permission to use kinesis stream: Tavola has no Kinesis; read the table's own stream "
    "instead (StreamSpecification)"
)


def enable_kinesis_streaming_destination(
    call: OperationCall, request: EnableKinesisStreamingDestinationRequest
) -> bytes:
    """Accept a destination, which then fails.

    The response says ENABLING, the description shows the failure.
    """
    table = find_table(call, request.table_name)
    check_not_creating(call, table)
    settings = request.enable_kinesis_streaming_configuration
    precision = None if settings is None else settings.approximate_creation_date_time_precision
    others = tuple(stream for stream in table.definition.kinesis if stream.stream != request.stream_arn)
    destinations = (Destination(request.stream_arn, precision), *others)
    call.services.begin()
    call.services.catalog.change(table, msgspec.structs.replace(table.definition, kinesis=destinations))
    return encode(
        {
            "TableName": table.name,
            "StreamArn": request.stream_arn,
            "DestinationStatus": "ENABLING",
            "EnableKinesisStreamingConfiguration": {} if settings is None else msgspec.to_builtins(settings),
        }
    )


def disable_kinesis_streaming_destination(
    call: OperationCall, request: DisableKinesisStreamingDestinationRequest
) -> bytes:
    """Refuse: only an active destination can be disabled."""
    find_table(call, request.table_name)
    raise ValidationFault(f"{_STATE}KinesisStreamingDestination must be ACTIVE to perform DISABLE operation.")


def update_kinesis_streaming_destination(
    call: OperationCall, request: UpdateKinesisStreamingDestinationRequest
) -> bytes:
    """Refuse: only an active destination can be changed."""
    table = find_table(call, request.table_name)
    raise ValidationFault(
        f"{_STATE}Kinesis streaming is not in ACTIVE state. Updates are only allowed in ACTIVE state. TableName: "
        f"{table.name}, kdsArn: {request.stream_arn}"
    )


def describe_kinesis_streaming_destination(
    call: OperationCall, request: DescribeKinesisStreamingDestinationRequest
) -> bytes:
    """Return the destinations and their status."""
    table = find_table(call, request.table_name)
    return encode({"TableName": table.name, "KinesisDataStreamDestinations": _describe_destinations(table)})


def _describe_destinations(table: StoredTable) -> list[dict[str, Any]]:
    described = []
    for destination in table.definition.kinesis:
        members = {
            "StreamArn": destination.stream,
            "DestinationStatus": "ENABLE_FAILED",
            "DestinationStatusDescription": _FAILED,
        }
        if destination.precision is not None:
            members["ApproximateCreationDateTimePrecision"] = destination.precision
        described.append(members)
    return described
