"""The order of a scan, its segments, and the order of equal keys in a global index, as AWS was observed to answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.requests import column, index, item, items_of, n, put, s, settle
from tests.properties.naive import position

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]

TEXTS = "2 8 9 1 6 hello 0 5 4 äáöü aardman 7 3 zapf".split()
NUMBERS = "7 999.9 8 3 2 -999.9 9 4 -0.09 6 1 0 0.012345 5".split()
SEGMENTS = 4096


def _scan(client: DynamoDBClient, table: str, name: str = "pk", **more: Any) -> list[Any]:
    return column(items_of(client.scan, TableName=table, **more), name)


@pytest.mark.parametrize("limit", [1, 4, 100])
def test_strings_are_scanned_in_the_order_of_their_hashes(
    client: DynamoDBClient, tables: Tables, limit: int
) -> None:
    """A scan of string keys has AWS's order, whatever the order of writes and the size of pages."""
    table = tables()
    put(client, table, *[item(pk=text) for text in sorted(TEXTS)])

    assert _scan(client, table, Limit=limit) == TEXTS


@pytest.mark.parametrize("limit", [1, 4, 100])
def test_numbers_are_scanned_in_the_order_of_their_hashes(
    client: DynamoDBClient, tables: Tables, limit: int
) -> None:
    """A number is hashed in a form of its own, in which zero, signs and fractions have their places."""
    table = tables("pk:N")
    put(client, table, *[item(pk=n(number)) for number in sorted(NUMBERS)])

    assert _scan(client, table, Limit=limit) == NUMBERS


def test_binaries_are_hashed_as_they_are(client: DynamoDBClient, tables: Tables) -> None:
    """The bytes of a binary key have the position of the string with the same bytes."""
    table = tables("pk:B")
    put(client, table, *[item(pk={"B": text.encode()}) for text in sorted(TEXTS)])

    assert _scan(client, table) == [text.encode() for text in TEXTS]


def test_a_precedes_b(client: DynamoDBClient, tables: Tables) -> None:
    """Two keys whose order was observed by another suite."""
    table = tables()
    put(client, table, item(pk="B"), item(pk="A"))

    assert _scan(client, table) == ["A", "B"]


@pytest.mark.parametrize("limit", [1, 3])
def test_items_of_a_partition_are_scanned_by_their_range_key(
    client: DynamoDBClient, tables: Tables, limit: int
) -> None:
    """Only the partition key is hashed; within a partition the range key decides."""
    table = tables("pk sk:N")
    put(client, table, *[item(pk=text, sk=number) for text in sorted(TEXTS) for number in (10, 9, -1)])

    assert [
        (each["pk"]["S"], each["sk"]["N"]) for each in items_of(client.scan, TableName=table, Limit=limit)
    ] == [(text, number) for text in TEXTS for number in ("-1", "9", "10")]


@pytest.mark.parametrize(
    ("key", "segment"),
    [("3635", 0), ("228", 0), ("1668", 1), ("3435", 4)],
    ids=["3635", "228", "1668", "3435"],
)
def test_a_string_is_in_the_segment_of_its_hash(
    client: DynamoDBClient, tables: Tables, key: str, segment: int
) -> None:
    """Of 4,096 segments these strings were observed in the first ones, and in no other."""
    table = tables()
    put(client, table, item(pk=key))

    assert _found_in(client, table, (0, 1, 2, 4, 5, SEGMENTS - 1)) == [segment]


@pytest.mark.parametrize(("key", "segment"), [("251", 1), ("2388", 4095)])
def test_a_number_is_in_the_segment_of_its_hash(
    client: DynamoDBClient, tables: Tables, key: str, segment: int
) -> None:
    """Likewise for numbers."""
    table = tables("pk:N")
    put(client, table, item(pk=n(key)))

    assert _found_in(client, table, (0, 1, 2, SEGMENTS - 2, SEGMENTS - 1)) == [segment]


def _found_in(client: DynamoDBClient, table: str, segments: tuple[int, ...]) -> list[int]:
    return [
        segment
        for segment in segments
        if client.scan(TableName=table, Segment=segment, TotalSegments=SEGMENTS)["Count"]
    ]


@pytest.mark.parametrize("total", [3, 7])
def test_segments_divide_the_order(client: DynamoDBClient, tables: Tables, total: int) -> None:
    """The segments one after the other are the whole scan, also where they do not divide the hashes evenly."""
    table = tables()
    put(client, table, *[item(pk=f"p{number}") for number in range(60)])

    parts = [_scan(client, table, Segment=segment, TotalSegments=total, Limit=4) for segment in range(total)]

    assert [key for part in parts for key in part] == _scan(client, table)
    for segment, part in enumerate(parts):
        for key in part:
            hashed = int.from_bytes(position([s(key)]), "big")
            assert hashed * total >> 128 == segment


def test_a_scan_continues_after_a_key_that_does_not_exist(client: DynamoDBClient, tables: Tables) -> None:
    """ExclusiveStartKey is a position: what follows it in the order is returned, whether or not an item is there."""
    table = tables()
    put(client, table, *[item(pk=text) for text in TEXTS if text != "hello"])

    found = client.scan(TableName=table, ExclusiveStartKey=item(pk="hello"))["Items"]

    assert column(found, "pk") == TEXTS[TEXTS.index("hello") + 1 :]


def test_an_index_is_scanned_in_the_order_of_its_own_hashes(client: DynamoDBClient, tables: Tables) -> None:
    """A global index is scanned by the hash of its own key, and continues after a key that is not in it."""
    table = tables("pk", gsi={"by-g": "g h:N"})
    put(client, table, *[item(pk=f"{at}", g=text, h=at) for at, text in enumerate(sorted(TEXTS))])
    start = item(pk="other", g="hello", h=10**6)

    whole = _scan(client, table, "g", IndexName="by-g", Limit=3)
    rest = column(client.scan(TableName=table, IndexName="by-g", ExclusiveStartKey=start)["Items"], "g")

    assert whole == TEXTS
    assert rest == TEXTS[TEXTS.index("hello") + 1 :]


def test_several_hash_attributes_are_hashed_together(client: DynamoDBClient, tables: Tables) -> None:
    """The partitions of an index on several attributes are in the order of one hash over all of them."""
    table = tables("pk", gsi={"multi": "a b:N / c"})
    put(client, table, *[item(pk=f"{at}", a=f"a{at % 5}", b=at % 7, c="c") for at in range(35)])

    found = items_of(client.scan, TableName=table, IndexName="multi", Limit=4)

    places = [position([each["a"], each["b"]]) for each in found]
    assert len(set(places)) == 35
    assert places == sorted(places)


@pytest.mark.parametrize("key", ["g", "g h:N", "g h", "g h:B", "g / h:N i"])
@pytest.mark.parametrize("forward", [True, False])
def test_equal_keys_of_a_global_index_are_ordered_by_a_hash_of_the_tables_key(
    client: DynamoDBClient, tables: Tables, key: str, forward: bool
) -> None:
    """Items with the same index key follow the hash of their hash and range key together, page by page."""
    table = tables("pk sk:N", gsi={"by-g": key})
    common = {"g": s("one"), "i": s("i"), "h": s("h")} | ({"h": n(5)} if "h:N" in key else {})
    common |= {"h": {"B": b"h\x00"}} if "h:B" in key else {}
    put(client, table, *[item(pk=f"p{at % 4}", sk=at - 6, **common) for at in range(12)])
    request = {
        "TableName": table,
        "IndexName": "by-g",
        "KeyConditionExpression": "g = :g",
        "ExpressionAttributeValues": {":g": s("one")},
        "ScanIndexForward": forward,
    }

    whole = items_of(client.query, **request)
    paged = items_of(client.query, **request, Limit=1)
    scanned = items_of(client.scan, TableName=table, IndexName="by-g", Limit=5)

    expected = sorted(whole, key=lambda each: position([each["pk"], each["sk"]]), reverse=not forward)
    assert len(whole) == 12
    assert whole == expected
    assert paged == expected
    assert scanned == (expected if forward else expected[::-1])


def test_a_query_continues_after_an_equal_key_that_does_not_exist(
    client: DynamoDBClient, tables: Tables
) -> None:
    """A start key among equal index keys is found by its hash, although no item has it."""
    table = tables("pk", gsi={"by-g": "g h:N"})
    keys = sorted([f"p{at}" for at in range(9)], key=lambda key: position([s(key)]))
    put(client, table, *[item(pk=key, g="one", h=1) for key in keys if key != keys[4]])

    found = client.query(
        TableName=table,
        IndexName="by-g",
        KeyConditionExpression="g = :g AND h = :h",
        ExpressionAttributeValues={":g": s("one"), ":h": n(1)},
        ExclusiveStartKey=item(pk=keys[4], g="one", h=1),
    )

    assert column(found["Items"], "pk") == keys[5:]


def test_equal_keys_of_a_local_index_are_ordered_by_the_range_key(
    client: DynamoDBClient, tables: Tables
) -> None:
    """Items of one partition have the same hash key, so their range key decides."""
    table = tables("pk sk:N", lsi={"local": "pk l"})
    put(client, table, *[item(pk="p", sk=number, l="same") for number in (10, 9, -3, 2)])

    found = client.query(
        TableName=table,
        IndexName="local",
        KeyConditionExpression="pk = :p AND l = :l",
        ExpressionAttributeValues={":p": s("p"), ":l": s("same")},
    )

    assert column(found["Items"], "sk") == ["-3", "2", "9", "10"]


def test_ties_of_an_index_that_was_added_later(client: DynamoDBClient, tables: Tables) -> None:
    """A backfilled index has the order of one that was there from the beginning."""
    table = tables("pk")
    put(client, table, *[item(pk=f"p{at}", g="one") for at in range(9)])
    created: Any = index("by-g", "g")
    client.update_table(
        TableName=table,
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "g", "AttributeType": "S"},
        ],
        GlobalSecondaryIndexUpdates=[{"Create": created}],
    )
    settle(client, table)

    found = _scan(client, table, IndexName="by-g")

    assert found == sorted(found, key=lambda key: position([s(key)]))
    assert len(found) == 9


def test_a_statement_scans_in_the_same_order(client: DynamoDBClient, tables: Tables) -> None:
    """PartiQL's SELECT without a key returns items as Scan does, page by page."""
    table = tables()
    put(client, table, *[item(pk=text) for text in sorted(TEXTS)])
    request: dict[str, Any] = {"Statement": f'SELECT pk FROM "{table}"', "Limit": 3}

    found: list[str] = []
    while True:
        page = client.execute_statement(**request)
        found += column(page["Items"], "pk")
        if "NextToken" not in page:
            break
        request["NextToken"] = page["NextToken"]

    assert found == TEXTS
