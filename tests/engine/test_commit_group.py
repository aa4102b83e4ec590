"""Groups of writes: who is answered when, and what a failing neighbour does to them."""

from __future__ import annotations

from threading import Thread
from typing import Any

import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.engine.catalog import Catalog
from tavola.protocol.faults import Fault, ValidationFault
from tavola.server.listener import running

TABLE: dict[str, Any] = {
    "TableName": "notes",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
INDEX: dict[str, Any] = {
    "TableName": "notes",
    "AttributeDefinitions": [{"AttributeName": "who", "AttributeType": "S"}],
    "GlobalSecondaryIndexUpdates": [
        {
            "Create": {
                "IndexName": "by-who",
                "KeySchema": [{"AttributeName": "who", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        }
    ],
}


def put(engine: Engine, name: str) -> None:
    engine.call("PutItem", {"TableName": "notes", "Item": {"id": {"S": name}, "who": {"S": "anna"}}})


def names(engine: Engine) -> set[str]:
    return {item["id"]["S"] for item in engine.call("Scan", {"TableName": "notes"})["Items"]}


@pytest.fixture
def engine() -> Engine:
    made = Engine.open()
    made.call("CreateTable", TABLE)
    return made


def test_a_read_that_breaks_leaves_the_group_standing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one caller's read meets does not undo the writes of others."""
    engine.collect_writes()
    put(engine, "a")
    with monkeypatch.context() as broken:
        broken.setattr(Catalog, "find", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            engine.call("Scan", {"TableName": "notes"})
    engine.commit()

    assert names(engine) == {"a"}


def test_a_write_that_breaks_undoes_its_group(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a write is no write: the group it was part of fails whole, and the next one works."""
    engine.collect_writes()
    put(engine, "a")
    with monkeypatch.context() as broken:
        broken.setattr(Catalog, "mark_counts_changed", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            put(engine, "b")
    with pytest.raises(Exception, match="failed unexpectedly"):
        engine.commit()
    put(engine, "c")

    assert names(engine) == {"c"}


def test_another_thread_is_answered_when_it_is_durable(engine: Engine) -> None:
    """A call beside a server that gathers writes commits them before it returns."""
    engine.collect_writes()
    put(engine, "a")
    seen: list[bool] = []

    def write() -> None:
        put(engine, "b")
        seen.append(engine.dirty)

    other = Thread(target=write)
    other.start()
    other.join()
    engine.commit()

    assert seen == [False]
    assert names(engine) == {"a", "b"}


def test_an_index_is_filled_after_the_server_has_gone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anyone who tended the engine may leave; then a call fills a new index itself."""
    put(engine, "a")
    with running(engine):
        pass
    monkeypatch.setattr("tavola.engine.engine._BACKGROUND_CALLER_S", 0.0)
    engine.call("UpdateTable", INDEX)
    described = engine.call("DescribeTable", {"TableName": "notes"})["Table"]

    assert described["GlobalSecondaryIndexes"][0]["IndexStatus"] == "ACTIVE"


def test_an_index_that_is_creating_is_not_read() -> None:
    """What DescribeTable calls CREATING, Query refuses, also while only the delay is left."""
    clock = ManualClock()
    engine = Engine.open(clock=clock, table_delay_ms=1000)
    engine.call("CreateTable", TABLE)
    clock.advance(2)
    engine.call("UpdateTable", INDEX)
    question = {"TableName": "notes", "IndexName": "by-who"}

    with pytest.raises(ValidationFault, match="Cannot read from backfilling"):
        engine.call("Scan", question)
    clock.advance(2)
    assert engine.call("Scan", question)["Count"] == 0


def test_indexes_may_come_and_go_without_end(engine: Engine) -> None:
    """Columns of dropped indexes do not gather until SQLite has no more."""
    put(engine, "a")
    for _ in range(140):
        engine.call("UpdateTable", INDEX)
        engine.call(
            "UpdateTable",
            {"TableName": "notes", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-who"}}]},
        )
    engine.call("UpdateTable", INDEX)

    assert engine.call("Scan", {"TableName": "notes", "IndexName": "by-who"})["Count"] == 1


@pytest.mark.parametrize("limit", [2**31, 2**63, 10**30, 1e300, -(2**70)])
def test_numbers_that_no_integer_holds_are_refused(engine: Engine, limit: float) -> None:
    """A limit beyond AWS's integers is the caller's fault and not ours."""
    with pytest.raises(Fault) as refused:
        engine.call("Scan", {"TableName": "notes", "Limit": limit})

    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("UpdateTable", {"TableName": "notes", "MultiRegionConsistency": "STRONG"}),
        ("UpdateTable", {"TableName": "notes", "DisassociationProtectionEnabled": True}),
        (
            "CreateTable",
            TABLE | {"TableName": "more", "GlobalTableSourceArn": "arn:aws:dynamodb:x:1:table/abc"},
        ),
    ],
)
def test_what_is_not_served_is_refused(engine: Engine, operation: str, request_: dict[str, Any]) -> None:
    """A member without an effect is refused, so that no one believes it had one."""
    with pytest.raises(ValidationFault):
        engine.call(operation, request_)


def test_a_transaction_reads_four_megabytes_at_most(engine: Engine) -> None:
    """TransactGetItems counts the items it would answer."""
    for number in range(11):
        engine.call(
            "PutItem",
            {"TableName": "notes", "Item": {"id": {"S": str(number)}, "text": {"S": "x" * 390_000}}},
        )
    wanted = [{"Get": {"TableName": "notes", "Key": {"id": {"S": str(number)}}}} for number in range(11)]

    assert len(engine.call("TransactGetItems", {"TransactItems": wanted[:10]})["Responses"]) == 10
    with pytest.raises(ValidationFault, match="aggregate size"):
        engine.call("TransactGetItems", {"TransactItems": wanted})


def test_the_units_of_indexes_follow_the_billing_mode() -> None:
    """On demand, no index has units; provisioned again, each must be given its own."""
    engine = Engine.open()
    units = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    engine.call(
        "CreateTable",
        {k: v for k, v in TABLE.items() if k != "BillingMode"} | {"ProvisionedThroughput": units},
    )
    index = INDEX["GlobalSecondaryIndexUpdates"][0]["Create"] | {"ProvisionedThroughput": units}
    engine.call("UpdateTable", INDEX | {"GlobalSecondaryIndexUpdates": [{"Create": index}]})
    engine.call("UpdateTable", {"TableName": "notes", "BillingMode": "PAY_PER_REQUEST"})
    described = engine.call("DescribeTable", {"TableName": "notes"})["Table"]["GlobalSecondaryIndexes"][0]
    back = {"TableName": "notes", "BillingMode": "PROVISIONED", "ProvisionedThroughput": units}

    assert described["ProvisionedThroughput"]["ReadCapacityUnits"] == 0
    with pytest.raises(ValidationFault, match="must be specified for index: by-who"):
        engine.call("UpdateTable", back)
    update = {"Update": {"IndexName": "by-who", "ProvisionedThroughput": units}}
    with pytest.raises(ValidationFault, match="only Updates for index: by-who when TableThroughputMode"):
        engine.call("UpdateTable", {"TableName": "notes", "GlobalSecondaryIndexUpdates": [update]})


def test_all_indexes_together_name_a_hundred_attributes() -> None:
    """The sum is kept on a live table too."""
    engine = Engine.open()
    engine.call("CreateTable", TABLE)

    def index(number: int) -> dict[str, Any]:
        named = [f"a{number}-{each}" for each in range(20)]
        create = INDEX["GlobalSecondaryIndexUpdates"][0]["Create"] | {
            "IndexName": f"by-who-{number}",
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": named},
        }
        return INDEX | {"GlobalSecondaryIndexUpdates": [{"Create": create}]}

    for number in range(5):
        engine.call("UpdateTable", index(number))
    with pytest.raises(ValidationFault, match="per-table limit of 100"):
        engine.call("UpdateTable", index(5))
