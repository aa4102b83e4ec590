"""The engine's own life: groups, failures, tokens across a restart, names used again, threads."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine, StoreError, StoreFailed, StoreFull
from tavola.engine.storage import Store
from tavola.protocol.arns import Scope
from tavola.protocol.faults import (
    Fault,
    IdempotentParameterMismatchFault,
    InternalServerFault,
    TransactionCanceledFault,
    ValidationFault,
)


def create(engine: Engine, name: str = "notes") -> None:
    """Make a table with an index."""
    engine.call(
        "CreateTable",
        {
            "TableName": name,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "kind", "AttributeType": "S"},
            ],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "GlobalSecondaryIndexes": [
                {
                    "IndexName": "by-kind",
                    "KeySchema": [{"AttributeName": "kind", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
        },
    )


def put(engine: Engine, key: str, **texts: str) -> None:
    """Put an item of texts."""
    item = {"pk": {"S": key}} | {name: {"S": text} for name, text in texts.items()}
    engine.call("PutItem", {"TableName": "notes", "Item": item})


def keys(engine: Engine) -> set[str]:
    """Return the keys of all items."""
    return {item["pk"]["S"] for item in engine.call("Scan", {"TableName": "notes"})["Items"]}


def count(token: str, amount: str = "1") -> dict[str, Any]:
    """Return a transaction that counts, with a token."""
    update = {
        "TableName": "notes",
        "Key": {"pk": {"S": "counter"}},
        "UpdateExpression": "ADD hits :n",
        "ExpressionAttributeValues": {":n": {"N": amount}},
    }
    return {"TransactItems": [{"Update": update}], "ClientRequestToken": token}


def hits(engine: Engine) -> int:
    """Return how often was counted."""
    item = engine.call("GetItem", {"TableName": "notes", "Key": {"pk": {"S": "counter"}}}).get("Item")
    return int(item["hits"]["N"]) if item else 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give a place for a store."""
    return tmp_path / "store.db"


def _failing(error: StoreError, monkeypatch: pytest.MonkeyPatch) -> None:
    def commit(store: Store) -> None:
        raise error

    monkeypatch.setattr(Store, "commit", commit)


def test_a_group_is_durable_at_its_commit_and_not_before(path: Path) -> None:
    """What was held and not committed is gone with the engine."""
    engine = Engine.open(path)
    create(engine)
    engine.collect_writes()
    put(engine, "a")
    engine.commit()
    engine.collect_writes()
    put(engine, "b")
    engine.close()

    with Engine.open(path) as again:
        assert keys(again) == {"a"}


def test_a_group_whose_commit_fails_is_undone_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failed sync no write of the group is seen, writes are refused, and reads go on."""
    with Engine.open(path) as engine:
        create(engine)
        put(engine, "a", kind="x")
        engine.collect_writes()
        put(engine, "b", kind="x")
        put(engine, "a", kind="y")
        with monkeypatch.context() as planted:
            _failing(StoreFailed("the store failed (planted)"), planted)
            with pytest.raises(StoreFailed, match="planted"):
                engine.commit()

        assert keys(engine) == {"a"}
        table = engine.call("DescribeTable", {"TableName": "notes"})["Table"]
        assert table["ItemCount"] == 1
        assert engine.write_failure == "the store failed (planted)"
        with pytest.raises(InternalServerFault, match="planted"):
            put(engine, "c")
        engine.collect_writes()
        with pytest.raises(InternalServerFault, match="planted"):
            put(engine, "c")
        engine.commit()
        assert keys(engine) == {"a"}


def test_a_full_disk_refuses_once_and_no_longer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No room is reported and undone; with room again, the same engine writes again."""
    with Engine.open(path) as engine:
        create(engine)
        with monkeypatch.context() as planted:
            _failing(StoreFull("there is no room left"), planted)
            with pytest.raises(InternalServerFault, match="no room"):
                put(engine, "a")
            assert engine.write_failure is None
            assert keys(engine) == set()

        put(engine, "b")
        assert keys(engine) == {"b"}


def test_a_group_is_dirty_until_its_commit() -> None:
    """The server asks whether there is anything to make durable before it answers."""
    with Engine.open() as engine:
        create(engine)
        engine.collect_writes()
        result = [engine.dirty]
        put(engine, "a")
        result.append(engine.dirty)
        engine.commit()

        assert [*result, engine.dirty] == [False, True, False]


def test_one_failed_call_dooms_its_group(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that fails in the middle of a group undoes what the group had written before."""
    with Engine.open(path) as engine:
        create(engine)
        rack = next(engine._catalog.tables()).rows
        engine.collect_writes()
        put(engine, "a")

        def insert(*_: object) -> None:
            raise StoreFull("there is no room left")

        with monkeypatch.context() as planted:
            planted.setattr(type(rack), "insert", insert)
            with pytest.raises(InternalServerFault, match="no room"):
                put(engine, "b")
        with pytest.raises(InternalServerFault, match="no room"):
            put(engine, "c")
        with pytest.raises(StoreFull):
            engine.commit()

        assert keys(engine) == set()
        put(engine, "d")
        assert keys(engine) == {"d"}


def test_a_fault_in_a_group_spoils_no_one_else(path: Path) -> None:
    """What DynamoDB refuses is refused alone; the rest of the group is committed."""
    with Engine.open(path) as engine:
        create(engine)
        engine.collect_writes()
        put(engine, "a")
        with pytest.raises(ValidationFault):
            engine.call("PutItem", {"TableName": "notes", "Item": {"other": {"S": "x"}}})
        put(engine, "b")
        engine.commit()

        assert keys(engine) == {"a", "b"}


def test_a_token_has_one_effect_also_after_a_restart(path: Path) -> None:
    """I7: within ten minutes the same transaction is answered and not done again."""
    clock = ManualClock()
    with Engine.open(path, clock=clock) as engine:
        create(engine)
        engine.call("TransactWriteItems", count("once"))
    with Engine.open(path, clock=clock) as engine:
        clock.advance(599)
        engine.call("TransactWriteItems", count("once"))
        assert hits(engine) == 1
        with pytest.raises(IdempotentParameterMismatchFault):
            engine.call("TransactWriteItems", count("once", "2"))

        clock.advance(2)
        engine.call("TransactWriteItems", count("once"))
        assert hits(engine) == 2


def test_a_clock_that_goes_back_keeps_tokens_and_order(path: Path) -> None:
    """A jump of the clock by years, either way, applies no transaction twice that it need not."""
    clock = ManualClock()
    with Engine.open(path, clock=clock) as engine:
        create(engine)
        engine.call("TransactWriteItems", count("once"))
        clock.advance(-10 * 365 * 86400)
        engine.call("TransactWriteItems", count("once"))

        assert hits(engine) == 1
        put(engine, "a")
        assert "a" in keys(engine)


def test_tokens_of_other_accounts_and_regions_are_other_tokens() -> None:
    """I6: no one meets another account's token."""
    with Engine.open() as engine:
        other = Scope(account="111111111111", region="eu-west-1")
        create(engine)
        engine.call("TransactWriteItems", count("once"))
        with pytest.raises(Fault, match="not found"):
            engine.call("TransactWriteItems", count("once"), other)


def test_a_table_made_again_inherits_nothing(path: Path) -> None:
    """I6: items, index entries and counts of a deleted table stay deleted, also after a restart."""
    with Engine.open(path) as engine:
        create(engine)
        put(engine, "a", kind="x")
        engine.call("DeleteTable", {"TableName": "notes"})
        create(engine)
        assert keys(engine) == set()
    with Engine.open(path) as engine:
        table = engine.call("DescribeTable", {"TableName": "notes"})["Table"]
        assert (table["ItemCount"], table["TableSizeBytes"]) == (0, 0)
        found = engine.call("Scan", {"TableName": "notes", "IndexName": "by-kind"})
        assert found["Items"] == []


def test_fifty_threads_count_fifty_times() -> None:
    """I3: no increment is lost."""
    with Engine.open() as engine:
        create(engine)
        threads = [
            threading.Thread(target=engine.call, args=("TransactWriteItems", count(f"t{number}")))
            for number in range(50)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert hits(engine) == 50


def test_money_moves_and_is_never_made_or_lost() -> None:
    """I2 I3: anyone who reads all accounts at once, while others move money, sees the same sum."""
    with Engine.open() as engine:
        create(engine)
        names = ["a", "b", "c"]
        for name in names:
            item = {"pk": {"S": name}, "amount": {"N": "10"}}
            engine.call("PutItem", {"TableName": "notes", "Item": item})
        sums: set[int] = set()

        def move(number: int) -> None:
            for turn in range(40):
                source, target = names[(number + turn) % 3], names[(number + turn + 1 + turn % 2) % 3]
                try:
                    engine.call(
                        "TransactWriteItems", {"TransactItems": [_moved(source, -3), _moved(target, 3)]}
                    )
                except TransactionCanceledFault:
                    pass  # not enough there
                gets = [{"Get": {"TableName": "notes", "Key": {"pk": {"S": name}}}} for name in names]
                found = engine.call("TransactGetItems", {"TransactItems": gets})["Responses"]
                sums.add(sum(int(each["Item"]["amount"]["N"]) for each in found))

        threads = [threading.Thread(target=move, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert sums == {30}


def _moved(name: str, amount: int) -> dict[str, Any]:
    values = {":n": {"N": str(amount)}} | ({":least": {"N": str(-amount)}} if amount < 0 else {})
    update: dict[str, Any] = {
        "TableName": "notes",
        "Key": {"pk": {"S": name}},
        "UpdateExpression": "ADD amount :n",
        "ExpressionAttributeValues": values,
    }
    if amount < 0:
        update["ConditionExpression"] = "amount >= :least"
    return {"Update": update}


def test_closing_twice_does_nothing() -> None:
    """An engine may be closed by anyone who comes last."""
    engine = Engine.open()
    engine.close()
    engine.close()


def test_an_unknown_setting_of_sync_is_reported() -> None:
    """The sentence names what there is to choose from."""
    with pytest.raises(StoreError, match="sync must be one of full, off"):
        Engine.open(sync="maybe")
