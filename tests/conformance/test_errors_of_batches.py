"""Refusals of batches and transactions, each with AWS's whole sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conformance.backends import Answer
from tests.conformance.requests import OOM, item, n, s
from tests.conformance.sentences import HASH, KEY, MISSING, TABLE, Row, check, member, modern_member, rows

pytestmark = pytest.mark.usefixtures("sentences")

_NULL = "Member must not be null"
_KEYS = [item(pk=str(number), sk="s") for number in range(101)]
_DUPLICATES = "Provided list of item keys contains duplicates"


def _put(stored: dict[str, Any]) -> dict[str, Any]:
    return {"PutRequest": {"Item": stored}}


def _batches() -> Iterator[Row]:
    for operation in ("BatchGetItem", "BatchWriteItem"):
        yield Row("no requests", operation, {}, member("requestItems", _NULL))
    yield Row(
        "empty",
        "BatchGetItem",
        {"RequestItems": {}},
        modern_member("RequestItems", "Member must have length greater than or equal to 1"),
    )
    yield Row(
        "empty",
        "BatchWriteItem",
        {"RequestItems": {}},
        "The requestItems parameter is required for BatchWriteItem",
    )
    yield Row(
        "101 keys",
        "BatchGetItem",
        {"RequestItems": {TABLE: {"Keys": _KEYS}}},
        modern_member(
            f"RequestItems.{TABLE}.member.Keys", "Member must have length less than or equal to 100"
        ),
    )
    yield Row(
        "101 keys of two tables",
        "BatchGetItem",
        {
            "RequestItems": {
                TABLE: {"Keys": _KEYS[:60]},
                HASH: {"Keys": [item(pk=str(number)) for number in range(41)]},
            }
        },
        "Too many items requested for the BatchGetItem call",
    )
    yield Row(
        "no keys",
        "BatchGetItem",
        {"RequestItems": {TABLE: {"Keys": []}}},
        modern_member(
            f"RequestItems.{TABLE}.member.Keys", "Member must have length greater than or equal to 1"
        ),
    )
    yield Row(
        "bad table name",
        "BatchGetItem",
        {"RequestItems": {"bad!name": {"Keys": [{"pk": s("a")}]}}},
        member(
            "requestItems",
            "Map keys must satisfy constraint: [Member must have length less than or equal to 255, "
            "Member must have length greater than or equal to 3, "
            "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]",
            value="""'{"bad!name":{"Keys":[{"pk":{"S":"a"}}]}}'""",
        ),
    )
    yield Row("duplicates", "BatchGetItem", {"RequestItems": {TABLE: {"Keys": [KEY, KEY]}}}, _DUPLICATES)
    yield Row("duplicates", "BatchWriteItem", {"RequestItems": {TABLE: [_put(KEY), _put(KEY)]}}, _DUPLICATES)
    yield Row(
        "put and delete of one item",
        "BatchWriteItem",
        {"RequestItems": {TABLE: [_put(KEY), {"DeleteRequest": {"Key": KEY}}]}},
        _DUPLICATES,
    )
    missing = ("Requested resource not found", "ResourceNotFoundException")
    yield Row("missing table", "BatchGetItem", {"RequestItems": {MISSING: {"Keys": [KEY]}}}, *missing)
    yield Row("missing table", "BatchWriteItem", {"RequestItems": {MISSING: [_put(KEY)]}}, *missing)
    yield Row(
        "table before duplicates",
        "BatchWriteItem",
        {"RequestItems": {MISSING: [_put(KEY), _put(KEY)]}},
        *missing,
    )
    yield Row(
        "put and delete in one request",
        "BatchWriteItem",
        {"RequestItems": {TABLE: [{**_put(KEY), "DeleteRequest": {"Key": KEY}}]}},
        "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported "
        "datatypes",
    )
    yield Row(
        "empty request",
        "BatchWriteItem",
        {"RequestItems": {TABLE: [{}]}},
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
    )


def _transactions() -> Iterator[Row]:
    def write(id: str, action: dict[str, Any], result: str, code: str = "ValidationException") -> Row:
        return Row(id, "TransactWriteItems", {"TransactItems": [action]}, result, code)

    for operation in ("TransactGetItems", "TransactWriteItems"):
        yield Row("nothing", operation, {}, member("transactItems", _NULL))
        yield Row(
            "empty",
            operation,
            {"TransactItems": []},
            member("transactItems", "Member must have length greater than or equal to 1", value="'[]'"),
        )
    yield write(
        "no action",
        {},
        "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
    )
    yield write(
        "two actions",
        {"Put": {"TableName": TABLE, "Item": KEY}, "Delete": {"TableName": TABLE, "Key": KEY}},
        "TransactItems can only contain one of Check, Put, Update or Delete",
    )
    twice = "Transaction request cannot include multiple operations on one item"
    check_ = {
        "ConditionCheck": {"TableName": TABLE, "Key": KEY, "ConditionExpression": "attribute_exists(pk)"}
    }
    delete = {"Delete": {"TableName": TABLE, "Key": KEY}}
    yield Row("same item twice", "TransactWriteItems", {"TransactItems": [check_, delete]}, twice)
    get = {"Get": {"TableName": TABLE, "Key": KEY}}
    yield Row("same item twice", "TransactGetItems", {"TransactItems": [get, get]}, twice)
    missing = ("Requested resource not found", "ResourceNotFoundException")
    yield write("missing table", {"Delete": {"TableName": MISSING, "Key": KEY}}, *missing)
    yield Row(
        "missing table",
        "TransactGetItems",
        {"TransactItems": [{"Get": {"TableName": MISSING, "Key": KEY}}]},
        *missing,
    )
    yield write(
        "check without condition",
        {"ConditionCheck": {"TableName": TABLE, "Key": KEY}},
        member("transactItems.1.member.conditionCheck.conditionExpression", _NULL),
    )
    yield write(
        "bad return of a put",
        {"Put": {"TableName": TABLE, "Item": KEY, "ReturnValuesOnConditionCheckFailure": "x"}},
        member(
            "transactItems.1.member.put.returnValuesOnConditionCheckFailure",
            "Member must satisfy enum value set: [ALL_OLD, NONE]",
            value="'x'",
        ),
    )
    yield write(
        "no key", {"Delete": {"TableName": TABLE}}, member("transactItems.1.member.delete.key", _NULL)
    )
    yield write(
        "update without expression",
        {"Update": {"TableName": TABLE, "Key": KEY}},
        member("transactItems.1.member.update.updateExpression", _NULL),
    )
    yield write(
        "values without condition",
        {"Put": {"TableName": TABLE, "Item": KEY, "ExpressionAttributeValues": {":x": n(1)}}},
        "ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null",
    )
    for operation, action in (("TransactWriteItems", delete), ("TransactGetItems", get)):
        yield Row(
            "ReturnConsumedCapacity",
            operation,
            {"TransactItems": [action], "ReturnConsumedCapacity": "abc"},
            member(
                "returnConsumedCapacity",
                "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]",
                value="'abc'",
            ),
        )
    yield Row(
        "second action is bad",
        "TransactWriteItems",
        {"TransactItems": [delete, {"Put": {"TableName": TABLE, "Item": {"pk": {"NS": []}}}}]},
        f"{OOM}An number set  may not be empty",
    )
    token = "a" * 37
    yield Row(
        "long token",
        "TransactWriteItems",
        {"TransactItems": [delete], "ClientRequestToken": token},
        member("clientRequestToken", "Member must have length less than or equal to 36", value=f"'{token}'"),
    )
    empty = (
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an "
        "empty string value. Key: pk"
    )
    yield write("put with an empty key", {"Put": {"TableName": TABLE, "Item": item(pk="", sk="s")}}, empty)
    yield write(
        "delete with an empty key", {"Delete": {"TableName": TABLE, "Key": item(pk="", sk="s")}}, empty
    )
    yield write(
        "unused value",
        {
            "Delete": {
                "TableName": TABLE,
                "Key": KEY,
                "ConditionExpression": "attribute_exists(a)",
                "ExpressionAttributeValues": {":x": n(1)},
            }
        },
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:x}",
    )
    yield write(
        "oversize put",
        {"Put": {"TableName": TABLE, "Item": {**KEY, "x": s("x" * 409_600)}}},
        "Item size has exceeded the maximum allowed size",
    )


def _reasons() -> Iterator[tuple[str, str, dict[str, Any], str]]:
    schema = "The provided key element does not match the schema"
    wrong = item(pk=1, sk="s")
    yield (
        "put of a wrong key",
        "TransactWriteItems",
        {"Put": {"TableName": TABLE, "Item": wrong}},
        f"{OOM}Type mismatch for key pk expected: S actual: N",
    )
    yield (
        "put without a key",
        "TransactWriteItems",
        {"Put": {"TableName": TABLE, "Item": item(pk="p")}},
        f"{OOM}Missing the key sk in the item",
    )
    yield "delete", "TransactWriteItems", {"Delete": {"TableName": TABLE, "Key": wrong}}, schema
    yield "get", "TransactGetItems", {"Get": {"TableName": TABLE, "Key": wrong}}, schema
    update = {"TableName": TABLE, "Key": wrong, "UpdateExpression": "REMOVE x"}
    yield "update", "TransactWriteItems", {"Update": update}, schema
    check_ = {"TableName": TABLE, "Key": wrong, "ConditionExpression": "attribute_exists(pk)"}
    yield "check", "TransactWriteItems", {"ConditionCheck": check_}, schema
    yield (
        "absent parent",
        "TransactWriteItems",
        {"Update": {**update, "Key": KEY, "UpdateExpression": "REMOVE nobody.x"}},
        "The document path provided in the update expression is invalid for update",
    )
    yield (
        "absent operand",
        "TransactWriteItems",
        {"Update": {**update, "Key": KEY, "UpdateExpression": "SET x = nobody"}},
        "The provided expression refers to an attribute that does not exist in the item",
    )
    values = {"ExpressionAttributeValues": {":v": n(1)}}
    yield (
        "wrong stored type",
        "TransactWriteItems",
        {"Update": {**update, "Key": KEY, "UpdateExpression": "ADD txt :v", **values}},
        "An operand in the update expression has an incorrect data type",
    )
    yield (
        "index key type",
        "TransactWriteItems",
        {"Put": {"TableName": TABLE, "Item": {**KEY, "a": n(1)}}},
        f"{OOM}Type mismatch for Index Key a Expected: S Actual: N IndexName: by-a",
    )
    yield (
        "oversize update",
        "TransactWriteItems",
        {
            "Update": {
                **update,
                "Key": KEY,
                "UpdateExpression": "SET x = :v",
                "ExpressionAttributeValues": {":v": s("x" * 409_600)},
            }
        },
        "Item size to update has exceeded the maximum allowed size",
    )


@rows(_batches())
def test_batches(send_raw: Callable[..., Answer], row: Row) -> None:
    """A batch is refused whole for its form, for a missing table, and for one item named twice."""
    check(send_raw, row)


@rows(_transactions())
def test_transactions(send_raw: Callable[..., Answer], row: Row) -> None:
    """An error in the request alone refuses a transaction; nothing is cancelled."""
    check(send_raw, row)


_REASONS = list(_reasons())


@pytest.mark.parametrize(
    ("operation", "action", "result"), [each[1:] for each in _REASONS], ids=[each[0] for each in _REASONS]
)
def test_reasons_that_say_validation_error(
    send_raw: Callable[..., Answer], operation: str, action: dict[str, Any], result: str
) -> None:
    """An error that depends on the table or its items cancels the transaction, with a ValidationError in its position."""
    other = {"TableName": TABLE, "Key": item(pk="other", sk="s")}
    first = {"Get": other} if operation == "TransactGetItems" else {"Delete": other}

    answer = send_raw(operation, {"TransactItems": [first, action]})

    assert answer.code == "TransactionCanceledException"
    assert answer.text == (
        "Transaction cancelled, please refer cancellation reasons for specific reasons [None, ValidationError]"
    )
    assert answer.body["CancellationReasons"] == [
        {"Code": "None"},
        {"Code": "ValidationError", "Message": result},
    ]


@pytest.mark.parametrize("count", [0, 26])
def test_a_batch_of_no_or_26_writes(send_raw: Callable[..., Answer], count: int) -> None:
    """A table's list of writes has 1 to 25 entries; the sentence shows the whole map."""
    answer = send_raw("BatchWriteItem", {"RequestItems": {TABLE: [_put(key) for key in _KEYS[:count]]}})

    text = answer.text or ""
    assert answer.code == "ValidationException"
    assert text.startswith(f"1 validation error detected: Value '{{{TABLE}=[")
    assert text.endswith(
        "' at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: "
        "[Member must have length less than or equal to 25, Member must have length greater than or equal to 1]"
    )


@pytest.mark.parametrize("operation", ["TransactGetItems", "TransactWriteItems"])
def test_a_transaction_of_101_actions(send_raw: Callable[..., Answer], operation: str) -> None:
    """A transaction has at most 100 actions; the sentence shows the whole list."""
    action = "Get" if operation == "TransactGetItems" else "Delete"

    answer = send_raw(
        operation, {"TransactItems": [{action: {"TableName": TABLE, "Key": key}} for key in _KEYS]}
    )

    text = answer.text or ""
    assert text.startswith("1 validation error detected: Value '[")
    assert text.endswith(
        "]' at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100"
    )


def test_26_writes_over_two_tables(send_raw: Callable[..., Answer]) -> None:
    """The 25 writes of a batch are counted over all its tables."""
    writes = {TABLE: [_put(key) for key in _KEYS[:20]], HASH: [_put(item(pk=str(i))) for i in range(6)]}

    answer = send_raw("BatchWriteItem", {"RequestItems": writes})

    assert answer.code == "ValidationException"


def test_a_transaction_over_4_mb(send_raw: Callable[..., Answer]) -> None:
    """The payload of a transaction has at most 4 MB; AWS's words are known in part."""
    puts = [{"Put": {"TableName": TABLE, "Item": {**key, "x": s("x" * 390_000)}}} for key in _KEYS[:11]]

    answer = send_raw("TransactWriteItems", {"TransactItems": puts})

    assert answer.code == "ValidationException"
    assert "size cannot exceed" in (answer.text or "")


def test_projection_and_attributes_to_get_of_two_tables(send_raw: Callable[..., Answer]) -> None:
    """A batch uses one generation of parameters for all its tables."""
    answer = send_raw(
        "BatchGetItem",
        {
            "RequestItems": {
                TABLE: {"Keys": [KEY], "ProjectionExpression": "a"},
                HASH: {"Keys": [item(pk="p")], "AttributesToGet": ["a"]},
            }
        },
    )

    assert (answer.text or "").startswith(
        "Can not use both expression and non-expression parameters in the same request"
    )
