"""Layout: the names that AWS gives to the files of an export."""

from __future__ import annotations

import json
import re

from tavola.engine.transfer.files import FileChecksums
from tavola.engine.transfer.layout import (
    data_key,
    file_entry,
    files_key,
    is_beside_data,
    md5_key,
    started_key,
    summary,
    summary_key,
    transfer_id,
)

ID = "01693685827463-2d8752fd"


def test_an_id_is_a_time_and_some_chance() -> None:
    """Fourteen digits of milliseconds, so that ids sort by time."""
    assert transfer_id(1693685827.463, bytes.fromhex("2d8752fd")) == ID


def test_the_files_lie_where_aws_puts_them() -> None:
    """A full export has its data in its own folder, incremental ones share one."""
    data = r"data/[a-z2-7]{26}\.json\.gz"

    assert started_key("exp/", ID) == f"exp/AWSDynamoDB/{ID}/_started"
    assert files_key("exp", ID) == f"exp/AWSDynamoDB/{ID}/manifest-files.json"
    assert summary_key(None, ID) == f"AWSDynamoDB/{ID}/manifest-summary.json"
    assert md5_key(summary_key("", ID)) == f"AWSDynamoDB/{ID}/manifest-summary.md5"
    full = data_key("a/b", ID, 1, "DYNAMODB_JSON", incremental=False)
    assert re.fullmatch(rf"a/b/AWSDynamoDB/{ID}/{data}", full)
    shared = data_key(None, ID, 1, "DYNAMODB_JSON", incremental=True)
    assert re.fullmatch(rf"AWSDynamoDB/{data}", shared)
    assert data_key(None, ID, 1, "ION", incremental=False).endswith(".ion.gz")


def test_a_data_file_has_one_name_however_often_it_is_written() -> None:
    """And every number another, and every export others."""
    names = {data_key(None, id_, n, "ION", incremental=True) for id_ in (ID, "other") for n in (1, 2, 1)}

    assert len(names) == 4


def test_a_data_file_is_entered_with_its_sums() -> None:
    """One line of JSON for each."""
    entry = file_entry(
        "k", 8, FileChecksums("sQMSpEILNgoQmarvDFonGQ==", "af83d6f217c19b8b0fff8023d8ca4716-1", 0)
    )

    assert json.loads(entry) == {
        "itemCount": 8,
        "md5Checksum": "sQMSpEILNgoQmarvDFonGQ==",
        "etag": "af83d6f217c19b8b0fff8023d8ca4716-1",
        "dataFileS3Key": "k",
    }
    assert entry.endswith(b"\n")


def test_the_summary_tells_an_incremental_export_by_its_period() -> None:
    """Another version, two times instead of one, the view."""
    described = {
        "ExportArn": "arn",
        "StartTime": 1.0,
        "EndTime": 2.0,
        "TableArn": "table",
        "TableId": "id",
        "S3Bucket": "b",
        "S3SseAlgorithm": "AES256",
        "BilledSizeBytes": 0,
        "ItemCount": 0,
        "ExportFormat": "ION",
    }
    period = {"ExportFromTime": 0.0, "ExportToTime": 0.5, "ExportViewType": "NEW_IMAGE"}

    full = json.loads(summary({**described, "ExportTime": 0.0}, "files"))
    part = json.loads(summary({**described, "IncrementalExportSpecification": period}, "files"))

    assert (full["version"], full["exportTime"]) == ("2020-06-30", "1970-01-01T00:00:00.000Z")
    assert "exportType" not in full
    assert (part["version"], part["exportType"], part["outputView"]) == (
        "2023-08-01",
        "INCREMENTAL_EXPORT",
        "NEW_IMAGE",
    )
    assert part["exportToTime"] == "1970-01-01T00:00:00.500Z"
    assert "exportTime" not in part


def test_what_lies_beside_the_data_is_known_by_its_name() -> None:
    """Manifests, their sums and the mark of the beginning are no data, by AWS's names as well as ours."""
    beside = (started_key("e", ID), files_key(None, ID), summary_key("e", ID), md5_key(files_key("e", ID)))

    assert all(map(is_beside_data, (*beside, f"AWSDynamoDB/{ID}/manifest-summary.checksum")))
    for key in (data_key("e", ID, 1, "ION", incremental=False), "manifest-summary.json", "a/_started"):
        assert not is_beside_data(key)
