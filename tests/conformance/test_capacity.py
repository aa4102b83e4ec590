"""Consumed capacity of each operation, in total and by index."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.requests import get, item, n, put, s

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]
_KEY = item(pk="p")


def _sized(size: int, **attributes: Any) -> dict[str, Any]:
    """Return an item with key `p` of exactly this many bytes; the attributes are strings."""
    row = item(**{"pk": "p", **attributes})
    used = sum(len(name) + len(value["S"]) for name, value in row.items()) + 1
    return {**row, "v": s("x" * (size - used))}


def _write(client: DynamoDBClient, table: str, row: dict[str, Any], how: str = "TOTAL") -> Any:
    answer: Any = client.put_item(TableName=table, Item=row, ReturnConsumedCapacity=how)  # type: ignore[arg-type]
    return answer["ConsumedCapacity"]


def test_nothing_is_reported_unasked(client: DynamoDBClient, tables: Tables) -> None:
    """NONE is the default, and has no ConsumedCapacity at all."""
    table = tables()

    silent: Any = client.put_item(TableName=table, Item=_KEY)
    none: Any = client.get_item(TableName=table, Key=_KEY, ReturnConsumedCapacity="NONE")

    assert "ConsumedCapacity" not in silent
    assert "ConsumedCapacity" not in none


@pytest.mark.parametrize(
    ("size", "units"), [(4, 1), (1024, 1), (1025, 2), (2048, 2), (2049, 3), (102_400, 100)]
)
def test_a_write_costs_a_unit_for_each_kilobyte(
    client: DynamoDBClient, tables: Tables, size: int, units: int
) -> None:
    """I13 over HTTP: a put and a delete cost the item's size in KB, rounded up."""
    table = tables()
    row = _sized(size)

    written = _write(client, table, row)
    deleted = client.delete_item(TableName=table, Key=_KEY, ReturnConsumedCapacity="TOTAL")
    again = client.delete_item(TableName=table, Key=_KEY, ReturnConsumedCapacity="TOTAL")

    assert written == {"TableName": table, "CapacityUnits": units}
    assert deleted["ConsumedCapacity"]["CapacityUnits"] == units
    assert again["ConsumedCapacity"]["CapacityUnits"] == 1


def test_a_write_costs_the_larger_image(client: DynamoDBClient, tables: Tables) -> None:
    """Replacing a large item by a small one, or back, costs the large one."""
    table = tables()
    put(client, table, _sized(5 * 1024))

    smaller = _write(client, table, _KEY)
    larger = _write(client, table, _sized(3 * 1024))
    updated = client.update_item(
        TableName=table, Key=_KEY, UpdateExpression="REMOVE v", ReturnConsumedCapacity="TOTAL"
    )

    assert smaller["CapacityUnits"] == 5
    assert larger["CapacityUnits"] == 3
    assert updated["ConsumedCapacity"]["CapacityUnits"] == 3


@pytest.mark.parametrize(
    ("size", "strong"), [(4, 1), (4096, 1), (4097, 2), (8192, 2), (8193, 3), (409_600, 100)]
)
def test_a_read_costs_a_unit_for_each_four_kilobytes(
    client: DynamoDBClient, tables: Tables, size: int, strong: int
) -> None:
    """I13 over HTTP: a consistent read costs a unit for each 4 KB, an eventual one half; a projection does not reduce it."""
    table = tables()
    put(client, table, _sized(size))
    request: Any = {"TableName": table, "Key": _KEY, "ReturnConsumedCapacity": "TOTAL"}

    consistent = client.get_item(**request, ConsistentRead=True)
    eventual = client.get_item(**request)
    projected = client.get_item(**request, ProjectionExpression="pk")

    assert consistent["ConsumedCapacity"] == {"TableName": table, "CapacityUnits": strong}
    assert eventual["ConsumedCapacity"]["CapacityUnits"] == strong / 2
    assert projected["ConsumedCapacity"]["CapacityUnits"] == strong / 2


def test_a_missing_item_costs_a_read(client: DynamoDBClient, tables: Tables) -> None:
    """Looking in vain costs the least that a read can cost."""
    request: Any = {"TableName": tables(), "Key": _KEY, "ReturnConsumedCapacity": "TOTAL"}

    assert client.get_item(**request)["ConsumedCapacity"]["CapacityUnits"] == 0.5
    assert client.get_item(**request, ConsistentRead=True)["ConsumedCapacity"]["CapacityUnits"] == 1


def test_a_query_adds_before_it_rounds(client: DynamoDBClient, tables: Tables) -> None:
    """The bytes of a page are added and then rounded, whatever filter, projection or count leaves of them."""
    table = tables("pk sk:N")
    for number in range(10):
        put(client, table, {**item(pk="p", sk=number + 1), "v": s("x" * 993)})  # 3 + 4 + 994 = 1001 bytes
    query: Any = {
        "TableName": table,
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": s("p")},
        "ReturnConsumedCapacity": "TOTAL",
    }

    whole = client.query(**query)["ConsumedCapacity"]
    strong = client.query(**query, ConsistentRead=True)["ConsumedCapacity"]
    counted = client.query(**query, Select="COUNT")["ConsumedCapacity"]
    filtered = client.query(**query, FilterExpression="attribute_exists(nobody)")["ConsumedCapacity"]
    projected = client.query(**query, ProjectionExpression="sk")["ConsumedCapacity"]
    limited = client.query(**query, Limit=4)["ConsumedCapacity"]
    limited_more = client.query(**query, Limit=5)["ConsumedCapacity"]
    scanned = client.scan(TableName=table, ReturnConsumedCapacity="TOTAL")["ConsumedCapacity"]

    assert whole == {"TableName": table, "CapacityUnits": 1.5}
    assert strong["CapacityUnits"] == 3
    assert counted["CapacityUnits"] == filtered["CapacityUnits"] == projected["CapacityUnits"] == 1.5
    assert (limited["CapacityUnits"], limited_more["CapacityUnits"]) == (0.5, 1)
    assert scanned["CapacityUnits"] == 1.5


def test_an_empty_page_costs_the_least(client: DynamoDBClient, tables: Tables) -> None:
    """An empty query or scan costs half a unit, or one if consistent."""
    table = tables("pk sk")
    query: Any = {
        "TableName": table,
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": s("p")},
        "ReturnConsumedCapacity": "TOTAL",
    }

    assert client.query(**query)["ConsumedCapacity"]["CapacityUnits"] == 0.5
    assert client.query(**query, ConsistentRead=True)["ConsumedCapacity"]["CapacityUnits"] == 1
    scan: Any = {"TableName": table, "ReturnConsumedCapacity": "TOTAL"}
    assert client.scan(**scan)["ConsumedCapacity"]["CapacityUnits"] == 0.5


def test_batches_round_each_item(client: DynamoDBClient, tables: Tables) -> None:
    """A batch costs what its items cost one by one, reported per table."""
    one, two = tables(), tables()
    rows = [_sized(1500), item(pk="q"), item(pk="r")]

    written = client.batch_write_item(
        RequestItems={
            one: [{"PutRequest": {"Item": row}} for row in rows],
            two: [{"DeleteRequest": {"Key": item(pk="nobody")}}],
        },
        ReturnConsumedCapacity="TOTAL",
    )["ConsumedCapacity"]
    keys = [item(pk=name) for name in "pqr"]
    read = client.batch_get_item(
        RequestItems={one: {"Keys": keys}, two: {"Keys": keys, "ConsistentRead": True}},
        ReturnConsumedCapacity="TOTAL",
    )["ConsumedCapacity"]

    assert {each["TableName"]: each["CapacityUnits"] for each in written} == {one: 4, two: 1}
    assert {each["TableName"]: each["CapacityUnits"] for each in read} == {one: 1.5, two: 3}


def test_the_table_is_distinguished_from_its_indexes(client: DynamoDBClient, tables: Tables) -> None:
    """INDEXES reports the units of the table and of each written index; TOTAL adds them up."""
    table = tables("pk sk", gsi={"by-a": "a", "by-b": "b | KEYS_ONLY"}, lsi={"by-l": "pk l | KEYS_ONLY"})
    row = {**item(pk="p", sk="s", a="x", b="y", l="z"), "v": s("x" * 2000)}

    result = _write(client, table, row, "INDEXES")
    client.delete_item(TableName=table, Key=item(pk="p", sk="s"))
    total = _write(client, table, row)

    assert result == {
        "TableName": table,
        "CapacityUnits": 6,
        "Table": {"CapacityUnits": 2},
        "GlobalSecondaryIndexes": {"by-a": {"CapacityUnits": 2}, "by-b": {"CapacityUnits": 1}},
        "LocalSecondaryIndexes": {"by-l": {"CapacityUnits": 1}},
    }
    assert total == {"TableName": table, "CapacityUnits": 6}


def test_without_indexes_only_the_table_is_reported(client: DynamoDBClient, tables: Tables) -> None:
    """An arm without units is absent."""
    table = tables(gsi={"by-a": "a"})

    result = _write(client, table, _KEY, "INDEXES")

    assert result == {"TableName": table, "CapacityUnits": 1, "Table": {"CapacityUnits": 1}}


_BEFORE_AFTER: list[tuple[str, dict[str, Any] | None, dict[str, Any] | None, float | None]] = [
    ("out and out", _sized(100), _sized(200), None),
    ("comes in", _sized(100), _sized(1500, a="x"), 2),
    ("comes in with its item", None, _sized(1500, a="x"), 2),
    ("goes out", _sized(2500, a="x"), _sized(100), 3),
    ("goes out with its item", _sized(2500, a="x"), None, 3),
    ("stays the same", _sized(2500, a="x"), _sized(2500, a="x"), None),
    ("changes and shrinks", _sized(2500, a="x"), _sized(1000, a="x"), 3),
    ("changes and grows", _sized(1000, a="x"), _sized(2500, a="x"), 3),
    ("moves", _sized(1500, a="x"), _sized(2500, a="y"), 5),
]


@pytest.mark.parametrize("kind", ["gsi", "lsi"])
@pytest.mark.parametrize(
    ("before", "after", "units"),
    [each[1:] for each in _BEFORE_AFTER],
    ids=[each[0] for each in _BEFORE_AFTER],
)
def test_an_index_costs_what_changes_in_it(
    client: DynamoDBClient,
    tables: Tables,
    kind: str,
    before: dict[str, Any] | None,
    after: dict[str, Any] | None,
    units: float | None,
) -> None:
    """An entry that is added, removed or changed costs its size, one that moves costs both, others nothing."""
    table = tables(gsi={"by-a": "a"}) if kind == "gsi" else tables("pk sk", lsi={"by-a": "pk a"})
    range_ = {} if kind == "gsi" else {"sk": s("s")}
    if before is not None:
        put(client, table, {**before, **range_})

    if after is None:
        result: Any = client.delete_item(
            TableName=table, Key={**_KEY, **range_}, ReturnConsumedCapacity="INDEXES"
        )["ConsumedCapacity"]
    else:
        result = _write(client, table, {**after, **range_}, "INDEXES")

    arms = result.get("GlobalSecondaryIndexes" if kind == "gsi" else "LocalSecondaryIndexes", {})
    assert arms.get("by-a", {}).get("CapacityUnits") == units
    assert result["CapacityUnits"] == result["Table"]["CapacityUnits"] + (units or 0)


def test_an_entry_is_measured_as_it_is_projected(client: DynamoDBClient, tables: Tables) -> None:
    """Writing an attribute that an index does not hold costs that index nothing."""
    table = tables(gsi={"keys": "a | KEYS_ONLY", "some": "a | b"})
    put(client, table, item(pk="p", a="x", b="b", c="c"))

    unseen = _write(client, table, item(pk="p", a="x", b="b", c="changed" * 1000), "INDEXES")
    seen = _write(client, table, item(pk="p", a="x", b="B" * 1500, c="c"), "INDEXES")

    assert "GlobalSecondaryIndexes" not in unseen
    assert seen["GlobalSecondaryIndexes"] == {"some": {"CapacityUnits": 2}}


def test_a_set_in_another_order_is_no_change(client: DynamoDBClient, tables: Tables) -> None:
    """An entry whose set is written in another order is the same entry."""
    table = tables(gsi={"by-a": "a"})
    put(client, table, {**item(pk="p", a="x"), "set": {"SS": ["a", "b", "c"]}})

    result = _write(client, table, {**item(pk="p", a="x"), "set": {"SS": ["c", "a", "b"]}}, "INDEXES")

    assert "GlobalSecondaryIndexes" not in result


def test_an_index_query_is_charged_to_the_index(client: DynamoDBClient, tables: Tables) -> None:
    """Reading a global index costs the index, by the size of its entries."""
    table = tables(gsi={"all": "a", "keys": "a | KEYS_ONLY"})
    for number in range(5):
        put(client, table, {**item(pk=f"{number}", a="x"), "v": s("x" * 2000)})
    query: Any = {
        "TableName": table,
        "KeyConditionExpression": "a = :a",
        "ExpressionAttributeValues": {":a": s("x")},
        "ReturnConsumedCapacity": "INDEXES",
    }

    whole = client.query(**query, IndexName="all")["ConsumedCapacity"]
    keys = client.query(**query, IndexName="keys")["ConsumedCapacity"]
    scanned = client.scan(TableName=table, IndexName="keys", ReturnConsumedCapacity="INDEXES")

    assert whole == {
        "TableName": table,
        "CapacityUnits": 1.5,
        "Table": {"CapacityUnits": 0},
        "GlobalSecondaryIndexes": {"all": {"CapacityUnits": 1.5}},
    }
    assert keys["CapacityUnits"] == 0.5
    assert scanned["ConsumedCapacity"]["GlobalSecondaryIndexes"] == {"keys": {"CapacityUnits": 0.5}}


@pytest.mark.parametrize(("consistent", "factor"), [(False, 0.5), (True, 1)])
def test_a_local_index_that_fetches_pays_for_each_item(
    client: DynamoDBClient, tables: Tables, consistent: bool, factor: float
) -> None:
    """Attributes outside a local index are fetched item by item, each rounded up."""
    table = tables("pk sk", lsi={"by-l": "pk l | KEYS_ONLY"})
    for number in range(3):
        put(client, table, {**item(pk="p", sk=f"{number}", l="x"), "v": s("x" * 5000)})

    result = client.query(
        TableName=table,
        IndexName="by-l",
        KeyConditionExpression="pk = :p",
        ExpressionAttributeValues={":p": s("p")},
        Select="ALL_ATTRIBUTES",
        ConsistentRead=consistent,
        ReturnConsumedCapacity="INDEXES",
    )["ConsumedCapacity"]

    assert result == {
        "TableName": table,
        "CapacityUnits": 7 * factor,
        "Table": {"CapacityUnits": 6 * factor},
        "LocalSecondaryIndexes": {"by-l": {"CapacityUnits": 1 * factor}},
    }


def test_a_local_index_that_holds_all_fetches_nothing(client: DynamoDBClient, tables: Tables) -> None:
    """A projection that covers the query costs the index alone."""
    table = tables("pk sk", lsi={"by-l": "pk l | KEYS_ONLY"})
    put(client, table, {**item(pk="p", sk="s", l="x"), "v": s("x" * 5000)})

    result = client.query(
        TableName=table,
        IndexName="by-l",
        KeyConditionExpression="pk = :p",
        ExpressionAttributeValues={":p": s("p")},
        ReturnConsumedCapacity="INDEXES",
    )["ConsumedCapacity"]

    assert result["CapacityUnits"] == 0.5
    assert result["LocalSecondaryIndexes"] == {"by-l": {"CapacityUnits": 0.5}}


def test_a_transaction_costs_the_table_twice(client: DynamoDBClient, tables: Tables) -> None:
    """A write in a transaction costs two units for one on the table, and one for one on an index."""
    table = tables(gsi={"by-a": "a"})

    (result,) = client.transact_write_items(
        TransactItems=[{"Put": {"TableName": table, "Item": _sized(1500, a="x")}}],
        ReturnConsumedCapacity="INDEXES",
    )["ConsumedCapacity"]

    assert result == {
        "TableName": table,
        "CapacityUnits": 6,
        "WriteCapacityUnits": 6,
        "Table": {"CapacityUnits": 4, "WriteCapacityUnits": 4},
        "GlobalSecondaryIndexes": {"by-a": {"CapacityUnits": 2, "WriteCapacityUnits": 2}},
    }


def test_a_check_costs_a_write(client: DynamoDBClient, tables: Tables) -> None:
    """A condition check costs two write units for each KB of the item that it reads."""
    table = tables()
    put(client, table, _sized(1500))

    (result,) = client.transact_write_items(
        TransactItems=[
            {
                "ConditionCheck": {
                    "TableName": table,
                    "Key": _KEY,
                    "ConditionExpression": "attribute_exists(pk)",
                }
            },
            {"Delete": {"TableName": table, "Key": item(pk="nobody")}},
        ],
        ReturnConsumedCapacity="TOTAL",
    )["ConsumedCapacity"]

    assert result == {"TableName": table, "CapacityUnits": 6, "WriteCapacityUnits": 6}


def test_a_transactional_read_costs_twice(client: DynamoDBClient, tables: Tables) -> None:
    """A get in a transaction costs two units for each 4 KB, a missing item two."""
    one, two = tables(), tables()
    put(client, one, _sized(5000))

    result = client.transact_get_items(
        TransactItems=[
            {"Get": {"TableName": one, "Key": _KEY}},
            {"Get": {"TableName": two, "Key": _KEY}},
        ],
        ReturnConsumedCapacity="TOTAL",
    )["ConsumedCapacity"]

    units = {each["TableName"]: (each["CapacityUnits"], each["ReadCapacityUnits"]) for each in result}
    assert units == {one: (4, 4), two: (2, 2)}


def test_a_replay_costs_reads(client: DynamoDBClient, tables: Tables) -> None:
    """A request whose token was seen is not done again, and costs reads of its items."""
    table = tables()
    request: Any = {
        "TransactItems": [
            {"Put": {"TableName": table, "Item": _sized(5000)}},
            {
                "Update": {
                    "TableName": table,
                    "Key": item(pk="counter"),
                    "UpdateExpression": "ADD cnt :one",
                    "ExpressionAttributeValues": {":one": n(1)},
                }
            },
        ],
        "ClientRequestToken": str(uuid.uuid4()),
        "ReturnConsumedCapacity": "TOTAL",
    }

    (first,) = client.transact_write_items(**request)["ConsumedCapacity"]
    (second,) = client.transact_write_items(**request)["ConsumedCapacity"]

    assert first == {"TableName": table, "CapacityUnits": 12, "WriteCapacityUnits": 12}
    assert second == {"TableName": table, "CapacityUnits": 6, "ReadCapacityUnits": 6}
    assert get(client, table, pk="counter") == item(pk="counter", cnt=1)


def test_batches_report_their_indexes(client: DynamoDBClient, tables: Tables) -> None:
    """The units of a batch's writes are added up per index."""
    table = tables(gsi={"by-a": "a"})
    rows: Any = [{"PutRequest": {"Item": item(pk=f"{i}", **({"a": "x"} if i else {}))}} for i in range(3)]

    (result,) = client.batch_write_item(RequestItems={table: rows}, ReturnConsumedCapacity="INDEXES")[
        "ConsumedCapacity"
    ]
    (read,) = client.batch_get_item(
        RequestItems={table: {"Keys": [item(pk="0")]}}, ReturnConsumedCapacity="INDEXES"
    )["ConsumedCapacity"]

    assert result == {
        "TableName": table,
        "CapacityUnits": 5,
        "Table": {"CapacityUnits": 3},
        "GlobalSecondaryIndexes": {"by-a": {"CapacityUnits": 2}},
    }
    assert read == {"TableName": table, "CapacityUnits": 0.5, "Table": {"CapacityUnits": 0.5}}


def test_an_update_is_measured_like_a_put(client: DynamoDBClient, tables: Tables) -> None:
    """An update costs the larger image on the table and the rules of a put on each index."""
    table = tables(gsi={"by-a": "a | KEYS_ONLY"})
    put(client, table, _sized(1500, a="x"))
    request: Any = {"TableName": table, "Key": _KEY, "ReturnConsumedCapacity": "INDEXES"}

    other = client.update_item(
        **request, UpdateExpression="SET b = :b", ExpressionAttributeValues={":b": s("b")}
    )["ConsumedCapacity"]
    moved = client.update_item(
        **request, UpdateExpression="SET a = :a", ExpressionAttributeValues={":a": s("y")}
    )["ConsumedCapacity"]
    left = client.update_item(**request, UpdateExpression="REMOVE a")["ConsumedCapacity"]

    assert other == {"TableName": table, "CapacityUnits": 2, "Table": {"CapacityUnits": 2}}
    assert moved["GlobalSecondaryIndexes"] == {"by-a": {"CapacityUnits": 2}}
    assert left["GlobalSecondaryIndexes"] == {"by-a": {"CapacityUnits": 1}}


def test_a_transaction_adds_up_per_table(client: DynamoDBClient, tables: Tables) -> None:
    """One element for each table, whatever the number of its actions."""
    one, two = tables(), tables()

    result = client.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": one, "Item": item(pk="a")}},
            {"Put": {"TableName": two, "Item": item(pk="a")}},
            {"Put": {"TableName": one, "Item": item(pk="b")}},
        ],
        ReturnConsumedCapacity="TOTAL",
    )["ConsumedCapacity"]

    assert {each["TableName"]: each["CapacityUnits"] for each in result} == {one: 4, two: 2}
    assert len(result) == 2


def test_an_identical_put_costs_the_table_alone(client: DynamoDBClient, tables: Tables) -> None:
    """Writing an identical item costs a write on the table and nothing on an index."""
    table = tables(gsi={"by-a": "a"})
    put(client, table, _sized(1500, a="x"))

    result = _write(client, table, _sized(1500, a="x"), "INDEXES")

    assert result == {"TableName": table, "CapacityUnits": 2, "Table": {"CapacityUnits": 2}}


def test_a_table_read_has_a_table_arm(client: DynamoDBClient, tables: Tables) -> None:
    """INDEXES on a read of the table reports the table alone."""
    table = tables("pk sk", gsi={"by-a": "a"})
    arm = {"CapacityUnits": 0.5, "Table": {"CapacityUnits": 0.5}, "TableName": table}

    got = client.get_item(TableName=table, Key=item(pk="p", sk="s"), ReturnConsumedCapacity="INDEXES")
    scanned = client.scan(TableName=table, ReturnConsumedCapacity="INDEXES")
    (read,) = client.transact_get_items(
        TransactItems=[{"Get": {"TableName": table, "Key": item(pk="p", sk="s")}}],
        ReturnConsumedCapacity="INDEXES",
    )["ConsumedCapacity"]

    assert got["ConsumedCapacity"] == scanned["ConsumedCapacity"] == arm
    assert read == {
        "TableName": table,
        "CapacityUnits": 2,
        "ReadCapacityUnits": 2,
        "Table": {"CapacityUnits": 2, "ReadCapacityUnits": 2},
    }
