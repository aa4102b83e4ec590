"""ImportTable, DescribeImport, ListImports."""

from __future__ import annotations

from typing import Any

import msgspec

from tavola.engine.catalog import NEVER_S, StoredTable
from tavola.engine.isolation import digest_payload
from tavola.engine.operations.call import OperationCall, Services, encode
from tavola.engine.operations.tables import create_table
from tavola.engine.operations.transfers import (
    buckets_of,
    check_compression,
    check_prefix,
    count_running,
    describe_transfer,
    find_transfer,
    list_transfers,
    mark_abandoned,
    mark_failed,
    start_transfer,
)
from tavola.engine.transfer import (
    SOME_FAILED,
    BucketMissing,
    Import,
    ImportProgress,
    Load,
    LoadFormat,
    Transfer,
    TransferError,
    TransferRecords,
    release_objects,
    transfer_id,
)
from tavola.limits import IMPORT_OBJECTS_MAX, IMPORTS_RUNNING_MAX
from tavola.protocol.arns import Scope, import_arn, table_arn
from tavola.protocol.faults import (
    Fault,
    ImportConflictFault,
    ImportNotFoundFault,
    LimitExceededFault,
    ResourceInUseFault,
)
from tavola.protocol.transfers import (
    DescribeImportRequest,
    ImportTableRequest,
    ListImportsRequest,
    TableCreationParameters,
    create_table_request,
)

IMPORT_JOB = "import"
_EXISTS = "TableAlreadyExists"


def import_table(call: OperationCall, request: ImportTableRequest) -> bytes:
    """Start to create a table from files of a bucket.

    It appears shortly after, and is CREATING until the end.
    """
    services = call.services
    buckets_of(services)
    source = request.s3_bucket_source
    check_prefix(source.s3_key_prefix)
    check_compression(request.input_compression_type)
    name = request.table_creation_parameters.table_name
    existing = services.catalog.find(call.scope, name)
    records = TransferRecords(services.store, "import")
    if existing is not None and not _is_importing(call, existing):
        raise ResourceInUseFault(f"Table already exists: {name}")
    now_s = services.clock.now()
    digest = digest_payload(msgspec.to_builtins(request))
    token = request.client_token or services.entropy.uuid()
    earlier = records.find_by_token(call.scope, token, services.time.elapsed_s())
    if earlier is not None:
        if earlier.digest != digest:
            raise ImportConflictFault()
        return encode({"ImportTableDescription": describe_transfer(call, "import", earlier)})
    if count_running(services.store, "import", call) >= IMPORTS_RUNNING_MAX:
        raise LimitExceededFault(
            f"Subscriber limit exceeded: There is a limit of {IMPORTS_RUNNING_MAX} imports at a time"
        )
    id_ = transfer_id(now_s, services.entropy.bytes(4))
    uuid = services.entropy.uuid()
    echoed = msgspec.to_builtins(request)
    described: dict[str, Any] = {
        "ImportArn": import_arn(call.scope, name, id_),
        "ImportStatus": "IN_PROGRESS",
        "TableArn": table_arn(call.scope, name),
        "TableId": uuid,
        "ClientToken": token,
        "S3BucketSource": {"S3BucketOwner": call.scope.account, **echoed["S3BucketSource"]},
        "ErrorCount": 0,
        "CloudWatchLogGroupArn": (
            f"arn:aws:logs:{call.scope.region}:{call.scope.account}:log-group:/aws-dynamodb/imports:*"
        ),
        "InputFormat": request.input_format,
        "InputCompressionType": request.input_compression_type or "NONE",
        "TableCreationParameters": echoed["TableCreationParameters"],
        "StartTime": now_s,
        "ProcessedSizeBytes": 0,
        "ProcessedItemCount": 0,
        "ImportedItemCount": 0,
    }
    if "InputFormatOptions" in echoed:
        described["InputFormatOptions"] = echoed["InputFormatOptions"]
    services.begin()
    transfer = start_transfer(
        call,
        "import",
        Transfer(
            id=id_,
            account=call.scope.account,
            region=call.scope.region,
            table=name,
            table_uuid=uuid,
            started_at_s=services.time.stamp().store_s,
            token=token,
            digest=digest,
            description=described,
        ),
        {"number": None, "progress": {}},
    )
    return encode({"ImportTableDescription": transfer.description})


def describe_import(call: OperationCall, request: DescribeImportRequest) -> bytes:
    """Return the description of an import; counts grow while it runs."""
    transfer = find_transfer(
        call, "import", request.import_arn, lambda why: ImportNotFoundFault(f"Import not found: {why}")
    )
    return encode({"ImportTableDescription": describe_transfer(call, "import", transfer)})


def list_imports(call: OperationCall, request: ListImportsRequest) -> bytes:
    """Return the imports of the last ninety days, newest first, optionally of one table, even a deleted one."""
    arn = request.table_arn
    page, token = list_transfers(
        call,
        "import",
        request.next_token,
        request.page_size,
        None if arn is None else lambda transfer: transfer.description["TableArn"] == arn,
    )
    answer: dict[str, Any] = {"ImportSummaryList": [_summary(call, transfer) for transfer in page]}
    if token is not None:
        answer["NextToken"] = token
    return encode(answer)


def import_step(services: Services, state: dict[str, Any]) -> dict[str, Any] | None:
    """Process a slice of an import; the first one creates its table."""
    scope = Scope(state["account"], state["region"])
    records = TransferRecords(services.store, "import")
    transfer = records.find(scope, state["id"])
    now_s = services.clock.now()
    if transfer is None:  # the record has expired
        return None
    table = None if state["number"] is None else services.catalog.of_number(state["number"])
    try:
        load = _load(services, transfer)
        if table is None:
            table, progress = _begin(services, scope, transfer, load)
            done = False
        else:
            progress = msgspec.convert(state["progress"], ImportProgress)
            work = Import(transfer, table, services.catalog, load, load.buckets)
            progress, transfer, done = work.step(progress)
    except (OSError, TransferError, Fault) as error:
        transfer = mark_failed("import", transfer, error, now_s)
        if isinstance(error, ResourceInUseFault):
            transfer = transfer.with_description(FailureCode=_EXISTS)
        if state["progress"]:
            reached = msgspec.convert(state["progress"], ImportProgress).reached
            release_objects(services.store, services.buckets, transfer.id, reached)
        done = True
    records.save(_mark_ended(transfer, now_s) if done else transfer)
    if done:
        if table is not None:
            ready_at_s = services.time.stamp().store_s + services.table_delay_s
            services.catalog.change(table, msgspec.structs.replace(table.definition, ready_at_s=ready_at_s))
        return None
    assert table is not None, "an import in progress has a table"
    return state | {"number": table.definition.number, "progress": msgspec.to_builtins(progress)}


def fail_import(services: Services, state: dict[str, Any]) -> None:
    """Undo a failed import: its table is deleted, and its record says why."""
    mark_abandoned(services, "import", state)
    if state["progress"]:
        release_objects(
            services.store,
            services.buckets,
            state["id"],
            msgspec.convert(state["progress"], ImportProgress).reached,
        )
    table = None if state["number"] is None else services.catalog.of_number(state["number"])
    if table is not None:
        services.catalog.drop(table)


def _begin(
    services: Services, scope: Scope, transfer: Transfer, load: Load
) -> tuple[StoredTable, ImportProgress]:
    """Create the table of an import and store the list of its objects."""
    source = transfer.description["S3BucketSource"]
    if not load.buckets.has(load.bucket):
        raise BucketMissing(load.bucket)
    objects = load.objects(source.get("S3KeyPrefix", ""))
    if len(objects) > IMPORT_OBJECTS_MAX:
        raise TransferError(
            f"There are {len(objects)} objects under the prefix; an import reads {IMPORT_OBJECTS_MAX} at most"
        )
    parameters = msgspec.convert(transfer.description["TableCreationParameters"], TableCreationParameters)
    create_table(OperationCall("CreateTable", b"", scope, services), create_table_request(parameters))
    table = services.catalog.find(scope, transfer.table)
    assert table is not None, "it was just created"
    definition = msgspec.structs.replace(table.definition, uuid=transfer.table_uuid, ready_at_s=NEVER_S)
    return services.catalog.change(table, definition), ImportProgress(load.begin(objects))


def _mark_ended(transfer: Transfer, now_s: float) -> Transfer:
    described = transfer.description
    if described["ImportStatus"] == "FAILED":
        return transfer
    if described["ErrorCount"]:
        return transfer.with_description(
            ImportStatus="FAILED",
            EndTime=now_s,
            FailureCode="ItemValidationError",
            FailureMessage=SOME_FAILED,
        )
    return transfer.with_description(ImportStatus="COMPLETED", EndTime=now_s)


def _load(services: Services, transfer: Transfer) -> Load:
    described = transfer.description
    csv = described.get("InputFormatOptions", {}).get("Csv", {})
    headers = csv.get("HeaderList")
    types = described["TableCreationParameters"]["AttributeDefinitions"]
    return Load(
        transfer.id,
        described["S3BucketSource"]["S3Bucket"],
        LoadFormat(
            described["InputFormat"],
            described["InputCompressionType"],
            csv.get("Delimiter", ","),
            None if headers is None else tuple(headers),
            {definition["AttributeName"]: definition["AttributeType"] for definition in types},
        ),
        services.store,
        buckets_of(services),
    )


def _is_importing(call: OperationCall, table: StoredTable) -> bool:
    """Return whether a table is being created by an import, which blocks another one for the same name."""
    if call.services.catalog.is_active(table):
        return False
    return any(
        transfer.table_uuid == table.definition.uuid
        for transfer in TransferRecords(call.services.store, "import").newest(call.scope)
    )


def _summary(call: OperationCall, transfer: Transfer) -> dict[str, Any]:
    described = describe_transfer(call, "import", transfer)
    names = (
        "ImportArn",
        "ImportStatus",
        "TableArn",
        "S3BucketSource",
        "CloudWatchLogGroupArn",
        "InputFormat",
        "StartTime",
        "EndTime",
    )
    return {name: described[name] for name in names if name in described}
