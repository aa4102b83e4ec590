"""Scan: everything, in pages and in segments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.requests import column, item, items_of, n, pages, put, refused, s

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]


def _fill(client: DynamoDBClient, table: str, count: int, **more: Any) -> None:
    for start in range(0, count, 25):
        batch: Any = [
            {"PutRequest": {"Item": item(pk=f"p{number}", num=number, **more)}}
            for number in range(start, min(start + 25, count))
        ]
        client.batch_write_item(RequestItems={table: batch})


def test_an_empty_table(client: DynamoDBClient, tables: Tables) -> None:
    """A scan of an empty table is one empty page."""
    found = client.scan(TableName=tables())

    assert (found["Items"], found["Count"], found["ScannedCount"]) == ([], 0, 0)
    assert "LastEvaluatedKey" not in found


@pytest.mark.parametrize("limit", [1, 7, 100, 1000])
def test_pages_return_each_item_once(client: DynamoDBClient, tables: Tables, limit: int) -> None:
    """With any limit, the pages together hold every item once, in one order."""
    table = tables()
    _fill(client, table, 100)

    found = items_of(client.scan, TableName=table, Limit=limit)
    whole = client.scan(TableName=table)["Items"]

    assert found == whole
    assert sorted(column(found, "num"), key=int) == [str(number) for number in range(100)]


@pytest.mark.parametrize("total", [1, 2, 3, 8, 64])
def test_segments_share_the_table(client: DynamoDBClient, tables: Tables, total: int) -> None:
    """Every item is in exactly one segment, paged or not."""
    table = tables()
    _fill(client, table, 120)

    parts = [
        items_of(client.scan, TableName=table, Segment=segment, TotalSegments=total, Limit=5)
        for segment in range(total)
    ]

    found = [number for part in parts for number in column(part, "num")]
    assert sorted(found, key=int) == [str(number) for number in range(120)]
    if total in (2, 3):
        assert all(parts), "a segment of a large table that holds nothing"


def test_a_start_belongs_to_its_segment(client: DynamoDBClient, tables: Tables) -> None:
    """A segment continues after its own last key and refuses another's."""
    table = tables()
    _fill(client, table, 60)
    page = client.scan(TableName=table, Segment=1, TotalSegments=2, Limit=3)

    error = refused(
        client.scan,
        TableName=table,
        Segment=0,
        TotalSegments=2,
        ExclusiveStartKey=page["LastEvaluatedKey"],
    )

    assert error.message == (
        "The provided starting key is invalid: Invalid ExclusiveStartKey. "
        "Please use ExclusiveStartKey with correct Segment. TotalSegments: 2 Segment: 0"
    )


def test_a_filter_counts_what_it_left_out(client: DynamoDBClient, tables: Tables) -> None:
    """Count is after the filter and ScannedCount before; a filter may name a key."""
    table = tables()
    _fill(client, table, 30)
    request: Any = {
        "TableName": table,
        "FilterExpression": "num < :v AND begins_with(pk, :p)",
        "ExpressionAttributeValues": {":v": n(10), ":p": s("p")},
    }

    whole = client.scan(**request)
    paged = pages(client.scan, **request, Limit=4)

    assert (whole["Count"], whole["ScannedCount"]) == (10, 30)
    assert sum(page["Count"] for page in paged) == 10
    assert all(page["ScannedCount"] <= 4 for page in paged)


def test_the_last_key_has_both_parts(client: DynamoDBClient, tables: Tables) -> None:
    """LastEvaluatedKey of a table is its key, hash and range."""
    table = tables("pk sk:N")
    put(client, table, *(item(pk="p", sk=number, a="x") for number in range(3)))

    page = client.scan(TableName=table, Limit=2)

    assert set(page["LastEvaluatedKey"]) == {"pk", "sk"}
    assert page["LastEvaluatedKey"] == {name: page["Items"][-1][name] for name in ("pk", "sk")}


def test_a_scan_preserves_the_order_of_a_partition(client: DynamoDBClient, tables: Tables) -> None:
    """The items of one partition come together and in order."""
    table = tables("pk sk:N")
    put(client, table, *(item(pk=f"p{number % 5}", sk=-number) for number in range(50)))

    found = client.scan(TableName=table)["Items"]

    partitions = column(found, "pk")
    assert len({*partitions}) == sum(a != b for a, b in zip(partitions, ["", *partitions], strict=False))
    for partition in {*partitions}:
        keys = [int(each["sk"]["N"]) for each in found if each["pk"]["S"] == partition]
        assert keys == sorted(keys)


def test_count_and_projection(client: DynamoDBClient, tables: Tables) -> None:
    """A scan may count, or return parts of items."""
    table = tables()
    _fill(client, table, 5)

    counted = client.scan(TableName=table, Select="COUNT")
    projected = client.scan(TableName=table, ProjectionExpression="num")

    assert (counted["Count"], "Items" in counted) == (5, False)
    assert all(set(each) == {"num"} for each in projected["Items"])


def test_a_scan_may_be_consistent(client: DynamoDBClient, tables: Tables) -> None:
    """A consistent scan includes all earlier writes."""
    table = tables()
    _fill(client, table, 10)

    assert client.scan(TableName=table, ConsistentRead=True)["Count"] == 10


def test_a_scan_of_an_index_is_segmented(client: DynamoDBClient, tables: Tables) -> None:
    """An index is scanned in segments like a table, and holds only its members."""
    table = tables(gsi={"by-a": "a"})
    _fill(client, table, 30, a="same")
    put(client, table, item(pk="outside"))

    parts = [
        items_of(client.scan, TableName=table, IndexName="by-a", Segment=i, TotalSegments=3, Limit=4)
        for i in range(3)
    ]

    assert sorted(int(number) for part in parts for number in column(part, "num")) == list(range(30))


def test_the_paginator_of_boto3(client: DynamoDBClient, tables: Tables) -> None:
    """boto3's own paginator walks the pages, and can be taken up from its token."""
    table = tables()
    _fill(client, table, 50)
    paginator = client.get_paginator("scan")

    part = paginator.paginate(
        TableName=table, PaginationConfig={"PageSize": 7, "MaxItems": 20}
    ).build_full_result()
    rest = paginator.paginate(
        TableName=table, PaginationConfig={"PageSize": 7, "StartingToken": part["NextToken"]}
    ).build_full_result()

    found = column([*part["Items"], *rest["Items"]], "num")
    assert len(part["Items"]) == 20
    assert sorted(found, key=int) == [str(number) for number in range(50)]
