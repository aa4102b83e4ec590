"""Provisioning: making a live table what its model says, where that can be done in place."""

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
AWS_KEY = "alias/aws/dynamodb"  # AWS's own in the account: DynamoDB has it named by naming none
OWN_KEY = "new"  # a key that infrastructure makes, and no request of DynamoDB
REPLICATED = "NEW_AND_OLD_IMAGES"  # the stream that replicas live on
ENDED = frozenset(
    {"ARCHIVING", "ARCHIVED", "INACCESSIBLE_ENCRYPTION_CREDENTIALS"}
)  # none becomes active by itself
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


class TableUnusable(TavolaError):
    """A table in a state that waiting does not end."""

    def __init__(self, name: str, state: str) -> None:
        self.name = name
        how = "restore it from its backup" if state.startswith("ARCHIV") else "let DynamoDB use its key again"
        super().__init__(
            f"The table {name} is {state}, and becomes active by no waiting; {how}, and try again"
        )


class KeyNotMade(TavolaError):
    """A table that is to have a key of its own, which somebody must make first."""

    def __init__(self, name: str, key: str) -> None:
        self.name = name
        super().__init__(
            f"The table {name} is to be encrypted by the key {key!r}, which names none that is there; make one in KMS and name it "
            "by its ARN, alias or id, or let tavola iac write the infrastructure that makes it"
        )


class TableMismatch(TavolaError):
    """A table of the same name that is another than the model's, in what is not or cannot be changed in place."""

    def __init__(self, name: str, reasons: tuple[str, ...], remedy: str = _NOT_IN_PLACE) -> None:
        self.name = name
        self.reasons = reasons
        super().__init__(f"The table {name} is there, and is not the model's: {'; '.join(reasons)}. {remedy}")


class IndexForm(Protocol):
    """What an index is to be, whether a class declares it or a document."""

    @property
    def name(self) -> str:
        """The name that DynamoDB knows."""
        ...

    @property
    def local(self) -> bool:
        """Whether it is one of the table's own partitions."""
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
        """What it holds of the items."""
        ...


@dataclass(frozen=True, slots=True)
class Blueprint:
    """What DynamoDB is told of a table: by what name it goes there, and what its model says."""

    name: str
    label: str  # what the model calls it
    settings: TableSettings
    key_types: Mapping[str, str]
    indexes: Sequence[IndexForm]


def blueprint_of(context: Context, table: type[Table]) -> Blueprint:
    """Return what a model says of a table; refuse one that no entity lives in, or whose views nobody can give."""
    entities = entities_of(require_table(table))
    if not entities:
        raise ModelError(
            table.__name__, "no entity lives in it yet; import the module that declares them first"
        )
    for pattern in (found for entity in entities for found in shape_of(entity).patterns.values()):
        result_entity(
            pattern
        )  # a view that cannot be given, or is nowhere, is refused before there is a table
    return Blueprint(context.name_of(table), table.__name__, table.settings, key_types(table), table.indexes)


def table_request(table: Blueprint) -> dict[str, Any]:
    """Return the CreateTable that a model asks for."""
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
    """Make a table with all its settings, or leave the one that is there, and return what that is; None: it was made.

    One that is there with another key is no table for this model, and is refused. Its time to live and its recovery are
    switched on where the model says so and they are off: whoever made it may not have come so far.
    """
    name = table.name
    made = True
    if names_no_key(table.settings.encryption):
        raise KeyNotMade(name, str(table.settings.encryption))
    try:
        yield Call("CreateTable", table_request(table))
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


def names_no_key(encryption: str | None) -> bool:
    """Return whether what a model says of its key is no key that is there: one to be made, or one that a file only refers to."""
    return encryption is not None and (encryption == OWN_KEY or "${" in encryption)


def _ends(name: str) -> Program[bool]:
    """Return whether items of a table end by some attribute, as far as can be known."""
    answer = yield from asked("DescribeTimeToLive", {"TableName": name})
    if answer is None:
        return True
    return bool(answer["TimeToLiveDescription"].get("TimeToLiveStatus", "DISABLED") != "DISABLED")


def _remembers(name: str) -> Program[bool]:
    """Return whether a table's past is kept, as far as can be known."""
    answer = yield from asked("DescribeContinuousBackups", {"TableName": name})
    if answer is None:
        return True
    told = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    return bool(told.get("PointInTimeRecoveryStatus") == "ENABLED")


def asked(operation: str, request: dict[str, Any]) -> Program[dict[str, Any] | None]:
    """Return an answer, None from an endpoint that does not have the operation, as some local ones do not."""
    try:
        answer: dict[str, Any] = yield Call(operation, request)
    except Fault as fault:
        if fault.code in _UNKNOWN:
            return None
        raise
    return answer


def key_refusals(table: Blueprint, described: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the key of a table that is there has otherwise than its model, in words."""
    settings = table.settings
    wanted = _schema((settings.hash,), () if settings.range is None else (settings.range,))
    if list(described["KeySchema"]) != wanted:
        return (f"its key is {_named(described['KeySchema'])}, and should be {_named(wanted)}",)
    types = table.key_types
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


def active(name: str) -> Program[dict[str, Any]]:
    """Wait until a table and its indexes are active, and return its description.

    An index that is being filled takes as long as its items take; anything else is given up after `POLLS_MAX` looks.
    """
    left = POLLS_MAX
    while left > 0:
        answer = yield Call("DescribeTable", {"TableName": name})
        table: dict[str, Any] = answer["Table"]
        if is_active(table):
            return table
        if not any(index.get("Backfilling") for index in table.get("GlobalSecondaryIndexes", ())):
            left -= 1
        yield Sleep(POLL_S)
    raise TableNotReady(name)


def is_active(described: Mapping[str, Any]) -> bool:
    """Return whether a table and its indexes are active; raises `TableUnusable` where they never will be."""
    state = described["TableStatus"]
    if state in ENDED:
        raise TableUnusable(described.get("TableName", "?"), state)
    indexes = described.get("GlobalSecondaryIndexes", ())
    return {state, *(index["IndexStatus"] for index in indexes)} == {"ACTIVE"}


def delete_table(context: Context, table: type[Table]) -> Program[None]:
    """Delete a table, if it is there, and wait until it is gone."""
    yield from gone(context.name_of(table))


def gone(name: str) -> Program[None]:
    """Delete a table by its name there, if it is there, and wait until it is gone."""
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
