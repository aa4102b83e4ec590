"""Sizes to the byte, and every limit from both sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.backends import Answer
from tests.conformance.requests import get, item, n, pages, put, refused, s

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]
_ITEM_MAX = 409_600

_SIZES: list[tuple[str, Any, int]] = [
    ("empty string", s(""), 0),
    ("string", s("abc"), 3),
    ("string of UTF-8", s("ä€😀"), 9),
    ("binary", {"B": b"12345"}, 5),
    ("true", {"BOOL": True}, 1),
    ("null", {"NULL": True}, 1),
    ("0", n("0"), 1),
    ("-0", n("-0"), 1),
    ("1", n("1"), 2),
    ("12", n("12"), 2),
    ("123", n("123"), 3),
    ("1.5", n("1.5"), 3),
    ("3.14159", n("3.14159"), 5),
    ("100", n("100"), 2),
    ("1E125", n("1E125"), 2),
    ("-42", n("-42"), 3),
    ("1000.5", n("1000.5"), 4),
    ("0.0012", n("0.0012"), 2),
    ("38 digits", n("1" * 38), 20),
    ("string set", {"SS": ["a", "bcd"]}, 4),
    ("number set", {"NS": ["1", "123"]}, 5),
    ("binary set", {"BS": [b"1", b"22"]}, 3),
    ("empty list", {"L": []}, 3),
    ("list", {"L": [s("abc"), n(1)]}, 3 + 1 + 3 + 1 + 2),
    ("empty map", {"M": {}}, 3),
    ("map", {"M": {"ab": s("xyz"), "c": {"BOOL": True}}}, 3 + (2 + 1 + 3) + (1 + 1 + 1)),
    ("nested", {"M": {"a": {"L": [{"M": {}}]}}}, 3 + (1 + 1 + (3 + 1 + 3))),
]


@pytest.mark.parametrize(("value", "size"), [each[1:] for each in _SIZES], ids=[each[0] for each in _SIZES])
def test_the_size_of_a_value(client: DynamoDBClient, tables: Tables, value: Any, size: int) -> None:
    """A value counts for exactly this many bytes: with filler to 1 KB it costs one unit, with a byte more two."""
    table = tables()
    filler = 1024 - 3 - 1 - 1 - size  # pk and its value, the two names of one letter

    units = [
        client.put_item(
            TableName=table,
            Item={"pk": s(name), "x": value, "f": s("f" * length)},
            ReturnConsumedCapacity="TOTAL",
        )["ConsumedCapacity"]["CapacityUnits"]
        for name, length in (("a", filler), ("b", filler + 1))
    ]

    assert units == [1, 2]


def test_an_item_has_400_kb(client: DynamoDBClient, tables: Tables) -> None:
    """409,600 bytes are accepted and one more is refused; by put, batch, transaction and update."""
    table = tables()
    whole = item(pk="p", v="x" * (_ITEM_MAX - 4))
    over = item(pk="q", v="x" * (_ITEM_MAX - 3))
    result = "Item size has exceeded the maximum allowed size"

    put(client, table, whole)
    single = refused(client.put_item, TableName=table, Item=over)
    batch = refused(client.batch_write_item, RequestItems={table: [{"PutRequest": {"Item": over}}]})
    together = refused(
        client.transact_write_items, TransactItems=[{"Put": {"TableName": table, "Item": over}}]
    )
    update = refused(
        client.update_item,
        TableName=table,
        Key=item(pk="p"),
        UpdateExpression="SET w = :v",
        ExpressionAttributeValues={":v": s("")},
    )

    assert (single.message, batch.message, together.message) == (result, result, result)
    assert update.message == "Item size to update has exceeded the maximum allowed size"
    assert get(client, table, pk="p") == whole


def test_the_names_count_too(client: DynamoDBClient, tables: Tables) -> None:
    """An attribute's name is part of the item's size, in UTF-8."""
    table = tables()
    names = {f"{'ä' * 5000}{number:04}": s("") for number in range(40)}  # 10,004 bytes each

    put(client, table, {"pk": s("p"), **names})
    error = refused(client.put_item, TableName=table, Item={"pk": s("p"), **names, "x" * 9500: s("")})

    assert error.message == "Item size has exceeded the maximum allowed size"


def test_local_indexes_share_the_400_kb(client: DynamoDBClient, tables: Tables) -> None:
    """An item and its entries in local indexes must fit 400 KB together."""
    table = tables("pk sk", lsi={"by-l": "pk l"})
    row = item(pk="p", sk="s", v="x" * 250_000)

    put(client, table, row)
    error = refused(client.put_item, TableName=table, Item={**row, "l": s("l")})

    assert error.code == "ValidationException"


def test_keys_of_the_greatest_length(client: DynamoDBClient, tables: Tables) -> None:
    """A hash key has 2048 bytes and a range key 1024, counted in UTF-8."""
    table = tables("pk sk")
    key = item(pk="ä" * 1024, sk="ä" * 512)

    put(client, table, key)
    long_hash = refused(client.get_item, TableName=table, Key=item(pk="ä" * 1024 + "a", sk="s"))
    long_range = refused(client.get_item, TableName=table, Key=item(pk="p", sk="ä" * 512 + "a"))

    assert client.get_item(TableName=table, Key=key)["Item"] == key
    assert "limit of2048 bytes" in long_hash.message
    assert "size limit of 1024 bytes" in long_range.message


def test_binary_keys_are_measured_raw(client: DynamoDBClient, tables: Tables) -> None:
    """A binary key is measured before base64."""
    table = tables("pk:B sk:B")
    key: Any = {"pk": {"B": b"\xff" * 2048}, "sk": {"B": b"\xff" * 1024}}

    client.put_item(TableName=table, Item=key)

    assert client.get_item(TableName=table, Key=key)["Item"] == key


@pytest.mark.parametrize("container", ["M", "L"])
def test_31_levels_are_accepted(client: DynamoDBClient, tables: Tables, container: str) -> None:
    """A value may be nested in 31 containers, not in 32."""
    table = tables()
    value: Any = s("deep")
    for _ in range(31):
        value = {"M": {"a": value}} if container == "M" else {"L": [value]}
    put(client, table, {"pk": s("p"), "v": value})

    deeper = {"M": {"a": value}} if container == "M" else {"L": [value]}
    error = refused(client.put_item, TableName=table, Item={"pk": s("q"), "v": deeper})

    assert get(client, table, pk="p") == {"pk": s("p"), "v": value}
    assert "Nesting Levels have exceeded supported limits" in error.message


def test_an_update_does_not_deepen_an_item(client: DynamoDBClient, tables: Tables) -> None:
    """An update may not put a value deeper than a put may."""
    table = tables()
    value: Any = {"M": {}}
    for _ in range(30):
        value = {"M": {"a": value}}
    put(client, table, {"pk": s("p"), "v": value})

    error = refused(
        client.update_item,
        TableName=table,
        Key=item(pk="p"),
        UpdateExpression="SET v" + ".a" * 30 + ".b = :v",
        ExpressionAttributeValues={":v": {"M": {"x": n(1)}}},
    )

    assert error.code == "ValidationException"
    assert get(client, table, pk="p") == {"pk": s("p"), "v": value}


def test_a_page_has_a_megabyte(client: DynamoDBClient, tables: Tables) -> None:
    """A page ends with the item that reaches 1 MB, before filter and projection."""
    table = tables("pk sk:N")
    for number in range(25):
        put(client, table, {**item(pk="p", sk=number), "v": s("x" * 102_400)})
    query: Any = {
        "TableName": table,
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": s("p")},
    }

    found = pages(client.query, **query)
    projected = pages(client.query, **query, ProjectionExpression="sk")
    filtered = pages(client.query, **query, FilterExpression="attribute_not_exists(v)")
    scanned = pages(client.scan, TableName=table)

    assert found[0]["Count"] in (10, 11)
    sizes = [page["ScannedCount"] for page in found]
    assert sum(sizes) == 25
    assert [page["ScannedCount"] for page in projected] == sizes
    assert [page["ScannedCount"] for page in filtered] == sizes
    assert [page["ScannedCount"] for page in scanned] == sizes
    assert sum(page["Count"] for page in filtered) == 0


def test_expressions_of_the_greatest_length(send_raw: Callable[..., Answer], tables: Tables) -> None:
    """An expression has 4096 bytes and 300 operators."""
    table = tables()
    operators = "NOT a = :v OR " + " OR ".join(["a = :v"] * 149)  # 150 =, 149 OR, 1 NOT
    long = "a" * 4091 + " = :v"

    many = send_raw(
        "Scan",
        {"TableName": table, "FilterExpression": operators, "ExpressionAttributeValues": {":v": n(1)}},
    )
    too_many = send_raw(
        "Scan",
        {
            "TableName": table,
            "FilterExpression": operators.replace("OR a", "OR NOT a", 1),
            "ExpressionAttributeValues": {":v": n(1)},
        },
    )
    whole = send_raw(
        "Scan", {"TableName": table, "FilterExpression": long, "ExpressionAttributeValues": {":v": n(1)}}
    )

    assert many.status == 200
    assert too_many.text == (
        "Invalid FilterExpression: The expression contains too many operators; operator count: 301"
    )
    assert whole.status == 200


def test_an_attribute_name_has_65535_bytes(client: DynamoDBClient, tables: Tables) -> None:
    """An attribute's name may have 65,535 bytes, not 65,536."""
    table = tables()

    put(client, table, {"pk": s("p"), "a" * 65_535: s("v")})
    error = refused(client.put_item, TableName=table, Item={"pk": s("p"), "a" * 65_536: s("v")})

    assert error.code == "ValidationException"


def test_a_key_attributes_name_has_255_bytes(
    send_raw: Callable[..., Answer], client: DynamoDBClient, tables: Tables
) -> None:
    """A key attribute's name may have 255 bytes, not 256."""
    table = tables("k" * 255)

    put(client, table, {"k" * 255: s("p")})
    answer = send_raw(
        "CreateTable",
        {
            "TableName": "long-key-name",
            "KeySchema": [{"AttributeName": "k" * 256, "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "k" * 256, "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )

    assert answer.code == "ValidationException"


def test_substituted_values_have_2_mb(send_raw: Callable[..., Answer], tables: Tables) -> None:
    """The values of an expression have 2 MB together."""
    values = {f":v{number}": s("x" * 400_000) for number in range(6)}

    answer = send_raw(
        "Scan",
        {
            "TableName": tables(),
            "FilterExpression": f"a IN ({', '.join(values)})",
            "ExpressionAttributeValues": values,
        },
    )

    assert answer.code == "ValidationException"


def test_a_placeholder_may_hold_a_reserved_word(client: DynamoDBClient, tables: Tables) -> None:
    """Every reserved word may be an attribute's name, by a placeholder."""
    table = tables()
    words = ["name", "SIZE", "Status", "date", "values", "hash", "key", "zone"]
    put(client, table, {"pk": s("p"), **{word: s(word) for word in words}})
    names = {f"#n{number}": word for number, word in enumerate(words)}

    bare = [
        refused(client.get_item, TableName=table, Key=item(pk="p"), ProjectionExpression=word).message
        for word in words
    ]
    found = client.get_item(
        TableName=table,
        Key=item(pk="p"),
        ProjectionExpression=", ".join(names),
        ExpressionAttributeNames=names,
    )

    assert bare == [
        "Invalid ProjectionExpression: Attribute name is a reserved keyword; reserved keyword: " + word
        for word in words
    ]
    assert found["Item"] == {word: s(word) for word in words}


def test_a_batch_of_16_mb(client: DynamoDBClient, tables: Tables) -> None:
    """25 writes of large items go in one batch while its body is within 16 MB."""
    table = tables()
    rows: Any = [{"PutRequest": {"Item": item(pk=f"{i}", v="x" * 400_000)}} for i in range(25)]

    answer = client.batch_write_item(RequestItems={table: rows})

    assert answer["UnprocessedItems"] == {}
    found = pages(client.scan, TableName=table, ProjectionExpression="pk")
    assert sum(page["Count"] for page in found) == 25
    assert len(found) > 5
