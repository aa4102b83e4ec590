"""Conditions: the result of each operator and function, as a condition and as a filter."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.requests import get, item, n, put, refused, s

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]

_ITEM: dict[str, Any] = {
    **item(pk="p", txt="hello", num=5, big=100, blank=""),
    "bin": {"B": b"\x01\xff"},
    "t": {"BOOL": True},
    "nul": {"NULL": True},
    "li": {"L": [s("a"), n(1), {"L": [n(2)]}]},
    "m": {"M": {"x": n(1), "y": s("in")}},
    "ss": {"SS": ["a", "b"]},
    "ns": {"NS": ["1", "2.5"]},
    "bs": {"BS": [b"\x00", b"\xff"]},
    "smile": {"S": "🙂"},
}

_VALUES: dict[str, Any] = {
    ":hello": s("hello"),
    ":hel": s("hel"),
    ":in": s("in"),
    ":lo": s("lo"),
    ":a": s("a"),
    ":z": s("z"),
    ":five": n("5.0"),
    ":one": n(1),
    ":two": n(2),
    ":three": n(3),
    ":nine": n(9),
    ":zero": n(0),
    ":text5": s("5"),
    ":bin": {"B": b"\x01\xff"},
    ":byte": {"B": b"\x01"},
    ":high": {"B": b"\x80"},
    ":true": {"BOOL": True},
    ":false": {"BOOL": False},
    ":null": {"NULL": True},
    ":list": {"L": [s("a"), n(1), {"L": [n(2)]}]},
    ":other_list": {"L": [n(1), s("a"), {"L": [n(2)]}]},
    ":inner": {"L": [n("2.0")]},
    ":map": {"M": {"y": s("in"), "x": n("1.00")}},
    ":ss": {"SS": ["b", "a"]},
    ":ss1": {"SS": ["a"]},
    ":ns": {"NS": ["2.50", "1"]},
    ":S": s("S"),
    ":N": s("N"),
    ":SS": s("SS"),
    ":M": s("M"),
    ":L": s("L"),
    ":NULL": s("NULL"),
    ":BOOL": s("BOOL"),
    ":B": s("B"),
}

_TRUE = """
txt = :hello
num = :five
:five = num
bin = :bin
t = :true
nul = :null
li = :list
m = :map
ss = :ss
ns = :ns
m.x = :one
li[1] = :one
li[2][0] = :two
txt <> :hel
num <> :text5
nobody <> :one
num <> txt
num < big
num <= :five
big > num
num >= :five
num < :nine
txt > :hel
txt < :z
bin < :high
bin > :byte
num BETWEEN :one AND :nine
num BETWEEN :five AND :five
txt BETWEEN :hel AND :z
:two BETWEEN :one AND num
num IN (:one, :five)
txt IN (:hello)
nobody <> nobody2
attribute_exists(txt)
attribute_exists(m.x)
attribute_exists(li[2][0])
attribute_exists(nul)
attribute_exists(blank)
attribute_not_exists(nobody)
attribute_not_exists(m.nobody)
attribute_not_exists(li[3])
attribute_not_exists(txt.x)
attribute_type(txt, :S)
attribute_type(num, :N)
attribute_type(ss, :SS)
attribute_type(m, :M)
attribute_type(li, :L)
attribute_type(nul, :NULL)
attribute_type(t, :BOOL)
attribute_type(bin, :B)
begins_with(txt, :hel)
begins_with(txt, :hello)
begins_with(bin, :byte)
contains(txt, :lo)
contains(ss, :a)
contains(ns, :one)
contains(li, :a)
contains(li, :inner)
size(txt) = :five
size(blank) = :zero
size(bin) = :two
size(li) = :three
size(m) = :two
size(ss) = :two
size(smile) = :two
size(txt) > size(bin)
NOT num = :one
NOT nobody = :one
NOT (num = :one OR num = :two)
num = :one OR num = :five
num = :five AND txt = :hello
num = :one AND num = :two OR num = :five
num = :five OR num = :one AND num = :two
NOT num = :one AND NOT num = :two
(num = :one OR num = :five) AND txt = :hello
num = :five and txt = :hello
not num = :one
num between :one and :nine
num in (:five)
contains(:hello, txt)
begins_with(:hello, txt)
size(:hello) = :five
:hello IN (txt, num)
num IN (big, m.x, :five)
num BETWEEN m.x AND big
(num) = :five
num=:five AND(txt=:hello)
NOT(num=:one)
NOT NOT num = :five
contains(li[2], :two)
contains(m.y, :in)
begins_with(m.y, :in)
attribute_exists(li[0]) AND (attribute_exists(m.y) OR attribute_exists(nobody))
size(m.y) = size(bin)
t <> :false
li <> :other_list
""".strip().splitlines()

_FALSE = """
txt = :hel
num = :text5
nobody = :one
li = :other_list
ss = :ss1
num < :text5
num > :text5
t = :false
nobody < :one
nobody BETWEEN :one AND :nine
nobody IN (:one)
nobody = nobody2
num BETWEEN :nine AND big
num IN (:one, :text5)
attribute_exists(nobody)
attribute_exists(m.nobody)
attribute_exists(li[3])
attribute_exists(txt[0])
attribute_not_exists(txt)
attribute_type(txt, :N)
attribute_type(nobody, :S)
begins_with(txt, :lo)
begins_with(num, :hel)
begins_with(nobody, :hel)
contains(txt, :z)
contains(ss, :z)
contains(ss, :one)
contains(li, :two)
contains(num, :one)
contains(nobody, :a)
size(num) = :one
size(t) = :one
size(nobody) = :zero
NOT num = :five
NOT nobody <> :one
num = :one OR num = :two AND num = :five
NOT (num = :five)
nobody BETWEEN nobody2 AND nobody3
contains(:hello, num)
t < t2
num BETWEEN txt AND big
li[0] = li[1]
num <> :five
m.x.y = :one
""".strip().splitlines()


def _values(text: str) -> dict[str, Any]:
    words = text.replace("=", " ").replace("(", " ").replace(")", " ").replace(",", " ").split()
    return {word: _VALUES[word] for word in words if word.startswith(":")}


def _request(text: str, field: str) -> dict[str, Any]:
    values = _values(text)
    return {field: text, **({"ExpressionAttributeValues": values} if values else {})}


@pytest.mark.parametrize("text", _TRUE)
def test_a_condition_that_holds(client: DynamoDBClient, tables: Tables, text: str) -> None:
    """A condition that holds lets the write through, and as a filter lets the item through."""
    table = tables()
    client.put_item(TableName=table, Item=_ITEM)

    found = client.scan(TableName=table, **_request(text, "FilterExpression"))
    client.delete_item(TableName=table, Key=item(pk="p"), **_request(text, "ConditionExpression"))

    assert found["Count"] == 1
    assert get(client, table, pk="p") is None


@pytest.mark.parametrize("text", _FALSE)
def test_a_condition_that_does_not_hold(client: DynamoDBClient, tables: Tables, text: str) -> None:
    """A condition that does not hold refuses the write, and as a filter leaves the item out."""
    table = tables()
    client.put_item(TableName=table, Item=_ITEM)

    found = client.scan(TableName=table, **_request(text, "FilterExpression"))
    error = refused(
        client.delete_item, TableName=table, Key=item(pk="p"), **_request(text, "ConditionExpression")
    )

    assert (found["Count"], found["ScannedCount"]) == (0, 1)
    assert error.code == "ConditionalCheckFailedException"
    assert get(client, table, pk="p") is not None


def test_a_condition_sees_no_item(client: DynamoDBClient, tables: Tables) -> None:
    """For a missing item only tests of absence or inequality hold."""
    table = tables()

    client.put_item(TableName=table, Item=item(pk="p", v=1), ConditionExpression="attribute_not_exists(pk)")
    error = refused(
        client.put_item,
        TableName=table,
        Item=item(pk="p", v=2),
        ConditionExpression="attribute_not_exists(pk)",
    )
    client.delete_item(
        TableName=table,
        Key=item(pk="q"),
        ConditionExpression="v <> :v",
        ExpressionAttributeValues={":v": n(1)},
    )

    assert error.code == "ConditionalCheckFailedException"
    assert get(client, table, pk="p") == item(pk="p", v=1)


def test_a_condition_may_name_the_key(client: DynamoDBClient, tables: Tables) -> None:
    """The key's attributes are attributes of the item like others."""
    table = tables("pk sk:N")
    put(client, table, item(pk="p", sk=1))

    client.put_item(
        TableName=table,
        Item=item(pk="p", sk=1, v="x"),
        ConditionExpression="pk = :p AND sk BETWEEN :a AND :b",
        ExpressionAttributeValues={":p": s("p"), ":a": n(0), ":b": n(2)},
    )

    assert get(client, table, pk="p", sk=1) == item(pk="p", sk=1, v="x")


def test_in_takes_many_operands(client: DynamoDBClient, tables: Tables) -> None:
    """IN takes ninety-nine values on every reading of the limit, and no two hundred."""
    table = tables()
    put(client, table, item(pk="p", v=98))
    values = {f":v{number}": n(number) for number in range(200)}

    found = client.scan(
        TableName=table,
        FilterExpression=f"v IN ({', '.join(list(values)[:99])})",
        ExpressionAttributeValues={name: values[name] for name in list(values)[:99]},
    )
    error = refused(
        client.scan,
        TableName=table,
        FilterExpression=f"v IN ({', '.join(values)})",
        ExpressionAttributeValues=values,
    )

    assert found["Count"] == 1
    assert error.code == "ValidationException"


def test_optimistic_locking(client: DynamoDBClient, tables: Tables) -> None:
    """Of two writers of the same version, the second is refused."""
    table = tables()
    put(client, table, item(pk="p", version=1))
    change: Any = {
        "TableName": table,
        "Key": item(pk="p"),
        "UpdateExpression": "SET version = version + :one",
        "ConditionExpression": "version = :seen",
        "ExpressionAttributeValues": {":one": n(1), ":seen": n(1)},
    }

    client.update_item(**change)
    error = refused(client.update_item, **change)

    assert error.code == "ConditionalCheckFailedException"
    assert get(client, table, pk="p") == item(pk="p", version=2)
