"""StartBulkPutItems, DescribeBulkOperation, ListBulkOperations, CancelBulkOperation."""

from __future__ import annotations

from typing import Any

import msgspec

from tavola.engine.isolation import digest_payload
from tavola.engine.operations.call import OperationCall, Services, encode
from tavola.engine.operations.transfers import (
    buckets_of,
    check_compression,
    check_prefix,
    describe_transfer,
    find_transfer,
    list_transfers,
    mark_abandoned,
    mark_failed,
    new_transfer,
    start_transfer,
)
from tavola.engine.transfer import (
    BucketMissing,
    Bulk,
    BulkProgress,
    Load,
    LoadFormat,
    Transfer,
    TransferError,
    TransferRecords,
    release_objects,
    transfer_id,
)
from tavola.limits import IMPORT_OBJECTS_MAX
from tavola.protocol.arns import Scope, bulk_arn
from tavola.protocol.faults import (
    Fault,
    IdempotentParameterMismatchFault,
    ResourceNotFoundFault,
    ValidationFault,
)
from tavola.protocol.transfers import (
    CancelBulkOperationRequest,
    DescribeBulkOperationRequest,
    ListBulkOperationsRequest,
    StartBulkPutItemsRequest,
)

BULK_JOB = "bulk"


def start_bulk_put_items(call: OperationCall, request: StartBulkPutItemsRequest) -> bytes:
    """Start to load the items in files of a bucket into an existing table."""
    services = call.services
    buckets_of(services)
    source, output = request.input_s3_configuration, request.output_s3_configuration
    check_prefix(source.s3_key_prefix)
    check_prefix(output.s3_key_prefix)
    check_compression(source.input_compression_type)
    table = call.table(request.table_name)
    records = TransferRecords(services.store, "bulk")
    now_s = services.clock.now()
    digest = digest_payload(msgspec.to_builtins(request))
    token = request.client_token or services.entropy.uuid()
    earlier = records.find_by_token(call.scope, token, services.time.elapsed_s())
    if earlier is not None:
        if earlier.digest != digest:
            raise IdempotentParameterMismatchFault()
        return encode({"BulkOperationDescription": describe_transfer(call, "bulk", earlier)})
    id_ = transfer_id(now_s, services.entropy.bytes(4))
    echoed = msgspec.to_builtins(request)
    described: dict[str, Any] = {
        "BulkOperationArn": bulk_arn(table.scope, table.name, id_),
        "BulkOperationStatus": "IN_PROGRESS",
        "TableDetails": [{"TableName": table.arn, "TableId": table.definition.uuid}],
        "ClientToken": token,
        "InputS3Configuration": {"InputCompressionType": "NONE", **echoed["InputS3Configuration"]},
        "OutputS3Configuration": echoed["OutputS3Configuration"],
        "StartTime": now_s,
        "ProcessedItemCount": 0,
        "ProcessedInputBytes": 0,
        "FailedItemCount": 0,
        "PerformanceTier": request.performance_tier or "STANDARD",
    }
    if request.max_write_request_units is not None:
        described["MaxWriteRequestUnits"] = request.max_write_request_units
    services.begin()
    transfer = start_transfer(
        call,
        "bulk",
        new_transfer(call, table, id_, token, digest, described),
        {"number": table.definition.number, "progress": {}},
    )
    return encode({"BulkOperationDescription": transfer.description})


def describe_bulk_operation(call: OperationCall, request: DescribeBulkOperationRequest) -> bytes:
    """Return the description of a bulk load; counts grow while it runs."""
    return encode(
        {
            "BulkOperationDescription": describe_transfer(
                call, "bulk", _find_bulk(call, request.bulk_operation_arn)
            )
        }
    )


def list_bulk_operations(call: OperationCall, request: ListBulkOperationsRequest) -> bytes:
    """Return the bulk loads of the last ninety days, newest first."""
    page, token = list_transfers(call, "bulk", request.next_token, request.max_results)
    names = ("BulkOperationArn", "BulkOperationStatus", "StartTime", "EndTime")
    summaries = []
    for transfer in page:
        described = describe_transfer(call, "bulk", transfer)
        summaries.append({name: described[name] for name in names if name in described})
    answer: dict[str, Any] = {"BulkOperationsSummaryList": summaries}
    if token is not None:
        answer["NextToken"] = token
    return encode(answer)


def cancel_bulk_operation(call: OperationCall, request: CancelBulkOperationRequest) -> bytes:
    """Stop a bulk load at its next slice; items already written stay."""
    transfer = _find_bulk(call, request.bulk_operation_arn)
    status = describe_transfer(call, "bulk", transfer)["BulkOperationStatus"]
    if status not in ("IN_PROGRESS", "CANCELLING"):
        raise ValidationFault(
            f"Bulk operation is not in progress and cannot be cancelled: it is {status}: "
            f"{request.bulk_operation_arn}"
        )
    services = call.services
    services.begin()
    transfer = transfer.with_description(BulkOperationStatus="CANCELLING")
    TransferRecords(services.store, "bulk").save(msgspec.structs.replace(transfer, cancelled=True))
    return encode({"BulkOperationArn": request.bulk_operation_arn, "BulkOperationStatus": "CANCELLING"})


def bulk_step(services: Services, state: dict[str, Any]) -> dict[str, Any] | None:
    """Process a slice of a bulk load; the first one lists its objects."""
    scope = Scope(state["account"], state["region"])
    records = TransferRecords(services.store, "bulk")
    transfer = records.find(scope, state["id"])
    now_s = services.clock.now()
    if transfer is None:  # the record has expired
        return None
    progress = msgspec.convert(state["progress"], BulkProgress) if state["progress"] else None
    done = True
    try:
        load = _load(services, transfer)
        table = services.catalog.of_number(state["number"])
        if table is None:
            raise ResourceNotFoundFault.of_table(transfer.table)
        work = Bulk(transfer, table, services.catalog, load, load.buckets)
        if transfer.cancelled:
            if progress is not None:
                release_objects(services.store, services.buckets, transfer.id, progress.reached)
                work.finish(progress, transfer, now_s)
            transfer = _mark_cancelled(transfer, now_s)
        elif progress is None:
            progress, transfer = _begin(transfer, load)
            done = False
        else:
            progress, transfer, done = work.step(progress)
            if done:
                transfer = _mark_completed(work, progress, transfer, now_s)
    except (OSError, TransferError, Fault) as error:
        transfer = mark_failed("bulk", transfer, error, now_s)
        if progress is not None:
            release_objects(services.store, services.buckets, transfer.id, progress.reached)
    records.save(transfer)
    return None if done else state | {"progress": msgspec.to_builtins(progress)}


def fail_bulk(services: Services, state: dict[str, Any]) -> None:
    """Release the objects of a failed bulk load; items already written stay."""
    mark_abandoned(services, "bulk", state)
    if state["progress"]:
        release_objects(
            services.store,
            services.buckets,
            state["id"],
            msgspec.convert(state["progress"], BulkProgress).reached,
        )


def _begin(transfer: Transfer, load: Load) -> tuple[BulkProgress, Transfer]:
    for bucket in (load.bucket, transfer.description["OutputS3Configuration"].get("S3Bucket", load.bucket)):
        if not load.buckets.has(bucket):
            raise BucketMissing(bucket)
    prefix = transfer.description["InputS3Configuration"].get("S3KeyPrefix", "")
    objects = load.objects(prefix)
    if len(objects) > IMPORT_OBJECTS_MAX:
        raise TransferError(
            f"There are {len(objects)} objects under the prefix; a bulk load reads {IMPORT_OBJECTS_MAX} at most"
        )
    total = sum(object_.bytes for object_ in objects)
    return BulkProgress(load.begin(objects)), transfer.with_description(TotalInputBytes=total)


def _mark_completed(work: Bulk, progress: BulkProgress, transfer: Transfer, now_s: float) -> Transfer:
    work.finish(progress, transfer, now_s)
    status = "COMPLETED_WITH_ERRORS" if progress.reached.failed else "COMPLETED"
    return transfer.with_description(BulkOperationStatus=status, EndTime=now_s)


def _mark_cancelled(transfer: Transfer, now_s: float) -> Transfer:
    return transfer.with_description(
        BulkOperationStatus="CANCELLED",
        EndTime=now_s,
        FailureCode="UserCancelled",
        FailureMessage="The bulk operation was cancelled; items already written stay",
    )


def _load(services: Services, transfer: Transfer) -> Load:
    source = transfer.description["InputS3Configuration"]
    format_ = LoadFormat(source["InputFormat"], source["InputCompressionType"])
    return Load(transfer.id, source["S3Bucket"], format_, services.store, buckets_of(services))


def _find_bulk(call: OperationCall, arn: str) -> Transfer:
    return find_transfer(
        call,
        "bulk",
        arn,
        lambda why: ResourceNotFoundFault(f"Requested resource not found: Bulk operation: {why} not found"),
    )
