"""UpdateContinuousBackups, DescribeContinuousBackups, and Tavola's own ListItemVersions."""

from __future__ import annotations

from typing import Any

import msgspec

from tavola.engine.catalog import Recovery, StoredTable
from tavola.engine.operations.backups import find_backup_table
from tavola.engine.operations.call import (
    OperationCall,
    bind_placeholders,
    check_placeholders_used,
    check_scalar_keys,
    encode,
    parse_projection,
)
from tavola.engine.snapshots import index_log_if_needed, table_at_position, versions, window_of
from tavola.engine.writes import key_of_request
from tavola.expressions.projections import CompiledProjection, project
from tavola.limits import ITEM_VERSIONS_MAX, RECOVERY_DAYS_MAX
from tavola.protocol.backups import DescribeContinuousBackupsRequest, UpdateContinuousBackupsRequest
from tavola.protocol.faults import ContinuousBackupsUnavailableFault, ValidationFault
from tavola.protocol.items import ListItemVersionsRequest
from tavola.values import decode_item, encode_item, read_units

_VERSIONS_TOKEN = "item-versions"


def update_continuous_backups(call: OperationCall, request: UpdateContinuousBackupsRequest) -> bytes:
    """Enable or disable point-in-time recovery, or change how many days are kept."""
    services = call.services
    table = find_backup_table(call, request.table_name)
    if not services.catalog.is_active(table):
        raise ContinuousBackupsUnavailableFault(
            f"Backups are being enabled for the table: {table.name}. Please retry later"
        )
    specification = request.point_in_time_recovery_specification
    if specification.recovery_period_in_days is not None and not specification.point_in_time_recovery_enabled:
        raise ValidationFault(
            "Invalid Request: Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery."
        )
    services.begin()
    definition = table.definition
    recovery: Recovery | None = None
    if specification.point_in_time_recovery_enabled:
        current = definition.recovery
        if current is None:
            recovery = _start_recovery(
                call, table, specification.recovery_period_in_days or RECOVERY_DAYS_MAX
            )
        else:
            days = specification.recovery_period_in_days or current.days
            recovery = msgspec.structs.replace(current, days=days)
    changed = services.catalog.change(table, msgspec.structs.replace(definition, recovery=recovery))
    return encode({"ContinuousBackupsDescription": _describe(call, changed)})


def describe_continuous_backups(call: OperationCall, request: DescribeContinuousBackupsRequest) -> bytes:
    """Return whether point-in-time recovery is on, and its time window."""
    table = find_backup_table(call, request.table_name)
    return encode({"ContinuousBackupsDescription": _describe(call, table)})


def list_item_versions(call: OperationCall, request: ListItemVersionsRequest) -> bytes:
    """Return the versions of an item, from the start of the recovery window until now.

    The first entry is the item at the start of the window; it has no time, because it may be older. An entry without an
    item means that the item did not exist from then on.
    """
    services = call.services
    call.admit(request.key)
    bindings = bind_placeholders(call, request.expression_attribute_names, None)
    projection = parse_projection(call, request, bindings)
    check_placeholders_used(call, bindings, (projection,))
    if call.context is not None and call.context.as_of_us is not None:
        raise ValidationFault("ListItemVersions returns every version of an item; send it without a time")
    table = call.table(request.table_name)
    check_scalar_keys(table, projection)
    key = key_of_request(table, request.key)
    earliest_us, _ = window_of(table, services.time)
    rendered: list[dict[str, Any]] = []
    recovery = table.definition.recovery
    assert recovery is not None, "a table with a window has recovery"
    assert table.journal is not None, "a table with a window is journalled"
    after = max(recovery.since, table.journal.log.id_at(earliest_us - 1))
    services.catalog.as_of_read_at_s[table.definition.number] = services.time.elapsed_s()
    index_log_if_needed(table.journal.log, after, services.begin_maintenance)
    if request.next_token is None:
        first = table_at_position(table, table.journal.log, after).rows.get(key)
        rendered.append(_render_version(None, None if first is None else first[0], projection))
    else:
        after = max(after, _page_start(call, table, key, request.next_token))
    changes, last_change = versions(table, key, after, request.limit or ITEM_VERSIONS_MAX)
    for change in changes:
        version = _render_version(change.since_us, change.item, projection)
        rendered.append(version | {"Expired": True} if change.by_service else version)
    bytes_read = sum(len(change.item or b"") for change in changes)
    call.record_access(table, None, key, reads=read_units(bytes_read, consistent=True))
    answer: dict[str, Any] = {"Versions": rendered}
    if last_change is not None:
        position = {"number": table.definition.number, "key": key.hex(), "after": last_change}
        answer["NextToken"] = services.token_signer.sign(_VERSIONS_TOKEN, call.scope, position)
    return encode(answer)


def _render_version(
    since_us: int | None, item: bytes | None, projection: CompiledProjection | None
) -> dict[str, Any]:
    version: dict[str, Any] = {} if since_us is None else {"Since": since_us / 1_000_000}
    if item is not None:
        projected = item if projection is None else encode_item(project(projection, decode_item(item)))
        version["Item"] = msgspec.Raw(projected)
    return version


def _page_start(call: OperationCall, table: StoredTable, key: bytes, token: str) -> int:
    """Return the change after which a page of versions continues; refuse a token of another item."""
    position = call.services.token_signer.open(_VERSIONS_TOKEN, call.scope, token)
    if position is None or (position["number"], position["key"]) != (table.definition.number, key.hex()):
        raise ValidationFault("Invalid NextToken: it does not belong to this item")
    return int(position["after"])


def _start_recovery(call: OperationCall, table: StoredTable, days: int) -> Recovery:
    """Return the recovery setting of a table that starts now.

    If the table already has a log, for a stream, the earlier part lacks the images needed to undo changes.
    """
    now_s = call.services.clock.now()
    if table.definition.number not in call.services.catalog.logs():
        return Recovery(enabled_at_s=now_s, days=days)
    _, last, last_us = call.services.store.log(table.definition.number).span()
    return Recovery(enabled_at_s=max(now_s, last_us / 1_000_000), days=days, since=last)


def _describe(call: OperationCall, table: StoredTable) -> dict[str, Any]:
    described: dict[str, Any] = {"PointInTimeRecoveryStatus": "DISABLED"}
    recovery = table.definition.recovery
    if recovery is not None:
        earliest_us, latest_us = window_of(table, call.services.time)
        described = {
            "PointInTimeRecoveryStatus": "ENABLED",
            "RecoveryPeriodInDays": recovery.days,
            "EarliestRestorableDateTime": earliest_us / 1_000_000,
            "LatestRestorableDateTime": latest_us / 1_000_000,
        }
    return {"ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": described}
