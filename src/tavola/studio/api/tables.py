"""One table with its design, creating a declared table, and a sample table to explore."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tavola.client.table_changes import Blueprint, create_table
from tavola.errors import TavolaError
from tavola.limits import BATCH_WRITE_REQUESTS_MAX
from tavola.model.document import EntityDesign, FieldDesign, KeyDesign, SourceDesign
from tavola.studio.api.session import TableSummary, summarise_table
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import Studio
from tavola.studio.types import Item

TABLE = "tavola-sample"
CUSTOMERS = 40
STATUSES = ("open", "paid", "shipped", "returned")
GOODS = ("Oak table", "Linen cloth", "Walnut chair", "Brass lamp", "Clay jug")
TOWNS = ("Trento", "Lucca", "Bari", "Como", "Siena")

_READY_LOOKS = 600
_READY_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """No parameters; the sample is always the same."""


@dataclass(frozen=True, slots=True)
class CreatedSample:
    """The table that was made, and how many items it has."""

    table: str
    items: int


async def make_sample(studio: Studio, params: SampleRequest) -> CreatedSample:
    """Make a table of customers with their orders, one collection a customer, and an index of orders by status."""
    names = (await studio.db.call("ListTables"))["TableNames"]
    if TABLE in names:
        raise RequestRefused(
            "sample-exists",
            "The sample is there already",
            f"There is a table {TABLE}.",
            "Look at it, or delete it and make it anew.",
            status=409,
        )
    await studio.db.call("CreateTable", _definition())
    for _ in range(_READY_LOOKS):
        described = (await studio.db.call("DescribeTable", {"TableName": TABLE}))["Table"]
        if described["TableStatus"] == "ACTIVE":
            break
        await asyncio.sleep(_READY_LOOK_S)
    items = list(_items(datetime.fromtimestamp(studio.clock.now(), UTC)))
    for begin in range(0, len(items), BATCH_WRITE_REQUESTS_MAX):
        waiting = [{"PutRequest": {"Item": item}} for item in items[begin : begin + BATCH_WRITE_REQUESTS_MAX]]
        while waiting:
            answer = await studio.db.call("BatchWriteItem", {"RequestItems": {TABLE: waiting}})
            waiting = answer["UnprocessedItems"].get(TABLE, [])
    return CreatedSample(TABLE, len(items))


def _definition() -> dict[str, object]:
    names = ("pk", "sk", "status_key", "placed_at")
    return {
        "TableName": TABLE,
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in names],
        "KeySchema": _schema("pk", "sk"),
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "orders-by-status",
                "KeySchema": _schema("status_key", "placed_at"),
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["total", "status"]},
            }
        ],
        "BillingMode": "PAY_PER_REQUEST",
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    }


def _schema(partition: str, sort: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": partition, "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ]


def _items(now: datetime) -> Iterator[Item]:
    """Give customers and orders that are the same each time, but for the day they are counted back from."""
    for number in range(CUSTOMERS):
        customer = f"CUSTOMER#{number:04}"
        since = now - timedelta(days=400 - number * 7)
        yield {
            "pk": {"S": customer},
            "sk": {"S": "PROFILE"},
            "name": {"S": f"Customer {number:04}"},
            "town": {"S": TOWNS[number % len(TOWNS)]},
            "since": {"S": since.date().isoformat()},
            "newsletter": {"BOOL": number % 3 == 0},
            "interests": {"SS": sorted({GOODS[number % 5], GOODS[(number * 2 + 1) % 5]})},
        }
        for count in range(1 + number * 7 % 9):
            placed = now - timedelta(days=count * 11 + number % 10, minutes=number * 13 + count)
            status = STATUSES[(number + count) % len(STATUSES)]
            price = 1900 + (number * 731 + count * 377) % 48_000
            yield {
                "pk": {"S": customer},
                "sk": {"S": f"ORDER#{placed:%Y%m%dT%H%M%S}"},
                "status": {"S": status},
                "status_key": {"S": f"STATUS#{status}"},
                "placed_at": {"S": placed.isoformat(timespec="seconds")},
                "total": {"N": f"{price // 100}.{price % 100:02}"},
                "lines": {
                    "L": [
                        {
                            "M": {
                                "what": {"S": GOODS[(number + count + line) % 5]},
                                "count": {"N": str(line + 1)},
                            }
                        }
                        for line in range(1 + count % 3)
                    ]
                },
            }


@dataclass(frozen=True, slots=True)
class TableRequest:
    """Which table."""

    table: str


@dataclass(frozen=True, slots=True)
class EntityField:
    """A field of an entity, and the attribute that it is stored as."""

    name: str
    attribute: str
    type: str  # in words, such as `list[text]`
    tags: tuple[str, ...]  # the DynamoDB types that it may have
    required: bool
    choices: tuple[str, ...]
    description: str


@dataclass(frozen=True, slots=True)
class EntityKeyPart:
    """One key attribute of an entity: the template that makes it, or the field that it is."""

    attribute: str
    type: str
    template: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntityKey:
    """The key of an entity in the table (no index) or in an index."""

    index: str | None
    hash: tuple[EntityKeyPart, ...]
    range: tuple[EntityKeyPart, ...]
    sparse: bool


@dataclass(frozen=True, slots=True)
class TableEntity:
    """An entity that lives in a table."""

    name: str
    tag: str
    description: str
    fields: tuple[EntityField, ...]
    keys: tuple[EntityKey, ...]  # the table's own first
    immutable: bool


@dataclass(frozen=True, slots=True)
class TableDetail:
    """All that is known of one table; what the endpoint does not tell is None."""

    table: TableSummary
    arn: str
    created_at_s: float | None
    table_class: str
    deletion_protection: bool
    read_units: int | None  # None: on demand
    write_units: int | None
    stream_view: str | None
    ttl: str | None  # the attribute
    recovery: bool | None
    recovery_days: int | None
    encryption: str | None
    tag: str | None  # the attribute that says which entity an item is
    foreign: bool  # other code writes its keys
    description: str
    entities: tuple[TableEntity, ...]


@dataclass(frozen=True, slots=True)
class CreatedTable:
    """The table that was made."""

    table: str


async def create_declared_table(studio: Studio, params: TableRequest) -> CreatedTable:
    """Make a table that the design declares, with its indexes and settings, as `tavola deploy` does; one that is there stays."""
    design = studio.table_design(params.table)
    if design is None:
        raise RequestRefused(
            "table-undeclared",
            "No design declares the table",
            f"Nothing says what {params.table} is made of.",
            "Start the studio with the design that declares it.",
            status=404,
        )
    table = Blueprint(design.name, design.label, design.settings, design.key_types, design.indexes)
    await studio.db.run(create_table(table))
    return CreatedTable(design.name)


async def describe_table(studio: Studio, params: TableRequest) -> TableDetail:
    """Return one table, by what the endpoint and the design say of it."""
    described = (await studio.db.call("DescribeTable", {"TableName": params.table}))["Table"]
    ttl = await _call_or_none(studio, "DescribeTimeToLive", params.table)
    backups = await _call_or_none(studio, "DescribeContinuousBackups", params.table)
    design = studio.table_design(params.table)
    recovery = _recovery(backups)
    units = described.get("ProvisionedThroughput", {})
    summary = summarise_table(described, design)
    demand = summary.billing == "on-demand"
    created = described.get("CreationDateTime")
    lives = (ttl or {}).get("TimeToLiveDescription", {})
    alive = lives.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    return TableDetail(
        table=summary,
        arn=described.get("TableArn", ""),
        created_at_s=created if isinstance(created, int | float) else None,
        table_class=described.get("TableClassSummary", {}).get("TableClass", "STANDARD"),
        deletion_protection=described.get("DeletionProtectionEnabled", False),
        read_units=None if demand else units.get("ReadCapacityUnits"),
        write_units=None if demand else units.get("WriteCapacityUnits"),
        stream_view=described.get("StreamSpecification", {}).get("StreamViewType"),
        ttl=lives.get("AttributeName") if alive else None,
        recovery=None if recovery is None else recovery.get("PointInTimeRecoveryStatus") == "ENABLED",
        recovery_days=None if recovery is None else recovery.get("RecoveryPeriodInDays"),
        encryption=described.get("SSEDescription", {}).get("KMSMasterKeyArn"),
        tag=None if design is None else design.settings.tag,
        foreign=design is not None and design.foreign,
        description="" if design is None else design.description,
        entities=() if design is None else tuple(map(_table_entity, design.entities)),
    )


async def _call_or_none(studio: Studio, operation: str, table: str) -> Mapping[str, Any] | None:
    """Return an answer that a table can be shown without; None from an endpoint that does not give it."""
    try:
        return await studio.db.call(operation, {"TableName": table})
    except TavolaError:
        return None


def _recovery(backups: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if backups is None:
        return None
    told: Mapping[str, Any] = backups.get("ContinuousBackupsDescription", {})
    found: Mapping[str, Any] = told.get("PointInTimeRecoveryDescription", {})
    return found


def _table_entity(entity: EntityDesign) -> TableEntity:
    keys = (entity.key, *entity.keys)
    return TableEntity(
        entity.name,
        entity.tag,
        entity.description,
        tuple(map(_entity_field, entity.fields)),
        tuple(_entity_key(key) for key in keys if key is not None),
        entity.immutable,
    )


def _entity_field(found: FieldDesign) -> EntityField:
    choices = () if found.choices is None else tuple(map(str, found.choices))
    return EntityField(
        found.name, found.attribute, found.type, found.tags, found.required, choices, found.description
    )


def _entity_key(key: KeyDesign) -> EntityKey:
    return EntityKey(key.index, tuple(map(_key_part, key.hash)), tuple(map(_key_part, key.range)), key.sparse)


def _key_part(source: SourceDesign) -> EntityKeyPart:
    template = f"{{{source.field}}}" if source.template is None else source.template.source
    return EntityKeyPart(source.attribute, source.tag, template, source.fields)


ENDPOINTS = (
    Endpoint("POST", "/samples", make_sample, is_write=True),
    Endpoint("GET", "/tables/describe", describe_table),
    Endpoint("POST", "/tables/make", create_declared_table, is_write=True),
)
