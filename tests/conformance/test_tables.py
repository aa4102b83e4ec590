"""Tables: create, describe, list, delete, and what an account is reported of its limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.mocks import mock
from tests.conformance.backends import Backend, new_client
from tests.conformance.requests import definitions, get, index, item, put, refused, table_request

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]
Fresh = Callable[[], str]
_UNITS: Any = {"ReadCapacityUnits": 3, "WriteCapacityUnits": 4}


def test_a_new_table_is_creating(client: DynamoDBClient, fresh: Fresh) -> None:
    """CreateTable answers with the description of a table that is being made."""
    name = fresh()

    made = client.create_table(**table_request(name, "pk sk:N"))["TableDescription"]
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    client.delete_table(TableName=name)

    assert made["TableStatus"] == "CREATING"
    assert made["TableName"] == name
    assert made["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]
    assert made["AttributeDefinitions"] == [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "N"},
    ]
    assert (made["ItemCount"], made["TableSizeBytes"]) == (0, 0)
    assert made["DeletionProtectionEnabled"] is False
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made["TableId"])
    assert re.fullmatch(rf"arn:aws:dynamodb:[a-z0-9-]+:\d{{12}}:table/{name}", made["TableArn"])
    assert abs((datetime.now(UTC) - made["CreationDateTime"]).total_seconds()) < 60


def test_an_on_demand_table_has_no_units(client: DynamoDBClient, tables: Tables) -> None:
    """On demand, the units are zero and the billing mode is reported."""
    found = client.describe_table(TableName=tables())["Table"]

    assert found["TableStatus"] == "ACTIVE"
    assert found["ProvisionedThroughput"]["ReadCapacityUnits"] == 0
    assert found["ProvisionedThroughput"]["WriteCapacityUnits"] == 0
    assert found["ProvisionedThroughput"]["NumberOfDecreasesToday"] == 0
    assert found["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert "LastUpdateToPayPerRequestDateTime" in found["BillingModeSummary"]
    assert found["WarmThroughput"]["ReadUnitsPerSecond"] == 12_000
    assert found["WarmThroughput"]["WriteUnitsPerSecond"] == 4_000


def test_a_provisioned_table_reports_its_units(client: DynamoDBClient, tables: Tables) -> None:
    """Provisioned is the default mode, without a billing mode summary."""
    table = tables(BillingMode="PROVISIONED", ProvisionedThroughput=_UNITS)

    found = client.describe_table(TableName=table)["Table"]

    assert found["ProvisionedThroughput"]["ReadCapacityUnits"] == 3
    assert found["ProvisionedThroughput"]["WriteCapacityUnits"] == 4
    assert "BillingModeSummary" not in found


def test_indexes_are_described(client: DynamoDBClient, tables: Tables) -> None:
    """Each index is reported with its keys, projection, ARN and size; a global one with its status."""
    table = tables("pk sk", gsi={"by-a": "a b:N | x y"}, lsi={"by-l": "pk l:B | KEYS_ONLY"})

    found = client.describe_table(TableName=table)["Table"]

    (gsi,) = found["GlobalSecondaryIndexes"]
    (lsi,) = found["LocalSecondaryIndexes"]
    assert gsi["IndexName"] == "by-a"
    assert gsi["IndexStatus"] == "ACTIVE"
    assert gsi["KeySchema"] == [
        {"AttributeName": "a", "KeyType": "HASH"},
        {"AttributeName": "b", "KeyType": "RANGE"},
    ]
    assert gsi["Projection"]["ProjectionType"] == "INCLUDE"
    assert sorted(gsi["Projection"]["NonKeyAttributes"]) == ["x", "y"]
    assert gsi["IndexArn"] == f"{found['TableArn']}/index/by-a"
    assert (gsi["IndexSizeBytes"], gsi["ItemCount"]) == (0, 0)
    assert lsi["Projection"] == {"ProjectionType": "KEYS_ONLY"}
    assert lsi["IndexArn"] == f"{found['TableArn']}/index/by-l"
    assert "IndexStatus" not in lsi


@pytest.mark.parametrize("view", ["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"])
def test_a_stream_is_described(client: DynamoDBClient, tables: Tables, view: str) -> None:
    """A table with a stream reports its view, its label and its ARN."""
    table = tables(StreamSpecification={"StreamEnabled": True, "StreamViewType": view})

    found = client.describe_table(TableName=table)["Table"]

    assert found["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": view}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}", found["LatestStreamLabel"])
    assert found["LatestStreamArn"] == f"{found['TableArn']}/stream/{found['LatestStreamLabel']}"


def test_class_and_protection_are_described(client: DynamoDBClient, tables: Tables) -> None:
    """A table may be created with a table class and deletion protection."""
    table = tables(TableClass="STANDARD_INFREQUENT_ACCESS", DeletionProtectionEnabled=True)

    found = client.describe_table(TableName=table)["Table"]
    client.update_table(TableName=table, DeletionProtectionEnabled=False)

    assert found["TableClassSummary"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
    assert found["DeletionProtectionEnabled"] is True


def test_a_table_is_named_by_its_arn(client: DynamoDBClient, tables: Tables) -> None:
    """A table's ARN will do wherever its name does."""
    table = tables()
    arn = client.describe_table(TableName=table)["Table"]["TableArn"]
    put(client, arn, item(pk="a"))

    found = client.describe_table(TableName=arn)["Table"]

    assert found["TableName"] == table
    assert get(client, table, pk="a") == get(client, arn, pk="a") == item(pk="a")


def test_a_protected_table_is_not_deleted(client: DynamoDBClient, tables: Tables) -> None:
    """Deletion protection refuses DeleteTable and no other operation."""
    table = tables(DeletionProtectionEnabled=True)
    put(client, table, item(pk="a"))

    client.delete_item(TableName=table, Key=item(pk="a"))
    error = refused(client.delete_table, TableName=table)
    client.update_table(TableName=table, DeletionProtectionEnabled=False)

    assert error.code == "ValidationException"
    assert error.message == (
        "Resource cannot be deleted as it is currently protected against deletion. "
        "Disable deletion protection first."
    )


def test_a_deleted_table_is_gone(client: DynamoDBClient, fresh: Fresh) -> None:
    """DeleteTable answers DELETING; then the table is not found."""
    name = fresh()
    client.create_table(**table_request(name, "pk"))
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})

    answer = client.delete_table(TableName=name)["TableDescription"]
    client.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    error = refused(client.describe_table, TableName=name)

    assert (answer["TableName"], answer["TableStatus"]) == (name, "DELETING")
    assert error.code == "ResourceNotFoundException"
    assert name not in client.list_tables()["TableNames"]


def test_a_table_of_the_same_name_inherits_nothing(client: DynamoDBClient, fresh: Fresh) -> None:
    """A table made under the name of a deleted one has no items, indexes, tags or expiry of it."""
    name = fresh()
    client.create_table(**table_request(name, "pk", gsi={"by-a": "a"}))
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    first = client.describe_table(TableName=name)["Table"]
    put(client, name, item(pk="p", a="x"))
    client.tag_resource(ResourceArn=first["TableArn"], Tags=[{"Key": "k", "Value": "v"}])
    client.update_time_to_live(
        TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"}
    )
    client.delete_table(TableName=name)
    client.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig={"Delay": 1})

    client.create_table(**table_request(name, "pk", gsi={"by-a": "a"}))
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    second = client.describe_table(TableName=name)["Table"]
    scanned = client.scan(TableName=name, ConsistentRead=True)
    indexed = client.scan(TableName=name, IndexName="by-a")
    tags = client.list_tags_of_resource(ResourceArn=second["TableArn"])
    expiry = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    client.delete_table(TableName=name)

    assert second["TableId"] != first["TableId"]
    assert (scanned["Count"], indexed["Count"]) == (0, 0)
    assert tags["Tags"] == []
    assert expiry["TimeToLiveStatus"] == "DISABLED"


def test_a_table_may_have_another_schema_under_an_old_name(client: DynamoDBClient, fresh: Fresh) -> None:
    """The keys of a deleted table bind no one."""
    name = fresh()
    client.create_table(**table_request(name, "pk sk"))
    client.delete_table(TableName=name)
    client.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig={"Delay": 1})

    client.create_table(**table_request(name, "id:N"))
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    put(client, name, item(id=1))
    found = get(client, name, id=1)
    client.delete_table(TableName=name)

    assert found == item(id=1)


def test_tables_are_listed_by_name_in_pages(client: DynamoDBClient, fresh: Fresh) -> None:
    """Names are in byte order, `Limit` at a time, after ExclusiveStartTableName."""
    stem = fresh()
    names = [f"{stem}-{end}" for end in ("B", "a", "_", "10", "9")]
    for name in names:
        client.create_table(**table_request(name, "pk"))

    first = client.list_tables(ExclusiveStartTableName=stem, Limit=2)
    second = client.list_tables(ExclusiveStartTableName=first["LastEvaluatedTableName"], Limit=3)
    for name in names:
        client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
        client.delete_table(TableName=name)

    assert first["TableNames"] == sorted(names)[:2]
    assert first["LastEvaluatedTableName"] == sorted(names)[1]
    assert second["TableNames"] == sorted(names)[2:]


def test_a_table_may_carry_tags(client: DynamoDBClient, tables: Tables) -> None:
    """A table can be created with tags."""
    table = tables(Tags=[{"Key": "team", "Value": "desk"}])
    arn = client.describe_table(TableName=table)["Table"]["TableArn"]

    found = client.list_tags_of_resource(ResourceArn=arn)

    assert found["Tags"] == [{"Key": "team", "Value": "desk"}]


def test_limits_are_reported(client: DynamoDBClient) -> None:
    """DescribeLimits reports the capacity of an account and of a table."""
    found = client.describe_limits()

    assert found["AccountMaxReadCapacityUnits"] >= found["TableMaxReadCapacityUnits"] > 0
    assert found["AccountMaxWriteCapacityUnits"] >= found["TableMaxWriteCapacityUnits"] > 0


def test_an_endpoint_is_reported(client: DynamoDBClient) -> None:
    """DescribeEndpoints returns an address and its cache period."""
    (found,) = client.describe_endpoints()["Endpoints"]

    assert found["Address"]
    assert found["CachePeriodInMinutes"] == 1440


@pytest.mark.parametrize("kind", ["S", "N", "B"])
def test_a_key_may_be_of_three_types(client: DynamoDBClient, tables: Tables, kind: str) -> None:
    """Strings, numbers and binaries may be hash and range keys."""
    table = tables(f"pk:{kind} sk:{kind}")
    values: Any = {"S": "7", "N": "7", "B": b"7"}
    key = {"pk": {kind: values[kind]}, "sk": {kind: values[kind]}}
    client.put_item(TableName=table, Item=key)

    found = client.get_item(TableName=table, Key=key)

    assert found["Item"] == key


def test_the_largest_table_has_all_its_indexes(client: DynamoDBClient, tables: Tables) -> None:
    """A table may have 20 global and 5 local indexes at once."""
    table = tables(
        "pk sk",
        gsi={f"gsi-{number}": f"a{number}" for number in range(20)},
        lsi={f"lsi-{number}": f"pk l{number}" for number in range(5)},
    )
    everything = {f"a{number}": f"v{number}" for number in range(20)}
    put(client, table, item(pk="p", sk="s", **everything, **{f"l{number}": "v" for number in range(5)}))

    found = client.scan(TableName=table, IndexName="gsi-19")
    local = client.scan(TableName=table, IndexName="lsi-4")

    assert (found["Count"], local["Count"]) == (1, 1)


def test_accounts_and_regions_have_their_own_names(backend: Backend, fresh: Fresh) -> None:
    """The same name may be a table in another region and in another account."""
    name = fresh()
    if backend.name == "aws":
        clients = [backend.client(region="us-east-1"), backend.client(region="eu-west-1")]
    else:
        clients = [
            backend.client(region="us-east-1", account="111111111111"),
            backend.client(region="eu-west-1", account="111111111111"),
            backend.client(region="us-east-1", account="222222222222"),
        ]
    for each in clients:
        each.create_table(**table_request(name, "pk"))
        each.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})

    arns = {each.describe_table(TableName=name)["Table"]["TableArn"] for each in clients}
    clients[0].delete_table(TableName=name)
    left = [name in each.list_tables()["TableNames"] for each in clients[1:]]
    for each in clients[1:]:
        each.delete_table(TableName=name)
    for each in clients:
        each.close()

    assert len(arns) == len(clients)
    assert all(left)


@pytest.fixture
def slow() -> Iterator[tuple[DynamoDBClient, ManualClock]]:
    """A client of an engine whose tables and indexes take ten seconds to make, on a clock of our own."""
    clock = ManualClock(1_900_000_000)
    client = new_client(region="us-east-1", account="000000000000", endpoint_url="http://embedded.invalid")
    with Engine.open(clock=clock, table_delay_ms=10_000) as engine, mock(engine=engine):
        yield client, clock
    client.close()


def test_a_table_that_is_being_made(slow: tuple[DynamoDBClient, ManualClock]) -> None:
    """While it is CREATING a table is described, and neither read, written, changed nor deleted."""
    client, clock = slow
    client.create_table(**table_request("slow", "pk"))

    before = client.describe_table(TableName="slow")["Table"]["TableStatus"]
    read = refused(client.get_item, TableName="slow", Key=item(pk="p"))
    written = refused(client.put_item, TableName="slow", Item=item(pk="p"))
    deleted = refused(client.delete_table, TableName="slow")
    again = refused(client.create_table, **table_request("slow", "pk"))
    clock.advance(11)
    after = client.describe_table(TableName="slow")["Table"]["TableStatus"]
    put(client, "slow", item(pk="p"))

    assert (before, after) == ("CREATING", "ACTIVE")
    assert (read.code, read.message) == ("ResourceNotFoundException", "Requested resource not found")
    assert written.code == "ResourceNotFoundException"
    assert (deleted.code, deleted.message) == (
        "ResourceInUseException",
        "Attempt to change a resource which is still in use: Table is being created: slow",
    )
    assert (again.code, again.message) == (deleted.code, deleted.message)
    assert get(client, "slow", pk="p") == item(pk="p")


def test_an_index_that_is_being_made(slow: tuple[DynamoDBClient, ManualClock]) -> None:
    """An index stays CREATING until it is filled; meanwhile writes go on and count in it."""
    client, clock = slow
    client.create_table(**table_request("slow", "pk"))
    clock.advance(11)
    put(client, "slow", item(pk="old", a="x"), item(pk="gone", a="x"))
    change: Any = {"Create": index("by-a", "a")}
    words: Any = definitions("a")

    client.update_table(TableName="slow", AttributeDefinitions=words, GlobalSecondaryIndexUpdates=[change])
    during = client.describe_table(TableName="slow")["Table"]
    put(client, "slow", item(pk="new", a="x"))
    client.delete_item(TableName="slow", Key=item(pk="gone"))
    clock.advance(11)
    after = client.describe_table(TableName="slow")["Table"]
    found = client.scan(TableName="slow", IndexName="by-a")["Items"]

    assert during["TableStatus"] == "UPDATING"
    assert during["GlobalSecondaryIndexes"][0]["IndexStatus"] == "CREATING"
    assert after["TableStatus"] == "ACTIVE"
    assert after["GlobalSecondaryIndexes"][0]["IndexStatus"] == "ACTIVE"
    assert sorted(each["pk"]["S"] for each in found) == ["new", "old"]
