"""A record goes to the handler in the shape of Lambda's event."""

from __future__ import annotations

from tavola.triggers.events import (
    Window,
    batch_bytes,
    batch_event,
    lambda_record,
    stream_record,
    window_event,
)
from tests.triggers.fake import ARN, change
from tests.triggers.records import kept, several


def test_a_record_is_written_as_lambda_writes_it() -> None:
    """Lambda adds the stream's ARN, and keeps the rest as the stream has it."""
    given = lambda_record(change(7), ARN)

    assert given == {**change(7), "eventSourceARN": ARN}


def test_the_identity_is_in_lower_case() -> None:
    """The API says PrincipalId and Type, the event principalId and type."""
    record = change(1, userIdentity={"PrincipalId": "dynamodb.amazonaws.com", "Type": "Service"})

    assert lambda_record(record, ARN)["userIdentity"] == {
        "type": "Service",
        "principalId": "dynamodb.amazonaws.com",
    }
    assert "userIdentity" not in lambda_record(change(1), ARN)


def test_the_region_comes_from_the_stream_where_a_record_has_none() -> None:
    """An event always names its region."""
    record = change(1)
    del record["awsRegion"]

    assert lambda_record(record, ARN)["awsRegion"] == "eu-south-1"


def test_each_event_is_new() -> None:
    """What a handler does to its event is not seen by the next try."""
    records = several(1, 2)
    batch_event(records)["Records"].clear()

    assert [record["eventID"] for record in batch_event(records)["Records"]] == ["event-1", "event-2"]


def test_the_size_of_a_batch_is_that_of_its_event() -> None:
    """The payload limit counts the JSON, which is counted without being written."""
    records = several(1, 2, 3)
    body = b'{"Records":[%b]}' % b",".join(record.body for record in records)

    assert batch_bytes(records) == len(body) + 1  # one comma more than there are


def test_a_partition_key_has_one_number_everywhere() -> None:
    """Lanes are chosen by the partition key alone, and alike in every process."""
    assert kept(1, "a").partition == kept(99, "a").partition == 1447843518
    assert kept(1, "a").partition != kept(1, "b").partition


def test_a_record_without_images_is_kept() -> None:
    """A KEYS_ONLY stream has keys and nothing else."""
    record = change(1)
    del record["dynamodb"]["NewImage"]
    found = stream_record(lambda_record(record, ARN), "id")

    assert "NewImage" not in batch_event([found])["Records"][0]["dynamodb"]


def test_a_window_is_told_with_its_state() -> None:
    """An event of a tumbling window has its bounds, the state so far, the shard, and whether it is the last."""
    event = window_event(several(1), Window(1_700_000_000, 1_700_000_060, b'{"n":1}'), "shard", ARN)

    assert len(event.pop("Records")) == 1
    assert event == {
        "window": {"start": "2023-11-14T22:13:20Z", "end": "2023-11-14T22:14:20Z"},
        "state": {"n": 1},
        "shardId": "shard",
        "eventSourceARN": ARN,
        "isFinalInvokeForWindow": False,
        "isWindowTerminatedEarly": False,
    }
