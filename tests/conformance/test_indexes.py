"""Indexes: membership, projection, and maintenance by every kind of write."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.requests import column, item, items_of, n, pages, put, refused, s

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]


def _entries(client: DynamoDBClient, table: str, index: str = "by-a") -> list[dict[str, Any]]:
    return sorted(items_of(client.scan, TableName=table, IndexName=index), key=lambda each: each["pk"]["S"])


def _query(client: DynamoDBClient, table: str, value: str, **more: Any) -> list[dict[str, Any]]:
    return items_of(
        client.query,
        TableName=table,
        IndexName="by-a",
        KeyConditionExpression="a = :a",
        ExpressionAttributeValues={":a": s(value)},
        **more,
    )


@pytest.mark.parametrize(
    ("projected", "expected"),
    [
        ("ALL", item(pk="p", sk="s", a="x", b=1, c="c", d="d")),
        ("KEYS_ONLY", item(pk="p", sk="s", a="x", b=1)),
        ("c nobody", item(pk="p", sk="s", a="x", b=1, c="c")),
    ],
)
def test_a_projection_is_what_the_index_holds(
    client: DynamoDBClient, tables: Tables, projected: str, expected: dict[str, Any]
) -> None:
    """Both keys are always projected; the rest as declared, by query and by scan."""
    table = tables("pk sk", gsi={"by-a": f"a b:N | {projected}"})
    put(client, table, item(pk="p", sk="s", a="x", b=1, c="c", d="d"))

    assert _query(client, table, "x") == [expected]
    assert _entries(client, table) == [expected]


def test_an_index_holds_only_items_with_its_keys(client: DynamoDBClient, tables: Tables) -> None:
    """An item without one of the index's attributes is not in the index."""
    table = tables(gsi={"by-a": "a b:N"})

    put(
        client,
        table,
        item(pk="both", a="x", b=1),
        item(pk="hash", a="x"),
        item(pk="range", b=1),
        item(pk="none"),
    )

    assert column(_entries(client, table), "pk") == ["both"]


def test_index_keys_need_not_be_unique(client: DynamoDBClient, tables: Tables) -> None:
    """Pages through items with equal index keys skip and repeat nothing."""
    table = tables(gsi={"by-a": "a b:N"})
    put(client, table, *(item(pk=f"{number:02}", a="x", b=7) for number in range(20)))

    found = _query(client, table, "x", Limit=3)

    assert sorted(column(found, "pk")) == [f"{number:02}" for number in range(20)]


def test_the_last_key_of_an_index_has_both_keys(client: DynamoDBClient, tables: Tables) -> None:
    """LastEvaluatedKey of an index holds the index's key and the table's."""
    table = tables("pk sk", gsi={"by-a": "a b:N"}, lsi={"by-l": "pk l:N"})
    put(client, table, *(item(pk="p", sk=f"{number}", a="x", b=number, l=-number) for number in range(4)))

    (first, *_) = pages(
        client.query,
        TableName=table,
        IndexName="by-a",
        KeyConditionExpression="a = :a",
        ExpressionAttributeValues={":a": s("x")},
        Limit=2,
    )
    (local, *_) = pages(
        client.query,
        TableName=table,
        IndexName="by-l",
        KeyConditionExpression="pk = :p",
        ExpressionAttributeValues={":p": s("p")},
        Limit=1,
    )

    assert first["LastEvaluatedKey"] == item(pk="p", sk="1", a="x", b=1)
    assert local["LastEvaluatedKey"] == item(pk="p", sk="3", l=-3)


@pytest.mark.parametrize("forward", [True, False])
def test_a_range_holds_on_every_page(client: DynamoDBClient, tables: Tables, forward: bool) -> None:
    """BETWEEN bounds hold on every page of an index, in both directions."""
    table = tables(gsi={"by-a": "a b:N"})
    put(client, table, *(item(pk=f"{number}", a="x", b=number) for number in range(10)))

    found = items_of(
        client.query,
        TableName=table,
        IndexName="by-a",
        KeyConditionExpression="a = :a AND b BETWEEN :lo AND :hi",
        ExpressionAttributeValues={":a": s("x"), ":lo": n(2), ":hi": n(7)},
        Limit=2,
        ScanIndexForward=forward,
    )

    expected = [str(number) for number in range(2, 8)]
    assert column(found, "b") == (expected if forward else expected[::-1])


def _put(client: DynamoDBClient, table: str, new: dict[str, Any]) -> None:
    client.put_item(TableName=table, Item=new)


def _batch(client: DynamoDBClient, table: str, new: dict[str, Any]) -> None:
    client.batch_write_item(RequestItems={table: [{"PutRequest": {"Item": new}}]})


def _transact(client: DynamoDBClient, table: str, new: dict[str, Any]) -> None:
    client.transact_write_items(TransactItems=[{"Put": {"TableName": table, "Item": new}}])


def _assignments(new: dict[str, Any]) -> Any:
    names = [name for name in new if name != "pk"]
    gone = [name for name in ("a", "b") if name not in new]
    sections = ["SET " + ", ".join(f"{name} = :{name}" for name in names)] if names else []
    sections += ["REMOVE " + ", ".join(gone)] if gone else []
    values = {f":{name}": new[name] for name in names}
    return {
        "UpdateExpression": " ".join(sections),
        **({"ExpressionAttributeValues": values} if values else {}),
    }


def _update(client: DynamoDBClient, table: str, new: dict[str, Any]) -> None:
    client.update_item(TableName=table, Key={"pk": new["pk"]}, **_assignments(new))


def _transact_update(client: DynamoDBClient, table: str, new: dict[str, Any]) -> None:
    action: Any = {"TableName": table, "Key": {"pk": new["pk"]}, **_assignments(new)}
    client.transact_write_items(TransactItems=[{"Update": action}])


_WRITES = [_put, _batch, _transact, _update, _transact_update]


@pytest.mark.parametrize("write", _WRITES, ids=[write.__name__[1:] for write in _WRITES])
def test_an_index_follows_every_write(client: DynamoDBClient, tables: Tables, write: Any) -> None:
    """However an item changes, its old entry is removed and its new one added."""
    table = tables(gsi={"by-a": "a", "by-ab": "a b:N | KEYS_ONLY"})
    steps = [
        item(pk="p", a="one", b=1),
        item(pk="p", a="two", b=1),
        item(pk="p", a="two", b=2, c="more"),
        item(pk="p", a="two", c="more"),
        item(pk="p", c="more"),
        item(pk="p", a="three", b=3, c="more"),
    ]

    for step in steps:
        write(client, table, step)

        assert _entries(client, table) == ([step] if "a" in step else [])
        both = [{name: step[name] for name in ("pk", "a", "b")}] if "b" in step and "a" in step else []
        assert _entries(client, table, "by-ab") == both


def _delete(client: DynamoDBClient, table: str) -> None:
    client.delete_item(TableName=table, Key=item(pk="p"))


def _batch_delete(client: DynamoDBClient, table: str) -> None:
    client.batch_write_item(RequestItems={table: [{"DeleteRequest": {"Key": item(pk="p")}}]})


def _transact_delete(client: DynamoDBClient, table: str) -> None:
    client.transact_write_items(TransactItems=[{"Delete": {"TableName": table, "Key": item(pk="p")}}])


@pytest.mark.parametrize("delete", [_delete, _batch_delete, _transact_delete])
def test_an_index_follows_every_delete(client: DynamoDBClient, tables: Tables, delete: Any) -> None:
    """A deleted item leaves every index, and its neighbour stays."""
    table = tables(gsi={"by-a": "a", "by-b": "b:N"})
    put(client, table, item(pk="p", a="x", b=1), item(pk="q", a="x", b=1))

    delete(client, table)

    assert column(_entries(client, table), "pk") == ["q"]
    assert column(_entries(client, table, "by-b"), "pk") == ["q"]


def test_a_projected_attribute_is_current(client: DynamoDBClient, tables: Tables) -> None:
    """A change of a projected attribute is visible through the index; its removal too."""
    table = tables(gsi={"by-a": "a | c"})
    put(client, table, item(pk="p", a="x", c="old", d="d"))

    client.update_item(
        TableName=table,
        Key=item(pk="p"),
        UpdateExpression="SET c = :c",
        ExpressionAttributeValues={":c": s("new")},
    )
    changed = _entries(client, table)
    client.update_item(TableName=table, Key=item(pk="p"), UpdateExpression="REMOVE c")

    assert changed == [item(pk="p", a="x", c="new")]
    assert _entries(client, table) == [item(pk="p", a="x")]


@pytest.mark.parametrize("value", [n(1), {"BOOL": True}, {"SS": ["x"]}, {"NULL": True}])
def test_a_key_of_the_wrong_type_refuses_the_write(
    client: DynamoDBClient, tables: Tables, value: dict[str, Any]
) -> None:
    """An index key of another type refuses the whole write, on every path."""
    table = tables(gsi={"by-a": "a"})
    wrong = {"pk": s("p"), "a": value}
    kind = next(iter(value))
    result = (
        "One or more parameter values were invalid: "
        f"Type mismatch for Index Key a Expected: S Actual: {kind} IndexName: by-a"
    )

    single = refused(client.put_item, TableName=table, Item=wrong)
    batch = refused(client.batch_write_item, RequestItems={table: [{"PutRequest": {"Item": wrong}}]})
    update = refused(
        client.update_item,
        TableName=table,
        Key=item(pk="p"),
        UpdateExpression="SET a = :a",
        ExpressionAttributeValues={":a": value},
    )
    transaction = refused(
        client.transact_write_items, TransactItems=[{"Put": {"TableName": table, "Item": wrong}}]
    )

    assert (single.message, batch.message, update.message) == (result, result, result)
    assert transaction.reasons == [{"Code": "ValidationError", "Message": result}]
    assert client.scan(TableName=table)["Count"] == 0


def test_a_local_index_sorts_a_partition_again(client: DynamoDBClient, tables: Tables) -> None:
    """A local index holds a partition's items in the order of another attribute."""
    table = tables("pk sk:N", lsi={"by-l": "pk l"})
    put(
        client,
        table,
        *(item(pk="p", sk=number, l=f"{9 - number}") for number in range(5)),
        item(pk="p", sk=9),
    )

    found = client.query(
        TableName=table,
        IndexName="by-l",
        KeyConditionExpression="pk = :p AND l > :l",
        ExpressionAttributeValues={":p": s("p"), ":l": s("6")},
        ConsistentRead=True,
    )["Items"]

    assert column(found, "sk") == ["2", "1", "0"]


def test_a_local_index_fetches_unprojected_attributes(client: DynamoDBClient, tables: Tables) -> None:
    """A local index returns any requested attribute, and its own by default."""
    table = tables("pk sk", lsi={"by-l": "pk l | KEYS_ONLY"})
    put(client, table, item(pk="p", sk="s", l="l", other="o", more="m"))
    request: Any = {
        "TableName": table,
        "IndexName": "by-l",
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": s("p")},
    }

    default = client.query(**request)["Items"]
    everything = client.query(**request, Select="ALL_ATTRIBUTES")["Items"]
    projected = client.query(**request, Select="ALL_PROJECTED_ATTRIBUTES")["Items"]
    named = client.query(**request, ProjectionExpression="#o, l", ExpressionAttributeNames={"#o": "other"})[
        "Items"
    ]

    assert default == projected == [item(pk="p", sk="s", l="l")]
    assert everything == [item(pk="p", sk="s", l="l", other="o", more="m")]
    assert named == [item(other="o", l="l")]


def test_a_global_index_returns_projected_attributes_alone(client: DynamoDBClient, tables: Tables) -> None:
    """A projection on an index may name projected attributes and the table's keys."""
    table = tables("pk sk", gsi={"by-a": "a | c"})
    put(client, table, item(pk="p", sk="s", a="x", c="c", d="d"))

    found = _query(client, table, "x", ProjectionExpression="sk, c")

    assert found == [item(sk="s", c="c")]


def test_a_filter_sees_the_entry_and_not_the_item(client: DynamoDBClient, tables: Tables) -> None:
    """On an index a filter sees what the index holds; the table's key may be filtered."""
    table = tables("pk sk", gsi={"by-a": "a | KEYS_ONLY"})
    put(client, table, item(pk="p", sk="1", a="x", d="d"), item(pk="p", sk="2", a="x", d="d"))

    by_key = client.query(
        TableName=table,
        IndexName="by-a",
        KeyConditionExpression="a = :a",
        FilterExpression="sk = :s",
        ExpressionAttributeValues={":a": s("x"), ":s": s("2")},
    )
    unseen = client.scan(TableName=table, IndexName="by-a", FilterExpression="attribute_exists(d)")

    assert column(by_key["Items"], "sk") == ["2"]
    assert (unseen["Count"], unseen["ScannedCount"]) == (0, 2)


def test_an_index_may_use_the_tables_key(client: DynamoDBClient, tables: Tables) -> None:
    """An inverted index swaps the table's own attributes."""
    table = tables("pk sk", gsi={"inverted": "sk pk"})
    put(client, table, item(pk="a", sk="x"), item(pk="b", sk="x"), item(pk="a", sk="y"))

    found = items_of(
        client.query,
        TableName=table,
        IndexName="inverted",
        KeyConditionExpression="sk = :s",
        ExpressionAttributeValues={":s": s("x")},
        Limit=1,
    )

    assert column(found, "pk") == ["a", "b"]


def test_two_indexes_may_share_an_attribute(client: DynamoDBClient, tables: Tables) -> None:
    """One attribute may be the hash of one index and the range of another."""
    table = tables(gsi={"by-a": "a b", "by-b": "b a"})
    put(client, table, item(pk="p", a="x", b="y"))

    assert _entries(client, table, "by-a") == _entries(client, table, "by-b") == [item(pk="p", a="x", b="y")]


def test_index_order_is_that_of_its_type(client: DynamoDBClient, tables: Tables) -> None:
    """A numeric index sorts by number, before and after a change of value."""
    table = tables(gsi={"by-a": "a b:N"})
    put(client, table, *(item(pk=f"{number}", a="x", b=number) for number in (10, 9, -1, 100, 0)))

    client.update_item(
        TableName=table,
        Key=item(pk="9"),
        UpdateExpression="SET b = b + :x",
        ExpressionAttributeValues={":x": n(50)},
    )

    assert column(_query(client, table, "x"), "b") == ["-1", "0", "10", "59", "100"]


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_ties_page_in_both_directions(
    client: DynamoDBClient, tables: Tables, limit: int, forward: bool
) -> None:
    """Pages through equal index keys return each item once, in one order."""
    table = tables("pk sk:N", gsi={"by-a": "a b:N"})
    rows = [item(pk=f"{i % 3}", sk=i, a="x", b=i // 6) for i in range(18)]
    put(client, table, *rows)

    paged = _query(client, table, "x", Limit=limit, ScanIndexForward=forward)
    whole = _query(client, table, "x", ScanIndexForward=forward)

    assert paged == whole
    assert sorted(column(paged, "sk"), key=int) == [str(i) for i in range(18)]
    groups = [int(each) for each in column(paged, "b")]
    assert groups == sorted(groups, reverse=not forward)


def test_a_start_that_left_the_index_still_starts(client: DynamoDBClient, tables: Tables) -> None:
    """A page continues after a last key whose item has since moved or been deleted."""
    table = tables(gsi={"by-a": "a b:N"})
    put(client, table, *(item(pk=f"{i}", a="x", b=i) for i in range(6)))
    request: Any = {
        "TableName": table,
        "IndexName": "by-a",
        "KeyConditionExpression": "a = :a",
        "ExpressionAttributeValues": {":a": s("x")},
    }
    first = client.query(**request, Limit=3)

    client.delete_item(TableName=table, Key=item(pk="2"))
    put(client, table, item(pk="4", a="elsewhere", b=4))
    rest = client.query(**request, ExclusiveStartKey=first["LastEvaluatedKey"])

    assert column(first["Items"], "pk") == ["0", "1", "2"]
    assert column(rest["Items"], "pk") == ["3", "5"]


def test_count_and_all_attributes_of_an_index(client: DynamoDBClient, tables: Tables) -> None:
    """An index that projects everything returns ALL_ATTRIBUTES; any index counts."""
    table = tables(gsi={"by-a": "a", "keys": "a | KEYS_ONLY"})
    put(client, table, item(pk="p", a="x", c="c"))

    everything = _query(client, table, "x", Select="ALL_ATTRIBUTES")
    counted = client.scan(TableName=table, IndexName="keys", Select="COUNT")

    assert everything == [item(pk="p", a="x", c="c")]
    assert (counted["Count"], "Items" in counted) == (1, False)


@pytest.mark.parametrize(("keys", "size"), [("a", 2048), ("b a", 1024)])
def test_an_index_key_has_the_length_of_its_kind(
    client: DynamoDBClient, tables: Tables, keys: str, size: int
) -> None:
    """An index's hash key has 2048 bytes and its range key 1024; longer ones refuse the write."""
    table = tables(gsi={"by-a": keys})

    put(client, table, item(pk="fits", a="x" * size, b="b"))
    longer = refused(client.put_item, TableName=table, Item=item(pk="p", a="x" * (size + 1), b="b"))
    grown = refused(
        client.update_item,
        TableName=table,
        Key=item(pk="fits"),
        UpdateExpression="SET a = :a",
        ExpressionAttributeValues={":a": s("x" * (size + 1))},
    )

    assert longer.code == "ValidationException"
    assert grown.code == "ValidationException"
    assert column(_entries(client, table), "pk") == ["fits"]


def test_a_refused_write_leaves_the_index(client: DynamoDBClient, tables: Tables) -> None:
    """A write that is refused, or whose condition fails, moves no entry."""
    table = tables(gsi={"by-a": "a"})
    put(client, table, item(pk="p", a="x"))

    refused(
        client.put_item, TableName=table, Item=item(pk="p", a="y"), ConditionExpression="attribute_exists(z)"
    )
    refused(client.delete_item, TableName=table, Key=item(pk="p"), ConditionExpression="attribute_exists(z)")
    refused(client.update_item, TableName=table, Key=item(pk="p"), UpdateExpression="SET a = nobody")

    assert _entries(client, table) == [item(pk="p", a="x")]


def test_local_indexes_follow_every_write(client: DynamoDBClient, tables: Tables) -> None:
    """A local index follows puts, updates and deletes, and leaves out what lacks its key."""
    table = tables("pk sk:N", lsi={"by-l": "pk l:N"})
    request: Any = {
        "TableName": table,
        "IndexName": "by-l",
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": s("p")},
        "ConsistentRead": True,
    }
    put(
        client,
        table,
        item(pk="p", sk=1, l=5),
        item(pk="p", sk=2, l=5),
        item(pk="p", sk=3),
        item(pk="q", sk=1, l=5),
    )

    first = column(client.query(**request)["Items"], "sk")
    client.update_item(
        TableName=table,
        Key=item(pk="p", sk=1),
        UpdateExpression="SET l = :l",
        ExpressionAttributeValues={":l": n(9)},
    )
    moved = column(client.query(**request)["Items"], "sk")
    client.update_item(TableName=table, Key=item(pk="p", sk=2), UpdateExpression="REMOVE l")
    left = column(client.query(**request)["Items"], "sk")
    client.delete_item(TableName=table, Key=item(pk="p", sk=1))

    assert first == ["1", "2"]
    assert moved == ["2", "1"]
    assert left == ["1"]
    assert client.query(**request)["Count"] == 0


def test_numbers_in_an_index_are_canonical(client: DynamoDBClient, tables: Tables) -> None:
    """Two texts of one number are one index key."""
    table = tables(gsi={"by-n": "num:N"})
    put(client, table, {"pk": s("a"), "num": n("1.50")}, {"pk": s("b"), "num": n("15E-1")})

    found = client.query(
        TableName=table,
        IndexName="by-n",
        KeyConditionExpression="num = :n",
        ExpressionAttributeValues={":n": n("+1.5")},
    )

    assert found["Count"] == 2
    assert {each["num"]["N"] for each in found["Items"]} == {"1.5"}
