"""What the single-item operations refuse without an item."""

from __future__ import annotations

from typing import Any, NoReturn

import msgspec
import pytest

from tavola.protocol import requests
from tavola.protocol.faults import SerializationFault, ValidationFault
from tavola.protocol.message_style import MessageStyle
from tavola.protocol.requests import parse
from tests.protocol.parsing import parse_request, refusal

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
        assert parse_request(operation, request_, wording).table_name == "abc"


def _put_with(attributes: int, value: dict[str, Any]) -> bytes:
    item = {"pk": {"S": "a"}} | {f"{number:x}": value for number in range(attributes)}
    return msgspec.json.encode({"TableName": "abc", "Item": item})


def test_a_put_of_too_large_a_body_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body of twice what the largest item takes is refused by its length, without decoding its attributes."""
    body = _put_with(600_000, {"S": ""})
    parse("PutItem", _put_with(1, {"S": "x"}))  # builds the decoder
    monkeypatch.setitem(requests._PARSERS, "PutItem", (_refuse_to_decode, requests._PARSERS["PutItem"][1]))

    with pytest.raises(ValidationFault, match=r"^Item size has exceeded the maximum allowed size$"):
        parse("PutItem", body)


def _refuse_to_decode(body: bytes) -> NoReturn:
    raise AssertionError("the item was decoded")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(_put_with(130_000, {"S": ""}), id="many small attributes"),
        pytest.param(_put_with(1, {"S": ":" * 800_000 + "x" * 300_000}), id="colons in a string"),
        pytest.param(_put_with(1, {"S": "x" * 1_200_000}), id="one large attribute"),
    ],
)
def test_a_large_item_is_left_to_the_check_of_its_size(body: bytes) -> None:
    """An item that may be within the limit, or is too large for another reason, is decoded and measured."""
    assert len(body) > 1024 * 1024
    assert len(parse("PutItem", body).item) > 1


def test_a_large_body_that_is_not_json_is_refused_as_such() -> None:
    """The count of parts does not hide an error of syntax."""
    with pytest.raises(SerializationFault):
        parse("PutItem", b'{"Item":{"a":' + b" " * 1_200_000)
