"""What exports, imports and bulk loads share: describing, listing, starting and ending them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tavola.engine.catalog import StoredTable
from tavola.engine.operations.call import OperationCall, Services
from tavola.engine.storage import Store
from tavola.engine.transfer import (
    BucketMissing,
    Buckets,
    CodecMissing,
    Kind,
    PlaceRefused,
    Transfer,
    TransferError,
    TransferRecords,
    check_key,
    load_zstd,
)
from tavola.limits import TRANSFERS_LISTED
from tavola.protocol.arns import ResourceArn, Scope, parse_resource_arn
from tavola.protocol.faults import AccessDeniedFault, Fault, ValidationFault

_STATUS = {"export": "ExportStatus", "import": "ImportStatus", "bulk": "BulkOperationStatus"}
_TOKEN_STEP = 16  # AWS's tokens have a multiple of this length


def buckets_of(services: Services) -> Buckets:
    """Return the folder of buckets; explain how to configure one if there is none."""
    if services.buckets is None:
        raise ValidationFault(
            "No buckets are configured: choose a folder to use as S3 with Engine.open(…, buckets=FOLDER) or "
            "tavola serve --buckets FOLDER"
        )
    return services.buckets


def check_prefix(prefix: str | None) -> None:
    """Refuse a prefix that leads out of its bucket."""
    try:
        check_key(prefix or "")
    except PlaceRefused as refused:
        raise ValidationFault(f"Invalid Request: {refused}") from refused


def check_compression(compression: str | None) -> None:
    """Refuse a compression that this Python cannot read."""
    if compression == "ZSTD":
        try:
            load_zstd()
        except CodecMissing as missing:
            raise ValidationFault(str(missing)) from missing


def find_transfer(call: OperationCall, kind: Kind, arn: str, missing: Callable[[str], Fault]) -> Transfer:
    """Return the caller's record with an ARN; another account's is refused."""
    parts = parse_resource_arn(arn)
    assert parts is not None, "`parse` refuses other ARNs"
    assert parts.label is not None, "the ARN of a transfer has its id"
    check_account(call, parts)
    if parts.scope.region != call.scope.region:
        raise missing("Invalid export arn" if kind == "export" else arn)
    transfer = TransferRecords(call.services.store, kind).find(parts.scope, parts.label)
    if transfer is None or transfer.table != parts.table:
        raise missing(arn)
    return transfer


def check_account(call: OperationCall, arn: ResourceArn) -> None:
    """Refuse another account's resource; with a guard, access has been decided before."""
    if arn.scope.account != call.scope.account and not call.is_guarded:
        raise AccessDeniedFault("Access is denied")


def describe_transfer(call: OperationCall, kind: Kind, transfer: Transfer) -> dict[str, Any]:
    """Return a current description; a transfer whose job vanished has failed."""
    described = transfer.description
    status = _STATUS[kind]
    if (
        described[status] in ("IN_PROGRESS", "CANCELLING")
        and transfer.job not in call.services.jobs.unfinished
    ):
        return described | {
            status: "FAILED",
            "FailureCode": "InternalServerError",
            "FailureMessage": "The transfer failed unexpectedly; see the log",
        }
    return described


def list_transfers(
    call: OperationCall,
    kind: Kind,
    token: str | None,
    limit: int | None,
    keep: Callable[[Transfer], bool] | None = None,
) -> tuple[list[Transfer], str | None]:
    """Return a page of the caller's records that `keep` accepts, newest first, and the next token."""
    before: str | None = None
    purpose = f"list-{kind}s"
    if token is not None:
        opened = call.services.token_signer.open(purpose, call.scope, _decode_token(token))
        if opened is None:
            raise ValidationFault(f"Invalid Request: Provided nextToken is invalid: {token}")
        before = opened["before"]
    limit = limit or TRANSFERS_LISTED
    page: list[Transfer] = []
    for transfer in TransferRecords(call.services.store, kind).newest(call.scope, before, keep):
        if len(page) == limit:
            return page, _encode_token(
                call.services.token_signer.sign(purpose, call.scope, {"before": page[-1].id})
            )
        page.append(transfer)
    return page, None


def _encode_token(text: str) -> str:
    """Return a signed token in the alphabet of AWS's, which some SDKs check."""
    raw = text.encode().hex()
    return raw + "0" * (-len(raw) % _TOKEN_STEP)


def _decode_token(token: str) -> str:
    try:
        return bytes.fromhex(token).rstrip(b"\0").decode("ascii")
    except ValueError:
        return ""


def count_running(store: Store, kind: Kind, call: OperationCall) -> int:
    """Return how many of the caller's transfers are running."""
    return sum(
        transfer.description[_STATUS[kind]] == "IN_PROGRESS"
        for transfer in TransferRecords(store, kind).newest(call.scope)
    )


def new_transfer(
    call: OperationCall,
    table: StoredTable,
    id_: str,
    token: str,
    digest: str,
    description: dict[str, Any],
) -> Transfer:
    """Return the record of a transfer out of, or into, an existing table, in the open transaction."""
    return Transfer(
        id=id_,
        account=call.scope.account,
        region=call.scope.region,
        table=table.name,
        table_uuid=table.definition.uuid,
        started_at_s=call.services.time.stamp().store_s,
        token=token,
        digest=digest,
        description=description,
    )


def start_transfer(call: OperationCall, kind: Kind, transfer: Transfer, state: dict[str, Any]) -> Transfer:
    """Start a transfer and save its record, in the open transaction."""
    services = call.services
    records = TransferRecords(services.store, kind)
    records.sweep(services.time.elapsed_s())
    origin = {"id": transfer.id, "account": transfer.account, "region": transfer.region}
    transfer = msgspec.structs.replace(transfer, job=services.jobs.start(kind, origin | state))
    records.save(transfer)
    return transfer


def mark_failed(kind: Kind, transfer: Transfer, error: Exception, now_s: float) -> Transfer:
    """Return the record of a failed transfer."""
    code, message = _failure(error)
    return transfer.with_description(
        **{_STATUS[kind]: "FAILED"}, EndTime=now_s, FailureCode=code, FailureMessage=message
    )


def mark_abandoned(services: Services, kind: Kind, state: dict[str, Any]) -> None:
    """Record that a transfer failed unexpectedly, and why; an expired record stays deleted."""
    records = TransferRecords(services.store, kind)
    transfer = records.find(Scope(state["account"], state["region"]), state["id"])
    if transfer is None:
        return
    records.save(
        transfer.with_description(
            **{_STATUS[kind]: "FAILED"},
            EndTime=services.clock.now(),
            FailureCode="InternalServerError",
            FailureMessage=f"The transfer failed unexpectedly: {state['failure']}",
        )
    )


def _failure(error: Exception) -> tuple[str, str]:
    """Return code and message of a failure, as AWS reports them for S3."""
    match error:
        case BucketMissing():
            return (
                "S3NoSuchBucket",
                f"{error} (Service: Amazon S3; Status Code: 404; Error Code: NoSuchBucket)",
            )
        case PermissionError():
            return (
                "S3AccessDenied",
                f"Access Denied (Service: Amazon S3; Status Code: 403; Error Code: AccessDenied): {error}",
            )
        case OSError():
            return "S3InternalError", f"The buckets folder cannot be used: {error}"
        case PlaceRefused():
            return "S3AccessDenied", str(error)
        case TransferError():
            return "InvalidInput", str(error)
        case Fault():
            return error.code.removesuffix("Exception"), str(error)
        case _:
            raise error
