"""Large bodies are parsed in steps, with the result of parsing them whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tavola.protocol.faults import SerializationFault, ValidationFault
from tavola.protocol.large_requests import parse_in_steps
from tavola.protocol.requests import parse
from tavola.values import ValueRefused, admit_item

_LIST = {"L": [{"N": "1"}] * 3_000}
_KEY = {"pk": {"S": "a"}}
_ITEM = {"pk": {"S": "a"}, "l": _LIST, "m": {"M": {f"k{number}": {"S": "x"} for number in range(900)}}}


def _parse(operation: str, body: bytes) -> tuple[Any, int]:
    """Return the request and the number of pauses."""
    steps = parse_in_steps(operation, body, "current", [])
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value, pauses
        pauses += 1


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("PutItem", {"TableName": "abc", "Item": _ITEM}),
        (
            "UpdateItem",
            {
                "TableName": "abc",
                "Key": _KEY,
                "UpdateExpression": "SET l = :l",
                "ExpressionAttributeValues": {":l": _LIST, ":m": {"S": "x"}},
            },
        ),
        ("UpdateItem", {"TableName": "abc", "Key": _KEY, "AttributeUpdates": {"l": {"Value": _LIST}}}),
        (
            "BatchWriteItem",
            {
                "RequestItems": {
                    "abc": [{"PutRequest": {"Item": _ITEM | {"pk": {"S": f"{n}"}}}} for n in range(3)],
                    "def": [{"DeleteRequest": {"Key": _KEY}}],
                }
            },
        ),
        (
            "BatchWriteItem",
            {
                "RequestItems": {
                    "abc": [
                        {"PutRequest": {"Item": {"pk": {"S": f"{n}"}, "s": {"S": "x" * 390_000}}}}
                        for n in range(9)
                    ]
                }
            },
        ),
        ("TransactWriteItems", {"TransactItems": [{"Put": {"TableName": "abc", "Item": _ITEM}}]}),
        (
            "ExecuteStatement",
            {"Statement": "INSERT INTO abc VALUE {'pk': ?, 'l': ?}", "Parameters": [{"S": "a"}, _LIST]},
        ),
    ],
)
def test_a_large_body_is_the_request_that_a_small_one_is(operation: str, request_: dict[str, Any]) -> None:
    """Every place where an operation takes values is found, and large values there are put back."""
    body = json.dumps(request_).encode()

    parsed, pauses = _parse(operation, body)

    assert parsed == parse(operation, body)
    assert pauses > 5


def test_large_values_are_admitted_once() -> None:
    """The item of a request in steps has its size already, which is that of the ordinary way."""
    body = json.dumps({"TableName": "abc", "Item": _ITEM}).encode()
    item = _parse("PutItem", body)[0].item

    assert admit_item(item) == admit_item(parse("PutItem", body).item)
    assert type(item) is not dict


def test_what_is_too_large_for_its_operation_is_not_read() -> None:
    """A body over the operation's limit is refused by its length, in steps and whole, whatever it contains."""
    for operation, bytes_max in (("GetItem", 2 << 20), ("Query", 8 << 20)):
        body = b"{" * (bytes_max + 1)
        for read in (_parse, parse):
            with pytest.raises(ValidationFault, match=rf"The request has {len(body)} bytes; {operation} "):
                read(operation, body)


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        (
            "BatchWriteItem",
            b'{"RequestItems":{"abc":[' + b'{"PutRequest":{"Item":{"pk":{"S":"a"}}}},' * 40_000,
        ),
        (
            "GetItem",
            b'{"TableName":"abc","Key":{"pk":{"S":"a"}},"ProjectionExpression":"#0","ExpressionAttributeNames":{'
            + b",".join(b'"#%d":"a"' % number for number in range(6_000))
            + b"}}",
        ),
        ("PutItem", b'{"TableName":"abc","Unknown":[' + b"1," * 20_000 + b"1]}"),
    ],
)
def test_too_many_parts_outside_of_values_are_refused(operation: str, body: bytes) -> None:
    """What cannot be cut and is larger than any valid request is refused, and not parsed in one piece."""
    with pytest.raises(ValidationFault, match=rf"too many parts for {operation}"):
        _parse(operation, body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"TableName":"abc","Item":{"pk":{"S":"a"},"l":{"L":[' + b'{"N":"1"},' * 3_000 + b"]}}}",
        b'{"TableName":"abc","Item":{"pk":{"S":"a"},"l":{"L":[' + b'{"N":"1"},' * 3_000 + b'{"N":1}]}}}',
        json.dumps({"TableName": "abc", "Item": _ITEM}).encode()[:-1] + b',"Item":{"pk":{"S":"b"}}}',
        json.dumps({"TableName": "abc", "Item": _ITEM}).encode()[:-1] + b',"Item":null}',
        json.dumps({"TableName": "abc", "Item": {"l": {"S": "x", **_LIST}}}).encode(),
    ],
)
def test_malformed_large_bodies_are_refused(body: bytes) -> None:
    """A text that is not valid, has a wrong type in a large value, or names a member twice is a SerializationException."""
    with pytest.raises((SerializationFault, ValidationFault)):
        _parse("PutItem", body)


def test_a_refused_value_is_reported_as_such() -> None:
    """The caller gets the refusal of the value, to put it into the words of the operation."""
    item = {"pk": {"S": "a"}, "l": {"L": [*_LIST["L"], {"N": "no number"}]}}

    with pytest.raises(ValueRefused, match="no number"):
        _parse("PutItem", json.dumps({"TableName": "abc", "Item": item}).encode())
