"""What Query and Scan refuse without a table."""

from __future__ import annotations

from typing import Any

import pytest

from tavola.protocol.message_style import MessageStyle
from tests.protocol.parsing import parse_request, refusal

_TABLE: dict[str, Any] = {"TableName": "abc"}
_QUERY: dict[str, Any] = _TABLE | {"KeyConditionExpression": "a = :a"}
_MIXED = "Can not use both expression and non-expression parameters in the same request: "
_NAMES = "ExpressionAttributeNames can only be specified when using expressions"
_VALUES = "ExpressionAttributeValues can only be specified when using expressions"
_EQ = {"a": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}}
_SPECIFIC = (
    "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"
)
_LEGACY = {"AttributesToGet": ["a"], "QueryFilter": _EQ, "ConditionalOperator": "OR", "KeyConditions": _EQ}
_N = {"ExpressionAttributeNames": {"#a": "a"}}
_V = {"ExpressionAttributeValues": {":a": {"S": "a"}}}


@pytest.mark.parametrize(
    ("operation", "request_", "wording", "text"),
    [
        (
            "Query",
            _QUERY | _LEGACY | {"ProjectionExpression": "a", "FilterExpression": "a"},
            "current",
            _MIXED
            + "Non-expression parameters: {AttributesToGet, QueryFilter, ConditionalOperator, KeyConditions} "
            + "Expression parameters: {ProjectionExpression, FilterExpression, KeyConditionExpression}",
        ),
        (
            "Query",
            _TABLE | _LEGACY | {"ProjectionExpression": "a", "FilterExpression": "a"},
            "current",
            _MIXED
            + "Non-expression parameters: {AttributesToGet, QueryFilter, ConditionalOperator} "
            + "Expression parameters: {ProjectionExpression, FilterExpression}",
        ),
        (
            "Scan",
            _TABLE
            | {"ScanFilter": _EQ, "AttributesToGet": ["a"], "ConditionalOperator": "OR"}
            | {"FilterExpression": "a", "ProjectionExpression": "a"},
            "current",
            _MIXED
            + "Non-expression parameters: {AttributesToGet, ScanFilter, ConditionalOperator} "
            + "Expression parameters: {ProjectionExpression, FilterExpression}",
        ),
        ("Query", _TABLE | {"KeyConditions": _EQ} | _N | _V, "current", _NAMES),
        ("Query", _TABLE | {"KeyConditions": _EQ} | _V, "current", _VALUES),
        (
            "Query",
            _TABLE | {"KeyConditions": _EQ} | _V,
            "classic",
            _VALUES + ": FilterExpression and KeyConditionExpression are null",
        ),
        ("Scan", _TABLE | _N, "current", _NAMES),
        ("Scan", _TABLE | _V, "current", _VALUES + ": FilterExpression is null"),
        ("Scan", _TABLE | _V, "modern", _VALUES),
        (
            "Query",
            _TABLE,
            "current",
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
        ),
        (
            "Query",
            _QUERY | {"Select": "SPECIFIC_ATTRIBUTES"},
            "current",
            "1 validation error detected: " + _SPECIFIC,
        ),
        ("Query", _QUERY | {"Select": "SPECIFIC_ATTRIBUTES"}, "classic", _SPECIFIC),
        ("Scan", _TABLE | {"Select": "SPECIFIC_ATTRIBUTES"}, "current", _SPECIFIC),
        *(
            (
                "Scan",
                _TABLE | {"Select": select, name: given},
                "current",
                f"Cannot specify the {name} when choosing to get {chosen}",
            )
            for name, given in (("ProjectionExpression", "a"), ("AttributesToGet", ["a"]))
            for select, chosen in (
                ("ALL_ATTRIBUTES", "ALL_ATTRIBUTES"),
                ("ALL_PROJECTED_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"),
                ("COUNT", "only the Count"),
            )
        ),
        (
            "Query",
            _QUERY | {"Select": "ALL_PROJECTED_ATTRIBUTES"},
            "current",
            "1 validation error detected: ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
        ),
        (
            "Scan",
            _TABLE | {"Segment": 0},
            "current",
            (
                "The TotalSegments parameter is required but was not present in the request when Segment parameter "
                "is present"
            ),
        ),
        (
            "Scan",
            _TABLE | {"TotalSegments": 1},
            "current",
            (
                "The Segment parameter is required but was not present in the request when parameter TotalSegments "
                "is present"
            ),
        ),
        (
            "Scan",
            _TABLE | {"TotalSegments": 5, "Segment": 5},
            "current",
            (
                "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
                "Segment: 5 is not less than TotalSegments: 5"
            ),
        ),
        (
            "Query",
            _TABLE | {"KeyConditions": _EQ, "ConditionalOperator": "OR"},
            "current",
            "ConditionalOperator cannot be used without Filter or Expected",
        ),
        (
            "Scan",
            _TABLE | {"ConditionalOperator": "OR"},
            "current",
            "ConditionalOperator cannot be used without Filter or Expected",
        ),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(
    operation: str, request_: dict[str, Any], wording: MessageStyle, text: str
) -> None:
    """What is wrong between the members is reported before a table is looked up."""
    assert refusal(operation, request_, wording) == text


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("Query", _QUERY | _V | {"IndexName": "gsi", "Select": "ALL_PROJECTED_ATTRIBUTES", "Limit": 1}),
        ("Query", _TABLE | {"KeyConditions": _EQ, "FilterExpression": "b = :a"} | _V),
        ("Query", _TABLE | {"KeyConditions": _EQ, "ProjectionExpression": "#a"} | _N),
        ("Query", _QUERY | {"Select": "SPECIFIC_ATTRIBUTES", "ProjectionExpression": "a"}),
        ("Query", _QUERY | {"Select": "COUNT", "ScanIndexForward": False}),
        ("Scan", _TABLE | {"Segment": 0, "TotalSegments": 1}),
        ("Scan", _TABLE | {"ScanFilter": _EQ, "ConditionalOperator": "OR", "AttributesToGet": ["a"]}),
        ("Scan", _TABLE | {"ProjectionExpression": "#a"} | _N),
    ],
)
def test_what_does_not_contradict_itself_is_taken(operation: str, request_: dict[str, Any]) -> None:
    """Legacy key conditions may stand beside a filter or projection that is an expression."""
    for wording in ("current", "classic", "modern"):
        assert parse_request(operation, request_, wording).table_name == "abc"
