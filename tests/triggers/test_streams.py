"""Triggers on real streams: in memory, in a file, over HTTP."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path
from typing import Any

import boto3
import pytest

import tavola
from tavola.limits import STREAM_ITERATOR_LIFE_S, STREAM_RETENTION_S, STREAM_SHARD_LIFE_S
from tavola.triggers import (
    CheckpointLog,
    DrainUnfinished,
    EventSourceMapping,
    MemoryCheckpoint,
    MemoryDeadLetters,
    StreamMissing,
    Trigger,
)
from tests.triggers.targets import Target

NOTHING = tavola.ManualClock()


class Seen:
    """A handler that keeps its records."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.batches: list[int] = []

    def __call__(self, event: dict[str, Any], context: object) -> None:
        self.records += event["Records"]
        self.batches.append(len(event["Records"]))

    @property
    def told(self) -> list[tuple[str, str]]:
        """What happened to which key, by the key and in the order it came."""
        told = [(record["dynamodb"]["Keys"]["pk"]["S"], record["eventName"]) for record in self.records]
        return sorted(told, key=lambda row: row[0])


def trigger(target: Target, handler: Any, table: str, **settings: Any) -> Trigger:
    return Trigger(target.connection, handler=handler, table=table, clock=target.clock, **settings)


def test_every_change_comes_once(target: Target) -> None:
    """Inserts, changes and removals come in the order of their item, with both images; what changes nothing does not."""
    table = target.table()
    target.put(table, "a", n={"N": "1"})
    target.put(table, "a", n={"N": "2"})
    target.put(table, "a", n={"N": "2"})
    target.put(table, "b", blob={"B": "AAEC"})
    target.delete(table, "a")
    target.delete(table, "gone")
    seen = Seen()

    assert trigger(target, seen, table).drain() == 4
    assert seen.told == [("a", "INSERT"), ("a", "MODIFY"), ("a", "REMOVE"), ("b", "INSERT")]
    changed = next(record for record in seen.records if record["eventName"] == "MODIFY")
    assert changed["dynamodb"]["OldImage"] == {"pk": {"S": "a"}, "n": {"N": "1"}}
    assert changed["dynamodb"]["NewImage"] == {"pk": {"S": "a"}, "n": {"N": "2"}}
    assert changed["eventSource"] == "aws:dynamodb"
    assert changed["eventSourceARN"].endswith(
        f":table/{table}/stream/{changed['eventSourceARN'].split('/')[-1]}"
    )
    assert changed["awsRegion"] == "us-east-1"
    binary = next(record for record in seen.records if "blob" in record["dynamodb"].get("NewImage", {}))
    assert binary["dynamodb"]["NewImage"]["blob"] == {"B": "AAEC"}


def test_a_transaction_comes_whole(target: Target) -> None:
    """Each item of a transaction is a change, with its images."""
    table = target.table()
    target.connection.call(
        "TransactWriteItems",
        {
            "TransactItems": [
                {"Put": {"TableName": table, "Item": {"pk": {"S": key}, "n": {"N": "1"}}}} for key in "abc"
            ]
        },
    )
    seen = Seen()
    trigger(target, seen, table).drain()

    assert seen.told == [("a", "INSERT"), ("b", "INSERT"), ("c", "INSERT")]


def test_an_expired_item_is_told_by_its_deleter(target: Target) -> None:
    """A deletion by time to live says so in lower case, and a filter can choose it."""
    table = target.table()
    target.connection.call(
        "UpdateTimeToLive",
        {"TableName": table, "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": True}},
    )
    target.put(table, "session", expires={"N": str(int(target.clock.now()) + 60)})
    target.put(table, "order")
    target.delete(table, "order")
    seen = Seen()
    pattern = {
        "eventName": ["REMOVE"],
        "userIdentity": {"type": ["Service"], "principalId": ["dynamodb.amazonaws.com"]},
    }
    found = trigger(target, seen, table, mapping=EventSourceMapping(filter_criteria=[pattern]))
    found.drain()
    assert seen.records == []
    target.clock.advance(61)
    target.tend()
    found.drain()

    assert seen.told == [("session", "REMOVE")]
    assert seen.records[0]["userIdentity"] == {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
    assert "NewImage" not in seen.records[0]["dynamodb"]


def test_batches_have_their_size(target: Target) -> None:
    """No batch is larger than it may be, and a shard's batches are full where there is enough."""
    table = target.table()
    for number in range(50):
        target.put(table, "one", n={"N": str(number)})
    seen = Seen()
    trigger(target, seen, table, mapping=EventSourceMapping(batch_size=20)).drain()

    assert seen.batches == [20, 20, 10]
    assert [record["dynamodb"]["NewImage"]["n"]["N"] for record in seen.records] == [
        str(n) for n in range(50)
    ]


def test_more_than_a_page_is_one_batch(target: Target) -> None:
    """A batch may be larger than what one reading gives."""
    table = target.table()
    for number in range(1200):
        target.put(table, "one", n={"N": str(number)})
    seen = Seen()
    mapping = EventSourceMapping(batch_size=10_000, maximum_batching_window_in_seconds=60)
    trigger(target, seen, table, mapping=mapping).drain()

    assert seen.batches == [1200]


def test_a_poison_record_ends_in_the_dead_letter_file(target: Target, tmp_path: Path) -> None:
    """Bisect finds it, bounded retries give it up, and the file tells where it was."""
    table = target.table()
    for key in "abcdefgh":
        target.put(table, key)
    handled: list[str] = []

    def handler(event: dict[str, Any], context: object) -> None:
        keys = [record["dynamodb"]["Keys"]["pk"]["S"] for record in event["Records"]]
        if "d" in keys:
            raise ValueError("poison")
        handled.extend(keys)

    letters = tmp_path / "dead.jsonl"
    mapping = EventSourceMapping(bisect_batch_on_function_error=True, maximum_retry_attempts=2)
    with trigger(
        target, handler, table, mapping=mapping, dead_letters=letters, dead_letter_payload=True
    ) as found:
        found.drain()

    assert sorted(handled) == list("abcefgh")
    (document,) = map(json.loads, letters.read_text().splitlines())
    (record,) = document["payload"]["Records"]
    assert record["dynamodb"]["Keys"] == {"pk": {"S": "d"}}
    assert document["DDBStreamBatchInfo"]["startSequenceNumber"] == record["dynamodb"]["SequenceNumber"]
    assert document["DDBStreamBatchInfo"]["streamArn"] == found.stream_arn


def test_a_restart_goes_on_from_its_file(target: Target, tmp_path: Path) -> None:
    """A second process finds the first one's checkpoints, and gets what came meanwhile."""
    table = target.table()
    path = tmp_path / "checkpoints"
    for key in "abc":
        target.put(table, key)
    with trigger(target, Seen(), table, checkpoints=path) as first:
        first.drain()
    target.put(table, "d")
    seen = Seen()
    with trigger(target, seen, table, checkpoints=path) as second:
        second.drain()

    assert seen.told == [("d", "INSERT")]


def test_shards_that_roll_are_followed(target: Target) -> None:
    """Shards close after hours and others go on; an item's changes come in order across them all."""
    table = target.table()
    versions = []
    for number in range(12):
        target.put(table, "one", n={"N": str(number)})
        target.put(table, f"other-{number}")
        target.clock.advance(STREAM_SHARD_LIFE_S / 3)
        target.tend()
        versions.append(str(number))
    seen = Seen()
    found = trigger(target, seen, table, mapping=EventSourceMapping(batch_size=3))
    found.drain()

    told = [r["dynamodb"]["NewImage"]["n"]["N"] for r in seen.records if "n" in r["dynamodb"]["NewImage"]]
    assert told == versions
    assert len(seen.records) == 24
    described = target.connection.call("DescribeStream", {"StreamArn": found.stream_arn})
    assert any("ParentShardId" in shard for shard in described["StreamDescription"]["Shards"])


def test_a_trigger_follows_a_roll_while_it_runs(target: Target) -> None:
    """A shard that closes between two drains is read to its end, and then its child."""
    table = target.table()
    checkpoints = MemoryCheckpoint()
    seen = Seen()
    found = trigger(target, seen, table, checkpoints=checkpoints)
    for number in range(3):
        target.put(table, "one", n={"N": str(number)})
        if number == 1:
            found.drain()
        target.clock.advance(STREAM_SHARD_LIFE_S + 1)
        target.tend()
    found.drain()

    assert [r["dynamodb"]["NewImage"]["n"]["N"] for r in seen.records] == ["0", "1", "2"]
    again = Seen()
    trigger(target, again, table, checkpoints=checkpoints).drain()
    assert again.records == []


def test_an_iterator_expires(target: Target) -> None:
    """A trigger that was not stepped for an hour finds its place again."""
    table = target.table()
    target.put(table, "a")
    seen = Seen()
    found = trigger(target, seen, table)
    found.drain()
    target.clock.advance(STREAM_ITERATOR_LIFE_S + 1)
    target.put(table, "b")
    found.drain()

    assert seen.told == [("a", "INSERT"), ("b", "INSERT")]


def test_what_is_older_than_a_day_is_gone(target: Target, caplog: pytest.LogCaptureFixture) -> None:
    """A trigger that was down for too long says what it lost, and goes on with what is there."""
    table = target.table()
    checkpoints = MemoryCheckpoint()
    target.put(table, "one", n={"N": "0"})
    trigger(target, Seen(), table, checkpoints=checkpoints).drain()
    target.put(table, "one", n={"N": "1"})
    target.clock.advance(STREAM_RETENTION_S + 1)
    target.tend()
    target.put(table, "one", n={"N": "2"})
    seen = Seen()
    with caplog.at_level(logging.WARNING, "tavola.triggers"):
        found = trigger(target, seen, table, checkpoints=checkpoints)
        found.drain()

    assert [r["dynamodb"]["NewImage"]["n"]["N"] for r in seen.records] == ["2"]
    assert "lost to this trigger" in caplog.text
    assert found.statistics.gaps == 1


def test_latest_leaves_what_was_there(target: Target) -> None:
    """A trigger at LATEST hands over what comes after its start, and its restart what came meanwhile."""
    table = target.table()
    checkpoints = MemoryCheckpoint()
    mapping = EventSourceMapping(starting_position="LATEST")
    target.put(table, "a")
    target.clock.advance(60)
    seen = Seen()
    trigger(target, seen, table, mapping=mapping, checkpoints=checkpoints).start()
    target.put(table, "b")
    trigger(target, seen, table, mapping=mapping, checkpoints=checkpoints).drain()

    assert seen.told == [("b", "INSERT")]


def test_a_disabled_stream_is_handled_to_its_end(target: Target) -> None:
    """A trigger on a stream that was switched off gets what is in it, and then is at its end."""
    table = target.table()
    target.put(table, "a")
    seen = Seen()
    found = trigger(target, seen, table)
    found.start()
    target.connection.call(
        "UpdateTable", {"TableName": table, "StreamSpecification": {"StreamEnabled": False}}
    )
    target.put(table, "b")
    found.run()

    assert found.has_ended
    assert seen.told == [("a", "INSERT")]


def test_a_table_without_a_stream_is_told(target: Target) -> None:
    """The sentence says how to enable one."""
    table = target.table(on=False)

    with pytest.raises(StreamMissing, match=table):
        trigger(target, Seen(), table).drain()


@pytest.mark.parametrize("view", ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE"])
def test_every_view_can_be_read(target: Target, view: str) -> None:
    """A handler gets the images that the stream has."""
    table = target.table(view)
    target.put(table, "a", n={"N": "1"})
    target.put(table, "a", n={"N": "2"})
    seen = Seen()
    trigger(target, seen, table).drain()

    images = {"NewImage", "OldImage"} & set(seen.records[1]["dynamodb"])
    assert images == {"KEYS_ONLY": set(), "NEW_IMAGE": {"NewImage"}, "OLD_IMAGE": {"OldImage"}}[view]


def test_lanes_of_a_real_shard_keep_a_key_in_order(target: Target) -> None:
    """Parallel batches hold each key in its order, in threads too."""
    table = target.table()
    wrote = 40
    for number in range(wrote):
        for key in "abcdef":
            target.put(table, key, n={"N": str(number)})
    by_key: dict[str, list[int]] = {}
    everything = threading.Event()

    def handler(event: dict[str, Any], context: object) -> None:
        for record in event["Records"]:
            image = record["dynamodb"]["NewImage"]
            by_key.setdefault(image["pk"]["S"], []).append(int(image["n"]["N"]))
        if sum(map(len, by_key.values())) == wrote * 6:
            everything.set()

    mapping = EventSourceMapping(parallelization_factor=4, batch_size=7)
    with Trigger(target.connection, handler=handler, table=table, mapping=mapping).running():
        assert everything.wait(20)

    assert by_key == {key: list(range(wrote)) for key in "abcdef"}


def test_a_trigger_runs_beside_its_writers(target: Target, tmp_path: Path) -> None:
    """Running in a thread, it gets what is written meanwhile, and its checkpoints are where it stopped."""
    table = target.table()
    seen = Seen()
    everything = threading.Event()

    def handler(event: dict[str, Any], context: object) -> None:
        seen(event, context)
        if len(seen.records) == 30:
            everything.set()

    path = tmp_path / "checkpoints"
    with (
        Trigger(target.connection, handler=handler, table=table, checkpoints=path, poll_s=0.01) as found,
        found.running(),
    ):
        for number in range(30):
            target.put(table, f"k-{number}")
        assert everything.wait(20)

    with CheckpointLog(path) as checkpoints:
        again = Seen()
        Trigger(target.connection, handler=again, table=table, checkpoints=checkpoints).drain()
    assert again.records == []


def test_boto3_under_mock_meets_a_trigger_as_on_aws() -> None:
    """The backend for AWS asks the streams service; under a mock the engine answers it."""
    with tavola.mock(region="eu-west-1"):
        boto3.client("dynamodb").create_table(
            TableName="Orders",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        )
        boto3.resource("dynamodb").Table("Orders").put_item(Item={"id": "o-1", "total": 42})
        seen = Seen()
        with tavola.connect("aws:eu-west-1") as aws:
            Trigger(aws, table="Orders", handler=seen).drain()

    assert seen.records[0]["dynamodb"]["NewImage"]["total"] == {"N": "42"}
    assert seen.records[0]["awsRegion"] == "eu-west-1"


def test_a_handler_may_write_to_the_table_it_reads(target: Target) -> None:
    """A projector in the same table sees its own writes; a filter keeps it from going round for ever."""
    table = target.table()
    for key in "abc":
        target.put(table, f"order#{key}")

    def handler(event: dict[str, Any], context: object) -> None:
        for record in event["Records"]:
            target.put(table, "sum#" + record["dynamodb"]["Keys"]["pk"]["S"])

    wanted = {"dynamodb": {"Keys": {"pk": {"S": [{"prefix": "order#"}]}}}}
    found = trigger(target, handler, table, mapping=EventSourceMapping(filter_criteria=[wanted]))

    assert found.drain() == 3
    assert found.drain() == 0
    assert found.statistics.filtered == 3


def test_a_handler_that_never_succeeds_blocks_and_loses_nothing(target: Target) -> None:
    """By default Lambda tries for ever; once the handler is mended everything is handled."""
    table = target.table()
    target.put(table, "a")
    target.put(table, "a", n={"N": "1"})
    broken = [True]
    seen = Seen()

    def handler(event: dict[str, Any], context: object) -> None:
        if broken:
            raise RuntimeError("the downstream is down")
        seen(event, context)

    letters = MemoryDeadLetters()
    found = trigger(target, handler, table, dead_letters=letters, mapping=EventSourceMapping(batch_size=1))
    with pytest.raises(DrainUnfinished, match="the downstream is down"):
        found.drain(600)
    broken.clear()
    found.drain(600)

    assert seen.told == [("a", "INSERT"), ("a", "MODIFY")]
    assert letters.documents == []
