"""What the batches refuse without a table."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.parsing import parse_request, refusal

_KEYS = [{"a": {"S": str(number)}} for number in range(100)]
_DELETE = {"DeleteRequest": {"Key": {"a": {"S": "a"}}}}
_PUT = {"PutRequest": {"Item": {"a": {"S": "a"}}}}
_MIXED = (
    "Can not use both expression and non-expression parameters in the same request: "
    "Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}"
)


@pytest.mark.parametrize(
    ("operation", "tables", "text"),
    [
        (
            "BatchGetItem",
            {"abc": {"Keys": _KEYS}, "abd": {"Keys": _KEYS[:1]}},
            "Too many items requested for the BatchGetItem call",
        ),
        (
            "BatchGetItem",
            {"abc": {"Keys": [{}], "AttributesToGet": ["a"], "ProjectionExpression": "a"}},
            _MIXED,
        ),
        (
            "BatchGetItem",
            {
                "abc": {"Keys": [{}], "AttributesToGet": ["a"]},
                "abd": {"Keys": [{}], "ProjectionExpression": "a"},
            },
            _MIXED,
        ),
        (
            "BatchGetItem",
            {"abc": {"Keys": [{}], "ExpressionAttributeNames": {"#a": "a"}}},
            "ExpressionAttributeNames can only be specified when using expressions",
        ),
        (
            "BatchWriteItem",
            {"abc": [_DELETE] * 25, "abd": [_PUT]},
            "Too many items requested for the BatchWriteItem call",
        ),
        (
            "BatchWriteItem",
            {"abc": [_PUT | _DELETE]},
            (
                "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the "
                "supported datatypes"
            ),
        ),
        (
            "BatchWriteItem",
            {"abc": [{}]},
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        ),
    ],
)
def test_a_batch_that_no_table_could_serve_is_refused(
    operation: str, tables: dict[str, Any], text: str
) -> None:
    """Counts run over all tables, and one request keeps to one way of projecting."""
    assert refusal(operation, {"RequestItems": tables}) == text


def test_a_batch_at_its_limit_is_taken() -> None:
    """The limits are inclusive."""
    assert (
        len(
            parse_request("BatchGetItem", {"RequestItems": {"abc": {"Keys": _KEYS}}})
            .request_items["abc"]
            .keys
        )
        == 100
    )
    written = parse_request("BatchWriteItem", {"RequestItems": {"abc": [_DELETE] * 24, "abd": [_PUT]}})
    assert written.request_items["abd"][0].put_request.item == {"a": {"S": "a"}}


def test_a_batch_may_name_a_table_by_its_arn() -> None:
    """The keys of RequestItems are names or ARNs."""
    arn = "arn:aws:dynamodb:eu-west-2:123456789012:table/Orders"

    assert list(parse_request("BatchWriteItem", {"RequestItems": {arn: [_PUT]}}).request_items) == [arn]
