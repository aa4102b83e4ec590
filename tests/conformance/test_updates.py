"""UpdateItem: each section of an update expression, on existing and missing items."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.requests import get, item, n, put, refused, s

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]

_KEY = item(pk="p")
_BEFORE = {
    **item(pk="p", a="x", num=5, rest=7),
    "m": {"M": {"x": n(1), "y": {"M": {"z": s("deep")}}}},
    "li": {"L": [n(0), n(1), n(2), n(3)]},
    "ss": {"SS": ["a", "b"]},
    "ns": {"NS": ["1", "2"]},
    "t": {"BOOL": True},
    "docs": {"L": [{"M": {"x": n(1)}}]},
}


def _numbers(*values: int) -> dict[str, Any]:
    return {"L": [n(value) for value in values]}


# name, expression, values, the attributes that change (None: it is gone)
_CASES: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("set a value", "SET a = :v", {":v": s("y")}, {"a": s("y")}),
    ("set another type", "SET a = :v", {":v": _numbers(1)}, {"a": _numbers(1)}),
    ("set a new attribute", "SET b = :v", {":v": s("y")}, {"b": s("y")}),
    ("set two", "SET a = :v, b = :v", {":v": s("y")}, {"a": s("y"), "b": s("y")}),
    ("copy", "SET b = a", {}, {"b": s("x")}),
    ("copy from inside", "SET b = m.y.z", {}, {"b": s("deep")}),
    ("swap", "SET num = rest, rest = num", {}, {"num": n(7), "rest": n(5)}),
    ("right sides see the old item", "SET num = num + :v, b = num", {":v": n(1)}, {"num": n(6), "b": n(5)}),
    ("plus", "SET num = num + :v", {":v": n(3)}, {"num": n(8)}),
    ("minus", "SET num = num - :v", {":v": n("0.5")}, {"num": n("4.5")}),
    ("value minus attribute", "SET num = :v - num", {":v": n(3)}, {"num": n(-2)}),
    ("two attributes", "SET num = num + rest", {}, {"num": n(12)}),
    ("in parentheses", "SET num = (num + :v)", {":v": n(1)}, {"num": n(6)}),
    ("if_not_exists of what is there", "SET a = if_not_exists(a, :v)", {":v": s("y")}, {}),
    ("if_not_exists of what is not", "SET b = if_not_exists(b, :v)", {":v": s("y")}, {"b": s("y")}),
    ("if_not_exists of another", "SET b = if_not_exists(a, :v)", {":v": s("y")}, {"b": s("x")}),
    ("counter", "SET cnt = if_not_exists(cnt, :z) + :v", {":z": n(0), ":v": n(1)}, {"cnt": n(1)}),
    ("if_not_exists with a path", "SET b = if_not_exists(nobody, a)", {}, {"b": s("x")}),
    ("append", "SET li = list_append(li, :v)", {":v": _numbers(9)}, {"li": _numbers(0, 1, 2, 3, 9)}),
    ("prepend", "SET li = list_append(:v, li)", {":v": _numbers(9)}, {"li": _numbers(9, 0, 1, 2, 3)}),
    ("append to itself", "SET li = list_append(li, li)", {}, {"li": _numbers(0, 1, 2, 3, 0, 1, 2, 3)}),
    (
        "append to nothing",
        "SET b = list_append(if_not_exists(b, :e), :v)",
        {":e": {"L": []}, ":v": _numbers(9)},
        {"b": _numbers(9)},
    ),
    ("nested set", "SET m.x = :v", {":v": n(9)}, {"m": {"M": {"x": n(9), "y": {"M": {"z": s("deep")}}}}}),
    (
        "nested new",
        "SET m.y.w = :v",
        {":v": n(9)},
        {"m": {"M": {"x": n(1), "y": {"M": {"z": s("deep"), "w": n(9)}}}}},
    ),
    ("list element", "SET li[1] = :v", {":v": n(9)}, {"li": _numbers(0, 9, 2, 3)}),
    ("beyond the end", "SET li[20] = :v", {":v": n(9)}, {"li": _numbers(0, 1, 2, 3, 9)}),
    (
        "two beyond the end",
        "SET li[30] = :w, li[20] = :v",
        {":v": n(9), ":w": n(8)},
        {"li": _numbers(0, 1, 2, 3, 9, 8)},
    ),
    ("remove", "REMOVE a", {}, {"a": None}),
    ("remove nobody", "REMOVE nobody", {}, {}),
    ("remove two", "REMOVE a, num", {}, {"a": None, "num": None}),
    ("remove nested", "REMOVE m.y", {}, {"m": {"M": {"x": n(1)}}}),
    ("remove a nested leaf that is not there", "REMOVE m.nobody", {}, {}),
    ("remove an element", "REMOVE li[1]", {}, {"li": _numbers(0, 2, 3)}),
    ("remove elements by their old places", "REMOVE li[0], li[2]", {}, {"li": _numbers(1, 3)}),
    ("remove beyond the end", "REMOVE li[9]", {}, {}),
    ("set and remove elements", "SET li[0] = :v REMOVE li[1]", {":v": n(9)}, {"li": _numbers(9, 2, 3)}),
    ("add to a number", "ADD num :v", {":v": n(3)}, {"num": n(8)}),
    ("subtract by adding", "ADD num :v", {":v": n(-8)}, {"num": n(-3)}),
    ("add to nothing", "ADD cnt :v", {":v": n(3)}, {"cnt": n(3)}),
    ("add to a set", "ADD ss :v", {":v": {"SS": ["b", "c"]}}, {"ss": {"SS": ["a", "b", "c"]}}),
    ("add a new set", "ADD b :v", {":v": {"SS": ["c"]}}, {"b": {"SS": ["c"]}}),
    ("add numbers to a set", "ADD ns :v", {":v": {"NS": ["2.0", "3"]}}, {"ns": {"NS": ["1", "2", "3"]}}),
    ("add inside", "ADD m.x :v", {":v": n(2)}, {"m": {"M": {"x": n(3), "y": {"M": {"z": s("deep")}}}}}),
    ("delete from a set", "DELETE ss :v", {":v": {"SS": ["a", "nobody"]}}, {"ss": {"SS": ["b"]}}),
    ("delete all of a set", "DELETE ss :v", {":v": {"SS": ["a", "b"]}}, {"ss": None}),
    ("delete from nothing", "DELETE nobody :v", {":v": {"SS": ["a"]}}, {}),
    (
        "four sections",
        "REMOVE a ADD num :v DELETE ss :d SET b = :v",
        {":v": n(1), ":d": {"SS": ["a"]}},
        {"a": None, "num": n(6), "ss": {"SS": ["b"]}, "b": n(1)},
    ),
    ("no spaces", "SET a=:v,b=:v REMOVE num", {":v": s("y")}, {"a": s("y"), "b": s("y"), "num": None}),
    ("lines and tabs", "SET\n\ta = :v,\n\tb = :v\n", {":v": s("y")}, {"a": s("y"), "b": s("y")}),
    ("add binaries", "ADD bs :v", {":v": {"BS": [b"\x01"]}}, {"bs": {"BS": [b"\x01"]}}),
    ("delete numbers by value", "DELETE ns :v", {":v": {"NS": ["1.00"]}}, {"ns": {"NS": ["2"]}}),
    ("set inside a list", "SET docs[0].x = :v", {":v": n(9)}, {"docs": {"L": [{"M": {"x": n(9)}}]}}),
    ("remove inside a list", "REMOVE docs[0].x", {}, {"docs": {"L": [{"M": {}}]}}),
    ("value in parentheses", "SET num = (:v)", {":v": n(9)}, {"num": n(9)}),
    (
        "if_not_exists on both sides",
        "SET num = if_not_exists(num, :z) - if_not_exists(nobody, :v)",
        {":z": n(0), ":v": n(1)},
        {"num": n(4)},
    ),
    (
        "if_not_exists inside itself",
        "SET b = if_not_exists(nobody, if_not_exists(no2, a))",
        {},
        {"b": s("x")},
    ),
    (
        "lower case",
        "set a = :v remove num add rest :w",
        {":v": s("y"), ":w": n(1)},
        {"a": s("y"), "num": None, "rest": n(8)},
    ),
]


def _sorted(found: dict[str, Any] | None) -> dict[str, Any]:
    """Return an item with its sets in one order."""
    return {
        name: {kind: sorted(inner) if kind in ("SS", "NS", "BS") else inner for kind, inner in value.items()}
        for name, value in (found or {}).items()
    }


def _update(client: DynamoDBClient, table: str, text: str, values: dict[str, Any] | None = None) -> None:
    more: Any = {"ExpressionAttributeValues": values} if values else {}
    client.update_item(TableName=table, Key=_KEY, UpdateExpression=text, **more)


@pytest.mark.parametrize(
    ("text", "values", "changes"), [each[1:] for each in _CASES], ids=[each[0] for each in _CASES]
)
def test_an_update(
    client: DynamoDBClient, tables: Tables, text: str, values: dict[str, Any], changes: dict[str, Any]
) -> None:
    """An update changes the named paths and nothing else."""
    table = tables()
    put(client, table, _BEFORE)

    _update(client, table, text, values)

    expected = {name: value for name, value in {**_BEFORE, **changes}.items() if value is not None}
    assert _sorted(get(client, table, pk="p")) == _sorted(expected)


def test_an_update_without_an_expression_makes_the_item(client: DynamoDBClient, tables: Tables) -> None:
    """It creates a missing item with its key, and does not change an existing one."""
    table = tables()
    put(client, table, item(pk="p", a="x"))

    client.update_item(TableName=table, Key=item(pk="new"))
    client.update_item(TableName=table, Key=_KEY)

    assert get(client, table, pk="new") == item(pk="new")
    assert get(client, table, pk="p") == item(pk="p", a="x")


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("SET a = :v", {":v": s("x")}, item(pk="p", a="x")),
        ("ADD cnt :v", {":v": n(2)}, item(pk="p", cnt=2)),
        ("SET a = if_not_exists(b, :v)", {":v": s("x")}, item(pk="p", a="x")),
    ],
)
def test_an_update_of_a_missing_item_creates_it(
    client: DynamoDBClient, tables: Tables, text: str, values: dict[str, Any], expected: dict[str, Any]
) -> None:
    """An update is an upsert."""
    table = tables()

    _update(client, table, text, values)

    assert get(client, table, pk="p") == expected


@pytest.mark.parametrize(
    ("text", "values"), [("REMOVE a", {}), ("REMOVE a.b.c", {}), ("DELETE ss :v", {":v": {"SS": ["a"]}})]
)
def test_removing_from_a_missing_item_creates_nothing(
    client: DynamoDBClient, tables: Tables, text: str, values: dict[str, Any]
) -> None:
    """An update that only removes does not create a missing item, and is no error."""
    table = tables()

    _update(client, table, text, values)

    assert get(client, table, pk="p") is None


@pytest.mark.parametrize(
    ("stored", "text", "value", "expected"),
    [
        (
            "12345678901234567890123456789012345678",
            "SET v = v + :v",
            "1",
            "12345678901234567890123456789012345679",
        ),
        ("0.1", "SET v = v + :v", "0.2", "0.3"),
        ("1E100", "SET v = v + :v", "1E100", "2" + "0" * 100),
        ("1E-130", "SET v = v - :v", "1E-130", "0"),
        ("99999999999999999999999999999999999999", "ADD v :v", "1", "1" + "0" * 38),
        ("1", "ADD v :v", "-1", "0"),
        ("5", "SET v = :v - v", "5.5", "0.5"),
    ],
)
def test_arithmetic_is_exact(
    client: DynamoDBClient, tables: Tables, stored: str, text: str, value: str, expected: str
) -> None:
    """Sums and differences are exact in 38 digits."""
    table = tables()
    put(client, table, {"pk": s("p"), "v": n(stored)})

    _update(client, table, text, {":v": n(value)})

    assert get(client, table, pk="p") == {"pk": s("p"), "v": n(expected)}


@pytest.mark.parametrize("value", ["1E39", "0.1"])
def test_a_sum_of_more_digits_is_refused(client: DynamoDBClient, tables: Tables, value: str) -> None:
    """A result of more than 38 digits is refused with the overflow message, and nothing changes."""
    table = tables()
    stored = {"pk": s("p"), "v": n("1" * 38)}
    put(client, table, stored)

    error = refused(
        client.update_item,
        TableName=table,
        Key=_KEY,
        UpdateExpression="ADD v :v",
        ExpressionAttributeValues={":v": n(value)},
    )

    assert error.message == (
        "Number overflow. Attempting to store a number with magnitude larger than supported range"
    )
    assert get(client, table, pk="p") == stored


def test_placeholders_are_substituted_before_paths_are_compared(
    client: DynamoDBClient, tables: Tables
) -> None:
    """Two spellings of one attribute overlap."""
    error = refused(
        client.update_item,
        TableName=tables(),
        Key=_KEY,
        UpdateExpression="SET a = :v, #a = :v",
        ExpressionAttributeNames={"#a": "a"},
        ExpressionAttributeValues={":v": n(1)},
    )

    assert "Two document paths overlap with each other" in error.message


def test_a_list_append_does_not_nest(client: DynamoDBClient, tables: Tables) -> None:
    """list_append may hold if_not_exists, and not itself."""
    error = refused(
        client.update_item,
        TableName=tables(),
        Key=_KEY,
        UpdateExpression="SET a = list_append(list_append(a, a), a)",
    )

    assert error.code == "ValidationException"


def test_a_failed_update_changes_nothing(client: DynamoDBClient, tables: Tables) -> None:
    """When one clause fails, no clause is applied."""
    table = tables()
    put(client, table, _BEFORE)

    error = refused(
        client.update_item, TableName=table, Key=_KEY, UpdateExpression="REMOVE a SET num = nobody"
    )

    assert error.code == "ValidationException"
    assert _sorted(get(client, table, pk="p")) == _sorted(_BEFORE)


def test_a_failed_condition_makes_no_item(client: DynamoDBClient, tables: Tables) -> None:
    """A conditional update of a missing item does not create it."""
    table = tables()

    error = refused(
        client.update_item,
        TableName=table,
        Key=_KEY,
        UpdateExpression="ADD cnt :v",
        ConditionExpression="attribute_exists(pk)",
        ExpressionAttributeValues={":v": n(1)},
    )

    assert error.code == "ConditionalCheckFailedException"
    assert get(client, table, pk="p") is None
