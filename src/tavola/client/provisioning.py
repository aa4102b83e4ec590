"""Provisioning: create tables as their models declare them, and wait until they are active."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tavola.client.context import Context
from tavola.client.effects import Call, Program, Sleep
from tavola.errors import TavolaError
from tavola.model import (
    ModelError,
    Table,
    TableSettings,
    entities_of,
    key_types,
    require_table,
    result_entity,
    shape_of,
)
from tavola.protocol.faults import Fault

POLL_S = 0.5
POLLS_MAX = 1200
AWS_KEY = "alias/aws/dynamodb"  # the AWS managed key; requests select it by naming no key
OWN_KEY = "new"  # a key that infrastructure as code creates; no DynamoDB request can
REPLICATED = "NEW_AND_OLD_IMAGES"  # the stream view that replicas require
UNRECOVERABLE = frozenset({"ARCHIVING", "ARCHIVED", "INACCESSIBLE_ENCRYPTION_CREDENTIALS"})
_UNSUPPORTED = frozenset({"UnknownOperationException", "UnsupportedOperationException"})

_log = logging.getLogger("tavola.client")

_NOT_IN_PLACE = (
    "This cannot be changed in place; create a table with another name (connect(…, table_names=…)) and copy the items, or "
    "change the model"
)


class TableNotReady(TavolaError):
    """A table that did not become active in time."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"The table {name} is not active after {POLL_S * POLLS_MAX:.0f} s; check its status, and try again"
        )


class TableUnusable(TavolaError):
    """A table in a state that it does not leave by itself."""

    def __init__(self, name: str, state: str) -> None:
        self.name = name
        how = (
            "restore it from its backup"
            if state.startswith("ARCHIV")
            else "give DynamoDB access to its KMS key"
        )
        super().__init__(
            f"The table {name} is {state}, and does not become active by itself; {how}, and try again"
        )


class KmsKeyMissing(TavolaError):
    """A table is to be encrypted with a KMS key that does not exist yet."""

    def __init__(self, name: str, key: str) -> None:
        self.name = name
        super().__init__(
            f"The table {name} is to be encrypted with the key {key!r}, which does not exist yet; create a KMS key and use "
            "its ARN, alias or id, or deploy with the output of tavola iac, which creates the key"
        )


class TableMismatch(TavolaError):
    """An existing table that differs from its model in something that is not or cannot be changed in place."""

    def __init__(self, name: str, reasons: tuple[str, ...], remedy: str = _NOT_IN_PLACE) -> None:
        self.name = name
        self.reasons = reasons
        super().__init__(
            f"The table {name} exists and differs from its model: {'; '.join(reasons)}. {remedy}"
        )


class IndexForm(Protocol):
    """The definition of an index, from a class or a design document."""

    @property
    def name(self) -> str:
        """Its name in DynamoDB."""
        ...

    @property
    def local(self) -> bool:
        """Whether it is a local secondary index."""
        ...

    @property
    def hash(self) -> tuple[str, ...]:
        """The attributes of its partition key."""
        ...

    @property
    def range(self) -> tuple[str, ...]:
        """The attributes of its sort key."""
        ...

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of its key."""
        ...

    @property
    def projection(self) -> str | tuple[str, ...]:
        """The attributes that it holds."""
        ...


@dataclass(frozen=True, slots=True)
class Blueprint:
    """The definition of a table to create: its deployed name, settings and indexes."""

    name: str
    label: str  # its name in the model
    settings: TableSettings
    key_types: Mapping[str, str]
    indexes: Sequence[IndexForm]


def blueprint_of(context: Context, table: type[Table]) -> Blueprint:
    """Return the definition of a table; refuse a table without entities, or with a view that cannot be built."""
    entities = entities_of(require_table(table))
    if not entities:
        raise ModelError(table.__name__, "it has no entities yet; import the modules that declare them first")
    for pattern in (pattern for entity in entities for pattern in shape_of(entity).patterns.values()):
        result_entity(pattern)  # refuses a view that does not exist or cannot be built
    return Blueprint(context.name_of(table), table.__name__, table.settings, key_types(table), table.indexes)


def table_request(table: Blueprint) -> dict[str, Any]:
    """Return the CreateTable request of a table."""
    settings, types = table.settings, table.key_types
    used = list(settings.key_names)
    request: dict[str, Any] = {
        "TableName": table.name,
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
    stream = settings.stream or (REPLICATED if settings.replicas else None)
    if stream is not None:
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": stream}
    if settings.encryption is not None:
        request["SSESpecification"] = {"Enabled": True, "SSEType": "KMS"}
        if settings.encryption != AWS_KEY:
            request["SSESpecification"]["KMSMasterKeyId"] = settings.encryption
    if settings.tags:
        request["Tags"] = [{"Key": key, "Value": value} for key, value in settings.tags.items()]
    return request


def index_request(table: Blueprint, index: IndexForm) -> dict[str, Any]:
    """Return an index as a member of CreateTable and UpdateTable."""
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


def _throughput(table: Blueprint) -> dict[str, int] | None:
    settings = table.settings
    if settings.read_units is None or settings.write_units is None:
        return None
    return {"ReadCapacityUnits": settings.read_units, "WriteCapacityUnits": settings.write_units}


def _schema(hash_: tuple[str, ...], range_: tuple[str, ...]) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": "HASH"} for name in hash_] + [
        {"AttributeName": name, "KeyType": "RANGE"} for name in range_
    ]


def create_table(table: Blueprint) -> Program[dict[str, Any] | None]:
    """Create a table with all its settings, and return None; if it exists, return its description.

    An existing table with another key raises `TableMismatch`. Its time to live and recovery are enabled if the model declares
    them and they are off, because an earlier call may have been interrupted before that.
    """
    name = table.name
    created = True
    if is_key_to_create(table.settings.encryption):
        raise KmsKeyMissing(name, str(table.settings.encryption))
    try:
        yield Call("CreateTable", table_request(table))
    except Fault as fault:
        if fault.code != "ResourceInUseException":
            raise
        created = False
    described = yield from wait_until_active(name)
    settings = table.settings
    if not created:
        reasons = key_mismatches(table, described)
        if reasons:
            raise TableMismatch(name, reasons)
    if settings.ttl is not None and (created or not (yield from _has_ttl(name))):
        ttl = {"Enabled": True, "AttributeName": settings.ttl}
        yield Call("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": ttl})
    if settings.recovery and (created or not (yield from _has_recovery(name))):
        recovery = {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": settings.recovery_days}
        request = {"TableName": name, "PointInTimeRecoverySpecification": recovery}
        if (yield from call_if_supported("UpdateContinuousBackups", request)) is None:
            _log.warning(
                "The endpoint does not support point-in-time recovery; %s was created without it", name
            )
    return None if created else described


def is_key_to_create(encryption: str | None) -> bool:
    """Return whether a KMS key does not exist yet: infrastructure as code creates it, or a template refers to it."""
    return encryption is not None and (encryption == OWN_KEY or "${" in encryption)


def _has_ttl(name: str) -> Program[bool]:
    """Return whether time to live is enabled; True if the endpoint does not support the operation."""
    response = yield from call_if_supported("DescribeTimeToLive", {"TableName": name})
    if response is None:
        return True
    return bool(response["TimeToLiveDescription"].get("TimeToLiveStatus", "DISABLED") != "DISABLED")


def _has_recovery(name: str) -> Program[bool]:
    """Return whether point-in-time recovery is enabled; True if the endpoint does not support the operation."""
    response = yield from call_if_supported("DescribeContinuousBackups", {"TableName": name})
    if response is None:
        return True
    recovery = response["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    return bool(recovery.get("PointInTimeRecoveryStatus") == "ENABLED")


def call_if_supported(operation: str, request: dict[str, Any]) -> Program[dict[str, Any] | None]:
    """Return a response, None from an endpoint without the operation, as some local ones are."""
    try:
        response: dict[str, Any] = yield Call(operation, request)
    except Fault as fault:
        if fault.code in _UNSUPPORTED:
            return None
        raise
    return response


def key_mismatches(table: Blueprint, described: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the differences between the key of an existing table and its model, as text."""
    settings = table.settings
    declared_schema = _schema((settings.hash,), () if settings.range is None else (settings.range,))
    if list(described["KeySchema"]) != declared_schema:
        return (
            f"its key is {_schema_text(described['KeySchema'])}, and should be {_schema_text(declared_schema)}",
        )
    types = table.key_types
    return tuple(
        f"its key attribute {name} has type {type_}, and should have {types[name]}"
        for name, type_ in defined_types(described).items()
        if name in settings.key_names and type_ != types[name]
    )


def defined_types(described: Mapping[str, Any]) -> dict[str, str]:
    """Return the type of each key attribute of an existing table."""
    return {
        definition["AttributeName"]: definition["AttributeType"]
        for definition in described["AttributeDefinitions"]
    }


def _schema_text(schema: Iterable[Mapping[str, str]]) -> str:
    return " and ".join(f"{element['AttributeName']} ({element['KeyType']})" for element in schema)


def wait_until_active(name: str) -> Program[dict[str, Any]]:
    """Wait until a table and its indexes are active, and return its description.

    Filling an index may take any time; other waits end after `POLLS_MAX` polls with `TableNotReady`.
    """
    left = POLLS_MAX
    while left > 0:
        table: dict[str, Any] = (yield Call("DescribeTable", {"TableName": name}))["Table"]
        if is_active(table):
            return table
        if not any(index.get("Backfilling") for index in table.get("GlobalSecondaryIndexes", ())):
            left -= 1
        yield Sleep(POLL_S)
    raise TableNotReady(name)


def is_active(described: Mapping[str, Any]) -> bool:
    """Return whether a table and its indexes are active; raise `TableUnusable` if they never will be."""
    state = described["TableStatus"]
    if state in UNRECOVERABLE:
        raise TableUnusable(described.get("TableName", "?"), state)
    indexes = described.get("GlobalSecondaryIndexes", ())
    return {state, *(index["IndexStatus"] for index in indexes)} == {"ACTIVE"}


def delete_table(name: str) -> Program[None]:
    """Delete a table by its deployed name, if it exists, and wait until it is gone."""
    try:
        yield Call("DeleteTable", {"TableName": name})
        for _ in range(POLLS_MAX):
            yield Call("DescribeTable", {"TableName": name})
            yield Sleep(POLL_S)
    except Fault as fault:
        if fault.code != "ResourceNotFoundException":
            raise
        return
    raise TableNotReady(name)
