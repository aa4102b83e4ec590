"""The parameters from before expressions: still accepted, and meaning what they meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.requests import column, get, item, items_of, n, put, refused, s

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]

_KEY = item(pk="p")
_ITEM: dict[str, Any] = {
    **item(pk="p", txt="hello", num=5),
    "ss": {"SS": ["a", "b"]},
    "ns": {"NS": ["1", "2"]},
    "li": {"L": [s("a"), n(1)]},
    "nul": {"NULL": True},
    "bin": {"B": b"\x01\x02"},
}

# attribute, operator, values, whether it holds
_CONDITIONS: list[tuple[str, str, list[Any], bool]] = [
    ("txt", "EQ", [s("hello")], True),
    ("txt", "EQ", [s("x")], False),
    ("num", "EQ", [n("5.0")], True),
    ("num", "EQ", [s("5")], False),
    ("ss", "EQ", [{"SS": ["b", "a"]}], True),
    ("li", "EQ", [{"L": [s("a"), n(1)]}], True),
    ("nobody", "EQ", [s("x")], False),
    ("txt", "NE", [s("x")], True),
    ("txt", "NE", [s("hello")], False),
    ("nobody", "NE", [s("x")], True),
    ("num", "LT", [n(6)], True),
    ("num", "LT", [n(5)], False),
    ("num", "LE", [n(5)], True),
    ("num", "GT", [n(4)], True),
    ("num", "GT", [s("4")], False),
    ("num", "GE", [n(5)], True),
    ("nobody", "GE", [n(5)], False),
    ("num", "BETWEEN", [n(5), n(9)], True),
    ("num", "BETWEEN", [n(6), n(9)], False),
    ("txt", "BEGINS_WITH", [s("hel")], True),
    ("txt", "BEGINS_WITH", [s("lo")], False),
    ("bin", "BEGINS_WITH", [{"B": b"\x01"}], True),
    ("txt", "CONTAINS", [s("ell")], True),
    ("ss", "CONTAINS", [s("a")], True),
    ("ns", "CONTAINS", [n("1.0")], True),
    ("li", "CONTAINS", [n(1)], True),
    ("txt", "CONTAINS", [s("x")], False),
    ("txt", "NOT_CONTAINS", [s("x")], True),
    ("ss", "NOT_CONTAINS", [s("a")], False),
    ("num", "IN", [n(1), n(5)], True),
    ("num", "IN", [n(1), n(2)], False),
    ("txt", "NULL", [], False),
    ("nobody", "NULL", [], True),
    ("nul", "NULL", [], False),
    ("txt", "NOT_NULL", [], True),
    ("nul", "NOT_NULL", [], True),
    ("nobody", "NOT_NULL", [], False),
]


def _condition(operator: str, values: list[Any]) -> dict[str, Any]:
    return {"ComparisonOperator": operator, **({"AttributeValueList": values} if values else {})}


@pytest.mark.parametrize(
    ("name", "operator", "values", "holds"),
    _CONDITIONS,
    ids=[f"{name}-{operator}-{holds}-{i}" for i, (name, operator, _, holds) in enumerate(_CONDITIONS)],
)
def test_comparison_operators(
    client: DynamoDBClient, tables: Tables, name: str, operator: str, values: list[Any], holds: bool
) -> None:
    """Each operator has the same result as an expectation and as a filter of a scan and of a query."""
    table = tables()
    client.put_item(TableName=table, Item=_ITEM)
    condition: Any = _condition(operator, values)

    scanned = client.scan(TableName=table, ScanFilter={name: condition})
    queried = client.query(
        TableName=table,
        KeyConditions={"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [s("p")]}},
        QueryFilter={name: condition},
    )
    request: Any = {"TableName": table, "Key": _KEY, "Expected": {name: condition}}
    if holds:
        client.delete_item(**request)
    else:
        assert refused(client.delete_item, **request).code == "ConditionalCheckFailedException"

    assert scanned["Count"] == queried["Count"] == int(holds)
    assert (get(client, table, pk="p") is None) == holds


@pytest.mark.parametrize(
    ("expected", "holds"),
    [
        ({"txt": {"Value": s("hello")}}, True),
        ({"txt": {"Value": s("x")}}, False),
        ({"txt": {"Exists": True, "Value": s("hello")}}, True),
        ({"nobody": {"Exists": False}}, True),
        ({"txt": {"Exists": False}}, False),
        ({"txt": {"ComparisonOperator": "EQ", "Value": s("hello")}}, True),
    ],
)
def test_expectations(client: DynamoDBClient, tables: Tables, expected: dict[str, Any], holds: bool) -> None:
    """An expectation is a value or its absence."""
    table = tables()
    client.put_item(TableName=table, Item=_ITEM)
    request: Any = {"TableName": table, "Item": item(pk="p", v="new"), "Expected": expected}

    if holds:
        client.put_item(**request)
    else:
        assert refused(client.put_item, **request).code == "ConditionalCheckFailedException"

    assert (get(client, table, pk="p") == item(pk="p", v="new")) == holds


@pytest.mark.parametrize(("operator", "holds"), [(None, False), ("AND", False), ("OR", True)])
def test_conditional_operator(
    client: DynamoDBClient, tables: Tables, operator: str | None, holds: bool
) -> None:
    """Several conditions are joined by AND, or by OR on request; in writes, queries and scans."""
    table = tables()
    client.put_item(TableName=table, Item=_ITEM)
    conditions: Any = {"txt": _condition("EQ", [s("hello")]), "num": _condition("EQ", [n(0)])}
    more: Any = {} if operator is None else {"ConditionalOperator": operator}

    scanned = client.scan(TableName=table, ScanFilter=conditions, **more)
    request: Any = {"TableName": table, "Key": _KEY, "Expected": conditions, **more}
    if holds:
        client.delete_item(**request)
    else:
        refused(client.delete_item, **request)

    assert scanned["Count"] == int(holds)
    assert (get(client, table, pk="p") is None) == holds


_UPDATES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("put", {"txt": {"Action": "PUT", "Value": s("x")}}, {"txt": s("x")}),
    ("put is the default", {"txt": {"Value": s("x")}}, {"txt": s("x")}),
    ("put a new attribute", {"more": {"Action": "PUT", "Value": s("x")}}, {"more": s("x")}),
    ("delete", {"txt": {"Action": "DELETE"}}, {"txt": None}),
    ("delete nobody", {"nobody": {"Action": "DELETE"}}, {}),
    ("delete members", {"ss": {"Action": "DELETE", "Value": {"SS": ["a", "z"]}}}, {"ss": {"SS": ["b"]}}),
    ("delete all members", {"ss": {"Action": "DELETE", "Value": {"SS": ["a", "b"]}}}, {"ss": None}),
    ("add a number", {"num": {"Action": "ADD", "Value": n(3)}}, {"num": n(8)}),
    ("add to nothing", {"cnt": {"Action": "ADD", "Value": n(3)}}, {"cnt": n(3)}),
    ("add members", {"ss": {"Action": "ADD", "Value": {"SS": ["c"]}}}, {"ss": {"SS": ["a", "b", "c"]}}),
    ("add to a list", {"li": {"Action": "ADD", "Value": {"L": [n(2)]}}}, {"li": {"L": [s("a"), n(1), n(2)]}}),
    (
        "several",
        {"txt": {"Action": "DELETE"}, "num": {"Action": "ADD", "Value": n(1)}},
        {"txt": None, "num": n(6)},
    ),
]


@pytest.mark.parametrize(
    ("updates", "changes"), [each[1:] for each in _UPDATES], ids=[each[0] for each in _UPDATES]
)
def test_attribute_updates(
    client: DynamoDBClient, tables: Tables, updates: dict[str, Any], changes: dict[str, Any]
) -> None:
    """PUT sets, DELETE takes away, ADD counts and collects."""
    table = tables()
    client.put_item(TableName=table, Item=_ITEM)

    client.update_item(TableName=table, Key=_KEY, AttributeUpdates=updates)

    found = get(client, table, pk="p") or {}
    expected = {name: value for name, value in {**_ITEM, **changes}.items() if value is not None}
    if "SS" in found.get("ss", {}):
        found["ss"] = {"SS": sorted(found["ss"]["SS"])}
    assert found == expected


def test_attribute_updates_make_the_item(client: DynamoDBClient, tables: Tables) -> None:
    """An update of a missing item creates it; one that only deletes does not."""
    table = tables()

    client.update_item(
        TableName=table, Key=item(pk="put"), AttributeUpdates={"a": {"Action": "PUT", "Value": s("x")}}
    )
    client.update_item(TableName=table, Key=item(pk="gone"), AttributeUpdates={"a": {"Action": "DELETE"}})

    assert get(client, table, pk="put") == item(pk="put", a="x")
    assert get(client, table, pk="gone") is None


def test_attribute_updates_support_return_values(client: DynamoDBClient, tables: Tables) -> None:
    """ReturnValues means the same as with an expression."""
    table = tables()
    put(client, table, item(pk="p", num=5, a="x"))

    answer = client.update_item(
        TableName=table,
        Key=_KEY,
        AttributeUpdates={"num": {"Action": "ADD", "Value": n(1)}},
        ReturnValues="UPDATED_NEW",
    )

    assert answer["Attributes"] == item(num=6)


def test_a_key_is_not_updated(client: DynamoDBClient, tables: Tables) -> None:
    """A key attribute is part of the key for legacy updates too."""
    error = refused(
        client.update_item,
        TableName=tables(),
        Key=_KEY,
        AttributeUpdates={"pk": {"Action": "PUT", "Value": s("q")}},
    )

    assert error.message == (
        "One or more parameter values were invalid: Cannot update attribute pk. This attribute is part of the key"
    )


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("EQ", [3], [3]),
        ("LT", [3], [0, 1, 2]),
        ("LE", [3], [0, 1, 2, 3]),
        ("GT", [3], [4, 5]),
        ("GE", [3], [3, 4, 5]),
        ("BETWEEN", [2, 4], [2, 3, 4]),
    ],
)
def test_key_conditions(
    client: DynamoDBClient, tables: Tables, operator: str, values: list[int], expected: list[int]
) -> None:
    """The old key conditions select the same ranges."""
    table = tables("pk sk:N")
    put(client, table, *(item(pk="p", sk=number) for number in range(6)))
    conditions: Any = {
        "pk": _condition("EQ", [s("p")]),
        "sk": _condition(operator, [n(value) for value in values]),
    }

    found = items_of(client.query, TableName=table, KeyConditions=conditions)

    assert column(found, "sk") == [str(number) for number in expected]


def test_key_conditions_on_an_index(client: DynamoDBClient, tables: Tables) -> None:
    """The old key conditions work on an index, with a prefix and in pages."""
    table = tables(gsi={"by-a": "a b"})
    put(client, table, *(item(pk=f"{i}", a="x", b=b) for i, b in enumerate(["aa", "ab", "b", "abc"])))
    conditions: Any = {"a": _condition("EQ", [s("x")]), "b": _condition("BEGINS_WITH", [s("a")])}

    found = items_of(client.query, TableName=table, IndexName="by-a", KeyConditions=conditions, Limit=1)

    assert column(found, "b") == ["aa", "ab", "abc"]


def test_attributes_to_get(client: DynamoDBClient, tables: Tables) -> None:
    """The old projection names top-level attributes, for each kind of read."""
    table = tables()
    put(client, table, item(pk="p", a="x", b="y"))

    single = client.get_item(TableName=table, Key=_KEY, AttributesToGet=["a", "nobody"])
    batch = client.batch_get_item(RequestItems={table: {"Keys": [_KEY], "AttributesToGet": ["b"]}})
    scanned = client.scan(TableName=table, AttributesToGet=["pk"])

    assert single["Item"] == item(a="x")
    assert batch["Responses"][table] == [item(b="y")]
    assert scanned["Items"] == [_KEY]
