"""Records: how long what was done is remembered, and how long a token stands for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.engine.storage import Store
from tavola.engine.transfer.records import Transfer, TransferRecords
from tavola.protocol.arns import Scope
from tavola.protocol.faults import Fault

HERE = Scope("000000000000", "us-east-1")
THERE = Scope("000000000000", "us-east-10")
HOUR_S = 3_600


def transfer(id_: str, scope: Scope = HERE, **more: Any) -> Transfer:
    """Return a record."""
    result: dict[str, Any] = {"started_at_s": 0.0, "token": id_, "digest": "", "description": {}, **more}
    return Transfer(id=id_, account=scope.account, region=scope.region, table="t", table_uuid="u", **result)


def test_the_newest_come_first_and_to_their_owner_alone() -> None:
    """A region whose name another begins with is another region."""
    store = Store.open(None, sync="off", cache_mb=16)
    store.begin()
    records = TransferRecords(store, "export")
    for id_ in ("1", "3", "2"):
        records.save(transfer(id_))
    records.save(transfer("4", THERE))

    assert [each.id for each in records.newest(HERE)] == ["3", "2", "1"]
    assert [each.id for each in records.newest(HERE, before="3")] == ["2", "1"]
    assert [each.id for each in records.newest(HERE, keep=lambda each: each.id != "2")] == ["3", "1"]
    assert records.find(HERE, "4") is None
    assert records.find_by_token(HERE, "2", store_s=8 * HOUR_S) is None
    store.rollback()
    store.close()


def test_a_token_stands_for_eight_hours_and_a_record_for_ninety_days(tmp_path: Path) -> None:
    """After that the same request is a new one, and the old one is forgotten."""
    (tmp_path / "bucket").mkdir()
    clock = ManualClock()
    request = {"TableName": "notes", "InputS3Configuration": {"S3Bucket": "bucket", "InputFormat": "ION"}}
    request |= {"OutputS3Configuration": {"OutputType": ["ERROR"]}, "ClientToken": "token"}
    with Engine.open(clock=clock, buckets=tmp_path) as engine:
        engine.call(
            "CreateTable",
            {
                "TableName": "notes",
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )

        def start() -> str:
            begun = engine.call("StartBulkPutItems", request)["BulkOperationDescription"]
            arn: str = begun["BulkOperationArn"]
            return arn

        first = start()
        clock.advance(8 * HOUR_S - 1)
        second = start()
        clock.advance(2)
        third = start()
        clock.advance(90 * 24 * HOUR_S)
        fourth = start()
        listed = engine.call("ListBulkOperations", {})["BulkOperationsSummaryList"]
        with pytest.raises(Fault, match="not found"):
            engine.call("DescribeBulkOperation", {"BulkOperationArn": third})

    assert first == second
    assert len({first, third, fourth}) == 3
    assert [each["BulkOperationArn"] for each in listed] == [fourth]
