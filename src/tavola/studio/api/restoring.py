"""Restoring: a new table of what another was at a moment, or of a backup that was made of it.

Nothing is written over: a restore makes a table of its own, and goes on whether or not anybody looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tavola.protocol.faults import Fault
from tavola.protocol.instants import instant_text, parse_instant
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import Refused
from tavola.studio.studio import Studio

_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class RestoreTable:
    """Make a new table of what another was at a moment; no moment: at the latest that can be had."""

    table: str
    to: str
    at: str = ""


@dataclass(frozen=True, slots=True)
class AskRestore:
    """How far a restored table is; `of` is the table or backup that it is made of, where that is known."""

    table: str
    of: str = ""


@dataclass(frozen=True, slots=True)
class RestoreProgress:
    """A table that is being restored: it is there when it is done."""

    table: str
    status: str
    done: bool
    items: int
    of_items: int | None  # about; None: not known
    at: str | None  # the moment that it is restored to


@dataclass(frozen=True, slots=True)
class AskBackups:
    """Of which table."""

    table: str


@dataclass(frozen=True, slots=True)
class TableBackup:
    """A backup that was made by hand, or when its table was deleted."""

    arn: str
    name: str
    table: str
    status: str
    kind: str
    at: str
    bytes: int | None


@dataclass(frozen=True, slots=True)
class TableBackups:
    """The backups of a table, the latest first."""

    backups: tuple[TableBackup, ...]


@dataclass(frozen=True, slots=True)
class MakeBackup:
    """Back a table up as it is now."""

    table: str
    name: str


@dataclass(frozen=True, slots=True)
class RestoreBackup:
    """Make a new table of a backup."""

    arn: str
    to: str


async def restore(studio: Studio, asked: RestoreTable) -> RestoreProgress:
    """Begin to restore a table as it was to a new one; `GET /past/restore` tells how far it is."""
    _check_name(asked.to)
    request: dict[str, Any] = {"SourceTableName": asked.table, "TargetTableName": asked.to}
    if asked.at:
        request["RestoreDateTime"] = parse_instant(asked.at) / _SECOND_US
    else:
        request["UseLatestRestorableTime"] = True
    await studio.db.call("RestoreTableToPointInTime", request)
    return await progress(studio, AskRestore(asked.to, asked.table))


async def progress(studio: Studio, asked: AskRestore) -> RestoreProgress:
    """Return how far the restore of a table is."""
    described = (await studio.db.call("DescribeTable", {"TableName": asked.table}))["Table"]
    summary = described.get("RestoreSummary", {})
    of_items: int | None = None
    if asked.of and not asked.of.startswith("arn:"):
        with suppress(Fault):  # the source may be gone by now
            source = (await studio.db.call("DescribeTable", {"TableName": asked.of}))["Table"]
            of_items = source.get("ItemCount")
    status: str = described["TableStatus"]
    return RestoreProgress(
        table=asked.table,
        status=status,
        done=status == "ACTIVE" and not summary.get("RestoreInProgress", False),
        items=described.get("ItemCount", 0),
        of_items=of_items,
        at=moment_text(moment_us(summary.get("RestoreDateTime"))),
    )


async def backups(studio: Studio, asked: AskBackups) -> TableBackups:
    """Return the backups that there are of a table."""
    found: list[TableBackup] = []
    request: dict[str, Any] = {"TableName": asked.table, "BackupType": "ALL"}
    while True:
        answer = await studio.db.call("ListBackups", request)
        found += map(_backup, answer.get("BackupSummaries", ()))
        if "LastEvaluatedBackupArn" not in answer:
            break
        request["ExclusiveStartBackupArn"] = answer["LastEvaluatedBackupArn"]
    return TableBackups(tuple(sorted(found, key=lambda backup: backup.at, reverse=True)))


async def back_up(studio: Studio, asked: MakeBackup) -> TableBackups:
    """Make a backup of a table."""
    await studio.db.call("CreateBackup", {"TableName": asked.table, "BackupName": asked.name})
    return await backups(studio, AskBackups(asked.table))


async def restore_backup(studio: Studio, asked: RestoreBackup) -> RestoreProgress:
    """Begin to make a new table of a backup."""
    _check_name(asked.to)
    request = {"BackupArn": asked.arn, "TargetTableName": asked.to}
    await studio.db.call("RestoreTableFromBackup", request)
    return await progress(studio, AskRestore(asked.to))


def _backup(told: Mapping[str, Any]) -> TableBackup:
    return TableBackup(
        arn=told["BackupArn"],
        name=told["BackupName"],
        table=told["TableName"],
        status=told["BackupStatus"],
        kind=told["BackupType"],
        at=moment_text(moment_us(told["BackupCreationDateTime"])) or "",
        bytes=told.get("BackupSizeBytes"),
    )


def _check_name(name: str) -> None:
    if not name.strip():
        raise Refused(
            "table-missing",
            "The new table has no name",
            "A restore makes a table of its own, and never writes over the one that is there.",
            "Give it a name of 3 to 255 letters, digits, _, - and .",
        )


def moment_us(told: float | None) -> int | None:
    """Return a time of an answer, which is seconds, in microseconds."""
    return None if told is None else round(told * _SECOND_US)


def moment_text(at_us: int | None) -> str | None:
    """Return a time as a page is told it."""
    return None if at_us is None else instant_text(at_us)


ENDPOINTS = (
    Endpoint("POST", "/past/restore", restore, changes=True),
    Endpoint("GET", "/past/restore", progress),
    Endpoint("GET", "/past/backups", backups),
    Endpoint("POST", "/past/backups", back_up, changes=True),
    Endpoint("POST", "/past/backups/restore", restore_backup, changes=True),
)
