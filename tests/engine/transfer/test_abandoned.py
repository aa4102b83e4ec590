"""A transfer whose step fails in a way no one foresaw leaves nothing behind that is in the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tavola.engine import Engine
from tavola.engine.transfer import Bulk, Export, Import
from tavola.protocol.arns import DEFAULT_SCOPE
from tavola.protocol.faults import Fault

WHY = "planted in a step"
TABLE: dict[str, Any] = {
    "TableName": "notes",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
SOURCE: dict[str, Any] = {"S3Bucket": "bucket", "S3KeyPrefix": "in"}


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """An engine whose exports, imports and bulk loads begin and then fail."""
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket" / "in.json").write_text('{"Item":{"id":{"S":"a"}}}\n')

    def fail(*_: object) -> NoReturn:
        raise RuntimeError(WHY)

    for work in (Export, Import, Bulk):
        monkeypatch.setattr(work, "step", fail)
    with closing(Engine.open(buckets=tmp_path)) as opened:
        yield opened


def left(engine: Engine) -> list[str]:
    """Return the objects that are still noted."""
    return [name for name, _ in engine._store.records("load-object")]


def test_an_import_gives_its_name_back(engine: Engine) -> None:
    """The table that it began goes; the record tells that it failed and why."""
    asked = {"S3BucketSource": SOURCE, "InputFormat": "DYNAMODB_JSON", "TableCreationParameters": TABLE}
    arn = engine.call("ImportTable", asked)["ImportTableDescription"]["ImportArn"]

    found = engine.call("DescribeImport", {"ImportArn": arn})["ImportTableDescription"]
    assert (found["ImportStatus"], found["FailureCode"]) == ("FAILED", "InternalServerError")
    assert WHY in found["FailureMessage"]
    assert found["EndTime"] >= found["StartTime"]
    with pytest.raises(Fault, match="not found"):
        engine.call("DescribeTable", {"TableName": "notes"})
    assert left(engine) == []
    assert engine.call("CreateTable", TABLE)["TableDescription"]["TableName"] == "notes"


@pytest.mark.parametrize("deleted", [False, True])
def test_an_export_lets_go_of_the_past(engine: Engine, deleted: bool) -> None:
    """No pin is left on the table, nor on what is kept of one that was deleted meanwhile."""
    engine.call("CreateTable", TABLE)
    recovery = {"PointInTimeRecoveryEnabled": True}
    engine.call(
        "UpdateContinuousBackups", {"TableName": "notes", "PointInTimeRecoverySpecification": recovery}
    )
    table = engine._catalog.find(DEFAULT_SCOPE, "notes")
    assert table is not None
    engine.run_background_work()  # from now on the work waits for this
    arn = engine.call("ExportTableToPointInTime", {"TableArn": table.arn, "S3Bucket": "bucket"})[
        "ExportDescription"
    ]["ExportArn"]
    if deleted:
        engine.call("DeleteTable", {"TableName": "notes"})
    while engine.run_background_work():
        pass

    found = engine.call("DescribeExport", {"ExportArn": arn})["ExportDescription"]
    assert (found["ExportStatus"], found["FailureCode"]) == ("FAILED", "InternalServerError")
    assert WHY in found["FailureMessage"]
    assert engine._catalog.kept_logs() == frozenset()
    after = engine._catalog.find(DEFAULT_SCOPE, "notes")
    assert (after is None) is deleted
    assert after is None or after.definition.pins == 0


def test_a_bulk_load_lets_go_of_its_objects(engine: Engine) -> None:
    """The table stays as it is, and can be deleted."""
    engine.call("CreateTable", TABLE)
    asked = {
        "TableName": "notes",
        "InputS3Configuration": SOURCE | {"InputFormat": "DYNAMODB_JSON"},
        "OutputS3Configuration": {"S3KeyPrefix": "out", "OutputType": ["ERROR"]},
    }
    arn = engine.call("StartBulkPutItems", asked)["BulkOperationDescription"]["BulkOperationArn"]

    found = engine.call("DescribeBulkOperation", {"BulkOperationArn": arn})["BulkOperationDescription"]
    assert (found["BulkOperationStatus"], found["FailureCode"]) == ("FAILED", "InternalServerError")
    assert WHY in found["FailureMessage"]
    assert left(engine) == []
    engine.call("DeleteTable", {"TableName": "notes"})
