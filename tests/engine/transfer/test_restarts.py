"""Exports, imports and bulk loads that are stopped, undone or robbed on the way: nothing is doubled or lost."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine, StoreFull
from tavola.engine.storage import Store
from tavola.engine.transfer import exports
from tavola.engine.transfer.imports import log_path
from tavola.protocol.faults import Fault

ITEMS = 1500
SLICE_MS = 0.0  # one step for each call, however fast the machine is
KEY = {"AttributeName": "id", "KeyType": "HASH"}
DEFINED = {"AttributeName": "id", "AttributeType": "S"}
TABLE: dict[str, Any] = {
    "TableName": "notes",
    "KeySchema": [KEY],
    "AttributeDefinitions": [DEFINED],
    "BillingMode": "PAY_PER_REQUEST",
}
IMPORT: dict[str, Any] = {
    "S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": "in/"},
    "InputFormat": "DYNAMODB_JSON",
    "InputCompressionType": "GZIP",
    "TableCreationParameters": TABLE,
}
BULK: dict[str, Any] = {
    "TableName": "notes",
    "InputS3Configuration": {
        "S3Bucket": "bucket",
        "S3KeyPrefix": "in/",
        "InputFormat": "DYNAMODB_JSON",
        "InputCompressionType": "GZIP",
    },
    "OutputS3Configuration": {"S3KeyPrefix": "out", "OutputType": ["ERROR"]},
}

Reopen = Callable[[], Engine]


def item(number: int) -> dict[str, Any]:
    """Return the item of a number."""
    return {"id": {"S": f"note-{number}"}, "n": {"N": str(number)}, "pad": {"S": "x" * 200}}


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    """A bucket with three objects: one has rows that are no items, one a line before its last that is no JSON."""
    folder = tmp_path / "buckets" / "bucket"
    (folder / "in").mkdir(parents=True)
    lines = [json.dumps({"Item": item(number)}) for number in range(ITEMS)]
    for place, part in enumerate((lines[:600], lines[600:1000], lines[1000:])):
        if place == 1:
            part = [*part, '{"Item":{"n":{"N":"1"}}}', '{"Item":{"id":{"N":"1"}}}']
        if place == 2:
            part = [*part[:-1], "no JSON", part[-1]]
        (folder / "in" / f"{place}.json.gz").write_bytes(gzip.compress("\n".join(part).encode()))
    return folder


@pytest.fixture
def reopen(tmp_path: Path, bucket: Path) -> Iterator[Reopen]:
    """Open the store again, as after a restart; the engine before is closed in the middle of its work."""
    opened: list[Engine] = []

    def again() -> Engine:
        for engine in opened:
            engine.close()
        opened[:] = [
            Engine.open(tmp_path / "store.db", sync="off", clock=ManualClock(), buckets=bucket.parent)
        ]
        opened[0].run_background_work(0.0)  # from now on the work is done when it is told to be
        return opened[0]

    yield again
    for engine in opened:
        engine.close()


def filled(engine: Engine) -> str:
    """Make the table with all items and its past kept, and return its ARN."""
    arn: str = engine.call("CreateTable", TABLE)["TableDescription"]["TableArn"]
    for start in range(0, ITEMS, 25):
        writes = [{"PutRequest": {"Item": item(number)}} for number in range(start, start + 25)]
        engine.call("BatchWriteItem", {"RequestItems": {"notes": writes}})
    recovery = {"PointInTimeRecoveryEnabled": True}
    engine.call(
        "UpdateContinuousBackups", {"TableName": "notes", "PointInTimeRecoverySpecification": recovery}
    )
    return arn


def exported(bucket: Path, manifest: str) -> list[dict[str, Any]]:
    """Return the items of an export by its manifests, and check the manifests against the files."""
    summary = json.loads((bucket / manifest).read_bytes())
    found: list[dict[str, Any]] = []
    for line in (bucket / summary["manifestFilesS3Key"]).read_text().splitlines():
        entry = json.loads(line)
        lines = gzip.decompress((bucket / entry["dataFileS3Key"]).read_bytes()).splitlines()
        assert len(lines) == entry["itemCount"]
        found += [json.loads(each)["Item"] for each in lines]
    assert summary["itemCount"] == len(found)
    assert not list(bucket.rglob("*.part"))
    return sorted(found, key=lambda each: int(each["n"]["N"]))


def scanned(engine: Engine) -> list[dict[str, Any]]:
    """Return all items of the table, by number."""
    found: list[dict[str, Any]] = []
    start: dict[str, Any] = {}
    while True:
        page = engine.call("Scan", {"TableName": "notes", **start})
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            return sorted(found, key=lambda each: int(each["n"]["N"]))
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def failing_commits(monkeypatch: pytest.MonkeyPatch, every: int) -> list[int]:
    """Let each so-manieth commit fail, as on a full disk: the slice is undone, its files are written."""
    commit = Store.commit
    count = [0]

    def sometimes(store: Store) -> None:
        count[0] += 1
        if count[0] % every == 0:
            store.rollback()
            raise StoreFull("the disk is full")
        commit(store)

    monkeypatch.setattr(Store, "commit", sometimes)
    return count


def test_an_export_goes_on_after_restarts(
    reopen: Reopen, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each slice the store is opened again; small files, so that there are several."""
    monkeypatch.setattr(exports, "_FILE_BYTES", 2000)
    engine = reopen()
    arn = filled(engine)
    begun = engine.call("ExportTableToPointInTime", {"TableArn": arn, "S3Bucket": "bucket"})[
        "ExportDescription"
    ]
    seen: list[int] = []
    restarts = 0
    while engine.run_background_work(SLICE_MS):
        engine = reopen()
        restarts += 1
        engine.call("PutItem", {"TableName": "notes", "Item": item(10_000 + restarts)})
        engine.call("DeleteItem", {"TableName": "notes", "Key": {"id": {"S": f"note-{restarts * 100}"}}})
        described = engine.call("DescribeExport", {"ExportArn": begun["ExportArn"]})["ExportDescription"]
        seen.append(described.get("ItemCount", 0))

    done = engine.call("DescribeExport", {"ExportArn": begun["ExportArn"]})["ExportDescription"]
    assert done["ExportStatus"] == "COMPLETED"
    assert restarts > 3
    assert seen == sorted(seen)
    assert len(set(seen)) > 2
    assert exported(bucket, done["ExportManifest"]) == [item(number) for number in range(ITEMS)]
    assert len(list((bucket / "AWSDynamoDB").rglob("*.json.gz"))) > 3
    assert engine.call("DescribeTable", {"TableName": "notes"})["Table"]["TableStatus"] == "ACTIVE"


def test_an_import_goes_on_after_restarts(reopen: Reopen, bucket: Path) -> None:
    """Rows are read once, the counts are those of all objects, and each refused row is reported once."""
    engine = reopen()
    begun = engine.call("ImportTable", IMPORT)["ImportTableDescription"]
    restarts = 0
    while engine.run_background_work(SLICE_MS):
        engine = reopen()
        restarts += 1

    done = engine.call("DescribeImport", {"ImportArn": begun["ImportArn"]})["ImportTableDescription"]
    assert restarts > 3
    assert (done["ImportStatus"], done["FailureCode"]) == ("FAILED", "ItemValidationError")
    assert (done["ProcessedItemCount"], done["ImportedItemCount"], done["ErrorCount"]) == (1503, 1500, 3)
    assert scanned(engine) == [item(number) for number in range(ITEMS)]
    result = _log(bucket, begun["ImportArn"])
    assert [(each["itemS3Pointer"]["key"], each["itemS3Pointer"]["itemIndex"]) for each in result] == [
        ("in/1.json.gz", 400),
        ("in/1.json.gz", 401),
        ("in/2.json.gz", 499),
    ]


def test_a_bulk_load_goes_on_after_restarts(reopen: Reopen, bucket: Path) -> None:
    """The stream of the table has one record for each item, and none twice."""
    engine = reopen()
    stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    engine.call("CreateTable", TABLE | {"StreamSpecification": stream})
    begun = engine.call("StartBulkPutItems", BULK)["BulkOperationDescription"]
    while engine.run_background_work(SLICE_MS):
        engine = reopen()

    done = engine.call("DescribeBulkOperation", {"BulkOperationArn": begun["BulkOperationArn"]})
    described = done["BulkOperationDescription"]
    assert described["BulkOperationStatus"] == "COMPLETED_WITH_ERRORS"
    assert (described["ProcessedItemCount"], described["FailedItemCount"]) == (1503, 3)
    assert described["ProcessedInputBytes"] == described["TotalInputBytes"]
    assert scanned(engine) == [item(number) for number in range(ITEMS)]
    assert len(_records(engine)) == ITEMS
    (report,) = (bucket / "out").rglob("report.json.gz")
    assert len(gzip.decompress(report.read_bytes()).splitlines()) == 3


@pytest.mark.parametrize("every", [2, 3])
def test_a_slice_that_was_undone_is_done_again(
    reopen: Reopen, bucket: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """Its files are written over: an import and an export of it come out as if nothing had been."""
    engine = reopen()
    filled(engine)
    engine.call("DeleteTable", {"TableName": "notes"})
    begun = engine.call("ImportTable", IMPORT)["ImportTableDescription"]
    count = failing_commits(monkeypatch, every)
    _work(engine, "DescribeImport", {"ImportArn": begun["ImportArn"]}, "ImportStatus")
    items = scanned(engine)
    recovery = {"PointInTimeRecoveryEnabled": True}
    switch = {"TableName": "notes", "PointInTimeRecoverySpecification": recovery}
    count[0] = 0
    engine.call("UpdateContinuousBackups", switch)
    export = {
        "TableArn": begun["TableArn"],
        "S3Bucket": "bucket",
        "S3Prefix": "exp",
        "ExportFormat": "DYNAMODB_JSON",
    }
    count[0] = 0
    started = engine.call("ExportTableToPointInTime", export)["ExportDescription"]
    monkeypatch.setattr(exports, "_FILE_BYTES", 2000)
    done = _work(engine, "DescribeExport", {"ExportArn": started["ExportArn"]}, "ExportStatus")

    assert items == [item(number) for number in range(ITEMS)]
    assert len(_log(bucket, begun["ImportArn"])) == 3
    assert exported(bucket, done["ExportManifest"]) == items


def _work(engine: Engine, operation: str, request: dict[str, Any], status: str) -> dict[str, Any]:
    for _ in range(1000):
        engine.run_background_work(SLICE_MS)
        (described,) = engine.call(operation, request).values()
        if described[status] != "IN_PROGRESS":
            found: dict[str, Any] = described
            return found
    raise AssertionError("the work does not end")


@pytest.mark.parametrize("fault", ["cut", "flip", "gone"])
@pytest.mark.parametrize("file", ["data", "manifest"])
def test_what_a_power_cut_takes_from_a_growing_file_is_written_again(
    reopen: Reopen, bucket: Path, monkeypatch: pytest.MonkeyPatch, fault: str, file: str
) -> None:
    """A file that is shorter than it was, or other than it was, is not published as it is."""
    monkeypatch.setattr(exports, "_FILE_BYTES", 6000)
    engine = reopen()
    arn = filled(engine)
    begun = engine.call("ExportTableToPointInTime", {"TableArn": arn, "S3Bucket": "bucket"})[
        "ExportDescription"
    ]
    robbed = 0
    while engine.run_background_work(SLICE_MS):
        pattern = "data/*.part" if file == "data" else "manifest-files.json.part"
        for part in bucket.rglob(pattern):
            if robbed < 2 and part.stat().st_size:
                robbed += 1
                _rob(part, fault)

    done = engine.call("DescribeExport", {"ExportArn": begun["ExportArn"]})["ExportDescription"]
    assert robbed
    assert done["ExportStatus"] == "COMPLETED"
    assert exported(bucket, done["ExportManifest"]) == [item(number) for number in range(ITEMS)]


def _rob(part: Path, fault: str) -> None:
    data = part.read_bytes()
    match fault:
        case "cut":
            part.write_bytes(data[: len(data) // 2])
        case "flip":
            part.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        case _:
            part.unlink()


def test_an_export_outlives_its_table_and_its_recovery(reopen: Reopen, bucket: Path) -> None:
    """The past it reads is kept for it: the table may be deleted meanwhile, as on AWS."""
    engine = reopen()
    arn = filled(engine)
    begun = engine.call("ExportTableToPointInTime", {"TableArn": arn, "S3Bucket": "bucket"})[
        "ExportDescription"
    ]
    engine.run_background_work(SLICE_MS)
    recovery = {"PointInTimeRecoveryEnabled": False}
    engine.call(
        "UpdateContinuousBackups", {"TableName": "notes", "PointInTimeRecoverySpecification": recovery}
    )
    engine.call("DeleteItem", {"TableName": "notes", "Key": {"id": {"S": "note-7"}}})
    engine.call("DeleteTable", {"TableName": "notes"})
    while engine.run_background_work(SLICE_MS):
        pass

    done = engine.call("DescribeExport", {"ExportArn": begun["ExportArn"]})["ExportDescription"]
    assert exported(bucket, done["ExportManifest"]) == [item(number) for number in range(ITEMS)]
    assert engine.call("ListExports", {"TableArn": arn})["ExportSummaries"] == []


def test_a_cancelled_bulk_load_stops_and_leaves_what_it_wrote(reopen: Reopen) -> None:
    """It is CANCELLING until its next slice, then CANCELLED for good."""
    engine = reopen()
    engine.call("CreateTable", TABLE)
    begun = engine.call("StartBulkPutItems", BULK)["BulkOperationDescription"]
    arn = {"BulkOperationArn": begun["BulkOperationArn"]}
    engine.run_background_work(SLICE_MS)
    engine.run_background_work(SLICE_MS)

    answer = engine.call("CancelBulkOperation", arn)
    between = engine.call("DescribeBulkOperation", arn)["BulkOperationDescription"]
    while engine.run_background_work(SLICE_MS):
        pass
    after = engine.call("DescribeBulkOperation", arn)["BulkOperationDescription"]

    assert answer["BulkOperationStatus"] == between["BulkOperationStatus"] == "CANCELLING"
    assert after["BulkOperationStatus"] == "CANCELLED"
    assert {"EndTime", "FailureCode", "FailureMessage"} <= after.keys()
    assert len(scanned(engine)) == after["ProcessedItemCount"] < ITEMS


def test_a_bucket_that_cannot_be_written_fails_the_export(
    reopen: Reopen, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record says so; the table and the engine go on, and nothing is kept for the export's sake."""

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    engine = reopen()
    arn = filled(engine)
    monkeypatch.setattr(exports, "append_at", denied)
    begun = engine.call("ExportTableToPointInTime", {"TableArn": arn, "S3Bucket": "bucket"})[
        "ExportDescription"
    ]
    while engine.run_background_work(SLICE_MS):
        pass

    done = engine.call("DescribeExport", {"ExportArn": begun["ExportArn"]})["ExportDescription"]
    assert (done["ExportStatus"], done["FailureCode"]) == ("FAILED", "S3AccessDenied")
    assert "ExportManifest" not in done
    assert engine.call("DescribeTable", {"TableName": "notes"})["Table"]["ItemCount"] == ITEMS


def test_work_that_was_given_up_is_reported_as_failed(
    reopen: Reopen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake of our own ends the job; its record must not say for ever that it goes on."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    engine = reopen()
    arn = filled(engine)
    monkeypatch.setattr(exports.Export, "step", broken)
    begun = engine.call("ExportTableToPointInTime", {"TableArn": arn, "S3Bucket": "bucket"})[
        "ExportDescription"
    ]
    while engine.run_background_work(SLICE_MS):
        pass

    done = engine.call("DescribeExport", {"ExportArn": begun["ExportArn"]})["ExportDescription"]
    assert (done["ExportStatus"], done["FailureCode"]) == ("FAILED", "InternalServerError")


def test_a_store_that_is_opened_without_its_buckets_ends_the_work(reopen: Reopen, tmp_path: Path) -> None:
    """The record says what is missing; the table is there with what was read, and can be deleted."""
    engine = reopen()
    begun = engine.call("ImportTable", IMPORT)["ImportTableDescription"]
    for _ in range(3):
        engine.run_background_work(SLICE_MS)
    engine.close()
    with Engine.open(tmp_path / "store.db", sync="off") as bare:
        while bare.run_background_work(SLICE_MS):
            pass
        done = bare.call("DescribeImport", {"ImportArn": begun["ImportArn"]})["ImportTableDescription"]
        count = len(scanned(bare))
        bare.call("DeleteTable", {"TableName": "notes"})

    assert done["ImportStatus"] == "FAILED"
    assert "--buckets" in done["FailureMessage"]
    assert count == done["ImportedItemCount"] > 0


def test_without_buckets_the_request_says_how_to_have_them() -> None:
    """Nothing is begun."""
    with Engine.open() as engine, pytest.raises(Fault, match="tavola serve --buckets FOLDER"):
        engine.call("ImportTable", IMPORT)


def _log(bucket: Path, arn: str) -> list[dict[str, Any]]:
    from tavola.engine.transfer import Buckets

    path = log_path(Buckets(bucket.parent), arn.rpartition("/")[2])
    return [json.loads(line) for line in path.read_text().splitlines()]


def _records(engine: Engine) -> list[Any]:
    arn = engine.call("DescribeTable", {"TableName": "notes"})["Table"]["LatestStreamArn"]
    described = engine.call("DescribeStream", {"StreamArn": arn})["StreamDescription"]
    found: list[Any] = []
    for shard in described["Shards"]:
        place = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        iterator = engine.call("GetShardIterator", place)["ShardIterator"]
        while iterator is not None:
            page = engine.call("GetRecords", {"ShardIterator": iterator})
            if not page["Records"]:
                break
            found += page["Records"]
            iterator = page.get("NextShardIterator")
    return found
