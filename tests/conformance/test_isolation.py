"""Isolation: concurrent writers, separate accounts, atomic transactions, durable tokens."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tavola.engine import Engine
from tavola.mocks import mock
from tests.conformance.backends import Backend, new_client
from tests.conformance.requests import get, item, items_of, n, put, refused, s, table_request

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]
_WORKERS = 8


def _together(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Do a piece of work this many times at once and return what came of each."""
    with ThreadPoolExecutor(_WORKERS) as pool:
        return list(pool.map(work, range(count)))


def _increment(client: DynamoDBClient, table: str) -> str:
    answer = client.update_item(
        TableName=table,
        Key=item(pk="counter"),
        UpdateExpression="ADD cnt :one",
        ExpressionAttributeValues={":one": n(1)},
        ReturnValues="UPDATED_NEW",
    )
    return str(answer["Attributes"]["cnt"]["N"])


def test_50_increments_are_all_counted(client: DynamoDBClient, tables: Tables) -> None:
    """Increments from many threads are each counted once, and each sees its own number."""
    table = tables()

    seen = _together(50, lambda _: _increment(client, table))

    assert sorted(map(int, seen)) == list(range(1, 51))
    assert get(client, table, pk="counter") == item(pk="counter", cnt=50)


def test_unconditional_puts_all_succeed(client: DynamoDBClient, tables: Tables) -> None:
    """Of several puts of one item none is refused, and the item is one of them whole."""
    table = tables()

    _together(20, lambda i: put(client, table, item(pk="p", a=f"{i}", b=f"{i}")))

    found = get(client, table, pk="p")
    assert found is not None
    assert found["a"] == found["b"]


def test_one_of_many_creators_wins(client: DynamoDBClient, tables: Tables) -> None:
    """Of many conditional creations exactly one succeeds."""
    table = tables()

    def create(number: int) -> bool:
        try:
            client.put_item(
                TableName=table,
                Item=item(pk="p", winner=number),
                ConditionExpression="attribute_not_exists(pk)",
            )
        except client.exceptions.ConditionalCheckFailedException:
            return False
        return True

    won = _together(24, create)

    assert won.count(True) == 1
    assert get(client, table, pk="p") == item(pk="p", winner=won.index(True))


def test_optimistic_writers_lose_nothing(client: DynamoDBClient, tables: Tables) -> None:
    """Read, check the version, write: with retries every increment arrives."""
    table = tables()
    put(client, table, item(pk="p", version=0))

    def bump(_: int) -> None:
        while True:
            seen = get(client, table, pk="p")
            assert seen is not None
            version = int(seen["version"]["N"])
            try:
                client.put_item(
                    TableName=table,
                    Item=item(pk="p", version=version + 1),
                    ConditionExpression="version = :seen",
                    ExpressionAttributeValues={":seen": n(version)},
                )
            except client.exceptions.ConditionalCheckFailedException:
                continue
            return

    _together(16, bump)

    assert get(client, table, pk="p") == item(pk="p", version=16)


def _move(client: DynamoDBClient, table: str, source: str, target: str) -> None:
    """Move one unit between accounts if there is one; a conflict is not a failure."""
    try:
        client.transact_write_items(
            TransactItems=[
                {
                    "Update": {
                        "TableName": table,
                        "Key": item(pk=source),
                        "UpdateExpression": "SET amount = amount - :one",
                        "ConditionExpression": "amount >= :one",
                        "ExpressionAttributeValues": {":one": n(1)},
                    }
                },
                {
                    "Update": {
                        "TableName": table,
                        "Key": item(pk=target),
                        "UpdateExpression": "SET amount = amount + :one",
                        "ExpressionAttributeValues": {":one": n(1)},
                    }
                },
            ]
        )
    except client.exceptions.TransactionCanceledException:
        pass


def test_a_transactional_read_sees_whole_transactions(client: DynamoDBClient, tables: Tables) -> None:
    """While money moves between accounts, every snapshot adds up."""
    table = tables()
    names = ["a", "b", "c"]
    put(client, table, *(item(pk=name, amount=10) for name in names))
    gets: Any = [{"Get": {"TableName": table, "Key": item(pk=name)}} for name in names]

    def work(number: int) -> int | None:
        if number % 2:
            _move(client, table, names[number % 3], names[(number + 1) % 3])
            return None
        try:
            found = client.transact_get_items(TransactItems=gets)["Responses"]
        except client.exceptions.TransactionCanceledException:
            return None
        return sum(int(each["Item"]["amount"]["N"]) for each in found)

    sums = _together(80, work)

    assert {each for each in sums if each is not None} == {30}
    assert sum(int(each["amount"]["N"]) for each in items_of(client.scan, TableName=table)) == 30


def test_a_snapshot_holds_absent_items_too(client: DynamoDBClient, tables: Tables) -> None:
    """Two items that are only ever made and deleted together are never seen apart."""
    table = tables()
    keys = [item(pk="left"), item(pk="right")]

    def work(number: int) -> int | None:
        try:
            if number % 4 == 0:
                client.transact_write_items(
                    TransactItems=[{"Put": {"TableName": table, "Item": key}} for key in keys]
                )
            elif number % 4 == 1:
                client.transact_write_items(
                    TransactItems=[{"Delete": {"TableName": table, "Key": key}} for key in keys]
                )
            else:
                found = client.transact_get_items(
                    TransactItems=[{"Get": {"TableName": table, "Key": key}} for key in keys]
                )["Responses"]
                return sum("Item" in each for each in found)
        except client.exceptions.TransactionCanceledException:
            pass
        return None

    seen = _together(80, work)

    assert {each for each in seen if each is not None} <= {0, 2}


def test_a_transaction_beside_single_writes(client: DynamoDBClient, tables: Tables) -> None:
    """Transactions and single writes of one item all arrive, or are reported that they conflict."""
    table = tables()
    one = {":one": n(1)}

    def work(number: int) -> int:
        try:
            if number % 2:
                _increment(client, table)
            else:
                client.transact_write_items(
                    TransactItems=[
                        {
                            "Update": {
                                "TableName": table,
                                "Key": item(pk="counter"),
                                "UpdateExpression": "ADD cnt :one",
                                "ExpressionAttributeValues": one,
                            }
                        }
                    ]
                )
        except (
            client.exceptions.TransactionConflictException,
            client.exceptions.TransactionCanceledException,
        ):
            return 0
        return 1

    done = sum(_together(40, work))

    assert get(client, table, pk="counter") == item(pk="counter", cnt=done)


def test_a_token_is_done_once_from_many_threads(client: DynamoDBClient, tables: Tables) -> None:
    """A request that is sent many times at once with one token has one effect."""
    table = tables()
    token = str(uuid.uuid4())

    def send(_: int) -> None:
        try:
            client.transact_write_items(
                TransactItems=[
                    {
                        "Update": {
                            "TableName": table,
                            "Key": item(pk="counter"),
                            "UpdateExpression": "ADD cnt :one",
                            "ExpressionAttributeValues": {":one": n(1)},
                        }
                    }
                ],
                ClientRequestToken=token,
            )
        except client.exceptions.TransactionInProgressException:
            pass

    _together(16, send)

    assert get(client, table, pk="counter") == item(pk="counter", cnt=1)


def test_an_index_agrees_after_many_writers(client: DynamoDBClient, tables: Tables) -> None:
    """After writers from many threads an index holds exactly what the table holds."""
    table = tables(gsi={"by-a": "a b:N"})

    def work(number: int) -> None:
        key = f"{number % 10}"
        if number % 5 == 0:
            client.delete_item(TableName=table, Key=item(pk=key))
        else:
            put(client, table, item(pk=key, a=f"{number % 3}", b=number))

    _together(100, work)

    base = sorted(column["pk"]["S"] for column in items_of(client.scan, TableName=table, ConsistentRead=True))
    entries = items_of(client.scan, TableName=table, IndexName="by-a")
    assert sorted(each["pk"]["S"] for each in entries) == base
    assert all(get(client, table, pk=each["pk"]["S"]) == each for each in entries)


def test_accounts_and_regions_do_not_see_each_other(backend: Backend, fresh: Callable[[], str]) -> None:
    """The same name in another account or region is another table, with its own items and tokens."""
    if backend.name == "aws":
        clients = [backend.client(region=region) for region in ("us-east-1", "eu-west-1")]
    else:
        clients = [
            backend.client(account="333333333333", region="us-east-1"),
            backend.client(account="333333333333", region="eu-west-1"),
            backend.client(account="444444444444", region="us-east-1"),
        ]
    table, token = fresh(), str(uuid.uuid4())
    for each in clients:
        each.create_table(**table_request(table, "pk", gsi={"by-a": "a"}))
        each.get_waiter("table_exists").wait(TableName=table, WaiterConfig={"Delay": 1})

    for number, each in enumerate(clients):
        each.transact_write_items(
            TransactItems=[{"Put": {"TableName": table, "Item": item(pk="p", a=f"{number}")}}],
            ClientRequestToken=token,
        )
    found = [each.scan(TableName=table)["Items"] for each in clients]
    indexed = [each.scan(TableName=table, IndexName="by-a")["Items"] for each in clients]
    for each in clients:
        each.delete_table(TableName=table)
        each.close()

    assert found == indexed == [[item(pk="p", a=f"{number}")] for number in range(len(clients))]


@pytest.mark.parametrize("operation", ["get_item", "describe_table", "put_item"])
def test_the_arn_of_another_account_opens_nothing(
    backend: Backend, fresh: Callable[[], str], operation: str
) -> None:
    """A table's ARN does not lend its table to another account."""
    owner = backend.client(**({} if backend.name == "aws" else {"account": "555555555555"}))
    table = fresh()
    arn = owner.create_table(**table_request(table, "pk"))["TableDescription"]["TableArn"]
    owner.get_waiter("table_exists").wait(TableName=table, WaiterConfig={"Delay": 1})
    foreign_arn = arn.replace(arn.split(":")[4], "666666666666")
    more: Any = {
        "get_item": {"Key": item(pk="p")},
        "put_item": {"Item": item(pk="p")},
        "describe_table": {},
    }[operation]

    error = refused(getattr(owner, operation), TableName=foreign_arn, **more)
    count = owner.scan(TableName=table)["Count"]
    owner.delete_table(TableName=table)
    owner.close()

    assert error.code in ("AccessDeniedException", "ResourceNotFoundException")
    assert count == 0


def test_a_change_of_schema_is_seen_at_once(client: DynamoDBClient, tables: Tables) -> None:
    """A table that is made again under a name is used with its new keys, by every kind of call."""
    table = tables("pk")
    put(client, table, item(pk="p"))
    client.delete_table(TableName=table)
    client.get_waiter("table_not_exists").wait(TableName=table, WaiterConfig={"Delay": 1})
    client.create_table(**table_request(table, "id sk:N"))
    client.get_waiter("table_exists").wait(TableName=table, WaiterConfig={"Delay": 1})

    error = refused(client.get_item, TableName=table, Key=item(pk="p"))
    client.put_item(TableName=table, Item=item(id="a", sk=1))
    found = client.query(
        TableName=table, KeyConditionExpression="id = :i", ExpressionAttributeValues={":i": s("a")}
    )

    assert error.message == "The provided key element does not match the schema"
    assert found["Items"] == [item(id="a", sk=1)]


def test_a_file_survives_a_restart(tmp_path: Path) -> None:
    """Items, indexes, tags, expiry and tokens are unchanged when the file is opened again."""
    path, token = tmp_path / "kept.db", str(uuid.uuid4())
    request: Any = {
        "TransactItems": [
            {
                "Update": {
                    "TableName": "kept",
                    "Key": item(pk="counter"),
                    "UpdateExpression": "ADD cnt :one SET a = :a",
                    "ExpressionAttributeValues": {":one": n(1), ":a": s("x")},
                }
            }
        ],
        "ClientRequestToken": token,
    }
    client = new_client(region="us-east-1", account="000000000000", endpoint_url="http://embedded.invalid")
    with Engine.open(path) as engine, mock(engine=engine):
        client.create_table(**table_request("kept", "pk", gsi={"by-a": "a"}))
        arn = client.describe_table(TableName="kept")["Table"]["TableArn"]
        client.tag_resource(ResourceArn=arn, Tags=[{"Key": "k", "Value": "v"}])
        client.update_time_to_live(
            TableName="kept", TimeToLiveSpecification={"Enabled": True, "AttributeName": "ends"}
        )
        client.transact_write_items(**request)
        before = client.describe_table(TableName="kept")["Table"]

    with Engine.open(path) as engine, mock(engine=engine):
        client.transact_write_items(**request)
        other = {**request, "TransactItems": [{"Delete": {"TableName": "kept", "Key": item(pk="counter")}}]}
        mismatch = refused(client.transact_write_items, **other)
        found = get(client, "kept", pk="counter")
        entries = client.scan(TableName="kept", IndexName="by-a")["Items"]
        tags = client.list_tags_of_resource(ResourceArn=arn)["Tags"]
        expiry = client.describe_time_to_live(TableName="kept")["TimeToLiveDescription"]
        after = client.describe_table(TableName="kept")["Table"]
        client.close()

    assert found == item(pk="counter", cnt=1, a="x")
    assert entries == [found]
    assert mismatch.code == "IdempotentParameterMismatchException"
    assert tags == [{"Key": "k", "Value": "v"}]
    assert expiry.get("AttributeName") == "ends"
    assert after == before
