"""Transactions: all or nothing, reasons in order, and tokens."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tavola.clock import ManualClock
from tavola.engine import Engine
from tavola.mocks import mock
from tests.conformance.backends import new_client
from tests.conformance.requests import get, item, n, put, refused, s, table_request

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

Tables = Callable[..., str]


def _put(table: str, condition: str | None = None, returned: str | None = None, **attributes: Any) -> Any:
    action: dict[str, Any] = {"TableName": table, "Item": item(**attributes)}
    if condition:
        action["ConditionExpression"] = condition
    if returned:
        action["ReturnValuesOnConditionCheckFailure"] = returned
    return {"Put": action}


def _delete(table: str, **key: Any) -> Any:
    return {"Delete": {"TableName": table, "Key": item(**key)}}


def _check(table: str, condition: str, returned: str | None = None, **key: Any) -> Any:
    action = {"TableName": table, "Key": item(**key), "ConditionExpression": condition}
    return {
        "ConditionCheck": action
        if returned is None
        else {**action, "ReturnValuesOnConditionCheckFailure": returned}
    }


def _add(table: str, **key: Any) -> Any:
    return {
        "Update": {
            "TableName": table,
            "Key": item(**key),
            "UpdateExpression": "ADD cnt :one",
            "ExpressionAttributeValues": {":one": n(1)},
        }
    }


def test_four_kinds_of_action(client: DynamoDBClient, tables: Tables) -> None:
    """Put, update, delete and check of several tables happen together."""
    one, two = tables(), tables("pk sk:N")
    put(client, one, item(pk="gone"), item(pk="seen", v=1))

    client.transact_write_items(
        TransactItems=[
            _put(two, pk="p", sk=1),
            _add(one, pk="counter"),
            _delete(one, pk="gone"),
            _check(one, "attribute_exists(v)", pk="seen"),
        ]
    )

    assert get(client, two, pk="p", sk=1) == item(pk="p", sk=1)
    assert get(client, one, pk="counter") == item(pk="counter", cnt=1)
    assert get(client, one, pk="gone") is None
    assert get(client, one, pk="seen") == item(pk="seen", v=1)


def test_a_failed_check_undoes_everything(client: DynamoDBClient, tables: Tables) -> None:
    """With one false condition no write is visible, in the table or an index."""
    table = tables(gsi={"by-a": "a"})
    put(client, table, item(pk="old", a="x"))

    error = refused(
        client.transact_write_items,
        TransactItems=[
            _put(table, pk="new", a="x"),
            _delete(table, pk="old"),
            _check(table, "attribute_exists(pk)", pk="nobody"),
        ],
    )

    assert error.code == "TransactionCanceledException"
    assert error.message == (
        "Transaction cancelled, please refer cancellation reasons for specific reasons "
        "[None, None, ConditionalCheckFailed]"
    )
    assert error.reasons == [
        {"Code": "None"},
        {"Code": "None"},
        {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"},
    ]
    assert get(client, table, pk="new") is None
    assert client.scan(TableName=table, IndexName="by-a")["Items"] == [item(pk="old", a="x")]


def test_every_failed_condition_is_reported(client: DynamoDBClient, tables: Tables) -> None:
    """Reasons are in the order of the actions, with the item if requested."""
    table = tables()
    put(client, table, item(pk="a", v=1), item(pk="c", v=3))

    error = refused(
        client.transact_write_items,
        TransactItems=[
            _put(table, "attribute_not_exists(pk)", "ALL_OLD", pk="a"),
            _put(table, pk="b"),
            _check(table, "v = pk", "ALL_OLD", pk="c"),
            _check(table, "attribute_exists(pk)", "ALL_OLD", pk="nobody"),
            _put(table, "attribute_exists(pk)", "NONE", pk="e"),
        ],
    )

    failed = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
    assert error.reasons == [
        {**failed, "Item": item(pk="a", v=1)},
        {"Code": "None"},
        {**failed, "Item": item(pk="c", v=3)},
        failed,
        failed,
    ]


def test_of_several_validation_errors_the_first_is_reported(client: DynamoDBClient, tables: Tables) -> None:
    """Only the first ValidationError is among the reasons."""
    table = tables()

    error = refused(
        client.transact_write_items,
        TransactItems=[_put(table, pk="fine"), _put(table, pk=1), _put(table, pk=2)],
    )

    assert error.reason_codes == ["None", "ValidationError", "None"]


def test_conditions_see_the_state_before_the_transaction(client: DynamoDBClient, tables: Tables) -> None:
    """No action sees what another of the same transaction writes."""
    table = tables()

    error = refused(
        client.transact_write_items,
        TransactItems=[
            _put(table, pk="a"),
            _check(table, "attribute_exists(pk)", pk="b"),
            _put(table, pk="c"),
        ],
    )
    client.transact_write_items(
        TransactItems=[_put(table, pk="a"), _check(table, "attribute_not_exists(pk)", pk="b")]
    )

    assert error.reason_codes == ["None", "ConditionalCheckFailed", "None"]
    assert get(client, table, pk="a") == item(pk="a")


def test_a_check_writes_nothing(client: DynamoDBClient, tables: Tables) -> None:
    """A condition that holds does not change or create the item."""
    table = tables()

    client.transact_write_items(TransactItems=[_check(table, "attribute_not_exists(pk)", pk="p")])

    assert get(client, table, pk="p") is None


def test_100_actions(client: DynamoDBClient, tables: Tables) -> None:
    """A transaction takes 100 actions, and returns 100 items in order."""
    table = tables()

    client.transact_write_items(TransactItems=[_put(table, pk=f"{i}", v=i) for i in range(100)])
    found = client.transact_get_items(
        TransactItems=[{"Get": {"TableName": table, "Key": item(pk=f"{i}")}} for i in reversed(range(100))]
    )

    assert [each["Item"]["v"]["N"] for each in found["Responses"]] == [str(i) for i in reversed(range(100))]


def test_a_get_of_a_missing_item(client: DynamoDBClient, tables: Tables) -> None:
    """A missing item has an empty response; a projection applies to the others."""
    table = tables()
    put(client, table, item(pk="p", a="x", b="y"))

    found = client.transact_get_items(
        TransactItems=[
            {"Get": {"TableName": table, "Key": item(pk="nobody")}},
            {"Get": {"TableName": table, "Key": item(pk="p"), "ProjectionExpression": "b"}},
        ]
    )

    assert found["Responses"] == [{}, {"Item": item(b="y")}]


def test_large_items_may_be_deleted_together(client: DynamoDBClient, tables: Tables) -> None:
    """The 4 MB are those of the request, not of what it deletes."""
    table = tables()
    names = [f"{number}" for number in range(12)]
    for name in names:
        put(client, table, item(pk=name, v="x" * 390_000))

    client.transact_write_items(TransactItems=[_delete(table, pk=name) for name in names])

    assert client.scan(TableName=table, Select="COUNT")["Count"] == 0


def test_a_token_is_done_once(client: DynamoDBClient, tables: Tables) -> None:
    """A repeated request with its token succeeds again and changes nothing."""
    table = tables()
    token = str(uuid.uuid4())

    for _ in range(3):
        client.transact_write_items(TransactItems=[_add(table, pk="p")], ClientRequestToken=token)
    client.transact_write_items(TransactItems=[_add(table, pk="p")], ClientRequestToken=str(uuid.uuid4()))

    assert get(client, table, pk="p") == item(pk="p", cnt=2)


def test_a_token_belongs_to_its_request(client: DynamoDBClient, tables: Tables) -> None:
    """The same token with another request is refused."""
    table = tables()
    token = str(uuid.uuid4())
    client.transact_write_items(TransactItems=[_add(table, pk="p")], ClientRequestToken=token)

    error = refused(
        client.transact_write_items, TransactItems=[_add(table, pk="q")], ClientRequestToken=token
    )

    assert error.code == "IdempotentParameterMismatchException"
    assert get(client, table, pk="q") is None


def test_a_cancelled_transaction_does_not_use_up_its_token(client: DynamoDBClient, tables: Tables) -> None:
    """A token is used up by success: a cancelled transaction can be retried with it."""
    table = tables()
    token = str(uuid.uuid4())
    actions = [_check(table, "attribute_exists(pk)", pk="wanted"), _add(table, pk="p")]
    refused(client.transact_write_items, TransactItems=actions, ClientRequestToken=token)
    put(client, table, item(pk="wanted"))

    client.transact_write_items(TransactItems=actions, ClientRequestToken=token)

    assert get(client, table, pk="p") == item(pk="p", cnt=1)


@pytest.mark.parametrize("operation", ["Put", "Update", "Delete"])
def test_a_failed_action_returns_its_item(client: DynamoDBClient, tables: Tables, operation: str) -> None:
    """Each kind of action can return the item that failed its condition."""
    table = tables()
    put(client, table, item(pk="p", v=1))
    target: dict[str, Any] = {"Item": item(pk="p")} if operation == "Put" else {"Key": item(pk="p")}
    if operation == "Update":
        target["UpdateExpression"] = "REMOVE v"

    error = refused(
        client.transact_write_items,
        TransactItems=[
            {
                operation: {
                    "TableName": table,
                    **target,
                    "ConditionExpression": "attribute_not_exists(pk)",
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                }
            }
        ],
    )

    assert error.reasons[0]["Item"] == item(pk="p", v=1)


def test_item_collection_metrics(client: DynamoDBClient, tables: Tables) -> None:
    """Metrics come per table with local indexes."""
    table = tables("pk sk", lsi={"by-l": "pk l"})

    answer = client.transact_write_items(
        TransactItems=[_put(table, pk="p", sk="1"), _put(table, pk="q", sk="1")],
        ReturnItemCollectionMetrics="SIZE",
    )

    found = answer["ItemCollectionMetrics"][table]
    assert sorted(each["ItemCollectionKey"]["pk"]["S"] for each in found) == ["p", "q"]


def test_a_transaction_updates_indexes(client: DynamoDBClient, tables: Tables) -> None:
    """The index entries of a transaction's items are updated with them."""
    table = tables(gsi={"by-a": "a"})
    put(client, table, item(pk="one", a="x"), item(pk="two", a="x"))

    client.transact_write_items(
        TransactItems=[
            _put(table, pk="one", a="y"),
            _delete(table, pk="two"),
            {
                "Update": {
                    "TableName": table,
                    "Key": item(pk="three"),
                    "UpdateExpression": "SET a = :a",
                    "ExpressionAttributeValues": {":a": s("y")},
                }
            },
        ]
    )
    found = client.scan(TableName=table, IndexName="by-a")["Items"]

    assert sorted(each["pk"]["S"] for each in found) == ["one", "three"]
    assert {each["a"]["S"] for each in found} == {"y"}


def test_a_token_lasts_ten_minutes() -> None:
    """A token is remembered for ten minutes after its request, and then may be used for another."""
    clock = ManualClock(1_900_000_000)
    client = new_client(region="us-east-1", account="000000000000", endpoint_url="http://embedded.invalid")
    with Engine.open(clock=clock) as engine, mock(engine=engine):
        client.create_table(**table_request("tokens", "pk"))
        request: Any = {"TransactItems": [_add("tokens", pk="p")], "ClientRequestToken": "token"}
        client.transact_write_items(**request)
        clock.advance(9 * 60 + 59)
        client.transact_write_items(**request)
        within = get(client, "tokens", pk="p")
        clock.advance(2)
        client.transact_write_items(**request)
        after = get(client, "tokens", pk="p")
    client.close()

    assert within == item(pk="p", cnt=1)
    assert after == item(pk="p", cnt=2)


def test_a_table_named_twice_is_one_table(client: DynamoDBClient, tables: Tables) -> None:
    """The same item by its table's name and by its ARN is the same item."""
    table = tables()
    arn = client.describe_table(TableName=table)["Table"]["TableArn"]

    error = refused(client.transact_write_items, TransactItems=[_put(table, pk="p"), _delete(arn, pk="p")])

    assert error.message == "Transaction request cannot include multiple operations on one item"


def test_a_refused_request_changes_nothing(client: DynamoDBClient, tables: Tables) -> None:
    """A transaction that is refused for one action's form does none of its actions."""
    table = tables()

    missing = refused(
        client.transact_write_items, TransactItems=[_put(table, pk="p"), _put("nobody", pk="p")]
    )
    malformed = refused(client.transact_write_items, TransactItems=[_put(table, pk="p"), _put(table, pk="")])

    assert missing.code == "ResourceNotFoundException"
    assert malformed.code == "ValidationException"
    assert get(client, table, pk="p") is None


def test_every_kind_of_failure_in_its_place(client: DynamoDBClient, tables: Tables) -> None:
    """A failed condition and a validation error are each at their action's position."""
    table = tables()

    error = refused(
        client.transact_write_items,
        TransactItems=[
            _check(table, "attribute_exists(pk)", pk="nobody"),
            _put(table, pk="fine"),
            _put(table, pk=7),
        ],
    )

    assert error.reason_codes in (
        ["ConditionalCheckFailed", "None", "ValidationError"],
        ["None", "None", "ValidationError"],
    )
    assert get(client, table, pk="fine") is None
