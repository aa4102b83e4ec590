"""Time to live: the attribute that tells when an item ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.conformance.asking import get, item, put, refused

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]


def _set(client: DynamoDBClient, table: str, *, on: bool, name: str = "ends") -> object:
    return client.update_time_to_live(
        TableName=table, TimeToLiveSpecification={"Enabled": on, "AttributeName": name}
    )["TimeToLiveSpecification"]


def _told(client: DynamoDBClient, table: str) -> dict[str, object]:
    return dict(client.describe_time_to_live(TableName=table)["TimeToLiveDescription"])


def test_a_new_table_keeps_its_items(client: DynamoDBClient, tables: Tables) -> None:
    """Time to live is off until it is asked for."""
    assert _told(client, tables()) == {"TimeToLiveStatus": "DISABLED"}


def test_time_to_live_is_switched_on(client: DynamoDBClient, tables: Tables) -> None:
    """The answer repeats the wish; the description tells the attribute."""
    table = tables()

    answer = _set(client, table, on=True)

    assert answer == {"Enabled": True, "AttributeName": "ends"}
    assert _told(client, table)["AttributeName"] == "ends"
    assert _told(client, table)["TimeToLiveStatus"] in ("ENABLING", "ENABLED")


def test_an_expired_item_is_visible_until_it_is_deleted(client: DynamoDBClient, tables: Tables) -> None:
    """Expiry hides nothing: an item is read until it is really gone."""
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


def test_a_table_that_is_not_there(client: DynamoDBClient) -> None:
    """Both operations name the table that they cannot find."""
    wanted = "Requested resource not found: Table: nobody not found"

    assert refused(client.describe_time_to_live, TableName="nobody").message == wanted
    assert refused(_set, client=client, table="nobody", on=True).message == wanted
