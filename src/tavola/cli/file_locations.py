"""File locations: where the files of an export or import are, and their format and compression.

Local files are inspected. A server's files cannot be read from here, so their location and format come from the server's list
of exports and from the name the user gave.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tavola.cli.settings import BUCKETS
from tavola.cli.targets import Target, TargetRefused

FORMATS = {"json": "DYNAMODB_JSON", "ion": "ION", "csv": "CSV"}

_S3 = "s3://"
_BUCKET = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,253}[a-zA-Z0-9]")
_PACKINGS = {".gz": "GZIP", ".gzip": "GZIP", ".zst": "ZSTD", ".zstd": "ZSTD"}
_NAMED_MAX = 5  # of several exports, in a sentence


@dataclass(frozen=True, slots=True)
class FileLocation:
    """A location as the operations name it: bucket, prefix, and the folder that holds the buckets."""

    bucket: str
    prefix: str
    root: Path | None  # None: the endpoint's own


@dataclass(frozen=True, slots=True)
class ImportSource:
    """The files of an import: their location, their format if known, and their size."""

    place: FileLocation
    format: str | None
    packing: str
    bytes: int = 0  # 0: not known


def locate_files(text: str, buckets: Path | None, *, local: bool) -> FileLocation:
    """Return where a destination or a source is, as the operations name it.

    A path of this machine needs no folder of buckets: some folder on the way to it has a bucket's name.
    """
    if text.startswith(_S3):
        bucket, _, prefix = text.removeprefix(_S3).partition("/")
        if local and buckets is None:
            raise TargetRefused(f"{text} is in a bucket; name the folder of the buckets with {BUCKETS.flag}")
        return FileLocation(bucket, prefix, buckets if local else None)
    if not local:
        raise TargetRefused(
            f"A server reads and writes its own buckets (tavola serve {BUCKETS.flag}); name a place in them as "
            f"s3://BUCKET/PREFIX, or the file of a store with --store"
        )
    path = Path(text).expanduser().resolve()
    for folder in (path, *path.parents):
        if _BUCKET.fullmatch(folder.name) and not folder.is_file():
            prefix = path.relative_to(folder).as_posix()
            return FileLocation(folder.name, "" if prefix == "." else prefix, folder.parent)
    raise TargetRefused(f"No folder on the way to {path} has a name of plain letters; name another place")


def find_import_source(source: str, buckets: Path | None, *, local: bool) -> ImportSource:
    """Return the files of an import as far as this machine can tell: all, or the name alone for a server's."""
    if source.startswith(_S3):
        place = locate_files(source, buckets, local=local)
        if place.root is None:
            return ImportSource(place, *format_from_name(source))
        return _of_bucket(source, place, place.root / place.bucket)
    path = Path(source).expanduser()
    if not path.exists():
        raise TargetRefused(f"{path} is not there; name a file or a folder")
    place = locate_files(source, buckets, local=local)
    if path.is_dir():
        return _of_folder(path, place)
    others = [each.name for each in path.parent.iterdir() if each.name.startswith(path.name) and each != path]
    if others:
        raise TargetRefused(
            f"{others[0]} begins as {path.name} does, and S3 would take it along; move one of them elsewhere"
        )
    format_, packing = format_from_name(path.name)
    return ImportSource(place, format_, packing, path.stat().st_size if packing == "NONE" else 0)


def find_server_source(target: Target, source: ImportSource, form: str | None) -> ImportSource:
    """Return a server's files with what its own exports tell of them, unless they are of another `form`."""
    place = source.place
    if source.format is not None:
        return source
    folder = f"{place.prefix.rstrip('/')}/" if place.prefix else ""
    found = []
    for export in _exports(target):
        data = f"{export['ExportManifest'].rpartition('/')[0]}/data/"
        if export["S3Bucket"] == place.bucket and (data.startswith(folder) or folder.startswith(data)):
            found.append((data, export))
    whole = [each for each in found if each[1].get("ExportType") != "INCREMENTAL_EXPORT"]
    if form is not None and {export["ExportFormat"] for _, export in whole} != {FORMATS[form]}:
        return source
    if len(whole) > 1:
        places = ", ".join(
            f"s3://{place.bucket}/{data.removesuffix('/data/')}" for data, _ in whole[:_NAMED_MAX]
        )
        raise TargetRefused(f"There are {len(whole)} exports there: {places}; name one of them")
    if found and not whole:
        raise TargetRefused(
            f"s3://{place.bucket}/{place.prefix} holds changes and not items; import a full export"
        )
    if not whole:
        return source
    ((data, export),) = whole
    kept = place.prefix if folder.startswith(data) else data
    return ImportSource(replace(place, prefix=kept), export["ExportFormat"], "GZIP")


def _exports(target: Target) -> Iterator[dict[str, Any]]:
    """Give the exports that a server knows to be complete; none where it is not ours to ask."""
    from tavola.protocol.faults import AccessDeniedFault

    token = None
    try:
        while True:
            page = target.call("ListExports", NextToken=token)
            for each in page.get("ExportSummaries", ()):
                if each["ExportStatus"] == "COMPLETED":
                    yield target.call("DescribeExport", ExportArn=each["ExportArn"])["ExportDescription"]
            token = page.get("NextToken")
            if token is None:
                return
    except AccessDeniedFault:
        return


def _of_bucket(source: str, place: FileLocation, bucket: Path) -> ImportSource:
    """Return what lies under a prefix of a bucket on this machine."""
    path = bucket / place.prefix
    if path.is_dir():
        return _of_folder(path, place)
    if not path.is_file() and not list(path.parent.glob(f"{_escape_glob(path.name)}*")):
        raise TargetRefused(f"Nothing is at {source}: there is no {path}")
    return ImportSource(place, *format_from_name(source))


def _escape_glob(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def _of_folder(path: Path, place: FileLocation) -> ImportSource:
    """Return the files of a folder: the data of an export in it, or all of them."""
    manifests = sorted(path.rglob("manifest-summary.json"))
    if len(manifests) > 1:
        ids = ", ".join(each.parent.name for each in manifests[:_NAMED_MAX])
        raise TargetRefused(f"There are {len(manifests)} exports in {path}: {ids}; name the folder of one")
    if manifests:
        summary = json.loads(manifests[0].read_text())
        if summary.get("exportType") == "INCREMENTAL_EXPORT":
            raise TargetRefused(f"{manifests[0].parent} holds changes and not items; import a full export")
        inner = (manifests[0].parent / "data").relative_to(path).as_posix()
        return ImportSource(
            _as_folder_prefix(replace(place, prefix=f"{place.prefix}/{inner}".strip("/"))),
            summary["outputFormat"],
            "GZIP",
        )
    files = [each for each in path.rglob("*") if each.is_file()]
    if not files:
        raise TargetRefused(f"{path} is a folder without a file; name another place")
    kinds = {format_from_name(each.name) for each in files}
    if len(kinds) > 1:
        raise TargetRefused(f"The files in {path} are of several kinds; put those of one kind in a folder")
    format_, packing = kinds.pop()
    total = sum(each.stat().st_size for each in files) if packing == "NONE" else 0
    return ImportSource(_as_folder_prefix(place), format_, packing, total)


def _as_folder_prefix(place: FileLocation) -> FileLocation:
    """Return the place of what is in a folder, and not beside it under a name that begins alike."""
    return replace(place, prefix=f"{place.prefix.rstrip('/')}/" if place.prefix else "")


def format_from_name(name: str) -> tuple[str | None, str]:
    """Return the format and the compression that a file's name tells: `items.csv.gz`."""
    stem, dot, last = name.rpartition(".")
    packing = _PACKINGS.get(f"{dot}{last}".lower(), "NONE")
    if packing != "NONE":
        last = stem.rpartition(".")[2]
    form = {"jsonl": "json", "ndjson": "json"}.get(last.lower(), last.lower())
    return FORMATS.get(form), packing
