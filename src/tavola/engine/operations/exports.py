"""ExportTableToPointInTime, DescribeExport, ListExports."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from tavola.engine.backups import pin, pinned_table, unpin
from tavola.engine.catalog import StoredTable
from tavola.engine.isolation import digest_payload
from tavola.engine.operations.call import (
    OperationCall,
    Services,
    bind_placeholders,
    check_placeholders_used,
    check_scalar_keys,
    encode,
    parse_filter,
    parse_key_condition,
    parse_projection,
)
from tavola.engine.operations.transfers import (
    buckets_of,
    check_account,
    check_prefix,
    count_running,
    describe_transfer,
    find_transfer,
    list_transfers,
    mark_abandoned,
    mark_failed,
    new_transfer,
    start_transfer,
)
from tavola.engine.snapshots import index_log_if_needed, position_at, window_of
from tavola.engine.store_time import StoreTime
from tavola.engine.transfer import (
    Export,
    ExportFilter,
    ExportProgress,
    Period,
    Transfer,
    TransferError,
    TransferRecords,
    transfer_id,
)
from tavola.expressions.conditions import evaluate
from tavola.expressions.errors import ExpressionError
from tavola.expressions.key_conditions import key_bounds
from tavola.expressions.projections import project
from tavola.limits import EXPORT_PERIOD_S_MAX, EXPORT_PERIOD_S_MIN, EXPORTS_RUNNING_MAX
from tavola.protocol.arns import Scope, export_arn, parse_resource_arn
from tavola.protocol.faults import (
    ExportConflictFault,
    ExportNotFoundFault,
    InvalidExportTimeFault,
    InvalidRestoreTimeFault,
    LimitExceededFault,
    TableNotFoundFault,
    ValidationFault,
)
from tavola.protocol.transfers import (
    DescribeExportRequest,
    ExportTableToPointInTimeRequest,
    FilterSpecification,
    IncrementalExportSpecification,
    ListExportsRequest,
)
from tavola.values import Item

EXPORT_JOB = "export"
_SECOND_US = 1_000_000


def export_table_to_point_in_time(call: OperationCall, request: ExportTableToPointInTimeRequest) -> bytes:
    """Start to write a table as of a time, or its changes over a period, to files of a bucket."""
    services = call.services
    buckets_of(services)
    check_prefix(request.s3_prefix)
    table = _source(call, request.table_arn)
    records = TransferRecords(services.store, "export")
    now_s = services.clock.now()
    digest = digest_payload(msgspec.to_builtins(request))
    token = request.client_token or services.entropy.uuid()
    known = records.find_by_token(call.scope, token, services.time.elapsed_s())
    if known is not None:
        if known.digest != digest:
            raise ExportConflictFault()
        return encode({"ExportDescription": describe_transfer(call, "export", known)})
    period = request.incremental_export_specification
    times, after, position = _span(call, table, request)
    if request.filter_specification is not None:
        _export_filter(call, request.filter_specification, table)
    if count_running(services.store, "export", call) >= EXPORTS_RUNNING_MAX:
        raise LimitExceededFault(
            f"Subscriber limit exceeded: There is a limit of {EXPORTS_RUNNING_MAX} exports at a time"
        )
    id_ = transfer_id(now_s, services.entropy.bytes(4))
    described: dict[str, Any] = {
        "ExportArn": export_arn(table.scope, table.name, id_),
        "ExportStatus": "IN_PROGRESS",
        "StartTime": now_s,
        "TableArn": table.arn,
        "TableId": table.definition.uuid,
        **times,
        "ClientToken": token,
        "S3Bucket": request.s3_bucket,
        "S3SseAlgorithm": request.s3_sse_algorithm or "AES256",
        "ExportFormat": request.export_format or "DYNAMODB_JSON",
    }
    echoed = msgspec.to_builtins(request)
    for name in ("S3BucketOwner", "S3Prefix", "S3SseKmsKeyId", "FilterSpecification"):
        if name in echoed:
            described[name] = echoed[name]
    if period is not None:
        described["ExportType"] = "INCREMENTAL_EXPORT"
    services.begin()
    pin(services.catalog, table)
    transfer = start_transfer(
        call,
        "export",
        new_transfer(call, table, id_, token, digest, described),
        {"number": table.definition.number, "after": after, "position": position, "progress": {}},
    )
    return encode({"ExportDescription": transfer.description})


def describe_export(call: OperationCall, request: DescribeExportRequest) -> bytes:
    """Return the description of an export; counts grow while it runs."""
    transfer = find_transfer(
        call,
        "export",
        request.export_arn,
        lambda why: ExportNotFoundFault(f"Export not found: {_describe_failure(why)}"),
    )
    return encode({"ExportDescription": describe_transfer(call, "export", transfer)})


def list_exports(call: OperationCall, request: ListExportsRequest) -> bytes:
    """Return the exports of the last ninety days, newest first, optionally of one table.

    Exports of a deleted table are not listed, and a new table of the same name does not inherit them.
    """
    uuid: str | None = None
    if request.table_arn is not None:
        parts = parse_resource_arn(request.table_arn)
        table = None if parts is None else call.services.catalog.find(parts.scope, parts.table)
        uuid = "" if table is None else table.definition.uuid
    page, token = list_transfers(
        call,
        "export",
        request.next_token,
        request.max_results,
        None if uuid is None else lambda transfer: transfer.table_uuid == uuid,
    )
    answer: dict[str, Any] = {"ExportSummaries": [_summary(call, transfer) for transfer in page]}
    if token is not None:
        answer["NextToken"] = token
    return encode(answer)


def export_step(services: Services, state: dict[str, Any]) -> dict[str, Any] | None:
    """Write a slice of an export."""
    scope = Scope(state["account"], state["region"])
    records = TransferRecords(services.store, "export")
    transfer = records.find(scope, state["id"])
    number = state["number"]
    now_s = services.clock.now()
    if transfer is None:  # the record has expired
        unpin(services.catalog, services.store, number)
        return None
    progress = msgspec.convert(state["progress"], ExportProgress)
    done = True
    try:
        export = _export(services, scope, transfer, state)
        progress, transfer, done = export.step(progress, now_s)
    except (OSError, TransferError, ValidationFault) as error:
        transfer = mark_failed("export", transfer, error, now_s)
    records.save(transfer)
    if done:
        unpin(services.catalog, services.store, number)
        return None
    return state | {"progress": msgspec.to_builtins(progress)}


def fail_export(services: Services, state: dict[str, Any]) -> None:
    """Release the history that a failed export would have read; its record says why it failed."""
    mark_abandoned(services, "export", state)
    unpin(services.catalog, services.store, state["number"])


def _export(services: Services, scope: Scope, transfer: Transfer, state: dict[str, Any]) -> Export:
    log = services.store.log(state["number"])
    index_log_if_needed(log, state["position"] if state["after"] is None else state["after"], services.begin)
    past = pinned_table(services.catalog, services.store, state["number"], state["position"])
    specification = transfer.description.get("FilterSpecification")
    filter_ = ExportFilter()
    if specification is not None:
        call = OperationCall("ExportTableToPointInTime", b"", scope, services)
        filter_ = _export_filter(call, msgspec.convert(specification, FilterSpecification), past)
    period: Period | None = None
    if state["after"] is not None:
        view = transfer.description["IncrementalExportSpecification"]["ExportViewType"]
        period = Period(log, state["after"], state["position"], old_images=view == "NEW_AND_OLD_IMAGES")
    return Export(transfer, past, filter_, period, buckets_of(services))


def _source(call: OperationCall, arn: str) -> StoredTable:
    parts = parse_resource_arn(arn)
    assert parts is not None, "`parse` refuses other ARNs"
    check_account(call, parts)
    table = call.services.catalog.find(parts.scope, parts.table)
    if table is None or parts.scope.region != call.scope.region:
        raise TableNotFoundFault.of_table(arn)
    return table


def _span(
    call: OperationCall, table: StoredTable, request: ExportTableToPointInTimeRequest
) -> tuple[dict[str, Any], int | None, int]:
    """Return an export's times for its description, and the corresponding log positions.

    A full export has one position; an incremental one also the position that its period starts after.
    """
    period, time = request.incremental_export_specification, call.services.time
    earliest_us, latest_us = window_of(table, time)
    if period is None:
        at_us = latest_us
        if request.export_time is not None:
            at_us = int(request.export_time * _SECOND_US)
        return {"ExportTime": at_us / _SECOND_US}, None, _position(table, at_us, time)
    from_s, to_s = _check_period(table, period, earliest_us / _SECOND_US, latest_us / _SECOND_US)
    from_us, to_us = int(from_s * _SECOND_US), int(to_s * _SECOND_US)
    if from_us < earliest_us // _SECOND_US * _SECOND_US:
        raise InvalidExportTimeFault("Point in Time Recovery is not available for specified export time")
    described = {
        "ExportFromTime": from_s,
        "ExportToTime": to_s,
        "ExportViewType": period.export_view_type or "NEW_AND_OLD_IMAGES",
    }
    after = _position(table, max(from_us - 1, earliest_us), time) if from_us > earliest_us else None
    if after is None:
        recovery = table.definition.recovery
        assert recovery is not None, "a table with a window has recovery"
        after = recovery.since
    return {"IncrementalExportSpecification": described}, after, _position(table, to_us - 1, time)


def _check_period(
    table: StoredTable, period: IncrementalExportSpecification, earliest_s: float, latest_s: float
) -> tuple[float, float]:
    """Return the period of an incremental export; invalid ones are refused in AWS's order."""
    from_s = period.export_from_time
    assert from_s is not None, "`parse` refuses a period without a start"
    to_s = latest_s if period.export_to_time is None else period.export_to_time
    if to_s > latest_s:
        raise InvalidExportTimeFault(
            f"Incremental export period to time cannot be greater than the current time : {_instant(to_s)}"
        )
    # A table has changes from before its creation if it was created with a clock that was ahead.
    if from_s < int(min(table.definition.created_at_s, earliest_s)):
        raise InvalidExportTimeFault(
            "Incremental export period from time cannot be less than the table creation time : "
            f"{_instant(from_s)}"
        )
    between = "Difference between export period from time and export period to time is"
    if to_s - from_s < EXPORT_PERIOD_S_MIN:
        raise InvalidExportTimeFault(f"{between} less than {EXPORT_PERIOD_S_MIN // 60} minutes")
    if to_s - from_s > EXPORT_PERIOD_S_MAX:
        raise InvalidExportTimeFault(f"{between} greater than {EXPORT_PERIOD_S_MAX // 3600} hours")
    return from_s, to_s


def _position(table: StoredTable, at_us: int, time: StoreTime) -> int:
    try:
        return position_at(table, at_us, time)
    except InvalidRestoreTimeFault as error:
        raise InvalidExportTimeFault("Export Time is invalid") from error


def _export_filter(
    call: OperationCall, specification: FilterSpecification, table: StoredTable
) -> ExportFilter:
    """Return which items of a table are exported, from the expressions of a filter."""
    bindings = bind_placeholders(
        call, specification.expression_attribute_names, specification.expression_attribute_values
    )
    projection = parse_projection(call, specification, bindings)
    filter_ = parse_filter(call, specification, None, bindings)
    condition = (
        None
        if specification.key_condition_expression is None
        else parse_key_condition(call, specification, bindings)
    )
    check_placeholders_used(call, bindings, (projection, filter_, condition))
    check_scalar_keys(table, projection, filter_)
    bounds = ExportFilter().bounds
    if condition is not None:
        try:
            bounds = key_bounds(condition, table.schema, bindings.values).bounds
        except ExpressionError as error:
            raise ValidationFault(str(error)) from error
        for name in table.schema.names:
            if filter_ is not None and name in filter_.attributes:
                raise ValidationFault(
                    "Filter Expression can only contain non-primary key attributes: Primary key attribute: "
                    f"{name}"
                )

    def keep(item: Item) -> bool:
        return filter_ is None or evaluate(filter_, item, bindings.values)

    def shape(item: Item) -> Item:
        return item if projection is None else project(projection, item)

    return ExportFilter(bounds, None if filter_ is None else keep, None if projection is None else shape)


def _summary(call: OperationCall, transfer: Transfer) -> dict[str, Any]:
    described = describe_transfer(call, "export", transfer)
    return {
        "ExportArn": described["ExportArn"],
        "ExportStatus": described["ExportStatus"],
        "ExportType": described.get("ExportType", "FULL_EXPORT"),
    }


def _describe_failure(why: str) -> str:
    return f"Export not found: {why}" if why.startswith("arn:") else why


def _instant(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
