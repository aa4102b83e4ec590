"""Filling a new index: a slice at a time, over restarts, passing over what does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tavola.engine import Engine
from tavola.protocol.faults import ValidationFault
from tests.durability.state import faults_in, scan

ROWS = 700  # more than two slices


def _make(engine: Engine) -> None:
    engine.call(
        "CreateTable",
        {
            "TableName": "notes",
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        },
    )
    for start in range(0, ROWS, 25):
        writes = [{"PutRequest": {"Item": _item(number)}} for number in range(start, start + 25)]
        engine.call("BatchWriteItem", {"RequestItems": {"notes": writes}})


def _item(number: int) -> dict[str, Any]:
    item: dict[str, Any] = {"pk": {"S": f"{number:04}"}}
    if number % 3:
        item["kind"] = {"S": f"kind {number % 5}"} if number % 7 else {"N": "1"}
    return item


def _add(engine: Engine) -> None:
    index = {
        "IndexName": "by-kind",
        "KeySchema": [{"AttributeName": "kind", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    engine.call(
        "UpdateTable",
        {
            "TableName": "notes",
            "AttributeDefinitions": [{"AttributeName": "kind", "AttributeType": "S"}],
            "GlobalSecondaryIndexUpdates": [{"Create": index}],
        },
    )


def _expected() -> set[str]:
    return {f"{n:04}" for n in range(ROWS) if "S" in _item(n).get("kind", {})}


def test_an_index_is_filled_from_what_is_there() -> None:
    """Every item that has the key is in it; one whose attribute has another type is passed over."""
    with Engine.open() as engine:
        _make(engine)
        _add(engine)

        assert {item["pk"]["S"] for item in scan(engine, "notes", "by-kind")} == _expected()


def test_filling_goes_on_after_a_restart_with_writes_in_between(tmp_path: Path) -> None:
    """A half-filled index is not read; writes keep to it meanwhile; after a restart the rest is filled."""
    path = tmp_path / "store.db"
    engine = Engine.open(path)
    _make(engine)
    engine.collect_writes()  # as a server does: filling is left to `tend`
    _add(engine)
    engine.commit()
    engine.collect_writes()
    engine.run_background_work(0.0001)
    engine.commit()
    with pytest.raises(ValidationFault, match="backfilling"):
        engine.call("Scan", {"TableName": "notes", "IndexName": "by-kind"})
    engine.collect_writes()
    engine.call("PutItem", {"TableName": "notes", "Item": {"pk": {"S": "new"}, "kind": {"S": "kind 1"}}})
    engine.call("DeleteItem", {"TableName": "notes", "Key": {"pk": {"S": "0001"}}})
    engine.call("PutItem", {"TableName": "notes", "Item": {"pk": {"S": "0699"}, "kind": {"S": "late"}}})
    engine.commit()
    engine.close()

    with Engine.open(path) as again:
        while again.run_background_work():
            pass
        found = {item["pk"]["S"] for item in scan(again, "notes", "by-kind")}
        assert found == (_expected() - {"0001"}) | {"new", "0699"}
        assert faults_in(again) == []
