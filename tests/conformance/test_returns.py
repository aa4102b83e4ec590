"""Values returned by writes: ReturnValues in each form, and the item that failed a condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.requests import get, item, n, put, refused, s

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]

_OLD = {
    **item(pk="p", a="old", num=5),
    "m": {"M": {"x": n(1), "y": n(2)}},
    "li": {"L": [n(10), n(11), n(12)]},
    "ss": {"SS": ["a", "b"]},
}
_KEY = item(pk="p")


@pytest.mark.parametrize("operation", ["put_item", "delete_item"])
@pytest.mark.parametrize("exists", [True, False])
def test_put_and_delete_return_the_old_item(
    client: DynamoDBClient, tables: Tables, operation: str, exists: bool
) -> None:
    """ALL_OLD returns the whole previous item, and nothing if there was none."""
    table = tables()
    if exists:
        put(client, table, _OLD)
    target: Any = {"Item": item(pk="p", b="new")} if operation == "put_item" else {"Key": _KEY}

    answer = getattr(client, operation)(TableName=table, **target, ReturnValues="ALL_OLD")

    assert answer.get("Attributes") == (_OLD if exists else None)


@pytest.mark.parametrize("value", ["NONE", None])
def test_nothing_is_returned_by_default(client: DynamoDBClient, tables: Tables, value: Any) -> None:
    """NONE is the default of every write."""
    table = tables()
    put(client, table, _OLD)
    more: Any = {} if value is None else {"ReturnValues": value}

    answers: list[Any] = [
        client.put_item(TableName=table, Item=_OLD, **more),
        client.update_item(TableName=table, Key=_KEY, UpdateExpression="REMOVE a", **more),
        client.delete_item(TableName=table, Key=_KEY, **more),
    ]

    assert ["Attributes" in answer for answer in answers] == [False, False, False]


_CASES: list[tuple[str, str, dict[str, Any], dict[str, Any] | None, dict[str, Any] | None]] = [
    # name, update, values, UPDATED_OLD, UPDATED_NEW
    ("set", "SET a = :v", {":v": s("new")}, {"a": s("old")}, {"a": s("new")}),
    ("set a new attribute", "SET b = :v", {":v": s("new")}, None, {"b": s("new")}),
    ("add", "ADD num :v", {":v": n(2)}, {"num": n(5)}, {"num": n(7)}),
    ("remove", "REMOVE a", {}, {"a": s("old")}, None),
    ("remove nothing", "REMOVE nobody", {}, None, None),
    ("set and remove", "SET num = :v REMOVE a", {":v": n(1)}, {"num": n(5), "a": s("old")}, {"num": n(1)}),
    ("nested", "SET m.x = :v", {":v": n(9)}, {"m": {"M": {"x": n(1)}}}, {"m": {"M": {"x": n(9)}}}),
    ("nested and new", "SET m.z = :v", {":v": n(9)}, None, {"m": {"M": {"z": n(9)}}}),
    ("list element", "SET li[1] = :v", {":v": n(9)}, {"li": {"L": [n(11)]}}, {"li": {"L": [n(9)]}}),
    (
        "two list elements",
        "SET li[2] = :v, li[0] = :w",
        {":v": n(9), ":w": n(8)},
        {"li": {"L": [n(10), n(12)]}},
        {"li": {"L": [n(8), n(9)]}},
    ),
    ("same value", "SET a = :v", {":v": s("old")}, {"a": s("old")}, {"a": s("old")}),
    (
        "delete from a set",
        "DELETE ss :v",
        {":v": {"SS": ["a"]}},
        {"ss": {"SS": ["a", "b"]}},
        {"ss": {"SS": ["b"]}},
    ),
    ("add inside", "ADD m.x :v", {":v": n(1)}, {"m": {"M": {"x": n(1)}}}, {"m": {"M": {"x": n(2)}}}),
    ("remove inside", "REMOVE m.x", {}, {"m": {"M": {"x": n(1)}}}, None),
    ("empty a set", "DELETE ss :v", {":v": {"SS": ["a", "b"]}}, {"ss": {"SS": ["a", "b"]}}, None),
]


def _update(client: DynamoDBClient, table: str, text: str, values: dict[str, Any], what: str) -> Any:
    more = {"ExpressionAttributeValues": values} if values else {}
    request: Any = {"TableName": table, "Key": _KEY, "UpdateExpression": text, "ReturnValues": what, **more}
    return client.update_item(**request).get("Attributes")


@pytest.mark.parametrize(
    ("text", "values", "old", "new"), [each[1:] for each in _CASES], ids=[each[0] for each in _CASES]
)
def test_an_update_returns_the_updated_paths(
    client: DynamoDBClient,
    tables: Tables,
    text: str,
    values: dict[str, Any],
    old: dict[str, Any] | None,
    new: dict[str, Any] | None,
) -> None:
    """UPDATED_OLD and UPDATED_NEW return the updated paths alone, inside their containers."""
    table = tables()
    put(client, table, _OLD)
    before = _update(client, table, text, values, "UPDATED_OLD")
    put(client, table, _OLD)

    after = _update(client, table, text, values, "UPDATED_NEW")

    assert (before, after) == (old, new)


def test_an_update_returns_whole_items(client: DynamoDBClient, tables: Tables) -> None:
    """ALL_OLD and ALL_NEW return the whole item before and after."""
    table = tables()
    put(client, table, _OLD)

    before = _update(client, table, "SET a = :v", {":v": s("new")}, "ALL_OLD")
    after = _update(client, table, "SET a = :v", {":v": s("newer")}, "ALL_NEW")

    assert before == _OLD
    assert after == {**_OLD, "a": s("newer")}


def test_an_upsert_has_no_old_item(client: DynamoDBClient, tables: Tables) -> None:
    """An update that creates the item has no old values, and its key among the new."""
    table = tables()

    old = _update(client, table, "SET a = :v", {":v": s("x")}, "ALL_OLD")
    client.delete_item(TableName=table, Key=_KEY)
    touched_old = _update(client, table, "SET a = :v", {":v": s("x")}, "UPDATED_OLD")
    client.delete_item(TableName=table, Key=_KEY)
    touched = _update(client, table, "SET a = :v", {":v": s("x")}, "UPDATED_NEW")
    client.delete_item(TableName=table, Key=_KEY)
    new = _update(client, table, "SET a = :v", {":v": s("x")}, "ALL_NEW")

    assert (old, touched_old) == (None, None)
    assert touched == {"a": s("x")}
    assert new == item(pk="p", a="x")


@pytest.mark.parametrize("operation", ["put_item", "update_item", "delete_item"])
@pytest.mark.parametrize("return_values", ["ALL_OLD", "NONE", None])
@pytest.mark.parametrize("exists", [True, False])
def test_the_item_that_failed_the_condition(
    client: DynamoDBClient, tables: Tables, operation: str, return_values: str | None, exists: bool
) -> None:
    """The error has the item if ALL_OLD is requested and the item exists."""
    table = tables()
    if exists:
        put(client, table, _OLD)
    target = {"Item": item(pk="p", b="new")} if operation == "put_item" else {"Key": _KEY}
    more = {} if return_values is None else {"ReturnValuesOnConditionCheckFailure": return_values}

    error = refused(
        getattr(client, operation),
        TableName=table,
        **target,
        ConditionExpression="attribute_exists(nobody)",
        **more,
    )

    assert (error.code, error.message) == (
        "ConditionalCheckFailedException",
        "The conditional request failed",
    )
    assert error.response.get("Item") == (_OLD if exists and return_values == "ALL_OLD" else None)
    assert get(client, table, pk="p") == (_OLD if exists else None)
