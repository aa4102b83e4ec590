"""`tavola export` and `tavola import`: tables to files in AWS's layout and back, with their progress.

A file that `import` is given without a table to make is a design's, of whatever tool.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import click

from tavola.cli.commands.importing import import_design
from tavola.cli.exits import Exit
from tavola.cli.failures import reporting_errors
from tavola.cli.file_locations import (
    FORMATS,
    ImportSource,
    find_import_source,
    find_server_source,
    locate_files,
)
from tavola.cli.output import complain, say, say_json
from tavola.cli.parameters import BUNDLE, Argument, Option
from tavola.cli.settings import BUCKETS, option
from tavola.cli.targets import (
    Target,
    TargetOptions,
    TargetRefused,
    parse_moment,
)

AsJson = Annotated[bool, Option("--json", help="Print the result as JSON.")]
BucketFolder = Annotated[Path | None, option(BUCKETS)]
ExportForm = Literal["json", "ion"]
ImportForm = Literal["json", "ion", "csv"]
Packing = Literal["gzip", "zstd", "none"]

_TYPES = ("S", "N", "B")
_MEND = "Mend what is named and start again."


def export(
    table: Annotated[str, Argument(help="The table, which must have point-in-time recovery.")],
    destination: Annotated[
        str, Argument(help="The folder to write to, or s3://BUCKET/PREFIX of the buckets.")
    ],
    form: Annotated[ExportForm, Option("--format", help="DynamoDB JSON or Ion.")] = "json",
    time: Annotated[
        str | None, Option("--time", help="The moment to export: 2026-11-16T10:00:00Z, or 10m for ago.")
    ] = None,
    since: Annotated[
        str | None,
        Option("--since", help="Export only what has changed since then, in the same forms."),
    ] = None,
    until: Annotated[
        str | None, Option("--until", help="With --since: up to then; without it up to now.")
    ] = None,
    new_images: Annotated[
        bool, Option("--new-images", help="With --since: leave out what items were before.")
    ] = False,
    recovery: Annotated[
        bool, Option("--recovery", help="Switch point-in-time recovery on first, if it is off.")
    ] = False,
    as_json: AsJson = False,
    buckets: BucketFolder = None,
    at: TargetOptions = BUNDLE,
) -> None:
    """Write TABLE to files in the layout of an AWS export, and wait until they are there."""
    with reporting_errors(f"Cannot export {table}."):
        place = locate_files(destination, buckets, local=at.store is not None)
        times = _moments(time, since, until, new_images)
        if place.root is not None:
            _make(place.root / place.bucket)
        with at.open(buckets=place.root) as target:
            _recover(target, table, wanted=recovery)
            described = target.call("DescribeTable", TableName=table)["Table"]
            begun = target.call(
                "ExportTableToPointInTime",
                TableArn=described["TableArn"],
                S3Bucket=place.bucket,
                S3Prefix=place.prefix or None,
                ExportFormat=FORMATS[form],
                **times,
            )["ExportDescription"]
            done = _follow_job(
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
    where = f"s3://{place.bucket}" if place.root is None else f"{place.root / place.bucket}"
    say(f"{done['ItemCount']:,} items of {table} are in {where}/{done['ExportManifest'].rpartition('/')[0]}")


def import_(
    source: Annotated[
        str,
        Argument(
            help="A file, a folder of files or of an export, or s3://BUCKET/PREFIX; or a file of a design."
        ),
    ],
    table: Annotated[
        str | None,
        Option("--table", help="The name of the new table; without it a design is imported."),
    ] = None,
    hash_key: Annotated[
        str | None, Option("--hash", help="The partition key: NAME, or NAME:N, NAME:B for its type.")
    ] = None,
    range_key: Annotated[str | None, Option("--range", help="The sort key, in the same form.")] = None,
    index: Annotated[
        list[str] | None,
        Option("--index", help="A global index: NAME=HASH or NAME=HASH,RANGE, types as for keys."),
    ] = None,
    form: Annotated[
        ImportForm | None,
        Option("--format", help="What the files hold; their names tell, if not this."),
    ] = None,
    compression: Annotated[
        Packing | None, Option(help="How they are compressed; their names tell, if not this.")
    ] = None,
    delimiter: Annotated[str | None, Option(help="What is between the columns of CSV; a comma.")] = None,
    header: Annotated[
        str | None, Option(help="The columns of CSV without a header, with commas between.")
    ] = None,
    out: Annotated[
        Path | None, Option("--out", help="Of a design: the file to write our document to.")
    ] = None,
    samples: Annotated[
        bool,
        Option("--samples", help="Of a design: make its tables, and put its sample items into them."),
    ] = False,
    as_json: AsJson = False,
    buckets: BucketFolder = None,
    at: TargetOptions = BUNDLE,
) -> None:
    """Make a new table from files in DynamoDB JSON, Ion or CSV, and wait until it is there; or read a design.

    Without --table and --hash the file is a design of another tool: CloudFormation, Terraform (a file, a folder, or a
    plan as JSON), a NoSQL Workbench model, describe-table's output, a OneTable schema, awslabs' schema.json. It is
    printed as our document.
    """
    what = f"Cannot import {source}."
    if table is None and hash_key is None:
        data_options = {
            "--range": range_key,
            "--index": index,
            "--format": form,
            "--compression": compression,
        }
        data_options |= {"--delimiter": delimiter, "--header": header}
        given = [name for name, value in data_options.items() if value is not None]
        if given or source.startswith("s3://"):
            raise click.BadParameter(
                f"{', '.join(given) or source} is of a table's items; give --table and --hash with it"
            )
        with reporting_errors(what):
            there = at.open(new=True) if samples else None
            import_design(source, out, as_json=as_json, samples=there)
        return
    if table is None or hash_key is None:
        raise click.BadParameter("a table is made by --table and --hash together; give both")
    if out is not None or samples:
        raise click.BadParameter(
            "--out and --samples are of a design; leave --table and --hash out with them"
        )
    with reporting_errors(what):
        found = find_import_source(source, buckets, local=at.store is not None)
        if at.store is not None:
            _check_format_known(found, form)
        logs = None if at.store is None else at.store.absolute().with_name(f"{at.store.name}.logs")
        taken = None if found.place.root is None else _buckets(found.place.root, logs)
        with at.open(buckets=taken, new=True) as target:
            if at.store is None:
                if form is None or compression is None:
                    found = find_server_source(target, found, form)
                _check_format_known(found, form)
            begun = target.call(
                "ImportTable",
                S3BucketSource={"S3Bucket": found.place.bucket, "S3KeyPrefix": found.place.prefix},
                InputFormat=found.format if form is None else FORMATS[form],
                InputFormatOptions=_csv(delimiter, header),
                InputCompressionType=found.packing if compression is None else compression.upper(),
                TableCreationParameters=_definition(table, hash_key, range_key, index or []),
            )["ImportTableDescription"]
            done = _follow_job(
                target,
                f"Importing {table}",
                found.bytes,
                ("DescribeImport", "ImportTableDescription", "Import"),
                ImportArn=begun["ImportArn"],
                counted="ProcessedSizeBytes" if found.bytes else "ProcessedItemCount",
            )
    log = _log_of(done, logs)
    if as_json:
        say_json("tavola.import/1", {"import": done})
    else:
        say(f"{done['ImportedItemCount']:,} items are in {table}; refused: {done['ErrorCount']:,}.")
        if done["ErrorCount"]:
            say(f"  why:  {log}")
    remedy = f"Mend the rows that {log} names, delete {table}, and import again."
    _end_failed(what, done, "ImportStatus", remedy if done["ErrorCount"] else _MEND)
    if not done["ProcessedItemCount"] and not done["ProcessedSizeBytes"]:
        complain(
            f"Nothing was imported from {source}.",
            f"There is no file there with anything in it; {table} was made, and is empty.",
            f"Name the place of the files; delete {table} before you import into it again.",
        )
        raise click.exceptions.Exit(Exit.NOT_FOUND)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TargetRefused(
            f"The folder {folder} cannot be made ({error.strerror}); name one that can"
        ) from error


def _check_format_known(found: ImportSource, form: str | None) -> None:
    if form is not None or found.format is not None:
        return
    if found.place.root is not None:
        raise TargetRefused("The names of the files do not tell their format; give --format json, ion or csv")
    raise TargetRefused(
        f"The server has written no export to s3://{found.place.bucket}/{found.place.prefix} that is whole, and "
        "the name tells no format; if files are there, give --format json, ion or csv, and --compression"
    )


def _log_of(done: dict[str, Any], logs: Path | None) -> str:
    """Return where the log of rejected rows is; a server keeps it beside its buckets."""
    place = f"aws-dynamodb/imports/{done['ImportArn'].rpartition('/')[2]}/error"
    if logs is not None:
        return str(logs / place)
    return f".logs/{place} in the folder that the server has for {BUCKETS.flag}"


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
        return {} if time is None else {"ExportTime": parse_moment(time) / 1_000_000}
    if time is not None:
        raise TargetRefused("--time is one moment and --since a period; give one of them")
    period: dict[str, Any] = {"ExportFromTime": parse_moment(since) / 1_000_000}
    if until is not None:
        period["ExportToTime"] = parse_moment(until) / 1_000_000
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


def _follow_job(
    target: Target, what: str, total: int, names: tuple[str, str, str], *, counted: str, **arn: str
) -> dict[str, Any]:
    """Wait for the end of a transfer, showing how far it is, and return its description."""
    operation, member, noun = names

    def done() -> int | None:
        described = target.call(operation, **arn)[member]
        return int(described.get(counted, 0)) if described[f"{noun}Status"] == "IN_PROGRESS" else None

    target.follow(what, total, done)
    found: dict[str, Any] = target.call(operation, **arn)[member]
    return found


def _end_failed(what: str, done: dict[str, Any], status: str, remedy: str = _MEND) -> None:
    if done[status] != "COMPLETED":
        code = done.get("FailureCode", "")
        complain(what, f"{code}: {done.get('FailureMessage', '')}", remedy)
        raise click.exceptions.Exit(Exit.FAILED)
