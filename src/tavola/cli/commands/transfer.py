"""`tavola export` and `tavola import`: tables to files in AWS's layout and back, with their progress."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tavola.cli.exits import Exit
from tavola.cli.failures import told
from tavola.cli.keys import KeyCommand, KeyFile
from tavola.cli.output import complain, say, say_json
from tavola.cli.settings import BUCKETS, option
from tavola.cli.targets import (
    Account,
    EndpointUrl,
    Region,
    Store,
    StoreKey,
    Target,
    TargetRefused,
    moment,
    opened,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
BucketFolder = Annotated[Path | None, option(BUCKETS)]
ExportForm = Literal["json", "ion"]
ImportForm = Literal["json", "ion", "csv"]
Packing = Literal["gzip", "zstd", "none"]

_S3 = "s3://"
_BUCKET = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,253}[a-zA-Z0-9]")
_FORMATS = {"json": "DYNAMODB_JSON", "ion": "ION", "csv": "CSV"}
_PACKINGS = {".gz": "GZIP", ".gzip": "GZIP", ".zst": "ZSTD", ".zstd": "ZSTD"}
_TYPES = ("S", "N", "B")


@dataclass(frozen=True, slots=True)
class Place:
    """Where files are, as the operations name it: a bucket, a prefix, and the folder of the buckets."""

    bucket: str
    prefix: str
    root: Path | None  # None: the endpoint's own


def export(
    table: Annotated[str, typer.Argument(help="The table, which must have point-in-time recovery.")],
    destination: Annotated[
        str, typer.Argument(help="The folder to write to, or s3://BUCKET/PREFIX of the buckets.")
    ],
    form: Annotated[ExportForm, typer.Option("--format", help="DynamoDB JSON or Ion.")] = "json",
    time: Annotated[
        str | None, typer.Option("--time", help="The moment to export: 2026-11-16T10:00:00Z, or 10m for ago.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="Export only what has changed since then, in the same forms."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", help="With --since: up to then; without it up to now.")
    ] = None,
    new_images: Annotated[
        bool, typer.Option("--new-images", help="With --since: leave out what items were before.")
    ] = False,
    recovery: Annotated[
        bool, typer.Option("--recovery", help="Switch point-in-time recovery on first, if it is off.")
    ] = False,
    as_json: AsJson = False,
    buckets: BucketFolder = None,
    store: Store = None,
    endpoint: EndpointUrl = None,
    region: Region = None,
    account: Account = None,
    key_file: KeyFile = None,
    key_command: KeyCommand = None,
    store_key: StoreKey = None,
) -> None:
    """Write TABLE to files in the layout of an AWS export, and wait until they are there."""
    keys = (key_file, key_command, store_key)
    with told(f"Cannot export {table}."):
        place = place_of(destination, buckets, local=store is not None)
        times = _moments(time, since, until, new_images)
        if place.root is not None:
            (place.root / place.bucket).mkdir(parents=True, exist_ok=True)
        with opened(store, endpoint, region, account, keys, buckets=place.root) as target:
            _recover(target, table, wanted=recovery)
            described = target.call("DescribeTable", TableName=table)["Table"]
            begun = target.call(
                "ExportTableToPointInTime",
                TableArn=described["TableArn"],
                S3Bucket=place.bucket,
                S3Prefix=place.prefix or None,
                ExportFormat=_FORMATS[form],
                **times,
            )["ExportDescription"]
            done = _followed(
                target,
                f"Exporting {table}",
                described["ItemCount"],
                ("DescribeExport", "ExportDescription", "Export"),
                ExportArn=begun["ExportArn"],
                counted="ItemCount",
            )
    _end_failed(f"Cannot export {table}.", done, "ExportStatus")
    if as_json:
        say_json("tavola.export/1", {"export": done})
        return
    where = f"{place.bucket}/" if place.root is None else f"{place.root / place.bucket}/"
    say(f"{done['ItemCount']:,} items of {table} are in {where}{done['ExportManifest'].rpartition('/')[0]}")


def import_(
    source: Annotated[
        str, typer.Argument(help="A file, a folder of files or of an export, or s3://BUCKET/PREFIX.")
    ],
    table: Annotated[str, typer.Option("--table", help="The name of the new table.")],
    hash_key: Annotated[
        str, typer.Option("--hash", help="The partition key: NAME, or NAME:N, NAME:B for its type.")
    ],
    range_key: Annotated[str | None, typer.Option("--range", help="The sort key, in the same form.")] = None,
    index: Annotated[
        list[str] | None,
        typer.Option("--index", help="A global index: NAME=HASH or NAME=HASH,RANGE, types as for keys."),
    ] = None,
    form: Annotated[
        ImportForm | None,
        typer.Option("--format", help="What the files hold; their names tell, if not this."),
    ] = None,
    compression: Annotated[
        Packing | None, typer.Option(help="How they are compressed; their names tell, if not this.")
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="What is between the columns of CSV; a comma.")
    ] = None,
    header: Annotated[
        str | None, typer.Option(help="The columns of CSV without a header, with commas between.")
    ] = None,
    as_json: AsJson = False,
    buckets: BucketFolder = None,
    store: Store = None,
    endpoint: EndpointUrl = None,
    region: Region = None,
    account: Account = None,
    key_file: KeyFile = None,
    key_command: KeyCommand = None,
    store_key: StoreKey = None,
) -> None:
    """Make a new table from files in DynamoDB JSON, Ion or CSV, and wait until it is there."""
    keys = (key_file, key_command, store_key)
    what = f"Cannot import {source}."
    with told(what):
        place, found_form, found_packing, total = _found(source, buckets, local=store is not None)
        format_ = _FORMATS[form] if form is not None else found_form
        if format_ is None:
            raise TargetRefused(
                "The names of the files do not tell their format; give --format json, ion or csv"
            )
        logs = None if store is None else store.absolute().with_name(f"{store.name}.logs")
        taken = None if place.root is None else _buckets(place.root, logs)
        with opened(store, endpoint, region, account, keys, buckets=taken, new=True) as target:
            begun = target.call(
                "ImportTable",
                S3BucketSource={"S3Bucket": place.bucket, "S3KeyPrefix": place.prefix},
                InputFormat=format_,
                InputFormatOptions=_csv(delimiter, header),
                InputCompressionType=found_packing if compression is None else compression.upper(),
                TableCreationParameters=_definition(table, hash_key, range_key, index or []),
            )["ImportTableDescription"]
            done = _followed(
                target,
                f"Importing {table}",
                total,
                ("DescribeImport", "ImportTableDescription", "Import"),
                ImportArn=begun["ImportArn"],
                counted="ProcessedSizeBytes" if total else "ProcessedItemCount",
            )
    if as_json:
        say_json("tavola.import/1", {"import": done})
    else:
        say(f"{done['ImportedItemCount']:,} items are in {table}; refused: {done['ErrorCount']:,}.")
        if done["ErrorCount"] and logs is not None:
            id_ = done["ImportArn"].rpartition("/")[2]
            say(f"  why:  {logs / 'aws-dynamodb' / 'imports' / id_ / 'error'}")
    _end_failed(what, done, "ImportStatus")


def place_of(text: str, buckets: Path | None, *, local: bool) -> Place:
    """Return where a destination or a source is, as the operations name it.

    A path of this machine needs no folder of buckets: some folder on the way to it has a bucket's name.
    """
    if text.startswith(_S3):
        bucket, _, prefix = text.removeprefix(_S3).partition("/")
        if local and buckets is None:
            raise TargetRefused(f"{text} is in a bucket; name the folder of the buckets with {BUCKETS.flag}")
        return Place(bucket, prefix, buckets if local else None)
    if not local:
        raise TargetRefused(
            f"A server reads and writes its own buckets (tavola serve {BUCKETS.flag}); name a place in them as "
            f"s3://BUCKET/PREFIX, or the file of a store with --store"
        )
    path = Path(text).expanduser().resolve()
    for folder in (path, *path.parents):
        if _BUCKET.fullmatch(folder.name) and not folder.is_file():
            prefix = path.relative_to(folder).as_posix()
            return Place(folder.name, "" if prefix == "." else prefix, folder.parent)
    raise TargetRefused(f"No folder on the way to {path} has a name of plain letters; name another place")


def _found(source: str, buckets: Path | None, *, local: bool) -> tuple[Place, str | None, str, int]:
    """Return where the files of an import are, their format and compression as far as told, and their bytes."""
    if source.startswith(_S3):
        format_, packing = told_by(source)
        return place_of(source, buckets, local=local), format_, packing, 0
    path = Path(source).expanduser()
    if not path.exists():
        raise TargetRefused(f"{path} is not there; name a file or a folder")
    if path.is_dir():
        return _folder(path, buckets, local)
    place = place_of(source, buckets, local=local)
    others = [each.name for each in path.parent.iterdir() if each.name.startswith(path.name) and each != path]
    if others:
        raise TargetRefused(
            f"{others[0]} begins as {path.name} does, and S3 would take it along; move one of them elsewhere"
        )
    format_, packing = told_by(path.name)
    return place, format_, packing, path.stat().st_size if packing == "NONE" else 0


def _folder(path: Path, buckets: Path | None, local: bool) -> tuple[Place, str | None, str, int]:
    """Return the same of a folder: the data of an export in it, or all of its files."""
    manifests = sorted(path.rglob("manifest-summary.json"))
    if len(manifests) > 1:
        ids = ", ".join(each.parent.name for each in manifests[:5])
        raise TargetRefused(f"There are {len(manifests)} exports in {path}: {ids}; name the folder of one")
    if manifests:
        summary = json.loads(manifests[0].read_text())
        if summary.get("exportType") == "INCREMENTAL_EXPORT":
            raise TargetRefused(f"{manifests[0].parent} holds changes and not items; import a full export")
        place = place_of(str(manifests[0].parent / "data"), buckets, local=local)
        return _inside(place), summary["outputFormat"], "GZIP", 0
    place = place_of(str(path), buckets, local=local)
    files = [each for each in path.rglob("*") if each.is_file()]
    kinds = {told_by(each.name) for each in files}
    if len(kinds) > 1:
        raise TargetRefused(f"The files in {path} are of several kinds; put those of one kind in a folder")
    format_, packing = kinds.pop() if kinds else (None, "NONE")
    total = sum(each.stat().st_size for each in files) if packing == "NONE" else 0
    return _inside(place), format_, packing, total


def _inside(place: Place) -> Place:
    """Return the place of what is in a folder, and not beside it under a name that begins alike."""
    return Place(place.bucket, f"{place.prefix}/" if place.prefix else "", place.root)


def told_by(name: str) -> tuple[str | None, str]:
    """Return the format and the compression that a file's name tells: `items.csv.gz`."""
    stem, dot, last = name.rpartition(".")
    packing = _PACKINGS.get(f"{dot}{last}".lower(), "NONE")
    if packing != "NONE":
        last = stem.rpartition(".")[2]
    form = {"jsonl": "json", "ndjson": "json"}.get(last.lower(), last.lower())
    return _FORMATS.get(form), packing


def _buckets(root: Path, logs: Path | None) -> Any:
    """Return the folder that stands for S3; its logs lie beside the store, and not wherever the data is."""
    from tavola.engine import Buckets

    return Buckets(root, logs)


def _definition(table: str, hash_key: str, range_key: str | None, indexes: Iterable[str]) -> dict[str, Any]:
    types: dict[str, str] = {}

    def schema(*keys: str) -> list[dict[str, str]]:
        elements: list[dict[str, str]] = []
        for text, kind in zip(keys, ("HASH", "RANGE"), strict=False):
            name, _, type_ = text.partition(":")
            if (type_ or "S") not in _TYPES or not name:
                raise TargetRefused(f"{text!r} is no key; give NAME, NAME:S, NAME:N or NAME:B")
            types[name] = type_ or types.get(name, "S")
            elements.append({"AttributeName": name, "KeyType": kind})
        return elements

    own = schema(*((hash_key,) if range_key is None else (hash_key, range_key)))
    made = []
    for text in indexes:
        name, equals, keys = text.partition("=")
        if not equals or not keys or keys.count(",") > 1:
            raise TargetRefused(f"{text!r} is no index; give NAME=HASH or NAME=HASH,RANGE")
        projection = {"ProjectionType": "ALL"}
        made.append({"IndexName": name, "KeySchema": schema(*keys.split(",")), "Projection": projection})
    definition: dict[str, Any] = {
        "TableName": table,
        "KeySchema": own,
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": type_} for name, type_ in types.items()
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
    return definition | ({"GlobalSecondaryIndexes": made} if made else {})


def _csv(delimiter: str | None, header: str | None) -> dict[str, Any] | None:
    options: dict[str, Any] = {}
    if delimiter is not None:
        options["Delimiter"] = delimiter.replace("\\t", "\t")
    if header is not None:
        options["HeaderList"] = header.split(",")
    return {"Csv": options} if options else None


def _moments(time: str | None, since: str | None, until: str | None, new_images: bool) -> dict[str, Any]:
    """Return the times of an export as the operation takes them."""
    if since is None:
        if until is not None or new_images:
            raise TargetRefused("--until and --new-images say more of --since, which is not given")
        return {} if time is None else {"ExportTime": moment(time) / 1_000_000}
    if time is not None:
        raise TargetRefused("--time is one moment and --since a period; give one of them")
    period: dict[str, Any] = {"ExportFromTime": moment(since) / 1_000_000}
    if until is not None:
        period["ExportToTime"] = moment(until) / 1_000_000
    if new_images:
        period["ExportViewType"] = "NEW_IMAGE"
    return {"ExportType": "INCREMENTAL_EXPORT", "IncrementalExportSpecification": period}


def _recover(target: Target, table: str, *, wanted: bool) -> None:
    described = target.call("DescribeContinuousBackups", TableName=table)["ContinuousBackupsDescription"]
    if described["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] != "ENABLED":
        if not wanted:
            raise TargetRefused(
                f"Point-in-time recovery of {table} is off, and an export needs it; --recovery switches it on"
            )
        specification = {"PointInTimeRecoveryEnabled": True}
        target.call(
            "UpdateContinuousBackups", TableName=table, PointInTimeRecoverySpecification=specification
        )


def _followed(
    target: Target, what: str, total: int, asked: tuple[str, str, str], *, counted: str, **arn: str
) -> dict[str, Any]:
    """Wait for the end of a transfer, showing how far it is, and return its description."""
    operation, member, noun = asked

    def done() -> int | None:
        described = target.call(operation, **arn)[member]
        return int(described.get(counted, 0)) if described[f"{noun}Status"] == "IN_PROGRESS" else None

    target.follow(what, total, done)
    found: dict[str, Any] = target.call(operation, **arn)[member]
    return found


def _end_failed(what: str, done: dict[str, Any], status: str) -> None:
    if done[status] != "COMPLETED":
        code = done.get("FailureCode", "")
        complain(what, f"{code}: {done.get('FailureMessage', '')}", "Mend what is named and start again.")
        raise typer.Exit(Exit.FAILED)
