"""Incremental exports: what changed over a period, each item once."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.protocol.faults import Fault

QUARTER_S = 900
START_S = 1_700_000_000.0
TABLE: dict[str, Any] = {
    "TableName": "notes",
    "KeySchema": [
        {"AttributeName": "id", "KeyType": "HASH"},
        {"AttributeName": "n", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "id", "AttributeType": "S"},
        {"AttributeName": "n", "AttributeType": "N"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}


class Notes:
    """A table whose past is kept, on a clock that is set by hand."""

    def __init__(self, folder: Path) -> None:
        self.bucket = folder / "bucket"
        self.bucket.mkdir(parents=True)
        self.clock = ManualClock(START_S)
        self.engine = Engine.open(clock=self.clock, buckets=folder)
        self.arn: str = self.engine.call("CreateTable", TABLE)["TableDescription"]["TableArn"]
        recovery = {"PointInTimeRecoveryEnabled": True}
        self.engine.call(
            "UpdateContinuousBackups", {"TableName": "notes", "PointInTimeRecoverySpecification": recovery}
        )

    def put(self, id_: str, x: int) -> None:
        """Put an item."""
        self.engine.call("PutItem", {"TableName": "notes", "Item": {**key(id_), "x": {"N": str(x)}}})

    def delete(self, id_: str) -> None:
        """Delete an item."""
        self.engine.call("DeleteItem", {"TableName": "notes", "Key": key(id_)})

    def export(self, from_s: float, to_s: float | None = None, **more: Any) -> list[dict[str, Any]]:
        """Return the lines of an incremental export, by key."""
        period = {"ExportFromTime": from_s} | ({} if to_s is None else {"ExportToTime": to_s})
        request = {
            "TableArn": self.arn,
            "S3Bucket": "bucket",
            "ExportType": "INCREMENTAL_EXPORT",
            "IncrementalExportSpecification": period | more.pop("period", {}),
            **more,
        }
        begun = self.engine.call("ExportTableToPointInTime", request)["ExportDescription"]
        self.described = self.engine.call("DescribeExport", {"ExportArn": begun["ExportArn"]})[
            "ExportDescription"
        ]
        assert self.described["ExportStatus"] == "COMPLETED"
        summary = json.loads((self.bucket / self.described["ExportManifest"]).read_bytes())
        lines: list[dict[str, Any]] = []
        for entry in (self.bucket / summary["manifestFilesS3Key"]).read_text().splitlines():
            data = gzip.decompress((self.bucket / json.loads(entry)["dataFileS3Key"]).read_bytes())
            lines += map(json.loads, data.splitlines())
        assert summary["itemCount"] == len(lines)
        return sorted(lines, key=lambda line: str(line["Keys"]["id"]["S"]))


def key(id_: str) -> dict[str, Any]:
    """Return the key of an item."""
    return {"id": {"S": id_}, "n": {"N": "1"}}


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Notes]:
    """A table of notes."""
    made = Notes(tmp_path / "buckets")
    yield made
    made.engine.close()


def test_each_item_that_changed_is_reported_once(notes: Notes) -> None:
    """By what it was before the period and at its end; what came and went in it is not reported at all."""
    for name in ("kept", "changed", "deleted", "touched"):
        notes.put(name, 1)
    notes.clock.advance(100)
    from_s = notes.clock.now()
    for x in (2, 3):
        notes.put("changed", x)
        notes.clock.advance(1)
    notes.put("new", 1)
    notes.put("brief", 1)
    notes.delete("brief")
    notes.delete("deleted")
    for x in range(300):
        notes.put("busy", x)
    notes.clock.advance(QUARTER_S)
    to_s = notes.clock.now()
    notes.put("changed", 9)
    notes.put("late", 1)
    notes.clock.advance(10)

    lines = notes.export(from_s, to_s)

    assert [line["Keys"]["id"]["S"] for line in lines] == ["busy", "changed", "deleted", "new"]
    busy, changed, deleted, new = lines
    assert busy["NewImage"]["x"] == {"N": "299"}
    assert (changed["OldImage"]["x"], changed["NewImage"]["x"]) == ({"N": "1"}, {"N": "3"})
    assert changed["Metadata"]["WriteTimestampMicros"] == {"N": str(int((from_s + 1) * 1_000_000))}
    assert changed["Keys"] == key("changed")
    assert (set(deleted), deleted["OldImage"]["x"]) == ({"Metadata", "Keys", "OldImage"}, {"N": "1"})
    assert set(new) == {"Metadata", "Keys", "NewImage"}


def test_a_period_has_its_start_in_it_and_not_its_end(notes: Notes) -> None:
    """So periods that follow each other tell every change once."""
    notes.clock.advance(100)
    edges = [notes.clock.now() + QUARTER_S * step for step in range(4)]
    for step, edge in enumerate(edges):
        notes.clock.set(edge - 1)
        notes.put(f"before-{step}", 1)
        notes.clock.set(edge)
        notes.put(f"at-{step}", 1)

    found = [
        [line["Keys"]["id"]["S"] for line in notes.export(*period)] for period in itertools.pairwise(edges)
    ]

    assert found == [["at-0", "before-1"], ["at-1", "before-2"], ["at-2", "before-3"]]


def test_with_new_images_alone_the_old_are_left_out(notes: Notes) -> None:
    """A deletion is its keys then; Ion tells the same."""
    notes.put("a", 1)
    notes.put("b", 1)
    notes.clock.advance(10)
    from_s = notes.clock.now()
    notes.put("a", 2)
    notes.delete("b")
    notes.clock.advance(QUARTER_S)

    changed, deleted = notes.export(from_s, period={"ExportViewType": "NEW_IMAGE"})

    assert set(changed) == {"Metadata", "Keys", "NewImage"}
    assert set(deleted) == {"Metadata", "Keys"}
    assert notes.described["IncrementalExportSpecification"] == {
        "ExportFromTime": from_s,
        "ExportToTime": notes.clock.now(),
        "ExportViewType": "NEW_IMAGE",
    }
    assert notes.described["ExportType"] == "INCREMENTAL_EXPORT"
    assert notes.described["BilledSizeBytes"] == 10_000_000
    assert "ExportTime" not in notes.described


def test_incremental_exports_share_a_folder_of_data(notes: Notes) -> None:
    """Their manifests lie apart."""
    notes.put("a", 1)
    notes.clock.advance(QUARTER_S + 1)
    notes.export(START_S)

    (data,) = (notes.bucket / "AWSDynamoDB" / "data").iterdir()
    assert data.name.endswith(".json.gz")
    summary = json.loads((notes.bucket / notes.described["ExportManifest"]).read_bytes())
    assert (summary["version"], summary["exportType"]) == ("2023-08-01", "INCREMENTAL_EXPORT")


def test_a_period_is_a_quarter_of_an_hour_to_a_day(notes: Notes) -> None:
    """Shorter and longer ones are refused, and those before recovery was on."""
    notes.clock.advance(3 * 86_400)
    now_s = notes.clock.now()

    def refusal(from_s: float, to_s: float) -> str:
        with pytest.raises(Fault) as refused:
            notes.export(from_s, to_s)
        assert refused.value.code == "InvalidExportTimeException"
        return str(refused.value)

    between = "Difference between export period from time and export period to time is"
    assert refusal(now_s - QUARTER_S + 1, now_s) == f"{between} less than 15 minutes"
    assert refusal(now_s - 86_401, now_s) == f"{between} greater than 24 hours"
    assert refusal(now_s, now_s - QUARTER_S) == f"{between} less than 15 minutes"
    notes.export(now_s - 86_400, now_s)
    notes.export(now_s - QUARTER_S, now_s)


def test_a_full_export_is_of_any_moment_that_is_kept(notes: Notes) -> None:
    """With every change after it undone."""
    moments: list[float] = []
    for x in range(5):
        notes.put("a", x)
        notes.put(f"b{x}", x)
        notes.clock.advance(30)
        moments.append(notes.clock.now())
        notes.clock.advance(30)
    notes.delete("a")

    for x, moment in enumerate(moments):
        request = {"TableArn": notes.arn, "S3Bucket": "bucket", "S3Prefix": f"p{x}", "ExportTime": moment}
        begun = notes.engine.call("ExportTableToPointInTime", request)["ExportDescription"]
        done = notes.engine.call("DescribeExport", {"ExportArn": begun["ExportArn"]})["ExportDescription"]
        (data,) = (notes.bucket / f"p{x}").rglob("*.json.gz")
        items = [json.loads(line)["Item"] for line in gzip.decompress(data.read_bytes()).splitlines()]
        assert done["ExportTime"] == moment
        assert {each["id"]["S"]: each["x"]["N"] for each in items} == {"a": str(x)} | {
            f"b{y}": str(y) for y in range(x + 1)
        }
