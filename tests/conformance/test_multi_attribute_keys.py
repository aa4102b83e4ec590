"""Indexes whose key has several attributes: up to four hash and four range."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.requests import column, definitions, index, item, items_of, n, put, refused, s, settle

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]

_KEYS = "h1 h2:N / r1 r2:N r3"
_HASH = "h1 = :h1 AND h2 = :h2"
_VALUES = {":h1": s("A"), ":h2": n(1)}
_GRID = [
    item(pk=f"{h1}{h2}{r1}{r2}{r3}", h1=h1, h2=h2, r1=r1, r2=r2, r3=r3)
    for h1, h2, r1, r2, r3 in product("AB", (1, 2), "ab", (9, 10), "xy")
]


@pytest.fixture
def grid(client: DynamoDBClient, tables: Tables) -> str:
    """A table with an index of two hash and three range attributes, and every combination in it."""
    table = tables(gsi={"multi": _KEYS})
    put(client, table, *_GRID)
    return table


def _query(client: DynamoDBClient, table: str, text: str, **more: Any) -> list[str]:
    values = more.pop("values", {})
    found = items_of(
        client.query,
        TableName=table,
        IndexName="multi",
        KeyConditionExpression=text,
        ExpressionAttributeValues={**_VALUES, **values},
        **more,
    )
    return column(found, "pk")


def test_the_schema_is_described_as_created(client: DynamoDBClient, grid: str) -> None:
    """DescribeTable returns the flat schema in its order."""
    (found,) = client.describe_table(TableName=grid)["Table"]["GlobalSecondaryIndexes"]

    assert [(each["AttributeName"], each["KeyType"]) for each in found["KeySchema"]] == [
        ("h1", "HASH"),
        ("h2", "HASH"),
        ("r1", "RANGE"),
        ("r2", "RANGE"),
        ("r3", "RANGE"),
    ]


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_a_partition_sorts_by_its_range_attributes_in_turn(
    client: DynamoDBClient, grid: str, limit: int, forward: bool
) -> None:
    """One tuple of hash values is one collection, sorted by each range attribute's own type."""
    found = _query(client, grid, _HASH, Limit=limit, ScanIndexForward=forward)

    expected = [f"A1{r1}{r2}{r3}" for r1, r2, r3 in product("ab", (9, 10), "xy")]
    assert found == (expected if forward else expected[::-1])


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("r1 = :a", {":a": s("a")}, ["A1a9x", "A1a9y", "A1a10x", "A1a10y"]),
        ("r1 > :a", {":a": s("a")}, ["A1b9x", "A1b9y", "A1b10x", "A1b10y"]),
        ("begins_with(r1, :a)", {":a": s("b")}, ["A1b9x", "A1b9y", "A1b10x", "A1b10y"]),
        ("r1 = :a AND r2 = :b", {":a": s("a"), ":b": n(10)}, ["A1a10x", "A1a10y"]),
        ("r1 = :a AND r2 < :b", {":a": s("b"), ":b": n(10)}, ["A1b9x", "A1b9y"]),
        ("r1 = :a AND r2 BETWEEN :b AND :c", {":a": s("b"), ":b": n(10), ":c": n(99)}, ["A1b10x", "A1b10y"]),
        ("r1 = :a AND r2 = :b AND r3 >= :c", {":a": s("b"), ":b": n(9), ":c": s("y")}, ["A1b9y"]),
        ("r1 = :a AND r2 = :b AND r3 = :c", {":a": s("b"), ":b": n(9), ":c": s("x")}, ["A1b9x"]),
        ("r1 = :a AND r2 = :b AND begins_with(r3, :c)", {":a": s("b"), ":b": n(9), ":c": s("z")}, []),
    ],
)
def test_conditions_on_a_prefix_of_the_range(
    client: DynamoDBClient, grid: str, text: str, values: dict[str, Any], expected: list[str]
) -> None:
    """Equality on a prefix of the range attributes, and any operator on the last one named."""
    assert _query(client, grid, f"{_HASH} AND {text}", values=values) == expected
    assert (
        _query(client, grid, f"{_HASH} AND {text}", values=values, ScanIndexForward=False) == expected[::-1]
    )


def test_the_order_of_clauses_does_not_matter(client: DynamoDBClient, grid: str) -> None:
    """Clauses are matched to the schema by name, not by their place in the text."""
    values = {":a": s("a"), ":b": n(9)}

    found = _query(client, grid, "r2 <= :b AND h2 = :h2 AND r1 = :a AND h1 = :h1", values=values)

    assert found == ["A1a9x", "A1a9y"]


@pytest.mark.parametrize("missing", ["h1", "h2", "r1", "r2", "r3"])
def test_an_item_without_one_attribute_is_not_indexed(
    client: DynamoDBClient, tables: Tables, missing: str
) -> None:
    """Membership needs every attribute of the key."""
    table = tables(gsi={"multi": _KEYS})
    whole = _GRID[0]

    put(client, table, {name: value for name, value in whole.items() if name != missing})
    before = client.scan(TableName=table, IndexName="multi")["Count"]
    put(client, table, whole)

    assert (before, client.scan(TableName=table, IndexName="multi")["Count"]) == (0, 1)


def test_hash_tuples_do_not_run_together(client: DynamoDBClient, tables: Tables) -> None:
    """("ab", "c") and ("a", "bc") are two collections."""
    table = tables(gsi={"multi": "h1 h2 / r1"})
    pairs = [("ab", "c"), ("a", "bc"), ("a\x00", "bc"), ("a", "\x00bc")]
    put(client, table, *(item(pk=f"{number}", h1=a, h2=b, r1="r") for number, (a, b) in enumerate(pairs)))

    found = [
        _query(client, table, "h1 = :h1 AND h2 = :h2", values={":h1": s(a), ":h2": s(b)}) for a, b in pairs
    ]

    assert found == [["0"], ["1"], ["2"], ["3"]]


def test_the_last_key_has_every_attribute(client: DynamoDBClient, grid: str) -> None:
    """LastEvaluatedKey holds the table's key and each attribute of the index's."""
    request: Any = {
        "TableName": grid,
        "IndexName": "multi",
        "KeyConditionExpression": _HASH,
        "ExpressionAttributeValues": _VALUES,
        "Limit": 2,
    }

    page = client.query(**request)
    short = {name: value for name, value in page["LastEvaluatedKey"].items() if name != "r2"}
    error = refused(client.query, **request, ExclusiveStartKey=short)

    assert set(page["LastEvaluatedKey"]) == {"pk", "h1", "h2", "r1", "r2", "r3"}
    assert error.message == "The provided starting key is invalid"


def test_the_widest_key(client: DynamoDBClient, tables: Tables) -> None:
    """Four hash and four range attributes, of all three types, one of them the table's own."""
    table = tables(gsi={"multi": "h1 h2:N h3:B pk / r1 r2:N r3:B r4"})
    row: Any = {
        **item(pk="p", h1="h", h2=2, r1="r", r2=3, r4="last"),
        "h3": {"B": b"\x00\xff"},
        "r3": {"B": b"\x01"},
    }
    put(client, table, row)

    found = client.query(
        TableName=table,
        IndexName="multi",
        KeyConditionExpression=(
            "h1 = :a AND h2 = :b AND h3 = :c AND pk = :d AND r1 = :e AND r2 = :f AND r3 = :g AND r4 > :h"
        ),
        ExpressionAttributeValues={
            ":a": s("h"),
            ":b": n(2),
            ":c": {"B": b"\x00\xff"},
            ":d": s("p"),
            ":e": s("r"),
            ":f": n(3),
            ":g": {"B": b"\x01"},
            ":h": s("a"),
        },
    )

    assert found["Items"] == [row]


def test_hash_attributes_alone(client: DynamoDBClient, tables: Tables) -> None:
    """An index may have several hash attributes and no range attribute."""
    table = tables(gsi={"multi": "h1 h2:N / "})
    put(client, table, item(pk="a", h1="A", h2=1), item(pk="b", h1="A", h2=2), item(pk="c", h1="A", h2=1))

    assert sorted(_query(client, table, _HASH, Limit=1)) == ["a", "c"]


def test_an_attribute_of_the_wrong_type_refuses_the_write(client: DynamoDBClient, tables: Tables) -> None:
    """Each attribute of the key must have its own type, and may not be empty."""
    table = tables(gsi={"multi": _KEYS})

    typed = refused(client.put_item, TableName=table, Item={**_GRID[0], "r2": s("x")})
    empty = refused(client.put_item, TableName=table, Item={**_GRID[0], "r3": s("")})

    assert typed.message == (
        "One or more parameter values were invalid: "
        "Type mismatch for Index Key r2 Expected: N Actual: S IndexName: multi"
    )
    assert empty.message.endswith("cannot contain an empty string value. IndexName: multi, IndexKey: r3")


def test_a_change_of_any_attribute_moves_the_entry(client: DynamoDBClient, grid: str) -> None:
    """The entry follows each attribute of its key."""
    for name, value in (("h2", n(7)), ("r1", s("z")), ("r3", s("z"))):
        client.update_item(
            TableName=grid,
            Key=item(pk="A1a9x"),
            UpdateExpression=f"SET {name} = :v",
            ExpressionAttributeValues={":v": value},
        )

    old = _query(client, grid, _HASH)
    new = _query(client, grid, f"{_HASH} AND r1 = :r1", values={":h2": n(7), ":r1": s("z")})

    assert "A1a9x" not in old
    assert new == ["A1a9x"]
    assert client.scan(TableName=grid, IndexName="multi")["Count"] == len(_GRID)


def test_consistent_reads_are_refused(client: DynamoDBClient, grid: str) -> None:
    """It is a global index like others."""
    error = refused(client.scan, TableName=grid, IndexName="multi", ConsistentRead=True)

    assert error.message == "Consistent reads are not supported on global secondary indexes"


def test_such_an_index_may_be_added_later(client: DynamoDBClient, tables: Tables) -> None:
    """UpdateTable fills an index of several attributes from the stored items."""
    table = tables()
    put(client, table, *_GRID)
    words: Any = definitions(_KEYS)
    change: Any = {"Create": index("multi", _KEYS)}

    client.update_table(TableName=table, AttributeDefinitions=words, GlobalSecondaryIndexUpdates=[change])
    settle(client, table)

    assert _query(client, table, _HASH) == [f"A1{r1}{r2}{r3}" for r1, r2, r3 in product("ab", (9, 10), "xy")]
