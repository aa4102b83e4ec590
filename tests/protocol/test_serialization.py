"""A wrong type in a body is reported in the words of AWS's deserialiser, and before anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tavola.protocol.faults import SerializationFault, ValidationFault
from tavola.protocol.requests import check_serialization, parse_coerced
from tests.protocol.parsing import fault, parse_request

_CAST = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class java.lang.Class "
    "(sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module java.base "
    "of loader 'bootstrap')"
)
_OBJECT = "Start of structure or map found where not expected"
_MODEL = "com.amazonaws.dynamodb.v20120810."
_FIELD = "Unexpected field type"
_ELEMENT = "Unexpected value type in payload"

_STRING = [
    (True, "TRUE_VALUE cannot be converted to String"),
    (False, "FALSE_VALUE cannot be converted to String"),
    (23, "NUMBER_VALUE cannot be converted to String"),
    (-2147483648, "NUMBER_VALUE cannot be converted to String"),
    (34.56, "DECIMAL_VALUE cannot be converted to String"),
    ([], "Unrecognized collection type class java.lang.String"),
    ({}, _OBJECT),
]
_BOOLEAN = [
    ("23", "Unexpected token received from parser"),
    (23, "NUMBER_VALUE cannot be converted to Boolean"),
    (34.56, "DECIMAL_VALUE cannot be converted to Boolean"),
    ([], "Unrecognized collection type class java.lang.Boolean"),
    ({}, _OBJECT),
]
_INTEGER = [
    ("23", "STRING_VALUE cannot be converted to Integer"),
    (True, "TRUE_VALUE cannot be converted to Integer"),
    (False, "FALSE_VALUE cannot be converted to Integer"),
    ([], "Unrecognized collection type class java.lang.Integer"),
    ({}, _OBJECT),
]
_LONG = [
    ("23", "STRING_VALUE cannot be converted to Long"),
    (True, "TRUE_VALUE cannot be converted to Long"),
    ([], "Unrecognized collection type class java.lang.Long"),
    ({}, _OBJECT),
]
_BLOB = [
    (True, "only base-64-encoded strings are convertible to bytes"),
    (23, "only base-64-encoded strings are convertible to bytes"),
    (34.56, "only base-64-encoded strings are convertible to bytes"),
    ([], "Unrecognized collection type class java.nio.ByteBuffer"),
    ({}, _OBJECT),
    ("23456", "Base64 encoded length is expected a multiple of 4 bytes but found: 5"),
    ("=+/=", "Invalid last non-pad Base64 character dectected"),
    ("+/+=", "Invalid last non-pad Base64 character dectected"),
]
_LIST = [("23", _FIELD), (True, _FIELD), (23, _FIELD), (34.56, _FIELD), ({}, _OBJECT)]


def _map(java: str) -> list[tuple[Any, str]]:
    return [
        ("23", _FIELD),
        (True, _FIELD),
        (23, _FIELD),
        ([], f"Unrecognized collection type java.util.Map<java.lang.String, {java}>"),
    ]


def _structure(name: str, text: str) -> list[tuple[Any, str]]:
    return [
        ("23", text),
        (True, text),
        (23, text),
        (34.56, text),
        ([], f"Unrecognized collection type class {_MODEL}{name}"),
    ]


def _put(path: str, value: Any) -> dict[str, Any]:
    """Return a body with one value at a path; a `0` in the path is a list's first place."""
    steps = path.split(".")
    for step in reversed(steps):
        value = [value] if step == "0" else {step: value}
    assert isinstance(value, dict)
    return value


_VALUE = [
    ("", _structure("AttributeValue", _ELEMENT)),
    (".S", _STRING),
    (".N", _STRING),
    (".B", _BLOB),
    (".BOOL", _BOOLEAN),
    (".NULL", _BOOLEAN),
    (".SS", _LIST),
    (".SS.0", _STRING),
    (".NS", _LIST),
    (".NS.0", _STRING),
    (".BS", _LIST),
    (".BS.0", _BLOB),
    (".L", _LIST),
    (".L.0", _structure("AttributeValue", _ELEMENT)),
    (".L.0.BS.0", _BLOB),
    (".M", _map(_MODEL + "AttributeValue")),
    (".M.a", _structure("AttributeValue", _ELEMENT)),
    (".M.a.BS.0", _BLOB),
]

_PLACES: list[tuple[str, str, list[tuple[Any, str]]]] = [
    ("GetItem", "TableName", _STRING),
    ("GetItem", "Key", _map(_MODEL + "AttributeValue")),
    ("GetItem", "AttributesToGet", _LIST),
    ("GetItem", "AttributesToGet.0", _STRING),
    ("GetItem", "ConsistentRead", _BOOLEAN),
    ("GetItem", "ExpressionAttributeNames", _map("java.lang.String")),
    ("GetItem", "ExpressionAttributeNames.#a", _STRING),
    ("Query", "Limit", _INTEGER),
    ("Query", "QueryFilter", _map(_MODEL + "Condition")),
    ("Query", "QueryFilter.a", _structure("Condition", _ELEMENT)),
    ("Query", "QueryFilter.a.ComparisonOperator", _STRING),
    ("Query", "QueryFilter.a.AttributeValueList", _LIST),
    ("Scan", "Segment", _INTEGER),
    ("PutItem", "Expected", _map(_MODEL + "ExpectedAttributeValue")),
    ("PutItem", "Expected.a", _structure("ExpectedAttributeValue", _ELEMENT)),
    ("PutItem", "Expected.a.Exists", _BOOLEAN),
    ("PutItem", "Expected.a.Value", _structure("AttributeValue", _FIELD)),
    ("UpdateItem", "AttributeUpdates.a.Action", _STRING),
    ("BatchGetItem", "RequestItems", _map(_MODEL + "KeysAndAttributes")),
    ("BatchGetItem", "RequestItems.abc", _structure("KeysAndAttributes", _ELEMENT)),
    ("BatchGetItem", "RequestItems.abc.Keys", _LIST),
    (
        "BatchGetItem",
        "RequestItems.abc.Keys.0",
        [
            ("23", _CAST),
            (True, _CAST),
            (23, _CAST),
            ([], f"Unrecognized collection type java.util.Map<java.lang.String, {_MODEL}AttributeValue>"),
        ],
    ),
    ("BatchWriteItem", "RequestItems", _map(f"java.util.List<{_MODEL}WriteRequest>")),
    ("BatchWriteItem", "RequestItems.abc", [("23", _CAST), (True, _CAST), (23, _CAST), ({}, _OBJECT)]),
    ("BatchWriteItem", "RequestItems.abc.0", _structure("WriteRequest", _ELEMENT)),
    ("BatchWriteItem", "RequestItems.abc.0.PutRequest", _structure("PutRequest", _FIELD)),
    ("TransactWriteItems", "TransactItems", _LIST),
    ("TransactWriteItems", "TransactItems.0", _structure("TransactWriteItem", _ELEMENT)),
    ("TransactWriteItems", "TransactItems.0.Put", _structure("Put", _FIELD)),
    ("CreateTable", "KeySchema.0", _structure("KeySchemaElement", _ELEMENT)),
    ("CreateTable", "ProvisionedThroughput", _structure("ProvisionedThroughput", _FIELD)),
    ("CreateTable", "ProvisionedThroughput.ReadCapacityUnits", _LONG),
    ("CreateTable", "GlobalSecondaryIndexes.0.Projection", _structure("Projection", _FIELD)),
    ("CreateTable", "LocalSecondaryIndexes.0.Projection.NonKeyAttributes.0", _STRING),
    ("UpdateTable", "GlobalSecondaryIndexUpdates.0.Create.KeySchema", _LIST),
    ("TagResource", "Tags.0", _structure("Tag", _ELEMENT)),
    *(
        (operation, f"{member}.a{below}", rows)
        for operation, member in (
            ("GetItem", "Key"),
            ("PutItem", "Item"),
            ("Query", "ExclusiveStartKey"),
            ("UpdateItem", "ExpressionAttributeValues"),
            ("BatchGetItem", "RequestItems.abc.Keys.0"),
        )
        for below, rows in _VALUE
    ),
]


@pytest.mark.parametrize(("operation", "path", "rows"), _PLACES, ids=lambda part: part if part else "")
def test_a_value_of_another_type_is_named(operation: str, path: str, rows: list[tuple[Any, str]]) -> None:
    """The member's kind and what came instead decide the sentence, wherever in the body it stands."""
    for value, text in rows:
        # The enum is bad too, which must not be heard.
        body = json.dumps(_put(path, value) | {"ReturnConsumedCapacity": "hi"}).encode()

        with pytest.raises(SerializationFault) as caught:
            check_serialization(operation, body)

        assert caught.value.message == text, value
        raised = fault(operation, body)
        assert (type(raised), raised.message) == (SerializationFault, text)


def test_the_first_wrong_type_in_the_body_is_the_one_reported() -> None:
    """A body is read as a stream, so its own order decides."""
    body = b'{"ConsistentRead": 5, "TableName": 5, "Key": 5}'

    assert fault("GetItem", body).message == "NUMBER_VALUE cannot be converted to Boolean"


def test_types_come_before_constraints_and_rules() -> None:
    """A wrong type deep in a value is reported before a bad name, and before a rule between members."""
    bad_name = {"TableName": "", "Item": {"a": {"S": 5}}}
    bad_rule = {"TableName": "abc", "Item": {"a": {"S": 5}}, "ExpressionAttributeNames": {"#a": "a"}}

    assert fault("PutItem", bad_name).message == "NUMBER_VALUE cannot be converted to String"
    assert fault("PutItem", bad_rule).message == "NUMBER_VALUE cannot be converted to String"


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("true", True),
        ("TRUE", True),
        ("1", True),
        ("yes", True),
        ("false", False),
        ("0", False),
        ("No", False),
    ],
)
def test_some_texts_are_booleans(given: str, taken: bool) -> None:
    """What AWS converts is converted, in a member and in a value."""
    request = {"TableName": "abc", "Key": {"a": {"BOOL": given}}, "ConsistentRead": given}

    assert parse_request("GetItem", request).consistent_read is taken
    mended = parse_coerced("GetItem", json.dumps(request).encode())
    assert mended.key == {"a": {"BOOL": taken}}


def test_a_decimal_is_cut_to_an_integer() -> None:
    """AWS truncates where it expects a whole number."""
    request = {"TableName": "abc", "KeyConditionExpression": "a = :a", "Limit": 1.9}

    assert parse_request("Query", request).limit == 1


def test_null_is_absent() -> None:
    """An explicit null says nothing, and an unknown member is skipped."""
    request: dict[str, Any] = {
        "TableName": "abc",
        "Key": {},
        "ConsistentRead": None,
        "AttributesToGet": None,
        "Nonsense": [1],
    }

    assert parse_request("GetItem", request).consistent_read is None


def test_a_null_value_is_an_empty_one() -> None:
    """A null where a structure stands is a structure without members, for the values room to refuse."""
    request = parse_request("GetItem", {"TableName": "abc", "Key": {"a": None}})

    assert request.key == {"a": {}}


def test_a_repeated_member_counts_once_and_last() -> None:
    """JSON leaves it open; AWS takes the last."""
    body = b'{"TableName": "abc", "TableName": "abd", "Key": {}}'

    raised = fault("GetItem", body + b"x")
    assert raised.message is None
    assert parse_coerced("GetItem", body).table_name == "abd"


def test_a_diagnosis_of_a_sound_body_is_silence() -> None:
    """`diagnose` only speaks of types: constraints and rules are not its business."""
    check_serialization("GetItem", b'{"TableName": ""}')

    assert isinstance(fault("GetItem", b'{"TableName": ""}'), ValidationFault)
