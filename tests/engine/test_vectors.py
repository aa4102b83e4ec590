"""A vector index stays one with its table: over restarts, in the past, and while it is filled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine, RequestContext, StoreError
from tavola.engine.backfill import fill_slice, next_unfilled
from tavola.protocol.faults import Fault, ValidationFault

INDEX: dict[str, Any] = {
    "IndexName": "near",
    "VectorAttribute": {"AttributeName": "v"},
    "Dimensions": 2,
    "DistanceFunction": "EUCLIDEAN",
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}
TABLE: dict[str, Any] = {
    "TableName": "notes",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
    "VectorIndexes": [INDEX],
}


def _put(engine: Engine, key: str, *numbers: float) -> None:
    vector = {"L": [{"N": str(number)} for number in numbers]}
    engine.call("PutItem", {"TableName": "notes", "Item": {"pk": {"S": key}, "v": vector}})


def _found(engine: Engine, context: RequestContext | None = None) -> str:
    request = {
        "TableName": "notes",
        "IndexName": "near",
        "SearchVector": [{"N": "0"}, {"N": "0"}],
        "TopK": 100,
    }
    answer = engine.call("SearchVectors", request, context=context)
    return "".join(each["Item"]["pk"]["S"] for each in answer["SearchResults"])


def test_an_index_is_there_after_a_restart(tmp_path: Path) -> None:
    """What was indexed is in the file; memory is filled from it."""
    with Engine.open(tmp_path / "store.db") as engine:
        engine.call("CreateTable", TABLE)
        for key, far in (("b", 2), ("a", 1), ("c", 3)):
            _put(engine, key, far, 0)
        assert _found(engine) == "abc"

    with Engine.open(tmp_path / "store.db") as engine:
        assert _found(engine) == "abc"
        _put(engine, "d", 0, 0)
        assert _found(engine) == "dabc"


def test_the_past_is_searched_as_it_was() -> None:
    """A search as of a time finds the vectors of then, and leaves those of now in memory."""
    clock = ManualClock(1_800_000_000.0)
    with Engine.open(clock=clock) as engine:
        engine.call("CreateTable", TABLE)
        engine.call(
            "UpdateContinuousBackups",
            {
                "TableName": "notes",
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            },
        )
        clock.advance(10)
        _put(engine, "a", 1, 0)
        _put(engine, "b", 2, 0)
        clock.advance(10)
        then = RequestContext(as_of_us=int(clock.now() * 1_000_000))
        clock.advance(10)
        _put(engine, "a", 9, 0)
        engine.call("DeleteItem", {"TableName": "notes", "Key": {"pk": {"S": "b"}}})
        _put(engine, "c", 1, 0)

        assert _found(engine) == "ca"
        assert _found(engine, then) == "ab"
        assert _found(engine) == "ca"


def test_an_index_that_is_being_filled_is_not_searched(tmp_path: Path) -> None:
    """Until the last row is in it a search is refused; then it finds what was written before and meanwhile."""
    with Engine.open(tmp_path / "store.db") as engine:
        engine.call("CreateTable", {name: value for name, value in TABLE.items() if name != "VectorIndexes"})
        for place in range(300):
            _put(engine, f"{place:03d}", place + 1, 0)
        engine.run_background_work()
        engine.call("UpdateTable", {"TableName": "notes", "VectorIndexUpdates": [{"Create": INDEX}]})
        described = engine.call("DescribeTable", {"TableName": "notes"})["Table"]
        assert described["VectorIndexes"][0]["Backfilling"] is True
        assert described["TableStatus"] == "UPDATING"
        with pytest.raises(ValidationFault, match="Cannot search backfilling vector index: near"):
            _found(engine)
        unfilled = next_unfilled(engine._catalog)
        assert unfilled is not None
        engine._group.begin()
        fill_slice(engine._catalog, *unfilled)
        engine._group.commit()
        with pytest.raises(ValidationFault, match="Cannot search backfilling"):
            _found(engine)
        _put(engine, "299", 0, 0)
        more = {"TableName": "notes", "VectorIndexUpdates": [{"Create": INDEX | {"IndexName": "more"}}]}
        with pytest.raises(Fault, match="Only 1 online index"):
            engine.call("UpdateTable", more)

        while engine.run_background_work():
            pass

        described = engine.call("DescribeTable", {"TableName": "notes"})["Table"]["VectorIndexes"][0]
        assert described["IndexStatus"] == "ACTIVE"
        assert described["ItemCount"] == 300
        assert _found(engine).startswith("299000001")


def test_filling_is_cancelled_by_a_delete() -> None:
    """An index that is not complete may be dropped, which is how its making is given up."""
    with Engine.open() as engine:
        engine.call("CreateTable", {name: value for name, value in TABLE.items() if name != "VectorIndexes"})
        _put(engine, "a", 1, 0)
        engine.run_background_work()
        engine.call("UpdateTable", {"TableName": "notes", "VectorIndexUpdates": [{"Create": INDEX}]})

        engine.call(
            "UpdateTable", {"TableName": "notes", "VectorIndexUpdates": [{"Delete": {"IndexName": "near"}}]}
        )

        described = engine.call("DescribeTable", {"TableName": "notes"})["Table"]
        assert "VectorIndexes" not in described
        assert described["TableStatus"] == "ACTIVE"


def test_settings_keep_the_index_in_memory() -> None:
    """A change of the table that does not concern the index does not read it again."""
    with Engine.open() as engine:
        engine.call("CreateTable", TABLE)
        _put(engine, "a", 1, 0)
        _found(engine)
        (before,) = engine._catalog.tables()

        engine.call("UpdateTable", {"TableName": "notes", "DeletionProtectionEnabled": True})
        (after,) = engine._catalog.tables()

        assert after is not before
        assert after.vectors[0].copy is before.vectors[0].copy is not None
        _put(engine, "b", 0, 0)
        assert _found(engine) == "ba"


def test_a_write_that_is_undone_is_not_found(tmp_path: Path) -> None:
    """What a group loses in a failed commit, a search does not find either."""
    with Engine.open(tmp_path / "store.db") as engine:
        engine.call("CreateTable", TABLE)
        _put(engine, "a", 1, 0)
        assert _found(engine) == "a"
        engine.collect_writes()
        _put(engine, "b", 0, 0)
        assert _found(engine) == "ba"

        engine._group.roll_back(StoreError("the disk went"))
        with pytest.raises(StoreError, match="the disk went"):
            engine.commit()

        assert _found(engine) == "a"
