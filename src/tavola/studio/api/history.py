"""The past of a table and its items: recovery window, versions, restoring one item or a whole table, backups.

Reading as of a moment needs no endpoint here: everything that reads takes `as_of`. A restore creates a new table, overwrites
nothing, and continues without a client.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tavola.backends.errors import PastUnavailable
from tavola.client.backend import AsyncRemembering
from tavola.client.stream_changes import RawChange
from tavola.errors import TavolaError
from tavola.model.document import EntityDesign
from tavola.protocol.accounts import DEFAULT_SCOPE
from tavola.protocol.arns import Scope
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
from tavola.studio.types import Item, TableRequest

_SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class RestoreTableRequest:
    """Make a new table of what another was at a moment; no moment: at the latest that can be had."""

    table: str
    to: str
    at: str = ""


@dataclass(frozen=True, slots=True)
class RestoreProgressRequest:
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
class MakeBackupRequest:
    """Back a table up as it is now."""

    table: str
    name: str


@dataclass(frozen=True, slots=True)
class RestoreBackupRequest:
    """Make a new table of a backup."""

    arn: str
    to: str


async def restore_table(studio: Studio, params: RestoreTableRequest) -> RestoreProgress:
    """Begin to restore a table as it was to a new one; `GET /past/restore` tells how far it is."""
    _check_name(params.to)
    request: dict[str, Any] = {"SourceTableName": params.table, "TargetTableName": params.to}
    if params.at:
        request["RestoreDateTime"] = parse_instant(params.at) / _SECOND_US
    else:
        request["UseLatestRestorableTime"] = True
    await studio.db.call("RestoreTableToPointInTime", request)
    return await restore_progress(studio, RestoreProgressRequest(params.to, params.table))


async def restore_progress(studio: Studio, params: RestoreProgressRequest) -> RestoreProgress:
    """Return how far the restore of a table is."""
    described = (await studio.db.call("DescribeTable", {"TableName": params.table}))["Table"]
    summary = described.get("RestoreSummary", {})
    of_items: int | None = None
    if params.of and not params.of.startswith("arn:"):
        with suppress(Fault):  # the source may be gone by now
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
    """Return the backups that there are of a table."""
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
    """Make a backup of a table."""
    await studio.db.call("CreateBackup", {"TableName": params.table, "BackupName": params.name})
    return await list_backups(studio, TableRequest(params.table))


async def restore_backup(studio: Studio, params: RestoreBackupRequest) -> RestoreProgress:
    """Begin to make a new table of a backup."""
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
            "The new table has no name",
            "A restore makes a table of its own, and never writes over the one that is there.",
            "Give it a name of 3 to 255 letters, digits, _, - and .",
        )


def to_microseconds(seconds: float | None) -> int | None:
    """Return a time of an answer, which is seconds, in microseconds."""
    return None if seconds is None else round(seconds * _SECOND_US)


def to_instant_text(at_us: int | None) -> str | None:
    """Return a time as a page is told it."""
    return None if at_us is None else instant_text(at_us)


BUCKETS_MAX = 400
_RECORDS_MAX = 5_000  # of a stream that are counted for the track of a slider


@dataclass(frozen=True, slots=True)
class PastRequest:
    """The past of a table; `since` and `until` say which part of it is counted, and in how many buckets."""

    table: str
    since: str = ""
    until: str = ""
    buckets: int = 120  # 0: nothing is counted


@dataclass(frozen=True, slots=True)
class PastMark:
    """A moment worth a stop."""

    at: str
    text: str


@dataclass(frozen=True, slots=True)
class PastWindow:
    """From when to when a table can be read and restored, and how much changed along the way."""

    table: str
    on: bool  # its past is kept
    readable: bool  # this endpoint answers reads as of a moment; AWS only restores
    earliest: str | None
    latest: str | None
    days: int | None
    now: str
    since: str | None  # what is counted
    until: str | None
    density: tuple[int, ...]  # changes in each of as many equal stretches
    counted: bool  # all changes are in it
    marks: tuple[PastMark, ...]


@dataclass(frozen=True, slots=True)
class KeepPastRequest:
    """Keep a table's past from now on, or no more; not to keep it forgets what was kept."""

    table: str
    on: bool = True
    days: int | None = None


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """Of which item."""

    table: str
    key: Item


@dataclass(frozen=True, slots=True)
class ThenRequest:
    """An item at one moment beside another; no moment is now."""

    table: str
    key: Item
    then: str
    now: str = ""


@dataclass(frozen=True, slots=True)
class ThenAndNow:
    """An item as it was and as it is."""

    then: Item | None
    now: Item | None
    compared: ItemComparison


@dataclass(frozen=True, slots=True)
class PutBackRequest:
    """Put one item back as it was at a moment, if it is still what `stands` says; without that, whatever stands."""

    table: str
    key: Item
    at: str
    current: Item | None = None
    gone: bool = False  # there was no item when it was looked at, and there must be none still


@dataclass(frozen=True, slots=True)
class PutBackResult:
    """How it ended, and what takes it back again (`POST /items/undo`)."""

    outcome: Outcome
    current: Item | None
    undo: UndoRequest | None
    others: ItemComparison  # what is otherwise than it was then: a lock that counts on, what somebody else wrote meanwhile


async def past_window(studio: Studio, params: PastRequest) -> PastWindow:
    """Return how far back a table can be seen, and where in that time something changed."""
    try:
        answer = await studio.db.call("DescribeContinuousBackups", {"TableName": params.table})
    except UnknownOperationFault as fault:
        raise RequestRefused(
            "past-unknown",
            "This endpoint knows no past",
            "It does not keep what tables were (it does not know DescribeContinuousBackups).",
            "Look at the table as it is; the tab Live and an item's history work with its stream.",
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
        "UpdateContinuousBackups",
        {"TableName": params.table, "PointInTimeRecoverySpecification": setting},
    )
    return await past_window(studio, PastRequest(params.table))


async def read_item_history(studio: Studio, params: HistoryRequest) -> ItemHistory:
    """Return all that an item has been, with what changed each time and who changed it."""
    return await read_history(studio, params.table, params.key, await load_recogniser(studio, params.table))


async def compare_then_and_now(studio: Studio, params: ThenRequest) -> ThenAndNow:
    """Return an item as it was at a moment beside what it is, or was at another."""
    then = await _read_item(studio, params.table, params.key, params.then)
    now = await _read_item(studio, params.table, params.key, params.now)
    return ThenAndNow(then, now, compare_items(then, now))


async def put_back(studio: Studio, params: PutBackRequest) -> PutBackResult:
    """Write an item as it was at a moment, over exactly what stands; nothing is written if that is another by now."""
    then = await _read_item(studio, params.table, params.key, params.at)
    current = params.current
    if current is None and not params.gone:
        current = await _read_item(studio, params.table, params.key, "")
    context = await load_edit_context(studio, params.table)
    image = current or then
    if image is None:
        raise RequestRefused(
            "item-missing",
            "There is nothing to put back",
            f"At {params.at} there was no item of this key, and there is none now.",
            "Choose a moment at which there was one.",
            status=409,
        )
    if not same_item(context.layout.key_of(image), context.layout.key_of(params.key)):
        raise RequestRefused(
            "key-other",
            "That is another item",
            "What is said to stand has another key than the item that is to be put back.",
            "Read the item again, and put back that one.",
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
    """Refuse a record with versions: set back behind its history, no program could change it any more."""
    if context.design is None or entity is None or entity.immutable:
        return
    if next(audits_of(context.design, entity), None) is not None:
        raise RequestRefused(
            "record-versioned",
            "This record counts its versions",
            f"{entity.name} is written together with a version and an audit row. Put back alone it would stand behind "
            "its own history, and no program could change it any more.",
            "Restore it where it is written: Versions.restore makes an old version's content the next version.",
            status=409,
        )


async def _read_item(studio: Studio, table: str, key: Item, at: str) -> Item | None:
    db = await studio.connection_at(at)
    answer = await db.call("GetItem", {"TableName": table, "Key": dict(key), "ConsistentRead": True})
    item: Item | None = answer.get("Item")
    return item


async def _supports_past_reads(studio: Studio) -> bool:
    """Tell whether reads as of a moment are answered here."""
    if not isinstance(studio.db.backend, AsyncRemembering):
        return False
    try:
        past = await studio.db.as_of(studio.clock.now())
    except PastUnavailable:
        return False
    if studio.engine is None:
        await past.close()  # its own sockets; what is in this process has none
    return True


async def _count_changes(
    studio: Studio, table: str, since_us: int, until_us: int, buckets: int
) -> tuple[tuple[int, ...], bool]:
    """Return how many changes fell into each stretch, and whether all are counted: by the engine, or by the stream."""
    edges = [since_us + (until_us - since_us) * place // buckets for place in range(buckets + 1)]
    if studio.engine is not None:
        where = studio.where
        scope = Scope(where.account or DEFAULT_SCOPE.account, where.region or DEFAULT_SCOPE.region)
        return studio.engine.changes_between(table, [edges[0] - 1, *edges[1:]], scope), True
    counts = [0] * buckets
    try:
        subscription = await studio.db.subscribe(table, from_="start", follow=False, on_loss="go on")
        read = 0
        while read < _RECORDS_MAX and (batch := await subscription.take()) is not None:
            read += len(batch)
            for change in batch:
                assert isinstance(change, RawChange), "a table that is read by its name has changes of items"
                place = (change.at.timestamp() * _SECOND_US - since_us) * buckets // (until_us - since_us)
                if 0 <= place < buckets:
                    counts[int(place)] += 1
    except TavolaError:
        return (), False  # no stream: the slider has no track, and works
    return tuple(counts), False  # a stream keeps a day, and recovery more


async def _backup_marks(studio: Studio, table: str) -> tuple[PastMark, ...]:
    try:
        backups = await list_backups(studio, TableRequest(table))
    except Fault:
        return ()  # an endpoint that keeps no backups, or may not list them
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
