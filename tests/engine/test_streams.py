"""Streams over time: shards roll and split, records are trimmed, readers miss and repeat nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tavola.clock import ManualClock
from tavola.engine import Engine, writes
from tavola.engine.journal import Journal
from tavola.engine.streams import StreamShard, id_of_sequence, read_shard, sequence_number
from tavola.protocol.faults import ExpiredIteratorFault, ResourceNotFoundFault, TrimmedDataAccessFault

HOUR = 3_600.0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def engine(clock: ManualClock) -> Iterator[Engine]:
    with closing(Engine.open(clock=clock)) as made:
        create(made)
        yield made


def create(engine: Engine, view: str = "NEW_AND_OLD_IMAGES", **more: Any) -> None:
    engine.call(
        "CreateTable",
        {
            "TableName": "Orders",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "AttributeDefinitions": [
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "N"},
            ],
            "BillingMode": "PAY_PER_REQUEST",
            "StreamSpecification": {"StreamEnabled": True, "StreamViewType": view},
            **more,
        },
    )


def put(engine: Engine, pk: str, sk: int, v: int = 0) -> None:
    item = {"pk": {"S": pk}, "sk": {"N": str(sk)}, "v": {"N": str(v)}}
    engine.call("PutItem", {"TableName": "Orders", "Item": item})


def arn(engine: Engine) -> str:
    found: str = engine.call("DescribeTable", {"TableName": "Orders"})["Table"]["LatestStreamArn"]
    return found


def shards(engine: Engine) -> list[dict[str, Any]]:
    found = engine.call("DescribeStream", {"StreamArn": arn(engine)})["StreamDescription"]["Shards"]
    return list(found)


def iterator(engine: Engine, shard: str, kind: str = "TRIM_HORIZON", **more: Any) -> str:
    asked = {"StreamArn": arn(engine), "ShardId": shard, "ShardIteratorType": kind, **more}
    token: str = engine.call("GetShardIterator", asked)["ShardIterator"]
    return token


def read(engine: Engine, shard: str) -> list[dict[str, Any]]:
    token: str | None = iterator(engine, shard)
    found: list[dict[str, Any]] = []
    for _ in range(1_000):
        if token is None:
            return found
        answer = engine.call("GetRecords", {"ShardIterator": token, "Limit": 7})
        found += answer["Records"]
        token = answer.get("NextShardIterator") if answer["Records"] else None
    raise AssertionError("a shard that does not end")


def tend(engine: Engine) -> None:
    while engine.run_background_work():
        pass


def by_lineage(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return shards with parents before children, as a reader must take them."""
    done: list[str] = []
    ordered: list[dict[str, Any]] = []
    waiting = list(found)
    while waiting:
        ready = [s for s in waiting if s.get("ParentShardId") in (None, *done)]
        assert ready, "a child whose parent never comes"
        ordered += ready
        done += [s["ShardId"] for s in ready]
        waiting = [s for s in waiting if s not in ready]
    return ordered


def test_an_old_shard_is_closed_and_another_goes_on(engine: Engine, clock: ManualClock) -> None:
    """After four hours each shard ends and has one child, which begins where its parent ended."""
    before = shards(engine)
    put(engine, "a", 1)
    clock.advance(4 * HOUR + 60)
    tend(engine)
    put(engine, "a", 2)

    found = shards(engine)

    parents = {s["ShardId"]: s for s in found if "ParentShardId" not in s}
    children = [s for s in found if "ParentShardId" in s]
    assert set(parents) == {s["ShardId"] for s in before}
    assert {s["ParentShardId"] for s in children} == set(parents)
    assert all("EndingSequenceNumber" in s["SequenceNumberRange"] for s in parents.values())
    assert all("EndingSequenceNumber" not in s["SequenceNumberRange"] for s in children)
    read_in_order = [
        record["dynamodb"]["Keys"]["sk"]["N"]
        for s in by_lineage(found)
        for record in read(engine, s["ShardId"])
    ]
    assert read_in_order == ["1", "2"]


def test_a_closed_shard_ends(engine: Engine, clock: ManualClock) -> None:
    """Once everything in a closed shard is read there is no next iterator; an open one always has one."""
    put(engine, "a", 1)
    clock.advance(4 * HOUR + 60)
    tend(engine)

    ends = {
        "EndingSequenceNumber" in s["SequenceNumberRange"]: "NextShardIterator"
        in engine.call("GetRecords", {"ShardIterator": iterator(engine, s["ShardId"], "LATEST")})
        for s in shards(engine)
    }

    assert ends == {True: False, False: True}


def test_records_older_than_a_day_are_gone(engine: Engine, clock: ManualClock) -> None:
    """The horizon moves with the clock; an iterator behind it is reported, and TRIM_HORIZON starts at it."""
    (shard, *_) = (s["ShardId"] for s in shards(engine))
    put(engine, "a", 1)
    held = {s["ShardId"]: iterator(engine, s["ShardId"]) for s in shards(engine)}
    first = sequence_number(1)
    clock.advance(800)
    clock.advance(23 * HOUR)
    put(engine, "a", 2)
    clock.advance(2 * HOUR)

    numbers = [
        record["dynamodb"]["Keys"]["sk"]["N"] for s in shards(engine) for record in read(engine, s["ShardId"])
    ]

    assert numbers == ["2"]
    with pytest.raises(TrimmedDataAccessFault):
        iterator(engine, shard, "AT_SEQUENCE_NUMBER", SequenceNumber=first)
    with pytest.raises(ExpiredIteratorFault):
        engine.call("GetRecords", {"ShardIterator": held[shard]})


def test_an_iterator_lives_fifteen_minutes(engine: Engine, clock: ManualClock) -> None:
    """Fourteen minutes old it is good, sixteen minutes old it has expired."""
    (shard, *_) = (s["ShardId"] for s in shards(engine))
    token = iterator(engine, shard)
    clock.advance(14 * 60)
    engine.call("GetRecords", {"ShardIterator": token})
    clock.advance(2 * 60)

    with pytest.raises(ExpiredIteratorFault):
        engine.call("GetRecords", {"ShardIterator": token})


def test_what_no_one_can_read_any_more_is_removed(clock: ManualClock) -> None:
    """A day after a stream was disabled it is forgotten, with its shards and its records."""
    with closing(Engine.open(clock=clock)) as engine:
        create(engine)
        for number in range(50):
            put(engine, "a", number)
        old = arn(engine)
        engine.call("UpdateTable", {"TableName": "Orders", "StreamSpecification": {"StreamEnabled": False}})
        clock.advance(23 * HOUR)
        tend(engine)
        engine.call("DescribeStream", {"StreamArn": old})
        clock.advance(2 * HOUR)
        tend(engine)
        clock.advance(2 * HOUR)
        tend(engine)

        with pytest.raises(ResourceNotFoundFault):
            engine.call("DescribeStream", {"StreamArn": old})
        assert engine._store.log_numbers() == []


def test_old_records_leave_the_log(engine: Engine, clock: ManualClock) -> None:
    """The log of a stream keeps a day and the last change, not everything there ever was."""
    for number in range(100):
        put(engine, "a", number)
    clock.advance(25 * HOUR)
    put(engine, "b", 1)
    tend(engine)

    log = engine._store.log(engine._store.log_numbers()[0])
    assert log.span()[0] == 101


def test_a_provisioned_table_has_shards_by_its_throughput(clock: ManualClock) -> None:
    """One shard for each partition that AWS would make: 1,000 writes or 3,000 reads a second each."""
    with closing(Engine.open(clock=clock)) as engine:
        create(
            engine,
            BillingMode="PROVISIONED",
            ProvisionedThroughput={"ReadCapacityUnits": 3_001, "WriteCapacityUnits": 2_500},
        )

        assert len(shards(engine)) == 3


def test_a_stream_goes_on_after_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    """Shards, numbers and iterators are the same after the store was closed and opened."""
    with closing(Engine.open(tmp_path / "s.db", clock=clock)) as engine:
        create(engine)
        put(engine, "a", 1)
        before = shards(engine)
        tokens = [iterator(engine, s["ShardId"]) for s in before]
    with closing(Engine.open(tmp_path / "s.db", clock=clock)) as engine:
        put(engine, "a", 2)

        found = [engine.call("GetRecords", {"ShardIterator": token})["Records"] for token in tokens]

        assert shards(engine) == before
        assert [r["dynamodb"]["SequenceNumber"] for records in found for r in records] == [
            sequence_number(1),
            sequence_number(2),
        ]


def test_sequence_numbers_sort_as_texts() -> None:
    """Numbers have one width, as AWS's have 21 digits at least, and only ours are taken."""
    texts = [sequence_number(number) for number in (1, 9, 10, 10**12)]
    assert texts == sorted(texts)
    assert all(len(text) == 21 for text in texts)
    assert [id_of_sequence(text) for text in texts] == [1, 9, 10, 10**12]
    assert id_of_sequence("9" * 30) is None
    assert id_of_sequence("x" * 21) is None


@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.integers(0, 9), st.integers(0, 2)),
            st.tuples(st.just("delete"), st.integers(0, 9), st.just(0)),
            st.tuples(st.just("roll"), st.just(0), st.just(0)),
            st.tuples(st.just("split"), st.integers(0, 9), st.just(0)),
            st.tuples(st.just("fail"), st.integers(0, 9), st.just(0)),
        ),
        max_size=40,
    ).filter(lambda steps: sum(step == "roll" for step, _, _ in steps) < 6)  # within a day
)
def test_replaying_a_stream_gives_the_table(steps: list[tuple[str, int, int]]) -> None:
    """Read shard by shard, parents first, the records rebuild the table, and each is one real change."""
    clock = ManualClock()
    model: dict[str, int] = {}
    changes = 0
    with closing(Engine.open(clock=clock)) as engine:
        create(engine)
        streams = engine._services.streams
        for step, key, value in steps:
            name = f"k{key}"
            match step:
                case "put":
                    put(engine, name, 1, value)
                    changes += model.get(name) != value
                    model[name] = value
                case "delete":
                    key_ = {"pk": {"S": name}, "sk": {"N": "1"}}
                    engine.call("DeleteItem", {"TableName": "Orders", "Key": key_})
                    changes += name in model
                    model.pop(name, None)
                case "roll":
                    clock.advance(4 * HOUR + 100)
                    tend(engine)
                case "split":
                    (stream,) = streams
                    open_ = [shard for shard in stream.shards if shard.last is None]
                    streams.replace_shards(stream, split=open_[key % len(open_)].id)
                case _:
                    body = {
                        "TableName": "Orders",
                        "Item": {"pk": {"S": name}, "sk": {"N": "1"}},
                        "ConditionExpression": "attribute_exists(nothing)",
                    }
                    with pytest.raises(Exception, match="conditional"):
                        engine.call("PutItem", body)
        replayed, count = replay(engine)

    assert replayed == model
    assert count == changes


def replay(engine: Engine) -> tuple[dict[str, int], int]:
    """Return the table that a reader rebuilds, and the number of records; each must follow from the last."""
    replayed: dict[str, int] = {}
    count = 0
    for shard in by_lineage(shards(engine)):
        for record in read(engine, shard["ShardId"]):
            count += 1
            result = record["dynamodb"]
            name = result["Keys"]["pk"]["S"]
            old = result.get("OldImage", {}).get("v", {}).get("N")
            assert old == (str(replayed[name]) if name in replayed else None), "an old image that never stood"
            if record["eventName"] == "REMOVE":
                del replayed[name]
            else:
                assert record["eventName"] == ("MODIFY" if name in replayed else "INSERT"), "the wrong event"
                replayed[name] = int(result["NewImage"]["v"]["N"])
    return replayed, count


@pytest.mark.parametrize("fault", ["a change without its record", "a shard that begins too late"])
def test_the_replay_finds_a_planted_fault(
    engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """The comparison above is not blind: a lost record makes another table, or an impossible image."""
    put(engine, "a", 1, 1)
    if fault == "a change without its record":
        with monkeypatch.context() as planted:
            planted.setattr(writes, "_log_modification", lambda *_: None)
            put(engine, "a", 1, 2)
    else:
        with monkeypatch.context() as planted:
            planted.setattr(Journal, "note", lambda *_: None)
            put(engine, "b", 1, 2)
    put(engine, "a", 1, 3)

    try:
        replayed, count = replay(engine)
    except AssertionError:
        return
    assert (replayed, count) != ({"a": 3, "b": 2}, 3)


def test_a_reader_of_one_shard_passes_over_the_others_quickly(engine: Engine) -> None:
    """A read looks through a bounded stretch of the log, so an empty answer moves on too."""
    log = engine._store.log(engine._store.log_numbers()[0])
    for number in range(30):
        put(engine, "a", number)
    nowhere = StreamShard("shardId", 1, 0, 1, 0.0)

    rows, upto = read_shard(log, nowhere, 0, 10)

    assert rows == []
    assert upto == 30


def test_large_records_are_read_a_few_at_a_time(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer of a megabyte takes about that from the log, however many records a reader asks for."""
    log = engine._store.log(engine._store.log_numbers()[0])
    big = "x" * 300_000
    for number in range(60):
        item = {"pk": {"S": "a"}, "sk": {"N": str(number)}, "v": {"S": big}}
        engine.call("PutItem", {"TableName": "Orders", "Item": item})
    whole = StreamShard("shardId", 1, 0, 2**32, 0.0)

    rows, upto = read_shard(log, whole, 0, 1_000)

    assert len(rows) <= 32
    assert upto == rows[-1].id


def test_streams_of_one_millisecond_are_two(engine: Engine) -> None:
    """Off and on again at once, or a table made again: the old stream keeps its ARN and its records."""
    put(engine, "a", 1)
    first = arn(engine)
    engine.call("UpdateTable", {"TableName": "Orders", "StreamSpecification": {"StreamEnabled": False}})
    again = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    engine.call("UpdateTable", {"TableName": "Orders", "StreamSpecification": again})
    second = arn(engine)
    engine.call("DeleteTable", {"TableName": "Orders"})
    create(engine)

    assert len({first, second, arn(engine)}) == 3
    assert len(engine.call("ListStreams", {})["Streams"]) == 3
    described = engine.call("DescribeStream", {"StreamArn": first})["StreamDescription"]
    assert described["StreamViewType"] == "NEW_AND_OLD_IMAGES"


def test_a_table_that_is_given_more_throughput_splits_its_shards(clock: ManualClock) -> None:
    """A parent has two children, each of half its range; what is written later goes to one of them."""
    with closing(Engine.open(clock=clock)) as engine:
        units = {"ReadCapacityUnits": 10, "WriteCapacityUnits": 10}
        create(engine, BillingMode="PROVISIONED", ProvisionedThroughput=units)
        put(engine, "a", 1)
        (parent,) = shards(engine)
        more = {"ReadCapacityUnits": 10, "WriteCapacityUnits": 2_000}
        engine.call("UpdateTable", {"TableName": "Orders", "ProvisionedThroughput": more})
        put(engine, "a", 2)

        found = shards(engine)

        children = [shard for shard in found if shard.get("ParentShardId") == parent["ShardId"]]
        assert len(found) == 3
        assert len(children) == 2
        assert "EndingSequenceNumber" in found[0]["SequenceNumberRange"]
        result = [
            r["dynamodb"]["Keys"]["sk"]["N"] for s in by_lineage(found) for r in read(engine, s["ShardId"])
        ]
        assert result == ["1", "2"]
