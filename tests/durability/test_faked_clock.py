"""A real server under a clock of the system that jumps: faketime changes what the process sees, also while it runs.

The measuring clocks stay as they are, as when an administrator sets the time.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tavola.protocol.faults import Fault
from tests.durability.serving import PROGRAM, Ask, serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.skipif(shutil.which("faketime") is None, reason="faketime is not installed"),
]

TABLE: dict[str, Any] = {
    "TableName": "things",
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
}
RECOVERY = {"TableName": "things", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
COUNT = {
    "TableName": "things",
    "Key": {"pk": {"S": "count"}},
    "UpdateExpression": "ADD n :one",
    "ExpressionAttributeValues": {":one": {"N": "1"}},
}
ONCE = {"TransactItems": [{"Update": COUNT}], "ClientRequestToken": "once"}
# A server whose store time is the clock of the system: what the test has to find.
FAULT = """
from tavola.engine.store_time import StoreTime
StoreTime.elapsed_s = lambda time: time._clock.now()
from tavola.cli.launch import run
run()
"""


class FakedClock:
    """A file with the difference from the true time, which a server under faketime reads at every look at its clock."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        shown = subprocess.run(
            ["faketime", "-f", "+0", "printenv", "LD_PRELOAD"], capture_output=True, text=True, check=True
        )
        self.environment = {
            "LD_PRELOAD": shown.stdout.strip(),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        self.set("+0")

    def set(self, difference: str) -> None:
        """Set the clock of running and later servers, such as "-10y"."""
        self._file.write_text(f"{difference}\n")


@pytest.fixture
def clock(tmp_path: Path) -> FakedClock:
    return FakedClock(tmp_path)


def read_keys(ask: Ask) -> list[str]:
    """Return the keys of all records of the stream, in the order of its shards."""
    (stream,) = ask("ListStreams", {"TableName": "things"})["Streams"]
    arn = {"StreamArn": stream["StreamArn"]}
    keys: list[tuple[str, str]] = []
    for shard in ask("DescribeStream", arn)["StreamDescription"]["Shards"]:
        start = {**arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        records = ask("GetRecords", ask("GetShardIterator", start))["Records"]
        keys += [
            (each["dynamodb"]["SequenceNumber"], each["dynamodb"]["Keys"]["pk"]["S"]) for each in records
        ]
    return [key for _, key in sorted(keys)]


def use(ask: Ask, key: str, written: list[str]) -> None:
    """Use what has an age: the table, the token, the stream, and a read of an earlier time."""
    assert ask("DescribeTable", {"TableName": "things"})["Table"]["TableStatus"] == "ACTIVE"
    ask("PutItem", {"TableName": "things", "Item": {"pk": {"S": key}}})
    written.append(key)
    ask("TransactWriteItems", ONCE)
    assert ask("GetItem", {"TableName": "things", "Key": COUNT["Key"]})["Item"]["n"]["N"] == "1"
    assert read_keys(ask) == written
    window = ask("DescribeContinuousBackups", {"TableName": "things"})["ContinuousBackupsDescription"]
    times = window["PointInTimeRecoveryDescription"]
    assert times["EarliestRestorableDateTime"] <= times["LatestRestorableDateTime"]


def jump_both_ways(path: Path, clock: FakedClock, program: tuple[str, ...]) -> None:
    """Set the clock of a running server, restart it under an earlier one, and use the store each time."""
    written: list[str] = []
    with serving(str(path), program=program, environment=clock.environment) as ask:
        ask("CreateTable", TABLE)
        ask("UpdateContinuousBackups", RECOVERY)
        ask("TransactWriteItems", ONCE)
        written.append("count")
        use(ask, "first", written)
        for difference in ("-10y", "+10y", "-1s", "+1h", "+0"):
            clock.set(difference)
            use(ask, f"at {difference}", written)
    for difference in ("-10y", "+0"):
        clock.set(difference)
        with serving(str(path), program=program, environment=clock.environment) as ask:
            if difference == "-10y":
                use(ask, "restarted", written)
            else:  # a clock that is ahead of the last one counts as time between the two servers
                assert ask("DescribeTable", {"TableName": "things"})["Table"]["TableStatus"] == "ACTIVE"


def test_a_server_does_not_believe_the_clock(tmp_path: Path, clock: FakedClock) -> None:
    """I14 over HTTP: with the system's clock in other years, before and after a restart, a store knows what it knew."""
    jump_both_ways(tmp_path / "store.db", clock, PROGRAM)


def test_a_server_that_believes_the_clock_is_found(tmp_path: Path, clock: FakedClock) -> None:
    """A planted fault: store time taken from the clock of the system."""
    with pytest.raises((AssertionError, Fault)):
        jump_both_ways(tmp_path / "store.db", clock, ("-c", FAULT))
