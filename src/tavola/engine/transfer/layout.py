"""Layout of an export: the keys of its files, and the content of its two manifests.

    <prefix>/AWSDynamoDB/<export>/_started               empty: the export has started
    <prefix>/AWSDynamoDB/<export>/data/*.json.gz         the items of a full export
    <prefix>/AWSDynamoDB/data/*.json.gz                  the changes of an incremental one
    <prefix>/AWSDynamoDB/<export>/manifest-files.json    a line for each of those files
    <prefix>/AWSDynamoDB/<export>/manifest-summary.json  written last: the export is complete

Each manifest has a file with its MD5 beside it. A bulk load writes its report in the same layout to its own output.
"""

from __future__ import annotations

import re
from base64 import b32encode
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import msgspec

from tavola.engine.transfer.files import FileChecksums
from tavola.engine.transfer.lines import EXTENSIONS

_FOLDER = "AWSDynamoDB"
_FULL_VERSION = "2020-06-30"
_INCREMENTAL_VERSION = "2023-08-01"
_NAME_BYTES = 16  # 26 characters in base 32
_BESIDE_DATA = re.compile(
    rf"(?:.*/)?{_FOLDER}/[^/]+/(?:_started|manifest-(?:files|summary)\.(?:json|md5|checksum))", re.DOTALL
)


def transfer_id(at_s: float, random: bytes) -> str:
    """Return the id of a transfer: its time in milliseconds, and four random bytes."""
    return f"{round(at_s * 1000):014d}-{random[:4].hex()}"


def top_key(prefix: str | None) -> str:
    """Return the key prefix of all exports to a prefix."""
    cleaned = (prefix or "").rstrip("/")
    return f"{cleaned}/{_FOLDER}" if cleaned else _FOLDER


def folder_key(prefix: str | None, id_: str) -> str:
    """Return the key of one export's folder."""
    return f"{top_key(prefix)}/{id_}"


def data_key(prefix: str | None, id_: str, number: int, format_: str, *, incremental: bool) -> str:
    """Return the key of a data file; the same number always has the same name."""
    name = b32encode(blake2b(f"{id_}/{number}".encode(), digest_size=_NAME_BYTES).digest())
    file = f"{name.decode().rstrip('=').lower()}.{EXTENSIONS[format_]}.gz"
    folder = top_key(prefix) if incremental else folder_key(prefix, id_)
    return f"{folder}/data/{file}"


def started_key(prefix: str | None, id_: str) -> str:
    """Return the key of the empty file that proves the bucket is writable."""
    return f"{folder_key(prefix, id_)}/_started"


def files_key(prefix: str | None, id_: str) -> str:
    """Return the key of the manifest of data files."""
    return f"{folder_key(prefix, id_)}/manifest-files.json"


def summary_key(prefix: str | None, id_: str) -> str:
    """Return the key of the summary manifest."""
    return f"{folder_key(prefix, id_)}/manifest-summary.json"


def md5_key(manifest: str) -> str:
    """Return the key of a manifest's checksum."""
    return manifest.removesuffix(".json") + ".md5"


def is_beside_data(key: str) -> bool:
    """Return whether an object is a manifest or similar file that an export (also AWS's) writes beside its data."""
    return _BESIDE_DATA.fullmatch(key) is not None


def file_entry(key: str, items: int, sums: FileChecksums) -> bytes:
    """Return the line of a data file in the manifest of files."""
    return (
        msgspec.json.encode(
            {"itemCount": items, "md5Checksum": sums.md5, "etag": sums.etag, "dataFileS3Key": key}
        )
        + b"\n"
    )


def summary(described: dict[str, Any], files: str) -> bytes:
    """Return the summary manifest of an export from its description."""
    incremental = described.get("IncrementalExportSpecification")
    members: dict[str, Any] = {
        "version": _INCREMENTAL_VERSION if incremental else _FULL_VERSION,
        "exportArn": described["ExportArn"],
        "startTime": instant(described["StartTime"]),
        "endTime": instant(described["EndTime"]),
        "tableArn": described["TableArn"],
        "tableId": described["TableId"],
    }
    if incremental:
        members["exportFromTime"] = instant(incremental["ExportFromTime"])
        members["exportToTime"] = instant(incremental["ExportToTime"])
    else:
        members["exportTime"] = instant(described["ExportTime"])
    members |= {
        "s3Bucket": described["S3Bucket"],
        "s3Prefix": described.get("S3Prefix"),
        "s3SseAlgorithm": described["S3SseAlgorithm"],
        "s3SseKmsKeyId": described.get("S3SseKmsKeyId"),
        "manifestFilesS3Key": files,
        "billedSizeBytes": described["BilledSizeBytes"],
        "itemCount": described["ItemCount"],
        "outputFormat": described["ExportFormat"],
    }
    if incremental:
        members["outputView"] = incremental["ExportViewType"]
        members["exportType"] = "INCREMENTAL_EXPORT"
    return msgspec.json.encode(members)


def instant(at_s: float) -> str:
    """Return a time as manifests write it: ISO 8601 in UTC, in milliseconds."""
    moment = datetime.fromtimestamp(round(at_s, 3), UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
