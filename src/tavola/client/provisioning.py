"""Provisioning: making a live table what its model says, where that can be done in place."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from tavola.client.context import Context
from tavola.client.steps import Call, Steps, Wait
from tavola.errors import TavolaError
from tavola.model import Index, ModelError, Table, entities_of, entity_given, key_types, shape_of
from tavola.protocol import Fault

POLL_S = 0.5
POLLS_MAX = 1200
_UNKNOWN = frozenset({"UnknownOperationException", "UnsupportedOperationException"})

_log = logging.getLogger("tavola.client")

_NOT_IN_PLACE = (
    "It cannot be changed in place; make a table of another name (connect(…, table_names=…)) and copy the items, or mend "
    "the model"
)


class TableNotReady(TavolaError):
    """A table that did not become active in the time that was waited."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"The table {name} is not active after {POLL_S * POLLS_MAX:.0f} s; look at it, and try again"
        )


class TableMismatch(TavolaError):
    """A table of the same name that is another than the model's, in what is not or cannot be changed in place."""

    def __init__(self, name: str, reasons: tuple[str, ...], remedy: str = _NOT_IN_PLACE) -> None:
        self.name = name
        self.reasons = reasons
        super().__init__(f"The table {name} is there, and is not the model's: {'; '.join(reasons)}. {remedy}")


def table_request(context: Context, table: type[Table]) -> dict[str, Any]:
    """Return the CreateTable that a model asks for."""
    entities = entities_of(table)
    if not entities:
        raise ModelError(
            table.__name__, "no entity lives in it yet; import the module that declares them first"
        )
    for pattern in (found for entity in entities for found in shape_of(entity).patterns.values()):
        entity_given(
            pattern
        )  # a view that cannot be given, or is nowhere, is refused before there is a table
    settings = table.settings
    types = key_types(table)
    used = list(settings.key_names)
    request: dict[str, Any] = {
        "TableName": context.name_of(table),
        "KeySchema": _schema((settings.hash,), () if settings.range is None else (settings.range,)),
        "TableClass": settings.table_class,
        "DeletionProtectionEnabled": settings.deletion_protection,
    }
    throughput = _throughput(table)
    if throughput is None:
        request["BillingMode"] = "PAY_PER_REQUEST"
    else:
        request |= {"BillingMode": "PROVISIONED", "ProvisionedThroughput": throughput}
    for index in table.indexes:
        used += index.attributes
        kind = "LocalSecondaryIndexes" if index.local else "GlobalSecondaryIndexes"
        request.setdefault(kind, []).append(index_request(table, index))
    request["AttributeDefinitions"] = [
        {"AttributeName": name, "AttributeType": types[name]} for name in dict.fromkeys(used)
    ]
    if settings.stream is not None:
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": settings.stream}
    if settings.encryption is not None:
        request["SSESpecification"] = {
            "Enabled": True,
            "SSEType": "KMS",
            "KMSMasterKeyId": settings.encryption,
        }
    if settings.tags:
        request["Tags"] = [{"Key": key, "Value": value} for key, value in settings.tags.items()]
    return request


def index_request(table: type[Table], index: Index) -> dict[str, Any]:
    """Return one index as CreateTable and UpdateTable write it; it projects what the model says and nothing more."""
    projection: dict[str, Any] = {"ProjectionType": index.projection}
    if isinstance(index.projection, tuple):
        projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": list(index.projection)}
    request: dict[str, Any] = {
        "IndexName": index.name, "KeySchema": _schema(index.hash, index.range), "Projection": projection,
    }  # fmt: skip
    throughput = _throughput(table)
    if throughput is not None and not index.local:
        request["ProvisionedThroughput"] = throughput
    return request


def _throughput(table: type[Table]) -> dict[str, int] | None:
    settings = table.settings
    if settings.read_units is None or settings.write_units is None:
        return None
    return {"ReadCapacityUnits": settings.read_units, "WriteCapacityUnits": settings.write_units}


def _schema(hash_: tuple[str, ...], range_: tuple[str, ...]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": "HASH"} for name in hash_] + [
        {"AttributeName": name, "KeyType": "RANGE"} for name in range_
    ]


def create_table(context: Context, table: type[Table]) -> Steps[dict[str, Any] | None]:
    """Make a table with all its settings, or leave the one that is there, and return what that is; None: it was made.

    One that is there with another key is no table for this model, and is refused. Its time to live and its recovery are
    switched on where the model says so and they are off: whoever made it may not have come so far.
    """
    name = context.name_of(table)
    made = True
    try:
        yield Call("CreateTable", table_request(context, table))
    except Fault as fault:
        if fault.code != "ResourceInUseException":
            raise
        made = False
    described = yield from active(name)
    settings = table.settings
    if not made:
        reasons = key_refusals(table, described)
        if reasons:
            raise TableMismatch(name, reasons)
    if settings.ttl is not None and (made or not (yield from _ends(name))):
        ends = {"Enabled": True, "AttributeName": settings.ttl}
        yield Call("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": ends})
    if settings.recovery and (made or not (yield from _remembers(name))):
        wanted = {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": settings.recovery_days}
        told = {"TableName": name, "PointInTimeRecoverySpecification": wanted}
        if (yield from asked("UpdateContinuousBackups", told)) is None:
            _log.warning("the endpoint has no point-in-time recovery: the past of %s is not kept there", name)
    return None if made else described


def _ends(name: str) -> Steps[bool]:
    """Return whether items of a table end by some attribute, as far as can be known."""
    answer = yield from asked("DescribeTimeToLive", {"TableName": name})
    if answer is None:
        return True
    return bool(answer["TimeToLiveDescription"].get("TimeToLiveStatus", "DISABLED") != "DISABLED")


def _remembers(name: str) -> Steps[bool]:
    """Return whether a table's past is kept, as far as can be known."""
    answer = yield from asked("DescribeContinuousBackups", {"TableName": name})
    if answer is None:
        return True
    told = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    return bool(told.get("PointInTimeRecoveryStatus") == "ENABLED")


def asked(operation: str, request: dict[str, Any]) -> Steps[dict[str, Any] | None]:
    """Return an answer, None from an endpoint that does not have the operation, as some local ones do not."""
    try:
        answer: dict[str, Any] = yield Call(operation, request)
    except Fault as fault:
        if fault.code in _UNKNOWN:
            return None
        raise
    return answer


def key_refusals(table: type[Table], described: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the key of a table that is there has otherwise than its model, in words."""
    settings = table.settings
    wanted = _schema((settings.hash,), () if settings.range is None else (settings.range,))
    if list(described["KeySchema"]) != wanted:
        return (f"its key is {_named(described['KeySchema'])}, and should be {_named(wanted)}",)
    types = key_types(table)
    return tuple(
        f"its key attribute {name} is {told}, and should be {types[name]}"
        for name, told in defined_types(described).items()
        if name in settings.key_names and told != types[name]
    )


def defined_types(described: Mapping[str, Any]) -> dict[str, str]:
    """Return the type of each key attribute of a table that is there."""
    return {each["AttributeName"]: each["AttributeType"] for each in described["AttributeDefinitions"]}


def _named(schema: Iterable[Mapping[str, str]]) -> str:
    return " and ".join(f"{each['AttributeName']} ({each['KeyType']})" for each in schema)


def active(name: str) -> Steps[dict[str, Any]]:
    """Wait until a table and its indexes are active, and return its description."""
    for _ in range(POLLS_MAX):
        answer = yield Call("DescribeTable", {"TableName": name})
        table: dict[str, Any] = answer["Table"]
        states = [table["TableStatus"], *(i["IndexStatus"] for i in table.get("GlobalSecondaryIndexes", ()))]
        if set(states) == {"ACTIVE"}:
            return table
        yield Wait(POLL_S)
    raise TableNotReady(name)


def delete_table(context: Context, table: type[Table]) -> Steps[None]:
    """Delete a table, if it is there, and wait until it is gone."""
    name = context.name_of(table)
    try:
        yield Call("DeleteTable", {"TableName": name})
        for _ in range(POLLS_MAX):
            yield Call("DescribeTable", {"TableName": name})
            yield Wait(POLL_S)
    except Fault as fault:
        if fault.code != "ResourceNotFoundException":
            raise
        return
    raise TableNotReady(name)
