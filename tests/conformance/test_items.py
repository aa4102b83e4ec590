"""Items: put, get, delete; every type as it comes back."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from boto3.dynamodb.conditions import Attr, Key

from tests.conformance.backends import Answer
from tests.conformance.requests import get, item, n, put, refused, s

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]

_VALUES: dict[str, Any] = {
    "string": {"S": "text"},
    "empty string": {"S": ""},
    "unicode": {"S": "Zürich 東京 🜁 \u0000 \u2028"},
    "number": {"N": "42"},
    "binary": {"B": b"\x00\xff\x80"},
    "empty binary": {"B": b""},
    "true": {"BOOL": True},
    "false": {"BOOL": False},
    "null": {"NULL": True},
    "list": {"L": [{"S": "a"}, {"N": "1"}, {"L": []}, {"NULL": True}]},
    "empty list": {"L": []},
    "map": {"M": {"a": {"S": "b"}, "x y": {"N": "1"}, "x.y": {"BOOL": False}}},
    "empty map": {"M": {}},
    "nested": {"M": {"l": {"L": [{"M": {"s": {"SS": ["z"]}}}]}}},
    "string set": {"SS": ["a", "", "ä"]},
    "number set": {"NS": ["1", "2.5", "-3"]},
    "binary set": {"BS": [b"\x00", b"", b"\xff"]},
}

# The value sent, and the value read back.
_NUMBERS = {
    "0": "0",
    "-0": "0",
    "0.0": "0",
    "0E10": "0",
    "+5": "5",
    "007": "7",
    "0042.1200": "42.12",
    ".5": "0.5",
    "5.": "5",
    "-.5": "-0.5",
    "1e2": "100",
    "1E+2": "100",
    "1.5E1": "15",
    "12E-1": "1.2",
    "1E-3": "0.001",
    "1E125": "1" + "0" * 125,
    "9.9999999999999999999999999999999999999E+125": "9" * 38 + "0" * 88,
    "-9.9999999999999999999999999999999999999E+125": "-" + "9" * 38 + "0" * 88,
    "1E-130": "0." + "0" * 129 + "1",
    "-1E-130": "-0." + "0" * 129 + "1",
    "12345678901234567890123456789012345678": "12345678901234567890123456789012345678",
    "0.12345678901234567890123456789012345678": "0.12345678901234567890123456789012345678",
    "123456789012345678901234567890123456780000": "123456789012345678901234567890123456780000",
    "1000.5": "1000.5",
}


def _sorted_sets(value: Any) -> Any:
    """Return a value with sorted sets, because DynamoDB's order is undefined."""
    if not isinstance(value, dict):
        return value
    return {
        kind: sorted(inner)
        if kind in ("SS", "NS", "BS")
        else [_sorted_sets(each) for each in inner]
        if isinstance(inner, list)
        else {name: _sorted_sets(each) for name, each in inner.items()}
        if isinstance(inner, dict)
        else inner
        for kind, inner in value.items()
    }


@pytest.mark.parametrize("value", _VALUES.values(), ids=_VALUES)
def test_a_value_comes_back(client: DynamoDBClient, tables: Tables, value: dict[str, Any]) -> None:
    """Each of the ten types is stored unchanged, empty values included."""
    table = tables()
    client.put_item(TableName=table, Item={"pk": s("p"), "v": value})

    found = get(client, table, pk="p")

    assert found is not None
    assert _sorted_sets(found["v"]) == _sorted_sets(value)


@pytest.mark.parametrize(("sent", "stored"), _NUMBERS.items(), ids=_NUMBERS)
def test_a_number_has_one_text(client: DynamoDBClient, tables: Tables, sent: str, stored: str) -> None:
    """A number is read back as a plain decimal, whatever way it was written."""
    table = tables()
    client.put_item(TableName=table, Item={"pk": s("p"), "v": n(sent), "set": {"NS": [sent]}})

    found = get(client, table, pk="p")

    assert found == {"pk": s("p"), "v": n(stored), "set": {"NS": [stored]}}


@pytest.mark.parametrize(
    "name", ["a b", "a.b", "#a", ":a", "ä", "名", "1", "a" * 255, "\n", "'", '"', "a" * 5000]
)
def test_an_attribute_may_have_any_name(client: DynamoDBClient, tables: Tables, name: str) -> None:
    """An attribute's name is any string; an expression refers to unusual ones by a placeholder."""
    table = tables()
    put(client, table, {"pk": s("p"), name: s("v")})

    found = client.get_item(
        TableName=table,
        Key=item(pk="p"),
        ProjectionExpression="#n",
        ExpressionAttributeNames={"#n": name},
    )

    assert found["Item"] == {name: s("v")}


def test_put_replaces_the_whole_item(client: DynamoDBClient, tables: Tables) -> None:
    """A put leaves no attribute of the previous item."""
    table = tables()
    put(client, table, item(pk="p", a="x", b="y"))

    put(client, table, item(pk="p", c="z"))

    assert get(client, table, pk="p") == item(pk="p", c="z")


def test_a_missing_item_is_no_error(client: DynamoDBClient, tables: Tables) -> None:
    """GetItem of a key that no one put has no Item."""
    table = tables()

    found = client.get_item(TableName=table, Key=item(pk="nobody"))

    assert "Item" not in found


def test_a_projection_that_matches_nothing_returns_an_empty_item(
    tables: Tables, client: DynamoDBClient, send_raw: Callable[..., Answer]
) -> None:
    """An item without any requested attribute is an empty item; a missing one is absent."""
    table = tables()
    put(client, table, item(pk="p"))

    there = send_raw("GetItem", {"TableName": table, "Key": item(pk="p"), "ProjectionExpression": "x"})
    missing = send_raw("GetItem", {"TableName": table, "Key": item(pk="q"), "ProjectionExpression": "x"})

    assert there.body == {"Item": {}}
    assert missing.body == {}


def test_delete_is_repeatable(client: DynamoDBClient, tables: Tables) -> None:
    """A delete of a missing item succeeds."""
    table = tables()
    put(client, table, item(pk="p"))

    first: Any = client.delete_item(TableName=table, Key=item(pk="p"))
    second: Any = client.delete_item(TableName=table, Key=item(pk="p"))

    assert get(client, table, pk="p") is None
    assert "Attributes" not in first
    assert "Attributes" not in second


@pytest.mark.parametrize("consistent", [True, False])
def test_both_kinds_of_read(client: DynamoDBClient, tables: Tables, consistent: bool) -> None:
    """A consistent and an eventual read return the same item once it has settled."""
    table = tables()
    put(client, table, item(pk="p", a="x"))

    found = client.get_item(TableName=table, Key=item(pk="p"), ConsistentRead=consistent)

    assert found["Item"] == item(pk="p", a="x")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a", {"a": s("x")}),
        ("a, nobody", {"a": s("x")}),
        ("m.x", {"m": {"M": {"x": n(1)}}}),
        ("m.x, m.y", {"m": {"M": {"x": n(1), "y": n(2)}}}),
        ("m.nobody", {}),
        ("a.x", {}),
        ("li[0]", {"li": {"L": [n(10)]}}),
        ("li[2], li[0]", {"li": {"L": [n(10), {"M": {"z": s("deep")}}]}}),
        ("li[2].z", {"li": {"L": [{"M": {"z": s("deep")}}]}}),
        ("li[9]", {}),
        ("li[9], a", {"a": s("x")}),
        ("m[0]", {}),
        ("li.x", {}),
        ("a, pk", {"a": s("x"), "pk": s("p")}),
        ("m", {"m": {"M": {"x": n(1), "y": n(2)}}}),
    ],
)
def test_projections(
    client: DynamoDBClient, tables: Tables, expression: str, expected: dict[str, Any]
) -> None:
    """A projection returns the named paths inside their containers, with list elements compacted."""
    table = tables()
    put(
        client,
        table,
        {
            "pk": s("p"),
            "a": s("x"),
            "m": {"M": {"x": n(1), "y": n(2)}},
            "li": {"L": [n(10), n(11), {"M": {"z": s("deep")}}]},
        },
    )

    found = client.get_item(TableName=table, Key=item(pk="p"), ProjectionExpression=expression)

    assert found["Item"] == expected


def test_a_placeholder_is_one_segment(client: DynamoDBClient, tables: Tables) -> None:
    """A placeholder's name with a dot in it is one attribute, not a path."""
    table = tables()
    put(client, table, {"pk": s("p"), "a.b": s("flat"), "a": {"M": {"b": s("nested")}}})

    flat = client.get_item(
        TableName=table,
        Key=item(pk="p"),
        ProjectionExpression="#x",
        ExpressionAttributeNames={"#x": "a.b"},
    )
    nested = client.get_item(TableName=table, Key=item(pk="p"), ProjectionExpression="a.b")

    assert flat["Item"] == {"a.b": s("flat")}
    assert nested["Item"] == {"a": {"M": {"b": s("nested")}}}


# Keys that a careless encoding would let collide.
_PAIRS = [
    ("a", "bc"),
    ("ab", "c"),
    ("a\x00", "b"),
    ("a", "\x00b"),
    ("a\x00\x01", "b"),
    ("a#b", "c"),
    ("a", "b#c"),
    ("a/b", "c"),
    ("ä", "b"),
    ("a\u0308", "b"),
    ("A", "bc"),
    ("a ", "bc"),
    ("\uffff", "b"),
    ("\U0001f600", "b"),
]


def test_keys_do_not_collide(client: DynamoDBClient, tables: Tables) -> None:
    """Two keys are one only if both parts are equal, byte for byte."""
    table = tables("pk sk")
    put(client, table, *(item(pk=pk, sk=sk, v=f"{pk}|{sk}") for pk, sk in _PAIRS))

    found = [get(client, table, pk=pk, sk=sk) for pk, sk in _PAIRS]

    assert found == [item(pk=pk, sk=sk, v=f"{pk}|{sk}") for pk, sk in _PAIRS]
    assert client.scan(TableName=table, Select="COUNT")["Count"] == len(_PAIRS)


def test_binary_keys_do_not_collide(client: DynamoDBClient, tables: Tables) -> None:
    """Binary keys are distinguished by every byte, zeros included."""
    table = tables("pk:B sk:B")
    keys: list[Any] = [
        {"pk": {"B": pk}, "sk": {"B": sk}}
        for pk, sk in [
            (b"\x00", b"\x00\x00"),
            (b"\x00\x00", b"\x00"),
            (b"\x00\xff", b"\x01"),
            (b"\x00", b"\xff\x01"),
        ]
    ]
    put(client, table, *keys)

    found = [client.get_item(TableName=table, Key=key).get("Item") for key in keys]

    assert found == keys


def test_a_number_key_is_one_number(client: DynamoDBClient, tables: Tables) -> None:
    """Two texts of one number are one key, and the item shows it canonical."""
    table = tables("pk:N")
    put(client, table, item(pk=n("1.50")))

    put(client, table, item(pk=n("15E-1"), a="second"))
    found = client.get_item(TableName=table, Key={"pk": n("+01.5")})

    assert found["Item"] == item(pk=n("1.5"), a="second")
    assert client.scan(TableName=table)["Count"] == 1


def test_duplicate_members_of_a_json_object(send_raw: Callable[..., Answer], tables: Tables) -> None:
    """Of two members with one name in the JSON, the last counts."""
    table = tables()
    body = f'{{"TableName": "{table}", "Item": {{"pk": {{"S": "p"}}, "a": {{"S": "1"}}, "a": {{"S": "2"}}}}}}'

    put_ = send_raw("PutItem", body.encode())
    found = send_raw("GetItem", {"TableName": table, "Key": item(pk="p")})

    assert put_.status == 200
    assert found.body["Item"]["a"] == s("2")


def test_item_collection_metrics(client: DynamoDBClient, tables: Tables) -> None:
    """The size of an item collection is reported for tables with local indexes, and for no others."""
    local, plain = tables("pk sk", lsi={"by-l": "pk l"}), tables("pk sk")

    result = client.put_item(TableName=local, Item=item(pk="p", sk="s"), ReturnItemCollectionMetrics="SIZE")
    silent: Any = client.put_item(
        TableName=plain, Item=item(pk="p", sk="s"), ReturnItemCollectionMetrics="SIZE"
    )
    unasked: Any = client.put_item(TableName=local, Item=item(pk="p", sk="s"))

    metrics = result["ItemCollectionMetrics"]
    assert metrics["ItemCollectionKey"] == item(pk="p")
    low, high = metrics["SizeEstimateRangeGB"]
    assert 0 <= low < high
    assert "ItemCollectionMetrics" not in silent
    assert "ItemCollectionMetrics" not in unasked


def test_a_refused_put_changes_nothing(client: DynamoDBClient, tables: Tables) -> None:
    """A refused put does not change the item."""
    table = tables(gsi={"by-a": "a"})
    put(client, table, item(pk="p", a="x"))

    refused(client.put_item, TableName=table, Item=item(pk="p", a=1))

    assert get(client, table, pk="p") == item(pk="p", a="x")


def test_the_resource_of_boto3(client: DynamoDBClient, tables: Tables) -> None:
    """boto3's resource, with its Python types and conditions, works like its client."""
    name = tables("pk sk:N", gsi={"by-a": "a sk:N"})
    resource: Any = boto3.resource(
        "dynamodb",
        region_name=client.meta.region_name,
        endpoint_url=client.meta.endpoint_url,
        aws_access_key_id="000000000000",
        aws_secret_access_key="secret",
    )
    table = resource.Table(name)
    row = {
        "pk": "p",
        "sk": Decimal("1.5"),
        "a": "x",
        "list": [1, "two", None, True, {"deep": b"bytes"}],
        "set": {"a", "b"},
        "numbers": {Decimal(1), Decimal("2.5")},
    }

    with table.batch_writer() as batch:
        batch.put_item(Item=row)
        for number in range(30):
            batch.put_item(Item={"pk": "q", "sk": number, "a": "x"})
    found = table.get_item(Key={"pk": "p", "sk": Decimal("1.5")})["Item"]
    queried = table.query(
        IndexName="by-a",
        KeyConditionExpression=Key("a").eq("x") & Key("sk").between(10, 14),
        FilterExpression=Attr("pk").eq("q") & ~Attr("nobody").exists(),
    )
    updated = table.update_item(
        Key={"pk": "p", "sk": Decimal("1.5")},
        UpdateExpression="ADD num :n",
        ExpressionAttributeValues={":n": 2},
        ReturnValues="UPDATED_NEW",
    )
    resource.meta.client.close()

    assert {**found, "list": [*found["list"][:4], {"deep": found["list"][4]["deep"].value}]} == row
    assert [int(each["sk"]) for each in queried["Items"]] == [10, 11, 12, 13, 14]
    assert updated["Attributes"] == {"num": 2}
