"""File locations: where the files of an export or import are, and their format and compression.

Local files are inspected. A server's files cannot be read from here, so their location and format come from the server's
list of exports and from the name that the user typed.
"""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tavola.cli.errors import CommandError
from tavola.cli.settings import BUCKETS
from tavola.cli.targets import Target
from tavola.errors import ErrorKind

FORMATS = {"json": "DYNAMODB_JSON", "ion": "ION", "csv": "CSV"}

_S3 = "s3://"
_BUCKET = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,253}[a-zA-Z0-9]")
_COMPRESSIONS = {".gz": "GZIP", ".gzip": "GZIP", ".zst": "ZSTD", ".zstd": "ZSTD"}
_NAMED_MAX = 5  # exports listed in a message


@dataclass(frozen=True, slots=True)
class FileLocation:
    """A location as the operations name it: bucket, prefix, and the folder that holds the buckets."""

    bucket: str
    prefix: str
    root: Path | None  # None: the server has it


@dataclass(frozen=True, slots=True)
class ImportSource:
    """The files of an import: their location, their format if known, and their size."""

    location: FileLocation
    format: str | None
    compression: str
    bytes: int = 0  # 0: unknown


def locate_files(text: str, buckets: Path | None, *, local: bool) -> FileLocation:
    """Return where a destination or source is, in terms of the API: bucket and prefix.

    A local path needs no bucket folder: the first of its parents whose name is a valid bucket name serves as the bucket.
    """
    if text.startswith(_S3):
        bucket, _, prefix = text.removeprefix(_S3).partition("/")
        if local and buckets is None:
            raise CommandError(
                f"{text} is an S3 location.", f"Name the folder that stands in for S3 with {BUCKETS.flag}."
            )
        return FileLocation(bucket, prefix, buckets if local else None)
    if not local:
        raise CommandError(
            f"{text} is a local path, and a server can only access its own buckets (tavola serve {BUCKETS.flag}).",
            "Use s3://BUCKET/PREFIX, or name a database file with --store.",
        )
    path = Path(text).expanduser().resolve()
    for folder in (path, *path.parents):
        if _BUCKET.fullmatch(folder.name) and not folder.is_file():
            prefix = path.relative_to(folder).as_posix()
            return FileLocation(folder.name, "" if prefix == "." else prefix, folder.parent)
    raise CommandError(f"No folder of {path} has a valid S3 bucket name.", "Use another folder.")


def find_import_source(source: str, buckets: Path | None, *, local: bool) -> ImportSource:
    """Return the files of an import as far as they can be inspected from here."""
    if source.startswith(_S3):
        location = locate_files(source, buckets, local=local)
        if location.root is None:
            return ImportSource(location, *format_from_name(source))
        return _find_in_bucket(source, location, location.root / location.bucket)
    path = Path(source).expanduser()
    if not path.exists():
        raise CommandError(f"{path} does not exist.", "Name a file or a folder.", ErrorKind.NOT_FOUND)
    location = locate_files(source, buckets, local=local)
    if path.is_dir():
        return _find_in_folder(path, location)
    others = [
        neighbour.name
        for neighbour in path.parent.iterdir()
        if neighbour.name.startswith(path.name) and neighbour != path
    ]
    if others:
        raise CommandError(
            f"{others[0]} has the same prefix as {path.name}, so an import would include both.",
            "Move one of them to another folder.",
        )
    format_, compression = format_from_name(path.name)
    return ImportSource(location, format_, compression, path.stat().st_size if compression == "NONE" else 0)


def find_server_source(target: Target, source: ImportSource, form: str | None) -> ImportSource:
    """Return a server's files with the format that its list of exports gives, unless that is not `form`."""
    location = source.location
    if source.format is not None:
        return source
    folder = f"{location.prefix.rstrip('/')}/" if location.prefix else ""
    exports = []
    for export in _exports(target):
        data = f"{export['ExportManifest'].rpartition('/')[0]}/data/"
        if export["S3Bucket"] == location.bucket and (data.startswith(folder) or folder.startswith(data)):
            exports.append((data, export))
    full = [export for export in exports if export[1].get("ExportType") != "INCREMENTAL_EXPORT"]
    if form is not None and {export["ExportFormat"] for _, export in full} != {FORMATS[form]}:
        return source
    if len(full) > 1:
        names = [f"s3://{location.bucket}/{data.removesuffix('/data/')}" for data, _ in full]
        raise _several_exports(f"s3://{location.bucket}/{location.prefix}", names)
    if exports and not full:
        raise _only_changes(f"s3://{location.bucket}/{location.prefix}")
    if not full:
        return source
    ((data, export),) = full
    prefix = location.prefix if folder.startswith(data) else data
    return ImportSource(replace(location, prefix=prefix), export["ExportFormat"], "GZIP")


def _several_exports(where: str, names: list[str]) -> CommandError:
    return CommandError(
        f"{where} contains {len(names)} exports: {', '.join(names[:_NAMED_MAX])}.", "Name one of them."
    )


def _only_changes(where: str) -> CommandError:
    return CommandError(
        f"{where} is an incremental export, which holds changes, not items.", "Import a full export."
    )


def _exports(target: Target) -> Iterator[dict[str, Any]]:
    """Yield the completed exports of a server; none if the caller may not list them."""
    from tavola.protocol.faults import AccessDeniedFault

    token = None
    try:
        while True:
            page = target.call("ListExports", NextToken=token)
            for summary in page.get("ExportSummaries", ()):
                if summary["ExportStatus"] == "COMPLETED":
                    yield target.call("DescribeExport", ExportArn=summary["ExportArn"])["ExportDescription"]
            token = page.get("NextToken")
            if token is None:
                return
    except AccessDeniedFault:
        return


def _find_in_bucket(source: str, location: FileLocation, bucket: Path) -> ImportSource:
    """Return the files under a prefix of a local bucket."""
    path = bucket / location.prefix
    if path.is_dir():
        return _find_in_folder(path, location)
    if not path.is_file() and not list(path.parent.glob(f"{glob.escape(path.name)}*")):
        raise CommandError(
            f"{source} does not exist: no file matches {path}.", "Check the name.", ErrorKind.NOT_FOUND
        )
    return ImportSource(location, *format_from_name(source))


def _find_in_folder(path: Path, location: FileLocation) -> ImportSource:
    """Return the files of a folder: the data of the export in it, or all files."""
    manifests = sorted(path.rglob("manifest-summary.json"))
    if len(manifests) > 1:
        raise _several_exports(str(path), [manifest.parent.name for manifest in manifests])
    if manifests:
        summary = json.loads(manifests[0].read_text())
        if summary.get("exportType") == "INCREMENTAL_EXPORT":
            raise _only_changes(str(manifests[0].parent))
        inner = (manifests[0].parent / "data").relative_to(path).as_posix()
        return ImportSource(
            _as_folder_prefix(replace(location, prefix=f"{location.prefix}/{inner}".strip("/"))),
            summary["outputFormat"],
            "GZIP",
        )
    files = [file for file in path.rglob("*") if file.is_file()]
    if not files:
        raise CommandError(
            f"The folder {path} is empty.", "Name the folder of the files.", ErrorKind.NOT_FOUND
        )
    kinds = {format_from_name(file.name) for file in files}
    if len(kinds) > 1:
        raise CommandError(f"The files in {path} have different formats.", "Import one format at a time.")
    format_, compression = kinds.pop()
    total = sum(file.stat().st_size for file in files) if compression == "NONE" else 0
    return ImportSource(_as_folder_prefix(location), format_, compression, total)


def _as_folder_prefix(location: FileLocation) -> FileLocation:
    """Return the location with a prefix that ends in a slash, so that it matches only files in the folder."""
    return replace(location, prefix=f"{location.prefix.rstrip('/')}/" if location.prefix else "")


def format_from_name(name: str) -> tuple[str | None, str]:
    """Return the format and compression from a file's name, such as `items.csv.gz`."""
    stem, dot, last = name.rpartition(".")
    compression = _COMPRESSIONS.get(f"{dot}{last}".lower(), "NONE")
    if compression != "NONE":
        last = stem.rpartition(".")[2]
    form = {"jsonl": "json", "ndjson": "json"}.get(last.lower(), last.lower())
    return FORMATS.get(form), compression
