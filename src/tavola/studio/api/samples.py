"""Samples: a small table with believable items, for who has none yet and wants to look around."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tavola.limits import BATCH_WRITE_REQUESTS_MAX
from tavola.studio.endpoint import Endpoint
from tavola.studio.problems import Refused
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
class MakeSample:
    """Nothing is asked: it is always the same table."""


@dataclass(frozen=True, slots=True)
class SampleMade:
    """The table that was made, and how many items it has."""

    table: str
    items: int


async def make(studio: Studio, asked: MakeSample) -> SampleMade:
    """Make a table of customers with their orders, one collection a customer, and an index of orders by status."""
    names = (await studio.db.call("ListTables"))["TableNames"]
    if TABLE in names:
        raise Refused(
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
    return SampleMade(TABLE, len(items))


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


ENDPOINTS = (Endpoint("POST", "/samples", make, changes=True),)
