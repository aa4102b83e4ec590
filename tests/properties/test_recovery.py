"""The past: whatever was written since, a table read or restored as of a time is the table of then.

The oracle is a second engine that holds what the first one held at that time: every read of the past must
answer what that engine answers of its present, page by page, to the last key.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tavola.clock import ManualClock
from tavola.engine import Engine, RequestContext, copies, history, snapshots
from tavola.engine.operations import restores
from tavola.engine.storage import ChangeLogRow
from tavola.engine.storage.change_log import ChangeLog
from tavola.entropy import SeededEntropy

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "campaign"
TABLE = "past"
SECOND_US = 1_000_000
DESCRIBED: dict[str, Any] = {
    "TableName": TABLE,
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "N"},
        {"AttributeName": "g", "AttributeType": "S"},
        {"AttributeName": "l", "AttributeType": "S"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "whole",
            "KeySchema": [
                {"AttributeName": "g", "KeyType": "HASH"},
                {"AttributeName": "l", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        },
        {
            "IndexName": "part",
            "KeySchema": [{"AttributeName": "l", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["note"]},
        },
    ],
    "LocalSecondaryIndexes": [
        {
            "IndexName": "local",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "l", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
}
PARTITIONS, SORTS, WORDS = ["a", "b", "c"], ["-1", "0", "2", "2.5", "10"], ["x", "xx", "y"]

Item = dict[str, Any]
Ask = Callable[[str, Item], Item]


def new_engine(clock: ManualClock, seed: int = 1) -> Engine:
    """Return an engine in memory with the table."""
    engine = Engine.open(clock=clock, entropy=SeededEntropy(seed))
    engine.call("CreateTable", DESCRIBED)
    return engine


def recovered(engine: Engine) -> None:
    """Switch point-in-time recovery on."""
    specification = {"PointInTimeRecoveryEnabled": True}
    engine.call(
        "UpdateContinuousBackups", {"TableName": TABLE, "PointInTimeRecoverySpecification": specification}
    )


def latest_us(engine: Engine) -> int:
    """Return the last moment that the table can be restored to, which is now."""
    told = engine.call("DescribeContinuousBackups", {"TableName": TABLE})["ContinuousBackupsDescription"]
    at_us: int = round(told["PointInTimeRecoveryDescription"]["LatestRestorableDateTime"] * SECOND_US)
    # What was read as of a moment stays so: later writes are later, also if the clock does not go on.
    engine.call("Scan", {"TableName": TABLE, "Limit": 1}, context=RequestContext(as_of_us=at_us))
    return at_us


def key_of(chance: random.Random) -> Item:
    return {"pk": {"S": chance.choice(PARTITIONS)}, "sk": {"N": chance.choice(SORTS)}}


def item_of(chance: random.Random) -> Item:
    item = key_of(chance)
    if chance.random() < 0.7:
        item["g"] = {"S": chance.choice(WORDS)}
    if chance.random() < 0.7:
        item["l"] = {"S": chance.choice(WORDS)}
    if chance.random() < 0.7:
        item["note"] = {"S": "n" * chance.choice([1, 10, 2000])}
    return item


def write(engine: Engine, chance: random.Random) -> None:
    """Change the table in one of the ways there are."""
    match chance.randrange(5):
        case 0:
            engine.call("PutItem", {"TableName": TABLE, "Item": item_of(chance)})
        case 1:
            engine.call("DeleteItem", {"TableName": TABLE, "Key": key_of(chance)})
        case 2:
            engine.call(
                "UpdateItem",
                {
                    "TableName": TABLE,
                    "Key": key_of(chance),
                    "UpdateExpression": f"SET {chance.choice(['l', 'g', 'note'])} = :v",
                    "ExpressionAttributeValues": {":v": {"S": chance.choice(WORDS)}},
                },
            )
        case 3:
            items = {str(item["pk"]) + str(item["sk"]): item for item in (item_of(chance) for _ in range(4))}
            writes = [{"PutRequest": {"Item": item}} for item in items.values()]
            engine.call("BatchWriteItem", {"RequestItems": {TABLE: writes}})
        case _:
            keys = {str(key): key for key in (key_of(chance) for _ in range(3))}
            actions = [{"Delete": {"TableName": TABLE, "Key": key}} for key in keys.values()]
            engine.call("TransactWriteItems", {"TransactItems": actions})


def reads(name: str) -> Iterator[tuple[str, Item]]:
    """Yield reads of every kind; those that page do so with few rows to a page."""
    keys = [{"pk": {"S": pk}, "sk": {"N": sk}} for pk in PARTITIONS for sk in SORTS]
    for key in keys:
        yield "GetItem", {"TableName": name, "Key": key}
    yield "BatchGetItem", {"RequestItems": {name: {"Keys": keys}}}
    yield "TransactGetItems", {"TransactItems": [{"Get": {"TableName": name, "Key": key}} for key in keys]}
    for forward in (True, False):
        for pk in PARTITIONS:
            queried = {
                "TableName": name,
                "KeyConditionExpression": "pk = :p",
                "ExpressionAttributeValues": {":p": {"S": pk}},
                "ScanIndexForward": forward,
            }
            yield "Query", queried | {"Limit": 2}
            yield (
                "Query",
                queried
                | {"KeyConditionExpression": "pk = :p AND sk > :s"}
                | {"ExpressionAttributeValues": {":p": {"S": pk}, ":s": {"N": "0"}}},
            )
            yield "Query", queried | {"IndexName": "local", "Limit": 1, "Select": "ALL_ATTRIBUTES"}
        for word in WORDS:
            yield (
                "Query",
                {
                    "TableName": name,
                    "IndexName": "whole",
                    "KeyConditionExpression": "g = :g",
                    "ExpressionAttributeValues": {":g": {"S": word}},
                    "ScanIndexForward": forward,
                    "Limit": 2,
                },
            )
    for index in ("whole", "part", "local"):
        yield "Scan", {"TableName": name, "IndexName": index, "Limit": 3}
        yield "Scan", {"TableName": name, "IndexName": index}
    yield "Scan", {"TableName": name, "Limit": 4}
    for segment in range(3):
        yield "Scan", {"TableName": name, "Segment": segment, "TotalSegments": 3}


def answers(ask: Ask, name: str) -> list[Item]:
    """Return what every read is answered, each page of it, with what it consumed."""
    told: list[Item] = []
    for operation, asked in reads(name):
        request = asked | {"ReturnConsumedCapacity": "INDEXES"}
        while True:
            answer = ask(operation, request)
            told.append(answer)
            if "LastEvaluatedKey" not in answer:
                break
            request = request | {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
    return told


def named(answer: Any, name: str, other: str) -> Any:
    """Return an answer with a table's name in place of another."""
    if isinstance(answer, dict):
        return {other if key == name else key: named(value, name, other) for key, value in answer.items()}
    if isinstance(answer, list):
        return [named(value, name, other) for value in answer]
    return other if answer == name else answer


def contents(engine: Engine) -> list[Item]:
    items: list[Item] = engine.call("Scan", {"TableName": TABLE})["Items"]
    return items


def check(engine: Engine, moments: list[tuple[int, list[Item]]]) -> None:
    """Compare every moment's reads, and a restored table's, with those of an engine that holds its items."""
    for place, (at_us, items) in enumerate(moments):
        with closing(new_engine(ManualClock())) as oracle:
            for item in items:
                oracle.call("PutItem", {"TableName": TABLE, "Item": item})
            wanted = answers(oracle.call, TABLE)
            counted = oracle.call("DescribeTable", {"TableName": TABLE})["Table"]
        found = answers(partial(engine.call, context=RequestContext(as_of_us=at_us)), TABLE)
        assert found == wanted, f"the state as of {at_us}"
        target = f"restored{place}"
        engine.call(
            "RestoreTableToPointInTime",
            {"SourceTableName": TABLE, "TargetTableName": target, "RestoreDateTime": at_us / SECOND_US},
        )
        assert named(answers(engine.call, target), target, TABLE) == wanted, f"restored to {at_us}"
        described = engine.call("DescribeTable", {"TableName": target})["Table"]
        for member in ("ItemCount", "TableSizeBytes"):
            assert described[member] == counted[member]
        for member in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
            sizes = [
                [(each["IndexName"], each["ItemCount"], each["IndexSizeBytes"]) for each in table[member]]
                for table in (described, counted)
            ]
            assert sizes[0] == sizes[1]
        engine.call("DeleteTable", {"TableName": target})


def campaign(seed: int) -> None:
    """Write, look at the clock and let it jump, note the state now and then; compare at the end."""
    chance = random.Random(seed)
    clock = ManualClock()
    with pytest.MonkeyPatch.context() as patch, closing(new_engine(clock)) as engine:
        # So few rows at once that a table of a dozen has many edges, with the log in order by key and without.
        rows = chance.choice([1, 2, 3, 100])
        patch.setattr(snapshots, "_CHUNK_ROWS", rows)
        patch.setattr(snapshots, "_chunk", lambda limit: rows)
        patch.setattr(history, "_CHUNK_ROWS", rows)
        patch.setattr(snapshots, "_UNORDERED_CHANGES_MAX", chance.choice([0, 500]))
        patch.setattr(restores, "START", copies.CopyPosition(rows=chance.choice([1, 3, 64])))
        for _ in range(chance.randrange(12)):
            write(engine, chance)
        recovered(engine)
        moments: list[tuple[int, list[Item]]] = []
        for _ in range(chance.choice([10, 40])):
            clock.advance(chance.choice([0, 0, 0.000001, 0.5, 3, -2, -4000, 3600]))
            write(engine, chance)
            if chance.random() < 0.15:
                moments.append((latest_us(engine), contents(engine)))
            if moments and chance.random() < 0.1:
                check(engine, moments[:1])  # what is kept of it must go on with the next writes
        check(engine, chance.sample(moments, min(len(moments), 3)))


@settings(max_examples=400 if LONG else 25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_the_past_is_what_it_was(seed: int) -> None:
    """I12: reads as of a moment, and a table restored to it, answer as the table did then, whatever the clock did."""
    campaign(seed)


def _last_change(log: ChangeLog, key: bytes, after: int) -> ChangeLogRow | None:
    changes = log.changes_of(key, after, 10_000)
    return changes[-1] if changes else None


def _one_later(table: Any, at_us: int) -> int:
    return _position(table, at_us) + 1


def _one_earlier(table: Any, at_us: int) -> int:
    return max(0, _position(table, at_us) - 1)


def _extend_once(past: history.IndexHistory, log: Any, last: int, entry_of: Any) -> None:
    if not past.changed:
        _extend(past, log, last, entry_of)


_position = snapshots._position
_extend = history.IndexHistory.extend

FAULTS: dict[str, tuple[Any, str, Any]] = {
    "undo takes the last change of a key": (ChangeLog, "first_change", _last_change),
    "the place is one change too late": (snapshots, "_position", _one_later),
    "the place is one change too early": (snapshots, "_position", _one_earlier),
    "what was inserted since is left in": (
        snapshots.AsOfTableStore,
        "_undo",
        lambda rack, standing, changes, reverse: standing,
    ),
    "rows that changed are not taken out of an index": (
        snapshots.AsOfTableStore,
        "_changed_entries",
        lambda rack, *given: iter(()),
    ),
    "what is kept of an index's past does not go on": (history.IndexHistory, "extend", _extend_once),
    "a copy takes an index over that is not the same": (copies, "_count", lambda target, rows: None),
}


def _campaigns(count: int) -> None:
    for seed in range(count):
        campaign(seed)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison would see each of these mistakes."""
    owner, name, wrong = FAULTS[fault]
    monkeypatch.setattr(owner, name, wrong)

    with pytest.raises((AssertionError, KeyError)):
        _campaigns(30)
