"""What is given up is written down as AWS's on-failure document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tavola.triggers import DeadLetterFile, TriggerFileRefused
from tavola.triggers.dead_letters import BatchOrigin, failure_document
from tavola.triggers.outcomes import Discard
from tests.triggers.fake import ARN, START_S, sequence
from tests.triggers.records import kept

ORIGIN = BatchOrigin(ARN, "shardId-1", "arn:aws:lambda:eu-south-1:123456789012:function:projector")


def test_the_document_is_the_one_of_aws() -> None:
    """It names the function, the reason and the stretch of the stream, and not the records."""
    discard = Discard((kept(1), kept(2, at_s=START_S + 5)), "RetryAttemptsExhausted", 3, "ValueError: x")
    document = failure_document(discard, ORIGIN, request_id="r-1", now_s=START_S + 9.25, payload=False)

    assert document == {
        "requestContext": {
            "requestId": "r-1",
            "functionArn": ORIGIN.function_arn,
            "condition": "RetryAttemptsExhausted",
            "approximateInvokeCount": 3,
        },
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "version": "1.0",
        "timestamp": "2023-11-14T22:13:29.250Z",
        "DDBStreamBatchInfo": {
            "shardId": "shardId-1",
            "startSequenceNumber": sequence(1),
            "endSequenceNumber": sequence(2),
            "approximateArrivalOfFirstRecord": "2023-11-14T22:13:20Z",
            "approximateArrivalOfLastRecord": "2023-11-14T22:13:25Z",
            "batchSize": 2,
            "streamArn": ARN,
        },
    }


def test_records_can_be_kept_too() -> None:
    """As for a destination in S3, the event that failed can be added."""
    discard = Discard((kept(1),), "RecordAgeExceeded", 0)
    document = failure_document(discard, ORIGIN, request_id="r", now_s=START_S, payload=True)

    assert document["payload"]["Records"][0]["dynamodb"]["SequenceNumber"] == sequence(1)
    assert "responseContext" not in document  # no function was asked


def test_lines_are_added_and_a_torn_end_is_cut(tmp_path: Path) -> None:
    """What a killed process left of a line is removed; its records come again."""
    path = tmp_path / "dead.jsonl"
    with DeadLetterFile(path) as kept_letters:
        kept_letters.append({"requestContext": {"n": 1}})
    whole = path.read_bytes()
    for end in range(len(whole), 2 * len(whole)):
        path.write_bytes((whole + whole)[:end])
        with DeadLetterFile(path) as again:
            again.append({"requestContext": {"n": 2}})
        lines = [json.loads(line)["requestContext"]["n"] for line in path.read_text().splitlines()]
        assert lines == [1, 2]


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    """A file whose last line is not a dead letter is not cut."""
    path = tmp_path / "notes.txt"
    path.write_text("precious")

    with pytest.raises(TriggerFileRefused, match="not a dead letter"):
        DeadLetterFile(path)
    assert path.read_text() == "precious"


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    """The sentence names the file and the reason."""
    with pytest.raises(TriggerFileRefused, match="No such file"):
        DeadLetterFile(tmp_path / "nowhere" / "dead.jsonl")
