"""Stores of an earlier format: opened, their settings take effect, and an earlier Tavola is kept out."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import msgspec

from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.engine.catalog import TimeToLive
from tavola.engine.storage.file_format import FORMAT
from tavola.protocol.arns import DEFAULT_SCOPE

START = 1_700_000_000


def make_old(path: Path) -> None:
    """Leave a store as the first format had it: settings of expiry and stream without what now serves them."""
    with closing(Engine.open(path, clock=ManualClock(float(START)))) as engine:
        engine.call(
            "CreateTable",
            {
                "TableName": "Old",
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
                "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
            },
        )
        for number in range(600):
            ends = START + (10 if number % 2 else 10**9)
            item = {"pk": {"S": str(number)}, "ends": {"N": str(ends)}}
            engine.call("PutItem", {"TableName": "Old", "Item": item})
        table = engine._catalog.find(DEFAULT_SCOPE, "Old")
        assert table is not None
        engine._group.begin()
        setting = TimeToLive("ends", True, float(START))
        engine._catalog.change(table, msgspec.structs.replace(table.definition, ttl=setting))
        for name, _ in engine._store.records("stream"):
            engine._store.delete_record("stream", name)
        engine._store.drop_log(table.definition.number)
        engine._group.commit()
    connection = apsw.Connection(str(path), vfs="cksmvfs")
    connection.pragma("user_version", 1)
    connection.close()


def test_settings_of_an_old_store_take_effect(tmp_path: Path) -> None:
    """Items that are there expire, and the stream that was only a setting tells of them."""
    make_old(tmp_path / "old.db")
    clock = ManualClock(START + 3_600.0)

    with closing(Engine.open(tmp_path / "old.db", clock=clock)) as engine:
        while engine.run_background_work():
            pass
        left = engine.call("Scan", {"TableName": "Old", "Select": "COUNT"})["Count"]
        (stream,) = engine.call("ListStreams", {})["Streams"]
        result = 0
        described = engine.call("DescribeStream", {"StreamArn": stream["StreamArn"]})["StreamDescription"]
        for shard in described["Shards"]:
            start = {"ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
            token = engine.call("GetShardIterator", {"StreamArn": stream["StreamArn"], **start})
            result += len(engine.call("GetRecords", token)["Records"])

    assert left == 300
    assert result == 300


def test_a_store_says_which_format_it_has(tmp_path: Path) -> None:
    """Once opened, it has the present format, which an earlier Tavola refuses."""
    path = tmp_path / "old.db"
    make_old(path)
    with closing(Engine.open(path)):
        pass

    connection = apsw.Connection(str(path), vfs="cksmvfs")
    found = connection.pragma("user_version") & 0xFF  # above it: which WAL belongs to the file
    connection.close()

    assert found == FORMAT
