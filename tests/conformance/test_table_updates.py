"""Changing a table that lives: indexes, billing, throughput, stream, class, protection."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.conformance.requests import (
    column,
    definitions,
    get,
    index,
    item,
    items_of,
    put,
    refused,
    s,
    settle,
)

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]
_UNITS: Any = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}


def _add_index(client: DynamoDBClient, table: str, name: str, keys: str) -> Any:
    change: Any = {"Create": index(name, keys)}
    words: Any = definitions(keys.partition("|")[0])
    return client.update_table(
        TableName=table, AttributeDefinitions=words, GlobalSecondaryIndexUpdates=[change]
    )["TableDescription"]


def test_a_new_index_is_filled_from_the_table(client: DynamoDBClient, tables: Tables) -> None:
    """An index that is added later holds every item that has its keys."""
    table = tables()
    put(client, table, *(item(pk=f"{number:03}", a="x" if number % 2 else "y") for number in range(60)))
    put(client, table, item(pk="none"))

    result = _add_index(client, table, "by-a", "a pk")
    found = settle(client, table)
    odd = items_of(
        client.query,
        TableName=table,
        IndexName="by-a",
        KeyConditionExpression="a = :a",
        ExpressionAttributeValues={":a": s("x")},
    )

    assert result["TableStatus"] == "UPDATING"
    assert result["GlobalSecondaryIndexes"][0]["IndexStatus"] == "CREATING"
    assert [each["IndexName"] for each in found["GlobalSecondaryIndexes"]] == ["by-a"]
    assert {"AttributeName": "a", "AttributeType": "S"} in found["AttributeDefinitions"]
    assert column(odd, "pk") == [f"{number:03}" for number in range(60) if number % 2]
    assert client.scan(TableName=table, IndexName="by-a", Select="COUNT")["Count"] == 60


def test_backfill_leaves_out_what_does_not_fit(client: DynamoDBClient, tables: Tables) -> None:
    """An old item whose index key has another type or is empty is left out; a new one is refused."""
    table = tables()
    put(client, table, item(pk="fits", a="x"), item(pk="number", a=1), item(pk="empty", a=""))

    _add_index(client, table, "by-a", "a")
    settle(client, table)
    found = client.scan(TableName=table, IndexName="by-a")["Items"]
    error = refused(client.put_item, TableName=table, Item=item(pk="late", a=1))

    assert column(found, "pk") == ["fits"]
    assert error.code == "ValidationException"
    assert "Type mismatch for Index Key a" in error.message


def test_an_item_outside_an_index_may_still_be_changed(client: DynamoDBClient, tables: Tables) -> None:
    """A change that leaves the misfit alone, or takes it away, is let through; the index follows."""
    table = tables()
    put(client, table, item(pk="p", a=1))
    _add_index(client, table, "by-a", "a")
    settle(client, table)

    client.update_item(
        TableName=table,
        Key=item(pk="p"),
        UpdateExpression="SET a = :a",
        ExpressionAttributeValues={":a": s("x")},
    )

    assert column(client.scan(TableName=table, IndexName="by-a")["Items"], "pk") == ["p"]


def test_a_new_index_follows_later_writes(client: DynamoDBClient, tables: Tables) -> None:
    """After backfill the index is maintained like an original one."""
    table = tables()
    put(client, table, item(pk="old", a="x"))
    _add_index(client, table, "by-a", "a | KEYS_ONLY")
    settle(client, table)

    put(client, table, item(pk="new", a="x", other="o"))
    client.delete_item(TableName=table, Key=item(pk="old"))
    found = client.scan(TableName=table, IndexName="by-a")["Items"]

    assert found == [item(pk="new", a="x")]


def test_an_index_may_be_deleted(client: DynamoDBClient, tables: Tables) -> None:
    """A deleted index is gone, its attribute is free, and the table's items are unchanged."""
    table = tables(gsi={"by-a": "a", "by-b": "b"})
    put(client, table, item(pk="p", a="x", b="y"))

    result = client.update_table(
        TableName=table, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-a"}}]
    )["TableDescription"]
    found = settle(client, table)
    put(client, table, item(pk="q", a=1, b="z"))
    error = refused(client.scan, TableName=table, IndexName="by-a")

    states = {each["IndexName"]: each["IndexStatus"] for each in result["GlobalSecondaryIndexes"]}
    assert states["by-a"] == "DELETING"
    assert [each["IndexName"] for each in found["GlobalSecondaryIndexes"]] == ["by-b"]
    assert error.message == "The table does not have the specified index: by-a"
    assert get(client, table, pk="q") == item(pk="q", a=1, b="z")
    assert client.scan(TableName=table, IndexName="by-b")["Count"] == 2


def test_an_index_may_be_made_again(client: DynamoDBClient, tables: Tables) -> None:
    """A released name may have other keys, and inherits nothing."""
    table = tables(gsi={"again": "a"})
    put(client, table, item(pk="p", a="x"), item(pk="q", b="y"))
    client.update_table(TableName=table, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "again"}}])
    settle(client, table)

    _add_index(client, table, "again", "b")
    settle(client, table)
    found = client.scan(TableName=table, IndexName="again")["Items"]

    assert column(found, "pk") == ["q"]


def test_the_mode_may_change(client: DynamoDBClient, tables: Tables) -> None:
    """Provisioned to on demand and back; the description reports both."""
    table = tables(BillingMode="PROVISIONED", ProvisionedThroughput=_UNITS)

    client.update_table(TableName=table, BillingMode="PAY_PER_REQUEST")
    demanded = settle(client, table)
    client.update_table(TableName=table, BillingMode="PROVISIONED", ProvisionedThroughput=_UNITS)
    provisioned = settle(client, table)

    assert demanded["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert demanded["ProvisionedThroughput"]["ReadCapacityUnits"] == 0
    assert provisioned["BillingModeSummary"]["BillingMode"] == "PROVISIONED"
    assert provisioned["ProvisionedThroughput"]["ReadCapacityUnits"] == 5


def test_units_may_change(client: DynamoDBClient, tables: Tables) -> None:
    """New units are reported, with the time of the change; a decrease is counted."""
    table = tables(BillingMode="PROVISIONED", ProvisionedThroughput=_UNITS)

    client.update_table(
        TableName=table, ProvisionedThroughput={"ReadCapacityUnits": 9, "WriteCapacityUnits": 9}
    )
    more = settle(client, table)["ProvisionedThroughput"]
    client.update_table(
        TableName=table, ProvisionedThroughput={"ReadCapacityUnits": 2, "WriteCapacityUnits": 9}
    )
    less = settle(client, table)["ProvisionedThroughput"]

    assert (more["ReadCapacityUnits"], more["WriteCapacityUnits"]) == (9, 9)
    assert "LastIncreaseDateTime" in more
    assert (less["ReadCapacityUnits"], less["NumberOfDecreasesToday"]) == (2, 1)
    assert "LastDecreaseDateTime" in less


def test_the_same_units_are_refused(client: DynamoDBClient, tables: Tables) -> None:
    """A change to the units that a table has is no change."""
    table = tables(BillingMode="PROVISIONED", ProvisionedThroughput=_UNITS)

    error = refused(client.update_table, TableName=table, ProvisionedThroughput=_UNITS)

    assert error.message == (
        "The provisioned throughput for the table will not change. The requested value equals the current value. "
        "Current ReadCapacityUnits provisioned for the table: 5. Requested ReadCapacityUnits: 5. "
        "Current WriteCapacityUnits provisioned for the table: 5. Requested WriteCapacityUnits: 5. "
        "Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits."
    )


def test_an_index_has_units_of_its_own(client: DynamoDBClient, tables: Tables) -> None:
    """In provisioned mode a global index has units, which change without the table's."""
    indexes = [{**index("by-a", "a"), "ProvisionedThroughput": _UNITS}]
    table = tables(
        AttributeDefinitions=definitions("pk a"),
        BillingMode="PROVISIONED",
        ProvisionedThroughput=_UNITS,
        GlobalSecondaryIndexes=indexes,
    )

    client.update_table(
        TableName=table,
        GlobalSecondaryIndexUpdates=[
            {
                "Update": {
                    "IndexName": "by-a",
                    "ProvisionedThroughput": {"ReadCapacityUnits": 7, "WriteCapacityUnits": 8},
                }
            }
        ],
    )
    found = settle(client, table)

    (gsi,) = found["GlobalSecondaryIndexes"]
    assert gsi["ProvisionedThroughput"]["ReadCapacityUnits"] == 7
    assert gsi["ProvisionedThroughput"]["WriteCapacityUnits"] == 8
    assert found["ProvisionedThroughput"]["ReadCapacityUnits"] == 5


def test_a_stream_may_be_switched(client: DynamoDBClient, tables: Tables) -> None:
    """Each enabling creates a new stream; a disabled one leaves its label."""
    table = tables()

    client.update_table(
        TableName=table, StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    )
    first = settle(client, table)
    client.update_table(TableName=table, StreamSpecification={"StreamEnabled": False})
    off = settle(client, table)

    assert first["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    assert first["LatestStreamArn"].endswith(first["LatestStreamLabel"])
    assert "StreamSpecification" not in off
    assert off["LatestStreamArn"] == first["LatestStreamArn"]


def test_a_stream_that_runs_is_not_started(client: DynamoDBClient, tables: Tables) -> None:
    """A stream's view is fixed while it runs."""
    table = tables(StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})

    error = refused(
        client.update_table,
        TableName=table,
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "OLD_IMAGE"},
    )

    assert error.code == "ValidationException"
    assert error.message == f"Table already has an enabled stream: TableName: {table}"


def test_class_and_protection_may_change(client: DynamoDBClient, tables: Tables) -> None:
    """Class and deletion protection change while the table lives."""
    table = tables()

    client.update_table(TableName=table, TableClass="STANDARD_INFREQUENT_ACCESS")
    settle(client, table)
    client.update_table(TableName=table, DeletionProtectionEnabled=True)
    found = settle(client, table)
    client.update_table(TableName=table, DeletionProtectionEnabled=False)

    assert found["TableClassSummary"]["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
    assert found["DeletionProtectionEnabled"] is True


@pytest.mark.parametrize("again", [1, 2])
def test_a_repeated_update_does_no_harm(client: DynamoDBClient, tables: Tables, again: int) -> None:
    """The same change twice leaves the table as one change does."""
    table = tables()
    put(client, table, item(pk="p"))

    for _ in range(again):
        client.update_table(TableName=table, DeletionProtectionEnabled=True)
    found = settle(client, table)
    client.update_table(TableName=table, DeletionProtectionEnabled=False)

    assert found["DeletionProtectionEnabled"] is True
    assert get(client, table, pk="p") == item(pk="p")


def test_a_stream_that_is_off_is_not_switched_off(client: DynamoDBClient, tables: Tables) -> None:
    """Disabling a disabled stream is refused."""
    error = refused(client.update_table, TableName=tables(), StreamSpecification={"StreamEnabled": False})

    assert error.code == "ValidationException"


def test_requests_may_be_limited_on_demand(client: DynamoDBClient, tables: Tables) -> None:
    """An on-demand table may have a maximum, which is reported."""
    table = tables(OnDemandThroughput={"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 20})

    made = settle(client, table)["OnDemandThroughput"]
    client.update_table(TableName=table, OnDemandThroughput={"MaxReadRequestUnits": 30})
    changed = settle(client, table)["OnDemandThroughput"]

    assert made == {"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 20}
    assert changed["MaxReadRequestUnits"] == 30


def test_an_index_added_to_a_provisioned_table_has_units(client: DynamoDBClient, tables: Tables) -> None:
    """In provisioned mode a new index needs provisioned units."""
    table = tables(BillingMode="PROVISIONED", ProvisionedThroughput=_UNITS)
    put(client, table, item(pk="p", a="x"))
    request: Any = {"TableName": table, "AttributeDefinitions": definitions("a")}

    error = refused(
        client.update_table, **request, GlobalSecondaryIndexUpdates=[{"Create": index("by-a", "a")}]
    )
    create: Any = {**index("by-a", "a"), "ProvisionedThroughput": _UNITS}
    client.update_table(**request, GlobalSecondaryIndexUpdates=[{"Create": create}])
    found = settle(client, table)

    assert error.code == "ValidationException"
    assert found["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"]["ReadCapacityUnits"] == 5
    assert client.scan(TableName=table, IndexName="by-a")["Count"] == 1
