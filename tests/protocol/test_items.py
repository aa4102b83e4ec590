"""What the single-item operations refuse without an item."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.protocol.message_style import MessageStyle
from tests.protocol.asking import asked, refusal

_COUNTED = "1 validation error detected: "
_KEY: dict[str, Any] = {"TableName": "abc", "Key": {"a": {"S": "a"}}}
_ITEM: dict[str, Any] = {"TableName": "abc", "Item": {"a": {"S": "a"}}}
_MIXED = "Can not use both expression and non-expression parameters in the same request: "
_NAMES = "ExpressionAttributeNames can only be specified when using expressions"
_VALUES = "ExpressionAttributeValues can only be specified when using expressions"
_N = {"ExpressionAttributeNames": {"#a": "a"}}
_V = {"ExpressionAttributeValues": {":a": {"S": "a"}}}
_OLD = {"Expected": {"a": {"Exists": False}}}


@pytest.mark.parametrize(
    ("operation", "request_", "wording", "text"),
    [
        (
            "GetItem",
            _KEY | {"AttributesToGet": ["a"], "ProjectionExpression": "a"},
            "current",
            _MIXED
            + "Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}",
        ),
        ("GetItem", _KEY | _N, "current", _NAMES),
        ("GetItem", _KEY | _N | {"AttributesToGet": ["a"]}, "classic", _NAMES),
        (
            "PutItem",
            _ITEM | _OLD | {"ConditionExpression": "a"},
            "current",
            _COUNTED
            + _MIXED
            + "Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}",
        ),
        (
            "PutItem",
            _ITEM | _OLD | {"ConditionExpression": "a"},
            "classic",
            _MIXED + "Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}",
        ),
        ("PutItem", _ITEM | _N, "current", _COUNTED + _NAMES),
        ("PutItem", _ITEM | _V, "current", _COUNTED + _VALUES),
        ("PutItem", _ITEM | _V, "classic", _VALUES + ": ConditionExpression is null"),
        ("PutItem", _ITEM | _N | _V, "classic", _NAMES),
        ("DeleteItem", _KEY | _V, "classic", _VALUES + ": ConditionExpression is null"),
        ("DeleteItem", _KEY | _N, "modern", _COUNTED + _NAMES),
        (
            "UpdateItem",
            _KEY | _OLD | {"AttributeUpdates": {}, "ConditionExpression": "a", "UpdateExpression": "a"},
            "current",
            _COUNTED
            + _MIXED
            + "Non-expression parameters: {AttributeUpdates, Expected} "
            + "Expression parameters: {UpdateExpression, ConditionExpression}",
        ),
        ("UpdateItem", _KEY | _N, "current", _COUNTED + _NAMES),
        ("UpdateItem", _KEY | _V, "current", _COUNTED + _VALUES),
        ("UpdateItem", _KEY | _V, "classic", _VALUES + ": UpdateExpression and ConditionExpression are null"),
        *(
            (
                operation,
                request | {"ReturnValues": returned},
                wording,
                prefix + "ReturnValues can only be ALL_OLD or NONE",
            )
            for operation, request in (("PutItem", _ITEM), ("DeleteItem", _KEY))
            for returned in ("ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")
            for wording, prefix in (("current", _COUNTED), ("classic", ""))
        ),
        *(
            (
                operation,
                request | {"ConditionalOperator": "OR"},
                "classic",
                "ConditionalOperator cannot be used without Filter or Expected",
            )
            for operation, request in (("PutItem", _ITEM), ("DeleteItem", _KEY), ("UpdateItem", _KEY))
        ),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(
    operation: str, request_: dict[str, Any], wording: MessageStyle, text: str
) -> None:
    """The two ways to say a condition exclude each other, and placeholders need an expression."""
    assert refusal(operation, request_, wording) == text


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("GetItem", _KEY),
        ("GetItem", _KEY | _N | {"ProjectionExpression": "#a"}),
        ("GetItem", _KEY | {"AttributesToGet": ["a"], "ConsistentRead": True}),
        ("PutItem", _ITEM | _N | _V | {"ConditionExpression": "#a = :a", "ReturnValues": "ALL_OLD"}),
        ("PutItem", _ITEM | _OLD | {"ConditionalOperator": "AND"}),
        ("DeleteItem", _KEY | _N | {"ConditionExpression": "attribute_exists(#a)", "ReturnValues": "NONE"}),
        ("UpdateItem", _KEY),
        ("UpdateItem", _KEY | _N | _V | {"UpdateExpression": "SET #a = :a", "ReturnValues": "UPDATED_NEW"}),
        ("UpdateItem", _KEY | _V | {"ConditionExpression": "a = :a"}),
        ("UpdateItem", _KEY | {"AttributeUpdates": {"b": {"Action": "PUT", "Value": {"S": "b"}}}}),
    ],
)
def test_what_does_not_contradict_itself_is_taken(operation: str, request_: dict[str, Any]) -> None:
    """A sound request passes in every wording."""
    for wording in ("current", "classic", "modern"):
        assert asked(operation, request_, wording).table_name == "abc"
