"""`tavola backup` and `tavola restore`: back up files and tables and restore them, showing progress."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import click

from tavola.cli.errors import CommandError, reporting_errors
from tavola.cli.files import check_parent_exists
from tavola.cli.keys import StoreKeyOptions
from tavola.cli.output import bar, count_noun, note, say, say_json
from tavola.cli.parameters import BUNDLE, Argument, AsJson, CommandGroup, Option
from tavola.cli.targets import TIME_FORMS_HELP, Target, TargetOptions, missing_file, parse_moment
from tavola.cli.terminal import align_columns
from tavola.errors import ErrorKind

_FILE_COMMAND = "file"
_WORD = re.compile(r"[a-z][a-z-]*")
_MB = 1024 * 1024


class _BackupGroup(CommandGroup):
    """The commands for backups; `tavola backup FILE TO` stands for `tavola backup file FILE TO`."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name, and `file` for a path."""
        return super().get_command(ctx, _FILE_COMMAND if self._is_path(cmd_name) else cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name."""
        return super().resolve_command(ctx, [_FILE_COMMAND, *args] if self._is_path(args[0]) else args)

    def _is_path(self, name: str) -> bool:
        """Return whether an argument is the path of a file; a plain word is a command unless there is such a file."""
        if name in self.commands or name.startswith("-"):
            return False
        return _WORD.fullmatch(name) is None or Path(name).is_file()


app = _BackupGroup(
    "backup",
    help="Back up a database file, or manage backups of tables.\n\n"
    "`tavola backup FILE TO` is short for `tavola backup file FILE TO`.",
    no_args_is_help=True,
)

ArnArgument = Annotated[str, Argument(help="ARN of the backup, as `tavola backup list` prints it.")]
TargetTable = Annotated[str, Option("--target-table", metavar="NAME", help="Name of the new table.")]
NoIndexes = Annotated[bool, Option("--no-indexes", help="Restore without secondary indexes.")]


@app.add
def file(
    file: Annotated[Path, Argument(help="Database file; a server or program may be using it.")],
    to: Annotated[Path, Argument(help="File to write the backup to.")],
    force: Annotated[bool, Option("--force", help="Replace TO if it exists.")] = False,
    rate_mb: Annotated[
        int, Option("--rate-mb", min=0, help="Copy at most this many megabytes per second; 0 is no limit.")
    ] = 128,
    as_json: AsJson = False,
    store_key: StoreKeyOptions = BUNDLE,
) -> None:
    """Copy a database file while it is in use.

    The copy is the state of the file at one moment: it contains every write that was confirmed before the command began, and
    some later ones. Every page is checked before the copy gets its name. An encrypted file stays encrypted; pass its key.
    """
    with reporting_errors(f"Cannot back up {file}."):
        from tavola.design.text import format_size
        from tavola.engine import back_up_file

        if not file.is_file():
            raise missing_file(file)
        check_parent_exists(to)
        if to.is_dir():
            raise CommandError(f"{to} is a folder.", f"Name a file in it, such as {to / file.name}.")
        with bar(f"Copying {file.name}", file.stat().st_size) as show:
            size = back_up_file(
                str(file),
                str(to),
                store_key.read_key(),
                replace=force,
                bytes_per_s=rate_mb * _MB,
                progress=lambda done, _total: show(done),
            )
    if as_json:
        members = {"file": str(file.absolute()), "backup": str(to.absolute()), "bytes": size}
        say_json("tavola.file-backup/1", members)
    else:
        say(f"Backed up {file} to {to}: {format_size(size)}, verified.")


@app.add
def enable(
    table: Annotated[str, Argument(help="Name of the table.")],
    days: Annotated[
        int | None, Option("--days", help="Recovery period in days, 1 to 35. Default: 35, or unchanged.")
    ] = None,
    as_json: AsJson = False,
    at: TargetOptions = BUNDLE,
) -> None:
    """Enable point-in-time recovery of a table.

    `tavola restore`, `tavola history` and the option --as-of need it.
    """
    with reporting_errors(f"Cannot enable point-in-time recovery of {table}."), at.open() as target:
        specification: dict[str, Any] = {"PointInTimeRecoveryEnabled": True}
        if days is not None:
            specification["RecoveryPeriodInDays"] = days
        response = target.call(
            "UpdateContinuousBackups", TableName=table, PointInTimeRecoverySpecification=specification
        )
    recovery = response["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    since, period = _format_time(recovery["EarliestRestorableDateTime"]), recovery["RecoveryPeriodInDays"]
    if as_json:
        say_json("tavola.recovery/1", {"table": table, "since": since, "days": period})
    else:
        say(f"Point-in-time recovery of {table} is on since {since}, for {count_noun(period, 'day')}.")


@app.add
def create(
    table: Annotated[str, Argument(help="Name of the table.")],
    name: Annotated[str, Argument(help="Name of the backup.")],
    as_json: AsJson = False,
    at: TargetOptions = BUNDLE,
) -> None:
    """Back up a table. Returns when the backup is complete."""
    with reporting_errors(f"Cannot back up {table}."), at.open() as target:
        total = target.call("DescribeTable", TableName=table)["Table"]["ItemCount"]
        arn = target.call("CreateBackup", TableName=table, BackupName=name)["BackupDetails"]["BackupArn"]

        def done() -> int | None:
            with _reporting_cancellation(f"The backup {name} of {table}"):
                described = target.call("DescribeBackup", BackupArn=arn)["BackupDescription"]
            creating = described["BackupDetails"]["BackupStatus"] == "CREATING"
            return int(described["SourceTableDetails"]["ItemCount"]) if creating else None

        target.follow(f"Backing up {table}", total, done)
        _say_backup(target, arn, as_json)


@app.add_as("list")
def list_(
    table: Annotated[str | None, Argument(help="Name of the table. Default: all tables.")] = None,
    all_: Annotated[
        bool, Option("--all", help="Include the system backups that deleting a table creates.")
    ] = False,
    as_json: AsJson = False,
    at: TargetOptions = BUNDLE,
) -> None:
    """List the backups of one table or of all tables, oldest first."""
    with reporting_errors("Cannot list the backups."), at.open() as target:
        backups: list[dict[str, Any]] = []
        start: str | None = None
        while True:
            page = target.call(
                "ListBackups",
                TableName=table,
                BackupType="ALL" if all_ else None,
                ExclusiveStartBackupArn=start,
            )
            backups += page["BackupSummaries"]
            start = page.get("LastEvaluatedBackupArn")
            if start is None:
                break
    if as_json:
        say_json("tavola.backups/1", {"backups": backups})
        return
    if not backups:
        note("No backups.")
        return
    columns = ("BackupStatus", "BackupType", "TableName", "BackupName", "BackupArn")
    rows = [
        (_format_time(backup["BackupCreationDateTime"]), *(backup[name] for name in columns))
        for backup in backups
    ]
    for line in align_columns([("CREATED", "STATUS", "TYPE", "TABLE", "NAME", "ARN"), *rows]):
        say(line)


@app.add
def describe(arn: ArnArgument, as_json: AsJson = False, at: TargetOptions = BUNDLE) -> None:
    """Show a backup: its table, status, size and age."""
    with reporting_errors("Cannot describe the backup."), _open_for_backup(at, arn) as target:
        _say_backup(target, arn, as_json)


@app.add
def delete(arn: ArnArgument, at: TargetOptions = BUNDLE) -> None:
    """Delete a backup."""
    with reporting_errors("Cannot delete the backup."), _open_for_backup(at, arn) as target:
        details = target.call("DeleteBackup", BackupArn=arn)["BackupDescription"]["BackupDetails"]
    say(f"Deleted the backup {details['BackupName']}.")


@app.add_as("restore")
def restore_backup(
    arn: ArnArgument,
    target_table: TargetTable,
    no_indexes: NoIndexes = False,
    as_json: AsJson = False,
    at: TargetOptions = BUNDLE,
) -> None:
    """Restore a backup as a new table. Returns when the table is ready."""
    with reporting_errors("Cannot restore the backup."), _open_for_backup(at, arn) as target:
        described = target.call("DescribeBackup", BackupArn=arn)["BackupDescription"]
        target.call(
            "RestoreTableFromBackup",
            BackupArn=arn,
            TargetTableName=target_table,
            **_index_overrides(no_indexes),
        )
        _follow_restore(target, target_table, described["SourceTableDetails"]["ItemCount"], as_json)


def restore(
    table: Annotated[str, Argument(help="Table to restore from; it needs point-in-time recovery.")],
    target_table: TargetTable,
    as_of: Annotated[
        str | None,
        Option(
            "--as-of", metavar="TIME", help=f"Restore the state as of {TIME_FORMS_HELP}. Default: the latest."
        ),
    ] = None,
    no_indexes: NoIndexes = False,
    as_json: AsJson = False,
    at: TargetOptions = BUNDLE,
) -> None:
    """Restore a table to an earlier point in time, as a new table.

    Returns when the new table is ready.
    """
    with reporting_errors(f"Cannot restore {table}."), at.open() as target:
        if target_table == table:
            raise CommandError(
                f"A table cannot be restored over itself ({table}).",
                "Choose another name with --target-table.",
            )
        total = target.call("DescribeTable", TableName=table)["Table"]["ItemCount"]
        target.call(
            "RestoreTableToPointInTime",
            SourceTableName=table,
            TargetTableName=target_table,
            RestoreDateTime=None if as_of is None else parse_moment(as_of) / 1_000_000,
            UseLatestRestorableTime=True if as_of is None else None,
            **_index_overrides(no_indexes),
        )
        _follow_restore(target, target_table, total, as_json)


@contextmanager
def _open_for_backup(at: TargetOptions, arn: str) -> Iterator[Target]:
    """Open the target; raise if the backup is not named by an ARN."""
    if not arn.startswith("arn:"):
        raise CommandError(
            f"{arn!r} is not the ARN of a backup.", "List the backups with `tavola backup list`."
        )
    with at.open() as target:
        yield target


def _index_overrides(no_indexes: bool) -> dict[str, Any]:
    kinds = ("GlobalSecondaryIndexOverride", "LocalSecondaryIndexOverride", "VectorIndexOverride")
    return {kind: [] for kind in kinds} if no_indexes else {}


def _follow_restore(target: Target, name: str, total: int, as_json: bool) -> None:
    """Wait until a table is restored, and print its size."""
    from tavola.design.text import format_size

    def done() -> int | None:
        with _reporting_cancellation(f"The restore of {name}"):
            described = target.call("DescribeTable", TableName=name)["Table"]
        return int(described["ItemCount"]) if described["TableStatus"] == "CREATING" else None

    target.follow(f"Restoring {name}", total, done)
    table = target.call("DescribeTable", TableName=name)["Table"]
    if as_json:
        result = {"table": table["TableArn"], "items": table["ItemCount"], "bytes": table["TableSizeBytes"]}
        say_json("tavola.restore/1", result)
    else:
        size = f"{count_noun(table['ItemCount'], 'item')}, {format_size(table['TableSizeBytes'])}"
        say(f"Restored {name}: {size}.")


@contextmanager
def _reporting_cancellation(what: str) -> Iterator[None]:
    """Turn "not found" for a copy that had been started into an error that says it was cancelled."""
    from tavola.protocol.faults import BackupNotFoundFault, ResourceNotFoundFault

    try:
        yield
    except (BackupNotFoundFault, ResourceNotFoundFault) as fault:
        raise CommandError(
            f"{what} was started and then cancelled: {fault}", "Start it again.", ErrorKind.CONFLICT
        ) from fault


def _say_backup(target: Target, arn: str, as_json: bool) -> None:
    from tavola.design.text import format_size

    described = target.call("DescribeBackup", BackupArn=arn)["BackupDescription"]
    if as_json:
        say_json("tavola.backup/1", {"backup": described})
        return
    details, source = described["BackupDetails"], described["SourceTableDetails"]
    say(f"Backup {details['BackupName']} of {source['TableName']}: {details['BackupStatus']}")
    say(f"  created:  {_format_time(details['BackupCreationDateTime'])}")
    if "BackupExpiryDateTime" in details:
        say(f"  expires:  {_format_time(details['BackupExpiryDateTime'])}")
    say(f"  size:     {count_noun(source['ItemCount'], 'item')}, {format_size(details['BackupSizeBytes'])}")
    say(f"  arn:      {details['BackupArn']}")


def _format_time(epoch_s: float) -> str:
    from tavola.protocol.instants import instant_text

    return instant_text(round(epoch_s * 1000) * 1000)
