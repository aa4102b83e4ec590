"""Query: one partition, in order, in pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.requests import column, item, items_of, n, pages, put, s

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]
_P = {":p": s("p")}


def _lay(client: DynamoDBClient, table: str, values: list[dict[str, Any]]) -> None:
    """Put an item for each sort key, in two partitions."""
    put(client, table, *({"pk": s(hash), "sk": value} for value in values for hash in "pq"))


def _keys(client: DynamoDBClient, table: str, text: str, values: dict[str, Any], **more: Any) -> list[Any]:
    found = items_of(
        client.query,
        TableName=table,
        KeyConditionExpression=text,
        ExpressionAttributeValues={**_P, **values},
        **more,
    )
    assert {each["pk"]["S"] for each in found} <= {"p"}
    return [next(iter(each["sk"].values())) for each in found]


_STRINGS = ["", "A", "B", "a", "a\x00", "aa", "ab", "b", "z", "ä", "é", "\uffff", "\U00010000"]
_NUMBERS = [
    "-9.9999999999999999999999999999999999999E+125",
    "-1E100",
    "-1000",
    "-100.5",
    "-100",
    "-2",
    "-1.5",
    "-1",
    "-0.001",
    "-1E-130",
    "0",
    "1E-130",
    "0.001",
    "0.5",
    "1",
    "1.5",
    "2",
    "9",
    "10",
    "12345678901234567890123456789012345677",
    "12345678901234567890123456789012345678",
    "1E100",
    "9.9999999999999999999999999999999999999E+125",
]
_BINARIES = [
    b"\x00",
    b"\x00\x00",
    b"\x00\x01",
    b"\x01",
    b"\x7f",
    b"\x80",
    b"\xfe",
    b"\xff",
    b"\xff\x00",
    b"\xff\xff",
]


def test_strings_sort_by_their_utf8_bytes(client: DynamoDBClient, tables: Tables) -> None:
    """Strings come in the order of their UTF-8 bytes, which is no dictionary's."""
    table = tables("pk sk")
    words = _STRINGS[1:]
    _lay(client, table, [s(word) for word in reversed(words)])

    found = _keys(client, table, "pk = :p", {})

    assert found == sorted(words, key=lambda word: word.encode())
    assert found == words


def test_numbers_sort_by_their_value(client: DynamoDBClient, tables: Tables) -> None:
    """Numbers come in numeric order over their whole range."""
    table = tables("pk sk:N")
    _lay(client, table, [n(number) for number in reversed(_NUMBERS)])

    found = _keys(client, table, "pk = :p", {})

    assert [float(number) for number in found] == [float(number) for number in _NUMBERS]
    assert found[-3] == "12345678901234567890123456789012345678"


def test_binaries_sort_by_unsigned_bytes(client: DynamoDBClient, tables: Tables) -> None:
    """Binaries come in the order of their unsigned bytes, the shorter first."""
    table = tables("pk sk:B")
    _lay(client, table, [{"B": value} for value in reversed(_BINARIES)])

    found = _keys(client, table, "pk = :p", {})

    assert found == _BINARIES


_CASES: list[tuple[str, dict[str, Any], Callable[[int], bool]]] = [
    ("sk = :a", {":a": n(4)}, lambda v: v == 4),
    ("sk < :a", {":a": n(4)}, lambda v: v < 4),
    ("sk <= :a", {":a": n(4)}, lambda v: v <= 4),
    ("sk > :a", {":a": n(4)}, lambda v: v > 4),
    ("sk >= :a", {":a": n(4)}, lambda v: v >= 4),
    (":a < sk", {":a": n(4)}, lambda v: v > 4),
    ("sk BETWEEN :a AND :b", {":a": n(2), ":b": n(4)}, lambda v: 2 <= v <= 4),
    ("sk BETWEEN :a AND :b", {":a": n("1.5"), ":b": n("1.6")}, lambda v: False),
    ("sk > :a", {":a": n("-1E10")}, lambda v: True),
    ("(sk > :a)", {":a": n(4)}, lambda v: v > 4),
]


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [None, 1, 3])
@pytest.mark.parametrize(
    ("text", "values", "rule"), _CASES, ids=[f"{i} {c[0]}" for i, c in enumerate(_CASES)]
)
def test_number_ranges(
    client: DynamoDBClient,
    tables: Tables,
    text: str,
    values: dict[str, Any],
    rule: Callable[[int], bool],
    limit: int | None,
    forward: bool,
) -> None:
    """A range holds on every page, in both directions."""
    table = tables("pk sk:N")
    numbers = list(range(-3, 8))
    _lay(client, table, [n(number) for number in numbers])
    more: Any = {"Limit": limit} if limit and text[3:] != "= :a" else {}

    found = _keys(client, table, f"pk = :p AND {text}", values, ScanIndexForward=forward, **more)

    expected = [str(number) for number in numbers if rule(number)]
    assert found == (expected if forward else expected[::-1])


@pytest.mark.parametrize(
    ("kind", "values", "prefix", "expected"),
    [
        ("S", ["a", "ab", "abc", "b", "ac"], "ab", ["ab", "abc"]),
        ("S", ["a", "\U0010ffff", "\U0010ffffa"], "\U0010ffff", ["\U0010ffff", "\U0010ffffa"]),
        ("S", ["a", "b"], "x", []),
        ("B", [b"\xfe", b"\xff", b"\xff\xff", b"\xff\xff\xff"], b"\xff\xff", [b"\xff\xff", b"\xff\xff\xff"]),
        ("B", [b"\x00", b"\x00\x00", b"\x01"], b"\x00", [b"\x00", b"\x00\x00"]),
    ],
)
def test_prefixes(
    client: DynamoDBClient, tables: Tables, kind: str, values: list[Any], prefix: Any, expected: list[Any]
) -> None:
    """begins_with returns values with the prefix, including the highest byte."""
    table = tables(f"pk sk:{kind}")
    _lay(client, table, [{kind: value} for value in values])

    found = _keys(client, table, "pk = :p AND begins_with(sk, :x)", {":x": {kind: prefix}})

    assert found == expected


def test_the_order_of_clauses_does_not_matter(client: DynamoDBClient, tables: Tables) -> None:
    """The sort condition may come first, and a value on the left."""
    table = tables("pk sk:N")
    _lay(client, table, [n(number) for number in range(5)])

    found = _keys(client, table, ":a <= sk AND :p = pk", {":a": n(3)})

    assert found == ["3", "4"]


def test_limit_counts_before_the_filter(client: DynamoDBClient, tables: Tables) -> None:
    """A page of five items may hold none; where it ended is reported all the same."""
    table = tables("pk sk:N")
    put(client, table, *(item(pk="p", sk=number, odd=number % 2) for number in range(20)))
    request: Any = {
        "TableName": table,
        "KeyConditionExpression": "pk = :p",
        "FilterExpression": "odd = :v",
        "ExpressionAttributeValues": {**_P, ":v": n(9)},
        "Limit": 5,
    }

    first = client.query(**request)
    request["ExpressionAttributeValues"][":v"] = n(1)
    all_pages = pages(client.query, **request)

    assert (first["Count"], first["ScannedCount"], first["Items"]) == (0, 5, [])
    assert first["LastEvaluatedKey"] == item(pk="p", sk=4)
    assert sum(page["Count"] for page in all_pages) == 10
    assert sum(page["ScannedCount"] for page in all_pages) == 20


def test_the_last_key_is_a_key(client: DynamoDBClient, tables: Tables) -> None:
    """LastEvaluatedKey holds the key and nothing else, and is absent at the end."""
    table = tables("pk sk:N")
    put(client, table, *(item(pk="p", sk=number, a="x") for number in range(3)))
    request: Any = {"TableName": table, "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": _P}

    part = client.query(**request, Limit=2)
    whole = client.query(**request)

    assert part["LastEvaluatedKey"] == item(pk="p", sk=1)
    assert "LastEvaluatedKey" not in whole


def test_a_start_need_not_exist(client: DynamoDBClient, tables: Tables) -> None:
    """A query continues after a key, whether or not its item exists."""
    table = tables("pk sk:N")
    put(client, table, *(item(pk="p", sk=number) for number in (1, 3, 5)))
    request: Any = {"TableName": table, "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": _P}

    after = client.query(**request, ExclusiveStartKey=item(pk="p", sk=3))
    between = client.query(**request, ExclusiveStartKey=item(pk="p", sk=2))
    backwards = client.query(**request, ExclusiveStartKey=item(pk="p", sk=4), ScanIndexForward=False)

    assert column(after["Items"], "sk") == ["5"]
    assert column(between["Items"], "sk") == ["3", "5"]
    assert column(backwards["Items"], "sk") == ["3", "1"]


def test_a_page_survives_changes(client: DynamoDBClient, tables: Tables) -> None:
    """Between pages items may come and go; the rest is read once each."""
    table = tables("pk sk:N")
    put(client, table, *(item(pk="p", sk=number) for number in range(0, 10, 2)))
    request: Any = {"TableName": table, "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": _P}
    first = client.query(**request, Limit=2)

    client.delete_item(TableName=table, Key=item(pk="p", sk=2))
    put(client, table, item(pk="p", sk=1), item(pk="p", sk=7))
    rest = client.query(**request, ExclusiveStartKey=first["LastEvaluatedKey"])

    assert column(first["Items"], "sk") == ["0", "2"]
    assert column(rest["Items"], "sk") == ["4", "6", "7", "8"]


def test_a_hash_table_is_queried(client: DynamoDBClient, tables: Tables) -> None:
    """A table without sort key answers with one item or none."""
    table = tables()
    put(client, table, item(pk="p", a="x"))
    request: Any = {"TableName": table, "KeyConditionExpression": "pk = :p"}

    found = client.query(**request, ExpressionAttributeValues=_P)
    nothing = client.query(**request, ExpressionAttributeValues={":p": s("q")})

    assert found["Items"] == [item(pk="p", a="x")]
    assert (nothing["Items"], nothing["Count"], nothing["ScannedCount"]) == ([], 0, 0)


@pytest.mark.parametrize("select", ["COUNT", "ALL_ATTRIBUTES", "SPECIFIC_ATTRIBUTES"])
def test_select(client: DynamoDBClient, tables: Tables, select: Any) -> None:
    """COUNT returns no items; the others return whole items or projected attributes."""
    table = tables("pk sk:N")
    put(client, table, *(item(pk="p", sk=number, a="x") for number in range(3)))
    more: Any = {"ProjectionExpression": "sk"} if select == "SPECIFIC_ATTRIBUTES" else {}

    found = client.query(
        TableName=table,
        KeyConditionExpression="pk = :p",
        ExpressionAttributeValues=_P,
        Select=select,
        **more,
    )

    assert (found["Count"], found["ScannedCount"]) == (3, 3)
    if select == "COUNT":
        assert "Items" not in found
    else:
        whole = item(pk="p", sk=0, a="x") if select == "ALL_ATTRIBUTES" else item(sk=0)
        assert found["Items"][0] == whole


def test_a_projection_of_nested_paths(client: DynamoDBClient, tables: Tables) -> None:
    """A query projects document paths like a get."""
    table = tables("pk sk:N")
    put(client, table, {**item(pk="p", sk=1), "m": {"M": {"x": n(1), "y": n(2)}}}, item(pk="p", sk=2))

    found = client.query(
        TableName=table,
        KeyConditionExpression="pk = :p",
        ProjectionExpression="#m.x",
        ExpressionAttributeNames={"#m": "m"},
        ExpressionAttributeValues=_P,
    )

    assert found["Items"] == [{"m": {"M": {"x": n(1)}}}, {}]


def test_a_placeholder_may_name_a_key(client: DynamoDBClient, tables: Tables) -> None:
    """A key attribute may be a placeholder, which a reserved word needs."""
    table = tables("name date:N")
    put(client, table, item(name="p", date=1))

    found = client.query(
        TableName=table,
        KeyConditionExpression="#n = :p AND #d >= :d",
        ExpressionAttributeNames={"#n": "name", "#d": "date"},
        ExpressionAttributeValues={**_P, ":d": n(1)},
    )

    assert found["Count"] == 1
