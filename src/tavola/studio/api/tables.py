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
from tavola.model.document import EntityDesign, SourceDesign, TableDesign
from tavola.studio.api.session import TableSummary, summarise_table
from tavola.studio.endpoint import Endpoint
from tavola.studio.field_values import constant_defaults
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import Studio
from tavola.studio.types import AttributeValue, Item, NoParameters, TableRequest

TABLE = "tavola-sample"
CUSTOMERS = 40
STATUSES = ("open", "paid", "shipped", "returned")
GOODS = ("Oak table", "Linen cloth", "Walnut chair", "Brass lamp", "Clay jug")
TOWNS = ("Trento", "Lucca", "Bari", "Como", "Siena")

_READY_LOOKS = 600
_READY_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class CreatedSample:
    """The table that was made, and how many items it has."""

    table: str
    items: int


async def make_sample(studio: Studio, params: NoParameters) -> CreatedSample:
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
class EntityField:
    """A field of an entity: the attribute that stores it, the values it accepts, and the keys computed from it."""

    name: str
    attribute: str
    type: str  # in words, such as `list[text]`
    tags: tuple[str, ...]  # the DynamoDB types that it may have
    required: bool
    nullable: bool
    choices: tuple[str, ...] | None
    numeric: bool  # the choices are numbers
    lock: bool
    unique: bool
    description: str
    length_max: int | None
    feeds: tuple[str, ...]  # the key attributes computed from it
    default: AttributeValue | None  # of a new item; None also if only the program can compute it


@dataclass(frozen=True, slots=True)
class EntityKeyPart:
    """One key attribute of an entity: computed from a template, or a field itself (`{field}`)."""

    attribute: str
    type: str
    template: str
    fields: tuple[str, ...]
    computed: bool


@dataclass(frozen=True, slots=True)
class EntityKey:
    """The key of an entity in the table (no index) or in an index."""

    index: str | None
    hash: tuple[EntityKeyPart, ...]
    range: tuple[EntityKeyPart, ...]
    sparse: bool


@dataclass(frozen=True, slots=True)
class EntityForm:
    """An entity of a table with its fields and keys, as shown and filled in."""

    name: str
    tag_attribute: str | None
    tag: str
    description: str
    immutable: bool
    fields: tuple[EntityField, ...]
    keys: tuple[EntityKey, ...]  # the table's own first


@dataclass(frozen=True, slots=True)
class EntityForms:
    """The entities of a table; none if no design declares the table."""

    forms: tuple[EntityForm, ...]


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
    entities: tuple[EntityForm, ...]


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
    expiry = (ttl or {}).get("TimeToLiveDescription", {})
    alive = expiry.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    return TableDetail(
        table=summary,
        arn=described.get("TableArn", ""),
        created_at_s=created if isinstance(created, int | float) else None,
        table_class=described.get("TableClassSummary", {}).get("TableClass", "STANDARD"),
        deletion_protection=described.get("DeletionProtectionEnabled", False),
        read_units=None if demand else units.get("ReadCapacityUnits"),
        write_units=None if demand else units.get("WriteCapacityUnits"),
        stream_view=described.get("StreamSpecification", {}).get("StreamViewType"),
        ttl=expiry.get("AttributeName") if alive else None,
        recovery=None if recovery is None else recovery.get("PointInTimeRecoveryStatus") == "ENABLED",
        recovery_days=None if recovery is None else recovery.get("RecoveryPeriodInDays"),
        encryption=described.get("SSEDescription", {}).get("KMSMasterKeyArn"),
        tag=None if design is None else design.settings.tag,
        foreign=design is not None and design.foreign,
        description="" if design is None else design.description,
        entities=entity_forms(design),
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
    continuous: Mapping[str, Any] = backups.get("ContinuousBackupsDescription", {})
    recovery: Mapping[str, Any] = continuous.get("PointInTimeRecoveryDescription", {})
    return recovery


async def list_forms(studio: Studio, params: TableRequest) -> EntityForms:
    """Return the fields and keys of each entity of a table."""
    return EntityForms(entity_forms(studio.table_design(params.table)))


def entity_forms(design: TableDesign | None) -> tuple[EntityForm, ...]:
    """Return the entities that a design declares for a table."""
    return () if design is None else tuple(_entity_form(design, entity) for entity in design.entities)


def _entity_form(design: TableDesign, entity: EntityDesign) -> EntityForm:
    keys = [key for key in (entity.key, *entity.keys) if key is not None]
    defaults = constant_defaults(design.settings.name, entity.name)
    feeds: dict[str, list[str]] = {}
    for key in keys:
        computed = [source for source in key.sources if source.template is not None]
        for source in computed:
            for name in source.fields:
                feeds.setdefault(name, []).append(source.attribute)
        for member in key.members:
            feeds.setdefault(member.field, []).extend(source.attribute for source in computed)
    return EntityForm(
        entity.name,
        design.settings.tag,
        entity.tag,
        entity.description,
        entity.immutable,
        tuple(
            EntityField(
                name=field.name,
                attribute=field.attribute,
                type=field.type,
                tags=field.tags,
                required=field.required,
                nullable=field.nullable,
                choices=None if field.choices is None else tuple(map(_choice_text, field.choices)),
                numeric=field.tags == ("N",),
                lock=field.lock,
                unique=field.unique,
                description=field.description,
                length_max=field.length_max,
                feeds=tuple(dict.fromkeys(feeds.get(field.name, ()))),
                default=defaults.get(field.attribute),
            )
            for field in entity.fields
        ),
        tuple(
            EntityKey(
                key.index, tuple(map(_key_part, key.hash)), tuple(map(_key_part, key.range)), key.sparse
            )
            for key in keys
        ),
    )


def _choice_text(choice: str | int | bool) -> str:
    return str(choice).lower() if isinstance(choice, bool) else str(choice)


def _key_part(source: SourceDesign) -> EntityKeyPart:
    computed = source.template is not None
    template = source.template.source if source.template is not None else f"{{{source.field}}}"
    return EntityKeyPart(source.attribute, source.tag, template, source.fields, computed)


ENDPOINTS = (
    Endpoint("POST", "/samples", make_sample, is_write=True),
    Endpoint("GET", "/tables/describe", describe_table),
    Endpoint("GET", "/items/forms", list_forms),
    Endpoint("POST", "/tables/make", create_declared_table, is_write=True),
)
