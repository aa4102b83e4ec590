"""What transactions refuse without a table."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.protocol.message_style import MessageStyle
from tavola.protocol.transactions import Put
from tests.protocol.parsing import parse_request, refusal

_PUT: dict[str, Any] = {"TableName": "abc", "Item": {}}
_KEY: dict[str, Any] = {"TableName": "abc", "Key": {}}
_NULL = "failed to satisfy constraint: Member must not be null"


@pytest.mark.parametrize(
    ("items", "wording", "text"),
    [
        (
            [{}],
            "current",
            "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
        ),
        (
            [{"Put": _PUT, "Delete": _KEY}],
            "current",
            "TransactItems can only contain one of Check, Put, Update or Delete",
        ),
        (
            [{"Put": _PUT | {"ExpressionAttributeNames": {"#a": "a"}}}],
            "current",
            "ExpressionAttributeNames can only be specified when using expressions",
        ),
        (
            [{"Delete": _KEY | {"ExpressionAttributeValues": {":a": {"S": "a"}}}}],
            "current",
            "ExpressionAttributeValues can only be specified when using expressions: ConditionExpression is null",
        ),
        (
            [{"Delete": _KEY | {"ExpressionAttributeValues": {":a": {"S": "a"}}}}],
            "modern",
            "ExpressionAttributeValues can only be specified when using expressions",
        ),
        (
            [{"ConditionCheck": _KEY}],
            "current",
            (
                "1 validation error detected: Value null at "
                f"'transactItems.1.member.conditionCheck.conditionExpression' {_NULL}"
            ),
        ),
        (
            [{"Update": _KEY}],
            "current",
            f"1 validation error detected: Value null at 'transactItems.1.member.update.updateExpression' {_NULL}",
        ),
        (
            [{"Put": _PUT}, {"Put": {"TableName": "abc;", "Item": {}}}],
            "current",
            (
                "1 validation error detected: Value 'abc;' at 'transactItems.2.member.put.tableName' failed to "
                "satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
            ),
        ),
    ],
)
def test_an_action_that_is_none_or_too_much_is_refused(
    items: list[dict[str, Any]], wording: MessageStyle, text: str
) -> None:
    """Each element is exactly one action, and whole."""
    assert refusal("TransactWriteItems", {"TransactItems": items}, wording) == text


def test_more_than_a_hundred_actions_are_echoed_by_the_classic_layer() -> None:
    """The echo is what Java prints."""
    put = {"Put": {"TableName": "abc", "Item": {"a": {"S": "x"}}}}

    text = refusal("TransactWriteItems", {"TransactItems": [put] * 101})

    one = "TransactWriteItem(put=Put(tableName=abc, item={a=AttributeValue(S=x)}))"
    assert text == (
        f"1 validation error detected: Value '[{', '.join([one] * 101)}]' at 'transactItems' failed to satisfy "
        "constraint: Member must have length less than or equal to 100"
    )


def test_a_read_needs_a_projection_for_its_names() -> None:
    """Names without an expression are refused in a transaction too."""
    get = {"Get": _KEY | {"ExpressionAttributeNames": {"#a": "a"}}}

    assert (
        refusal("TransactGetItems", {"TransactItems": [get]})
        == "ExpressionAttributeNames can only be specified when using expressions"
    )


def test_a_sound_transaction_gives_its_actions() -> None:
    """An element knows its one action."""
    request = parse_request(
        "TransactWriteItems",
        {
            "TransactItems": [
                {"Put": _PUT},
                {
                    "Update": _KEY
                    | {"UpdateExpression": "SET a = :a", "ExpressionAttributeValues": {":a": {}}}
                },
                {"Delete": _KEY},
                {"ConditionCheck": _KEY | {"ConditionExpression": "a"}},
            ],
            "ClientRequestToken": "t" * 36,
        },
    )

    kinds = [type(item.action).__name__ for item in request.transact_items]
    assert kinds == ["Put", "Update", "Delete", "ConditionCheck"]
    assert isinstance(request.transact_items[0].action, Put)
