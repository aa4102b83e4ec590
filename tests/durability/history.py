"""History: seeded work for a store, in steps that are each acknowledged as a whole, and its states.

The states are those of an engine in memory that does the same steps; the property tests hold that one against
a plain dict. After a crash a store must be in the state of the last acknowledged step, or of the one after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tavola.clock import ManualClock
from tavola.engine import Engine, StoreError
from tavola.entropy import SeededEntropy
from tavola.protocol.faults import ConditionalCheckFailedFault, InternalServerFault, TransactionCanceledFault
from tests.durability.state import State, faults_in, read_state, settle

Call = tuple[str, dict[str, Any]]
TABLE = "orders"
_KEYS = 8


@dataclass(frozen=True, slots=True)
class Step:
    """One or more calls with one acknowledgement; several are held and committed together."""

    calls: tuple[Call, ...]

    @property
    def token(self) -> bool:
        """Return whether it is a transaction with a client token."""
        return len(self.calls) == 1 and "ClientRequestToken" in self.calls[0][1]


@dataclass(frozen=True, slots=True)
class History:
    """Steps, and the state after each of them; the first state is that of an empty store."""

    steps: tuple[Step, ...]
    states: tuple[State, ...]
    refused: frozenset[int]  # the steps that DynamoDB refuses, such as a failed condition


class Unavailable(Exception):
    """The engine could not do a step, as it may say when its disk fails."""


def open_store(path: Path | None, sync: str = "full", cache_mb: int = 8) -> Engine:
    """Return an engine that depends on nothing but its store."""
    return Engine.open(path, clock=ManualClock(), entropy=SeededEntropy(1), sync=sync, cache_mb=cache_mb)


def perform(engine: Engine, step: Step) -> bool:
    """Do a step; tell whether DynamoDB accepted it; raise `Unavailable` when the store failed."""
    try:
        if len(step.calls) == 1:
            return _accepted(engine, step.calls[0])
        engine.collect_writes()
        failure: Unavailable | None = None
        done = 0
        for call in step.calls:
            try:
                done += _accepted(engine, call)
            except Unavailable as error:
                failure = error
        try:
            engine.commit()
        except StoreError as error:
            raise Unavailable(str(error)) from error
        if failure is not None:
            assert not done, f"a call of a group failed, and the rest of it was committed: {failure}"
            raise failure
        return True
    finally:
        assert not engine.dirty, "nothing stays open after an acknowledgement"


def _accepted(engine: Engine, call: Call) -> bool:
    try:
        engine.call(*call)
    except InternalServerFault as fault:
        raise Unavailable(str(fault)) from fault
    except (ConditionalCheckFailedFault, TransactionCanceledFault):
        return False
    return True


def history_of(steps: Sequence[Step]) -> History:
    """Return steps with the states they lead through."""
    engine = open_store(None)
    states = [read_state(engine)]
    refused: set[int] = set()
    for place, step in enumerate(steps):
        if not perform(engine, step):
            refused.add(place)
        settle(engine)
        states.append(read_state(engine))
    assert not faults_in(engine)
    engine.close()
    return History(tuple(steps), tuple(states), frozenset(refused))


def random_history(random: Random, length: int) -> History:
    """Return a history of a table with two indexes, written in every way there is."""
    steps = [Step((create_table(),))]
    added = False
    for number in range(length):
        choice = random.random()
        if choice < 0.35:
            steps.append(Step((put(random, number),)))
        elif choice < 0.5:
            steps.append(Step((update(random),)))
        elif choice < 0.6:
            steps.append(Step((delete(random),)))
        elif choice < 0.75:
            steps.append(Step((transact(random, number),)))
        elif choice < 0.82:
            steps.append(Step((batch(random, number),)))
        elif choice < 0.95:
            steps.append(Step(tuple(put(random, number * 100 + i) for i in range(random.randint(2, 5)))))
        else:
            steps.append(Step((drop_index() if added else add_index(),)))
            added = not added
    return history_of(steps)


def create_table() -> Call:
    """Return the making of the table: a local index of keys, a global one of everything, and a stream."""
    return "CreateTable", {
        "TableName": TABLE,
        "BillingMode": "PAY_PER_REQUEST",
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
            {"AttributeName": "state", "AttributeType": "S"},
            {"AttributeName": "score", "AttributeType": "N"},
        ],
        "KeySchema": _schema(pk="HASH", sk="RANGE"),
        "LocalSecondaryIndexes": [
            {
                "IndexName": "by-score",
                "KeySchema": _schema(pk="HASH", score="RANGE"),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "by-state",
                "KeySchema": _schema(state="HASH", score="RANGE"),
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    }


def add_index() -> Call:
    """Return the making of a third index, over several attributes, filled from what is there."""
    return "UpdateTable", {
        "TableName": TABLE,
        "AttributeDefinitions": [
            {"AttributeName": "state", "AttributeType": "S"},
            {"AttributeName": "city", "AttributeType": "S"},
            {"AttributeName": "score", "AttributeType": "N"},
        ],
        "GlobalSecondaryIndexUpdates": [
            {
                "Create": {
                    "IndexName": "by-city",
                    "KeySchema": _schema(state="HASH", city="HASH", score="RANGE"),
                    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["note"]},
                }
            }
        ],
    }


def drop_index() -> Call:
    """Return the dropping of the third index."""
    return "UpdateTable", {
        "TableName": TABLE,
        "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-city"}}],
    }


def put(random: Random, number: int, padding: int | None = None) -> Call:
    """Return a PutItem of a fresh item under one of a few keys."""
    return "PutItem", {"TableName": TABLE, "Item": _item(random, number, padding)}


def update(random: Random) -> Call:
    """Return an UpdateItem that counts, and moves the item in an index."""
    return "UpdateItem", {
        "TableName": TABLE,
        "Key": _key(random),
        "UpdateExpression": "SET #s = :s ADD hits :one",
        "ExpressionAttributeNames": {"#s": "state"},
        "ExpressionAttributeValues": {":s": {"S": random.choice("abc")}, ":one": {"N": "1"}},
    }


def delete(random: Random) -> Call:
    """Return a DeleteItem."""
    return "DeleteItem", {"TableName": TABLE, "Key": _key(random)}


def transact(random: Random, number: int) -> Call:
    """Return a transaction of several items with a token; counting twice would show."""
    keys = random.sample(range(_KEYS), 3)
    writes: list[dict[str, Any]] = [
        {
            "Update": {
                "TableName": TABLE,
                "Key": _key_of(key),
                "UpdateExpression": "SET score = :r ADD hits :one",
                "ExpressionAttributeValues": {":one": {"N": "1"}, ":r": {"N": str(number)}},
            }
        }
        for key in keys[:2]
    ]
    writes.append({"Put": {"TableName": TABLE, "Item": _item(random, number) | _key_of(keys[2])}})
    if random.random() < 0.2:
        writes.append(
            {
                "ConditionCheck": {
                    "TableName": TABLE,
                    "Key": {"pk": {"S": "never"}, "sk": {"N": "0"}},
                    "ConditionExpression": "attribute_exists(pk)",
                }
            }
        )
    return "TransactWriteItems", {"TransactItems": writes, "ClientRequestToken": f"token-{number}"}


def batch(random: Random, number: int) -> Call:
    """Return a BatchWriteItem of puts and deletes."""
    writes: list[dict[str, Any]] = []
    for key in random.sample(range(_KEYS), 4):
        if random.random() < 0.7:
            writes.append({"PutRequest": {"Item": _item(random, number) | _key_of(key)}})
        else:
            writes.append({"DeleteRequest": {"Key": _key_of(key)}})
    return "BatchWriteItem", {"RequestItems": {TABLE: writes}}


def _item(random: Random, number: int, padding: int | None = None) -> dict[str, Any]:
    item = _key(random) | {"note": {"S": f"note {number}"}, "state": {"S": random.choice("abc")}}
    if random.random() < 0.7:
        item["score"] = {"N": str(random.randint(-5, 5))}
    if random.random() < 0.7:
        item["city"] = {"S": random.choice(["Oslo", "Rome"])}
    size = random.choice([0, 0, 100, 3000, 9000]) if padding is None else padding
    if size:
        item["padding"] = {"S": "x" * size}
    return item


def _key(random: Random) -> dict[str, Any]:
    return _key_of(random.randrange(_KEYS))


def _key_of(number: int) -> dict[str, Any]:
    return {"pk": {"S": f"customer {number % 2}"}, "sk": {"N": str(number)}}


def _schema(**keys: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": kind} for name, kind in keys.items()]
