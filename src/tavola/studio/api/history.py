"""The past of a table and its items: recovery window, versions, restoring one item or a whole table, backups.

Reading as of a moment needs no endpoint here: everything that reads takes `as_of`. A restore creates a new table, overwrites
nothing, and continues without a client.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tavola.client.backend import AsOfUnsupported, AsyncAsOfBackend
from tavola.client.stream_changes import RawChange
from tavola.errors import TavolaError
from tavola.model.document import EntityDesign
from tavola.protocol.arns import DEFAULT_SCOPE, Scope
from tavola.protocol.faults import Fault, UnknownOperationFault
from tavola.protocol.instants import instant_text, parse_instant
from tavola.studio.api.items import UndoRequest
from tavola.studio.differences import ItemComparison, compare_items, same_item
from tavola.studio.edits.derivation import with_next_lock
from tavola.studio.edits.drafts import EditContext, load_edit_context
from tavola.studio.edits.writes import ItemEdit, Outcome, write_edit
from tavola.studio.endpoint import Endpoint
from tavola.studio.item_history import ItemHistory, audits_of, mutable_item, read_history
from tavola.studio.problems import RequestRefused
from tavola.studio.recognition import load_recogniser
from tavola.studio.studio import Studio
from tavola.studio.types import ApiMessage, Item, TableRequest

_SECOND_US = 1_000_000


class RestoreTableRequest(ApiMessage):
    """Restore a table as of a moment to a new table; without `at`, as of the latest restorable time."""

    table: str
    to: str
    at: str = ""


class RestoreProgressRequest(ApiMessage):
    """The table being restored; `of` is its source table or backup, if known."""

    table: str
    of: str = ""


class RestoreProgress(ApiMessage):
    """The progress of a restore."""

    table: str
    status: str
    done: bool
    items: int
    of_items: int | None  # approximate; None: unknown
    at: str | None  # the moment it is restored to


class TableBackup(ApiMessage):
    """A backup: on demand, or made when its table was deleted."""

    arn: str
    name: str
    table: str
    status: str
    kind: str
    at: str
    bytes: int | None


class TableBackups(ApiMessage):
    """The backups of a table, newest first."""

    backups: tuple[TableBackup, ...]


class MakeBackupRequest(ApiMessage):
    """The table to back up, and the name of the backup."""

    table: str
    name: str


class RestoreBackupRequest(ApiMessage):
    """The backup to restore, and the name of the new table."""

    arn: str
    to: str


async def restore_table(studio: Studio, params: RestoreTableRequest) -> RestoreProgress:
    """Start restoring a table to a new one; `GET /past/restore` returns the progress."""
    _check_name(params.to)
    request: dict[str, Any] = {"SourceTableName": params.table, "TargetTableName": params.to}
    if params.at:
        request["RestoreDateTime"] = parse_instant(params.at) / _SECOND_US
    else:
        request["UseLatestRestorableTime"] = True
    await studio.db.call("RestoreTableToPointInTime", request)
    return await restore_progress(studio, RestoreProgressRequest(params.to, params.table))


async def restore_progress(studio: Studio, params: RestoreProgressRequest) -> RestoreProgress:
    """Return the progress of a restore."""
    described = (await studio.db.call("DescribeTable", {"TableName": params.table}))["Table"]
    summary = described.get("RestoreSummary", {})
    of_items: int | None = None
    if params.of and not params.of.startswith("arn:"):
        with suppress(Fault):  # the source may have been deleted
            source = (await studio.db.call("DescribeTable", {"TableName": params.of}))["Table"]
            of_items = source.get("ItemCount")
    status: str = described["TableStatus"]
    return RestoreProgress(
        table=params.table,
        status=status,
        done=status == "ACTIVE" and not summary.get("RestoreInProgress", False),
        items=described.get("ItemCount", 0),
        of_items=of_items,
        at=to_instant_text(to_microseconds(summary.get("RestoreDateTime"))),
    )


async def list_backups(studio: Studio, params: TableRequest) -> TableBackups:
    """Return the backups of a table."""
    backups: list[TableBackup] = []
    request: dict[str, Any] = {"TableName": params.table, "BackupType": "ALL"}
    while True:
        answer = await studio.db.call("ListBackups", request)
        backups += map(_backup, answer.get("BackupSummaries", ()))
        if "LastEvaluatedBackupArn" not in answer:
            break
        request["ExclusiveStartBackupArn"] = answer["LastEvaluatedBackupArn"]
    return TableBackups(tuple(sorted(backups, key=lambda backup: backup.at, reverse=True)))


async def create_backup(studio: Studio, params: MakeBackupRequest) -> TableBackups:
    """Back up a table."""
    await studio.db.call("CreateBackup", {"TableName": params.table, "BackupName": params.name})
    return await list_backups(studio, TableRequest(params.table))


async def restore_backup(studio: Studio, params: RestoreBackupRequest) -> RestoreProgress:
    """Start restoring a backup to a new table."""
    _check_name(params.to)
    request = {"BackupArn": params.arn, "TargetTableName": params.to}
    await studio.db.call("RestoreTableFromBackup", request)
    return await restore_progress(studio, RestoreProgressRequest(params.to))


def _backup(summary: Mapping[str, Any]) -> TableBackup:
    return TableBackup(
        arn=summary["BackupArn"],
        name=summary["BackupName"],
        table=summary["TableName"],
        status=summary["BackupStatus"],
        kind=summary["BackupType"],
        at=to_instant_text(to_microseconds(summary["BackupCreationDateTime"])) or "",
        bytes=summary.get("BackupSizeBytes"),
    )


def _check_name(name: str) -> None:
    if not name.strip():
        raise RequestRefused(
            "table-missing",
            "The new table needs a name",
            "A restore creates a new table and never overwrites an existing one.",
            "Enter a name of 3 to 255 letters, digits, _, - and .",
        )


def to_microseconds(seconds: float | None) -> int | None:
    """Return a timestamp in seconds as microseconds."""
    return None if seconds is None else round(seconds * _SECOND_US)


def to_instant_text(at_us: int | None) -> str | None:
    """Return a timestamp in microseconds as ISO 8601 text."""
    return None if at_us is None else instant_text(at_us)


BUCKETS_MAX = 400
_RECORDS_MAX = 5_000  # stream records counted for the change histogram


class PastRequest(ApiMessage):
    """A table, and the time range whose changes are counted in a number of buckets."""

    table: str
    since: str = ""
    until: str = ""
    buckets: int = 120  # 0: changes are not counted


class PastMark(ApiMessage):
    """A labelled moment on the timeline."""

    at: str
    text: str


class PastWindow(ApiMessage):
    """The recovery window of a table and the number of changes over time."""

    table: str
    on: bool  # point-in-time recovery is enabled
    readable: bool  # the endpoint supports reads as of a moment; AWS only restores
    earliest: str | None
    latest: str | None
    days: int | None
    now: str
    since: str | None  # start of the counted range
    until: str | None
    density: tuple[int, ...]  # number of changes in each bucket
    counted: bool  # the counts are complete
    marks: tuple[PastMark, ...]


class KeepPastRequest(ApiMessage):
    """Turn point-in-time recovery on or off; turning it off discards the recorded past."""

    table: str
    on: bool = True
    days: int | None = None


class HistoryRequest(ApiMessage):
    """The key of an item."""

    table: str
    key: Item


class ThenRequest(ApiMessage):
    """An item at two moments to compare; an empty `now` is the present."""

    table: str
    key: Item
    then: str
    now: str = ""


class ThenAndNow(ApiMessage):
    """An item at two moments and the differences."""

    then: Item | None
    now: Item | None
    compared: ItemComparison


class PutBackRequest(ApiMessage):
    """Restore one item as of a moment, provided it still equals `current`; without it, unconditionally."""

    table: str
    key: Item
    at: str
    current: Item | None = None
    gone: bool = False  # the item did not exist when it was read, and must still not exist


class PutBackResult(ApiMessage):
    """The outcome of restoring an item, and the request that undoes it (`POST /items/undo`)."""

    outcome: Outcome
    current: Item | None
    undo: UndoRequest | None
    others: ItemComparison  # how the written item differs from the old one: a lock, concurrent changes


async def past_window(studio: Studio, params: PastRequest) -> PastWindow:
    """Return the recovery window of a table, and when in that time it changed."""
    try:
        answer = await studio.db.call("DescribeContinuousBackups", {"TableName": params.table})
    except UnknownOperationFault as fault:
        raise RequestRefused(
            "past-unknown",
            "Point-in-time recovery is not supported",
            "The endpoint does not support DescribeContinuousBackups.",
            "Use “Live changes” and “Item history” instead; they read the table's stream.",
            status=409,
        ) from fault
    recovery = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    on = recovery.get("PointInTimeRecoveryStatus") == "ENABLED"
    earliest_us, latest_us = (
        to_microseconds(recovery.get(f"{end}RestorableDateTime")) for end in ("Earliest", "Latest")
    )
    since_us, until_us = earliest_us, latest_us
    density: tuple[int, ...] = ()
    counted = False
    if on and earliest_us is not None and latest_us is not None:
        since_us = max(parse_instant(params.since), earliest_us) if params.since else earliest_us
        until_us = min(parse_instant(params.until), latest_us) if params.until else latest_us
        if since_us < until_us and params.buckets > 0:
            buckets = min(params.buckets, BUCKETS_MAX)
            density, counted = await _count_changes(studio, params.table, since_us, until_us, buckets)
    return PastWindow(
        table=params.table,
        on=on,
        readable=await _supports_past_reads(studio),
        earliest=to_instant_text(earliest_us),
        latest=to_instant_text(latest_us),
        days=recovery.get("RecoveryPeriodInDays"),
        now=instant_text(int(studio.clock.now() * _SECOND_US)),
        since=to_instant_text(since_us),
        until=to_instant_text(until_us),
        density=density,
        counted=counted,
        marks=await _backup_marks(studio, params.table) if on else (),
    )


async def set_recovery(studio: Studio, params: KeepPastRequest) -> PastWindow:
    """Turn point-in-time recovery of a table on or off."""
    setting: dict[str, Any] = {"PointInTimeRecoveryEnabled": params.on}
    if params.on and params.days is not None:
        setting["RecoveryPeriodInDays"] = params.days
    await studio.db.call(
        "UpdateContinuousBackups", {"TableName": params.table, "PointInTimeRecoverySpecification": setting}
    )
    return await past_window(studio, PastRequest(params.table))


async def read_item_history(studio: Studio, params: HistoryRequest) -> ItemHistory:
    """Return all recorded versions of an item, with the differences and the author of each."""
    return await read_history(studio, params.table, params.key, await load_recogniser(studio, params.table))


async def compare_then_and_now(studio: Studio, params: ThenRequest) -> ThenAndNow:
    """Return an item at two moments and the differences."""
    then = await _read_item(studio, params.table, params.key, params.then)
    now = await _read_item(studio, params.table, params.key, params.now)
    return ThenAndNow(then, now, compare_items(then, now))


async def put_back(studio: Studio, params: PutBackRequest) -> PutBackResult:
    """Restore an item as of a moment; if it changed since it was read, nothing is written."""
    then = await _read_item(studio, params.table, params.key, params.at)
    current = params.current
    if current is None and not params.gone:
        current = await _read_item(studio, params.table, params.key, "")
    context = await load_edit_context(studio, params.table)
    image = current or then
    if image is None:
        raise RequestRefused(
            "item-missing",
            "Nothing to restore",
            f"No item with this key existed at {params.at}, and none exists now.",
            "Choose a time when it existed.",
            status=409,
        )
    if not same_item(context.layout.key_of(image), context.layout.key_of(params.key)):
        raise RequestRefused(
            "key-other",
            "The keys do not match",
            "The current item in the request has another key than the item to restore.",
            "Reload the item and restore it again.",
        )
    entity = context.entity_of(image)
    _check_unversioned(context, entity)
    before = None if current is None else mutable_item(current)
    after = with_next_lock(entity, before, None if then is None else mutable_item(then))
    result = await write_edit(studio, context.layout, ItemEdit(before, after, context.design, entity))
    written = result.outcome == "written"
    undo = UndoRequest(params.table, before, after) if written else None
    others = compare_items(then, result.current if written else then)
    return PutBackResult(result.outcome, result.current, undo, others)


def _check_unversioned(context: EditContext, entity: EntityDesign | None) -> None:
    """Refuse entities with a version history: behind its own history, the item could no longer be changed."""
    if context.design is None or entity is None or entity.immutable:
        return
    if next(audits_of(context.design, entity), None) is not None:
        raise RequestRefused(
            "record-versioned",
            "This entity has a version history",
            f"{entity.name} is always written together with a version and an audit row. Restored alone, its version "
            "would be behind its own history, and programs could no longer update it.",
            "Use Versions.restore in your program: it writes the old content as the next version.",
            status=409,
        )


async def _read_item(studio: Studio, table: str, key: Item, at: str) -> Item | None:
    db = await studio.connection_at(at)
    answer = await db.call("GetItem", {"TableName": table, "Key": dict(key), "ConsistentRead": True})
    item: Item | None = answer.get("Item")
    return item


async def _supports_past_reads(studio: Studio) -> bool:
    """Return whether the endpoint supports reads as of a moment."""
    if not isinstance(studio.db.backend, AsyncAsOfBackend):
        return False
    try:
        past = await studio.db.as_of(studio.clock.now())
    except AsOfUnsupported:
        return False
    if studio.engine is None:
        await past.close()  # a remote connection has its own sockets
    return True


async def _count_changes(
    studio: Studio, table: str, since_us: int, until_us: int, buckets: int
) -> tuple[tuple[int, ...], bool]:
    """Return the number of changes in each bucket, and whether the counts are complete.

    The engine counts all; elsewhere the stream, which has one day, is counted.
    """
    edges = [since_us + (until_us - since_us) * position // buckets for position in range(buckets + 1)]
    if studio.engine is not None:
        where = studio.where
        scope = Scope(where.account or DEFAULT_SCOPE.account, where.region or DEFAULT_SCOPE.region)
        return studio.engine.changes_between(table, [edges[0] - 1, *edges[1:]], scope), True
    counts = [0] * buckets
    try:
        subscription = await studio.db.subscribe(table, from_="start", follow=False, on_loss="continue")
        read = 0
        while read < _RECORDS_MAX and (batch := await subscription.take()) is not None:
            read += len(batch)
            for change in batch:
                assert isinstance(change, RawChange), "subscribing by table name yields raw changes"
                place = (change.at.timestamp() * _SECOND_US - since_us) * buckets // (until_us - since_us)
                if 0 <= place < buckets:
                    counts[int(place)] += 1
    except TavolaError:
        return (), False  # no stream: the timeline has no histogram
    return tuple(counts), False  # a stream keeps one day, recovery more


async def _backup_marks(studio: Studio, table: str) -> tuple[PastMark, ...]:
    try:
        backups = await list_backups(studio, TableRequest(table))
    except Fault:
        return ()  # backups are not supported, or listing them is not allowed
    return tuple(PastMark(backup.at, f"Backup {backup.name}") for backup in backups.backups)


ENDPOINTS = (
    Endpoint("POST", "/past/restore", restore_table, is_write=True),
    Endpoint("GET", "/past/restore", restore_progress),
    Endpoint("GET", "/past/backups", list_backups),
    Endpoint("POST", "/past/backups", create_backup, is_write=True),
    Endpoint("POST", "/past/backups/restore", restore_backup, is_write=True),
    Endpoint("GET", "/past", past_window),
    Endpoint("POST", "/past", set_recovery, is_write=True),
    Endpoint("POST", "/past/history", read_item_history),
    Endpoint("POST", "/past/then", compare_then_and_now),
    Endpoint("POST", "/past/put-back", put_back, is_write=True),
)
