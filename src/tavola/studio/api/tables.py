"""One table with its design; create a declared table or a sample table."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tavola.client.table_changes import Blueprint, create_table
from tavola.errors import TavolaError
from tavola.limits import BATCH_WRITE_REQUESTS_MAX
from tavola.model.document import EntityDesign, TableDesign
from tavola.studio.api.session import TableSummary, summarise_table
from tavola.studio.endpoint import Endpoint
from tavola.studio.field_values import constant_defaults
from tavola.studio.problems import RequestRefused
from tavola.studio.studio import Studio
from tavola.studio.types import ApiMessage, AttributeValue, Item, NoParameters, TableRequest

TABLE = "tavola-sample"
CUSTOMERS = 40
STATUSES = ("open", "paid", "shipped", "returned")
GOODS = ("Oak table", "Linen cloth", "Walnut chair", "Brass lamp", "Clay jug")
TOWNS = ("Trento", "Lucca", "Bari", "Como", "Siena")

_POLLS_MAX = 600
_POLL_S = 0.1


class CreatedSample(ApiMessage):
    """The sample table and its number of items."""

    table: str
    items: int


async def make_sample(studio: Studio, params: NoParameters) -> CreatedSample:
    """Create a sample table: one item collection per customer, and an index of orders by status."""
    names = (await studio.db.call("ListTables"))["TableNames"]
    if TABLE in names:
        raise RequestRefused(
            "sample-exists",
            "The sample table already exists",
            f"There is a table named {TABLE}.",
            "Open it, or delete it and try again.",
            status=409,
        )
    await studio.db.call("CreateTable", _definition())
    for _ in range(_POLLS_MAX):
        described = (await studio.db.call("DescribeTable", {"TableName": TABLE}))["Table"]
        if described["TableStatus"] == "ACTIVE":
            break
        await asyncio.sleep(_POLL_S)
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
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]


def _items(now: datetime) -> Iterator[Item]:
    """Yield customers and orders; always the same, except that dates are relative to `now`."""
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


class EntityForm(ApiMessage):
    """An entity of a table, and what a form for a new item needs beside it."""

    entity: EntityDesign
    tag_attribute: str | None
    feeds: Mapping[str, tuple[str, ...]]  # for each field, the key attributes computed from it
    defaults: Mapping[str, AttributeValue]  # by attribute, except those that only the program can compute


class EntityForms(ApiMessage):
    """The entities of a table; none if no design declares the table."""

    forms: tuple[EntityForm, ...]


class TableDetail(ApiMessage):
    """Everything known about one table; settings that the endpoint does not report are None."""

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
    tag: str | None  # the attribute that names an item's entity
    foreign: bool  # other code writes its keys
    description: str
    entities: tuple[EntityDesign, ...]


class CreatedTable(ApiMessage):
    """The name of the created table."""

    table: str


async def create_declared_table(studio: Studio, params: TableRequest) -> CreatedTable:
    """Create a table of the design with its indexes and settings, as `tavola deploy` does; keep an existing one."""
    design = studio.table_design(params.table)
    if design is None:
        raise RequestRefused(
            "table-undeclared",
            "Table not in any design",
            f"No loaded design declares {params.table}, so its keys are unknown.",
            "Restart the studio with the design that declares it.",
            status=404,
        )
    table = Blueprint(design.name, design.label, design.settings, design.key_types, design.indexes)
    await studio.db.run(create_table(table))
    return CreatedTable(design.name)


async def describe_table(studio: Studio, params: TableRequest) -> TableDetail:
    """Return one table as the endpoint and the design describe it."""
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
    expires = expiry.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    return TableDetail(
        table=summary,
        arn=described.get("TableArn", ""),
        created_at_s=created if isinstance(created, int | float) else None,
        table_class=described.get("TableClassSummary", {}).get("TableClass", "STANDARD"),
        deletion_protection=described.get("DeletionProtectionEnabled", False),
        read_units=None if demand else units.get("ReadCapacityUnits"),
        write_units=None if demand else units.get("WriteCapacityUnits"),
        stream_view=described.get("StreamSpecification", {}).get("StreamViewType"),
        ttl=expiry.get("AttributeName") if expires else None,
        recovery=None if recovery is None else recovery.get("PointInTimeRecoveryStatus") == "ENABLED",
        recovery_days=None if recovery is None else recovery.get("RecoveryPeriodInDays"),
        encryption=described.get("SSEDescription", {}).get("KMSMasterKeyArn"),
        tag=None if design is None else design.settings.tag,
        foreign=design is not None and design.foreign,
        description="" if design is None else design.description,
        entities=() if design is None else design.entities,
    )


async def _call_or_none(studio: Studio, operation: str, table: str) -> Mapping[str, Any] | None:
    """Return the response to an optional request; None if it fails."""
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
    design = studio.table_design(params.table)
    return EntityForms(
        () if design is None else tuple(_entity_form(design, entity) for entity in design.entities)
    )


def _entity_form(design: TableDesign, entity: EntityDesign) -> EntityForm:
    feeds: dict[str, dict[str, None]] = {}
    for key in (entity.key, *entity.keys):
        for source in () if key is None else key.sources:
            if key is not None and source.template is not None:
                for name in (*source.fields, *(member.field for member in key.members)):
                    feeds.setdefault(name, {})[source.attribute] = None
    return EntityForm(
        entity,
        design.settings.tag,
        {name: tuple(attributes) for name, attributes in feeds.items()},
        constant_defaults(design.settings.name, entity.name),
    )


ENDPOINTS = (
    Endpoint("POST", "/samples", make_sample, is_write=True),
    Endpoint("GET", "/tables/describe", describe_table),
    Endpoint("GET", "/items/forms", list_forms),
    Endpoint("POST", "/tables/create", create_declared_table, is_write=True),
)
