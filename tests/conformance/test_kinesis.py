"""Kinesis streaming destinations: AWS's responses if the Kinesis stream is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.conformance.requests import refused

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]

ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"
OTHER = "arn:aws:kinesis:us-east-1:000000000000:stream/others"
STATE = "Table is not in a valid state to enable Kinesis Streaming Destination: "


def _describe_settings(client: DynamoDBClient, table: str) -> list[dict[str, Any]]:
    found: Any = client.describe_kinesis_streaming_destination(TableName=table)
    assert found["TableName"] == table
    return list(found["KinesisDataStreamDestinations"])


def test_a_table_has_no_destination_at_first(client: DynamoDBClient, tables: Tables) -> None:
    """The list is present and empty."""
    assert _describe_settings(client, tables()) == []


def test_a_missing_stream_fails_afterwards(client: DynamoDBClient, tables: Tables) -> None:
    """Enabling is accepted at once; the description reports the failure and its reason."""
    table = tables()

    answer: Any = client.enable_kinesis_streaming_destination(
        TableName=table,
        StreamArn=ARN,
        EnableKinesisStreamingConfiguration={"ApproximateCreationDateTimePrecision": "MICROSECOND"},
    )

    assert answer["DestinationStatus"] == "ENABLING"
    assert answer["StreamArn"] == ARN
    assert answer["EnableKinesisStreamingConfiguration"] == {
        "ApproximateCreationDateTimePrecision": "MICROSECOND"
    }
    (found,) = _describe_settings(client, table)
    assert found["StreamArn"] == ARN
    assert found["DestinationStatus"] == "ENABLE_FAILED"
    assert found["DestinationStatusDescription"].startswith(
        "User does not have a permission to use kinesis stream"
    )
    assert found["ApproximateCreationDateTimePrecision"] == "MICROSECOND"


def test_failures_gather_by_stream(client: DynamoDBClient, tables: Tables) -> None:
    """Another attempt with the same stream replaces the first; another stream is listed beside it."""
    table = tables()
    for arn in (ARN, OTHER, ARN):
        client.enable_kinesis_streaming_destination(TableName=table, StreamArn=arn)

    assert [each["StreamArn"] for each in _describe_settings(client, table)] == [ARN, OTHER]


def test_only_a_working_destination_is_changed(client: DynamoDBClient, tables: Tables) -> None:
    """Disabling and updating require an ACTIVE destination; the error is never that it was not found."""
    table = tables()
    client.enable_kinesis_streaming_destination(TableName=table, StreamArn=ARN)

    disabled = refused(client.disable_kinesis_streaming_destination, TableName=table, StreamArn=ARN)
    updated = refused(
        client.update_kinesis_streaming_destination,
        TableName=table,
        StreamArn=OTHER,
        UpdateKinesisStreamingConfiguration={"ApproximateCreationDateTimePrecision": "MILLISECOND"},
    )

    assert disabled.message == (
        f"{STATE}KinesisStreamingDestination must be ACTIVE to perform DISABLE operation."
    )
    assert updated.message == (
        f"{STATE}Kinesis streaming is not in ACTIVE state. Updates are only allowed in ACTIVE state. "
        f"TableName: {table}, kdsArn: {OTHER}"
    )


def test_requests_that_say_nothing_or_too_much_are_refused(client: DynamoDBClient, tables: Tables) -> None:
    """An update needs a setting, and disabling takes none."""
    table = tables()
    empty = refused(client.update_kinesis_streaming_destination, TableName=table, StreamArn=ARN)
    full = refused(
        client.disable_kinesis_streaming_destination,
        TableName=table,
        StreamArn=ARN,
        EnableKinesisStreamingConfiguration={},
    )

    assert empty.message == (
        "Streaming destination cannot be updated with given parameters: UpdateKinesisStreamingConfiguration "
        "cannot be null or contain only null values"
    )
    assert full.message == "Stream cannot be disabled using EnableKinesisStreamingConfiguration parameters"


def test_a_missing_table_is_not_found(client: DynamoDBClient, fresh: Callable[[], str]) -> None:
    """The table is looked up first."""
    name = fresh()
    sentence = f"Requested resource not found: Table: {name} not found"

    for call, more in (
        (client.describe_kinesis_streaming_destination, {}),
        (client.enable_kinesis_streaming_destination, {"StreamArn": ARN}),
        (client.disable_kinesis_streaming_destination, {"StreamArn": ARN}),
    ):
        result = refused(call, TableName=name, **more)
        assert (result.code, result.message) == ("ResourceNotFoundException", sentence)
