"""`tavola backup` and `tavola restore`: tables put aside, and tables as they were, with their progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from tavola.cli.failures import reporting_errors
from tavola.cli.output import say, say_json
from tavola.cli.parameters import BUNDLE, Argument, Group, Option
from tavola.cli.targets import (
    Target,
    TargetOptions,
    TargetRefused,
    parse_moment,
)
from tavola.errors import TavolaError

app = Group(
    "backup",
    help="Backups of tables: make, list, look at, restore and delete them; or keep every moment.",
)

Arn = Annotated[str, Argument(help="The backup's ARN, as `tavola backup list` prints it.")]
NewName = Annotated[str, Option("--as", help="The name of the new table.")]
AsJson = Annotated[bool, Option("--json", help="Print the result as JSON.")]
NoIndexes = Annotated[bool, Option("--no-indexes", help="Leave the secondary indexes out.")]


class CopyGivenUp(TavolaError):
    """A backup or restore that was begun, and taken back."""


@app.add
def enable(
    table: Annotated[str, Argument(help="The table.")],
    days: Annotated[
        int | None,
        Option("--days", help="How many days of it are kept, up to 35; without it 35, or as it was."),
    ] = None,
    as_json: AsJson = False,
    at: TargetOptions = BUNDLE,
) -> None:
    """Keep the past of TABLE from now on (point-in-time recovery): for `restore`, `history` and `--as-of`."""
    with (
        reporting_errors(f"Cannot keep the past of {table}."),
        at.open() as target,
    ):
        wanted: dict[str, Any] = {"PointInTimeRecoveryEnabled": True}
        if days is not None:
            wanted["RecoveryPeriodInDays"] = days
        answer = target.call(
            "UpdateContinuousBackups", TableName=table, PointInTimeRecoverySpecification=wanted
        )
    kept = answer["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    since, kept_days = kept["EarliestRestorableDateTime"], kept["RecoveryPeriodInDays"]
    if as_json:
        say_json("tavola.recovery/1", {"table": table, "since": _time(since), "days": kept_days})
    else:
        say(f"The past of {table} is kept since {_time(since)}, for {kept_days} days.")


@app.add
def create(
    table: Annotated[str, Argument(help="The table.")],
    name: Annotated[str, Argument(help="The backup's name.")],
    as_json: AsJson = False,
    at: TargetOptions = BUNDLE,
) -> None:
    """Make a backup of TABLE as it is now, and wait until it is there."""
    with reporting_errors(f"Cannot back {table} up."), at.open() as target:
        total = target.call("DescribeTable", TableName=table)["Table"]["ItemCount"]
        arn = target.call("CreateBackup", TableName=table, BackupName=name)["BackupDetails"]["BackupArn"]

        def done() -> int | None:
            with _taken_back(f"Backup {name} of {table}"):
                described = target.call("DescribeBackup", BackupArn=arn)["BackupDescription"]
            creating = described["BackupDetails"]["BackupStatus"] == "CREATING"
            return int(described["SourceTableDetails"]["ItemCount"]) if creating else None

        target.follow(f"Backing {table} up", total, done)
        _show(target, arn, as_json)


@app.add_as("list")
def list_(
    table: Annotated[str | None, Argument(help="The table; without it all of them.")] = None,
    everything: Annotated[
        bool, Option("--all", help="Also the backups that deleting a table with recovery made.")
    ] = False,
    as_json: AsJson = False,
    at: TargetOptions = BUNDLE,
) -> None:
    """Print the backups of TABLE, or of every table, the earliest first."""
    with reporting_errors("Cannot list the backups."), at.open() as target:
        found: list[dict[str, Any]] = []
        start: str | None = None
        while True:
            answer = target.call(
                "ListBackups",
                TableName=table,
                BackupType="ALL" if everything else None,
                ExclusiveStartBackupArn=start,
            )
            found += answer["BackupSummaries"]
            start = answer.get("LastEvaluatedBackupArn")
            if start is None:
                break
    if as_json:
        say_json("tavola.backups/1", {"backups": found})
        return
    for each in found:
        say(
            f"{_time(each['BackupCreationDateTime'])}  {each['BackupStatus']:9}  {each['BackupType']:6}  "
            f"{each['TableName']}  {each['BackupName']}  {each['BackupArn']}"
        )


@app.add
def describe(
    arn: Arn,
    as_json: AsJson = False,
    at: TargetOptions = BUNDLE,
) -> None:
    """Print what a backup holds."""
    with reporting_errors("Cannot describe the backup."), at.open() as target:
        _show(target, arn, as_json)


@app.add
def delete(
    arn: Arn,
    at: TargetOptions = BUNDLE,
) -> None:
    """Delete a backup for good."""
    with reporting_errors("Cannot delete the backup."), at.open() as target:
        details = target.call("DeleteBackup", BackupArn=arn)["BackupDescription"]["BackupDetails"]
    say(f"Deleted {details['BackupName']}.")


@app.add_as("restore")
def restore_backup(
    arn: Arn,
    new: NewName,
    no_indexes: NoIndexes = False,
    as_json: AsJson = False,
    at: TargetOptions = BUNDLE,
) -> None:
    """Make a new table of a backup, and wait until it is there."""
    with reporting_errors("Cannot restore the backup."), at.open() as target:
        described = target.call("DescribeBackup", BackupArn=arn)["BackupDescription"]
        target.call(
            "RestoreTableFromBackup", BackupArn=arn, TargetTableName=new, **_without_indexes(no_indexes)
        )
        _finish(target, new, described["SourceTableDetails"]["ItemCount"], as_json)


def restore(
    table: Annotated[str, Argument(help="The table, which must have point-in-time recovery.")],
    new: NewName,
    to: Annotated[
        str | None,
        Option("--to", help="The moment: 2026-11-16T10:00:00Z, or 10m for ago; without it the latest."),
    ] = None,
    no_indexes: NoIndexes = False,
    as_json: AsJson = False,
    at: TargetOptions = BUNDLE,
) -> None:
    """Make a new table of TABLE as it was at a moment, and wait until it is there."""
    with reporting_errors(f"Cannot restore {table}."), at.open() as target:
        if new == table:
            raise TargetRefused(f"A restore makes a new table; name one other than {table} with --as")
        total = target.call("DescribeTable", TableName=table)["Table"]["ItemCount"]
        target.call(
            "RestoreTableToPointInTime",
            SourceTableName=table,
            TargetTableName=new,
            RestoreDateTime=None if to is None else parse_moment(to) / 1_000_000,
            UseLatestRestorableTime=True if to is None else None,
            **_without_indexes(no_indexes),
        )
        _finish(target, new, total, as_json)


def _without_indexes(wanted: bool) -> dict[str, Any]:
    if not wanted:
        return {}
    return {
        "GlobalSecondaryIndexOverride": [],
        "LocalSecondaryIndexOverride": [],
        "VectorIndexOverride": [],
    }


def _finish(target: Target, new: str, total: int, as_json: bool) -> None:
    """Wait until a table is restored, and tell what it is."""

    def done() -> int | None:
        with _taken_back(f"Table {new}"):
            described = target.call("DescribeTable", TableName=new)["Table"]
        return int(described["ItemCount"]) if described["TableStatus"] == "CREATING" else None

    target.follow(f"Restoring {new}", total, done)
    table = target.call("DescribeTable", TableName=new)["Table"]
    if as_json:
        result = {"table": table["TableArn"], "items": table["ItemCount"], "bytes": table["TableSizeBytes"]}
        say_json("tavola.restore/1", result)
    else:
        say(f"{new} is there: {table['ItemCount']:,} items, {table['TableSizeBytes']:,} bytes.")


@contextmanager
def _taken_back(what: str) -> Iterator[None]:
    """Tell of what was begun and is not there any more that it was given up, and why."""
    from tavola.protocol.faults import BackupNotFoundFault, ResourceNotFoundFault

    try:
        yield
    except (BackupNotFoundFault, ResourceNotFoundFault) as fault:
        raise CopyGivenUp(f"{what} was begun, and is not there any more: {fault}") from fault


def _show(target: Target, arn: str, as_json: bool) -> None:
    described = target.call("DescribeBackup", BackupArn=arn)["BackupDescription"]
    if as_json:
        say_json("tavola.backup/1", {"backup": described})
        return
    details, source = described["BackupDetails"], described["SourceTableDetails"]
    say(f"{details['BackupName']} of {source['TableName']}, {details['BackupStatus']}")
    say(f"  made:   {_time(details['BackupCreationDateTime'])}")
    if "BackupExpiryDateTime" in details:
        say(f"  until:  {_time(details['BackupExpiryDateTime'])}")
    say(f"  holds:  {source['ItemCount']:,} items, {details['BackupSizeBytes']:,} bytes")
    say(f"  arn:    {details['BackupArn']}")


def _time(epoch_s: float) -> str:
    from tavola.protocol.instants import instant_text

    return instant_text(round(epoch_s * 1000) * 1000)
