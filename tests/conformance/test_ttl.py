"""Time to live: the attribute with the expiry time of an item."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.conformance.requests import get, item, put, refused

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]


def _set(client: DynamoDBClient, table: str, *, on: bool, name: str = "ends") -> object:
    return client.update_time_to_live(
        TableName=table, TimeToLiveSpecification={"Enabled": on, "AttributeName": name}
    )["TimeToLiveSpecification"]


def _describe_settings(client: DynamoDBClient, table: str) -> dict[str, object]:
    return dict(client.describe_time_to_live(TableName=table)["TimeToLiveDescription"])


def test_time_to_live_is_off_by_default(client: DynamoDBClient, tables: Tables) -> None:
    """A new table has time to live DISABLED."""
    assert _describe_settings(client, tables()) == {"TimeToLiveStatus": "DISABLED"}


def test_time_to_live_is_switched_on(client: DynamoDBClient, tables: Tables) -> None:
    """The response repeats the request; the description names the attribute."""
    table = tables()

    answer = _set(client, table, on=True)

    assert answer == {"Enabled": True, "AttributeName": "ends"}
    assert _describe_settings(client, table)["AttributeName"] == "ends"
    assert _describe_settings(client, table)["TimeToLiveStatus"] in ("ENABLING", "ENABLED")


def test_an_expired_item_is_visible_until_it_is_deleted(client: DynamoDBClient, tables: Tables) -> None:
    """An expired item is readable until it is deleted."""
    table = tables()
    _set(client, table, on=True)

    put(client, table, item(pk="p", ends="no number"), item(pk="q", ends=1))

    assert get(client, table, pk="q") == item(pk="q", ends=1)
    assert get(client, table, pk="p") == item(pk="p", ends="no number")


def test_it_is_not_switched_on_twice(client: DynamoDBClient, tables: Tables) -> None:
    """A second switching on is refused, for the same attribute and for another."""
    table = tables()
    _set(client, table, on=True)

    same = refused(_set, client=client, table=table, on=True)
    other = refused(_set, client=client, table=table, on=True, name="other")

    assert (same.code, same.message) == ("ValidationException", "TimeToLive is already enabled")
    assert other.code == "ValidationException"
    assert other.message == (
        "TimeToLive is active on a different AttributeName: current AttributeName is ends"
    )


def test_a_missing_table_is_named(client: DynamoDBClient) -> None:
    """Both operations name the missing table."""
    message = "Requested resource not found: Table: nobody not found"

    assert refused(client.describe_time_to_live, TableName="nobody").message == message
    assert refused(_set, client=client, table="nobody", on=True).message == message
