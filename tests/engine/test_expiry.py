"""Expiry: what is due goes, what was renewed stays, what AWS ignores is ignored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.engine.writes import expiry_of

START = 1_700_000_000
YEAR = 365 * 86_400


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(float(START))


@pytest.fixture
def engine(clock: ManualClock) -> Iterator[Engine]:
    with closing(Engine.open(clock=clock, ttl_interval_s=60)) as made:
        create(made)
        yield made


def create(engine: Engine, *, ttl: bool = True) -> None:
    engine.call(
        "CreateTable",
        {
            "TableName": "Sessions",
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "user", "AttributeType": "S"},
            ],
            "GlobalSecondaryIndexes": [
                {
                    "IndexName": "by-user",
                    "KeySchema": [{"AttributeName": "user", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            ],
            "BillingMode": "PAY_PER_REQUEST",
            "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "OLD_IMAGE"},
        },
    )
    if ttl:
        switch(engine, on=True)


def switch(engine: Engine, *, on: bool) -> None:
    engine.call(
        "UpdateTimeToLive",
        {"TableName": "Sessions", "TimeToLiveSpecification": {"Enabled": on, "AttributeName": "ends"}},
    )


def put(engine: Engine, key: str, ends: Any, **more: Any) -> None:
    value = {"N": str(ends)} if isinstance(ends, int) else ends
    item = {"pk": {"S": key}, "user": {"S": "u"}, **more}
    if value is not None:
        item["ends"] = value
    engine.call("PutItem", {"TableName": "Sessions", "Item": item})


def keys(engine: Engine, **how: Any) -> set[str]:
    return {item["pk"]["S"] for item in engine.call("Scan", {"TableName": "Sessions", **how})["Items"]}


def sweep(engine: Engine, clock: ManualClock, seconds: float = 61) -> None:
    clock.advance(seconds)
    while engine.run_background_work():
        pass


def test_what_is_due_is_deleted_and_nothing_else(engine: Engine, clock: ManualClock) -> None:
    """At its second an item is due; a sweep deletes it, also from its indexes, and leaves the others."""
    put(engine, "due", START + 30)
    put(engine, "later", START + 3_600)
    put(engine, "never", None)

    sweep(engine, clock)

    assert keys(engine) == {"later", "never"}
    assert keys(engine, IndexName="by-user") == {"later", "never"}
    described = engine.call("DescribeTable", {"TableName": "Sessions"})["Table"]
    assert described["ItemCount"] == 2
    assert described["GlobalSecondaryIndexes"][0]["ItemCount"] == 2


@pytest.mark.parametrize(
    "ends",
    [{"S": str(START)}, {"BOOL": True}, {"NULL": True}, {"L": [{"N": "1"}]}, START - 5 * YEAR - 10, 0, -5],
)
def test_what_is_no_time_is_ignored(engine: Engine, clock: ManualClock, ends: Any) -> None:
    """Only a number is a time, and one more than five years past is taken for a mistake."""
    put(engine, "odd", ends)
    put(engine, "old", START - 5 * YEAR + 1_000)

    sweep(engine, clock)

    assert keys(engine) == {"odd"}


def test_numbers_that_are_no_seconds() -> None:
    """A fraction counts as its whole second; what is beyond any time never expires."""
    assert expiry_of({"N": "1700000000.9"}) == START
    assert expiry_of({"N": "1" + "0" * 125}) is None
    assert expiry_of({"N": "0"}) is None


def test_an_item_that_was_renewed_stays(engine: Engine, clock: ManualClock) -> None:
    """A new time put before the sweep keeps the item, by put as by update."""
    put(engine, "a", START + 30)
    put(engine, "b", START + 30)
    clock.advance(40)
    put(engine, "a", START + 9_000)
    engine.call(
        "UpdateItem",
        {
            "TableName": "Sessions",
            "Key": {"pk": {"S": "b"}},
            "UpdateExpression": "SET ends = :later",
            "ExpressionAttributeValues": {":later": {"N": str(START + 9_000)}},
        },
    )

    sweep(engine, clock)

    assert keys(engine) == {"a", "b"}


def test_the_sweep_is_reported_as_the_service_in_the_stream(engine: Engine, clock: ManualClock) -> None:
    """A deletion by expiry carries the service's identity; a caller's does not."""
    put(engine, "due", START + 30)
    put(engine, "gone", START + 30)
    engine.call("DeleteItem", {"TableName": "Sessions", "Key": {"pk": {"S": "gone"}}})

    sweep(engine, clock)

    arn = engine.call("ListStreams", {})["Streams"][0]["StreamArn"]
    result = {}
    for shard in engine.call("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]:
        token = engine.call(
            "GetShardIterator",
            {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"},
        )
        for record in engine.call("GetRecords", {"ShardIterator": token["ShardIterator"]})["Records"]:
            if record["eventName"] == "REMOVE":
                result[record["dynamodb"]["Keys"]["pk"]["S"]] = record.get("userIdentity")
    assert result == {
        "due": {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"},
        "gone": None,
    }


def test_sweeps_come_at_their_interval(engine: Engine, clock: ManualClock) -> None:
    """Between two sweeps an expired item is still read, as on AWS; a clock set back stops nothing."""
    sweep(engine, clock)
    put(engine, "due", START + 62)
    sweep(engine, clock, 30)
    between = keys(engine)
    sweep(engine, clock, 40)
    after = keys(engine)
    put(engine, "again", START - 100_000)
    clock.set(START - 90_000.0)
    sweep(engine, clock, 61)

    assert between == {"due"}
    assert after == set()
    assert keys(engine) == set()


def test_items_from_before_expire_too(clock: ManualClock) -> None:
    """Switching expiry on takes in what the table holds already; off, nothing more expires."""
    with closing(Engine.open(clock=clock)) as engine:
        create(engine, ttl=False)
        for number in range(600):
            put(engine, f"k{number}", START + 10 if number % 2 else None)
        switch(engine, on=True)
        sweep(engine, clock)
        left = len(keys(engine))
        put(engine, "last", START + 70)
        switch(engine, on=False)
        sweep(engine, clock, 1_000)

        assert left == 300
        assert "last" in keys(engine)


def test_expiry_goes_on_after_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    """What was due when the store was closed goes when it is opened again."""
    with closing(Engine.open(tmp_path / "s.db", clock=clock)) as engine:
        create(engine)
        put(engine, "due", START + 10)
    clock.advance(3_600)
    with closing(Engine.open(tmp_path / "s.db", clock=clock)) as engine:
        sweep(engine, clock)

        assert keys(engine) == set()


def test_without_a_server_the_calls_sweep(clock: ManualClock) -> None:
    """An engine that no one tends does it in passing: an expired item is gone a call later."""
    with closing(Engine.open(clock=clock, ttl_interval_s=60)) as engine:
        create(engine)
        put(engine, "due", START + 10)
        clock.advance(120)
        keys(engine)

        assert keys(engine) == set()
