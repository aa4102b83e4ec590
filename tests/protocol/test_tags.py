"""What the tag operations refuse without the resource."""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.parsing import INVALID, parse_request, refusal

_TABLE = "arn:aws:dynamodb:eu-west-2:123456789012:table/Orders"
_SHORT = "arn:aws:dynamodb:eu-west-2:123456789012:table/ab"
_TAG = {"Key": "k", "Value": "v"}


@pytest.mark.parametrize(
    ("operation", "request_", "text"),
    [
        ("TagResource", {"Tags": [_TAG]}, "Invalid TableArn"),
        ("UntagResource", {"TagKeys": ["k"]}, "Invalid TableArn"),
        ("ListTagsOfResource", {}, "Invalid TableArn"),
        (
            "TagResource",
            {"ResourceArn": "a:b:c:d:e:f/g", "Tags": []},
            INVALID + "ARNs must start with 'arn:': a:b:c:d:e:f/g",
        ),
        (
            "ListTagsOfResource",
            {"ResourceArn": f"{_TABLE}/backup/0170"},
            INVALID + f"Provided Arn is not a DynamoDB resource arn: {_TABLE}/backup/0170",
        ),
        (
            "ListTagsOfResource",
            {"ResourceArn": _SHORT},
            f"Invalid TableArn: Invalid ResourceArn provided as input {_SHORT}",
        ),
        (
            "TagResource",
            {"ResourceArn": f"{_TABLE}/index/by-day", "Tags": [_TAG]},
            INVALID
            + "Invalid resource arn provided, only table or stream is accepted. "
            + f"Provided resource arn: {_TABLE}/index/by-day",
        ),
        (
            "TagResource",
            {"ResourceArn": _TABLE, "Tags": []},
            "Atleast one Tag needs to be provided as Input.",
        ),
        (
            "UntagResource",
            {"ResourceArn": _TABLE, "TagKeys": []},
            "Atleast one Tag Key needs to be provided as Input.",
        ),
        (
            "UntagResource",
            {"ResourceArn": _TABLE},
            (
                "1 validation error detected: Value null at 'tagKeys' failed to satisfy constraint: "
                "Member must not be null"
            ),
        ),
        (
            "TagResource",
            {"ResourceArn": _TABLE, "Tags": [_TAG, _TAG]},
            "Duplicate Tag Keys provided as input: Duplicate Tag Key found k",
        ),
        (
            "TagResource",
            {"ResourceArn": _TABLE, "Tags": [{"Key": "aws:k", "Value": "v"}]},
            "Tag Key cannot be prefixed with aws:, Key: aws:k",
        ),
        (
            "TagResource",
            {"ResourceArn": _TABLE, "Tags": [{"Key": "", "Value": "v"}]},
            "The Tag Key provided is invalid, Key: ",
        ),
        (
            "TagResource",
            {"ResourceArn": _TABLE, "Tags": [{"Key": "k", "Value": "v" * 257}]},
            f"The Tag Value provided is invalid, Value: {'v' * 257}",
        ),
        (
            "TagResource",
            {"ResourceArn": _TABLE, "Tags": [{"Key": "k"}]},
            "The Tag Value provided is invalid, Value: null",
        ),
        (
            "TagResource",
            {"ResourceArn": _TABLE, "Tags": [{"Value": "v"}]},
            "The Tag Key provided is invalid, Key: null",
        ),
        *(
            (
                "TagResource",
                {"ResourceArn": _TABLE, "Tags": [{"Key": "k", "Value": value}]},
                f"The Tag Value provided is invalid, Value: {value}",
            )
            for value in ("100%", "a,b", "(x)", "a&b", "a|b", "<a>", "~a", "\U0001f511", "#", "a\tb")
        ),
        (
            "UntagResource",
            {"ResourceArn": _TABLE, "TagKeys": [str(n) for n in range(51)]},
            "Number of Tags exceed the current limit for the provided ResourceArn",
        ),
        (
            "UntagResource",
            {"ResourceArn": _TABLE, "TagKeys": ["k" * 129]},
            f"The Tag Key provided is invalid, Key: {'k' * 129}",
        ),
        (
            "TagResource",
            {"ResourceArn": _TABLE, "Tags": [{"Key": str(n), "Value": ""} for n in range(51)]},
            "Number of Tags exceed the current limit for the provided ResourceArn",
        ),
    ],
)
def test_tags_that_no_resource_takes_are_refused(operation: str, request_: dict[str, Any], text: str) -> None:
    """The resource is named first, then the tags are looked at."""
    assert refusal(operation, request_) == text


def test_tables_and_streams_take_tags() -> None:
    """Up to fifty, each with a value that may be empty."""
    tags = [{"Key": str(number), "Value": ""} for number in range(50)]

    assert len(parse_request("TagResource", {"ResourceArn": _TABLE, "Tags": tags}).tags) == 50
    for text in ("\u043a\u043b\u044e\u0447", "caf\u00e9", "\u8868", "a\u00a0b\u3000c", "a+b-c=d.e_f:g/h@i 7"):
        assert parse_request("TagResource", {"ResourceArn": _TABLE, "Tags": [{"Key": text, "Value": text}]})
    assert parse_request("ListTagsOfResource", {"ResourceArn": f"{_TABLE}/stream/2026-11-15T22:00:00.000"})
