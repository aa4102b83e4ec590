"""Batches: many gets or writes in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.conformance.requests import column, get, item, n, put, refused, s

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]


def _put(**attributes: Any) -> Any:
    return {"PutRequest": {"Item": item(**attributes)}}


def _delete(**key: Any) -> Any:
    return {"DeleteRequest": {"Key": item(**key)}}


def test_puts_and_deletes_of_two_tables(client: DynamoDBClient, tables: Tables) -> None:
    """A batch mixes puts and deletes over tables."""
    one, two = tables(), tables("pk sk:N")
    put(client, one, item(pk="old"))

    answer = client.batch_write_item(
        RequestItems={one: [_put(pk="new", a="x"), _delete(pk="old")], two: [_put(pk="p", sk=1)]}
    )

    assert answer["UnprocessedItems"] == {}
    assert get(client, one, pk="new") == item(pk="new", a="x")
    assert get(client, one, pk="old") is None
    assert get(client, two, pk="p", sk=1) == item(pk="p", sk=1)


def test_a_put_replaces_and_a_delete_of_nothing_succeeds(client: DynamoDBClient, tables: Tables) -> None:
    """The writes of a batch are plain puts and deletes."""
    table = tables()
    put(client, table, item(pk="p", a="x", b="y"))

    client.batch_write_item(RequestItems={table: [_put(pk="p", c="z"), _delete(pk="nobody")]})

    assert get(client, table, pk="p") == item(pk="p", c="z")


def test_25_writes_are_the_most(client: DynamoDBClient, tables: Tables) -> None:
    """A batch takes 25 writes."""
    table = tables()

    answer = client.batch_write_item(RequestItems={table: [_put(pk=f"{i}") for i in range(25)]})

    assert answer["UnprocessedItems"] == {}
    assert client.scan(TableName=table, ConsistentRead=True)["Count"] == 25


def test_a_refused_batch_writes_nothing(client: DynamoDBClient, tables: Tables) -> None:
    """A batch that one bad item refuses is refused before its first write."""
    table = tables(gsi={"by-a": "a"})

    for bad in (_put(pk=""), _put(a="x"), _put(pk="bad", a=1), _put(pk="bad", v={"SS": []})):
        error = refused(client.batch_write_item, RequestItems={table: [_put(pk="good"), bad]})
        assert error.code == "ValidationException"

    assert client.scan(TableName=table, ConsistentRead=True)["Count"] == 0


def test_gets_of_two_tables(client: DynamoDBClient, tables: Tables) -> None:
    """A batch of gets responds per table; missing items are left out."""
    one, two = tables(), tables("pk sk:N")
    put(client, one, item(pk="a", v=1), item(pk="b", v=2))
    put(client, two, item(pk="p", sk=1))

    answer = client.batch_get_item(
        RequestItems={
            one: {"Keys": [item(pk="a"), item(pk="b"), item(pk="nobody")]},
            two: {"Keys": [item(pk="p", sk=1), item(pk="p", sk=2)], "ConsistentRead": True},
        }
    )

    assert sorted(column(answer["Responses"][one], "pk")) == ["a", "b"]
    assert answer["Responses"][two] == [item(pk="p", sk=1)]
    assert answer["UnprocessedKeys"] == {}


def test_a_table_with_no_hits_answers_with_an_empty_list(client: DynamoDBClient, tables: Tables) -> None:
    """A table without results is in the response."""
    table = tables()

    answer = client.batch_get_item(RequestItems={table: {"Keys": [item(pk="nobody")]}})

    assert answer["Responses"] == {table: []}


def test_each_table_has_its_own_projection(client: DynamoDBClient, tables: Tables) -> None:
    """Projection and names are set per table."""
    one, two = tables(), tables()
    for table in (one, two):
        put(client, table, {**item(pk="p", name="x"), "m": {"M": {"a": n(1), "b": n(2)}}})

    answer = client.batch_get_item(
        RequestItems={
            one: {
                "Keys": [item(pk="p")],
                "ProjectionExpression": "#n",
                "ExpressionAttributeNames": {"#n": "name"},
            },
            two: {"Keys": [item(pk="p")], "ProjectionExpression": "m.a"},
        }
    )

    assert answer["Responses"][one] == [{"name": s("x")}]
    assert answer["Responses"][two] == [{"m": {"M": {"a": n(1)}}}]


def test_100_keys_are_the_most(client: DynamoDBClient, tables: Tables) -> None:
    """A batch of gets takes 100 keys."""
    table = tables()
    put(client, table, *(item(pk=f"{i}") for i in range(100)))

    answer = client.batch_get_item(RequestItems={table: {"Keys": [item(pk=f"{i}") for i in range(100)]}})

    assert len(answer["Responses"][table]) == 100


def test_keys_that_are_one_number_are_duplicates(client: DynamoDBClient, tables: Tables) -> None:
    """Duplicates are found by value and not by text."""
    table = tables("pk:N")

    error = refused(client.batch_get_item, RequestItems={table: {"Keys": [{"pk": n("1")}, {"pk": n("1.0")}]}})

    assert error.message == "Provided list of item keys contains duplicates"


def test_the_same_key_in_two_tables_is_no_duplicate(client: DynamoDBClient, tables: Tables) -> None:
    """Keys are compared within their table."""
    one, two = tables(), tables()

    answer = client.batch_write_item(RequestItems={one: [_put(pk="p")], two: [_put(pk="p")]})

    assert answer["UnprocessedItems"] == {}


def test_a_table_may_be_named_by_its_arn(client: DynamoDBClient, tables: Tables) -> None:
    """The ARN of a table is a key of the map as good as its name."""
    table = tables()
    arn = client.describe_table(TableName=table)["Table"]["TableArn"]

    client.batch_write_item(RequestItems={arn: [_put(pk="p")]})
    answer = client.batch_get_item(RequestItems={arn: {"Keys": [item(pk="p")]}})

    assert answer["Responses"] == {arn: [item(pk="p")]}


def test_keys_past_16_mb_are_unprocessed(client: DynamoDBClient, tables: Tables) -> None:
    """A response has at most 16 MB; unread keys are returned and can be requested again."""
    table = tables()
    names = [f"{number}" for number in range(45)]
    for name in names:
        put(client, table, item(pk=name, v="x" * 390_000))

    requests: Any = {table: {"Keys": [item(pk=name) for name in names], "ProjectionExpression": "pk, v"}}
    answers = []
    while requests:
        answers.append(client.batch_get_item(RequestItems=requests))
        requests = answers[-1]["UnprocessedKeys"]

    found = [name for answer in answers for name in column(answer["Responses"][table], "pk")]
    assert len(answers) > 1
    assert len(answers[0]["Responses"][table]) * 390_000 <= 16 * 1024 * 1024
    assert answers[0]["UnprocessedKeys"][table]["ProjectionExpression"] == "pk, v"
    assert sorted(found) == sorted(names)


def test_item_collection_metrics(client: DynamoDBClient, tables: Tables) -> None:
    """Metrics come per table, for those with local indexes."""
    local, plain = tables("pk sk", lsi={"by-l": "pk l"}), tables()

    answer = client.batch_write_item(
        RequestItems={local: [_put(pk="p", sk="1")], plain: [_put(pk="p")]},
        ReturnItemCollectionMetrics="SIZE",
    )

    assert list(answer["ItemCollectionMetrics"]) == [local]
    assert answer["ItemCollectionMetrics"][local][0]["ItemCollectionKey"] == item(pk="p")
