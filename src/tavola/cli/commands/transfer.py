"""`tavola export` and `tavola import`: write tables to files in the AWS layout, and load them again.

`import` without a table to create reads a design of another tool instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tavola.cli.commands.import_design import import_design
from tavola.cli.errors import CommandError, reporting_errors
from tavola.cli.file_locations import (
    FORMATS,
    ImportSource,
    find_import_source,
    find_server_source,
    locate_files,
)
from tavola.cli.files import make_folder
from tavola.cli.output import count_noun, say, say_json
from tavola.cli.parameters import BUNDLE, Argument, AsJson, Option
from tavola.cli.settings import BUCKETS, option
from tavola.cli.targets import TIME_FORMS_HELP, NewTargetOptions, Target, TargetOptions, parse_moment
from tavola.errors import ErrorKind

if TYPE_CHECKING:
    from tavola.engine import Buckets

BucketsOption = Annotated[Path | None, option(BUCKETS)]

_TYPES = ("S", "N", "B")


def export(
    table: Annotated[str, Argument(help="Table to export; it needs point-in-time recovery.")],
    destination: Annotated[str, Argument(help="Folder to write to, or s3://BUCKET/PREFIX.")],
    form: Annotated[Literal["json", "ion"], Option("--format", help="DynamoDB JSON or Ion.")] = "json",
    as_of: Annotated[
        str | None, Option("--as-of", metavar="TIME", help=f"Export the table as of {TIME_FORMS_HELP}.")
    ] = None,
    since: Annotated[
        str | None, Option("--since", metavar="TIME", help="Export only the changes since this time.")
    ] = None,
    until: Annotated[
        str | None,
        Option("--until", metavar="TIME", help="With --since: the end of the period. Default: now."),
    ] = None,
    new_images: Annotated[
        bool, Option("--new-images", help="With --since: leave out the old images of items.")
    ] = False,
    enable_recovery: Annotated[
        bool, Option("--enable-recovery", help="Enable point-in-time recovery first, if it is off.")
    ] = False,
    as_json: AsJson = False,
    buckets: BucketsOption = None,
    at: TargetOptions = BUNDLE,
) -> None:
    """Export a table to files in the AWS export layout.

    The command returns when the export is complete.
    """
    with reporting_errors(f"Cannot export {table}."):
        location = locate_files(destination, buckets, local=at.store is not None)
        times = _export_times(as_of, since, until, new_images)
        if location.root is not None:
            make_folder(location.root / location.bucket, "DESTINATION")
        with at.open(buckets=location.root) as target:
            _check_recovery(target, table, enable=enable_recovery)
            described = target.call("DescribeTable", TableName=table)["Table"]
            started = target.call(
                "ExportTableToPointInTime",
                TableArn=described["TableArn"],
                S3Bucket=location.bucket,
                S3Prefix=location.prefix or None,
                ExportFormat=FORMATS[form],
                **times,
            )["ExportDescription"]
            done = _follow_job(
                target,
                f"Exporting {table}",
                described["ItemCount"],
                ("DescribeExport", "ExportDescription", "Export"),
                ExportArn=started["ExportArn"],
                counted="ItemCount",
            )
        _check_completed(done, "ExportStatus")
    if as_json:
        say_json("tavola.export/1", {"export": done})
        return
    root = f"s3://{location.bucket}" if location.root is None else f"{location.root / location.bucket}"
    folder = f"{root}/{done['ExportManifest'].rpartition('/')[0]}"
    say(f"Exported {count_noun(done['ItemCount'], 'item')} of {table} to {folder}")


def import_(
    source: Annotated[
        str,
        Argument(help="Data: a file, a folder or s3://BUCKET/PREFIX. Design: a file or Terraform folder."),
    ],
    table_name: Annotated[
        str | None, Option("--table-name", metavar="NAME", help="Name of the new table.")
    ] = None,
    partition_key: Annotated[
        str | None,
        Option(
            "--partition-key",
            metavar="NAME[:TYPE]",
            help="Partition key of the new table; the type is S, N or B.",
        ),
    ] = None,
    sort_key: Annotated[
        str | None, Option("--sort-key", metavar="NAME[:TYPE]", help="Sort key of the new table.")
    ] = None,
    index: Annotated[
        list[str] | None,
        Option(
            "--index", metavar="NAME=PK[,SK]", help="Global secondary index of the new table; repeatable."
        ),
    ] = None,
    form: Annotated[
        Literal["json", "ion", "csv"] | None,
        Option("--format", help="Format of the files. Default: from the file names."),
    ] = None,
    compression: Annotated[
        Literal["gzip", "zstd", "none"] | None,
        Option(help="Compression of the files. Default: from the file names."),
    ] = None,
    delimiter: Annotated[
        str | None, Option(metavar="CHAR", help="Column delimiter of CSV. Default: a comma.")
    ] = None,
    header: Annotated[
        str | None,
        Option(metavar="NAMES", help="Column names of CSV files without a header, separated by commas."),
    ] = None,
    output: Annotated[
        Path | None,
        Option("--output", metavar="FILE", help="Design import: write the design document to this file."),
    ] = None,
    samples: Annotated[
        bool, Option("--samples", help="Design import: create the tables and load the sample items.")
    ] = False,
    as_json: AsJson = False,
    buckets: BucketsOption = None,
    at: NewTargetOptions = BUNDLE,
) -> None:
    """Import a table from files, or a design from another tool.

    With --table-name and --partition-key, create that table from files in DynamoDB JSON, Ion or CSV.

    Without them, SOURCE is a design: CloudFormation, Terraform (a file, a folder, or a plan as JSON), a NoSQL Workbench
    model, describe-table output, a OneTable schema or an awslabs schema.json. It is printed as a design document.
    """
    with reporting_errors(f"Cannot import {source}."):
        if table_name is None and partition_key is None:
            table_options = {
                "--sort-key": sort_key, "--index": index, "--format": form, "--compression": compression,
                "--delimiter": delimiter, "--header": header,
            }  # fmt: skip
            used = [name for name, value in table_options.items() if value is not None]
            if used or source.startswith("s3://"):
                raise CommandError(
                    f"{', '.join(used) or source} needs a table to import into.",
                    "Add --table-name and --partition-key.",
                )
            import_design(source, output, as_json=as_json, samples=at.open(new=True) if samples else None)
            return
        if table_name is None or partition_key is None:
            lacking = "--table-name" if table_name is None else "--partition-key"
            raise CommandError(
                f"{lacking} is missing.", "A table import needs --table-name and --partition-key."
            )
        if output is not None or samples:
            raise CommandError(
                "--output and --samples belong to a design import.",
                "Leave out --table-name and --partition-key.",
            )
        definition = _definition(table_name, partition_key, sort_key, index or [])
        import_source = find_import_source(source, buckets, local=at.store is not None)
        if at.store is not None:
            _check_format_known(import_source, form)
        logs = None if at.store is None else at.store.absolute().with_name(f"{at.store.name}.logs")
        s3 = None if import_source.location.root is None else _local_s3(import_source.location.root, logs)
        with at.open(buckets=s3, new=True) as target:
            if at.store is None:
                if form is None or compression is None:
                    import_source = find_server_source(target, import_source, form)
                _check_format_known(import_source, form)
            started = target.call(
                "ImportTable",
                S3BucketSource={
                    "S3Bucket": import_source.location.bucket,
                    "S3KeyPrefix": import_source.location.prefix,
                },
                InputFormat=import_source.format if form is None else FORMATS[form],
                InputFormatOptions=_csv_options(delimiter, header),
                InputCompressionType=import_source.compression
                if compression is None
                else compression.upper(),
                TableCreationParameters=definition,
            )["ImportTableDescription"]
            done = _follow_job(
                target,
                f"Importing {table_name}",
                import_source.bytes,
                ("DescribeImport", "ImportTableDescription", "Import"),
                ImportArn=started["ImportArn"],
                counted="ProcessedSizeBytes" if import_source.bytes else "ProcessedItemCount",
            )
        _report_import(table_name, source, done, _error_log(done, logs), as_json=as_json)


def _report_import(table: str, source: str, done: dict[str, Any], log: str, *, as_json: bool) -> None:
    rejected = done["ErrorCount"]
    if as_json:
        say_json("tavola.import/1", {"import": done})
    else:
        rejections = f"; rejected {count_noun(rejected, 'row')}, see {log}" if rejected else ""
        say(f"Imported {count_noun(done['ImportedItemCount'], 'item')} into {table}{rejections}.")
    remedy = f"Fix the rows listed in {log}, delete {table}, and import again." if rejected else None
    _check_completed(done, "ImportStatus", remedy)
    if not done["ProcessedItemCount"] and not done["ProcessedSizeBytes"]:
        raise CommandError(
            f"{source} contains no data; the table {table} was created empty.",
            f"Check the location of the files, and delete {table} before you import again.",
            ErrorKind.NOT_FOUND,
        )


def _check_format_known(import_source: ImportSource, form: str | None) -> None:
    if form is not None or import_source.format is not None:
        return
    remedy = "Add --format json, ion or csv"
    if import_source.location.root is not None:
        raise CommandError("The file names do not show the format.", f"{remedy}.")
    raise CommandError(
        f"The server has no complete export in s3://{import_source.location.bucket}/{import_source.location.prefix}, and the name does not "
        "show a format.",
        f"{remedy} and --compression if the files exist.",
    )


def _error_log(done: dict[str, Any], logs: Path | None) -> str:
    """Return where the log of rejected rows is; a server keeps it beside its buckets."""
    path = f"aws-dynamodb/imports/{done['ImportArn'].rpartition('/')[2]}/error"
    return f"{logs / path}" if logs is not None else f".logs/{path} in the server's {BUCKETS.flag} folder"


def _local_s3(root: Path, logs: Path | None) -> Buckets:
    """Return the folder that stands in for S3; its logs are kept beside the database file, not with the data."""
    from tavola.engine import Buckets

    return Buckets(root, logs)


def _definition(table: str, hash_key: str, range_key: str | None, indexes: Iterable[str]) -> dict[str, Any]:
    """Return the parameters of the table to create."""
    types: dict[str, str] = {}

    def schema(*keys: str) -> list[dict[str, str]]:
        elements: list[dict[str, str]] = []
        for text, kind in zip(keys, ("HASH", "RANGE"), strict=False):
            name, _, type_ = text.partition(":")
            if (type_ or "S") not in _TYPES or not name:
                raise CommandError(f"{text!r} is not a key.", "Use NAME, NAME:S, NAME:N or NAME:B.")
            types[name] = type_ or types.get(name, "S")
            elements.append({"AttributeName": name, "KeyType": kind})
        return elements

    table_schema = schema(*((hash_key,) if range_key is None else (hash_key, range_key)))
    global_indexes = []
    for text in indexes:
        name, equals, keys = text.partition("=")
        if not equals or not keys or keys.count(",") > 1:
            raise CommandError(f"{text!r} is not an index.", "Use NAME=PK or NAME=PK,SK.")
        projection = {"ProjectionType": "ALL"}
        key_schema = schema(*keys.split(","))
        global_indexes.append({"IndexName": name, "KeySchema": key_schema, "Projection": projection})
    definition: dict[str, Any] = {
        "TableName": table,
        "KeySchema": table_schema,
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": type_} for name, type_ in types.items()
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
    return definition | ({"GlobalSecondaryIndexes": global_indexes} if global_indexes else {})


def _csv_options(delimiter: str | None, header: str | None) -> dict[str, Any] | None:
    options: dict[str, Any] = {}
    if delimiter is not None:
        options["Delimiter"] = delimiter.replace("\\t", "\t")
    if header is not None:
        options["HeaderList"] = header.split(",")
    return {"Csv": options} if options else None


def _export_times(
    as_of: str | None, since: str | None, until: str | None, new_images: bool
) -> dict[str, Any]:
    """Return the times of an export as the operation takes them."""
    if since is None:
        if until is not None or new_images:
            raise CommandError("--until and --new-images need --since.", "Add --since, or leave them out.")
        return {} if as_of is None else {"ExportTime": parse_moment(as_of) / 1_000_000}
    if as_of is not None:
        raise CommandError("--as-of and --since cannot be combined.", "Use one of them.")
    period: dict[str, Any] = {"ExportFromTime": parse_moment(since) / 1_000_000}
    if until is not None:
        period["ExportToTime"] = parse_moment(until) / 1_000_000
    if new_images:
        period["ExportViewType"] = "NEW_IMAGE"
    return {"ExportType": "INCREMENTAL_EXPORT", "IncrementalExportSpecification": period}


def _check_recovery(target: Target, table: str, *, enable: bool) -> None:
    described = target.call("DescribeContinuousBackups", TableName=table)["ContinuousBackupsDescription"]
    if described["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED":
        return
    if not enable:
        raise CommandError(
            f"Point-in-time recovery of {table} is off, and an export needs it.",
            "Add --enable-recovery to turn it on.",
            ErrorKind.INVALID,
        )
    specification = {"PointInTimeRecoveryEnabled": True}
    target.call("UpdateContinuousBackups", TableName=table, PointInTimeRecoverySpecification=specification)


def _follow_job(
    target: Target, what: str, total: int, names: tuple[str, str, str], *, counted: str, **arn: str
) -> dict[str, Any]:
    """Wait for the end of an export or import, showing its progress, and return its description."""
    operation, member, noun = names

    def done() -> int | None:
        described = target.call(operation, **arn)[member]
        return int(described.get(counted, 0)) if described[f"{noun}Status"] == "IN_PROGRESS" else None

    target.follow(what, total, done)
    description: dict[str, Any] = target.call(operation, **arn)[member]
    return description


def _check_completed(done: dict[str, Any], status: str, remedy: str | None = None) -> None:
    if done[status] != "COMPLETED":
        cause = f"{done.get('FailureCode', '')}: {done.get('FailureMessage', '')}"
        raise CommandError(cause, remedy or "Fix the problem above and start again.", ErrorKind.INVALID)
